"""Numbers that a Module counts in an attribute, `self.steps += 1`, as a buffer: the exported program goes on counting.

    self.steps = 0                      self.register_buffer("steps", torch.tensor(0), persistent=False)
    ...                                 ...
    self.steps += 1              ->     self.steps.add_(1)
    return x / self.steps               return x / self.steps.item()

What reads the number still gets a number, in eager mode the very same: floats are held in double precision.
"""

from __future__ import annotations

import ast
import copy
import math

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.operators import BINARY, fold
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import ClassValue, Const, Instance, Tensor, TensorScalar, Value, options
from exportlens.rewriting.arms_on_numbers import refuse_arms
from exportlens.rewriting.begun_by_methods import begun_by_method
from exportlens.rewriting.begun_in_class import begun_in_class, registered_by_constructor
from exportlens.rewriting.called_parts import called_functions, is_made_as_tensor, parameter_for
from exportlens.rewriting.context import RewriteContext
from exportlens.rewriting.draft import Draft, Refused
from exportlens.rewriting.effects import kinds_before
from exportlens.rewriting.given_numbers import given_by_calls
from exportlens.rewriting.infinity import infinity
from exportlens.rewriting.math_calls import NO_FLOAT, SAME_IN_TORCH
from exportlens.rewriting.names import arguments, assigned_pairs, dotted, fresh
from exportlens.rewriting.plain_objects import made_module
from exportlens.rewriting.predicates import primary
from exportlens.rewriting.registrations import refuse_before_module
from exportlens.rewriting.sliced_by_numbers import bounds_open_slice, is_unpacked_size
from exportlens.rewriting.text import Function, Replacement
from exportlens.rewriting.undimensioned import asked_tensor
from exportlens.rewriting.unset_reads import refuse_unset
from exportlens.source.document import Chunk

_IN_PLACE: dict[type[ast.operator], str] = {
    ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_", ast.Mod: "remainder_"
}  # fmt: skip
# Methods and functions that take a number which is only known when the program runs (measured on torch 2.13).
_TAKING_NUMBERS = frozenset(
    {"clamp", "clamp_", "mul", "mul_", "add", "add_", "sub", "sub_", "div", "div_", "pow", "full", "new_full", "tensor", "arange",
     "masked_fill", "masked_fill_", "fill_", "roll", "tril", "triu", "lerp", "lerp_", "addcmul", "addcdiv", "narrow", "select"}
)  # fmt: skip
# Calls that give a number for a number, each of which a fix rewrites where tracing does not take it.
_CONVERTING = {"float": "float", "int": "int", "round": "int", "abs": ""}
_MATHEMATICAL = {f"math.{name}": "float" for name in SAME_IN_TORCH} | {"math.pow": "float"}
_MATHEMATICAL |= {f"numpy.{name}": "float" for name in SAME_IN_TORCH - NO_FLOAT if hasattr(math, name)}
_MATHEMATICAL |= {f"math.{name}": "int" for name in ("floor", "ceil", "trunc")}
_MATHEMATICAL |= {f"math.{name}": "bool" for name in ("isfinite", "isinf", "isnan")}
_BOUNDING = frozenset({"numpy.clip", "numpy.minimum", "numpy.maximum"})
# Calls that take tensors, of which the number may be a part: `F.softmax(x / self.tau, -1)`.
_TAKING_TENSORS = frozenset(
    {"softmax", "log_softmax", "sigmoid", "tanh", "relu", "exp", "linear", "cross_entropy", "mse_loss", "where", "matmul", "copy_"}
)  # fmt: skip
# Functions of torch whose first argument is no tensor.
_TAKING_NO_TENSOR = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "randint", "randperm", "arange", "linspace", "eye", "tensor", "as_tensor",
     "scalar_tensor", "asarray", "range", "logspace", "manual_seed", "hann_window", "bernoulli"}
)  # fmt: skip
_EXTREMES = {"max": "sym_max", "min": "sym_min"}
# What computes with numbers, or hands them on as they are.
_COMPUTING = (
    ast.BinOp,
    ast.UnaryOp,
    ast.Compare,
    ast.BoolOp,
    ast.IfExp,
    ast.Tuple,
    ast.List,
    ast.Slice,
    ast.keyword,
)
# How many names one after the other may stand for the number.
_DEEPEST = 4


