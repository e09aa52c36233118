"""What is done with a list whose elements a mask selects, once the list is the rows of a tensor.

`torch.stack(kept)` is the tensor itself, `len(kept)` counts the mask, and `if not kept` asks whether the mask holds anywhere. What
raises for an empty list stands behind a question whether there is any, or a check in the graph keeps that.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.lists.written_items import is_handed_to_writer, writes_items
from exportlens.rewriting.memory.effects import kinds_before

RAISES, GIVES_ZERO = "raises", "gives zero"
_ANY = ("Gt 0", "GtE 1", "NotEq 0")
_NONE = ("Eq 0", "Lt 1", "LtE 0")
_AROUND = (
    ast.For,
    ast.While,
    ast.Lambda,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ListComp,
    ast.GeneratorExp,
)
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)


@dataclass(frozen=True, slots=True)
class Rows:
    """The tensor `name` of the rows where `mask` holds, made at `statement` (or there, at `node`).

    `shape` is "row" or "scalar" where all elements certainly have one shape, the latter no dimensions, "rows" where nothing tells,
    and "number" where they were numbers of Python, `number` their type if it is known; `default` says that torch makes tensors of
    such numbers with the dtype that the rows have. `joined` elements have a dimension more, of size 1, at first. `floats` says that
    they certainly are tensors of floats.
    """

    name: str
    mask: str
    torch: str
    statement: ast.stmt
    node: ast.expr | None
    shape: str
    number: str
    default: bool
    joined: bool
    floats: bool
    kinds: Kinds


def uses_of(source: Source, function: Function, rows: Rows) -> list[Replacement] | None:
    """What changes where the list is used; None where a use is not known to be the same."""
    return Uses(source, function, rows).swaps()


class Uses:
    def __init__(self, source: Source, function: Function, rows: Rows) -> None:
        self.source, self.function, self.rows = source, function, rows
        # What the rows are read by.
        self.text = rows.name
        inside = (rows.node,) if rows.node is not None else self._loads()
        self.uses: tuple[ast.expr, ...] = tuple(inside)
        # A loop around both makes the rows anew in each round.
        self.around = {each for each in source.ancestors(rows.statement) if isinstance(each, _AROUND)}

    def _loads(self) -> list[ast.expr]:
        begin = self.source.end(self.rows.statement)
        return [
            each
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == self.rows.name and self.source.start(each) >= begin
        ]

    def swaps(self) -> list[Replacement] | None:
        source, rows = self.source, self.rows
        swaps: list[Replacement] = []
        checked: dict[ast.stmt, None] = {}
        for each in self.uses:
            if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load):
                return None
            again = self._filtered_again(each)
            if again is not None:
                swaps += again
                continue
            if any(
                isinstance(outer, _AROUND) and outer not in self.around for outer in source.ancestors(each)
            ):
                return None
            question = self.question(each)
            if question is not None:
                test, there = question
                text = f"{rows.mask}.any()"
                swaps.append(source.swap(test, text if there else f"not {text}"))
                continue
            swap = self._used(each)
            if swap is None:
                return None
            swaps.append(swap[0])
            if swap[1] and not self._is_guarded(each):
                if swap[1] == GIVES_ZERO:
                    return None
                statement = source.enclosing_statement(each)
                if not isinstance(statement, _SIMPLE) or not source.begins_line(statement):
                    return None
                if any(
                    isinstance(outer, (ast.IfExp, ast.BoolOp, ast.Compare))
                    for outer in source.ancestors(each)
                    if isinstance(outer, ast.expr) and source.start(outer) >= source.start(statement)
                ):
                    return None
                checked[statement] = None
        for statement in checked:
            begin, indent = source.start(statement), source.indent_of(statement)
            shown = f"`{rows.name}`" if rows.node is None else "the list"
            check = f'{rows.torch}._assert_async({rows.mask}.any(), "{shown} is empty")'
            swaps.append(Replacement(begin, begin, f"{check}{source.newline}{indent}"))
        return swaps

    def question(self, node: ast.expr) -> tuple[ast.expr, bool] | None:
        """The expression that asks whether the list at `node` has elements, and True where it holds for one that has."""
        parent = self.source.parents[node]
        if self._decides(node):
            return node, True
        if isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            return parent, False
        if (
            isinstance(parent, ast.Call)
            and ast.unparse(parent.func) in ("len", "bool")
            and parent.args == [node]
        ):
            outer = self.source.parents[parent]
            if isinstance(outer, ast.Compare) and outer.left is parent and len(outer.ops) == 1:
                said = f"{type(outer.ops[0]).__name__} {ast.unparse(outer.comparators[0])}"
                return (outer, said in _ANY) if said in (*_ANY, *_NONE) else None
            if isinstance(outer, ast.UnaryOp) and isinstance(outer.op, ast.Not):
                return outer, False
            if self._decides(parent) or ast.unparse(parent.func) == "bool":
                return parent, True
        return None

    def _decides(self, node: ast.expr) -> bool:
        """Whether `node` is asked for its truth alone."""
        inner: ast.AST = node
        for outer in self.source.ancestors(node):
            if isinstance(outer, (ast.If, ast.IfExp, ast.Assert)):
                return outer.test is inner
            if not isinstance(outer, ast.BoolOp):
                return False
            inner = outer
        return False

    def _filtered_again(self, node: ast.expr) -> list[Replacement] | None:
        """What changes for a comprehension that keeps some of the elements; None where it is none."""
        return None

    def _used(self, node: ast.expr) -> tuple[Replacement, str] | None:
        """What stands in the place of the use at `node`, and RAISES or GIVES_ZERO where an empty list is no matter of course."""
        source, rows = self.source, self.rows
        parent = source.parents[node]
        unknown = rows.shape == "number" and rows.number == ""
        if isinstance(parent, (ast.Subscript, ast.Tuple)) and (rows.number == "int" or unknown):
            outer = source.parents[parent] if isinstance(parent, ast.Tuple) else parent
            if isinstance(outer, ast.Subscript) and outer.slice in (node, parent):
                now = kinds_before(self.function, source.enclosing_statement(node), rows.kinds)
                owner = ast.parse(ast.unparse(outer.value), mode="eval").body
                # Where nothing tells which numbers they are, they are whole ones: a list of others is no index.
                text = f"{self.text}.long()" if unknown else self.text
                return (source.swap(node, text), "") if now.of(owner).what == "tensor" else None
        if isinstance(parent, ast.Subscript) and parent.value is node:
            return self._one_of(parent)
        if not isinstance(parent, ast.Call) or parent.args[:1] != [node]:
            return None
        called = rows.kinds.qualified(parent.func) or ast.unparse(parent.func)
        along = {each.arg: ast.unparse(each.value) for each in parent.keywords}
        if parent.args[1:]:
            along["dim"] = ast.unparse(parent.args[1])
        if len(parent.args) > 2:
            return None
        numbers = rows.shape == "number"
        if called == "len" and not along:
            return source.swap(*self._count(parent)), RAISES if self._divides(parent) else ""
        if called == "torch.stack" and not numbers and along in ({}, {"dim": "0"}):
            return source.swap(parent, self.text), RAISES
        if called == "torch.cat" and rows.joined and along in ({}, {"dim": "0"}):
            return source.swap(parent, f"{self.text}.flatten(0, 1)"), RAISES
        if called in ("torch.stack", "torch.cat") and rows.shape == "row" and set(along) <= {"dim"}:
            joined = _along(self.text, called, along.get("dim", "0"))
            if any(self.question(each) is not None for each in self.uses):
                # In an arm torch makes nothing whose size behind the first hangs on data (measured on torch 2.13).
                return None
            return None if joined is None else (source.swap(parent, joined), RAISES)
        whole = rows.number == "int" and along in ({"dtype": "torch.int64"}, {"dtype": "torch.long"})
        if called == "torch.tensor" and numbers and ((rows.default and not along) or whole):
            return source.swap(parent, self.text), ""
        if called == "torch.tensor" and numbers and set(along) == {"dtype"}:
            return source.swap(parent, f"{self.text}.to({along['dtype']})"), ""
        if called == "sum" and not along:
            if numbers:
                return source.swap(parent, f"{self.text}.sum().item()"), ""
            if rows.shape in ("row", "scalar"):
                return source.swap(parent, f"{self.text}.sum(0)"), "" if self._may_be_zero(
                    parent
                ) else GIVES_ZERO
        if called in ("max", "min") and rows.shape != "rows":
            # Python compares tensors of one element, with or without dimensions.
            along_rows = "" if rows.shape == "scalar" else "0"
            text = f"{self.text}.{called}().item()" if numbers else f"{self.text}.a{called}({along_rows})"
            if not along:
                return source.swap(parent, text), RAISES
            if set(along) == {"default"} and numbers:
                text = f"{text} if {rows.mask}.any() else {along['default']}"
                alone = isinstance(source.parents[parent], (ast.Assign, ast.Return))
                return source.swap(parent, text if alone else f"({text})"), ""
        if called in ("statistics.mean", "statistics.fmean", "numpy.mean") and numbers and not along:
            return source.swap(
                parent, f"{self.text}.double().mean().item()"
            ), "" if called == "numpy.mean" else RAISES
        return None

    def _one_of(self, read: ast.Subscript) -> tuple[Replacement, str] | None:
        """What stands in the place of the first or last item, which is read."""
        rows = self.rows
        if not isinstance(read.ctx, ast.Load) or ast.unparse(read.slice) not in ("0", "-1"):
            return None
        if rows.shape == "rows" or (rows.shape == "number" and rows.number != "int"):
            return None
        if rows.shape != "number" and (
            writes_items(self.function, rows.name) or is_handed_to_writer(self.source, read, rows.kinds)
        ):
            return None
        number = ".item()" if rows.shape == "number" else ""
        return self.source.swap(read, f"{self.text}[{ast.unparse(read.slice)}]{number}"), RAISES

    def _count(self, call: ast.Call) -> tuple[ast.expr, str]:
        """What counts the elements, as a tensor where another tensor or a comparison takes it, else as a number."""
        source, count = self.source, f"{self.rows.mask}.sum()"
        outer = source.parents[call]
        if isinstance(outer, ast.Call) and ast.unparse(outer.func) == "max" and len(outer.args) == 2:
            least = outer.args[1] if outer.args[0] is call else outer.args[0]
            if isinstance(least, ast.Constant) and type(least.value) is int and not outer.keywords:
                count, call, outer = f"{count}.clamp(min={least.value})", outer, source.parents[outer]
        if isinstance(outer, ast.Compare):
            return call, count
        if isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div) and outer.right is call:
            other = outer.left
            summed = isinstance(other, ast.Call) and other.args and self._is_list(other.args[0])
            if (summed and self.rows.shape != "number") or self.rows.kinds.of(other).what == "tensor":
                return call, count
        return call, f"{count}.item()"

    def _is_list(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == self.rows.name

    def _divides(self, call: ast.Call) -> bool:
        """Whether Python would divide one of its numbers by the length."""
        outer = self.source.parents[call]
        divides = isinstance(outer, ast.BinOp) and isinstance(outer.op, ast.Div) and outer.right is call
        if not divides or not isinstance(outer, ast.BinOp):
            return False
        left = outer.left
        summed = (
            isinstance(left, ast.Call) and ast.unparse(left.func) == "sum" and self._is_list(left.args[0])
        )
        return summed or self.rows.kinds.of(left).what in ("number", "size", "scalar")

    def _may_be_zero(self, call: ast.Call) -> bool:
        """Whether the sum of no elements, 0 in Python, may be a tensor without dimensions; or is divided by their number."""
        outer = self.source.parents[call]
        if not isinstance(outer, ast.BinOp):
            return False
        by = outer.right if isinstance(outer.op, ast.Div) and outer.left is call else None
        if isinstance(by, ast.Call) and ast.unparse(by.func) == "len" and self._is_list(by.args[0]):
            return True
        if by is not None and ast.unparse(by) in (
            f"max(len({self.rows.name}), 1)",
            f"max(1, len({self.rows.name}))",
        ):
            # Of none it is zero, which may be a tensor's where nothing asks of what type it is.
            around = self.source.parents[outer]
            whole = self.source.parents[around] if isinstance(around, ast.Tuple) else around
            return self.rows.shape == "scalar" and isinstance(whole, (ast.Return, ast.BinOp))
        return self.rows.shape == "scalar" and not isinstance(outer.op, ast.Div)

    # --- whether there is any -----------------------------------------------------------------------------------

    def _is_guarded(self, node: ast.expr) -> bool:
        """Whether `node` is reached only where the list has elements."""
        source = self.source
        inner: ast.AST = node
        for outer in source.ancestors(node):
            if isinstance(outer, (ast.If, ast.IfExp)) and inner is not outer.test:
                body = outer.body if isinstance(outer.body, list) else [outer.body]
                if self._tells(outer.test, any(inner is each for each in body)):
                    return True
            if isinstance(outer, ast.BoolOp):
                before = outer.values[: next(i for i, each in enumerate(outer.values) if each is inner)]
                if any(self._tells(each, isinstance(outer.op, ast.And)) for each in before):
                    return True
            if isinstance(inner, ast.stmt) and isinstance(
                outer, (ast.If, ast.For, ast.With, ast.FunctionDef)
            ):
                block, index = source.block_of(inner)
                for each in block[:index]:
                    if (
                        isinstance(each, ast.If)
                        and "falls" not in exits(each.body)
                        and self._tells(each.test, False)
                    ):
                        return True
                    if isinstance(each, ast.Assert) and self._tells(each.test, True):
                        return True
            if outer is self.function:
                return False
            inner = outer
        return False

    def _tells(self, test: ast.expr, holds: bool) -> bool:
        """Whether the list has elements where `test` holds, or where it does not."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not) and not self._is_asked(test):
            return self._tells(test.operand, not holds)
        if isinstance(test, ast.BoolOp):
            sure = isinstance(test.op, ast.And) == holds
            return sure and any(self._tells(each, holds) for each in test.values)
        for each in self.uses:
            question = self.question(each)
            if question is not None and question[0] is test:
                return question[1] == holds
        return False

    def _is_asked(self, test: ast.expr) -> bool:
        return any((found := self.question(each)) is not None and found[0] is test for each in self.uses)


def _along(rows: str, called: str, dim: str) -> str | None:
    """The rows one behind the other in the dimension `dim` of what `called`, torch.stack or torch.cat, gives."""
    if not dim.removeprefix("-").isdigit():
        return None
    at = int(dim)
    if called == "torch.stack":
        return f"{rows}.movedim(0, {at}).contiguous()"
    first, last = (at, at + 1) if at >= 0 else (at - 1, at)
    moved = rows if at == 0 else f"{rows}.movedim(0, {first})"
    return f"{moved}.flatten({first}, {last})"
