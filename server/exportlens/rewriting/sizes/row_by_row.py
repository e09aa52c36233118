"""What is computed of rows one by one, so that a row gets the same whatever rows are beside it."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from exportlens.rewriting.code.names import dotted, reads
from exportlens.rewriting.kinds.kinds import Kinds

# Functions and methods of torch that compute each element by itself.
_EACH = frozenset(
    {"maximum", "minimum", "clamp", "clamp_min", "clamp_max", "clip", "abs", "exp", "log", "sqrt", "rsqrt", "square", "pow", "relu", "sigmoid"}
    | {"tanh", "where", "float", "double", "long", "int", "bool", "logical_and", "logical_or", "logical_not", "add", "sub", "mul", "div", "eq"}
    | {"ne", "lt", "le", "gt", "ge", "neg", "sin", "cos", "floor", "ceil", "round", "sign", "contiguous", "detach", "clone", "to", "type_as"}
)  # fmt: skip
# Two tensors as arguments are compared element by element; with a dimension, or nothing, they are not.
_PAIRED = frozenset({"max", "min"})
# What works along the dimension that it is given.
_ALONG = frozenset({"sum", "prod", "mean", "amax", "amin", "norm", "any", "all", "unsqueeze", "squeeze"})
_DEPTH = 3


@dataclass
class RowByRow:
    """Tells of expressions whether their first dimension is that of the rows in `names` and each row hangs on its own row alone.

    `ranks` are the dimensions of what the names hold, where they are known. `places` are those names that hold the numbers of rows.
    """

    kinds: Kinds
    names: set[str]
    ranks: dict[str, int | None] = field(default_factory=dict)
    functions: Mapping[str, ast.FunctionDef] = field(default_factory=dict)
    places: set[str] = field(default_factory=set)
    depth: int = 0

    def bind(self, statement: ast.stmt) -> bool:
        """Follow what `statement` binds; false where it mixes rows or does more."""
        if not (reads(statement) & self.names):
            for each in (one for one in ast.walk(statement) if isinstance(one, ast.Name)):
                if not isinstance(each.ctx, ast.Load):
                    self.names.discard(each.id)
            return True
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target, value = statement.targets[0], statement.value
        if (
            isinstance(target, ast.Tuple)
            and isinstance(value, ast.Tuple)
            and len(target.elts) == len(value.elts)
        ):
            pairs = list(zip(target.elts, value.elts, strict=True))
        else:
            pairs = [(target, value)]
        told = [
            (one, self.of(each), self.rank(each), isinstance(each, ast.Name) and each.id in self.places)
            for one, each in pairs
        ]
        for one, rows, rank, places in told:
            if rows is None or not isinstance(one, ast.Name):
                return False
            self.names.discard(one.id)
            self.places.discard(one.id)
            if places:
                self.places.add(one.id)
            if rows:
                self.names.add(one.id)
                self.ranks[one.id] = rank
        return True

    def of(self, node: ast.expr) -> bool | None:
        """True for rows, False for what no rows are in, None where rows are mixed or it is not known."""
        if not reads(node) & self.names:
            return False
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.UnaryOp):
            return self.of(node.operand)
        if isinstance(node, ast.BinOp):
            return None if isinstance(node.op, ast.MatMult) else self._of_all([node.left, node.right])
        if isinstance(node, ast.Compare):
            plain = not any(isinstance(each, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for each in node.ops)
            return self._of_all([node.left, *node.comparators]) if plain and len(node.ops) == 1 else None
        if isinstance(node, ast.Subscript):
            return self._of_item(node)
        return self._of_call(node) if isinstance(node, ast.Call) else None

    def rank(self, node: ast.expr) -> int | None:
        if isinstance(node, ast.Name) and node.id in self.names:
            return self.ranks.get(node.id)
        if isinstance(node, ast.Subscript) and self.of(node):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            whole = self.rank(node.value) if self.of(node.value) else self.kinds.of(node.value).rank
            slices = sum(isinstance(each, ast.Slice) for each in parts)
            if any(isinstance(each, ast.Constant) and each.value is None for each in parts):
                return None
            return None if whole is None else whole - len(parts) + slices + (0 if self.of(node.value) else 1)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            inner = node.func.value if self.of(node.func.value) else None
            rank = None if inner is None else self.rank(inner)
            if name in _EACH:
                return rank
            return rank - 1 if rank is not None and name in _ALONG - {"unsqueeze", "squeeze"} else None
        if isinstance(node, (ast.BinOp, ast.Compare)):
            sides = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
            ranks = [self.rank(each) if self.of(each) else self.kinds.of(each).rank or 0 for each in sides]
            return None if None in ranks else max(each for each in ranks if each is not None)
        return None

    def _of_all(self, nodes: list[ast.expr]) -> bool | None:
        """Of what is computed element by element. What has no rows of its own is spread over them."""
        found = [self.of(each) for each in nodes]
        return None if None in found else any(found)

    def _of_item(self, node: ast.Subscript) -> bool | None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(each, ast.Starred) for each in parts):
            return None
        if self.of(node.value) is False:
            # `boxes[rest]` and `boxes[rest, 0]`; a mask would pick other rows.
            others = [each for each in parts[1:] if not isinstance(each, (ast.Slice, ast.Constant))]
            first = self.of(parts[0]) if not isinstance(parts[0], ast.Slice) else None
            numbers = isinstance(parts[0], ast.Name) and parts[0].id in self.places
            return True if first and numbers and not others else None
        if self.of(node.value) is None:
            return None
        whole = isinstance(parts[0], ast.Slice) and not any((parts[0].lower, parts[0].upper, parts[0].step))
        dots = isinstance(parts[0], ast.Constant) and parts[0].value is Ellipsis
        behind = all(isinstance(each, (ast.Constant, ast.Slice)) for each in parts[1:])
        if dots:
            rank = self.rank(node.value)
            return True if behind and rank is not None and rank >= len(parts) else None
        return True if whole and behind else None

    def _of_call(self, node: ast.Call) -> bool | None:
        if any(isinstance(each, ast.Starred) for each in node.args):
            return None
        function = self.functions.get(dotted(node.func) or "")
        if function is not None:
            return self._of_function(function, node)
        name = str(dotted(node.func) or getattr(node.func, "attr", "")).rpartition(".")[2]
        qualified = self.kinds.qualified(node.func) or ""
        if qualified.startswith("torch."):
            given = list(node.args)
        elif isinstance(node.func, ast.Attribute) and self.of(node.func.value) is not None:
            given = [node.func.value, *node.args]
        else:
            return None
        named = [
            each.value for each in node.keywords if each.arg not in ("min", "max", "dtype", "other", "device")
        ]
        if name in _PAIRED and len(given) == 2 and not node.keywords:
            both = [self.of(each) for each in given]
            paired = all(both) or (
                any(both) and None not in both and self.kinds.of(given[both.index(False)]).what == "tensor"
            )
            return True if paired else None
        if name in _EACH and not named:
            return self._of_all(
                [*given, *(each.value for each in node.keywords if each.arg in ("min", "max", "other"))]
            )
        if name in _ALONG:
            dims = [each.value for each in node.keywords if each.arg in ("dim", "axis")] + given[1:]
            rank = self.rank(given[0])
            return True if len(dims) == 1 and self._is_behind(dims[0], rank) and self.of(given[0]) else None
        return None

    def _is_behind(self, dim: ast.expr, rank: int | None) -> bool:
        """Whether `dim` is another dimension than the first."""
        try:
            at = ast.literal_eval(dim)
        except ValueError:
            return False
        if type(at) is not int:
            return False
        return at > 0 or (rank is not None and -rank < at < 0)

    def _of_function(self, function: ast.FunctionDef, call: ast.Call) -> bool | None:
        """Of what a function of the file gives, which binds names and returns."""
        names = [each.arg for each in function.args.args]
        if isinstance(call.func, ast.Attribute) and not any(
            ast.unparse(each) == "staticmethod" for each in function.decorator_list
        ):
            names = names[1:]
        if self.depth >= _DEPTH or call.keywords or len(call.args) > len(names):
            return None
        given = [self.of(each) for each in call.args]
        if None in given:
            return None
        inside = RowByRow(self.kinds.inside_of(function), set(), {}, self.functions, set(), self.depth + 1)
        for name, each, rows in zip(names, call.args, given, strict=False):
            if rows:
                inside.names.add(name)
                inside.ranks[name] = self.rank(each)
                if isinstance(each, ast.Name) and each.id in self.places:
                    inside.places.add(name)
            inside.kinds.names[name] = self.kinds.of(each)
        for statement in function.body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                continue
            if isinstance(statement, ast.Return):
                return None if statement.value is None else inside.of(statement.value)
            if not inside.bind(statement):
                return None
            inside.kinds.run([statement])
        return None
