"""Lists whose items are joined and then padded to a number of items that no data decides:

    out = torch.stack(outs, dim=1)
    out = F.pad(out, (0, 0, 0, n - out.size(1)))

A list that has had `n` items from the beginning gives the same, where the last ones are what it is padded with: nothing is missing then.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass

from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.lists.filling_up import Written
from exportlens.rewriting.sizes.same_number import is_same_number

_JOINING = ("stack", "cat", "concat")
# What makes a tensor of one value, and where that stands; None is zero.
_MADE = {"zeros": "0", "new_zeros": "0", "ones": "1", "new_ones": "1", "full": None, "new_full": None}


@dataclass(frozen=True, slots=True)
class Padded:
    """`value` is what stands in the items that are missing; `asks` whether a branch asks if any are. `joined` is what joins the
    items; in `statements` nothing is missing then."""

    value: str
    asks: bool
    joined: ast.stmt
    statements: tuple[ast.stmt, ...]


def padded_behind(
    place: tuple[Sequence[ast.stmt], int], name: str, total: ast.expr, function: Function
) -> Padded | None:
    """What the items of the list `name` are padded with, up to `total`, behind the statement at `place` in the same block; None where
    more is done with what joins them."""
    block, at = place
    for number, each in enumerate(block[at + 1 :], at + 1):
        joined = _joined(each, name)
        if joined is not None:
            return _Search(each, block[number + 1 :], name, *joined, total, function).found()
        if name in bound(each):
            return None
    return None


def _joined(statement: ast.stmt, name: str) -> tuple[str, int] | None:
    """The name of `out = torch.stack(outs, dim=1)`, and the dimension."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, call = statement.targets[0], statement.value
    if not isinstance(target, ast.Name) or not isinstance(call, ast.Call):
        return None
    if (dotted(call.func) or "").rpartition(".")[2] not in _JOINING or not call.args:
        return None
    dims = [each.value for each in call.keywords if each.arg == "dim"] + call.args[1:]
    dim = "0" if not dims else ast.unparse(dims[0])
    plain = ast.unparse(call.args[0]) == name and len(call.args) + len(call.keywords) <= 2 and dim.isdigit()
    return (target.id, int(dim)) if plain else None


