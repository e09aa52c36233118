"""The last items that a Module keeps in a list or deque from call to call, in a buffer with a slot for each.

    self.history = deque(maxlen=8)              self.register_buffer("history", torch.zeros(8, dtype=torch.float64), persistent=False)
                                                self.register_buffer("history_count", torch.tensor(0), persistent=False)
    ...                                         ...
    self.history.append(x.mean().item())  ->    self.history.copy_(self.history.roll(-1))
                                                self.history[-1] = x.mean().detach()
                                                self.history_count.add_(1).clamp_(max=8)
    return sum(self.history)                    return self.history.sum().item()

The newest item is the last one, or the first one where items are added at the beginning. How many there are is counted beside them,
where the window does not begin full.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeWrite, ContainerWrite
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Sequence, Tensor, TensorScalar, Unknown, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Function, Replacement, replaced
from exportlens.rewriting.state.own_attributes import module_of, uses_of
from exportlens.rewriting.state.plain_objects import module_first
from exportlens.rewriting.state.registrations import refuse_before_module
from exportlens.rewriting.state.window_bounds import Addition, Cut, added, cut, spelled_bound
from exportlens.rewriting.state.window_by_reads import cut_to_reads
from exportlens.rewriting.state.window_names import under_its_name
from exportlens.rewriting.state.window_reads import WindowReads

_NO_BOUND = (
    "how many of them are kept, and what stands there before the first call, is for you to say: keep them in "
    "a buffer of fixed size, written in place, or hand them in and return them"
)
_JOINING = frozenset({"torch.stack", "torch.cat", "torch.concat"})
_FLOATS = frozenset({"torch.float", "torch.float32", "torch.float64", "torch.double"})
# What makes tensors of floats, where no dtype is given.
_MAKING_FLOATS = frozenset(f"torch.{name}" for name in ("zeros", "ones", "rand", "randn", "eye", "linspace"))
_DTYPES = {"float": "float64", "int": "int64"}


def window_in_buffer(place: AttributeWrite | ContainerWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that keeps the last items in a buffer, and reads them there."""
    try:
        _, draft, cls, base = module_of(place, context)
        message = f"Keep the last items in the buffer `{place.attr}`"
        named = under_its_name(draft, cls, place.attr)
        bounded = cut_to_reads(draft, cls, place.attr) if named is None else None
        changed = named or bounded
        if changed is not None:
            if base:
                return module_first(draft, cls, base)
            draft.source = changed
            cls = next(
                each for each in changed.tree.body if isinstance(each, ast.ClassDef) and each.name == cls.name
            )
        swaps = _Window(draft, cls, place).swaps()
        if changed is not None:
            return draft.fix(message, replaced(changed.text, swaps), Applicability.UNSAFE)
        return base.joined(draft.replace(message, [*base, *swaps], Applicability.UNSAFE))
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


@dataclass(frozen=True)
class _Begin:
    """The statement of the constructor that makes the list or deque, what `maxlen` bounds it, and what it begins with: the items one by
    one (`given`), or as many of `item` as `times` says."""

    statement: ast.Assign | ast.AnnAssign
    maxlen: ast.expr | None
    given: ast.expr | None


