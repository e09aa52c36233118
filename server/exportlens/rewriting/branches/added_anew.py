"""Sums that begin as numbers: `total += loss` of a number gives a new tensor, and writes into the tensor that an earlier round gave.

torch.cond takes no function that writes into what it is given: `total = total + loss` does the same under a name of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kind import SEVERAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.outside_writes import Arm
from exportlens.source.walking import walk


def add_anew(source: Source, arms: Iterable[Arm], names: Iterable[str], kinds: Kinds) -> None:
    """Let the arms compute anew what of `names`, outputs of the branch, may be a number or a tensor before it."""
    mixed = {name for name in names if name in kinds.names and kinds.names[name].type == SEVERAL}
    for arm in arms:
        for node in (each for statement in arm.statements for each in walk(statement)):
            if (
                isinstance(node, ast.AugAssign)
                and isinstance(node.target, ast.Name)
                and node.target.id in mixed
            ):
                begin, end = source.start(node.value), source.end(node.value)
                # The value may hold what is replaced itself: only what stands around it is.
                anew = source.computed(node, "")
                closed, text = ")" * anew.endswith("()"), f"{node.target.id} = {anew.removesuffix(')')}"
                arm.replacements += [
                    Replacement(source.start(node), begin, text),
                    Replacement(end, end, closed),
                ]