@dataclass
class _Search:
    """Of what pads `out`, which `joined` joins in the dimension `dim`, in the statements `rest` behind."""

    joined: ast.stmt
    rest: Sequence[ast.stmt]
    name: str
    out: str
    dim: int
    total: ast.expr
    function: Function

    def found(self) -> Padded | None:
        named: dict[str, ast.expr] = {}
        fillers: dict[str, str] = {}
        seen: list[ast.stmt] = []
        for number, each in enumerate(self.rest):
            if self.out not in reads(each) and self.name not in reads(each) and not set(named) & reads(each):
                made = _made(each)
                fillers |= {made[0]: made[1]} if made is not None else {}
                if self.out in bound(each):
                    return None
                continue
            statement = Written(named).visit(copy.deepcopy(each))
            asks = isinstance(statement, ast.If)
            value = (
                self._of_branch(statement)
                if isinstance(statement, ast.If)
                else self._value([statement], fillers)
            )
            if value is not None:
                later = {one for behind in self.rest[number + 1 :] for one in reads(behind)}
                if self.out in bound(each):
                    later.discard(self.out)
                return None if later & {self.out, *named} else Padded(value, asks, self.joined, (*seen, each))
            target = each.targets[0] if isinstance(each, ast.Assign) and len(each.targets) == 1 else None
            if not isinstance(target, ast.Name) or target.id in (self.out, self.name):
                return None
            # `pad = n - out.size(1)`
            if not self._is_missing(statement.value) and not self._is_length(statement.value):
                return None
            named[target.id] = statement.value
            seen.append(each)
        return None

    def _of_branch(self, node: ast.If) -> str | None:
        """As `_value`, where it is asked whether anything is missing; otherwise it is what it is."""
        if not self._asks(node.test):
            return None
        value = self._value(node.body, {})
        if value is None or not node.orelse:
            return value
        [last] = node.body[-1:]
        other = node.orelse[0]
        same = isinstance(last, ast.Assign) and isinstance(other, ast.Assign) and len(node.orelse) == 1
        plain = same and ast.unparse(other.value) == self.out  # type: ignore[attr-defined]
        return value if plain and bound(last) == bound(other) else None

    def _asks(self, test: ast.expr) -> bool:
        """Whether `test` holds only where something is missing."""
        if not isinstance(test, ast.Compare) or len(test.ops) != 1:
            return False
        left, right = test.left, test.comparators[0]
        if isinstance(test.ops[0], (ast.Gt, ast.NotEq)) and self._is_length(right):
            left, right = right, left
        if isinstance(test.ops[0], ast.Gt) and ast.unparse(right) == "0":
            return self._is_missing(left)
        less = isinstance(test.ops[0], (ast.Lt, ast.NotEq)) or left is not test.left
        return less and self._is_length(left) and is_same_number(right, self.total, self.function)

    def _value(self, body: Sequence[ast.stmt], fillers: dict[str, str]) -> str | None:
        """The value that `body`, whose last statement pads, puts behind the items."""
        fillers = dict(fillers)
        for each in body[:-1]:
            made = _made(each)
            if made is None:
                return None
            fillers[made[0]] = made[1]
        last = body[-1]
        if not isinstance(last, ast.Assign) or len(last.targets) != 1:
            return None
        target, value = last.targets[0], last.value
        if isinstance(target, ast.Subscript):
            owner = dotted(target.value)
            return (
                fillers.get(owner or "") if self._fills(target) and ast.unparse(value) == self.out else None
            )
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
            return None
        called = (dotted(value.func) or "").rpartition(".")[2]
        if called == "pad":
            return self._of_pad(value)
        return self._of_cat(value, fillers) if called in ("cat", "concat") else None

    def _of_pad(self, call: ast.Call) -> str | None:
        """Of `F.pad(out, (0, 0, 0, missing), value=0)`, which may be followed by nothing."""
        if len(call.args) != 2 or ast.unparse(call.args[0]) != self.out:
            return None
        amounts = call.args[1].elts if isinstance(call.args[1], (ast.Tuple, ast.List)) else []
        if not amounts or len(amounts) % 2 or not self._is_missing(amounts[-1]):
            return None
        if any(ast.unparse(each) != "0" for each in amounts[:-1]):
            return None
        more = {each.arg: ast.unparse(each.value) for each in call.keywords}
        mode, value = more.pop("mode", "'constant'"), more.pop("value", "0")
        return value if mode == "'constant'" and not more and _is_number(value) else None

    def _of_cat(self, call: ast.Call, fillers: dict[str, str]) -> str | None:
        """Of `torch.cat([out, zeros], dim=1)`."""
        parts = call.args[0].elts if call.args and isinstance(call.args[0], (ast.Tuple, ast.List)) else []
        dims = [each.value for each in call.keywords if each.arg == "dim"] + call.args[1:]
        along = "0" if not dims else ast.unparse(dims[0])
        if len(parts) != 2 or ast.unparse(parts[0]) != self.out or along != str(self.dim):
            return None
        made, value = parts[1], None
        if isinstance(made, ast.Name):
            return fillers.get(made.id)
        if isinstance(made, ast.Call) and any(map(self._is_missing, _sizes(made))):
            value = _value_of(made)
        return value

    def _fills(self, target: ast.Subscript) -> bool:
        """Whether `target` is `result[:, :out.size(1)]`."""
        parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if len(parts) <= self.dim or not all(
            isinstance(each, ast.Slice) and each.step is None for each in parts
        ):
            return False
        uppers = [each.upper for each in parts if isinstance(each, ast.Slice)]
        lowers = [each.lower for each in parts if isinstance(each, ast.Slice)]
        here = uppers.pop(self.dim)
        plain = all(each is None for each in uppers) and all(
            each is None or ast.unparse(each) == "0" for each in lowers
        )
        return plain and here is not None and self._is_length(here)

    def _is_length(self, node: ast.expr) -> bool:
        return ast.unparse(node) in (
            f"len({self.name})",
            f"{self.out}.size({self.dim})",
            f"{self.out}.shape[{self.dim}]",
            *((f"len({self.out})",) if self.dim == 0 else ()),
        )

    def _is_missing(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and dotted(node.func) == "max" and len(node.args) == 2:
            parts = [each for each in node.args if ast.unparse(each) != "0"]
            return len(parts) == 1 and self._is_missing(parts[0])
        return (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Sub)
            and self._is_length(node.right)
            and is_same_number(node.left, self.total, self.function)
        )


def _made(statement: ast.stmt) -> tuple[str, str] | None:
    """The name that `statement` gives to a new tensor of one value, and that value."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, call = statement.targets[0], statement.value
    value = _value_of(call) if isinstance(call, ast.Call) else None
    return (target.id, value) if isinstance(target, ast.Name) and value is not None else None


def _value_of(call: ast.Call) -> str | None:
    called = str(dotted(call.func) or getattr(call.func, "attr", "")).rpartition(".")[2]
    if called not in _MADE:
        return None
    value = _MADE[called]
    if value is None:
        given = [each.value for each in call.keywords if each.arg == "fill_value"] + call.args[1:2]
        value = ast.unparse(given[0]) if given else ""
    return value if _is_number(value) else None


def _sizes(call: ast.Call) -> list[ast.expr]:
    found: list[ast.expr] = []
    for each in call.args:
        found += each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each]
    return found


def _is_number(text: str) -> bool:
    try:
        return type(ast.literal_eval(text)) in (int, float, bool)
    except (ValueError, SyntaxError):
        return False
