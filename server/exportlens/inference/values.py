"""Abstract values: what the interpreter knows of a Python value while a model is traced.

Two questions matter for every value: does it come from tensor *data* (then Python must not branch on it), and is it
known. `Unknown` answers neither and therefore never leads to a finding.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from exportlens.inference.scopes import ModuleScope
from exportlens.source.document import Chunk

# From this size on a dimension counts as one without an upper end.
NO_END = 2**31


class Value:
    """Base of all abstract values."""

    __slots__ = ()

    def describe(self) -> str:
        """A short phrase for people: "a tensor (float32, 2 dimensions)"."""
        return "unknown"


@dataclass(frozen=True, slots=True)
class Unknown(Value):
    """Nothing is known. `why` says what could not be followed, for --explain; `method` is the attribute's name where it is one of something unknown.

    `made` is true for what a part of the model that is not known made of tensors: a tensor, or a structure that holds some.
    `outside` is true for what a package gave that makes no tensors, and for parts of that.
    `argument` names the entry point's parameter where it is one that the body of the entry point itself tells nothing of.
    `given` is "argument" for what an entry point is given, and "part" for a part of that.
    `unlike` is true for what is used as no tensor can be.
    """

    why: str = ""
    method: str = ""
    made: bool = False
    argument: str = ""
    outside: bool = False
    given: str = ""
    unlike: bool = False

    def describe(self) -> str:
        return f"unknown ({self.why})" if self.why else "unknown"


@dataclass(frozen=True, slots=True)
class Const(Value):
    """A Python constant that is known: int, float, complex, bool, str, bytes, None, Ellipsis, dtype names as `Named`."""

    value: Any

    def describe(self) -> str:
        return f"the constant {self.value!r}"

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Const) and type(other.value) is type(self.value) and other.value == self.value
        )


@dataclass(frozen=True, slots=True)
class Static(Value):
    """Configuration: not known here, but certainly no tensor and not from tensor data. `type` is a builtin's name or "".

    `of` is set for the dtype of a tensor: its family ("float", "int", "complex") or "any".
    `spells` names the tensor of which a text holds a number: as a key it is one that data chooses.
    """

    type: str = ""
    of: str = ""
    spells: str = ""

    def describe(self) -> str:
        return f"configuration ({self.type})" if self.type else "configuration"


@dataclass(frozen=True, slots=True)
class Bounds:
    """The Dim that a size is declared with: its name and the sizes from `low` to `high` that it stands for."""

    name: str
    low: int
    high: int

    @property
    def words(self) -> str:
        """The range for people."""
        return f"{self.low} to {self.high}" if self.high < NO_END else f"{self.low} and up"


@dataclass(frozen=True, slots=True)
class Shape(Value):
    """A size: from `.shape`, `.size()`, `len()`, `.numel()` of a tensor, or arithmetic on such.

    `unbacked` sizes depend on tensor data (`len(torch.unique(x))`): fine to use, no Python decision may hang on them.
    `input` and `dim` name the entry point's argument and dimension where that is known. `whole` sizes are
    those of a tensor itself, not computed from others: at least 1 for any real input. A `part` of a size was divided.
    `bounds` is the Dim that an export call declares it with.
    """

    unbacked: bool = False
    input: str | None = None
    dim: int | None = None
    origin: str = ""
    type: str = "int"
    whole: bool = False
    bounds: Bounds | None = None
    part: bool = False

    def describe(self) -> str:
        if self.bounds is not None and self.type == "bool":
            return f"a comparison of `{self.origin}`, which Dim {self.bounds.name!r} says to be {self.bounds.words}"
        return f"a size that depends on tensor data ({self.origin})" if self.unbacked else "a size"


@dataclass(frozen=True, slots=True)
class Tensor(Value):
    """A tensor that is traced, or (`origin` "constant") one that was made outside of the traced code.

    origin: "input", "parameter", "buffer", "attribute" (a plain attribute of the model), "literal" (made of several Python numbers
    while tracing, or by `new_tensor` of one), "outside" (a global or a default that traced code reads: torch knows its numbers, but of nothing that is
    computed from it), "fresh", "constant".
    `name` is how people know it (`x`, `self.weight`); `dtype` is "float", "int", "bool", "complex" or a full name or None;
    `rank` is the number of dimensions or None. `unbacked` is true where a size of it depends on data, `open_dim` is the dimension
    that does (None: one of them; where `unbacked` is false: none, but the tensor was reduced from one that has, and may have one
    element where that has many).
    `converted` is true for what `.to()`, `.float()`, `.cpu()` and the like returned, and for views of that.
    `dims` are its sizes where an export call declares them; `single` is a dimension that certainly has one element.
    `root` identifies the storage: two tensors with one root may share memory. `requires_grad` is true where a gradient certainly
    flows, as far as parameters have one: it was computed from one, or by a layer that has some.
    `recast` is true where torch.autocast certainly gave it another dtype than it has without.
    """

    origin: str = "fresh"
    name: str = ""
    dtype: str | None = None
    rank: int | None = None
    unbacked: bool = False
    root: int = 0
    requires_grad: bool | None = None
    open_dim: int | None = 0
    dims: tuple[Value, ...] | None = None
    converted: bool = False
    single: int | None = None
    recast: bool = False

    def describe(self) -> str:
        facts = [
            fact for fact in (self.dtype, None if self.rank is None else f"{self.rank} dimensions") if fact
        ]
        what = {
            "input": "an input tensor",
            "parameter": "a parameter",
            "buffer": "a buffer",
            "attribute": "a tensor held in a plain attribute",
        }.get(self.origin, "a tensor")
        return f"{what} ({', '.join(facts)})" if facts else what


# The origin of numbers that a function of NumPy computed of numbers of Python's.
BY_NUMPY = "a NumPy function"


@dataclass(frozen=True, slots=True)
class TensorScalar(Value):
    """A Python number or bool that comes from tensor data: `.item()`, `int(t)`, an element of `.tolist()`."""

    type: str = ""
    origin: str = ""

    @property
    def by_numpy(self) -> bool:
        """Whether it is a number of NumPy's, which a function of NumPy computed of Python's: what compares it gives NumPy's bool."""
        return self.origin == BY_NUMPY

    def describe(self) -> str:
        return f"a Python {self.type or 'number'} read out of tensor data"


