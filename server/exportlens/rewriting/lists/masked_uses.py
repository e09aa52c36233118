"""Lists of numbers whose elements a mask keeps, where the least or the greatest is asked: all elements stay, and a mask weighs them.

    if not kept:                                      if not kept_kept.any():
        return y                                          return y
    return max(kept) - sum(kept) / len(kept)   ->     return (torch.where(kept_kept, kept, -torch.inf).amax()
                                                              - torch.where(kept_kept, kept, 0).sum() / kept_kept.sum())

Of the rows alone torch takes no extreme where there may be none, not even in an arm of torch.cond that is traced and not run.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import every_name, fresh
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.decisions.conditions import combined, scalar_bool
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.lists.plain_items import is_plain
from exportlens.rewriting.lists.selected_uses import RAISES, Rows, Uses
from exportlens.rewriting.memory.effects import kinds_before

_EXTREMES = ("max", "min")


def masked_uses_of(source: Source, function: Function, rows: Rows) -> list[Replacement] | None:
    """What changes where the list is used, once its name is the tensor of all elements; None where a use is not known to be the
    same, or where no extreme is asked, so that the rows that are kept do."""
    if rows.shape not in ("scalar", "row") or rows.node is not None:
        return None
    made = MaskedUses(source, function, rows, rows.name, every_name(source.tree))
    swaps = made.swaps()
    return swaps if made.extreme else None


class MaskedUses(Uses):
    def __init__(self, source: Source, function: Function, rows: Rows, whole: str, taken: set[str]) -> None:
        super().__init__(source, function, rows)
        self.whole, self.taken = whole, taken
        self.text = f"{whole}[{rows.mask}]"
        self.extreme = False

    def swaps(self) -> list[Replacement] | None:
        name, statement = self.rows.name, self.rows.statement
        own = [each for each in ast.walk(self.function) if isinstance(each, ast.Name) and each.id == name]
        begin, end = self.source.start(statement), self.source.end(statement)
        loaded = [each for each in own if isinstance(each.ctx, ast.Load)]
        if any(self.source.start(each) < begin for each in loaded):
            # In the next round of a loop it is what the last one left.
            return None
        inside = any(begin <= self.source.start(each) < end for each in loaded)
        if inside and not isinstance(statement, ast.For):
            return None
        return super().swaps()

    def _filtered_again(self, node: ast.expr) -> list[Replacement] | None:
        source, generator = self.source, self.source.parents[node]
        listed = source.parents[generator] if isinstance(generator, ast.comprehension) else None
        statement = source.enclosing_statement(node)
        if not isinstance(generator, ast.comprehension) or not isinstance(listed, ast.ListComp):
            return None
        if not isinstance(statement, ast.Assign) or statement.value is not listed:
            return None
        target, each = statement.targets[0], generator.target
        if not isinstance(target, ast.Name) or not isinstance(each, ast.Name) or len(statement.targets) > 1:
            return None
        only = generator.iter is node and len(listed.generators) == 1 and not generator.is_async
        if not only or not generator.ifs or ast.unparse(listed.elt) != each.id or each.id == target.id:
            return None
        if sum(isinstance(one, ast.Name) and one.id == self.rows.name for one in ast.walk(listed)) > 1:
            return None
        test = self._asked_again(generator, each.id)
        if test is None:
            return None
        mask = fresh(f"kept_{target.id}", self.taken)
        rows = replace(self.rows, name=target.id, mask=mask, statement=statement)
        inner = MaskedUses(source, self.function, rows, self.whole, self.taken)
        swaps = inner.swaps()
        if swaps is None:
            return None
        self.extreme = self.extreme or inner.extreme
        asked = f"{rows.torch}.stack([{test} for {each.id} in {self.whole}])"
        return [source.swap(statement, f"{mask} = {self.rows.mask} & {asked}"), *swaps]

    def _asked_again(self, generator: ast.comprehension, name: str) -> str | None:
        """What is asked of an element, `name`, as a bool tensor without dimensions."""
        source, rows = self.source, self.rows
        now = kinds_before(self.function, source.enclosing_statement(generator.iter), rows.kinds)
        now.names[name] = Kind("tensor", rank=0 if rows.shape == "scalar" else None)
        if any(not is_plain(each, now) for each in generator.ifs):
            return None
        predicates = Predicates(source, now, rows.torch)
        try:
            conditions = [predicates.read(each) for each in generator.ifs]
            if any(each.form != "tensor" for each in conditions):
                return None
            return scalar_bool(combined(conditions, "and", rows.torch))
        except Refused:
            return None

    def _used(self, node: ast.expr) -> tuple[Replacement, str] | None:
        source, rows = self.source, self.rows
        call = source.parents[node]
        found = super()._used(node)
        if not isinstance(call, ast.Call) or call.args != [node] or call.keywords:
            return found
        called = rows.kinds.qualified(call.func) or ast.unparse(call.func)
        if called in _EXTREMES:
            return source.swap(call, self._extreme(called)), RAISES
        if rows.shape != "scalar":
            return found
        if called == "torch.stack":
            return self._stacked(call) or found
        return (source.swap(call, self._sum()), found[1]) if found is not None and called == "sum" else found

    def _stacked(self, call: ast.Call) -> tuple[Replacement, str] | None:
        """What is asked of the stacked elements at once."""
        source, outer = self.source, self.source.parents[call]
        whole: ast.AST = outer
        if isinstance(outer, ast.Attribute):
            whole, how = source.parents[outer], outer.attr
            plain = isinstance(whole, ast.Call) and not whole.args and not whole.keywords
        else:
            plain = isinstance(outer, ast.Call) and outer.args == [call] and not outer.keywords
            called = self.rows.kinds.qualified(outer.func) if isinstance(outer, ast.Call) else None
            how = (called or "").removeprefix("torch.")
        if not plain or not isinstance(whole, ast.Call):
            return None
        if how in (*_EXTREMES, "amax", "amin"):
            return source.swap(whole, self._extreme(how.removeprefix("a"))), RAISES
        if how == "sum":
            return source.swap(whole, self._sum()), RAISES
        if how == "mean":
            return source.swap(whole, f"({self._sum()} / {self.rows.mask}.sum())"), RAISES
        return None

    def _sum(self) -> str:
        return f"{self.rows.torch}.where({self.rows.mask}, {self.whole}, 0).sum()"

    def _extreme(self, called: str) -> str:
        self.extreme = True
        torch, mask, whole = self.rows.torch, self.rows.mask, self.whole
        if self.rows.shape == "row":
            # The first that is kept stands for those that are not.
            places = f"{torch}.arange(len({mask}), device={mask}.device)"
            return f"{whole}[{torch}.where({mask}, {places}, {mask}.byte().argmax())].a{called}(0)"
        # Whatever the dtype is, one that is kept is neither greater nor less than all that are.
        rest = f"{whole}.gather(0, {mask}.byte().argmax(0, keepdim=True))"
        if self.rows.floats:
            rest = f"{torch}.inf" if called == "min" else f"-{torch}.inf"
        return f"{torch}.where({mask}, {whole}, {rest}).a{called}()"
