"""The whole way of arrays through the statements of functions, from `t.numpy()` to where they are tensors again.

Where `numpy_arrays.py` follows single arrays, and asks of what meets them whether it fits, this reads whole functions with the
dtype of everything in them: so it knows where NumPy computes in another dtype than torch, and can convert there.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from exportlens.inference.values import Value
from exportlens.rewriting.arrays.array_memory import writes_arrays
from exportlens.rewriting.arrays.array_reading import Again
from exportlens.rewriting.arrays.array_statements import Way
from exportlens.rewriting.arrays.array_types import RefusedIndex, RefusedRounds, RefusedUnlike, Typed
from exportlens.rewriting.code.draft import Refused, RefusedDtypes, WholeDraft
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.rewriting.kinds.float_evidence import is_given

_MOST_READINGS = 30
_MOST_OF_INTS = 3


def torch_for_arrays(
    draft: WholeDraft, first: ast.Call, dtypes: set[str | None], variables: Mapping[str, Value]
) -> list[Replacement]:
    """The replacements for all arrays of the function that `first` makes one in, and of those that they go through."""
    function = draft.source.enclosing_function(first)
    if function is None:
        raise Refused("the array is made outside of a function")
    known = next(iter(dtypes)) if len(dtypes) == 1 else None
    begin = Begin(draft, function, {} if known is None else {first: known}, variables, first)
    way, ints = begin.read_first()
    swaps = way.replacements()
    unknown = {each: begin.of_ints(each, ints, swaps) for each in way.assumed if each not in ints}
    for each, differs in unknown.items():
        if differs == "otherwise":
            text = draft.source.of(each)
            raise RefusedDtypes(
                f"whether `{text}` holds floats or ints is not known, and NumPy gives another dtype for ints: "
                "write `.float()` in front of it where it holds floats"
            )
    guarded = {each for each, differs in unknown.items() if differs == "as doubles"}
    return begin.read(ints, guarded).replacements() if guarded else swaps


@dataclass
class Begin:
    """Where a way begins, to be read under one assumption after the other of what is not known."""

    draft: WholeDraft
    function: Function
    dtypes: Mapping[ast.AST, str]
    variables: Mapping[str, Value]
    first: ast.AST

    def read(self, assumption: Mapping[ast.AST, str], guarded: AbstractSet[ast.AST] = frozenset()) -> Way:
        """The way where tensors of an unknown dtype are of that of `assumption`, and `guarded` are made floats."""
        params: dict[Function, dict[str, Typed]] = {}
        wanted: set[object] = set()
        roots, copies = [self.function], False
        writing: list[Function] = []
        evident: set[ast.AST | None] = set()
        for _ in range(_MOST_READINGS):
            way = Way(self.draft, self.variables, copies)
            way.params, way.wanted, way.dtypes = params, wanted, self.dtypes
            way.assumption, way.guarded = assumption, set(guarded)
            way.evident, way.begun, way.writing = evident, self.first, writing
            way.whole = {
                (function, name)
                for each, dtype in assumption.items()
                if dtype == "int64"
                and (function := self.draft.source.enclosing_function(each)) is not None
                and is_given(function, name := _root(each))
            }
            try:
                for root in roots:
                    way.first = root if len(roots) == 1 else None
                    if way.read(root, {}).holds_arrays:
                        roots = way.callers(root)
                        raise Again
                if not copies and writes_arrays(way.entered):
                    copies, writing = True, [each for each in way.entered if isinstance(each, Function)]
                    raise Again
            except Again:
                continue
            except RefusedIndex as refused:
                refused.assumed = way.assumed
                raise
            if not way.decides <= way.evident:
                evident = way.decides
                continue
            way.refuse_unseen(roots)
            return way
        raise Refused("what arrays are does not come to rest")

    def read_first(self) -> tuple[Way, Mapping[ast.AST, str]]:
        """The way where tensors of an unknown dtype hold floats, but for those that pick from arrays, which hold ints."""
        try:
            return self.read({}), {}
        except RefusedIndex as refused:
            names = sorted(set(map(_root, refused.assumed)))
            for size in range(1, min(len(names), _MOST_OF_INTS) + 1):
                for chosen in itertools.combinations(names, size):
                    found = self._read_with_ints(set(chosen), refused.assumed)
                    if found is not None:
                        return found
            raise

    def _read_with_ints(
        self, names: set[str], assumed: AbstractSet[ast.AST]
    ) -> tuple[Way, Mapping[ast.AST, str]] | None:
        """The way where the arrays that are made of tensors of these `names` hold ints; None where floats still pick."""
        while True:
            ints: dict[ast.AST, str] = {each: "int64" for each in assumed if _root(each) in names}
            try:
                return self.read(ints), ints
            except RefusedIndex as refused:
                # Others are made behind the place where it was refused before.
                if refused.assumed <= assumed:
                    return None
                assumed = assumed | refused.assumed

    def of_ints(self, array: ast.AST, known: Mapping[ast.AST, str], swaps: list[Replacement]) -> str:
        """How an array that may hold ints is written then: "" for no other way, "as doubles" where it is for what doubles made
        of them are, and else "otherwise"."""
        try:
            ints = self.read({**known, array: "int64"})
            if ints.replacements() == swaps:
                return ""
            doubles = self.read({**known, array: "float64"})
        except RefusedRounds:
            # Ints that a round makes floats of are doubles in the next one.
            return "as doubles"
        except RefusedUnlike:
            return "otherwise"
        except Refused:
            # What torch cannot do to ints is not done to them.
            return ""
        if ints.given != doubles.given:
            return "otherwise"
        if doubles.kept and self.read(known, {array}).replacements() != doubles.replacements():
            return "otherwise"
        return "as doubles"


def _root(array: ast.AST) -> str:
    return ast.unparse(array).split(".")[0]
