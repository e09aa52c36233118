"""What calls give: kinds of the results of torch's functions, of layers and of Python's own."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from exportlens.inference import knowledge
from exportlens.inference.counted_uses import ATTRIBUTES_OF_TENSORS
from exportlens.inference.knowledge import Op
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Const, Instance, Named, Sequence, Tensor, TensorScalar
from exportlens.rewriting.code.infinity import infinity
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.kinds.function_kinds import (
    forward_of,
    method_of_module,
    module_called,
    of_control_flow,
    of_own,
)
from exportlens.rewriting.kinds.iterated import of_dict, of_iterating
from exportlens.rewriting.kinds.kind import (
    LOCAL,
    NUMPY,
    UNKNOWN_KIND,
    Kind,
    element_of,
    extreme,
    is_given,
    length_from_data,
    numbers,
    of_value,
    returned,
    union,
)
from exportlens.rewriting.kinds.made_objects import method_of, of_class
from exportlens.rewriting.memory.memory_layouts import (
    asks_for,
    leaves_gaps,
    lies_otherwise,
    may_begin_later,
    out_of_place,
    squeezes_another,
)

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds

_BUILTIN_STATIC = {"isinstance", "hasattr", "callable", "issubclass", "str", "repr", "type", "id"}

# Modules whose output may be their input, and modules that give several outputs (torch/nn/modules).
_MAY_PASS_THROUGH = (
    "Sequential",
    "Identity",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "Flatten",
    "Unflatten",
)

_SEVERAL_OUTPUTS = (
    "LSTM",
    "GRU",
    "RNN",
    "LSTMCell",
    "MultiheadAttention",
    "AdaptiveLogSoftmaxWithLoss",
    "ModuleList",
    "ModuleDict",
)

# Methods without arguments that tensors have and Modules have not.
_CASTS = {"bool": "bool", "long": "int64", "int": "int32", "byte": "uint8", "short": "int16"}

# What torch.full makes of a number: of a float what the default dtype is, which is some float dtype.
_OF_NUMBER = {"int": "int64", "bool": "bool", "float": "float"}

_CONTROL_FLOW = {
    "torch.cond",
    "torch.ops.higher_order.cond",
    "torch._higher_order_ops.cond",
    "functorch.experimental.control_flow.cond",
    "torch._higher_order_ops.while_loop",
    "torch.utils._pytree.tree_map",
}


# What of math gives no float.
_MATH_TYPES = {
    **dict.fromkeys(("floor", "ceil", "trunc", "isqrt", "gcd", "lcm", "comb", "perm", "factorial"), "int"),
    **dict.fromkeys(("isnan", "isinf", "isfinite", "isclose"), "bool"),
}


# What puts any number of tensors together, into one of their dtype.
_JOINING = frozenset({"torch.stack", "torch.cat"})


def of_call(kinds: Kinds, node: ast.Call) -> Kind:
    if kinds.results:
        known = kinds.results.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
        # A tensor has methods of its own by the same names: `self.norm(x)`, `x.norm()`.
        if known is not None and not _is_of_tensor(kinds, node.func):
            return known
    if dotted(node.func) in kinds.again:
        return kinds.itself
    own = kinds.functions.get(dotted(node.func) or "")
    if own is not None and getattr(node.func, "id", None) not in kinds.names:
        return of_own(kinds, own, node)
    made = of_class(kinds, node)
    if made is not None:
        return made
    name = kinds.qualified(node.func)
    if name is not None:
        if name in _CONTROL_FLOW:
            return of_control_flow(kinds, node)
        if name in ("torch.sym_max", "torch.sym_min"):
            return extreme([kinds.of(each) for each in node.args])
        if name == "torch.sym_sqrt":
            return Kind("scalar", type="float")
        if name.startswith("math.") and any(kinds.of(each).from_data for each in node.args):
            return Kind("scalar", type=_MATH_TYPES.get(name.removeprefix("math."), "float"))
        op = knowledge.lookup_function(name)
        if op is None and name.startswith("numpy."):
            return replace(UNKNOWN_KIND, type=NUMPY)
        return _of_op(kinds, op, node, None) if op is not None else UNKNOWN_KIND
    if isinstance(node.func, ast.Attribute):
        owner = kinds.of(node.func.value)
        if is_given(owner) and node.func.attr in ATTRIBUTES_OF_TENSORS:
            owner = replace(owner, what="tensor", value=None)
        if owner.what == "tensor":
            if length_from_data(owner) and _asks_length(node):
                return Kind("scalar", type="int")
            if node.func.attr == "new":
                # Memory of its own, of the same dtype.
                return Kind("tensor", owner.dtype)
            if node.func.attr == "tolist" and owner.rank in (None, 1):
                family = dtype_family(owner.dtype)
                item = TensorScalar(family if family in ("bool", "int", "float") else "", "a tensor")
                return Kind("container", value=Sequence("list", None, item))
            op = knowledge.lookup_method(node.func.attr)
            return _of_op(kinds, op, node, owner) if op is not None else UNKNOWN_KIND
        if node.func.attr in ("keys", "values", "items") and not node.args:
            parts = of_dict(owner, node.func.attr)
            if parts is not None:
                return parts
        method = method_of(kinds, owner, node.func.attr) if owner.what == "object" else None
        if method is not None:
            return of_own(kinds, method, node, owner=owner)
        called = module_called(kinds, node)
        method = method_of_module(kinds, *called) if called is not None else None
        if called is not None and method is not None:
            return of_own(kinds, method, node, called[0])
        if owner.what == "unknown" and node.func.attr in _CASTS and not node.args and not node.keywords:
            return Kind("tensor", _CASTS[node.func.attr], roots=owner.roots)
        if owner.what == "unknown" and owner.roots and node.func.attr != "clone":
            return replace(UNKNOWN_KIND, roots=owner.roots)
    callee = kinds.of(node.func)
    if isinstance(callee.value, Instance):
        return _of_module_call(kinds, callee.value, node)
    if isinstance(node.func, ast.Name) and node.func.id not in kinds.names:
        return _of_builtin(kinds, node.func.id, node)
    return UNKNOWN_KIND


def _is_of_tensor(kinds: Kinds, function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and kinds.of(function.value).what == "tensor"


# Methods that leave the rows of a tensor.
_KEEPING_ROWS = frozenset(
    {"to", "type", "long", "int", "float", "double", "half", "bool", "clone", "detach", "contiguous", "cpu", "cuda", "sigmoid",
     "softmax", "log_softmax", "abs", "exp", "log", "clamp", "relu", "tanh", "sqrt", "square", "pow", "neg"}
)  # fmt: skip


def _told(kind: Kind, facts: object) -> object:
    """What tells overloads apart: also that `kind` is a number, where it is not what a caller gives."""
    number = kind.what in ("size", "scalar") or (kind.what == "number" and kind.roots == frozenset())
    return knowledge.SOME_NUMBER if number and facts is knowledge.UNKNOWN else facts


def _of_op(kinds: Kinds, op: Op, node: ast.Call, receiver: Kind | None) -> Kind:
    given: list[Kind] = [] if receiver is None else [receiver]
    for each in node.args:
        if isinstance(each, ast.Starred):
            return returned(op.returns, _of_spread(kinds, op, node, given), None, None)
        given.append(kinds.of(each))
    keywords = {each.arg: kinds.of(each.value) for each in node.keywords if each.arg}
    facts = [kind.facts for kind in given]
    if op.name in _JOINING and given:
        facts[0] = _joined_facts(given[0])
    named = {key: kind.facts for key, kind in keywords.items()}
    op = op.match(
        [_told(*each) for each in zip(given, facts, strict=True)],
        {key: _told(kind, named[key]) for key, kind in keywords.items()},
    )
    bound = op.bind(facts, named)
    operands = op.bind(given, keywords)
    roots: frozenset[str] | None = frozenset()
    open_rows = op.dynamic_shape or (
        receiver is not None
        and length_from_data(receiver)
        and (op.name.rpartition(".")[2] in _KEEPING_ROWS or squeezes_another(op, node, receiver))
    )
    value = Tensor(unbacked=True) if open_rows else None
    if op.aliases and operands is not None and not out_of_place(op, operands):
        parts = [operands.get(op.params[index].name) for index in op.aliases if index < len(op.params)]
        flat = [
            part
            for each in parts
            for part in (each if isinstance(each, tuple) else (each,))
            if isinstance(part, Kind)
        ]
        # A view of memory that no name knows: the views share it among themselves.
        roots = union(flat)
        if roots == frozenset():
            roots = frozenset({f"{LOCAL}{next(numbers)}"})
    elif op.aliases and operands is None:
        roots = None
    elif op.returns.kind == "list" and (op.dynamic_shape or op.name == "torch.unravel_index"):
        # The indices that `nonzero(as_tuple=True)`, `where(condition)` and `unravel_index` give are columns of one tensor.
        roots = frozenset({f"{LOCAL}{next(numbers)}"})
    dtype = rank = None
    if bound is not None:
        dtype = knowledge.dtype_after(op.dtype, bound) or _float_after(kinds, op, given, named)
        if op.name.rpartition(".")[2] == "bincount" and "weights" not in (operands or {}):
            dtype = "int64"
        if dtype is None and op.name == "torch.full" and len(given) > 1 and "dtype" not in keywords:
            dtype = _OF_NUMBER.get(given[1].type) if given[1].what in ("number", "size", "scalar") else None
        rank = knowledge.rank_after(op.rank, bound)
        if (
            rank is None
            and op.name.startswith("torch.nn.functional.")
            and all(each.arg for each in node.keywords)
        ):
            rank = _loss_rank(op.name, bound)
    if dtype is None and op.name in _JOINING and given and element_of(given[0]).dtype == "float":
        dtype = "float"
    moved = asks_for(node, "channels_last") or (
        not asks_for(node, "contiguous_format") and lies_otherwise(op, rank, given)
    )
    parted = "memory_format" not in keywords and leaves_gaps(op, given, operands)
    later = bool(op.aliases) and (may_begin_later(op, operands) or any(each.later for each in given))
    whole = Kind("tensor", dtype, rank, roots, value=value, moved=moved, parted=parted, later=later)
    kind = returned(op.returns, whole, bound, op)
    if given and given[0].dtype == "uint8" and op.name.rpartition(".")[2] in ("any", "all"):
        # Of this dtype alone they give no bools.
        kind = replace(kind, dtype="uint8")
    if kind.what == "scalar" and not kind.type and given and given[0].dtype:
        # What `.item()` gives.
        kind = replace(kind, type=_python_type(given[0].dtype))
    return kind


def _joined_facts(kind: Kind) -> Any:
    """What is known of a list of tensors: where their number is not, one stands for all."""
    element = kind.value.element if isinstance(kind.value, Sequence) and kind.items is None else None
    return (of_value(element, "").facts,) if isinstance(element, Tensor) else kind.facts


# What takes sizes one by one, or dimensions, and nothing else that way.
_TAKES_SIZES = frozenset(
    {"view", "reshape", "expand", "permute", "repeat", "tile", "new_zeros", "new_ones", "new_empty", "zeros", "ones", "empty", "rand",
     "randn"}
)  # fmt: skip


def _of_spread(kinds: Kinds, op: Op, node: ast.Call, given: list[Kind]) -> Kind:
    """What an operation gives whose last arguments are spread, `x.view(n, *sizes)`, as far as `given`, those before, tell."""
    if op.name.rpartition(".")[2] not in _TAKES_SIZES or any(each.arg is None for each in node.keywords):
        return Kind("unknown", roots=None)
    keywords = {each.arg: kinds.of(each.value) for each in node.keywords if each.arg}
    if "out" in keywords or (op.aliases and not given):
        return Kind("unknown", roots=None)
    roots = given[0].roots if op.aliases else frozenset()
    if op.aliases and roots == frozenset():
        roots = frozenset({f"{LOCAL}{next(numbers)}"})
    named = {key: kind.facts for key, kind in keywords.items()}
    # The dtype is the same for any number of sizes.
    bound = op.bind([*(kind.facts for kind in given[:1] if kind.what == "tensor"), 1], named)
    return Kind(
        "tensor",
        None if bound is None else knowledge.dtype_after(op.dtype, bound),
        roots=roots,
        moved=lies_otherwise(op, None, given),
        parted=leaves_gaps(op, given, None),
        later=bool(op.aliases) and any(each.later for each in given),
    )


def _loss_rank(name: str, told: Mapping[str, object]) -> int | None:
    """0 where a loss of torch's gives the mean or the sum: it gives the mean unless it is told otherwise."""
    short = name.rpartition(".")[2]
    older = told.get("reduce"), told.get("size_average")
    if not short.endswith(("_loss", "Loss", "cross_entropy", "kl_div")) or older != (None, None):
        return None
    return 0 if told.get("reduction", "mean") in ("mean", "sum", "batchmean") else None


