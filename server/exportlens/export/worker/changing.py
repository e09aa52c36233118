"""Other tensors in the place of guessed ones, by what torch said of those."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

SIDES = (28, 64, 224, 16, 48, 84, 96, 112, 128, 160, 227, 256, 299, 320, 416, 512, 572)
"""Sides of pictures that models are written for."""
LENGTHS = (16, 64, 128, 256, 1024, 4096, 16384)
"""Lengths of signals and of sequences to try."""
COUNT = 8
"""The size that a dimension gets which the guess did not have."""
LARGEST = 1 << 22
"""Elements of one input, at most: a guess is to cost nothing."""


@dataclass(frozen=True)
class Draw:
    """A tensor that an expression draws: `float`, `int` or `mask`, with its sizes."""

    kind: str
    sizes: tuple[int, ...]

    def node(self) -> ast.expr:
        """The expression that draws it."""
        sizes = ", ".join(map(str, self.sizes))
        whole = f"({sizes},)" if len(self.sizes) == 1 else f"({sizes})"
        text = {
            "float": f"torch.randn({sizes})",
            "int": f"torch.randint(0, 2, {whole})",
            "mask": f"torch.rand({sizes}) > 0.5",
        }[self.kind]
        return ast.parse(text, mode="eval").body

    @property
    def fixed(self) -> bool:
        """Whether a size is 1 that is no picture's number of channels."""
        return 1 in (self.sizes if len(self.sizes) < 4 else (self.sizes[0], *self.sizes[2:]))

    def sized(self, at: int, size: int) -> Draw:
        """The same with another size in one dimension."""
        return replace(self, sizes=(*self.sizes[:at], size, *self.sizes[at + 1 :]))


Draws = tuple[Draw, ...]
Change = Callable[[re.Match[str], Draws], Iterator[Draws]]


