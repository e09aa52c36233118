"""Numbers that a generator draws which each call makes anew, from one seed: they are the same in every call, so a method of their
own draws them, which Python runs while tracing.

Measured on torch 2.13: numbers, texts, lists and tensors that a method under `torch.compiler.assume_constant_result` gives are the
same in either mode, and arrays of NumPy are not. Strict tracing takes such a tensor for one of the model: written in place, it stays
written, and as an output it fails; a copy of it does neither.
"""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass, field

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.calls.same_numbers import MAKERS, TO_PYTHON, TO_TORCH, SameNumbers
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.memory.effects import kinds_before

REFUSED = (
    "the generator has a seed of its own: draw from a `torch.Generator` outside, and pass the numbers in"
)
_OF_PYTHON = frozenset(
    {"random", "uniform", "gauss", "normalvariate", "betavariate", "triangular", "expovariate", "randint", "randrange", "getrandbits",
     "sample", "choices", "choice"}
)  # fmt: skip
# What NumPy draws as one number of Python's, where it is given no more than so many numbers.
_NUMBERS = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample", "standard_normal"), 0),
    **dict.fromkeys(("exponential", "poisson"), 1),
    **dict.fromkeys(("uniform", "normal", "beta", "binomial", "randint"), 2),
}
_ARRAYS = frozenset({*_NUMBERS, "permutation", "integers", "choice"})
_OF_ARRAYS = frozenset({"astype", "reshape", "copy", "flatten", "ravel"})
# Around these an expression may be evaluated any number of times, or never.
_SOMETIMES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp, ast.NamedExpr)  # fmt: skip
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def drawn_by_python(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`rng = random.Random(self.seed)` and what is drawn from it, in a method under `torch.compiler.assume_constant_result`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call):
            raise Refused("not a call")
        return Draws(draft, node).fix()
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


@dataclass
class Drawn:
    """One thing that is drawn: `part` is what the method gives, as a tensor where it `becomes` one, and `others` are what changes
    where its name is read. Where `part` is the statement that shuffles, `named` is the name of what it shuffles, and `made` makes
    that. Each round of `loop` draws anew."""

    part: ast.expr | ast.stmt
    is_tensor: bool = False
    becomes: bool = False
    others: list[Replacement] = field(default_factory=list)
    named: str = ""
    made: ast.Assign | None = None
    loop: ast.For | None = None

    def given(self, torch: str, text: str) -> str:
        """What the method gives, which draws `text`."""
        return f"{torch}.from_numpy({text})" if self.becomes else text


