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
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import bound, dotted
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.memory.effects import kinds_before

REFUSED = (
    "the generator has a seed of its own: draw from a `torch.Generator` outside, and pass the numbers in"
)
_MAKERS = ("random.Random", "numpy.random.RandomState", "numpy.random.default_rng")
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
_TO_PYTHON = frozenset({"int", "float", "bool"})
_TO_TORCH = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor"})
# Around these an expression may be evaluated any number of times, or never.
_SOMETIMES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp, ast.BoolOp, ast.NamedExpr)  # fmt: skip
_OF_NUMBERS = frozenset({"range", "len", "min", "max", "list", "tuple", "round", "abs"})
_OPEN = (
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.UnaryOp,
    ast.Slice,
    ast.Subscript,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


def drawn_by_python(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`rng = random.Random(self.seed)` and what is drawn from it, in a method under `torch.compiler.assume_constant_result`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call):
            raise Refused("not a call")
        return _Draws(draft, node).fix()
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


@dataclass
class _Drawn:
    """One thing that is drawn: `part` is what the method gives, as a tensor where it `becomes` one, and `others` are what changes
    where its name is read."""

    part: ast.expr
    is_tensor: bool = False
    becomes: bool = False
    others: list[Replacement] = field(default_factory=list)


class _Draws:
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
        self.begin = self._begin(node)
        self.name = ast.unparse(self.begin.targets[0])
        self.block, self.first = self.source.block_of(self.begin)
        self.kinds = kinds_before(function, self.begin, draft.kinds({}))
        self.params: list[str] = []

    def _begin(self, node: ast.Call) -> ast.Assign:
        """The statement that makes the generator, which is the only one that binds its name."""
        name = ""
        statement = self.source.enclosing_statement(node)
        if self.draft.qualified(node.func) in _MAKERS and isinstance(statement, ast.Assign):
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
            or self.draft.qualified(found.value.func) not in _MAKERS
            or self.source.enclosing_function(found) is not self.function
        ):
            raise Refused(REFUSED)
        return found

    def fix(self) -> Fix:
        source = self.source
        self._refuse_open(self.begin.value)
        reads = [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == self.name and isinstance(each.ctx, ast.Load)
        ]
        drawn = [self._drawn(each) for each in sorted(reads, key=source.start)]
        if not drawn:
            raise Refused("nothing is drawn from the generator")
        taken = self.draft.taken(source.tree)
        # Another generator may be taken care of in the same round: what is made for either has names of its own.
        names = [self._new(taken, f"{self.name}_drew") for _ in drawn]
        attributes = {each.attr for each in ast.walk(source.tree) if isinstance(each, ast.Attribute)}
        method = self._new({*taken, *attributes}, f"drawn_by_{self.name}_in_{self.function.name.strip('_')}")
        swaps = [self._method(method, drawn)]
        for name, each in zip(names, drawn, strict=True):
            swaps.append(source.swap(each.part, f"{name}.clone()" if each.is_tensor else name))
            swaps += each.others
        swaps.append(source.swap(self.begin, f"{', '.join(names)} = self.{method}({', '.join(self.params)})"))
        return self.draft.replace("Draw in a method that Python runs while tracing", swaps)

    def _method(self, name: str, drawn: list[_Drawn]) -> Replacement:
        """The method that makes the generator and draws, in front of the function."""
        source, torch = self.source, self.draft.torch
        indent = source.indent_of(self.function)
        inner = indent + source.indent_unit()
        given = [
            f"{torch}.from_numpy({source.of(each.part)})" if each.becomes else source.of(each.part)
            for each in drawn
        ]
        lines = [
            f"@{torch}.compiler.assume_constant_result",
            f"{indent}def {name}({', '.join(['self', *self.params])}):",
            f"{inner}{source.of(self.begin)}",
            f"{inner}return {', '.join(given)}",
            "",
            indent,
        ]
        start = source.start(self.function)
        return Replacement(start, start, source.newline.join(lines))

    def _drawn(self, read: ast.Name) -> _Drawn:
        """What is drawn where the generator is read, up to where it is a number, a list or a tensor."""
        source, parents = self.source, self.source.parents
        method, call = parents[read], parents[parents[read]]
        if not isinstance(method, ast.Attribute) or not isinstance(call, ast.Call) or call.func is not method:
            raise Refused(f"`{self.name}` is handed on, and what else draws from it is not followed")
        self._refuse_sometimes(call)
        maker = self.begin.value.func if isinstance(self.begin.value, ast.Call) else self.begin.value
        by_python = self.draft.qualified(maker) == "random.Random"
        if method.attr not in (_OF_PYTHON if by_python else _ARRAYS):
            raise Refused(
                f"what `{source.of(call)}` does to the generator, or to what it is given, is not known"
            )
        self._refuse_open(call)
        if by_python or self._is_number(method.attr, call):
            return _Drawn(call)
        return self._of_array(call, method.attr)

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

    def _of_array(self, node: ast.expr, method: str) -> _Drawn:
        """What the array `node`, which was drawn, becomes in the same expression, or under the name that it is given."""
        source, parents = self.source, self.source.parents
        while True:
            parent = parents[node]
            if isinstance(parent, ast.Subscript) and parent.value is node:
                self._refuse_open(parent.slice)
                node = parent
            elif isinstance(parent, ast.Attribute) and isinstance(parents[parent], ast.Call):
                call = parents[parent]
                assert isinstance(call, ast.Call)
                if call.func is not parent or parent.attr not in {*_OF_ARRAYS, "tolist", "item"}:
                    break
                self._refuse_open(call, besides=node)
                node = call
                if parent.attr in ("tolist", "item"):
                    return _Drawn(node)
            elif isinstance(parent, ast.Call) and parent.args[:1] == [node]:
                name = self.draft.qualified(parent.func)
                if name not in _TO_TORCH and not (name in _TO_PYTHON and len(parent.args) == 1):
                    break
                self._refuse_open(parent, besides=node)
                return _Drawn(parent, is_tensor=name in _TO_TORCH)
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

    def _named(self, statement: ast.Assign, name: str, method: str) -> _Drawn:
        """An array that has the name `name`, and is made a tensor, or picks from some, wherever that is read."""
        source, parents = self.source, self.source.parents
        found = _Drawn(statement.value, is_tensor=True, becomes=True)
        for each in ast.walk(self.function):
            if not isinstance(each, ast.Name) or each.id != name or each is statement.targets[0]:
                continue
            parent = parents[each]
            if not isinstance(each.ctx, ast.Load):
                raise Refused(f"`{name}` is bound several times")
            made = isinstance(parent, ast.Call) and self.draft.qualified(parent.func) in _TO_TORCH
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

    def _refuse_sometimes(self, call: ast.Call) -> None:
        """Raise Refused where it is not certain that `call` draws once, behind what is written in front of it."""
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
                if once and each in self.block[self.first + 1 :]:
                    return
                break
            inner = each
        raise Refused(f"`{self.source.of(call)}` draws under a condition, or several times")

    def _refuse_open(self, node: ast.AST, besides: ast.AST | None = None) -> None:
        """Raise Refused where `node`, but for the part `besides`, holds anything else than numbers that the constructor sets, and
        that local names have before the generator is made."""
        if node is besides:
            return
        if isinstance(node, (ast.Name, ast.Attribute)):
            self._refuse_open_name(node)
            return
        if isinstance(node, ast.Call):
            method = isinstance(node.func, ast.Attribute) and (
                node.func.value is besides or dotted(node.func.value) == self.name
            )
            name = self.draft.qualified(node.func)
            if not method and name not in {*_MAKERS, *_TO_TORCH, *_TO_PYTHON, *_OF_NUMBERS}:
                raise Refused(f"what `{self.source.of(node)}` gives is not known to be the same in each call")
            for each in (*node.args, *(key.value for key in node.keywords)):
                self._refuse_open(each, besides)
            return
        if not isinstance(node, _OPEN):
            raise Refused(f"`{self.source.of(node)}` is not known to be the same in each call")
        for child in ast.iter_child_nodes(node):
            self._refuse_open(child, besides)

    def _refuse_open_name(self, node: ast.Name | ast.Attribute) -> None:
        head, _, rest = (dotted(node) or "").partition(".")
        if head in self.draft.modules and head not in bound(self.function.body):
            return
        if head == "self" and rest and "." not in rest:
            if self._is_kept(rest):
                return
        elif head and not rest and self._is_given(head):
            self.params += [head] if head not in self.params else []
            return
        raise Refused(f"`{self.source.of(node)}` is not known to be a number that is the same in each call")

    def _is_given(self, name: str) -> bool:
        """Whether the local `name` certainly is one number from before the generator is made."""
        sets = [
            self.source.enclosing_statement(each)
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        ]
        if len(sets) != 1 or self.source.start(sets[0]) > self.source.start(self.begin):
            return False
        if self.kinds.of(ast.Name(name, ast.Load())).what in ("number", "static"):
            return True
        made = sets[0]
        if (
            not isinstance(made, ast.Assign)
            or not isinstance(made.targets[0], ast.Name)
            or made not in self.block
        ):
            return False
        params = list(self.params)
        self._refuse_open(made.value)
        self.params = params
        return True

    def _is_kept(self, attribute: str) -> bool:
        """Whether the constructor alone sets `self.attribute`, and to what is given to it or written there."""
        sets = [
            each
            for each in ast.walk(self.source.tree)
            if isinstance(each, ast.Attribute)
            and each.attr == attribute
            and not isinstance(each.ctx, ast.Load)
        ]
        if len(sets) != 1 or dotted(sets[0]) != f"self.{attribute}":
            return False
        function, statement = (
            self.source.enclosing_function(sets[0]),
            self.source.enclosing_statement(sets[0]),
        )
        if function is None or function.name != "__init__" or not isinstance(statement, ast.Assign):
            return False
        return function in self.cls.body and not any(
            isinstance(each, ast.Call) and self.draft.qualified(each.func) not in {*_TO_PYTHON, *_OF_NUMBERS}
            for each in ast.walk(statement.value)
        )

    @staticmethod
    def _new(taken: set[str], wanted: str) -> str:
        numbered = (wanted if number == 1 else f"{wanted}_{number}" for number in itertools.count(1))
        found = next(name for name in numbered if name not in taken)
        taken.add(found)
        return found
