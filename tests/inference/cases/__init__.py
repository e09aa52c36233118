"""Small models in the style of public code: each is exported for real, and `check` must agree with torch.

A case is a text with a class `M`, the arguments to build it with, and its inputs. Nothing states what torch
does with it: the test asks torch. One file holds the cases of one theme.
"""

from tests.inference.cases import (
    assorted,
    decisions,
    functions,
    inherited,
    lookalikes,
    losses,
    more_modules,
    numbers_and_sizes,
    numpy_numbers,
    open_sizes,
    outputs,
    parameters,
    python_features,
    recurrent,
    registered,
    state,
    untraced,
    vision,
)
from tests.inference.cases.case import Case

CASES: list[Case] = [
    case
    for theme in (
        recurrent,
        losses,
        state,
        vision,
        functions,
        assorted,
        more_modules,
        decisions,
        outputs,
        numbers_and_sizes,
        numpy_numbers,
        open_sizes,
        untraced,
        parameters,
        python_features,
        lookalikes,
        inherited,
        registered,
    )
    for case in theme.CASES
]