@dataclass(frozen=True, slots=True)
class Array(Value):
    """A NumPy array (or scalar) made from a traced tensor, or (`traced` false) one of configuration.

    How many items an `unbacked` one has depends on tensor data. A `held` one was made before tracing, by the model's
    constructor or at module level, or comes from one that was. A `plain` one is a number of Python's that was made of it.
    """

    traced: bool = True
    dtype: str | None = None
    rank: int | None = None
    unbacked: bool = False
    held: bool = False
    plain: bool = False

    def describe(self) -> str:
        return "a NumPy array made from a tensor" if self.traced else "a NumPy array"


@dataclass(eq=False, slots=True)
class Sequence(Value):
    """A list, tuple or set. `items` are known elements; None means any number of `element`. Lists are mutable: identity matters.

    `first` is the first element where more is known of it than of the others. `filled` is true where the items are not known,
    but there is one at least, as torch takes no size of an input to be zero. `guessed` is true of a parameter that is only
    gone through: it may be one tensor as well.
    """

    kind: str
    items: list[Value] | None
    element: Value | None = None
    type_name: str = ""
    fields: tuple[str, ...] = ()
    first: Value | None = None
    filled: bool = False
    guessed: bool = False

    def describe(self) -> str:
        return f"a {self.kind} of {len(self.items)}" if self.items is not None else f"a {self.kind}"


@dataclass(eq=False, slots=True)
class Mapping_(Value):
    """A dict. `items` by constant key; `rest` is the value of keys that are not known (None: there are none).

    `factory` is what a defaultdict calls for a key that it has not.
    """

    items: dict[Any, Value]
    rest: Value | None = None
    kind: str = "dict"
    factory: Value | None = None

    def describe(self) -> str:
        return f"a {self.kind}"


@dataclass(eq=False, slots=True)
class Named(Value):
    """Something external known by its qualified name: `torch.float32`, `torch.nn.functional.relu`, `numpy`, `math.pi`."""

    name: str

    def describe(self) -> str:
        return f"`{self.name}`"


@dataclass(eq=False, slots=True)
class Member(Named):
    """A member of an enumeration of the workspace. `plain` is true where it is a string or number itself (`class Mode(str, Enum)`)."""

    value: Value = field(default_factory=Unknown)
    plain: bool = False


@dataclass(eq=False, slots=True)
class Function(Value):
    """A Python function or lambda of the workspace, with the closure that it was made in.

    `setter` is what a property calls when it is written.
    """

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: ModuleScope
    chunk: Chunk
    name: str
    closure: Any = None
    owner: ClassValue | None = None
    defaults: tuple[Value | None, ...] = ()
    kw_defaults: tuple[Value | None, ...] = ()
    decorators: tuple[str, ...] = ()
    setter: Function | None = None

    def describe(self) -> str:
        return f"the function `{self.name}`"


