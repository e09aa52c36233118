"""Names that tell that a parameter is a number of Python."""

from __future__ import annotations

import re

# What a parameter is called that holds a size, a count or a position of Python, where its uses leave that open: tensors of such
# names are used as tensors somewhere.
_NUMBER_NAME = re.compile(
    r"[hwHWBNTLDC]|height|width|depth|length|step|epoch|(?:num|n|max|min|total)_\w+|(?:\w+_)?(?:shapes?|sizes?|hw|resolution)"
    r"|\w+_(?:h|w|H|W|height|width|size|len|length|dim|num|count|step|steps|epoch|ratio|rate|factor|stride)"
)


def called_like_a_number(name: str) -> bool:
    """Whether parameters of this name are numbers of Python, or tuples of them: `batch_size`, `num_heads`."""
    return _NUMBER_NAME.fullmatch(name) is not None
