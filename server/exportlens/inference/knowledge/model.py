"""The words of the knowledge about torch: what an operator takes, gives back, changes and demands."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

T = TypeVar("T")


class Unknown(enum.Enum):
    """A value of which nothing is known; it matches every parameter type. Of SOME_NUMBER one thing is: it is no tensor."""

    UNKNOWN = enum.auto()
    SOME_NUMBER = enum.auto()

    def __repr__(self) -> str:
        return self.name


UNKNOWN = Unknown.UNKNOWN
SOME_NUMBER = Unknown.SOME_NUMBER


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What is known of a tensor argument: dtype name ("float32") and number of dimensions, None where
    unknown.
    """

    dtype: str | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter. `kind`: "positional" (or keyword), "keyword" (only), "var" (*args), "varkw" (**kwargs).

    `type` is a word: tensor, tensor[], int, int[], float, float[], bool, bool[], number, dtype, device,
    layout, memory_format, generator, str, true and false (that constant alone: it chooses an overload),
    any; with a trailing "?" where None is allowed; "int[n]" is a list for which torch takes a single int
    too. A `variadic` parameter is an integer list that may be spread over the call:
    `x.view(2, 3)` as well as `x.view((2, 3))`.
    """

    name: str
    kind: str = "positional"
    type: str = "any"
    default: str | None = None
    variadic: bool = False

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is None and self.kind in ("positional", "keyword")


@dataclass(frozen=True, slots=True)
class Returns:
    """What a call gives back.

    `kind`: "tensor", "tuple" (of `items`), "list" (of unknown length, every element as `items[0]`), "int",
    "float", "bool", "number", "size", "dtype", "device", "layout", "str", "none", "self" (the receiver
    itself), "any" (unknown). `dtype` and `rank` are rules (see rules.py) for "tensor"; None where no rule
    is known. `names` are the field names of a named tuple (`torch.max(x, 1).indices`).
    """

    kind: str
    items: tuple[Returns, ...] = ()
    names: tuple[str, ...] = ()
    dtype: str | None = None
    rank: str | None = None

    @property
    def is_tensor(self) -> bool:
        """One tensor, not a tuple of them."""
        return self.kind == "tensor"


@dataclass(frozen=True, slots=True)
class Condition:
    """When a note holds: `param` `test` `value`, e.g. num_classes == -1, repeats is tensor, input is float.

    `test` is "==" or "is". After "is" stand: tensor, list of tensors, int, float (for a tensor: its dtype's
    family; bool and complex likewise), None, given, missing. `param` "result" with "is used in control
    flow" says that only the use of the result in `if`, `while`, `range` and the like matters.
    """

    param: str
    test: str
    value: str

    def __str__(self) -> str:
        return f"{self.param} {self.test} {self.value}"


@dataclass(frozen=True, slots=True)
class ExportNote:
    """What torch.export really did with a call, measured in both modes.

    `strict` and `non_strict` are "ok", "fails", "wrong" (exports, but the program's result differs from
    eager or is no real tensor) or "frozen" (the program repeats what was drawn or read while tracing). All
    of `when` must hold; empty: the typical call. `call` is the measured source text; `error` torch's first
    words where it failed.
    """

    strict: str
    non_strict: str
    when: tuple[Condition, ...] = ()
    call: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Op:
    """One overload of a torch callable, and through `overloads` its siblings (itself included).

    `mutates` and `aliases` are indexes into `params` (0 is the receiver of a method): arguments that the call
    writes to, and arguments whose memory the result may share. `mutates_when` names the argument that must
    be true for the writing ("inplace", "max_norm"; "" where it always happens). What is given for `out` is
    written to as well.
    `data_dependent`: the result is a Python value read from tensor data (item, equal, tolist).
    `dynamic_shape`: the shape of the result depends on tensor data (nonzero, unique).
    `reads_data`: the call itself reads tensor data on the way, for some arguments at least, and decides by
    it.
    `data_when`: the condition under which `dynamic_shape` and `reads_data` hold (`num_classes == -1`);
    None: always, or it is not known when.
    `gives_floats`: it gives floats whatever dtype its arguments have, unless they are complex or it is told another dtype.
    `random`: it draws from torch's generator, for some arguments at least (dropout while training).
    """

    name: str
    params: tuple[Param, ...]
    returns: Returns
    data_dependent: bool = False
    dynamic_shape: bool = False
    reads_data: bool = False
    random: bool = False
    pointwise: bool = False
    gives_floats: bool = False
    mutates: tuple[int, ...] = ()
    mutates_when: str = ""
    aliases: tuple[int, ...] = ()
    data_when: Condition | None = None
    exports: tuple[ExportNote, ...] = ()
    overloads: tuple[Op, ...] = field(default=(), repr=False, compare=False)

    @property
    def dtype(self) -> str | None:
        """The dtype rule of the (first) tensor that comes back."""
        return _first_tensor(self.returns).dtype

    @property
    def rank(self) -> str | None:
        """The rank rule of the (first) tensor that comes back."""
        return _first_tensor(self.returns).rank

    @property
    def export(self) -> ExportNote | None:
        """What was measured for the typical call; None where it was not measured."""
        return next((note for note in self.exports if not note.when), None)

    def holds(self, condition: Condition, bound: Mapping[str, object]) -> bool | None:
        """Whether a condition on a parameter holds for a bound call; None where the call does not tell."""
        default = next((param.default for param in self.params if param.name == condition.param), None)
        return _holds(condition, bound.get(condition.param, _MISSING), default)

    def returned(self, bound: Mapping[str, object]) -> Returns:
        """What this very call gives back: pooling that is asked for its indices gives them beside the result."""
        if self.returns.kind != "tensor" or bound.get("return_indices") is not True:
            return self.returns
        indices = Returns("tensor", dtype="=int64", rank=self.returns.rank)
        return Returns("tuple", (self.returns, indices))

    def bind(self, args: Sequence[T], keywords: Mapping[str, T]) -> dict[str, T | tuple[T, ...]] | None:
        """Arguments by parameter name, or None where the call does not fit the signature.

        What a variadic or `*` parameter takes is a tuple. NumPy's names (axis, keepdims) are understood as
        torch does.
        """
        return _bind(self.params, args, keywords)

    def match(self, args: Sequence[object], keywords: Mapping[str, object]) -> Op:
        """The overload that torch would choose; `self` where none fits better.

        Arguments are `TensorFacts`, Python constants, tuples/lists of these, SOME_NUMBER or UNKNOWN.
        """
        for op in self.overloads:
            bound = op.bind(args, keywords)
            if bound is not None and all(
                _fits(param, bound[param.name]) for param in op.params if param.name in bound
            ):
                return op
        for op in self.overloads:
            if op.bind(args, keywords) is not None:
                return op
        return self


@dataclass(frozen=True, slots=True)
class Property:
    """A Tensor attribute: what reading it gives, whether it shares the tensor's memory, and what export
    does with it.
    """

    name: str
    returns: Returns
    alias: bool = False
    exports: tuple[ExportNote, ...] = ()


@dataclass(frozen=True, slots=True)
class StateEntry:
    """A parameter, buffer or submodule that a module's constructor makes.

    `conditions` are the constructor arguments that must all be true for it (("affine",); empty when it is
    always there): otherwise the attribute is None. `type` is "parameter", "buffer", or the qualified class
    of a submodule.
    `name` may end in "*": LSTM's weight_ih_l0, weight_ih_l1, ... depend on the arguments.
    """

    name: str
    type: str
    conditions: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The first of `conditions`, "" where there is none."""
        return self.conditions[0] if self.conditions else ""