class Draws(SameNumbers):
    """All that one function draws from one generator."""

    def __init__(self, draft: Draft, node: ast.Call) -> None:
        self.draft, self.source = draft, draft.source
        function = self.source.enclosing_function(node)
        cls = next((each for each in self.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        if (
            not isinstance(function, ast.FunctionDef)
            or cls is None
            or function not in cls.body
            or not function.args.args
            or function.args.args[0].arg != "self"
        ):
            raise Refused(REFUSED)
        self.function, self.cls = function, cls
        self.begin, self.maker, self.name = self._begin(node)
        self.by_python = self.draft.qualified(self.maker.func).startswith("random.")
        self.block, self.first = self.source.block_of(self.begin)
        self.kinds = kinds_before(function, self.begin, draft.kinds({}))
        self.params, self.sizes, self.copied = {}, [], []

    def is_draw(self, node: ast.AST) -> bool:
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and dotted(node.func.value) == self.name
        )

    def _begin(self, node: ast.Call) -> tuple[ast.stmt, ast.Call, str]:
        """The statement that makes the generator, which is the only one that binds its name, the call in it and the name."""
        name = ""
        statement = self.source.enclosing_statement(node)
        if self.draft.qualified(node.func) in MAKERS and isinstance(statement, ast.Assign):
            name = ast.unparse(statement.targets[0])
        elif isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
            name = node.func.value.id
        bindings = [
            self.source.enclosing_statement(each)
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        ]
        given = {each.arg for each in ast.walk(self.function.args) if isinstance(each, ast.arg)}
        found = bindings[0] if len(bindings) == 1 and name not in given else None
        if (
            not isinstance(found, ast.Assign)
            or len(found.targets) != 1
            or not isinstance(found.targets[0], ast.Name)
            or not isinstance(found.value, ast.Call)
            or self.draft.qualified(found.value.func) not in MAKERS
            or self.source.enclosing_function(found) is not self.function
        ):
            raise Refused(REFUSED)
        return found, found.value, name

    def fix(self) -> Fix:
        source = self.source
        self.refuse_maker()
        drawn = self._all_drawn()
        if not drawn:
            raise Refused("nothing is drawn from the generator")
        taken = self.draft.taken(source.tree)
        # Another generator may be taken care of in the same round: what is made for either has names of its own.
        names = [self._new(taken, f"{self.name}_drew") for _ in drawn]
        attributes = {each.attr for each in ast.walk(source.tree) if isinstance(each, ast.Attribute)}
        method = self._new({*taken, *attributes}, f"drawn_by_{self.name}_in_{self.function.name.strip('_')}")
        looped = dict.fromkeys(each.loop for each in drawn if each.loop is not None)
        loops = {each: self._new(taken, f"{self.name}_rounds") for each in looped}
        given, made = self._method(method, drawn, names, loops)
        swaps = [made]
        for name, each in zip(names, drawn, strict=True):
            text = f"{name}.clone()" if each.is_tensor else name
            if isinstance(each.part, ast.stmt):
                swaps.append(source.swap(each.part, f"{each.named} = {text}"))
            else:
                swaps.append(source.swap(each.part, text))
            swaps += each.others
        for loop, rows in loops.items():
            row = ", ".join(name for name, each in zip(names, drawn, strict=True) if each.loop is loop)
            swaps.append(source.swap(loop.target, f"{source.of(loop.target)}, {_tuple(row)}"))
            start, end = source.start(loop.iter), source.end(loop.iter)
            swaps += [Replacement(start, start, "zip("), Replacement(end, end, f", {rows})")]
        arguments = ", ".join(self.params.values())
        swaps.append(source.swap(self.begin, f"{', '.join(given)} = self.{method}({arguments})"))
        return self.draft.replace("Draw in a method that Python runs while tracing", swaps)

    def refuse_maker(self) -> None:
        """Raise Refused where the seed is not known to be the same in each call."""
        self.refuse_open(self.maker)

    def _all_drawn(self) -> list[Drawn]:
        """What is drawn, in order; a draw for another is a part of that."""
        drawn: list[Drawn] = []
        for call in self.calls():
            if not any(any(each is call for each in ast.walk(other.part)) for other in drawn):
                drawn.append(self._drawn(call))
        return drawn

    def calls(self) -> list[ast.Call]:
        """The calls that draw, in order."""
        found: list[ast.Call] = []
        for read in ast.walk(self.function):
            if isinstance(read, ast.Name) and read.id == self.name and isinstance(read.ctx, ast.Load):
                call = self.source.parents[self.source.parents[read]]
                if not isinstance(call, ast.Call) or not self.is_draw(call):
                    raise Refused(f"`{self.name}` is handed on, and what else draws from it is not followed")
                found.append(call)
        return sorted(found, key=self.source.start)

    def _method(
        self, name: str, drawn: list[Drawn], names: list[str], loops: dict[ast.For, str]
    ) -> tuple[list[str], Replacement]:
        """The method that makes the generator and draws, in front of the function, and the names for what it gives."""
        source, torch = self.source, self.draft.torch
        indent, unit = source.indent_of(self.function), source.indent_unit()
        inner = indent + unit
        steps: list[tuple[int, Drawn | ast.Assign | ast.For]] = [
            *((source.start(each.part), each) for each in drawn if each.loop is None),
            *((source.end(each), each) for each in self.copied),
            *((source.start(each.body[0]), each) for each in loops),
        ]
        steps.sort(key=lambda each: each[0])
        # What is drawn in front of another statement has a name there.
        last = max((at for at, each in steps if isinstance(each, ast.stmt) or each.named), default=-1)
        lines, swaps = [source.of(self.begin, self.sizes)], list(self.sizes)
        given: dict[str, str] = {}
        for at, each in steps:
            if isinstance(each, ast.For):
                row = ", ".join(
                    one.given(torch, source.of(one.part, swaps)) for one in drawn if one.loop is each
                )
                several = sum(one.loop is each for one in drawn) > 1
                given[loops[each]] = loops[each]
                lines += [
                    f"{loops[each]} = []",
                    f"for {source.of(each.target)} in {source.of(each.iter, swaps)}:",
                    f"{unit}{loops[each]}.append({f'({row})' if several else row})",
                ]
                continue
            if isinstance(each, ast.Assign):
                lines.append(source.of(each, swaps))
                continue
            new = next(new for new, one in zip(names, drawn, strict=True) if one is each)
            text = source.of(each.part, swaps)
            if each.named:
                lines += [source.of(each.made, swaps)] if each.made is not None else []
                lines.append(text)
                text = each.named
            elif at < last:
                lines.append(f"{new} = {text}")
                swaps.append(source.swap(each.part, new))
                text = new
            given[new] = each.given(torch, text)
        body = [
            f"@{torch}.compiler.assume_constant_result",
            f"{indent}def {name}({', '.join(['self', *self.params])}):",
            *(inner + line for line in lines),
            f"{inner}return {', '.join(given.values())}",
            "",
            indent,
        ]
        start = source.start(self.function)
        return list(given), Replacement(start, start, source.newline.join(body))

    def _drawn(self, call: ast.Call) -> Drawn:
        """What `call` draws, up to where it is a number, a list or a tensor."""
        loop = self.loop_of(call)
        method = self.draft.qualified(call.func).rpartition(".")[2]
        if method == "shuffle" and loop is None:
            return self._shuffled(call)
        if method not in (_OF_PYTHON if self.by_python else _ARRAYS):
            raise Refused(
                f"what `{self.source.of(call)}` does to the generator, or to what it is given, is not known"
            )
        self.refuse_open(call)
        if self.by_python or self._is_number(method, call):
            return Drawn(call, loop=loop)
        drawn = self._of_array(call, method)
        drawn.loop = loop
        return drawn

    def _shuffled(self, call: ast.Call) -> Drawn:
        """A list of numbers that are the same in each call, which the generator shuffles once."""
        source, statement = self.source, self.source.parents[call]
        given = call.args[0] if len(call.args) == 1 and not call.keywords else None
        if not isinstance(given, ast.Name) or not isinstance(statement, ast.Expr):
            raise Refused(f"what `{source.of(call)}` shuffles is not known to be the same in each call")
        name = given.id
        found = [each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id == name]
        sets = [each for each in found if not isinstance(each.ctx, ast.Load)]
        made = source.enclosing_statement(sets[0]) if len(sets) == 1 else None
        if (
            not isinstance(made, ast.Assign)
            or made.targets != sets
            or made not in self.block
            or not isinstance(made.value, (ast.List, ast.ListComp, ast.Call))
        ):
            raise Refused(f"`{name}`, which is shuffled, is not known to be a list that is made here")
        arrays = self.draft.qualified(made.value.func) if isinstance(made.value, ast.Call) else ""
        if arrays not in ("", "list", "numpy.arange") or (self.by_python and arrays.startswith("numpy.")):
            raise Refused(f"`{name}`, which is shuffled, is not known to be a list that is made here")
        if any(self.is_draw(each) for each in ast.walk(made)):
            raise Refused(f"`{name}`, which is shuffled, is made of what is drawn")
        begins, ends = source.end(made), source.start(statement)
        reads = [each for each in found if each not in sets and each is not given]
        if any(source.start(each) < ends for each in reads) or begins > ends:
            raise Refused(f"`{name}` is read before it is shuffled, or shuffled several times")
        if any(self.is_draw(source.parents[each]) for each in reads):
            raise Refused(f"`{name}` is shuffled several times, or drawn from behind that")
        self.refuse_open(made.value)
        away = source.without(made)
        if away is None:
            raise Refused(f"`{source.of(made)}` shares its line with another statement")
        if not arrays.startswith("numpy."):
            return Drawn(statement, others=[away], named=name, made=made)
        array = self._named(made, name, "permutation", besides=given)
        return Drawn(statement, True, True, [*array.others, away], named=name, made=made)

    def _is_number(self, method: str, call: ast.Call) -> bool:
        """Whether NumPy draws one number of Python's."""
        given = [*call.args, *(each.value for each in call.keywords)]
        names = {each.arg for each in call.keywords}
        return (
            len(given) <= _NUMBERS.get(method, -1)
            and names <= {"loc", "scale", "low", "high", "lam", "a", "b", "n", "p"}
            and not any(isinstance(each, (ast.Tuple, ast.List)) for each in given)
            and all(isinstance(each, ast.Constant) for each in given)
        )

    def _of_array(self, node: ast.expr, method: str) -> Drawn:
        """What the array `node`, which was drawn, becomes in the same expression, or under the name that it is given."""
        source, parents = self.source, self.source.parents
        while True:
            parent = parents[node]
            if isinstance(parent, ast.Subscript) and parent.value is node:
                self.refuse_open(parent.slice)
                node = parent
            elif isinstance(parent, ast.Attribute) and isinstance(parents[parent], ast.Call):
                call = parents[parent]
                assert isinstance(call, ast.Call)
                if call.func is not parent or parent.attr not in {*_OF_ARRAYS, "tolist", "item"}:
                    break
                self.refuse_open(call, besides=node)
                node = call
                if parent.attr in ("tolist", "item"):
                    return Drawn(node)
            elif isinstance(parent, ast.Call) and parent.args[:1] == [node]:
                name = self.draft.qualified(parent.func)
                if name not in TO_TORCH and not (name in TO_PYTHON and len(parent.args) == 1):
                    break
                self.refuse_open(parent, besides=node)
                return Drawn(parent, is_tensor=name in TO_TORCH)
            else:
                break
        statement = parents[node]
        if (
            isinstance(statement, ast.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ast.Name)
        ):
            self._refuse_no_array(statement.value, method)
            return self._named(statement, statement.targets[0].id, method)
        raise Refused(f"`{source.of(node)}` is an array, and where it becomes a tensor is not known")

    def _refuse_no_array(self, node: ast.expr, method: str) -> None:
        """Raise Refused where `node` may be a number of NumPy's, or an array that torch does not take as it lies."""
        draws = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        sized = any(key.arg == "size" for each in draws for key in each.keywords)
        several = method == "permutation" or sized or (method in ("rand", "randn") and bool(draws[-1].args))
        parts = [each.slice for each in ast.walk(node) if isinstance(each, ast.Subscript)]
        if not several or any(not isinstance(each, ast.Slice) or each.step is not None for each in parts):
            raise Refused(f"`{self.source.of(node)}` is not known to be an array that torch takes as it is")

    def _named(self, statement: ast.Assign, name: str, method: str, besides: ast.Name | None = None) -> Drawn:
        """An array that has the name `name`, and is made a tensor, or picks from some, wherever that is read."""
        source, parents = self.source, self.source.parents
        found = Drawn(statement.value, is_tensor=True, becomes=True)
        for each in ast.walk(self.function):
            if not isinstance(each, ast.Name) or each.id != name or each in (statement.targets[0], besides):
                continue
            parent = parents[each]
            if not isinstance(each.ctx, ast.Load):
                raise Refused(f"`{name}` is bound several times")
            made = isinstance(parent, ast.Call) and self.draft.qualified(parent.func) in TO_TORCH
            if made and isinstance(parent, ast.Call) and parent.args == [each] and not parent.keywords:
                copies = self.draft.qualified(parent.func) == "torch.tensor"
                found.others.append(source.swap(parent, f"{name}.clone()" if copies else name))
            elif method != "permutation" or not self._picks(each):
                raise Refused(f"`{name}` is an array, and where it becomes a tensor is not known")
        return found

    def _picks(self, read: ast.Name) -> bool:
        """Whether an array of whole numbers picks from a tensor where it is read."""
        parent = self.source.parents[read]
        if isinstance(parent, ast.Tuple):
            parent = self.source.parents[parent]
        if not isinstance(parent, ast.Subscript) or any(each is read for each in ast.walk(parent.value)):
            return False
        statement = self.source.enclosing_statement(read)
        kinds = kinds_before(self.function, statement, self.draft.kinds({}))
        return kinds.of(parent.value).what == "tensor"

    def loop_of(self, call: ast.Call) -> ast.For | None:
        """The loop that makes `call` once in each round, if any does. Raises Refused where it is not certain that `call` draws once
        there, behind what is written in front of it."""
        inner: ast.AST = call
        for each in self.source.ancestors(call):
            if isinstance(each, _SOMETIMES) or (isinstance(each, ast.Compare) and len(each.ops) > 1):
                break
            if isinstance(each, ast.stmt):
                once = (
                    (isinstance(each, _PLAIN) and inner is each.value)
                    or (isinstance(each, ast.If) and inner is each.test)
                    or (isinstance(each, ast.For) and inner is each.iter)
                )
                if not once:
                    break
                if each in self.block[self.first + 1 :]:
                    return None
                loop = self.source.parents[each]
                if isinstance(loop, ast.For) and each in loop.body and loop in self.block[self.first + 1 :]:
                    self._refuse_rounds(loop)
                    return loop
                break
            inner = each
        raise Refused(f"`{self.source.of(call)}` draws under a condition, or several times")

    def _refuse_rounds(self, loop: ast.For) -> None:
        """Raise Refused where the rounds of `loop` are not known, or one may be left."""
        text = f"for {self.source.of(loop.target)} in {self.source.of(loop.iter)}"
        counts = isinstance(loop.iter, ast.Call) and self.draft.qualified(loop.iter.func) == "range"
        leaves = any(isinstance(each, (ast.Break, ast.Continue, ast.Return)) for each in ast.walk(loop))
        if not isinstance(loop.target, ast.Name) or not counts or leaves or loop.orelse:
            raise Refused(f"how many rounds of `{text}` draw is not known")
        self.refuse_open(loop.iter)

    @staticmethod
    def _new(taken: set[str], wanted: str) -> str:
        numbered = (wanted if number == 1 else f"{wanted}_{number}" for number in itertools.count(1))
        found = next(name for name in numbered if name not in taken)
        taken.add(found)
        return found


def _tuple(names: str) -> str:
    return f"({names})" if "," in names else names