def _float_after(kinds: Kinds, op: Op, given: list[Kind], named: Mapping[str, object]) -> str | None:
    """The dtype of what an operation gives where that is the same for every float dtype of its inputs, "float" where
    it is one of them."""
    if any(kind.what == "tensor" and kind.dtype is None for kind in given):
        return _float_anyway(kinds, op, given, named)
    if not any(kind.what == "tensor" and kind.dtype == "float" for kind in given):
        return None
    found = set()
    for dtype in ("float32", "float64"):
        facts = [(replace(kind, dtype=dtype) if kind.dtype == "float" else kind).facts for kind in given]
        bound = op.bind(facts, named)
        found.add(None if bound is None else knowledge.dtype_after(op.dtype, bound))
    if len(found) == 1:
        return found.pop()
    return "float" if found == {"float32", "float64"} else None


def _float_anyway(kinds: Kinds, op: Op, given: list[Kind], named: Mapping[str, object]) -> str | None:
    """ "float" where an operation gives floats of tensors of any dtype, or takes no others."""
    if op.gives_floats:
        return "float"
    for dtype in ("float32", "float64", "int64", "bool"):
        facts = [
            (
                replace(kind, dtype=dtype)
                if kind.what == "tensor" and kind.dtype in (None, "float")
                else kind
            ).facts
            for kind in given
        ]
        bound = op.bind(facts, named)
        after = None if bound is None else knowledge.dtype_after(op.dtype, bound)
        if after is None or not after.startswith("float"):
            return None
    return "float"


