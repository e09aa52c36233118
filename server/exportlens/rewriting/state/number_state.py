"""Numbers that a Module counts in an attribute, `self.steps += 1`, as a buffer: the exported program goes on counting.

    self.steps = 0                      self.register_buffer("steps", torch.tensor(0), persistent=False)
    ...                                 ...
    self.steps += 1              ->     self.steps.add_(1)
    return x / self.steps               return x / self.steps.item()

What reads the number still gets a number, in eager mode the very same: floats are held in double precision.
"""

from __future__ import annotations

import ast
import contextlib
from dataclasses import replace

from exportlens.finding import Applicability, Edit, Fix, Refusal
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import ClassValue, Const, Instance, TensorScalar, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, WholeDraft
from exportlens.rewriting.code.names import (
    assigned_pairs,
    bound,
    dotted,
    fresh,
    is_none,
    reads,
)
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.kinds.constant_numbers import constant_number
from exportlens.rewriting.kinds.number_types import chooses, is_size, read_out_of
from exportlens.rewriting.kinds.undimensioned import asked_tensor
from exportlens.rewriting.numbers.number_uses import UsedNumber
from exportlens.rewriting.sizes.sliced_by_numbers import bounds_open_slice, is_unpacked_size
from exportlens.rewriting.state.begun_as_number import begun_as_number, is_given_by_anyone
from exportlens.rewriting.state.begun_by_methods import begun_by_method
from exportlens.rewriting.state.begun_in_bases import class_that_begins
from exportlens.rewriting.state.begun_in_class import begun_in_class, registered_by_constructor
from exportlens.rewriting.state.counted_untraced import counted_untraced
from exportlens.rewriting.state.joined_classes import class_with_bases
from exportlens.rewriting.state.labels import labels
from exportlens.rewriting.state.other_classes import of_other_classes
from exportlens.rewriting.state.plain_objects import made_module, module_first
from exportlens.rewriting.state.read_by_owners import owner_that_reads
from exportlens.rewriting.state.registrations import refuse_before_module
from exportlens.rewriting.state.traced_methods import led_to, untraced_methods
from exportlens.rewriting.state.written_constructors import constructor_written_out
from exportlens.source.document import Chunk

_IN_PLACE: dict[type[ast.operator], str] = {
    ast.Add: "add_", ast.Sub: "sub_", ast.Mult: "mul_", ast.Div: "div_", ast.Mod: "remainder_"
}  # fmt: skip