class Expression:
    """The text of inputs, positional and by keyword, with the tensors that it draws, in order."""

    def __init__(self, inputs: str, kwargs: str) -> None:
        self._text = f"[{inputs.strip()}, {kwargs.strip()}]"
        self.draws: Draws = tuple(draw for _, draw in self._found(ast.parse(self._text, mode="eval")))

    @staticmethod
    def _found(tree: ast.AST) -> list[tuple[ast.AST, Draw]]:
        found = []
        inside: set[int] = set()
        for node in ast.walk(tree):
            draw = _draw(node) if id(node) not in inside else None
            if draw is not None:
                inside |= {id(each) for each in ast.walk(node)}
                found.append((node, draw))
        return found

    def with_draws(self, draws: Draws) -> list[str]:
        """Both texts with these in the place of their own."""
        tree = ast.parse(self._text, mode="eval")
        places = {
            id(node): new.node()
            for (node, old), new in zip(self._found(tree), draws, strict=True)
            if old != new
        }

        class Replace(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> Any:
                return places.get(id(node)) or self.generic_visit(node)

        return [ast.unparse(each) for each in Replace().visit(tree).body.elts]


def _draw(node: ast.AST) -> Draw | None:
    """What `torch.randn(2, 8)`, `torch.randint(0, 9, (2, 8))`, `torch.full((2,), 8)` or `torch.rand(2) > 0.5` draws."""
    if isinstance(node, ast.Compare):
        inner = _draw(node.left)
        return replace(inner, kind="mask") if inner is not None else None
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        return None
    kind = {"randn": "float", "rand": "float", "randint": "int", "full": "int"}.get(node.func.attr)
    places: list[ast.expr] = list(node.args)
    if kind == "int":
        places = next((place.elts for place in node.args if isinstance(place, ast.Tuple)), [])
    sizes = [place.value for place in places if isinstance(place, ast.Constant)]
    if kind is None or not sizes or len(sizes) != len(places):
        return None
    return Draw(kind, tuple(size for size in sizes if isinstance(size, int)))


def is_of_inputs(said: str) -> bool:
    """Whether torch says that inputs do not fit, in words that are known here."""
    return any(pattern.search(said) for pattern, _ in _BY_MESSAGE)


def changes(said: str, draws: Draws) -> Iterator[Draws]:
    """Other tensors in the place of `draws`, the likeliest first, for what torch said of them."""
    for changed in _changes(said, draws):
        if changed != draws and all(_elements(draw) <= LARGEST and min(draw.sizes) > 0 for draw in changed):
            yield changed


def _elements(draw: Draw) -> int:
    count = 1
    for size in draw.sizes:
        count *= size
    return count


def _changes(said: str, draws: Draws) -> Iterator[Draws]:
    for pattern, change in _BY_MESSAGE:
        match = pattern.search(said)
        if match is not None:
            yield from change(match, draws)
            return
    if said.startswith(_OF_SHAPES):
        yield from _other_sizes(None, draws)
        yield from _other_ranks(None, draws)


def _each(draws: Draws, change: Callable[[Draw], Draw | None]) -> Iterator[Draws]:
    """All that can be changed at once, then each by itself: inputs of one kind are changed alike as a rule."""
    changed = [change(draw) for draw in draws]
    if sum(new is not None for new in changed) > 1:
        yield tuple(new or old for new, old in zip(changed, draws, strict=True))
    for index, new in enumerate(changed):
        if new is not None:
            yield (*draws[:index], new, *draws[index + 1 :])


def _last_size(got: int, wanted: int, draws: Draws) -> Iterator[Draws]:
    """The last size where it is the one that was got; then any that is."""
    yield from _each(draws, lambda d: d.sized(len(d.sizes) - 1, wanted) if d.sizes[-1] == got else None)
    for at in range(1, 4):
        yield from _each(draws, partial(_swapped, at, got, wanted))


def _swapped(at: int, got: int, wanted: int, draw: Draw) -> Draw | None:
    """The draw with the size that is wanted where it has the one that was got."""
    return draw.sized(at, wanted) if draw.sizes[at : at + 1] == (got,) else None


def _multiplied(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    got, wanted = int(match[1]), int(match[2])
    yield from _other_layout(draws)
    if any(len(draw.sizes) >= 4 for draw in draws):
        yield from _other_sizes(match, draws)
    yield from _last_size(got, wanted, draws)
    # flattened before: as much longer as is wanted
    if got and wanted % got == 0:
        yield from _each(
            draws, lambda d: d.sized(2, d.sizes[2] * wanted // got) if len(d.sizes) == 3 else None
        )
    yield from _other_sizes(match, draws)


def _other_layout(draws: Draws) -> Iterator[Draws]:
    """Videos with the frames before the channels."""
    yield from _each(
        draws,
        lambda d: (
            replace(d, sizes=(d.sizes[0], d.sizes[2], d.sizes[1], *d.sizes[3:]))
            if len(d.sizes) == 5
            else None
        ),
    )


def _sized(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    yield from _last_size(int(match["got"]), int(match["wanted"]), draws)
    yield from _other_sizes(match, draws)


def _channels(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    shape = tuple(int(size) for size in re.findall(r"\d+", match[1]))
    wanted, got = int(match[2]), int(match[3])
    yield from _other_layout(draws)
    yield from _each(
        draws, lambda d: d.sized(1, wanted) if d.sizes == shape and d.sizes[1:2] == (got,) else None
    )
    yield from _each(draws, lambda d: d.sized(1, wanted) if len(d.sizes) > 1 and d.sizes[1] == got else None)


def _rank_for(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    """As many dimensions as a layer takes."""
    wanted = int(match["rank"])
    yield from _each(draws, lambda d: _of_rank(d, wanted) if len(d.sizes) != wanted else None)


def _of_rank(draw: Draw, rank: int) -> Draw:
    """The draw with as many dimensions: the first two are kept, and what comes between batch and features is new."""
    sizes = draw.sizes
    if rank >= 4 and draw.kind == "float":
        side = (32,) * (rank - 2)
        return replace(draw, sizes=(*(sizes if len(sizes) > 1 else (sizes[0], 3))[:2], *side))
    if rank > len(sizes):
        added = (COUNT,) * (rank - len(sizes))
        return replace(draw, sizes=(*sizes, *added) if len(sizes) == 1 else (sizes[0], *added, *sizes[1:]))
    return replace(draw, sizes=(sizes[0], *sizes[len(sizes) - rank + 1 :]))


def _other_ranks(match: re.Match[str] | None, draws: Draws) -> Iterator[Draws]:
    for by in (1, -1):
        yield from _each(draws, partial(_ranked, by))


def _ranked(by: int, draw: Draw) -> Draw | None:
    rank = len(draw.sizes) + by
    return _of_rank(draw, rank) if 0 < rank < 7 else None


def _whole(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    """Whole numbers: of the sizes of others that are, as they are, or with one dimension less than what they pick."""
    for sizes in dict.fromkeys(draw.sizes for draw in draws if draw.kind == "int"):
        yield from _each(draws, lambda d: Draw("int", sizes) if d.kind == "float" else None)  # noqa: B023
    yield from _each(draws, lambda d: replace(d, kind="int") if d.kind == "float" else None)
    yield from _each(
        draws, lambda d: Draw("int", d.sizes[:-1]) if d.kind == "float" and len(d.sizes) > 2 else None
    )


def _real(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    yield from _each(draws, lambda d: replace(d, kind="float") if d.kind != "float" else None)


def _agreeing(one: int, other: int, draws: Draws) -> Iterator[Draws]:
    """Two sizes that have to agree: one becomes the other, in one input after the other; or 1, where one is repeated."""
    for sizes in dict.fromkeys(draw.sizes for draw in draws):
        for index, draw in enumerate(draws):
            if len(draw.sizes) != len(sizes):
                yield (*draws[:index], replace(draw, sizes=sizes), *draws[index + 1 :])
    pairs = [(one, other), (other, one)]
    pairs += [(low, 1) for low, high in ((one, other), (other, one)) if high % max(low, 1) == 0]
    for old, new in pairs:
        for index, draw in enumerate(draws):
            for at, size in enumerate(draw.sizes):
                if size == old:
                    yield (*draws[:index], draw.sized(at, new), *draws[index + 1 :])
    yield from _other_sizes(None, draws)


def _broadcast(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    """What fake tensors say of two sizes that have to agree."""
    sizes = [int(size) for size in re.findall(r"\d+", match[3])]
    at = int(match[2])
    if -len(sizes) <= at < len(sizes):
        yield from _agreeing(int(match[1]), sizes[at], draws)


def _equal(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    yield from _agreeing(int(match[1]), int(match[2]), draws)


def _other_sizes(match: re.Match[str] | None, draws: Draws) -> Iterator[Draws]:
    """Pictures of other sides, signals and sequences of other lengths."""
    pictures = any(len(draw.sizes) >= 4 for draw in draws)
    for side in SIDES if pictures else ():
        yield tuple(replace(d, sizes=(*d.sizes[:-2], side, side)) if len(d.sizes) >= 4 else d for d in draws)
    for length in () if pictures else LENGTHS:
        yield from _each(draws, partial(_long, 2, length))
        yield from _each(draws, partial(_long, 1, length))


def _long(at: int, length: int, draw: Draw) -> Draw | None:
    """A signal, or a sequence of features, of this length."""
    fits = len(draw.sizes) == 3 or (at == 1 and len(draw.sizes) == 2)
    return draw.sized(at, length) if fits and draw.kind == "float" else None


def _viewed(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    """What is seen as rows of so many numbers."""
    width = int(match[1])
    if width > 0:
        yield from _each(draws, lambda d: d.sized(len(d.sizes) - 1, width) if len(d.sizes) < 4 else None)
    yield from _other_sizes(match, draws)


def _larger(match: re.Match[str], draws: Draws) -> Iterator[Draws]:
    """Pictures and signals with room for what slides over them."""
    for by in (2, 4, 8, 32):
        yield tuple(
            replace(d, sizes=(*d.sizes[:2], *(size * by for size in d.sizes[2:]))) if len(d.sizes) > 2 else d
            for d in draws
        )
    yield from _each(draws, lambda d: d.sized(1, 4096) if len(d.sizes) == 2 and d.kind == "float" else None)


_OF_SHAPES = ("AssertionError", "IndexError", "RuntimeError", "ValueError")
"""What a model raises of shapes that it checks itself; other exceptions are no matter of sizes."""
_MULTIPLIED = (
    r"mat1 and mat2 shapes cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)",
    r"a and b must have same reduction dim, but got \[\d+, (\d+)\] X \[(\d+), \d+\]",
)
_CHANNELS = (r"expected input\[([\d, ]+)\] to have (\d+) channels, but got (\d+) channels",)
_RANK = (
    r"or (?P<rank>\d)D \(batched\) input to \w+",
    r"[Ee]xpected (?:2D or )?(?P<rank>\d)D input \(got \dD input\)",
    r"Expected input to be \dD or (?P<rank>\d)D, got",
    r"must be a (?P<rank>\d)D tensor",
    r"[Ee]xpected (?P<rank>\d) dims",  # einops
    r"mode needs (?P<rank>\d)D input",
    r"Only (?P<rank>\d)D, .*input Tensors supported",
)
_SIZED = (
    r"expected input with shape \[\*, (?:\d+, )*(?P<wanted>\d+)\], but got input of size ?\[(?:\d+, )*(?P<got>\d+)\]",
    r"equal to input_size\. Expected (?P<wanted>\d+), got (?P<got>\d+)",
    r"inconsistent \w+_size:? got (?P<got>\d+),? expected (?P<wanted>\d+)",
    r"expecting embedding dimension of (?P<wanted>\d+), but got (?P<got>\d+)",
    r"can't divide axis of length (?P<got>\d+) in chunks of (?P<wanted>\d+)",  # einops
    r"running_mean should contain (?P<got>\d+) elements not (?P<wanted>\d+)",
)
_WHOLE = (
    r"argument #1 'indices'",
    r"used as indices must be",
    r"[Ee]xpected dtype int",
    r"index tensor",
    r"scalar type (?:Long|Int) but",
    r"must be tensors of integers",
)
_REAL = (
    r"not implemented for '(?:Long|Int|Bool)'",
    r"scalar type Float but",
    r"same dtype",
    r"floating point or complex",
    r"Only Tensors of floating",
    r"dtype should be either floating",
    r"Input type .* and (?:weight|bias) type",
)
_RANKS = (
    r"Dimension out of range",
    r"[Tt]oo many indices",
    r"(?:not enough|too many) values to unpack",
    r"dimension specified as",
    r"[Nn]umber of (?:dim|subscripts)",
    r"Padding size \d+ is not supported for \dD",
    r"Only .*D padding with non-constant padding",
)
_LARGER = (
    r"[Kk]ernel size can't be greater",
    r"too small",
    r"Padding size should be less",
    r"larger than",
)
_EQUAL = (
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)",
    r"Expected size (\d+) but got size (\d+)",
    r"Expected (\d+) in dimension \d+ but got (\d+)",
    r"Expected size for first two dimensions of batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]",
    r"batch_size \((\d+)\) to match target batch_size \((\d+)\)",
    r"batch size (\d+) doesn't match hidden\[?\d?\]? batch size (\d+)",
)
_BY_MESSAGE: tuple[tuple[re.Pattern[str], Change], ...] = tuple(
    (re.compile(pattern, re.S), change)
    for patterns, change in (
        (_MULTIPLIED, _multiplied),
        (_CHANNELS, _channels),
        (_RANK, _rank_for),
        (_SIZED, _sized),
        (_WHOLE, _whole),
        (_REAL, _real),
        (_RANKS, _other_ranks),
        (_LARGER, _larger),
        (_EQUAL, _equal),
        (
            (r"dimension of length (\d+) at (-?\d+)!.*broadcastable to (?:torch\.Size\()?\[([\d, ]+)\]",),
            _broadcast,
        ),
        ((r"shape '\[(?:[-\d, ]+, )?(-?\d+)\]' is invalid for input of size",), _viewed),
    )
    for pattern in patterns
)
"""What torch (2.4 to 2.13) says of inputs that do not fit, with what to change."""