def _of_module_call(kinds: Kinds, instance: Instance, node: ast.Call) -> Kind:
    if not isinstance(instance.cls, Named):
        forward = forward_of(kinds, instance)
        return UNKNOWN_KIND if forward is None else of_own(kinds, forward, node, instance)
    given = [kinds.of(each) for each in node.args]
    roots: frozenset[str] | None = frozenset()
    module = knowledge.lookup_module(instance.cls.name)
    if _may_pass_through(instance):
        roots = union(given)
    if module is None:
        if not instance.cls.name.startswith("torch.nn.") or instance.cls.name.endswith(_SEVERAL_OUTPUTS):
            return UNKNOWN_KIND
        return Kind("tensor", roots=roots)
    bound = module.forward.bind([kind.facts for kind in given], {})
    dtype = rank = None
    if bound is not None:
        dtype = knowledge.dtype_after(module.forward.dtype, bound)
        rank = knowledge.rank_after(module.forward.rank, bound)
    if dtype is None and module.forward.gives_floats:
        dtype = "float"
    if rank is None and instance.cls.name.startswith("torch.nn."):
        told = {
            key: value.value if isinstance(value, Const) else value
            for key, value in instance.arguments.items()
        }
        rank = _loss_rank(instance.cls.name, told)
    return returned(module.forward.returns, Kind("tensor", dtype, rank, roots), None, None)


