"""Text that a loop makes of the number of a loop around it, made before the loop.

    for i in range(4):                              for i in range(4):
        while y.norm() > 1:                             name = f"cell_{i}"
            y = self.cells[f"cell_{i}"](y)    ->        while y.norm() > 1:
                                                            y = self.cells[name](y)

In eager mode torch compiles a while_loop in each round anew, where the number becomes a symbol, of which no text is made.
"""

from __future__ import annotations

import ast

from exportlens.rewriting.arms.numbers_in_text import carried_number_in_text, is_made_text, numbers_in_text
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import bound, every_name, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

Loop = ast.For | ast.While


def texts_before(source: Source, loop: Loop, kinds: Kinds) -> tuple[Source, Loop, Kinds] | None:
    """The text with such text made before `loop`, that loop, and the kinds before it; None where it makes none. Raises Refused where a
    function that the loop calls makes it, and where the loop itself sets the number."""
    carried = carried_number_in_text(loop, kinds)
    if carried is not None:
        raise Refused(f"the loop makes text of `{carried}`, which is a symbol there")
    function = source.enclosing_function(loop)
    around = [each for each in source.ancestors(loop) if isinstance(each, (ast.For, ast.While))]
    outer = [each for each in around if source.enclosing_function(each) is function]
    names = set(numbers_in_text([loop], kinds)) & set(bound(outer))
    if not names:
        return None
    if not source.begins_line(loop):
        raise Refused("the loop shares its line with another statement")
    taken, indent = every_name(source.tree), source.indent_of(loop)
    made: dict[str, str] = {}
    swaps: list[Replacement] = []
    for each in walk(loop):
        if not is_made_text(each) or not reads(each) & names or reads(each) & set(bound(loop)):
            continue
        if any(is_made_text(one) for one in source.ancestors(each)):
            continue
        text = source.of(each)
        if text not in made:
            made[text] = fresh("name", taken)
        swaps.append(source.swap(each, made[text]))
    begin = source.line_start(source.span([loop])[0])
    head = "".join(f"{indent}{name} = {text}{source.newline}" for text, name in made.items())
    changed = Source(replaced(source.text, [Replacement(begin, begin, head), *swaps]))
    start = source.start(loop) + len(head)
    same = next(
        each
        for each in walk(changed.tree)
        if isinstance(each, (ast.For, ast.While)) and changed.start(each) == start
    )
    block, index = changed.block_of(same)
    now = kinds.copy()
    now.run(block[index - len(made) : index])
    left = set(numbers_in_text([same], now)) & names
    if left:
        raise Refused(f"a function that the loop calls makes text of `{min(left)}`, which is a symbol there")
    return changed, same, now