def number_in_buffer(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that makes the attribute a buffer, and reads numbers out of it."""
    try:
        owner = place.owner.cls if isinstance(place.owner, Instance) else None
        if not isinstance(owner, ClassValue) or owner.scope.path != context.document.path:
            raise Refused("the class that counts is not in this file")
        draft = Draft.of_chunk(owner.chunk, context)
        cls = draft.source.find(owner.node)
        assert isinstance(cls, ast.ClassDef)
        base = made_module(draft, cls, owner, place.owner)
        function = place.site.function.node if place.site.function is not None else None
        assert isinstance(place.owner, Instance)
        number = _Number(draft, cls, place.owner, place.attr, getattr(function, "name", ""))
        number.is_module = not base
        number.became = type_of_number(place.value)
        begun = begun_by_method(draft, cls, place.attr) if number.is_needed() else None
        if begun is not None:
            return begun
        swaps = [*base, *number.swaps()]
        message = f"Count in the buffer `{place.attr}`"
        return draft.replace(message, swaps, Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def type_of_number(value: Value) -> str:
    """The one type that `value` has as a number of Python, "" where it may be of another."""
    types = {
        option.type
        if isinstance(option, TensorScalar)
        else type(option.value).__name__
        if isinstance(option, Const)
        else ""
        for option in options(value)
    }
    return types.pop() if len(types) == 1 else ""


class _Number:
    """One attribute: where the class begins, writes and reads it."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, owner: Instance, attr: str, exported: str) -> None:
        self.draft, self.source, self.cls, self.owner, self.attr = draft, draft.source, cls, owner, attr
        self.path = f"self.{attr}"
        self.is_module = True
        # The reads that are handed to functions which bound slices by them.
        self.handed: set[ast.AST] = set()
        # The parameters that take it: of which class and function, and their names.
        self.given: set[tuple[str, str, str]] = set()
        # The type that a write gives it, as far as the interpreter tells.
        self.became = ""
        # Whether it is looked at in another class than its own.
        self.elsewhere = False
        # What is known to be traced: other Modules may call any method of one without a `forward`.
        methods = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)} - {"__init__"}
        self.entries = {"forward", exported} | (set() if "forward" in methods else methods)

    def swaps(self) -> list[Replacement]:
        self._refuse_other_users()
        begin, first = self._begin()
        uses = [
            each
            for each in ast.walk(self.cls)
            if isinstance(each, ast.Attribute) and each.attr == self.attr and dotted(each) == self.path
        ]
        stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
        writes = [self._write(each) for each in stores if self.source.enclosing_statement(each) is not begin]
        if any(self._of_constructor(each) for each in writes):
            raise Refused(f"`{self.path}` is set several times in `__init__`")
        reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
        if not self.is_needed():
            raise Refused(
                "nothing that is exported reads it: keep it a number for whoever looks at it in eager mode"
            )
        for each in reads:
            self._refuse_read(each)
        swaps = self._registered(begin, first)
        outside = [each for each in reads if not self._sets_it(self.source.enclosing_statement(each))]
        inside = self._read_out(outside, writes) + self._extremes(outside)
        for write in writes:
            swaps.append(self.source.swap(write, self._written_behind(write)))
        return [*swaps, *inside]

    def is_needed(self) -> bool:
        """Whether what is exported reads the number, or a branch there sets it."""
        uses = [
            each
            for each in ast.walk(self.cls)
            if isinstance(each, ast.Attribute) and dotted(each) == self.path
        ]
        return any(
            self._is_traced(each)
            if isinstance(each.ctx, ast.Load)
            else self._is_decided(self.source.enclosing_statement(each))
            for each in uses
        )

    def _is_decided(self, write: ast.stmt) -> bool:
        """Whether a branch sets it to a number that is written out: torch.cond takes the branch only where that is a tensor."""
        value = write.value if isinstance(write, ast.Assign) else None
        return isinstance(value, ast.Constant) and any(
            isinstance(each, ast.If) for each in self.source.ancestors(write)
        )

    def _read_out(self, reads: list[ast.Attribute], writes: list[ast.stmt]) -> list[Replacement]:
        """What takes the places of `reads`: `.item()`, by a name where several statements read the same number.

        Two numbers read out of the same tensor, and a branch between them, are no longer one for strict tracing (torch 2.13).
        """
        names: dict[ast.AST, str] = {}
        swaps: list[Replacement] = []
        functions = {self.source.enclosing_function(each) for each in reads} - {None}
        for function in functions:
            assert function is not None
            taken = self.draft.taken(self.source.tree)
            for run in self._runs(function.body, writes):
                plain = [
                    each
                    for each in reads
                    if self.source.parents.get(self.source.enclosing_statement(each)) is function
                ]
                plain = [each for each in plain if self.source.enclosing_statement(each) in run]
                statements = {self.source.enclosing_statement(each) for each in plain}
                simple = {
                    each
                    for each in statements
                    if not isinstance(each, (ast.If, ast.For, ast.While, ast.With, ast.Try))
                }
                plain = [each for each in plain if self.source.enclosing_statement(each) in simple]
                handed = [
                    each for each in reads if each in self.handed and self._in_run(each, run) is not None
                ]
                plain = list(dict.fromkeys([*plain, *handed]))
                outer = [one for each in plain if (one := self._in_run(each, run)) is not None]
                first = min(outer, key=self.source.start, default=None)
                sliced = bool(handed) or self._is_sliced_by(plain)
                checked = self.type == "int" and sliced and self._never_negative()
                if first is None or not (len(plain) > 1 or checked) or not self.source.begins_line(first):
                    continue
                name = fresh(self.attr.strip("_") or "number", taken)
                begin = self.source.start(first)
                lines = [f"{name} = {self.path}.item()"]
                if checked:
                    # A slice that may begin before the first item is none that tracing takes.
                    lines.append(f"{self.draft.torch}._check({name} >= 0)")
                indent = self.source.newline + self.source.indent_of(first)
                swaps.append(Replacement(begin, begin, "".join(line + indent for line in lines)))
                names |= dict.fromkeys(plain, name)
        return [*swaps, *(self.source.swap(each, names.get(each, f"{self.path}.item()")) for each in reads)]

    def _in_run(self, read: ast.AST, run: list[ast.stmt]) -> ast.stmt | None:
        """The statement of `run` that `read` stands in."""
        return next((each for each in self.source.ancestors(read) if each in run), None)

    def _is_sliced_by(self, reads: list[ast.Attribute]) -> bool:
        """Whether some of `reads` bound a slice of which a size is not known, or which is one of several."""
        return any(
            isinstance(each, ast.Slice) and bounds_open_slice(self.source, each)
            for read in reads
            for each in self.source.ancestors(read)
        )

    def _never_negative(self) -> bool:
        """Whether the number begins with 0 or more, and what is written or added is never less."""
        constant = _constant(self.first)
        if constant is None or constant < 0:
            return False
        for each in ast.walk(self.cls):
            if isinstance(each, (ast.Assign, ast.AugAssign)) and self._sets_it(each):
                adds = isinstance(each, ast.Assign) or isinstance(each.op, (ast.Add, ast.Mult, ast.Mod))
                if not (adds and self._is_positive(each.value)):
                    return False
        return True

    def _is_positive(self, node: ast.expr) -> bool:
        """Whether `node` is an int that is certainly 0 or more, where the number itself is."""
        constant = _constant(node)
        if constant is not None:
            return constant >= 0
        if _is_size(node) or dotted(node) == self.path:
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Mult)):
            return self._is_positive(node.left) and self._is_positive(node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return self._is_positive(node.right)
        function = self.source.enclosing_function(node)
        return isinstance(node, ast.Name) and function is not None and is_unpacked_size(function, node.id)

    def _runs(self, body: list[ast.stmt], writes: list[ast.stmt]) -> list[list[ast.stmt]]:
        """The statements of `body` between those that write the number."""
        runs: list[list[ast.stmt]] = [[]]
        written = set(writes)
        writers = {getattr(self.source.enclosing_function(each), "name", "") for each in writes}
        for each in body:
            called = {one.attr for one in ast.walk(each) if isinstance(one, ast.Attribute)}
            if any(one in written for one in ast.walk(each)) or self._led_to(called) & writers:
                runs.append([])
            else:
                runs[-1].append(each)
        return runs

    def _refuse_other_users(self) -> None:
        """Raise Refused where others than methods of the class know of the attribute."""
        inside = {id(each) for each in ast.walk(self.cls)}
        called: set[int] = set()
        for placed in self.draft.context.document.placed:
            chunk = self.source.tree if placed.chunk is self.draft.chunk else None
            for statement in chunk.body if chunk is not None else placed.chunk.body:
                for each in ast.walk(statement):
                    if isinstance(each, ast.Call):
                        # Nobody calls a number: `x.size(0)` is of a tensor.
                        called.add(id(each.func))
                    other = isinstance(each, ast.Attribute) and each.attr == self.attr
                    if (
                        other
                        and id(each) not in called
                        and (id(each) not in inside or dotted(each) != self.path)
                    ):
                        raise Refused(f"`{ast.unparse(each)}` is used as well, perhaps of the same object")
                    if isinstance(each, ast.Constant) and each.value == self.attr:
                        raise Refused(f"`{self.attr}` is also used by its name, as a text")

    def _begin(self) -> tuple[ast.Assign | ast.AnnAssign, ast.expr]:
        """The statement of `__init__` that sets the number first, and what it sets it to."""
        found: list[tuple[ast.Assign | ast.AnnAssign, ast.expr]] = []
        for method in self.cls.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                continue
            for each in method.body:
                if isinstance(each, ast.Assign):
                    found += [
                        (each, value) for target, value in assigned_pairs(each) if dotted(target) == self.path
                    ]
                elif isinstance(each, ast.AnnAssign) and each.value and dotted(each.target) == self.path:
                    found.append((each, each.value))
        in_class = begun_in_class(self.cls, self.attr)
        if not found and in_class is not None and self.is_module:
            found = [in_class]
        first = self._type_at_first(*found[0]) if len(found) == 1 else None
        if first is None:
            raise Refused(f"`{self.path}` is not set once, to a number that is written out, in `__init__`")
        self.type, self.first = first, found[0][1]
        if self.is_module and found != [in_class]:
            refuse_before_module(self.source, found[0][0])
        return found[0]

    def _type_at_first(self, begin: ast.stmt, value: ast.expr) -> str | None:
        """The type of what `__init__` sets, written out or by a parameter whose default or annotation tells."""
        constant = _constant(value)
        if constant is not None:
            # A sum that begins with 0 is a float from the first call on.
            return "float" if type(constant) is int and self.became == "float" else type(constant).__name__
        function = self.source.enclosing_function(begin)
        if not isinstance(value, ast.Name) or function is None or _is_bound_in(function, value.id):
            return None
        default = _constant(_defaults(function.args).get(value.id))
        annotation = next(
            (each.annotation for each in arguments(function.args) if each.arg == value.id), None
        )
        told = None if annotation is None else ast.unparse(annotation)
        if told not in (None, "int", "float") or type(default) is bool:
            return None
        return told or (None if default is None else type(default).__name__)

    def _write(self, target: ast.Attribute) -> ast.stmt:
        statement = self.source.parents[target]
        alone = isinstance(statement, ast.Assign) and statement.targets == [target]
        augmented = isinstance(statement, ast.AugAssign) and statement.target is target
        around = self.source.parents.get(statement)
        if isinstance(statement, ast.Tuple) and isinstance(around, ast.Assign):
            self._refuse_tied(around, target)
            return around
        if not (alone or augmented or isinstance(statement, ast.AnnAssign)):
            raise Refused(f"`{self.path}` is set together with other targets, or deleted")
        assert isinstance(statement, ast.stmt)
        return statement

    def _refuse_tied(self, statement: ast.Assign, target: ast.Attribute) -> None:
        """Raise Refused where the number cannot be set behind what `statement` sets beside it."""
        pairs = assigned_pairs(statement)
        parts = [each for one in statement.targets for each in ast.walk(one) if isinstance(each, ast.expr)]
        apart = (
            len(statement.targets) == 1
            and [one for one, _ in pairs if one is target] == [target]
            and isinstance(statement.value, ast.Tuple)
            and len(statement.value.elts) == len(pairs)
            and all(dotted(one) is not None for one, _ in pairs)
            and not any(isinstance(each, ast.Starred) for each in [*parts, *statement.value.elts])
        )
        names = {dotted(one) for one, _ in pairs if one is not target}
        for one, value in pairs if apart else ():
            wanted = names if one is target else {self.path}
            apart = apart and not any(dotted(each) in wanted for each in ast.walk(value))
        if not apart or not self.source.begins_line(statement):
            raise Refused(f"`{self.path}` is set together with other targets, which hang on each other")

    def _written_behind(self, statement: ast.stmt) -> str:
        """The text that writes the number, behind the others that `statement` sets."""
        pairs = assigned_pairs(statement) if isinstance(statement, ast.Assign) else []
        own = next(((target, value) for target, value in pairs if dotted(target) == self.path), None)
        if own is None or len(pairs) < 2:
            return self._written(statement)
        others = [(target, value) for target, value in pairs if target is not own[0]]
        sides = [", ".join(map(self.source.of, each)) for each in zip(*others, strict=True)]
        alone = ast.copy_location(ast.Assign([own[0]], own[1]), statement)
        indent = self.source.newline + self.source.indent_of(statement)
        return " = ".join(sides) + indent + self._written(alone)

    def _of_constructor(self, node: ast.AST) -> bool:
        return getattr(self.source.enclosing_function(node), "name", "") == "__init__"

    def _is_traced(self, read: ast.Attribute) -> bool:
        """Whether a read is for more than to count: in another statement than one that writes the number."""
        statement = self.source.enclosing_statement(read)
        writes = isinstance(statement, (ast.Assign, ast.AugAssign)) and any(
            isinstance(each, ast.Attribute) and each.attr == self.attr and not isinstance(each.ctx, ast.Load)
            for each in ast.walk(statement)
        )
        function = self.source.enclosing_function(read)
        return not writes and function is not None and function.name in self._led_to(self.entries)

    def _led_to(self, names: set[str]) -> set[str]:
        """The methods that those of `names` lead to, themselves included."""
        methods = {each.name: each for each in self.cls.body if isinstance(each, ast.FunctionDef)}
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in found or name not in methods:
                continue
            found.add(name)
            waiting += [each.attr for each in ast.walk(methods[name]) if isinstance(each, ast.Attribute)]
        return found

    def _registered(self, begin: ast.Assign | ast.AnnAssign, first: ast.expr) -> list[Replacement]:
        torch, value = self.draft.torch, self.source.of(first)
        dtype = f", dtype={torch}.float64" if self.type == "float" else ""
        made = f"{torch}.tensor({value}{dtype})"
        text = f'self.register_buffer("{self.attr}", {made}, persistent=False)'
        if begin in self.cls.body:
            return registered_by_constructor(self.source, self.cls, begin, text)
        others = [] if isinstance(begin, ast.AnnAssign) else assigned_pairs(begin)
        others = [(target, value) for target, value in others if dotted(target) != self.path]
        if others and not self.source.begins_line(begin):
            raise Refused(f"`{self.path}` is set together with others, on a line with other statements")
        if len({id(value) for _, value in others}) < len(others):
            raise Refused(f"`{self.path}` is set together with several others")
        indent = self.source.newline + self.source.indent_of(begin)
        for target, given in others:
            text += f"{indent}{self.source.of(target)} = {self.source.of(given)}"
        return [self.source.swap(begin, text)]

    def _written(self, write: ast.stmt) -> str:
        if not isinstance(write, (ast.Assign, ast.AugAssign)):
            raise Refused(f"`{ast.unparse(write)}` declares the attribute again")
        read_out = _read_out(write.value)
        method = "copy_" if isinstance(write, ast.Assign) else _IN_PLACE.get(type(write.op))
        if read_out is not None and method is not None and self.type == "float":
            # In double precision it is the very number that Python would have.
            return f"{self.path}.{method}({primary(self.source.of(read_out))}.detach().reshape(()))"
        if self.type == "bool" and isinstance(write, ast.Assign):
            function = self.source.enclosing_function(write.value)
            kinds = self.draft.kinds({})
            asked = None if function is None else asked_tensor(write.value, function, kinds, self.draft)
            if asked is not None:
                return f"{self.path}.copy_({self.source.of(asked)})"
        found = self._type_of(write.value)
        if found is None and self.type == self.became == "float" and isinstance(write, ast.AugAssign):
            found = self.became
        divides = isinstance(write, ast.AugAssign) and isinstance(write.op, (ast.Div, ast.Pow))
        if (
            found is None
            or (self.type == "int" and (found != "int" or divides))
            or self.type == "bool" != found
        ):
            raise Refused(f"`{ast.unparse(write)}` may give a number of another type")
        if any(
            dotted(each) == self.path for each in ast.walk(write.value) if isinstance(each, ast.Attribute)
        ):
            text = self._in_tensors(write.value)
            if not isinstance(write, ast.Assign):
                raise Refused(f"`{ast.unparse(write)}` reads the number beside what it adds to")
            return f"{self.path}.copy_({text})"
        value = self.source.of(write.value)
        if isinstance(write, ast.Assign):
            return f"{self.path}.fill_({value})"
        if method is None:
            raise Refused(f"`{ast.unparse(write)}` has no method that does the same in place")
        return f"{self.path}.{method}({value})"

    def _extremes(self, reads: list[ast.Attribute]) -> list[Replacement]:
        """`max` and `min` of the number as torch's own, which take in what data tells."""
        return [
            self.source.swap(each.func, f"{self.draft.torch}.{_EXTREMES[ast.unparse(each.func)]}")
            for each in self._chosen(reads)
        ]

    def _chosen(self, reads: list[ast.Attribute]) -> list[ast.Call]:
        """The calls of `max` and `min` that a read is part of."""
        calls: dict[int, ast.Call] = {}
        for read in reads:
            for each in self.source.ancestors(read):
                if isinstance(each, ast.stmt):
                    break
                if isinstance(each, ast.Call) and ast.unparse(each.func) in _EXTREMES:
                    if len(each.args) != 2 or each.keywords or None in map(self._type_of, each.args):
                        raise Refused(
                            f"`{ast.unparse(each)}` does not choose between two numbers of known types"
                        )
                    calls[id(each)] = each
        return list(calls.values())

    def _in_tensors(self, value: ast.expr) -> str:
        """The text of `value` computed of the buffer itself: strict tracing may take two numbers that are read out of the same
        tensor for different ones (measured on torch 2.13)."""
        reads = [
            each for each in ast.walk(value) if isinstance(each, ast.Attribute) and dotted(each) == self.path
        ]
        swaps = []
        for each in self._chosen(reads):
            own = [
                one
                for one in each.args
                if any(dotted(part) == self.path for part in ast.walk(one) if isinstance(part, ast.Attribute))
            ]
            other = [one for one in each.args if one not in own]
            if not other:
                name = {"max": "maximum", "min": "minimum"}[ast.unparse(each.func)]
                swaps.append(self.source.swap(each.func, f"{self.draft.torch}.{name}"))
                continue
            bound = {"max": "min", "min": "max"}[ast.unparse(each.func)]
            text = f"{self.draft.torch}.clamp({self.source.of(own[0])}, {bound}={self.source.of(other[0])})"
            swaps.append(self.source.swap(each, text))
        if any(_holds(one, another) and one is not another for one in swaps for another in swaps):
            raise Refused(f"`{ast.unparse(value)}` chooses a number of numbers that are chosen")
        return self.source.of(value, swaps)

    def _type_of(self, node: ast.expr) -> str | None:
        """The type of the number that `node` gives, "number" for an int or a float; None where it may be something else."""
        constant = _constant(node)
        if constant is not None:
            return type(constant).__name__
        if dotted(node) == self.path:
            return self.type
        if isinstance(node, ast.Attribute):
            if self.draft.qualified(node) in ("math.pi", "math.e", "math.tau", "numpy.pi", "numpy.e"):
                return "float"
            return self._type_of_option(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._type_of(node.operand)
        if isinstance(node, ast.Name):
            function = self.source.enclosing_function(node)
            if function is not None and (self.cls.name, function.name, node.id) in self.given:
                return self.type
            given = [
                value
                for each in (ast.walk(function) if function is not None else ())
                if isinstance(each, ast.Assign)
                for target, value in assigned_pairs(each)
                if dotted(target) == node.id
            ]
            if not given and function is not None and is_unpacked_size(function, node.id):
                return "int"
            if given and all(_read_out(each) is not None for each in given):
                return "number"
            if not given and function is not None and function in self.cls.body:
                return self._type_given_by_calls(function, node.id)
            return self._type_of(given[0]) if len(given) == 1 and not self._reads(given[0], node.id) else None
        if isinstance(node, ast.BinOp):
            parts = [self._type_of(node.left), self._type_of(node.right)]
            if isinstance(node.op, (ast.Div, ast.Pow)):
                return (
                    "float"
                    if None not in parts and (isinstance(node.op, ast.Div) or "float" in parts)
                    else None
                )
        elif isinstance(node, ast.IfExp):
            parts = [self._type_of(node.body), self._type_of(node.orelse)]
        elif _is_size(node):
            return "int"
        elif (inner := _read_out(node)) is not None:
            return self._type_held(inner) if isinstance(inner, ast.Attribute) else "number"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _EXTREMES:
            parts = [self._type_of(each) for each in node.args]
        elif isinstance(node, ast.Call) and (told := self._type_given(node)) is not None:
            return told
        else:
            return None
        if not set(parts) <= {"int", "float", "number"}:
            return None
        if "number" in parts and "float" not in parts:
            return "number"
        return "float" if "float" in parts else "int"

    def _reads(self, value: ast.expr, name: str) -> bool:
        return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(value))

    def _type_given_by_calls(self, function: Function, name: str) -> str | None:
        """The type of the number that all calls in the file give the parameter `name`."""
        statements = [each for placed in self.draft.context.document.placed for each in placed.chunk.body]
        default = _defaults(function.args).get(name)
        given = given_by_calls(statements, self.cls, function, name, default)
        types: set[str | None] = set()
        for each in given or ():
            constant = _constant(each)
            if constant is not None:
                types.add(type(constant).__name__)
            else:
                read = _read_out(each) is not None or ast.unparse(each).startswith("float(")
                types.add("int" if _is_size(each) else "number" if read else None)
        if not types or not types <= {"int", "float", "number"}:
            return None
        return types.pop() if len(types) == 1 else "number"

    def _type_given(self, call: ast.Call) -> str | None:
        """The type of what a conversion or a function of the math module gives, of numbers of known types."""
        name = ast.unparse(call.func)
        given = _CONVERTING.get(name, _MATHEMATICAL.get(self.draft.qualified(call.func)))
        parts = [self._type_of(each) for each in call.args]
        if self.draft.qualified(call.func) in _BOUNDING and set(parts) == {"float"} and not call.keywords:
            return "float"
        if given is None or not parts or None in parts or call.keywords:
            return None
        return (given or parts[0]) if len(parts) == 1 or given == "float" else None

    def _type_held(self, node: ast.Attribute) -> str | None:
        """The type of the number that a buffer holds which another fix of this kind has made."""
        for each in ast.walk(self.cls):
            if (
                isinstance(each, ast.Call)
                and ast.unparse(each.func) == "self.register_buffer"
                and len(each.args) == 2
            ):
                name, made = each.args
                if isinstance(name, ast.Constant) and name.value == node.attr and isinstance(made, ast.Call):
                    constant = _constant(made.args[0]) if made.args else None
                    if self.draft.qualified(made.func) == "torch.tensor" and constant is not None:
                        return type(constant).__name__
        return None

    def _type_of_option(self, node: ast.Attribute) -> str | None:
        """The type of another number of the Module, that `__init__` sets to a constant or to a parameter whose default tells."""
        sets = [
            (statement, value)
            for statement in ast.walk(self.cls)
            if isinstance(statement, ast.Assign)
            for target, value in assigned_pairs(statement)
            if dotted(node) == dotted(target)
        ]
        if len(sets) != 1 or not self._of_constructor(sets[0][0]):
            return None
        statement, value = sets[0]
        if isinstance(value, ast.Name):
            function = self.source.enclosing_function(statement)
            args = function.args if function is not None else ast.arguments([], [], None, [], [], None, [])
            defaults = _defaults(args)
            if value.id in {each.arg for each in arguments(args)} and value.id not in defaults:
                return self._type_from_callers(args, value.id)
            value = defaults.get(value.id, value)
        constant = _constant(value)
        return None if constant is None else type(constant).__name__

    def _type_from_callers(self, args: ast.arguments, name: str) -> str:
        """The type of the number that all of the file give the constructor as its parameter `name`, where they write it out."""
        names = [each.arg for each in [*args.posonlyargs, *args.args]][1:]
        types: set[str | None] = set()
        for placed in self.draft.context.document.placed:
            for each in (one for statement in placed.chunk.body for one in ast.walk(statement)):
                if not (isinstance(each, ast.Call) and dotted(each.func) == self.cls.name):
                    continue
                given = dict(zip(names, each.args, strict=False)) | {
                    one.arg: one.value for one in each.keywords if one.arg
                }
                number = _constant(given.get(name))
                types.add(None if number is None else type(number).__name__)
        return types.pop() or "number" if len(types) == 1 else "number"

    def _refuse_read(self, read: ast.expr, depth: int = 0) -> None:
        """Raise Refused where a number that is only known when the program runs may not be used as this one is."""
        if self._sets_it(self.source.enclosing_statement(read)):
            return
        node: ast.AST = read
        for parent in self.source.ancestors(read):
            if isinstance(parent, ast.Assign) and [type(each) for each in parent.targets] == [ast.Name]:
                if self._type_of(parent.value) is not None or isinstance(node, ast.Attribute):
                    self._refuse_name(parent, depth)
                return
            if isinstance(parent, (ast.Return, ast.AugAssign, ast.Assign)):
                return
            if isinstance(parent, (ast.If, ast.IfExp, ast.BoolOp)):
                refuse_unset(self.source, parent, self.draft.others())
            if isinstance(parent, ast.If) and node is parent.test:
                if self.type != "bool":
                    refuse_arms(parent, self.cls)
                return
            if isinstance(parent, ast.IfExp) and node is parent.test:
                return
            name = ""
            if isinstance(parent, ast.Call):
                name = (
                    parent.func.attr if isinstance(parent.func, ast.Attribute) else ast.unparse(parent.func)
                )
                if name in _TAKING_NUMBERS or self._takes_tensor(parent, name, node):
                    return
                if self._is_handed_on(parent, node, read, depth):
                    return
            if isinstance(parent, ast.Subscript) and node is parent.slice and self._is_tensor(parent.value):
                return
            given = isinstance(parent, ast.Call) and self._type_given(parent) is not None
            if name not in _EXTREMES and not given and not isinstance(parent, _COMPUTING):
                raise Refused(
                    f"`{ast.unparse(parent)}` takes the number, which would be known only when the program runs"
                )
            node = parent

    def _is_handed_on(self, call: ast.Call, node: ast.AST, read: ast.expr, depth: int) -> bool:
        """Whether `call` runs functions of the file, and each uses the number, or what is computed of it, as such a number may be
        used. Raises Refused where one does not."""
        if node is not read and not isinstance(node, ast.keyword):
            return False
        argument = node.value if isinstance(node, ast.keyword) else node
        found = called_functions(self.draft, self.cls, call) if depth <= _DEEPEST else []
        for chunk, cls, function in found:
            name = parameter_for(call, argument, function)
            if name is None:
                return False
            inside = self if chunk is self.draft.chunk else self._inside(chunk, cls)
            there = inside.source.find(function) if inside is not self else function
            self.given.add((cls.name, function.name, name))
            for each in ast.walk(there):
                if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                    inside._refuse_read(each, depth + 1)
                    slices = [one for one in inside.source.ancestors(each) if isinstance(one, ast.Slice)]
                    if any(bounds_open_slice(inside.source, one) for one in slices):
                        self.handed.add(read)
        return bool(found)

    def _inside(self, chunk: Chunk, cls: ast.ClassDef) -> _Number:
        """The same number in a class of another chunk, which knows it by the names of parameters."""
        other = copy.copy(self)
        other.draft = Draft.of_chunk(chunk, self.draft.context)
        other.source = other.draft.source
        found = other.source.find(cls)
        assert isinstance(found, ast.ClassDef)
        other.cls = found
        other.path = ""
        other.elsewhere = True
        return other

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether what is indexed certainly is a tensor: a number that data tells is no index of a list."""
        path = dotted(node)
        if path is not None and path.startswith("self.") and path.count(".") == 1:
            if self.elsewhere:
                return is_made_as_tensor(self.draft, self.cls, path)
            held = self.owner.attributes.get(path.removeprefix("self."))
            return held is not None and all(isinstance(each, Tensor) for each in options(held))
        statement = self.source.enclosing_statement(node)
        function = self.source.enclosing_function(statement)
        if function is None:
            return False
        return kinds_before(function, statement, self.draft.kinds({})).of(node).what == "tensor"

    def _takes_tensor(self, call: ast.Call, name: str, node: ast.AST) -> bool:
        """Whether `node`, which the number is a part of, must be a tensor for the call to work."""
        if not isinstance(node, (ast.BinOp, ast.Compare)):
            return False
        module = self.draft.qualified(call.func).rpartition(".")[0]
        layer = isinstance(call.func, ast.Attribute) and name in _TAKING_TENSORS
        if isinstance(node, ast.Compare):
            # A branch that another fix has rewritten may hang on the comparison.
            return name == "where" or (name == "cond" and call.args[:1] == [node])
        return layer or (
            module in ("torch", "torch.nn.functional")
            and call.args[:1] == [node]
            and name not in _TAKING_NO_TENSOR
        )

    def _sets_it(self, statement: ast.stmt) -> bool:
        if isinstance(statement, ast.AugAssign):
            return dotted(statement.target) == self.path
        return isinstance(statement, ast.Assign) and any(
            dotted(each) == self.path for each, _ in assigned_pairs(statement)
        )

    def _refuse_name(self, statement: ast.Assign, depth: int) -> None:
        """Raise Refused where a name for the number, or for what is computed of it, is used in another way than such a number may be."""
        function = self.source.enclosing_function(statement)
        name = ast.unparse(statement.targets[0])
        if function is None or depth > _DEEPEST:
            raise Refused(f"`{ast.unparse(statement)}` gives the number another name")
        for each in ast.walk(function):
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load):
                self._refuse_read(each, depth + 1)


def _defaults(args: ast.arguments) -> dict[str, ast.expr]:
    """The defaults of a function's parameters, by name."""
    named = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(named[::-1], args.defaults[::-1], strict=False),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    return {one.arg: default for one, default in pairs if default is not None}


def _is_bound_in(function: Function, name: str) -> bool:
    """Whether the function binds one of its parameters anew."""
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )


