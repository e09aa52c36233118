"""Places: the points of a program that rules may look at, with the values that meet there.

The interpreter makes a place each time that it passes one, once per calling context; rules answer with findings, and the
engine keeps one finding per node and rule. All nodes are `ast` nodes of `site.chunk`.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exportlens.inference.scopes import ModuleScope
from exportlens.inference.values import ClassValue, Function, Shape, Value
from exportlens.source.document import Chunk

# The calls from an entry point to a place, outermost first.
Trail = tuple[tuple[ModuleScope, Chunk, ast.AST], ...]


@dataclass(frozen=True, slots=True)
class Site:
    """Where in the workspace, and how the interpreter came there.

    `function` is the enclosing function (None at module level); `trail` the calls from the entry point to it, outermost
    first, as (scope, chunk, call node); `certain` is false where only configuration that is not known leads here (an
    `if` on it, an optional argument); `entry` is "Class" or "Class.method" of the entry point, None for module-level code;
    `conditions` are the tests that lead here and that configuration decides, outermost first (None: one without a text);
    `optional` is true where only inputs that may be left out lead here; `gradients` is false under `no_grad` and the like;
    `supposed` are the arguments of the entry point of which nothing tells that they are the tensors that they are taken for;
    `assumed` is true in functions under `torch.compiler.assume_constant_result`, and in what they call.
    """

    scope: ModuleScope
    chunk: Chunk
    function: Function | None
    trail: Trail
    certain: bool
    entry: str | None
    conditions: tuple[ast.expr | None, ...] = ()
    optional: bool = False
    gradients: bool = True
    supposed: tuple[str, ...] = ()
    assumed: bool = False

    @property
    def condition(self) -> ast.expr | None:
        """The innermost of `conditions`."""
        return self.conditions[-1] if self.conditions else None


@dataclass(slots=True)
class Place:
    """Base of all places: `node` is what a finding underlines unless the rule says otherwise."""

    site: Site
    node: ast.AST


@dataclass(slots=True)
class Truth(Place):
    """`value` is asked for its truth.

    `context` says by what: "if", "while", "ternary", "assert", "not", "and", "or", "filter" (of a comprehension), "bool", "match",
    "any", "all", "compare" (chained, or `in` a sequence), "is" (a number written out), "sort", "max" or "min".

    `node` is the test expression; `statement` the `if`/`while`/`assert`/ternary node. `variables` are the local names
    with their values just before the test (only given where the value comes from data); `then` and `other` are the values of the names that each
    arm assigned, `then_ends`/`other_ends` tell how an arm ends: "falls", "returns", "raises", "breaks", "continues".
    """

    value: Value
    context: str
    statement: ast.AST
    variables: Mapping[str, Value] = field(default_factory=dict)
    then: Mapping[str, Value] = field(default_factory=dict)
    other: Mapping[str, Value] = field(default_factory=dict)
    then_ends: str = "falls"
    other_ends: str = "falls"


@dataclass(slots=True)
class NumpyRead(Place):
    """Python needs to know `value`, an array or a number of NumPy's that no tensor was made into.

    `use` tells what for: "truth", "in" (a sequence), "range" (also of NumPy's), "index" (of a list), "key" (of a dict), "text", "round",
    "item" or "tolist" (called), "argument" (of torch's functions), "operand" (of a tensor), "promoted" (an operand that
    was made while tracing, of a tensor of no dimensions) or "layer" (of torch's, that was made with it).
    """

    value: Value
    use: str


@dataclass(slots=True)
class Conversion(Place):
    """A tensor (or other value from data) becomes a Python value.

    `to` says which: "int", "float", "complex", "str", "index", "list", "numpy", "item", "key", "hash", "format", "set", "len" (`len()` of
    what has a size from data), "range", "repeat" (`[0] * n`), "size" (given to torch as a size), "compare" (by `max()` or `min()`),
    "count" (arithmetic with a truth value) or "exponent" (of a whole number).

    `use` tells what the Python value is for where that decides the outcome: "size", "range", "key", "" (not known); of a function of
    NumPy, whether all its arguments are "tensors", or the "tensor first" is one; of a number, "either" where the code before may have
    given a tensor or something else.
    """

    value: Value
    to: str
    use: str = ""
    variables: Mapping[str, Value] = field(default_factory=dict)
    """The local names with their values, given where a declared size is a range, where numbers are compared, where NumPy or a method
    makes an array, and where a tensor becomes a list or a set."""
    keys: tuple[int | str, ...] | None = None
    """The keys of all items among which data chooses, where they are known."""


@dataclass(slots=True)
class Call(Place):
    """A call. `name` is the callee's qualified name: "torch.nn.functional.relu", "torch.Tensor.item" for tensor methods, "builtins.id",
    "numpy.sin", "random.random"; "" where it is not known. `receiver` is the object of a method call."""

    name: str
    receiver: Value | None
    args: Sequence[Value]
    kwargs: Mapping[str, Value]
    result: Value
    callee: Value | None = None
    used: bool = True
    """False where a random number is drawn into a variable; noticed again with true when the variable is read."""

    def argument(self, position: int, keyword: str) -> Value | None:
        """The argument at `position` (without receiver) or by `keyword`, None where it is not given."""
        if keyword in self.kwargs:
            return self.kwargs[keyword]
        return self.args[position] if position < len(self.args) else None


@dataclass(slots=True)
class AttributeRead(Place):
    """`owner.attr` is read. `use` is the attribute or method that is taken from it at once (`x.data.size()` -> "size"), or ""."""

    owner: Value
    attr: str
    value: Value
    use: str = ""


@dataclass(slots=True)
class UnregisteredRead(Place):
    """`owner.attr`, a plain list, tuple or dict of a Module, is read, and holds `found`, a Module with parameters or a Parameter
    that `owner` does not register."""

    owner: Value
    attr: str
    found: Value


@dataclass(slots=True)
class AttributeWrite(Place):
    """`owner.attr = value` (`augmented` for `+=`, where `value` is the new one). `old` is what was there, None if nothing was;
    `began` what was there when the call began, and `elsewhere` whether another function wrote it earlier in the call. `readers` are the
    functions that read it before any wrote it, with the nodes that did.
    """

    owner: Value
    attr: str
    value: Value
    old: Value | None
    augmented: bool = False
    began: Value | None = None
    elsewhere: bool = False
    readers: tuple[tuple[ast.AST, ast.AST], ...] = ()


@dataclass(slots=True)
class NameWrite(Place):
    """`name = value` where the function declares `name` global or nonlocal. `old` is what it was, None where that is not known."""

    name: str
    value: Value
    old: Value | None


@dataclass(slots=True)
class LocalClass(Place):
    """A class statement that traced code runs; `node` is the statement."""


@dataclass(slots=True)
class ItemWrite(Place):
    """`owner[key] = value`."""

    owner: Value
    key: Value
    value: Value
    augmented: bool = False


@dataclass(slots=True)
class ContainerWrite(Place):
    """`owner.attr`, a list or a dict that was there when the call began and has not been emptied since, is changed by `how`: a method
    that adds to it, such as "append", or "[]", "count" (`update` of a Counter), or one that takes something out or puts it in another
    order: "pop", "popleft", "popitem", "rotate", "reverse". `value` is what comes in or out. `owner` is None where it is the global
    `attr`, a default or a variable of a function around, and `anew` says that the call has bound the attribute itself, as to a part of
    what it was: `self.history = self.history[-2:]`."""

    owner: Value | None
    attr: str
    how: str
    value: Value
    anew: bool = False


@dataclass(slots=True)
class ItemRead(Place):
    """`owner[key]`."""

    owner: Value
    key: Value
    value: Value


@dataclass(slots=True)
class Mutation(Place):
    """A tensor's storage is written in place: by `x.mul_()`, `x += 1`, `x[i] = v`, `out=`. `target` is the tensor; `how` the method or operator;
    `operands` what else it is given; `holder` the object of which the method around is."""

    target: Value
    how: str
    operands: tuple[Value, ...] = ()
    holder: Value | None = None


@dataclass(slots=True)
class Iteration(Place):
    """A `for` or comprehension runs over `iterable`."""

    iterable: Value
    context: str
    variables: Mapping[str, Value] = field(default_factory=dict)
    """The local names with their values, given where an export call declares the sizes of the iterable, or data decides them."""


@dataclass(slots=True)
class Raise(Place):
    """A `raise`. `guard` is the test value from data that leads here, None where there is none."""

    guard: Value | None


@dataclass(slots=True)
class Caught(Place):
    """A `raise`, or an `assert` that does not hold, that tracing certainly passes, and that `handler` of `attempt` catches.

    `error` is the exception, or its class.
    """

    error: Value
    attempt: ast.Try
    handler: ast.ExceptHandler


@dataclass(slots=True)
class Division(Place):
    """A number of Python is divided, inside of a `try`, by one that comes from tensor data: `a / b`, `a // b` or `a % b`."""

    divisor: Value


@dataclass(slots=True)
class ObjectOperator(Place):
    """An operator is used on `owner`, an object of a class of the workspace, whose `method` Python calls for it: "__matmul__",
    "__rmul__", "__invert__". `other` is the other operand (None: there is none). `certain` is false where the method may
    leave it to the other operand."""

    owner: Value
    method: str
    other: Value | None
    certain: bool


@dataclass(slots=True)
class With(Place):
    """A `with` block entered while tracing; `manager` is the context manager's value, `name` its qualified class or function name or ""."""

    manager: Value
    name: str


@dataclass(slots=True)
class Output(Place):
    """An entry point returns `value`; `node` is the `return` statement."""

    value: Value
    owner: ClassValue | None


@dataclass(slots=True)
class ExportCall(Place):
    """A call of `torch.export.export` and its kin anywhere in a document (`__main__` blocks, functions).

    `arguments` and `nodes` are its arguments by parameter name, as values and as expressions.
    """

    model: Value
    arguments: Mapping[str, Value]
    nodes: Mapping[str, ast.expr]


@dataclass(slots=True)
class ProgramCall(Place):
    """A program is called that `export` made, in the code around the model."""

    export: ExportCall
    args: tuple[Value, ...]


@dataclass(slots=True)
class SizesMeet(Place):
    """Elementwise arithmetic makes two sizes equal that an export call declares by Dims of different names."""

    left: Shape
    right: Shape


@dataclass(slots=True)
class Definition(Place):
    """A class or function definition at module level, seen once per document: for rules on how something is declared (custom ops, modules).

    `value` is the ClassValue or Function.
    """

    value: Value