class _Window:
    """One attribute: where the class makes it, adds to it, cuts and reads it."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, place: AttributeWrite | ContainerWrite) -> None:
        self.draft, self.source, self.cls, self.attr = draft, draft.source, cls, place.attr
        self.path = f"self.{place.attr}"
        self.taken = {each.attr for each in ast.walk(cls) if isinstance(each, ast.Attribute)}
        self.taken |= {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
        value = place.value
        if isinstance(place, AttributeWrite) and isinstance(value, Sequence):
            value = ([*(value.items or ())][-1:] or [value.element or value])[0]
        self.value: Value = value
        # The buffer that counts the items, where the window does not begin full.
        self.count = ""

    def swaps(self) -> list[Replacement]:
        constructor, begin = self._begin()
        uses = uses_of(self.draft, self.cls, self.attr)
        statements = {id(each): each for each in map(self.source.enclosing_statement, uses)}
        additions = [one for each in statements.values() if (one := added(each, self.path)) is not None]
        if len(additions) != 1:
            raise Refused(f"`{self.path}` gets its items in several places, or in a way that is not followed")
        addition = additions[0]
        cutting = self._cutting(addition)
        bounds = [each for each in (addition.cut, cutting and cutting[1]) if each is not None]
        if not bounds and begin.maxlen is None:
            raise Refused(_NO_BOUND)
        if len(bounds) + (begin.maxlen is not None) > 1:
            raise Refused(f"`{self.path}` is bounded in two ways")
        size = self._size(constructor, begin, bounds[0] if bounds else None)
        full = begin.given is not None
        kind = self._kind(begin)
        if kind == "tensor" and not full and not self._is_single():
            raise Refused(
                f"which shape the tensors in `{self.path}` have is only known when the model is called: begin with as many "
                "tensors of that shape as shall be kept"
            )
        if kind == "tensor" and full and not self._is_joined():
            raise Refused(
                f"whether what is added to `{self.path}` has the shape of what it begins with is only known when the model is called"
            )
        if kind == "tensor" and not self._is_joined(frozenset({"torch.stack"})) and _is_cut(addition.value):
            text = ast.unparse(addition.value)
            raise Refused(f"`{text}` may have other sizes than what `{self.path}` begins with")
        swaps = [self.source.swap(begin.statement, self._registered(begin, size, kind))]
        done = {begin.statement, addition.statement}
        if cutting is not None:
            taken = self.source.without(cutting[0])
            if taken is None or not self.source.begins_line(addition.statement):
                raise Refused(f"`{ast.unparse(cutting[0])}` shares its line with other statements")
            swaps.append(taken)
            done |= {each for each in ast.walk(cutting[0]) if isinstance(each, ast.stmt)}
        swaps.append(self._written(addition, size, kind, full))
        others = [each for each in uses if self.source.enclosing_statement(each) not in done]
        reads = WindowReads(self.draft, self.cls, self.attr, addition, self.count, kind)
        resets = [each for each in others if self._is_reset(each, begin)]
        for each in resets:
            swaps.append(self._reset(self.source.enclosing_statement(each), begin, full))
        return [*swaps, *reads.swaps([each for each in others if each not in resets])]

    def _begin(self) -> tuple[Function, _Begin]:
        found = [
            (method, each)
            for method in self.cls.body
            if isinstance(method, ast.FunctionDef) and method.name == "__init__"
            for each in method.body
            if isinstance(each, (ast.Assign, ast.AnnAssign))
            and self.path in map(dotted, each.targets if isinstance(each, ast.Assign) else [each.target])
        ]
        if len(found) != 1 or not self.source.begins_line(found[0][1]):
            raise Refused(f"`{self.path}` is not made once, on a line of its own in `__init__`")
        constructor, statement = found[0]
        if isinstance(statement, ast.Assign) and len(statement.targets) != 1:
            raise Refused(f"`{self.path}` is set together with other targets")
        refuse_before_module(self.source, statement)
        value = statement.value
        assert value is not None
        if isinstance(value, ast.Call) and self.draft.qualified(value.func) == "collections.deque":
            named = {each.arg: each.value for each in value.keywords}
            maxlen = named.pop("maxlen", value.args[1] if len(value.args) == 2 else None)
            given = named.pop("iterable", value.args[0] if value.args else None)
            if named or len(value.args) > 2:
                raise Refused(f"what `{self.path}` holds at first is not written out")
            if isinstance(maxlen, ast.Constant) and maxlen.value is None:
                maxlen = None
            return constructor, _Begin(statement, maxlen, None if _is_empty(given) else given)
        if isinstance(value, (ast.List, ast.ListComp, ast.BinOp)) or _is_empty(value):
            return constructor, _Begin(statement, None, None if _is_empty(value) else value)
        raise Refused(f"what `{self.path}` holds at first is not written out")

    def _cutting(self, addition: Addition) -> tuple[ast.stmt, Cut] | None:
        """The statement right behind or before the one that adds an item, which takes others out."""
        block, index = self.source.block_of(addition.statement)
        for at, behind in ((index + 1, True), (index - 1, False)):
            found = cut(block[at], self.path, behind) if 0 <= at < len(block) else None
            if found is not None:
                if found.at_end != addition.at_begin:
                    raise Refused(f"`{ast.unparse(block[at])}` takes out the newest item")
                return block[at], found
        return None

    def _size(self, constructor: Function, begin: _Begin, cutting: Cut | None) -> str:
        """How many slots there are, as the constructor writes it: "" where the items that it begins with tell."""
        bound = begin.maxlen if cutting is None else cutting.bound
        if bound is None:
            # One comes and one goes: as many as at first.
            if begin.given is None or not self._is_list(begin.given):
                raise Refused(f"how many items `{self.path}` holds at first is not written out in `__init__`")
            return ""
        size = spelled_bound(self.draft, self.cls, constructor, bound)
        more = cutting.more if cutting is not None else 0
        if more:
            size = str(int(size) + more) if size.isdigit() else f"{size} {'+' if more > 0 else '-'} 1"
        if begin.given is not None and self._count(constructor, begin.given) != size:
            raise Refused(f"`{self.path}` does not begin with as many items as it may hold")
        return size

    def _is_list(self, given: ast.expr) -> bool:
        many = given.left if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult) else given
        return isinstance(many, (ast.List, ast.ListComp)) and not any(
            isinstance(each, ast.Starred) for each in ast.walk(many)
        )

    def _count(self, constructor: Function, given: ast.expr) -> str | None:
        """How many items `given` has, as the constructor may write it."""
        if isinstance(given, (ast.List, ast.Tuple)):
            starred = any(isinstance(each, ast.Starred) for each in given.elts)
            return None if starred else str(len(given.elts))
        times: ast.expr | None = None
        if isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mult):
            sides = (
                (given.left, given.right)
                if isinstance(given.left, (ast.List, ast.Tuple))
                else (given.right, given.left)
            )
            one = isinstance(sides[0], (ast.List, ast.Tuple)) and len(sides[0].elts) == 1
            times = sides[1] if one and not isinstance(sides[0].elts[0], ast.Starred) else None  # type: ignore[attr-defined]
        elif isinstance(given, (ast.ListComp, ast.GeneratorExp)):
            over = given.generators
            plain = len(over) == 1 and not over[0].ifs and isinstance(over[0].iter, ast.Call)
            call = over[0].iter
            if (
                plain
                and isinstance(call, ast.Call)
                and ast.unparse(call.func) == "range"
                and len(call.args) == 1
            ):
                times = call.args[0]
        return None if times is None else spelled_bound(self.draft, self.cls, constructor, times)

    def _kind(self, begin: _Begin) -> str:
        """Whether "tensor"s are kept or numbers: "float", "int", or "number" of an unknown type."""
        kept = list(options(self.value))
        if kept and all(isinstance(each, TensorScalar) for each in kept):
            types = {each.type for each in kept if isinstance(each, TensorScalar)}
            whole = int if types == {"int"} else float
            if types <= {"float", "int", ""} and (begin.given is None or _are_numbers(begin.given, whole)):
                return types.pop() or "number" if len(types) == 1 else "number"
        # What is joined with tensors is one.
        known = (Tensor, Unknown) if self._is_joined() else (Tensor,)
        if kept and all(isinstance(each, known) for each in kept):
            families = {dtype_family(each.dtype) for each in kept if isinstance(each, Tensor)}
            if families <= {"float", None} and (
                begin.given is None or self._begins_with_tensors(begin.given)
            ):
                return "tensor"
        raise Refused(
            f"what is kept in `{self.path}`, and stands there at first, is not known to be floats, ints, or tensors of floats"
        )

    def _begins_with_tensors(self, given: ast.expr) -> bool:
        """Whether what the constructor makes certainly is tensors of floats."""
        made = _items(given)
        items = made.elts if isinstance(made, (ast.List, ast.Tuple)) else [made]
        return bool(items) and all(map(self._is_tensor_of_floats, items))

    def _is_tensor_of_floats(self, made: ast.expr) -> bool:
        name = self.draft.qualified(made.func) if isinstance(made, ast.Call) else ""
        if not isinstance(made, ast.Call) or not name.startswith("torch."):
            return False
        given = next((each.value for each in made.keywords if each.arg == "dtype"), None)
        if given is not None:
            return self.draft.qualified(given) in _FLOATS
        if name in ("torch.tensor", "torch.full"):
            parts = made.args[:1] if name == "torch.tensor" else made.args[1:]
            return any(
                isinstance(each, ast.Constant) and type(each.value) is float
                for part in parts
                for each in ast.walk(part)
            )
        return name in _MAKING_FLOATS

    def _is_joined(self, by: frozenset[str] = _JOINING) -> bool:
        """Whether all that is kept is stacked, or put one behind the other: what is kept has one shape then."""
        return any(
            isinstance(each, ast.Call)
            and self.draft.qualified(each.func) in by
            and bool(each.args)
            and any(dotted(one) == self.path for one in ast.walk(each.args[0]))
            for each in ast.walk(self.cls)
        )

    def _is_single(self) -> bool:
        """Whether the tensors that are kept have no dimensions."""
        return all(isinstance(each, Tensor) and each.rank == 0 for each in options(self.value))

    def _registered(self, begin: _Begin, size: str, kind: str) -> str:
        torch = self.draft.torch
        dtype = "" if kind == "tensor" else f", dtype={torch}.{_DTYPES.get(kind, 'float64')}"
        if begin.given is None:
            made = f"{torch}.zeros({size}{dtype})"
        else:
            items = self.source.of(begin.given)
            listed = (
                items if isinstance(begin.given, (ast.List, ast.ListComp, ast.BinOp)) else f"list({items})"
            )
            made = f"{torch}.stack({listed})" if kind == "tensor" else f"{torch}.tensor({listed}{dtype})"
        lines = [f'self.register_buffer("{self.attr}", {made}, persistent=False)']
        if begin.given is None:
            self.count = fresh(f"{self.attr}_count", self.taken)
            lines.append(f'self.register_buffer("{self.count}", {torch}.tensor(0), persistent=False)')
        return (self.source.newline + self.source.indent_of(begin.statement)).join(lines)

    def _written(self, addition: Addition, size: str, kind: str, full: bool) -> Replacement:
        value, torch = addition.value, self.draft.torch
        led = {
            each.attr
            for each in ast.walk(value)
            if isinstance(each, ast.Attribute) and dotted(each.value) == "self"
        }
        methods = {each.name: each for each in self.cls.body if isinstance(each, ast.FunctionDef)}
        if self.attr in led or led & set(methods):
            raise Refused(f"`{ast.unparse(value)}` may read `{self.path}` itself")
        if not self.source.begins_line(addition.statement):
            raise Refused(f"`{ast.unparse(addition.statement)}` shares its line with other statements")
        text = self.source.of(value)
        if kind == "tensor" and full:
            slot = f"{primary(text)}[None]"
            parts = f"{slot}, {self.path}[:-1]" if addition.at_begin else f"{self.path}[1:], {slot}"
            lines = [f"{self.path}.copy_({torch}.cat([{parts}]))"]
        else:
            read = value.func.value if _is_read_out(value) else None  # type: ignore[attr-defined]
            if read is not None:
                text = f"{primary(self.source.of(read))}.detach()"
            step, at = ("1", "0") if addition.at_begin else ("-1", "-1")
            lines = [f"{self.path}.copy_({self.path}.roll({step}))", f"{self.path}[{at}] = {text}"]
        if not full:
            most = size if size.isdigit() else f"{self.path}.shape[0]"
            lines.append(f"self.{self.count}.add_(1).clamp_(max={most})")
        indent = self.source.newline + self.source.indent_of(addition.statement)
        return self.source.swap(addition.statement, indent.join(lines))

    def _is_reset(self, use: ast.Attribute, begin: _Begin) -> bool:
        """Whether the statement makes the window as it was at first."""
        statement = self.source.enclosing_statement(use)
        if isinstance(statement, ast.Assign) and [dotted(each) for each in statement.targets] == [self.path]:
            assert begin.statement.value is not None
            return ast.dump(statement.value) == ast.dump(begin.statement.value)
        return (
            begin.given is None
            and isinstance(statement, ast.Expr)
            and ast.unparse(statement) == f"{self.path}.clear()"
        )

    def _reset(self, statement: ast.stmt, begin: _Begin, full: bool) -> Replacement:
        if full:
            raise Refused(f"`{ast.unparse(statement)}` makes the window anew")
        if not self.source.begins_line(statement):
            raise Refused(f"`{ast.unparse(statement)}` shares its line with other statements")
        indent = self.source.newline + self.source.indent_of(statement)
        return self.source.swap(statement, f"{self.path}.zero_(){indent}self.{self.count}.zero_()")


def _items(given: ast.expr) -> ast.expr:
    """What is written out of the items that a list begins with: `[x] * 3` -> `[x]`, `[x for _ in range(3)]` -> `x`."""
    if isinstance(given, ast.BinOp):
        return given.left if isinstance(given.left, (ast.List, ast.Tuple)) else given.right
    return given.elt if isinstance(given, (ast.ListComp, ast.GeneratorExp)) else given


def _are_numbers(given: ast.expr, kind: type) -> bool:
    """Whether the items that a list begins with are written out, as numbers of the type `kind`."""
    made = _items(given)
    items = made.elts if isinstance(made, (ast.List, ast.Tuple)) else [made]
    plain = [each.operand if isinstance(each, ast.UnaryOp) else each for each in items]
    return bool(plain) and all(isinstance(each, ast.Constant) and type(each.value) is kind for each in plain)


def _is_cut(value: ast.expr) -> bool:
    """Whether a part of a tensor is taken, of a size that hangs on the index."""
    parts = [each.slice for each in ast.walk(value) if isinstance(each, ast.Subscript)]
    return any(
        not isinstance(each, (ast.Constant, ast.Tuple, ast.Load)) for part in parts for each in ast.walk(part)
    )


def _is_empty(node: ast.expr | None) -> bool:
    return node is None or ast.unparse(node) in ("[]", "list()", "()", "tuple()")


def _is_read_out(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "item"
        and not node.args
    )