def number_in_buffer(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that makes the attribute a buffer, and reads numbers out of it."""
    try:
        owner = place.owner.cls if isinstance(place.owner, Instance) else None
        if not isinstance(owner, ClassValue):
            raise Refused("the class that counts is not known")
        draft, cls = class_with_bases(owner, place.attr, context)
        if not isinstance(draft, WholeDraft):
            written_out = constructor_written_out(draft, cls)
            if written_out is not None:
                return written_out
            begun_with_flag = begun_as_number(draft, cls, place)
            if begun_with_flag is not None:
                return begun_with_flag
        base = made_module(draft, cls, class_that_begins(owner, place.attr), place.owner)
        function = place.site.function.node if place.site.function is not None else None
        assert isinstance(place.owner, Instance)
        number = _Number(draft, cls, place.owner, place.attr, getattr(function, "name", ""))
        number.became = type_of_number(place.value)
        with contextlib.suppress(LookupError):
            number.known = draft.source.enclosing_statement(draft.find(place.node, place.site.chunk))
        if number.is_needed():
            begun = begun_by_method(draft, cls, place.attr)
            if begun is not None:
                return begun
        else:
            untraced = counted_untraced(draft, cls, place)
            if untraced is not None:
                return untraced
        in_class = begun_in_class(cls, place.attr) is not None
        if base and in_class:
            return module_first(draft, cls, base)
        swaps = [*base, *number.swaps()]
        message = f"Count in the buffer `{place.attr}`"
        fix = base.joined(draft.replace(message, swaps, Applicability.UNSAFE))
        return replace(fix, edits=(*fix.edits, *number.edits_of_owners()))
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


class _Number(UsedNumber):
    """One attribute: where the class begins, writes and reads it."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, owner: Instance, attr: str, exported: str) -> None:
        super().__init__(draft, cls, owner, attr)
        self.attr = attr
        # The type that a write gives it, as far as the interpreter tells.
        self.became = ""
        # The write that the interpreter tells this of.
        self.known: ast.stmt | None = None
        # Reads by the Modules that hold one of the class.
        self.by_owners: list[tuple[Draft, ast.Attribute, ast.ClassDef]] = []
        # What is known to be traced: other Modules may call any method of one without a `forward`.
        methods = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)} - {"__init__"}
        self.entries = {"forward", exported} | (set() if "forward" in methods else methods)

    def swaps(self) -> list[Replacement]:
        self._refuse_other_users()
        begin, first = self._begin()
        self._refuse_owners()
        uses = [
            each
            for each in ast.walk(self.cls)
            if isinstance(each, ast.Attribute) and each.attr == self.attr and dotted(each) == self.path
        ]
        stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
        writes = [self._write(each) for each in stores if self.source.enclosing_statement(each) is not begin]
        if any(self.of_constructor(each) for each in writes):
            raise Refused(f"`{self.path}` is set several times in `__init__`")
        reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
        if not self.is_needed():
            raise Refused(
                "nothing that is exported reads it: keep it a number for whoever looks at it in eager mode"
            )
        untraced = untraced_methods(self.cls, self.entries, self._statements())
        for each in reads:
            # What only eager mode runs gets the very number.
            if getattr(self._method_around(each), "name", "") not in untraced:
                self.refuse_read(each)
        swaps = self._registered(begin, first)
        outside = [each for each in reads if not self.sets_it(self.source.enclosing_statement(each))]
        if self.by_owners and self.type == "float" and outside:
            # Strict tracing takes two floats that are read out of one tensor for different ones (measured on torch 2.13).
            raise Refused(f"`{ast.unparse(self.by_owners[0][1])}` is used as well, and both are read")
        inside = self._read_out(outside, writes) + self._extremes(outside)
        for write in writes:
            swaps.append(self.source.swap(write, self._written_behind(write)))
        return [*swaps, *inside]

    def _statements(self) -> list[ast.stmt]:
        return self.draft.file()

    def _method_around(self, node: ast.AST) -> ast.AST | None:
        """The method of the class that `node` stands in."""
        return next((each for each in self.source.ancestors(node) if each in self.cls.body), None)

    def is_needed(self) -> bool:
        """Whether what is exported reads the number, or a branch there sets it."""
        uses = [
            each
            for each in ast.walk(self.cls)
            if isinstance(each, ast.Attribute) and dotted(each) == self.path
        ]
        return bool(self.by_owners) or any(
            self._is_traced(each)
            if isinstance(each.ctx, ast.Load)
            else self._is_decided(self.source.enclosing_statement(each))
            for each in uses
        )

    def _is_decided(self, write: ast.stmt) -> bool:
        """Whether a branch sets it to a number that is written out: torch.cond takes the branch only where that is a tensor."""
        value = write.value if isinstance(write, ast.Assign) else None
        around = list(self.source.ancestors(write))
        if any(isinstance(each, (ast.For, ast.While)) and _may_be_left(each) for each in around):
            # Where data ends the loop, rounds that eager does not have must not count.
            return True
        return isinstance(value, ast.Constant) and any(isinstance(each, ast.If) for each in around)

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
        constant = constant_number(self.first)
        if constant is None or constant < 0:
            return False
        for each in ast.walk(self.cls):
            if isinstance(each, (ast.Assign, ast.AugAssign)) and self.sets_it(each):
                adds = isinstance(each, ast.Assign) or isinstance(each.op, (ast.Add, ast.Mult, ast.Mod))
                if not (adds and self._is_positive(each.value)):
                    return False
        return True

    def _is_positive(self, node: ast.expr) -> bool:
        """Whether `node` is an int that is certainly 0 or more, where the number itself is."""
        constant = constant_number(node)
        if constant is not None:
            return constant >= 0
        if is_size(node) or dotted(node) == self.path:
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
            if any(one in written for one in ast.walk(each)) or led_to(self.cls, called) & writers:
                runs.append([])
            else:
                runs[-1].append(each)
        return runs

    def _refuse_other_users(self) -> None:
        """Raise Refused where others than methods of the class know of the attribute."""
        called: set[int] = set()
        named = labels(self.draft.file())
        own = [(self.draft.chunk, each) for each in self.source.tree.body]
        others = [(chunk, each) for chunk in self.draft.others() for each in chunk.body]
        inside = {id(each) for each in ast.walk(self.cls)}
        inside |= of_other_classes(self.cls, [each for _, each in (*own, *others)])
        for chunk, each in ((chunk, each) for chunk, one in [*own, *others] for each in ast.walk(one)):
            if isinstance(each, ast.Call):
                # Nobody calls a number: `x.size(0)` is of a tensor.
                called.add(id(each.func))
            if (
                isinstance(each, ast.Attribute)
                and each.attr == self.attr
                and id(each) not in called
                and (id(each) not in inside or dotted(each) != self.path)
            ):
                self.by_owners.append(self._by_owner(chunk, each))
            if isinstance(each, ast.Constant) and each.value == self.attr and id(each) not in named:
                raise Refused(f"`{self.attr}` is also used by its name, as a text")

    def _by_owner(self, chunk: Chunk, read: ast.Attribute) -> tuple[Draft, ast.Attribute, ast.ClassDef]:
        """`read` of `chunk`, by a Module that holds one of this class, with a draft of it and that Module. Raises Refused."""
        if chunk is self.draft.chunk:
            raise Refused(f"`{ast.unparse(read)}` is used as well, perhaps of the same object")
        draft = Draft.of_chunk(chunk, self.draft.context)
        found = draft.source.find(read)
        assert isinstance(found, ast.Attribute)
        return draft, found, owner_that_reads(draft, found, self.cls.name)

    def _refuse_owners(self) -> None:
        """Raise Refused where a Module that holds one of the class takes no number that is known only when the program runs."""
        for draft, read, owner in self.by_owners:
            there = self._inside(draft.chunk, owner)
            same = there.source.find(read)
            assert isinstance(same, ast.Attribute)
            there.refuse_read(same)

    def edits_of_owners(self) -> list[Edit]:
        """The edits by which those who hold an object of the class read the number out of its buffer."""
        return [
            edit
            for draft, read, _ in self.by_owners
            for edit in draft.replace(
                "", [draft.source.swap(read, f"{draft.source.of(read)}.item()")], uses_torch=False
            ).edits
        ]

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
        if not found and in_class is not None:
            found = [in_class]
        if len(found) != 1 or is_none(found[0][1]):
            raise Refused(f"`{self.path}` is not set once, to a number that is written out, in `__init__`")
        first = self._type_at_first(*found[0])
        if first is None:
            raise Refused(
                f"`{self.path}` begins with `{ast.unparse(found[0][1])}`: an int or a float, nothing in the file tells"
            )
        self.type, self.first = first, found[0][1]
        if found != [in_class]:
            refuse_before_module(self.source, found[0][0])
        return found[0]

    def _type_at_first(self, begin: ast.stmt, value: ast.expr) -> str | None:
        """The type of what `__init__` sets: written out, told by what it is computed of, or by what is written later."""
        constant = constant_number(value)
        if constant is not None:
            # A sum that begins with 0 is a float from the first call on.
            return "float" if type(constant) is int and self.became == "float" else type(constant).__name__
        found = self.type_constructed(begin, value)
        if found in ("int", "float"):
            return "float" if self.became == "float" else found
        if self.type_constructed(begin, value, "number") != "number":
            return None
        # Nothing in the text tells but what the number becomes.
        return "float" if self._becomes_float() else None

    def _becomes_float(self) -> bool:
        """Whether a write gives the number a fraction, whatever it began with: it is a float from there on."""
        self.type = "number"
        for each in ast.walk(self.cls):
            if isinstance(each, ast.AugAssign) and self.sets_it(each):
                value: ast.expr = ast.copy_location(
                    ast.BinOp(ast.Attribute(ast.Name("self"), self.attr), each.op, each.value), each
                )
            elif isinstance(each, ast.Assign) and self.sets_it(each) and not self.of_constructor(each):
                value = each.value
            else:
                continue
            if self.type_of(value) == "float":
                return True
        return False

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

    def _is_traced(self, read: ast.Attribute) -> bool:
        """Whether a read is for more than to count: in another statement than one that writes the number."""
        statement = self.source.enclosing_statement(read)
        writes = isinstance(statement, (ast.Assign, ast.AugAssign)) and any(
            isinstance(each, ast.Attribute) and each.attr == self.attr and not isinstance(each.ctx, ast.Load)
            for each in ast.walk(statement)
        )
        # A function inside of a method runs where that does.
        methods = {
            each.name
            for each in self.source.ancestors(read)
            if each in self.cls.body and isinstance(each, ast.FunctionDef)
        }
        return not writes and bool(methods & led_to(self.cls, self.entries))

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
        read_out = read_out_of(write.value)
        method = "copy_" if isinstance(write, ast.Assign) else _IN_PLACE.get(type(write.op))
        if read_out is not None and method is not None and self.type == "float":
            # In double precision it is the very number that Python would have.
            return f"{self.path}.{method}({primary(self.source.of(read_out))}.detach().reshape(()))"
        if self.type == "bool" and isinstance(write, ast.Assign):
            if ast.unparse(write.value) == f"not {self.path}":
                return f"{self.path}.logical_not_()"
            function = self.source.enclosing_function(write.value)
            kinds = self.draft.kinds({})
            asked = None if function is None else asked_tensor(write.value, function, kinds, self.draft)
            if asked is not None:
                return f"{self.path}.copy_({self.source.of(asked)})"
        found = self.type_of(write.value)
        if found is None and self.type == self.became == "float":
            known = write is self.known and not is_given_by_anyone(self.draft, self.cls, write.value)
            found = self.became if isinstance(write, ast.AugAssign) or known else None
        if found is None and isinstance(write, ast.Assign):
            found = self._type_set(write)
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
            if method is None:
                raise Refused(f"`{ast.unparse(write)}` has no method that does the same in place")
            return f"{self.path}.{method}({text})"
        value = self.source.of(write.value)
        if isinstance(write, ast.Assign):
            return f"{self.path}.fill_({value})"
        if method is None:
            raise Refused(f"`{ast.unparse(write)}` has no method that does the same in place")
        return f"{self.path}.{method}({value})"

    def _type_set(self, write: ast.Assign) -> str | None:
        """The type of what a method that only eager mode runs is given to set: `def set_temperature(self, value)`. Of the numbers
        that nothing tells of, a float holds all."""
        method = self._method_around(write)
        if getattr(method, "name", "") not in untraced_methods(self.cls, self.entries, self._statements()):
            return None
        return self.type_constructed(write, write.value, "number")

    def _extremes(self, reads: list[ast.Attribute]) -> list[Replacement]:
        """`max` and `min` of the number as torch's own, which take in what data tells."""
        return [
            self.source.swap(each.func, f"{self.draft.torch}.sym_{_extreme(each)}")
            for each in self._chosen(reads)
        ]

    def _chosen(self, reads: list[ast.Attribute]) -> list[ast.Call]:
        """The calls of `max` and `min` that a read is part of."""
        calls: dict[int, ast.Call] = {}
        for read in reads:
            for each in self.source.ancestors(read):
                if isinstance(each, ast.stmt):
                    break
                if isinstance(each, ast.Call) and chooses(each):
                    if len(each.args) != 2 or each.keywords or None in map(self.type_of, each.args):
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
        swaps: list[Replacement] = []
        # What chooses among numbers that are chosen, `min(max(self.rate, low), high)`, comes behind these.
        for each in sorted(
            self._chosen(reads), key=lambda call: self.source.end(call) - self.source.start(call)
        ):
            own = [
                one
                for one in each.args
                if any(dotted(part) == self.path for part in ast.walk(one) if isinstance(part, ast.Attribute))
            ]
            other = [one for one in each.args if one not in own]
            if not other:
                name = {"max": "maximum", "min": "minimum"}[_extreme(each)]
                swaps.append(self.source.swap(each.func, f"{self.draft.torch}.{name}"))
                continue
            bound = {"max": "min", "min": "max"}[_extreme(each)]
            begin, end = self.source.start(each), self.source.end(each)
            inside = [one for one in swaps if begin <= one.start and one.end <= end]
            chosen = self.source.of(own[0], inside)
            text = f"{self.draft.torch}.clamp({chosen}, {bound}={self.source.of(other[0])})"
            swaps = [one for one in swaps if one not in inside] + [self.source.swap(each, text)]
        return self.source.of(value, swaps)


def _extreme(call: ast.Call) -> str:
    """ "max" or "min", which `call` chooses: by Python's own function, or by what another fix has made of that."""
    return ast.unparse(call.func)[-3:]


def _may_be_left(loop: ast.For | ast.While) -> bool:
    """Whether what is computed in or before `loop` may end it early."""
    rounds = set(bound(loop.target)) if isinstance(loop, ast.For) else set()
    return any(
        isinstance(each, ast.If)
        and any(isinstance(one, (ast.Break, ast.Return)) for one in each.body)
        and reads(each.test) - rounds - {"self"}
        for each in ast.walk(loop)
    )
