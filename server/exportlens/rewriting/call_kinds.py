"""What calls give: kinds of the results of torch's functions, of layers and of Python's own."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from exportlens.inference import knowledge
from exportlens.inference.knowledge import Op
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import ClassValue, Const, Instance, Named, Sequence, Tensor, TensorScalar
from exportlens.rewriting.infinity import infinity
from exportlens.rewriting.iterated import of_iterating
from exportlens.rewriting.kind import (
    LOCAL,
    NUMPY,
    UNKNOWN_KIND,
    Kind,
    element_of,
    extreme,
    length_from_data,
    merged,
    numbers,
    returned,
    union,
)
from exportlens.rewriting.liveness import exits
from exportlens.rewriting.made_objects import method_of, of_class, without_value
from exportlens.rewriting.names import dotted

if TYPE_CHECKING:
    from exportlens.rewriting.kinds import Kinds

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


def of_call(kinds: Kinds, node: ast.Call) -> Kind:
    if kinds.results:
        known = kinds.results.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
        # A tensor has methods of its own by the same names: `self.norm(x)`, `x.norm()`.
        if known is not None and not _is_of_tensor(kinds, node.func):
            return known
    own = kinds.functions.get(dotted(node.func) or "")
    if own is not None and getattr(node.func, "id", None) not in kinds.names:
        return _of_own(kinds, own, node)
    made = of_class(kinds, node)
    if made is not None:
        return made
    name = kinds.qualified(node.func)
    if name is not None:
        if name in _CONTROL_FLOW:
            return _of_control_flow(kinds, node)
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
        method = method_of(kinds, owner, node.func.attr) if owner.what == "object" else None
        if method is not None:
            return _of_own(kinds, method, node, owner=owner)
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


def _of_own(
    kinds: Kinds,
    function: ast.FunctionDef,
    node: ast.Call,
    instance: Instance | None = None,
    owner: Kind | None = None,
) -> Kind:
    """What a function of the file, a method of the class or of another object `owner`, or the forward of another `instance`
    gives: tensors of which each way out says the same."""
    names = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    is_method = isinstance(node.func, ast.Attribute) or instance is not None
    static = any(ast.unparse(each) == "staticmethod" for each in function.decorator_list)
    if (function.decorator_list and not static) or any(isinstance(each, ast.Starred) for each in node.args):
        return UNKNOWN_KIND
    if "falls" in exits(function.body) or (is_method and not static and not names):
        # It may give None, or takes `self` in its own way.
        return UNKNOWN_KIND
    inside = kinds.inside_of(function)
    if is_method and not static:
        own = Kind("object", roots=None, value=instance) if instance is not None else owner
        if instance is not None and isinstance(instance.cls, ClassValue):
            inside.functions = {name: each for name, each in inside.functions.items() if "." not in name} | {
                f"self.{each.name}": each
                for each in instance.cls.node.body
                if isinstance(each, ast.FunctionDef) and each is not function
            }
        inside.names[names.pop(0)] = own or kinds.names.get("self", UNKNOWN_KIND)
    given = dict(zip(names, node.args, strict=False)) | {
        each.arg: each.value for each in node.keywords if each.arg is not None
    }
    memory: dict[str, frozenset[str] | None] = {}
    for name, value in given.items():
        # Whose memory it is, the caller knows.
        passed, token = kinds.of(value), f"?{next(numbers)}"
        made = passed.what == "tensor" and passed.fresh
        memory[token] = frozenset({f"{LOCAL}{next(numbers)}"}) if made else passed.roots
        inside.names[name] = replace(passed, roots=frozenset({token}))
    asked = [(name, inside.names[name]) for name in sorted(given)]
    key = (
        function,
        instance,
        owner.type if owner is not None else "",
        *(
            (name, each.what, each.dtype, each.rank, each.type, each.moved, each.parted, each.later)
            for name, each in asked
        ),
    )
    plain = all(each.items is None and each.what != "container" for _, each in asked)
    if plain and key in kinds.answers:
        kind, tokens = kinds.answers[key]
        memory = {token: memory[now] for token, (now,) in zip(tokens, _tokens(asked), strict=True)}
    else:
        found: list[Kind] = []
        inside.returns(function.body, found)
        kind = _given_back(found)
        if plain:
            kinds.answers[key] = kind, tuple(token for (token,) in _tokens(asked))
    owned = (dotted(node.func) or "").rpartition(".")[0] if instance is None else dotted(node.func)
    return _named_here(kind, memory, owned or "")


def _tokens(asked: list[tuple[str, Kind]]) -> list[frozenset[str]]:
    return [each.roots or frozenset() for _, each in asked]


def _named_here(kind: Kind, memory: dict[str, frozenset[str] | None], owned: str) -> Kind:
    """`kind`, which a function gives, with the names that its caller has for memory: `memory` of what the function was given,
    and of what it made, and `owned`, the path of its `self`."""
    items = None if kind.items is None else tuple(_named_here(each, memory, owned) for each in kind.items)
    if kind.what == "container" and items is not None:
        return replace(kind, roots=union(list(items)), items=items)
    if kind.what != "tensor" or not kind.roots:
        return kind
    roots: set[str] = set()
    for root in kind.roots:
        if root.startswith(LOCAL) and root not in memory:
            memory[root] = frozenset({f"{LOCAL}{next(numbers)}"})
        elif root.startswith("self.") and owned:
            memory[root] = frozenset({f"{owned}.{root.removeprefix('self.')}"})
        known = memory.get(root)
        if known is None:
            return replace(kind, roots=None)
        roots |= known
    return replace(kind, roots=frozenset(roots))


def _given_back(found: list[Kind]) -> Kind:
    """What is known of a result that is one of `found`. Memory that was made inside has no name any more, but where parts share it."""
    if found and all(each.what == "tensor" for each in found):
        roots = union(found)
        known = None if roots is None else frozenset(each for each in roots if not each.startswith(LOCAL))
        return replace(merged(found), roots=known)
    made = next((each for each in found if each.what == "object" and each.type.startswith("a ")), None)
    if made is not None:
        return without_value(made)
    rows = [each.items for each in found if each.what == "container" and each.items]
    if (
        not rows
        or len(rows) != len(found)
        or len({len(each) for each in rows}) != 1
        or len({each.keys for each in found}) != 1
    ):
        return UNKNOWN_KIND
    columns = [list(each) for each in zip(*rows, strict=True)]
    items = [_given_back(each) for each in columns]
    memory = [union(each) for each in columns]
    made_inside = [frozenset(root for root in each or () if root.startswith(LOCAL)) for each in memory]
    if None in memory or sum(map(len, made_inside)) != len(frozenset().union(*made_inside)):
        # Parts that share memory share what has no name here.
        shared = frozenset({f"{LOCAL}{next(numbers)}"})
        items = [
            replace(each, roots=shared) if each.fresh and each.what == "tensor" else each for each in items
        ]
    values = [each.value if isinstance(each.value, Sequence) else None for each in found]
    fields = {each.fields if each is not None else () for each in values}
    # Named tuples that are of one class as far as one can see.
    named = Sequence("tuple", None, fields=fields.pop()) if len(fields) == 1 and () not in fields else None
    return Kind("container", roots=union(items), items=tuple(items), keys=found[0].keys, value=named)


def _forward_of(kinds: Kinds, instance: Instance) -> ast.FunctionDef | None:
    """The `forward` of a class of the same file, where it is the class's own."""
    cls = instance.cls
    if not isinstance(cls, ClassValue) or all(cls.chunk is not each for each in kinds.around):
        return None
    return next(
        (each for each in cls.node.body if isinstance(each, ast.FunctionDef) and each.name == "forward"), None
    )


