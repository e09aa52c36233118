"""What reads the last items that a Module keeps, once they are in a buffer with a slot for each (kept_windows)."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.rewriting.state.window_bounds import Addition

_WRAPPING = frozenset({"list", "tuple"})
# What gives one number of several, as a method of a tensor.
_MEANS = {
    "statistics.mean": "mean()",
    "statistics.fmean": "mean()",
    "numpy.mean": "mean()",
    "numpy.average": "mean()",
}
_OF_FLOATS = {**_MEANS, "numpy.std": "std(correction=0)", "numpy.var": "var(correction=0)"}
_SUMS = {"sum": "sum()", "math.fsum": "sum()", "numpy.sum": "sum()"}
_EXTREMES = {"max": "max()", "min": "min()", "numpy.max": "max()", "numpy.min": "min()"}
_MADE = frozenset({"torch.tensor", "torch.as_tensor"})
_JOINING = frozenset({"torch.stack", "torch.cat", "torch.concat", "torch.vstack", "torch.hstack"})
# Methods that give a tensor of memory of its own.
_REDUCING = frozenset(
    {
        "mean",
        "sum",
        "std",
        "var",
        "max",
        "min",
        "amax",
        "amin",
        "median",
        "prod",
        "norm",
        "softmax",
        "argmax",
        "argmin",
        "all",
        "any",
    }
)


class WindowReads:
    """The reads of one attribute."""

    def __init__(
        self, draft: Draft, cls: ast.ClassDef, attr: str, addition: Addition, count: str, kind: str
    ) -> None:
        self.draft, self.source, self.cls, self.attr = draft, draft.source, cls, attr
        self.path, self.addition, self.kind = f"self.{attr}", addition, kind
        # The buffer that counts the items, where there are not as many as slots from the start.
        self.full, self.counted = not count, f"self.{count}"
        self.writers = self._writers()
        # Of each read that needs it, the name for how many items there are.
        self.names: dict[ast.AST, str] = {}
        # Whether it is read out several times.
        self.several = False

    def swaps(self, reads: list[ast.Attribute]) -> list[Replacement]:
        swaps = self._named(reads)
        alone = [each for each in reads if self._needs_count(each) and not self._decides(each)]
        self.several = len(alone) > 1
        for each in reads:
            swaps.append(self._instead(each))
        outer = [one for one in swaps if not any(one is not each and _holds(each, one) for each in swaps)]
        if len(outer) != len(swaps):
            raise Refused(f"`{self.path}` is read several times in one expression that takes it as a whole")
        return swaps

    def _writers(self) -> set[str]:
        """The methods that may add an item, themselves or by others."""
        methods = {each.name: each for each in self.cls.body if isinstance(each, ast.FunctionDef)}
        own = self.source.enclosing_function(self.addition.statement)
        found = {getattr(own, "name", "")}
        while True:
            more = {
                name
                for name, each in methods.items()
                if name not in found
                and any(isinstance(one, ast.Attribute) and one.attr in found for one in ast.walk(each))
            }
            if not more:
                return found
            found |= more

    def _named(self, reads: list[ast.Attribute]) -> list[Replacement]:
        """The lines that give how many items there are a name, before the first statement of several that reads it."""
        swaps = []
        functions = dict.fromkeys(self.source.enclosing_function(each) for each in reads)
        for function in functions:
            if function is None or function not in self.cls.body:
                raise Refused(f"a function within a method reads `{self.path}`")
            own = [each for each in reads if self.source.enclosing_function(each) is function]
            certain = False
            run: list[ast.AST] = []
            for statement in function.body:
                inside = [each for each in own if any(each is one for one in ast.walk(statement))]
                writes = self._writes(statement)
                if writes and inside:
                    raise Refused(f"`{ast.unparse(inside[0])}` is read in a statement that may add to it")
                if writes:
                    run = []
                    certain = certain or self._certainly_writes(statement)
                for each in inside:
                    sliced = self._needs_slice(each)
                    if sliced and not certain and not self.full:
                        raise Refused(
                            f"`{ast.unparse(self._outer(each))}` may be asked for while `{self.path}` is empty"
                        )
                needing = [each for each in inside if self._needs_count(each) and not self._decides(each)]
                if needing and not run:
                    run = [statement]
                    rest = function.body[function.body.index(statement) :]
                    swaps += self._line(function, statement, rest, own)
        return swaps

    def _line(
        self, function: Function, first: ast.stmt, rest: list[ast.stmt], own: list[ast.Attribute]
    ) -> list[Replacement]:
        needing: list[ast.Attribute] = []
        for statement in rest:
            if self._writes(statement):
                break
            inside = {id(each) for each in ast.walk(statement)}
            needing += [
                each
                for each in own
                if id(each) in inside and self._needs_count(each) and not self._decides(each)
            ]
        sliced = any(map(self._needs_slice, needing))
        if len(needing) == 1 and not sliced:
            return []
        if not self.source.begins_line(first):
            raise Refused(f"`{ast.unparse(first)}` shares its line with other statements")
        name = fresh(f"{self.attr.strip('_') or 'items'}_count", self.draft.taken(self.source.tree))
        self.names |= dict.fromkeys(needing, name)
        lines = [f"{name} = {self.counted}.item()"]
        if sliced:
            lines.append(f"{self.draft.torch}._check({name} >= 1)")
        indent = self.source.newline + self.source.indent_of(first)
        begin = self.source.start(first)
        return [Replacement(begin, begin, "".join(line + indent for line in lines))]

    def _writes(self, statement: ast.stmt) -> bool:
        return any(
            each is self.addition.statement
            or (
                isinstance(each, ast.Attribute) and dotted(each.value) == "self" and each.attr in self.writers
            )
            for each in ast.walk(statement)
        )

    def _certainly_writes(self, statement: ast.stmt) -> bool:
        """Whether an item has been added behind `statement` in any case."""
        if statement is self.addition.statement:
            return True
        if isinstance(statement, ast.With):
            return any(map(self._certainly_writes, statement.body))
        value = statement.value if isinstance(statement, (ast.Expr, ast.Assign)) else None
        if not isinstance(value, ast.Call) or dotted(getattr(value.func, "value", value)) != "self":
            return False
        name = value.func.attr  # type: ignore[attr-defined]
        for method in self.cls.body:
            if isinstance(method, ast.FunctionDef) and method.name == name:
                for each in method.body:
                    if self._certainly_writes(each):
                        return True
                    if any(isinstance(one, (ast.Return, ast.Yield)) for one in ast.walk(each)):
                        return False
        return False

    def _needs_count(self, read: ast.Attribute) -> bool:
        return not self.full and (self._is_asked_for_length(read) or self._needs_slice(read))

    def _needs_slice(self, read: ast.Attribute) -> bool:
        """Whether what takes the items depends on which of the slots are filled."""
        if self.full or self._is_asked_for_length(read):
            return False
        outer = self._outer(read)
        if outer is not read and isinstance(outer, ast.Attribute):
            return False
        if isinstance(outer, ast.Call):
            return self.draft.qualified(outer.func) not in _SUMS
        newest = "0" if self.addition.at_begin else "-1"
        if isinstance(outer, ast.Subscript) and ast.unparse(outer.slice) == newest:
            return not self._is_asked_before(read)
        return True

    def _decides(self, read: ast.Attribute) -> bool:
        """Whether a branch hangs on how many items there are: it becomes torch.cond, which asks the buffer itself."""
        node: ast.AST = read
        for parent in self.source.ancestors(read):
            if isinstance(parent, (ast.If, ast.IfExp)):
                return parent.test is node and self._is_asked_for_length(read)
            if isinstance(parent, ast.stmt):
                return False
            node = parent
        return False

    def _is_asked_before(self, read: ast.Attribute) -> bool:
        """Whether a branch around `read` asks for what is in the window."""
        function = self.source.enclosing_function(read)
        tests = [
            each.test
            for each in self.source.ancestors(read)
            if isinstance(each, (ast.If, ast.IfExp)) and each in ast.walk(function or each)
        ]
        return any(dotted(one) == self.path for test in tests for one in ast.walk(test))

    def _is_asked_for_length(self, read: ast.Attribute) -> bool:
        outer = self._outer(read)
        asked = isinstance(outer, ast.Call) and ast.unparse(outer.func) == "len"
        return asked or (outer is read and self._is_truth(read))

    def _outer(self, read: ast.Attribute) -> ast.expr:
        """The call or subscript that takes the items, `list` and `tuple` of them left out; `read` itself where nothing does."""
        node: ast.expr = read
        parent = self.source.parents[node]
        while (
            isinstance(parent, ast.Call) and ast.unparse(parent.func) in _WRAPPING and parent.args == [node]
        ):
            node, parent = parent, self.source.parents[parent]
        if isinstance(parent, ast.Call) and parent.args[:1] == [node]:
            return parent
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return parent
        if isinstance(parent, ast.Attribute):
            return parent
        return read

    def _is_truth(self, read: ast.Attribute) -> bool:
        parent = self.source.parents[read]
        if isinstance(parent, ast.Call):
            return ast.unparse(parent.func) == "bool"
        return (
            (isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is read)
            or (isinstance(parent, ast.BoolOp) and self._is_tested(parent))
            or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not))
        )

    def _is_tested(self, node: ast.AST) -> bool:
        parent = self.source.parents[node]
        if isinstance(parent, (ast.BoolOp, ast.UnaryOp)):
            return self._is_tested(parent)
        return isinstance(parent, (ast.If, ast.IfExp, ast.While)) and parent.test is node

    def _instead(self, read: ast.Attribute) -> Replacement:
        outer = self._outer(read)
        count = self.names.get(read, f"{self.counted}.item()")
        if read not in self.names and self.several and not self._decides(read):
            # Strict tracing takes what two methods read out of one tensor for one number, and loses it (torch 2.13).
            count = f"{self.counted}.clone().item()"
        if self._is_asked_for_length(read):
            if isinstance(outer, ast.Call):
                text = f"{self.path}.shape[0]" if self.full else count
                return self.source.swap(outer, text)
            if self.full:
                raise Refused(
                    f"`{self.path}` is asked for its truth, which a window that begins full has always"
                )
            return self.source.swap(read, f"({count} > 0)")
        if outer is not read and isinstance(outer, ast.Attribute):
            if outer.attr == "maxlen" and isinstance(outer.ctx, ast.Load):
                return self.source.swap(outer, f"{self.path}.shape[0]")
            raise self._refused(outer)
        window = self.path
        if not self.full:
            window = f"{self.path}[:{count}]" if self.addition.at_begin else f"{self.path}[-{count}:]"
        if isinstance(outer, ast.Subscript):
            return self._item(outer, count)
        if isinstance(outer, ast.Call):
            return self._call(read, outer, window)
        if self.full:
            return self._gone_through(read)
        raise self._refused(self.source.parents[read])

    def _refused(self, node: ast.AST) -> Refused:
        if not self.full and isinstance(node, (ast.For, ast.comprehension)):
            text = ast.unparse(node.iter)
            return Refused(
                f"how often the loop over `{text}` runs depends on how many calls there were: begin with as many items as are kept"
            )
        return Refused(f"`{ast.unparse(node)}` uses `{self.path}` in a way that its buffer may not be")

    def _item(self, outer: ast.Subscript, count: str) -> Replacement:
        index = _whole(outer.slice)
        if index is None or not isinstance(outer.ctx, ast.Load):
            raise self._refused(outer)
        text = str(index)
        if not self.full:
            if index not in (0, -1):
                raise Refused(f"`{ast.unparse(outer)}` may be asked for before there are as many items")
            oldest = index == (-1 if self.addition.at_begin else 0)
            if oldest:
                text = f"{count} - 1" if self.addition.at_begin else f"-{count}"
        end = ".clone()" if self.kind == "tensor" else ".item()"
        self._refuse_unknown_type(outer)
        return self.source.swap(outer, f"{self.path}[{text}]{end}")

    def _refuse_unknown_type(self, node: ast.AST) -> None:
        if self.kind == "number" and not (isinstance(node, ast.expr) and self._is_divided(node)):
            raise Refused(f"whether `{ast.unparse(node)}` gives an int or a float is not known")

    def _call(self, read: ast.Attribute, call: ast.Call, window: str) -> Replacement:
        name = self.draft.qualified(call.func)
        alone = len(call.args) == 1 and not call.keywords
        torch = self.draft.torch
        if self.kind == "tensor":
            if self.full and (name in _JOINING or (name == "sum" and alone)):
                # A tensor is gone through by its first dimension.
                listed = self.source.parents[read] is not call or name == "sum"
                return self.source.swap(read, self.path if listed else f"list({self.path})")
            if name == "sum" and alone:
                return self.source.swap(call, f"{self.path}.sum()")
            if name == "torch.stack" and alone and not self.full:
                parent = self.source.parents[call]
                own = isinstance(parent, ast.Attribute) and parent.attr in _REDUCING
                return self.source.swap(call, window if own else f"{window}.clone()")
            if name in ("max", "min") and alone and not self.full:
                return self.source.swap(call, f"{window}.{name}()")
            if self.full and name not in _SUMS and self._is_listed(read, call):
                return self._gone_through(read)
            raise self._refused(call)
        if alone and name in _OF_FLOATS:
            as_float = "" if self.kind != "int" else f".to({torch}.float64)"
            return self.source.swap(call, f"{window}{as_float}.{_OF_FLOATS[name]}.item()")
        if alone and name in _SUMS:
            self._refuse_unknown_type(call)
            return self.source.swap(call, f"{self.path}.{_SUMS[name]}.item()")
        self._refuse_unknown_type(call)
        if alone and name in _EXTREMES:
            return self.source.swap(call, f"{window}.{_EXTREMES[name]}.item()")
        if name in _MADE and len(call.args) == 1:
            given = {each.arg: self.source.of(each.value) for each in call.keywords}
            if set(given) <= {"dtype", "device"}:
                if "dtype" not in given:
                    whole = self.kind == "int"
                    given["dtype"] = f"{torch}.int64" if whole else f"{torch}.get_default_dtype()"
                told = ", ".join(f"{key}={given[key]}" for key in ("device", "dtype") if key in given)
                return self.source.swap(call, f"{window}.to({told}, copy=True)")
        if alone and isinstance(call.func, ast.Attribute) and call.func.attr == "new_tensor":
            return self.source.swap(call, f"{window}.to({self.source.of(call.func.value)}, copy=True)")
        if self.full and self._is_listed(read, call):
            return self._gone_through(read)
        raise self._refused(call)

    def _is_divided(self, node: ast.expr) -> bool:
        """Whether only a quotient is taken, which is a float of ints as well."""
        parent = self.source.parents[node]
        return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)

    def _is_listed(self, read: ast.AST, call: ast.Call) -> bool:
        """Whether only the items are taken: by `enumerate`, `zip` and the like, or as a list that is made of them."""
        return self.source.parents[read] is not call or ast.unparse(call.func) in (
            "enumerate",
            "zip",
            "reversed",
            "sorted",
        )

    def _gone_through(self, read: ast.Attribute) -> Replacement:
        """Items of a window that begins full, one by one."""
        parent = self.source.parents[read]
        loop = isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is read
        if not loop and not isinstance(parent, (ast.Call, ast.Starred)):
            raise self._refused(parent)
        self._refuse_unknown_type(parent if not isinstance(parent, ast.comprehension) else read)
        if self.kind == "tensor":
            return self.source.swap(read, f"{self.path}.clone().unbind()")
        return self.source.swap(read, f"{self.path}.tolist()")


def _whole(node: ast.expr) -> int | None:
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    return sign * node.value if isinstance(node, ast.Constant) and type(node.value) is int else None


def _holds(outer: Replacement, inner: Replacement) -> bool:
    return (
        outer.start <= inner.start
        and inner.end <= outer.end
        and outer.start < inner.end
        and outer.end > inner.start
    )
