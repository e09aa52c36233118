"""What code gives for a tensor that has no rows: operators that keep the first dimension, layers, and modules made of these give
what has no rows either, and nothing else happens."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from exportlens.inference.values import Instance, Named
from exportlens.inference.values import Sequence as Items
from exportlens.rewriting.code.names import arguments, reads
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.helper_writes import called_function, given_arguments

_DEEPEST = 4
# Functions and methods of the same names that give a tensor of the same shape.
_KEEPING = frozenset(
    {"abs", "bfloat16", "celu", "clamp", "clip", "clone", "contiguous", "detach", "div", "double", "dropout", "elu", "erf", "exp",
     "float", "gelu", "half", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log", "log_softmax", "logsigmoid", "mish", "mul",
     "neg", "normalize", "pow", "relu", "relu6", "rsqrt", "selu", "sigmoid", "silu", "softmax", "softplus", "sqrt", "square", "tanh",
     "to", "type", "type_as", "add", "sub"}
)  # fmt: skip
_IN_PLACE = frozenset({"add_", "clamp_", "div_", "mul_", "relu_", "sub_"})
# Layers that do as much for each row, for none as well.
_LAYERS = frozenset(
    {"CELU", "Dropout", "ELU", "Embedding", "GELU", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LayerNorm", "LeakyReLU",
     "Linear", "LogSigmoid", "Mish", "RMSNorm", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softplus", "Tanh"}
)  # fmt: skip
# Without arguments of rows, these do nothing but ask, or look at a tensor otherwise.
_ASKING = frozenset(
    {"arange", "dim", "flatten", "len", "numel", "permute", "range", "reshape", "size", "transpose", "unsqueeze", "view"}
)  # fmt: skip
# What of a tensor without rows is as of any other.
_ALWAYS = frozenset({"device", "dtype"})
NONE, ALWAYS = True, False


class NoRows:
    """Tells of expressions whether they have no rows (NONE), are what they always are (ALWAYS), or are neither for certain (None).

    `names` are the names that have no rows, or of which nothing is known; `empty` the slices that take nothing, each as the texts of
    its bounds.
    """

    def __init__(
        self, kinds: Kinds, names: Mapping[str, bool | None], empty: set[tuple[str, str]] | None = None
    ) -> None:
        self.kinds, self.names, self.empty = kinds, dict(names), empty or set()

    def of(self, node: ast.expr) -> bool | None:
        if isinstance(node, ast.Subscript) and self.is_empty(node.slice):
            return NONE if self._is_as_always(node.value) else None
        if self._is_as_always(node):
            return ALWAYS
        method = getattr(self, f"_of_{type(node).__name__}", None)
        found: bool | None = method(node) if method else None
        return found

    def is_empty(self, index: ast.expr) -> bool:
        """Whether `index` is a slice that takes nothing of the first dimension."""
        first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
        if (
            not isinstance(first, ast.Slice)
            or first.lower is None
            or first.upper is None
            or first.step is not None
        ):
            return False
        return (ast.unparse(first.lower), ast.unparse(first.upper)) in self.empty

    def picks_none(self, index: ast.expr) -> bool:
        """Whether what `index` takes of a tensor has no elements."""
        first = index.elts[0] if isinstance(index, ast.Tuple) and index.elts else index
        return self.is_empty(index) or self.of(first) is NONE

    def _is_as_always(self, node: ast.expr) -> bool:
        inside = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        if any(ast.unparse(each.func).rpartition(".")[2] not in _ASKING for each in inside):
            return False
        if any(isinstance(each, ast.Subscript) and self.is_empty(each.slice) for each in ast.walk(node)):
            return False
        return all(self.names.get(name, ALWAYS) is ALWAYS for name in reads(node))

    def _of_Name(self, node: ast.Name) -> bool | None:
        return self.names.get(node.id, ALWAYS)

    def _of_Attribute(self, node: ast.Attribute) -> bool | None:
        return ALWAYS if node.attr in _ALWAYS else None

    def _of_UnaryOp(self, node: ast.UnaryOp) -> bool | None:
        return self.of(node.operand)

    def _of_BinOp(self, node: ast.BinOp) -> bool | None:
        left, right = self.of(node.left), self.of(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.MatMult):
            return NONE if left is NONE and right is ALWAYS and self._rank(node.right) == 2 else None
        return NONE if all(self._spreads(each) for each in (node.left, node.right)) else None

    def _spreads(self, node: ast.expr) -> bool:
        """Whether `node` leaves the first dimension of what it is combined with as it is."""
        return self.of(node) is NONE or self._rank(node) in (0, 1)

    def _rank(self, node: ast.expr) -> int | None:
        kind = self.kinds.of(node)
        return 0 if kind.what in ("number", "size", "scalar") else kind.rank

    def _of_Subscript(self, node: ast.Subscript) -> bool | None:
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            # How many columns there are does not hang on the rows.
            return ALWAYS if ast.unparse(node.slice) in ("1", "2", "-1") else None
        owner = self.of(node.value)
        if owner is ALWAYS:
            return NONE if self.of(parts[0]) is NONE and None not in map(self._of_part, parts) else None
        whole = isinstance(parts[0], ast.Slice) and ast.unparse(parts[0]) == ":"
        return NONE if owner is NONE and whole and all(map(self._is_as_always, parts)) else None

    def _of_part(self, node: ast.expr) -> bool | None:
        return ALWAYS if isinstance(node, (ast.Slice, ast.Constant)) else self.of(node)

    # --- calls -------------------------------------------------------------------------------------------------

    def _of_Call(self, node: ast.Call) -> bool | None:
        given = [*node.args, *(key.value for key in node.keywords)]
        if any(isinstance(each, ast.Starred) for each in node.args) or any(
            key.arg is None for key in node.keywords
        ):
            return None
        kinds = [self.of(each) for each in given]
        name = self.kinds.qualified(node.func) or ""
        if name.startswith("torch."):
            return self._of_function(name, node, kinds)
        layer = self.kinds.of(node.func).value
        if isinstance(layer, Instance) and isinstance(layer.cls, Named):
            return NONE if kinds[:1] == [NONE] and None not in kinds and is_rowwise(layer) else None
        function, instance = called_function(node, self.kinds)
        if function is not None:
            return self._of_own(node, function, instance)
        return self._of_method(node, kinds) if isinstance(node.func, ast.Attribute) else None

    def _of_function(self, name: str, node: ast.Call, kinds: Sequence[bool | None]) -> bool | None:
        short = name.rpartition(".")[2]
        if kinds[:1] != [NONE] or None in kinds:
            return None
        if short in _KEEPING:
            return NONE if all(self._spreads(each) for each in node.args) else None
        if short == "linear":
            return NONE if NONE not in kinds[1:] else None
        return NONE if short in ("chunk", "split") and self._is_behind(node, node.args[2:3]) else None

    def _of_method(self, node: ast.Call, kinds: Sequence[bool | None]) -> bool | None:
        assert isinstance(node.func, ast.Attribute)
        name, owner = node.func.attr, self.of(node.func.value)
        if owner is ALWAYS and name == "index_select" and len(kinds) == 2:
            return NONE if ast.unparse(node.args[0]) == "0" and kinds[1] is NONE else None
        if owner is not NONE or None in kinds:
            return None
        if name == "size" and ast.unparse(node).endswith((".size(-1)", ".size(1)")):
            return ALWAYS
        if name in _KEEPING or name in _IN_PLACE:
            texts = name in ("to", "type", "type_as", "pow")
            return NONE if texts or all(self._spreads(each) for each in node.args) else None
        first = ast.unparse(node.args[0]) if node.args else ""
        if NONE in kinds:
            return None
        if name in ("view", "reshape"):
            return NONE if first == "-1" and len(node.args) > 1 else None
        if name == "unsqueeze":
            return NONE if first in ("-1", "1", "2") else None
        if name in ("repeat", "expand"):
            inner = node.func.value
            shaped = isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith(
                (".view", ".reshape", ".unsqueeze")
            )
            return NONE if shaped and first == ("1" if name == "repeat" else "-1") else None
        return NONE if name in ("chunk", "split") and self._is_behind(node, node.args[1:2]) else None

    def _is_behind(self, node: ast.Call, given: Sequence[ast.expr]) -> bool:
        """Whether `node` works along another dimension than the first."""
        along = [key.value for key in node.keywords if key.arg == "dim"] or list(given)
        return bool(along) and ast.unparse(along[0]) in ("-1", "1", "2")

    def _of_own(self, call: ast.Call, function: ast.FunctionDef, instance: Instance | None) -> bool | None:
        """What a function or module of the workspace gives."""
        if self.kinds.depth >= _DEEPEST:
            return None
        given = given_arguments(call, function, instance is not None)
        inside = self.kinds.inside_of(function)
        if instance is not None:
            inside.names["self"] = Kind("object", roots=None, value=instance)
        own = NoRows(inside, {name: self.of(value) for name, value in given.items()})
        named = [each for each in arguments(function.args) if each.arg in given]
        for each in named:
            inside.names[each.arg] = self.kinds.of(given[each.arg])
        if len(named) != len(call.args) + len(call.keywords):
            return None
        found, falls = own._of_body(function.body)
        return found[0] if not falls and len(set(found)) == 1 else None

    def _of_body(self, statements: Sequence[ast.stmt]) -> tuple[list[bool | None], bool]:
        """What the function of `statements` may return there, with None where they do more than bind names and return, and
        whether it may go on behind them."""
        found: list[bool | None] = []
        for each in statements:
            if isinstance(each, ast.Return):
                return [*found, None if each.value is None else self.of(each.value)], False
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                continue
            if isinstance(each, ast.If) and self._is_as_always(each.test):
                before = dict(self.names)
                first, one = self._of_body(each.body)
                ends = dict(self.names)
                self.names = before
                second, another = self._of_body(each.orelse)
                found += [*first, *second]
                if not one and not another:
                    return found, False
                if one and another:
                    same = self.names.keys() & ends.keys()
                    both = {
                        name: self.names[name] if self.names[name] == ends[name] else None for name in same
                    }
                    self.names = dict.fromkeys(self.names.keys() | ends.keys()) | both
                elif one:
                    self.names = ends
                self.kinds.run([each])
                continue
            if not isinstance(each, ast.Assign) or not self.bind(each):
                return [None], False
            self.kinds.run([each])
        return found, True

    def bind(self, statement: ast.Assign) -> bool:
        """Follow what `statement` binds to names; false where that is not known."""
        value = self.of(statement.value)
        names = [
            one
            for target in statement.targets
            for one in (target.elts if isinstance(target, ast.Tuple) else [target])
        ]
        if value is None or not all(isinstance(each, ast.Name) for each in names):
            return False
        self.names |= {each.id: value for each in names if isinstance(each, ast.Name)}
        return True


def is_rowwise(layer: Instance) -> bool:
    """Whether the layer of torch does as much for each row, and is made of such where it holds others."""
    name = layer.cls.name if isinstance(layer.cls, Named) else ""
    if name == "torch.nn.Sequential":
        items = layer.attributes.get("__items__")
        return isinstance(items, Items) and all(
            isinstance(each, Instance) and is_rowwise(each) for each in items.items or (None,)
        )
    return name.startswith("torch.nn.") and name.rpartition(".")[2] in _LAYERS