@dataclass(frozen=True, slots=True)
class ModuleKnowledge:
    """A class of torch.nn: constructor, state, and what `forward` takes and gives.

    `attributes` are the constructor arguments that are kept under their own name (`self.in_features`).
    `forward` has no receiver among its parameters. `alternatives`: what forward gives instead where a
    constructor argument says so (return_indices == True). `exports` was measured in eval mode.
    """

    name: str
    params: tuple[Param, ...]
    state: tuple[StateEntry, ...]
    attributes: tuple[str, ...]
    forward: Op
    alternatives: tuple[tuple[Condition, Returns], ...] = ()

    @property
    def exports(self) -> tuple[ExportNote, ...]:
        """What torch.export did with an instance in eval mode."""
        return self.forward.exports

    def bind(self, args: Sequence[T], keywords: Mapping[str, T]) -> dict[str, T | tuple[T, ...]] | None:
        """Constructor arguments by parameter name, or None where they do not fit."""
        return _bind(self.params, args, keywords)


class EffectKind(enum.Enum):
    """What a call outside torch does that tracing cannot see or must not repeat."""

    RANDOM = "random"
    SEED = "seed"
    CLOCK = "clock"
    IDENTITY = "identity"
    READS_WORLD = "reads-world"
    WRITES_WORLD = "writes-world"
    LOGS = "logs"
    WARNS = "warns"
    COPIES = "copies"
    CONCURRENCY = "concurrency"
    EXITS = "exits"
    SYNC = "sync"


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a call of `name`, the kind of value it returns (as in `Returns.kind`), and what export
    does with it.
    """

    name: str
    kind: EffectKind
    returns: str = "any"
    exports: tuple[ExportNote, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant(Generic[T]):
    """A constant of torch: `kind` dtype, device, layout, memory_format, float, bool, str, exception, class,
    none.
    """

    name: str
    kind: str
    value: T | None = None


def _first_tensor(returns: Returns) -> Returns:
    for item in (returns, *returns.items):
        if item.kind == "tensor":
            return item
    return returns


_MISSING = object()


def _holds(condition: Condition, value: object, default: str | None) -> bool | None:
    if condition.value in ("given", "missing"):
        return (value is _MISSING) == (condition.value == "missing")
    if value is UNKNOWN:
        return None
    if condition.test == "==":
        text = default if value is _MISSING else repr(value)
        return text == condition.value
    if value is _MISSING:
        return default == "None" if condition.value == "None" else False
    if isinstance(value, TensorFacts):
        if condition.value in ("tensor", "given"):
            return True
        families = {
            "int": ("int", "uint"),
            "float": ("float", "bfloat"),
            "bool": ("bool",),
            "complex": ("complex",),
        }
        if condition.value not in families:
            return False
        return None if value.dtype is None else value.dtype.startswith(families[condition.value])
    if condition.value == "None":
        return value is None
    if condition.value == "list of tensors":
        return _is_sequence(value) and any(isinstance(item, TensorFacts) for item in value)  # type: ignore[attr-defined]
    kinds: dict[str, type] = {"int": int, "float": float, "bool": bool}
    if condition.value in kinds:
        return type(value) is kinds[condition.value]
    return False if condition.value == "tensor" else None


# torch/csrc/utils/python_arg_parser.cpp, numpy_compatibility_arg_names
_NUMPY_NAMES = {
    "axis": "dim",
    "keepdims": "keepdim",
    "x": "input",
    "a": "input",
    "x1": "input",
    "x2": "other",
}


def _bind(
    params: tuple[Param, ...], args: Sequence[T], keywords: Mapping[str, T]
) -> dict[str, T | tuple[T, ...]] | None:
    bound: dict[str, T | tuple[T, ...]] = {}
    positional = [param for param in params if param.kind in ("positional", "var")]
    names = {param.name for param in params if param.kind in ("positional", "keyword")}
    takes_any = next((param for param in params if param.kind == "varkw"), None)
    index = 0
    for param in positional:
        if param.kind == "var":
            bound[param.name] = tuple(args[index:])
            index = len(args)
            break
        if index >= len(args):
            break
        rest = args[index:]
        if param.variadic and (len(rest) > 1 or not _is_sequence(rest[0])):
            bound[param.name] = rest[0] if len(rest) == 1 and rest[0] is UNKNOWN else tuple(rest)
            index = len(args)
            break
        bound[param.name] = args[index]
        index += 1
    if index < len(args):
        return None
    for keyword, value in keywords.items():
        name = keyword if keyword in names else _NUMPY_NAMES.get(keyword, keyword)
        if name in bound:
            return None
        if name not in names:
            if takes_any is None:
                return None
            continue
        bound[name] = value
    if any(param.required and param.name not in bound for param in params):
        return None
    return {param.name: bound[param.name] for param in params if param.name in bound}


def _is_sequence(value: object) -> bool:
    return isinstance(value, (tuple, list))


_NUMBERS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "float": (int, float),
    "number": (int, float, complex, bool),
    "bool": (bool,),
    "str": (str,),
}


def _fits(param: Param, value: object) -> bool:
    """Whether a value of which we know something may be given for `param`; what is unknown fits."""
    kind = param.type
    if kind.endswith("?"):
        if value is None:
            return True
        kind = kind[:-1]
    if value is UNKNOWN or kind == "any":
        return True
    if value is SOME_NUMBER:
        return kind in _NUMBERS and kind != "str"
    if isinstance(value, TensorFacts):
        # A tensor of rank 0 is taken for a number, and for an int or float, by torch's argument parser.
        return kind == "tensor" or (kind in ("number", "int", "float") and value.rank == 0)
    if kind.endswith("]"):
        element = Param("element", type=kind.partition("[")[0])
        if _is_sequence(value):
            return all(_fits(element, item) or item is None for item in value)  # type: ignore[attr-defined]
        return param.variadic or (kind.endswith("[n]") and _fits(element, value))
    if kind in ("true", "false"):
        return value is (kind == "true")
    if kind in _NUMBERS:
        if isinstance(value, bool) and kind in ("int", "float"):
            return False
        return isinstance(value, _NUMBERS[kind])
    if value is None or isinstance(value, (int, float, complex, tuple, list)):
        return kind == "device" and isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, str):
        return kind == "device"
    return kind != "tensor"


def renamed(op: Op, names: Mapping[str, str]) -> Op:
    """`op` with parameters renamed, as `self` is `input` where the method is a function."""
    return replace(
        op,
        params=tuple(replace(param, name=names.get(param.name, param.name)) for param in op.params),
    )