def own_function(kinds: Kinds, node: ast.Call) -> ast.FunctionDef | None:
    """The function of the file, the method of the class, or the forward of a Module of the file that `node` calls."""
    called = kinds.of(node.func).value
    if isinstance(called, Instance):
        return _forward_of(kinds, called)
    return kinds.functions.get(dotted(node.func) or "")


def _is_of_tensor(kinds: Kinds, function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and kinds.of(function.value).what == "tensor"


def _of_control_flow(kinds: Kinds, node: ast.Call) -> Kind:
    """The outputs of torch.cond and while_loop never share memory with anything."""
    if isinstance(node.func, ast.Attribute) and node.func.attr == "while_loop" and len(node.args) >= 3:
        carried = kinds.of(node.args[2])
        if carried.items is None:
            return UNKNOWN_KIND
        items = tuple(replace(each, roots=frozenset(), value=None) for each in carried.items)
        return replace(carried, items=items, roots=frozenset())
    if isinstance(node.func, ast.Attribute) and node.func.attr == "tree_map":
        # Both arms were run for what one of them gives.
        called = [each.func for each in node.args[1:] if isinstance(each, ast.Call) and not each.args]
        return (len(called) == 2 and len(node.args) == 3 and _of_arms(kinds, called)) or UNKNOWN_KIND
    if len(node.args) >= 3 and isinstance(node.args[1], ast.Lambda):
        return replace(kinds.of(node.args[1].body), roots=frozenset())
    if len(node.args) == 4 and isinstance(node.args[3], ast.Tuple) and not node.args[3].elts:
        return _of_arms(kinds, node.args[1:3]) or Kind("tensor")
    return UNKNOWN_KIND if not node.args else Kind("tensor")


def _of_arms(kinds: Kinds, arms: list[ast.expr]) -> Kind | None:
    """What functions of the same code give that take in nothing; None where that is not seen."""
    found: list[Kind] = []
    for each in arms:
        arm = kinds.arms.get(each.id) if isinstance(each, ast.Name) else None
        if arm is None or kinds.names.get(arm.name, UNKNOWN_KIND).what != "object":
            return None
        given = [*arm.args.posonlyargs, *arm.args.args]
        if len(given) != len(arm.args.defaults) or arm.args.kwonlyargs or arm.decorator_list:
            return None
        inside = kinds.copy()
        for name, default in zip(given, arm.args.defaults, strict=True):
            inside.names[name.arg] = kinds.of(default)
        inside.returns(arm.body, found)
    if not found:
        return None
    if all(each.what == "container" and each.items is not None for each in found):
        columns = [each.items or () for each in found]
        if len({len(each) for each in columns}) == 1:
            items = tuple(_out_of_arms([*column]) for column in zip(*columns, strict=True))
            return Kind("container", items=items)
    return _out_of_arms(found)


def _out_of_arms(kinds: list[Kind]) -> Kind:
    """An output of torch.cond that is one of `kinds`, depending on the way taken: memory of its own."""
    if all(each.what == "tensor" for each in kinds):
        return replace(merged(kinds), roots=frozenset(), value=None, parted=False, later=False)
    if all(each.what in ("number", "size", "scalar") and each.type == "int" for each in kinds):
        return Kind("scalar", type="int")
    return Kind("tensor")


# Methods that leave the rows of a tensor.
_KEEPING_ROWS = frozenset(
    {"to", "type", "long", "int", "float", "double", "half", "bool", "clone", "detach", "contiguous", "cpu", "cuda", "sigmoid",
     "softmax", "log_softmax", "abs", "exp", "log", "clamp", "relu", "tanh", "sqrt", "square", "pow", "neg"}
)  # fmt: skip


def _of_op(kinds: Kinds, op: Op, node: ast.Call, receiver: Kind | None) -> Kind:
    given: list[Kind] = [] if receiver is None else [receiver]
    for each in node.args:
        if isinstance(each, ast.Starred):
            return returned(op.returns, Kind("unknown", roots=None), None, None)
        given.append(kinds.of(each))
    keywords = {each.arg: kinds.of(each.value) for each in node.keywords if each.arg}
    facts = [kind.facts for kind in given]
    named = {key: kind.facts for key, kind in keywords.items()}
    op = op.match(facts, named)
    bound = op.bind(facts, named)
    operands = op.bind(given, keywords)
    roots: frozenset[str] | None = frozenset()
    open_rows = op.dynamic_shape or (
        receiver is not None
        and length_from_data(receiver)
        and (op.name.rpartition(".")[2] in _KEEPING_ROWS or _squeezes_another(op, node, receiver))
    )
    value = Tensor(unbacked=True) if open_rows else None
    if op.aliases and operands is not None and not _out_of_place(op, operands):
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
    elif op.dynamic_shape and op.returns.kind == "list":
        # The indices that `nonzero(as_tuple=True)` and `where(condition)` give are columns of one tensor.
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
    moved = _asks_for(node, "channels_last") or (
        not _asks_for(node, "contiguous_format") and _lies_otherwise(op, rank, given)
    )
    parted = "memory_format" not in keywords and _leaves_gaps(op, given, operands)
    later = bool(op.aliases) and (_may_begin_later(op, operands) or any(each.later for each in given))
    whole = Kind("tensor", dtype, rank, roots, value=value, moved=moved, parted=parted, later=later)
    kind = returned(op.returns, whole, bound, op)
    if given and given[0].dtype == "uint8" and op.name.rpartition(".")[2] in ("any", "all"):
        # Of this dtype alone they give no bools.
        kind = replace(kind, dtype="uint8")
    if kind.what == "scalar" and not kind.type and given and given[0].dtype:
        # What `.item()` gives.
        kind = replace(kind, type=_python_type(given[0].dtype))
    return kind


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
        forward = _forward_of(kinds, instance)
        return UNKNOWN_KIND if forward is None else _of_own(kinds, forward, node, instance)
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
    if name in ("abs", "max", "min", "round", "sum") and given:
        if data and all(kind.what in ("tensor", "number", "size") for kind in given):
            roots = union(given) if name in ("max", "min") else frozenset()
            alike = len(given) > 1 and all(kind.what == "tensor" for kind in given)
            dtypes, ranks = {kind.dtype for kind in given}, {kind.rank for kind in given}
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


def _python_type(dtype: str) -> str:
    """The type of Python that an element of a tensor of `dtype` has."""
    if dtype.startswith(("float", "bfloat")):
        return "float"
    return "int" if dtype.startswith(("int", "uint")) else "bool" if dtype == "bool" else ""


def _out_of_place(op: Op, kinds: Mapping[str, object]) -> bool:
    """Whether an operation that writes its input where it is told to is not told so: it gives memory of its own.

    Dropout does not, it hands on its input outside of training.
    """
    if not op.mutates_when or any(each.name == "training" for each in op.params):
        return False
    told = kinds.get(op.mutates_when)
    return told is None or (
        isinstance(told, Kind) and isinstance(told.value, Const) and told.value.value is False
    )


# After these the dimensions of a tensor lie in memory in another order, or share it.
_MOVING = frozenset(
    {"t", "transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims", "adjoint", "expand", "expand_as", "broadcast_to"}
)  # fmt: skip
_IN_ORDER = frozenset({"contiguous", "reshape", "flatten", "reshape_as"})
# What LAPACK computes lies by columns (measured on torch 2.13).
_BY_COLUMNS = frozenset(
    {"cholesky", "cholesky_ex", "cholesky_inverse", "cholesky_solve", "eig", "eigh", "inv", "inv_ex", "inverse", "lstsq", "lu_solve",
     "matrix_power", "qr", "solve", "solve_ex", "solve_triangular", "svd", "tensorinv", "tensorsolve", "triangular_solve"}
)  # fmt: skip


def _lies_otherwise(op: Op, rank: int | None, given: list[Kind]) -> bool:
    """Whether the dimensions of what the call gives may lie in memory in another order than they have."""
    name = op.name.rpartition(".")[2]
    if name == "einsum" or name in _BY_COLUMNS:
        return True
    if name in _MOVING:
        return rank is None or rank > 1
    keeps = (
        op.pointwise
        or bool(op.aliases)
        or name in ("where", "clone", "zeros_like", "ones_like", "empty_like")
    )
    return keeps and name not in _IN_ORDER and any(each.moved for each in given)


def _asks_for(node: ast.Call, order: str) -> bool:
    """Whether the call asks for its result in this order in memory."""
    return any(
        each.arg == "memory_format" and (dotted(each.value) or "").rpartition(".")[2].startswith(order)
        for each in node.keywords
    )


# What gives a part of each row, where the dimension is not the first, and what does so at any.
_PARTS = frozenset({"select", "narrow", "chunk", "split", "tensor_split", "unbind"})
# What keeps the strides of a part where all that stands around it is of size 1, as in a batch of one (measured on torch 2.13).
_OF_ONE = frozenset(
    {"clone", "contiguous", "to", "type", "type_as", "float", "double", "half", "bfloat16", "long", "int", "bool", "short", "cpu",
     "cuda", "flip", "sort", "dropout", "nan_to_num", "hardtanh", "relu6", "prelu", "index_fill", "index_put", "pad"}
)  # fmt: skip
_GAPS = frozenset({"diagonal", "unfold", "expand", "expand_as", "broadcast_to"})


def _leaves_gaps(op: Op, given: list[Kind], operands: Mapping[str, object] | None) -> bool:
    """Whether there may be gaps between the elements of what the call gives."""
    name = op.name.rpartition(".")[2]
    if any(each.parted for each in given) and (name in _OF_ONE or name.endswith(("_", "_like"))):
        return True
    if not op.aliases or name in _IN_ORDER:
        return False
    if name in _GAPS or any(each.parted for each in given):
        return True
    dim = operands.get("dim") if operands is not None else None
    known = dim.value if isinstance(dim, Kind) else None
    return name in _PARTS and dim is not None and not (isinstance(known, Const) and known.value == 0)


def _may_begin_later(op: Op, operands: Mapping[str, object] | None) -> bool:
    """Whether the call gives a part of what it is given that may not begin where that begins."""
    name = op.name.rpartition(".")[2]
    first = (operands or {}).get({"select": "index", "narrow": "start"}.get(name, ""))
    known = first.value if isinstance(first, Kind) else None
    return name in (*_PARTS, "diagonal") and not (isinstance(known, Const) and known.value == 0)


def _squeezes_another(op: Op, node: ast.Call, receiver: Kind) -> bool:
    """Whether the call is `squeeze` of another dimension than the first."""
    if not op.name.endswith(".squeeze") or len(node.args) != 1 or receiver.rank is None:
        return False
    given = node.args[0]
    negative = isinstance(given, ast.UnaryOp) and isinstance(given.op, ast.USub)
    dim = given.operand if isinstance(given, ast.UnaryOp) else given
    if not isinstance(dim, ast.Constant) or type(dim.value) is not int:
        return False
    return 0 < (receiver.rank - dim.value if negative else dim.value) < receiver.rank


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