def _is_size(node: ast.expr) -> bool:
    """Whether `node` asks how large something is: `x.shape[0]`, `x.size(0)`, `len(x)`."""
    if isinstance(node, ast.Subscript):
        one = isinstance(node.slice, (ast.Constant, ast.UnaryOp))
        return one and isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in ("numel", "dim", "nelement") or (
            node.func.attr == "size" and len(node.args) == 1
        )
    return isinstance(node.func, ast.Name) and node.func.id == "len"


def _read_out(node: ast.expr) -> ast.expr | None:
    """The tensor that `node` reads a number out of by `.item()`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item":
        return node.func.value
    return None


def _constant(node: ast.expr | None) -> int | float | bool | None:
    """The number that is written out, or computed of such numbers: `2.0**16`."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _constant(node.operand)
        return None if inner is None or isinstance(inner, bool) else -inner
    if isinstance(node, ast.BinOp):
        left, right = _constant(node.left), _constant(node.right)
        if left is None or right is None:
            return None
        computed = fold(BINARY[type(node.op)], left, right)
        number = computed.value if isinstance(computed, Const) else None
        return number if isinstance(number, (bool, int, float)) else None
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float)):
        return node.value
    return infinity(node)


def _holds(outer: Replacement, inner: Replacement) -> bool:
    return outer.start <= inner.start and inner.end <= outer.end
