"""The fake kernel of a custom operator: what the operator computes itself, where torch can trace it; else empty tensors like the
first one that it takes, for the user to confirm."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.inference import knowledge
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import bound, dotted

# Functions of NumPy that give places: as many as there are items, or else.
_PLACES = frozenset({"argsort", "digitize", "searchsorted"})
# Methods and functions whose result mostly has another shape than what they are given.
_OF_ANOTHER_SHAPE = frozenset(
    {
        "all", "any", "argmax", "argmin", "argwhere", "bincount", "concatenate", "concat", "convolve", "corrcoef", "cov", "cross", "diff",
        "dot", "einsum", "flatnonzero", "hstack", "histogram", "inner", "interp", "kron", "matmul", "max", "mean", "median", "min", "nonzero",
        "outer", "pad", "percentile", "prod", "quantile", "ravel", "repeat", "reshape", "resize", "squeeze", "stack", "std", "sum", "swapaxes",
        "take", "tensordot", "tile", "transpose", "unique", "var", "vstack", "where", "zoom",
    }
)  # fmt: skip
# Those that take one dimension away where they are told which: behind `stack`, the one that it made.
_REDUCING = frozenset({"max", "mean", "median", "min", "prod", "std", "sum", "var"})
_PLAIN = frozenset({"abs", "len", "list", "max", "min", "range", "reversed", "sum", "tuple", "zip"})
_LEAVING_TORCH = frozenset({"numpy", "item", "tolist", "data_ptr", "__array__"})
_STATEMENTS = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Return)


def fake_kernel(draft: Draft, node: ast.FunctionDef, head: str, first: str, count: int) -> list[str]:
    """The lines of the fake kernel of `node`, which takes the tensor `first` and gives `count` tensors. Raises Refused."""
    unit = draft.source.indent_unit()
    lines = [f"@{node.name}.register_fake", head]
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if _is_traced(draft, body):
        # Without data, what is computed still has its shape and dtype.
        return [
            *lines,
            f"{unit}# The same as the operator: without data, its shapes and dtypes come of it.",
            draft.source.block(body, unit),
        ]
    given = "The result has" if count == 1 else "Each result has"
    made = [_empty(draft, node, each, first) for each in _results(body, count)]
    return [
        *lines,
        f"{unit}# {given} the shape and dtype of `{first}`: change this where that is not so."
        if len(set(made)) == 1 and made[0].endswith(f"({first})")
        else f"{unit}# {given} the shape of `{first}`: change this where that is not so.",
        f"{unit}return {', '.join(made)}",
    ]


def _results(body: Sequence[ast.stmt], count: int) -> list[ast.expr | None]:
    """What the operator returns, one by one; None for what is not written out."""
    returned = [
        each.value for statement in body for each in ast.walk(statement) if isinstance(each, ast.Return)
    ]
    only = returned[0] if len(returned) == 1 else None
    if count == 1:
        return [only]
    parts = only.elts if isinstance(only, ast.Tuple) and len(only.elts) == count else [None] * count
    return list(parts)


def _empty(draft: Draft, node: ast.FunctionDef, result: ast.expr | None, first: str) -> str:
    made = _made_by(node, result)
    if made in _OF_ANOTHER_SHAPE:
        raise Refused(
            f"`{made}` gives another shape than `{first}` has, as far as can be seen: write the fake kernel by hand"
        )
    dtype = f", dtype={draft.torch}.int64" if made in _PLACES else ""
    return f"{draft.torch}.empty_like({first}{dtype})"


def _made_by(node: ast.FunctionDef, result: ast.expr | None) -> str:
    """The last part of the name of what made `result`, conversions to tensors apart."""
    for _ in range(8):
        if isinstance(result, ast.Name):
            name = result.id
            made = [
                each.value
                for each in ast.walk(node)
                if isinstance(each, ast.Assign)
                and any(isinstance(target, ast.Name) and target.id == name for target in each.targets)
            ]
            result = made[0] if len(made) == 1 else None
        elif isinstance(result, ast.Call):
            called = result.func.attr if isinstance(result.func, ast.Attribute) else dotted(result.func) or ""
            if (
                called in ("from_numpy", "as_tensor", "tensor", "asarray", "ascontiguousarray")
                and result.args
            ):
                result = result.args[0]
            elif called in ("to", "contiguous", "copy", "clone", "type") and isinstance(
                result.func, ast.Attribute
            ):
                result = result.func.value
            else:
                return "" if _takes_stack_apart(called, result) else called
        else:
            return ""
    return ""


def _takes_stack_apart(called: str, call: ast.Call) -> bool:
    """`np.median(np.stack([a, b]), axis=0)`: of as many dimensions as what was stacked."""
    stacked = call.args[0] if call.args else None
    return (
        called in _REDUCING
        and isinstance(stacked, ast.Call)
        and (dotted(stacked.func) or "").rpartition(".")[2] == "stack"
        and [key.arg for key in call.keywords if key.arg in ("axis", "dim")] != []
    )


def _is_traced(draft: Draft, body: Sequence[ast.stmt]) -> bool:
    """Whether `body` only computes with torch's operators, in whatever order, and asks for no data."""
    if (
        not body
        or not isinstance(body[-1], ast.Return)
        or not all(isinstance(each, _STATEMENTS) for each in body)
    ):
        return False
    own = set(bound(body))
    for each in (node for statement in body for node in ast.walk(statement)):
        if isinstance(each, ast.Call) and not _is_operator(draft, each, own):
            return False
        if isinstance(each, ast.Subscript) and any(
            isinstance(part, ast.Compare) for part in ast.walk(each.slice)
        ):
            return False
        if isinstance(each, (ast.IfExp, ast.BoolOp, ast.Await, ast.Yield, ast.Lambda, ast.NamedExpr)):
            return False
        if isinstance(each, ast.Attribute) and each.attr in ("data", "grad"):
            return False
    return True


def _is_operator(draft: Draft, call: ast.Call, own: set[str]) -> bool:
    if isinstance(call.func, ast.Name):
        return call.func.id in _PLAIN and call.func.id not in own
    if not isinstance(call.func, ast.Attribute) or call.func.attr in _LEAVING_TORCH:
        return False
    head = (dotted(call.func) or "").partition(".")[0]
    is_function = head in draft.modules and head not in own
    look_up = knowledge.lookup_function if is_function else knowledge.lookup_method
    op = look_up(draft.qualified(call.func) if is_function else call.func.attr)
    return op is not None and not op.data_dependent and not op.dynamic_shape and op.returns.kind != "none"
