"""Trees are walked as `ast` walks them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from exportlens.source.walking import children, walk

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING = """
from . import a as b
async def f(x, /, y: int = 1, *args, z, w=2, **kw) -> None:
    global c
    async with a as (d, e):
        await x
    async for i in y:
        continue
    try:
        raise E from None
    except* (A, B) as error:
        del x[0], x.y
    match x:
        case {"k": [1, *rest], **others} | Point(x=0, y=q) if q:
            pass
        case None | _:
            assert x, "y"
    return {**kw, 1: 2}, [*args], {i for i in x if i}, lambda *, k=1: k, f"{x!r:>{y}}", (yield), x[1:2, ...], (n := 3)
class C(B, metaclass=M):
    nonlocal_ = None
    @property
    def g(self):
        def h():
            nonlocal self
        while not self < 1 <= 2:
            self @= -1
"""


@pytest.mark.parametrize("path", [None, *sorted((ROOT / "server/exportlens/inference").glob("s*.py"))])
def test_the_same_nodes_in_the_same_order(path: Path | None) -> None:
    tree = ast.parse(EVERYTHING if path is None else path.read_text(encoding="utf-8"))
    assert list(walk(tree)) == [node for node in ast.walk(tree) if not isinstance(node, ast.expr_context)]
    for node in ast.walk(tree):
        below = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr_context)]
        assert children(node) == below