@dataclass(eq=False, slots=True)
class ClassValue(Value):
    """A class of the workspace. `bases` are ClassValue or Named; `order` and `is_module` keep what was once worked out."""

    node: ast.ClassDef
    scope: ModuleScope
    chunk: Chunk
    name: str
    bases: tuple[Value, ...]
    attributes: dict[str, Value] = field(default_factory=dict)
    closure: Any = None
    order: list[Value] | None = None
    is_module: bool | None = None

    def describe(self) -> str:
        return f"the class `{self.name}`"


@dataclass(eq=False, slots=True)
class Instance(Value):
    """An object: of a workspace class, or (`cls` a Named) of an external one such as `torch.nn.Linear`.

    `attributes` are those set so far; `open` is true where more may exist that were not seen (an unknown base).
    Two objects with one `fingerprint` were made by the same constructor from the same values; `stamp` counts the writes since.
    `registered` is true once it was an attribute of a Module; `traced` where traced code made the object.
    """

    cls: Value
    attributes: dict[str, Value] = field(default_factory=dict)
    open: bool = False
    name: str = ""
    arguments: Mapping[str, Value] = field(default_factory=dict)
    fingerprint: Any = None
    stamp: int = 0
    registered: bool = False
    traced: bool = False

    def describe(self) -> str:
        cls = self.cls.name if isinstance(self.cls, (ClassValue, Named)) else "?"
        return f"an instance of `{cls}`"


@dataclass(eq=False, slots=True)
class Bound(Value):
    """A function or external callable with its receiver: `self.method`, `x.view`."""

    receiver: Value
    function: Value
    name: str

    def describe(self) -> str:
        return f"the method `{self.name}`"


@dataclass(eq=False, slots=True)
class Partial(Value):
    """`functools.partial`."""

    function: Value
    args: tuple[Value, ...]
    kwargs: dict[str, Value]

    def describe(self) -> str:
        return "a partial"


@dataclass(eq=False, slots=True)
class ModuleRef(Value):
    """A Python module of the workspace (a file), as bound by `import`."""

    scope: ModuleScope

    def describe(self) -> str:
        return f"the module `{self.scope.module_name}`"


@dataclass(eq=False, slots=True)
class Super(Value):
    """`super()` in a method: looks names up behind `after` in the class order of `instance`."""

    instance: Value
    after: ClassValue

    def describe(self) -> str:
        return "super()"


@dataclass(frozen=True, slots=True)
class Slice(Value):
    """`a:b:c` in a subscript; parts that are absent are None."""

    lower: Value | None
    upper: Value | None
    step: Value | None

    def describe(self) -> str:
        return "a slice"


@dataclass(frozen=True, slots=True)
class Choice(Value):
    """One of a few values, depending on configuration that is not known."""

    options: tuple[Value, ...]

    def describe(self) -> str:
        return " or ".join(option.describe() for option in self.options)


@dataclass(eq=False, slots=True)
class Native(Value):
    """A callable that the interpreter implements itself; `run` takes the interpreter, the positional and keyword values.

    `owner` is the object that it is a method of, where that is told.
    """

    name: str
    run: Callable[..., Value]
    owner: Value | None = None

    def describe(self) -> str:
        return f"`{self.name}`"


def options(value: Value) -> Iterable[Value]:
    """The values that `value` may be."""
    return value.options if isinstance(value, Choice) else (value,)


def is_traced_tensor(value: Value) -> bool:
    """Whether `value` certainly is a tensor that export traces (fake while tracing)."""
    return isinstance(value, Tensor) and value.origin != "constant"


def from_data(value: Value) -> bool:
    """Whether Python would have to look at tensor data to decide on `value`."""
    if isinstance(value, Tensor):
        return value.origin != "constant"
    return (
        isinstance(value, TensorScalar)
        or (isinstance(value, Shape) and value.unbacked)
        or (isinstance(value, Array) and value.traced)
    )


def is_filled(value: Value) -> bool:
    """Whether there certainly is something to go through in `value`, in what an example input makes of it."""
    if isinstance(value, Sequence):
        return value.filled or bool(value.items)
    return isinstance(value, Tensor) and not value.unbacked


def is_numpy(value: Value) -> bool:
    """Whether `value` certainly is an array or a number of NumPy's that no tensor was made into."""
    return all(isinstance(option, Array) and not option.traced for option in options(value))
