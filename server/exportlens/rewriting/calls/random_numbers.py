"""Python's and NumPy's random numbers become torch's: other numbers, drawn anew on each run of the
program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.arrays.array_flow import ArrayWay
from exportlens.rewriting.calls.global_draws import drawn_globally, refuse_seeded_outside
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.parsing import parse_python

# What takes the sizes of an array one by one.
_OF_SIZES = frozenset({"numpy.random.rand", "numpy.random.randn"})
# How many names a number is followed through.
_MOST_NAMES = 4


def torch_random(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`random.random()` -> `torch.rand(())` and its kin; unsafe, because the numbers differ. Behind a seed they are the same in each
    call, and stay so."""
    seeded = drawn_globally(place, context)
    if seeded is not None:
        return seeded
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call):
            raise Refused("not a call")
        refuse_seeded_outside(draft, node, place.name)
        spread = place.name in _OF_SIZES and len(node.args) == 1
        if (any(isinstance(each, ast.Starred) for each in node.args) and not spread) or any(
            key.arg is None for key in node.keywords
        ):
            raise Refused("the arguments are unpacked from elsewhere")
        text = _translated(draft, place.name, node)
        if text is None:
            raise Refused(f"`{place.name}` has no counterpart in torch")
        if _is_array(place.name, text):
            return draft.replace("Draw with torch", _Drawn(draft, node, text).swaps())
        if any(_is_functional(draft, each) for each in _calls_given(draft.source, node)):
            raise Refused(
                "a function of torch.nn.functional is given the number, and takes no tensor in its place"
            )
        target: ast.expr = node
        parent = draft.source.parents.get(node)
        if (
            (
                isinstance(parent, ast.Call)
                and parent.func is not node
                and draft.source.of(parent.func).endswith((".from_numpy", ".tensor", ".as_tensor"))
            )
            and len(parent.args) == 1
            and not parent.keywords
        ):
            target = parent
        if ".randint(" in text and text.endswith(", ())") and not isinstance(parent, ast.Compare):
            # An int, as it was, may be where a slice begins, or a size.
            text += ".item()"
        elif any(draft.source.of(each.func) == "round" for each in _calls_given(draft.source, node)):
            # Tensors are not rounded by Python's function.
            text += ".item()"
        return draft.replace("Draw with torch", [draft.source.swap(target, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _calls_given(source: Source, node: ast.expr, depth: int = 0) -> Iterator[ast.Call]:
    """The calls that are given the number `node`, or what is computed from it, as it stands or by a name of its own."""
    parent = source.parents[node]
    while isinstance(parent, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.keyword)):
        node, parent = parent, source.parents[parent]  # type: ignore[assignment]
    if isinstance(parent, ast.Call) and parent.func is not node:
        yield parent
    function = source.enclosing_function(node)
    if isinstance(parent, ast.Assign) and function is not None and depth < _MOST_NAMES:
        names = {each.id for each in parent.targets if isinstance(each, ast.Name)}
        for each in ast.walk(function):
            if isinstance(each, ast.Name) and each.id in names and isinstance(each.ctx, ast.Load):
                yield from _calls_given(source, each, depth + 1)


def _is_functional(draft: Draft, call: ast.Call) -> bool:
    return draft.qualified(call.func).startswith("torch.nn.functional.")


def _is_array(name: str, text: str) -> bool:
    """Whether NumPy's `name`, which `text` draws with torch, draws an array."""
    word = name.rpartition(".")[2]
    whole = word in ("randint", "integers") and not text.endswith(", ())")
    return name.startswith("numpy.") and (whole or word in ("permutation", "choice") or "float64" in text)


class _Drawn(ArrayWay):
    """Arrays that NumPy draws in one function, followed to where they are made tensors or meet some."""

    def __init__(self, draft: Draft, first: ast.Call, text: str) -> None:
        drawn = {first: text}
        function = draft.source.enclosing_function(first)
        for each in ast.walk(function) if function is not None else ():
            name = draft.qualified(each.func) if isinstance(each, ast.Call) else ""
            if name.startswith("numpy.random.") and isinstance(each, ast.Call) and each is not first:
                plain = all(key.arg for key in each.keywords) and not any(
                    isinstance(one, ast.Starred) for one in each.args
                )
                other = _translated(draft, name, each) if plain else None
                if other is not None and _is_array(name, other):
                    drawn[each] = other
        super().__init__(draft, list(drawn), draft.kinds({}))
        self.made.update({each: self.source.swap(each, given) for each, given in drawn.items()})

    def _outwards(self, node: ast.expr) -> ast.expr | None:
        parent = self.source.parents.get(node)
        if isinstance(parent, ast.BinOp):
            other = parent.left if parent.right is node else parent.right
            # A tensor and an array make a tensor.
            return None if self._is_tensor(other) else parent
        if isinstance(parent, ast.AugAssign) and parent.value is node and self._is_tensor(parent.target):
            return None
        return super()._outwards(node)

    def _indexed(self, index: ast.expr, node: ast.expr) -> None:
        """A tensor picks from what an array picks from."""

    def _is_tensor(self, node: ast.expr) -> bool:
        function = self.source.enclosing_function(node)
        if function is None:
            return False
        statement = self.source.enclosing_statement(node)
        return kinds_before(function, statement, self.draft.kinds({})).of(node).what == "tensor"


def _translated(draft: Draft, name: str, node: ast.Call) -> str | None:
    torch = draft.torch
    texts = [draft.source.of(each) for each in node.args]
    named = {key.arg or "": draft.source.of(key.value) for key in node.keywords}
    numpy = name.startswith("numpy.")
    word = name.rpartition(".")[2]
    if word in ("random", "random_sample", "rand", "sample") and name != "random.sample":
        size = named.get("size") or (
            f"({', '.join(texts)},)" if word == "rand" and texts else texts[0] if texts else None
        )
        return f"{torch}.rand({size or '()'}{_double(torch, numpy and size is not None)})"
    if word in ("randn", "standard_normal"):
        size = named.get("size") or (
            f"({', '.join(texts)},)" if word == "randn" and texts else texts[0] if texts else None
        )
        return f"{torch}.randn({size or '()'}{_double(torch, numpy and size is not None)})"
    if word == "uniform":
        low, high, size = _arguments(
            texts, named, ("low", "high", "size") if numpy else ("a", "b", ""), ("0.0", "1.0", "()")
        )
        draw = f"{torch}.rand({size}{_double(torch, size != '()')})"
        if (low, high) == ("0.0", "1.0"):
            return draw
        ends = _number(low), _number(high)
        if ends == (0, 1):
            return draw
        low = _term(low)
        width = f"({_term(high)} - {low})"
        if ends[0] is not None and ends[1] is not None:
            width = repr(ends[1] - ends[0])
        elif ends[0] == 0:
            width = _term(high)
        return f"({width} * {draw})" if ends[0] == 0 else f"({low} + {width} * {draw})"
    if word in ("normal", "gauss", "normalvariate"):
        mean, scale, size = _arguments(
            texts, named, ("loc", "scale", "size") if numpy else ("mu", "sigma", ""), ("0.0", "1.0", "()")
        )
        draw = f"{torch}.randn({size}{_double(torch, size != '()')})"
        return f"({_term(mean)} + {_term(scale)} * {draw})"
    if word == "randint" and not numpy and len(texts) == 2:
        return f"{torch}.randint({texts[0]}, {_next(draft, node.args[1])}, ())"
    if word in ("randint", "randrange", "integers"):
        if len(texts) == 1 and "high" not in named:
            return f"{torch}.randint(0, {texts[0]}, {named.get('size', '()')})"
        low, high, size = _arguments(texts, named, ("low", "high", "size"), ("0", "", "()"))
        return f"{torch}.randint({low}, {high}, {size})" if high else None
    if word in ("beta", "betavariate"):
        first, second, size = _arguments(
            texts, named, ("a", "b", "size") if numpy else ("alpha", "beta", ""), ("", "", "()")
        )
        made = f"{torch}.distributions.Beta({first}, {second}, validate_args=False)"
        return f"{made}.sample()" if first and second and size == "()" else None
    if word == "permutation" and len(texts) == 1:
        return f"{torch}.randperm({texts[0]})"
    if word == "choice" and numpy and len(texts) == 1 + ("size" not in named) and _is_size(node.args[0]):
        size = named.get("size") or texts[1]
        if set(named) <= {"size", "replace"} and named.get("replace", "True") == "True":
            return f"{torch}.randint(0, {texts[0]}, {size if size.startswith('(') else f'({size},)'})"
        # As many as are asked for of all of them, in any order.
        if set(named) <= {"size", "replace"} and named["replace"] == "False" and not size.startswith("("):
            return f"{torch}.randperm({texts[0]})[:{size}]"
    return None


def _is_size(node: ast.expr) -> bool:
    """Whether `node` is certainly a whole number, and no array of what is chosen from: a literal, or a size."""
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "len" or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "size" and len(node.args) == 1
        )
    return isinstance(node, ast.Constant) and type(node.value) is int


def _next(draft: Draft, node: ast.expr) -> str:
    """One more than `node`: the bound that torch leaves out where Python takes it in."""
    one_less = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    if one_less and isinstance(node.right, ast.Constant) and node.right.value == 1:  # type: ignore[attr-defined]
        return draft.source.of(node.left)  # type: ignore[attr-defined]
    return f"{_term(draft.source.of(node))} + 1"


def _number(text: str) -> int | float | None:
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return None
    return value if isinstance(value, (int, float)) else None


def _term(text: str) -> str:
    """`text` so that it can be computed with."""
    return text if isinstance(parse_python(f"({text})", mode="eval").body, ast.Constant) else primary(text)


def _arguments(
    texts: list[str], named: dict[str, str], names: tuple[str, ...], defaults: tuple[str, ...]
) -> list[str]:
    return [
        texts[index] if index < len(texts) else named.get(name, default)
        for index, (name, default) in enumerate(zip(names, defaults, strict=True))
    ]


def _double(torch: str, wanted: bool) -> str:
    """NumPy draws doubles."""
    return f", dtype={torch}.float64" if wanted else ""