def _may_pass_through(instance: Instance) -> bool:
    """Whether what `instance` gives may be the memory of what it is given."""
    if not isinstance(instance.cls, Named):
        return True
    held = instance.attributes.get("__items__")
    if instance.cls.name == "torch.nn.Sequential" and isinstance(held, Sequence) and held.items:
        modules = [each for each in held.items if isinstance(each, Instance)]
        return len(modules) < len(held.items) or all(map(_may_pass_through, modules))
    module = knowledge.lookup_module(instance.cls.name)
    if not instance.cls.name.startswith("torch.nn.") or instance.arguments.get("inplace") == Const(True):
        return True
    aliases = module is not None and bool(module.forward.aliases)
    return aliases or instance.cls.name.endswith(_MAY_PASS_THROUGH)


def _of_builtin(kinds: Kinds, name: str, node: ast.Call) -> Kind:
    given = [kinds.of(each) for each in node.args]
    data = any(kind.from_data for kind in given)
    infinite = infinity(node)
    if infinite is not None:
        return Kind("number", type=name, value=Const(infinite))
    if name in ("int", "float", "bool"):
        return (
            Kind("scalar" if data else "number", type=name)
            if given and given[0].what != "unknown"
            else UNKNOWN_KIND
        )
    if name == "len":
        return Kind("scalar" if given and length_from_data(given[0]) else "size", type="int")
    if name in ("any", "all") and len(node.args) == 1:
        element = element_of(given[0])
        if isinstance(node.args[0], (ast.GeneratorExp, ast.ListComp)):
            element = kinds.in_comprehension(node.args[0]).of(node.args[0].elt)
        return Kind("scalar", type="bool") if element.from_data else UNKNOWN_KIND
    absolute = knowledge.lookup_function("torch.abs") if name == "abs" else None
    if absolute is not None and [kind.what for kind in given] == ["tensor"]:
        # Python calls the tensor's own method.
        return _of_op(kinds, absolute, node, None)
    if name in ("abs", "max", "min", "round", "sum") and given:
        if data and all(kind.what in ("tensor", "number", "size") for kind in given):
            roots = union(given) if name in ("max", "min") else frozenset()
            alike = len(given) > 1 and all(kind.what == "tensor" for kind in given)
            dtypes, ranks = {kind.dtype for kind in given}, {kind.rank for kind in given}
            chosen = _float_beside_numbers(given) if name in ("max", "min") and not alike else None
            if chosen is not None:
                return Kind("tensor", chosen, 0, roots)
            # One of them is chosen: what they have in common it has.
            return Kind(
                "tensor",
                dtypes.pop() if alike and len(dtypes) == 1 else None,
                ranks.pop() if alike and len(ranks) == 1 else None,
                roots,
            )
        if name == "round" and given[0].what == "scalar" and len(node.args) == 1 and not node.keywords:
            return Kind("scalar", type="int")
        return extreme(given) if name in ("max", "min") else given[0]
    if name in ("getattr", "next"):
        return replace(UNKNOWN_KIND, roots=frozenset({f"?{next(numbers)}"}))
    if name in _BUILTIN_STATIC:
        return Kind(
            "number" if name in ("isinstance", "hasattr", "callable", "issubclass") else "static",
            type="bool",
        )
    if name == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Lambda):
        named = node.args[0].args
        if len(named.args) == 1 and not (
            named.vararg or named.kwarg or named.kwonlyargs or named.posonlyargs
        ):
            return kinds.each_of(ast.Name(named.args[0].arg, ast.Store()), node.args[0].body, given[1])
    if name in ("list", "tuple", "zip", "range", "enumerate", "reversed", "sorted", "dict"):
        return of_iterating(name, given)
    return UNKNOWN_KIND


def _float_beside_numbers(given: list[Kind]) -> str | None:
    """The dtype of the tensors without dimensions among which and numbers `min()` chooses: while tracing torch makes one of theirs."""
    tensors = [kind for kind in given if kind.what == "tensor"]
    dtypes = {kind.dtype or "" for kind in tensors}
    numbers = all(
        kind.what == "number" and kind.type in ("float", "int") for kind in given if kind not in tensors
    )
    fits = numbers and len(dtypes) == 1 and all(kind.rank == 0 for kind in tensors)
    # Of a float of an unknown width nothing is made.
    return next(
        (each for each in dtypes if fits and each.startswith(("float", "bfloat")) and each[-1].isdigit()),
        None,
    )


def _python_type(dtype: str) -> str:
    """The type of Python that an element of a tensor of `dtype` has."""
    if dtype.startswith(("float", "bfloat")):
        return "float"
    return "int" if dtype.startswith(("int", "uint")) else "bool" if dtype == "bool" else ""


def _asks_length(node: ast.Call) -> bool:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if name in ("numel", "nelement") and not node.args:
        return True
    return (
        name == "size"
        and len(node.args) == 1
        and isinstance(node.args[0], ast.Constant)
        and node.args[0].value == 0
    )
