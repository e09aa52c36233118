"""State that is None until the first call and a tensor then, as a buffer and a flag that tells whether it has begun.

    self.peak = None                            self.register_buffer("peak", torch.zeros(()), persistent=False)
                                                self.register_buffer("peak_begun", torch.tensor(False), persistent=False)
    ...                                         ...
    if self.peak is None:               ->      if not self.peak_begun:
        self.peak = x.max()                         self.peak.copy_(x.max())
                                                    self.peak_begun.fill_(True)

Of a tensor without dimensions the final shape is known; of others where the file gives its model example inputs, which tell it.
"""

from __future__ import annotations

import ast
import contextlib
from dataclasses import dataclass

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeWrite
from exportlens.inference.sizes import sizes_of
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import ClassValue, Const, Instance, Named, Tensor, Value, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import assigned_pairs, dotted, fresh
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.rewriting.kinds.float_evidence import computes_with_floats, counts_or_picks
from exportlens.rewriting.kinds.kind import Kind, of_value
from exportlens.rewriting.kinds.undimensioned import has_no_dimensions
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.state.begun_in_bases import class_that_begins
from exportlens.rewriting.state.begun_in_class import (
    begun_in_class,
    is_emptied_by_constructor,
    module_made,
    registered_by_constructor,
)
from exportlens.rewriting.state.begun_questions import (
    asks_for_it,
    asks_for_none,
    is_set_before,
    names_it,
    reads_it,
)
from exportlens.rewriting.state.begun_together import Together
from exportlens.rewriting.state.joined_classes import class_with_bases
from exportlens.rewriting.state.kept_values import kept_apart
from exportlens.rewriting.state.other_classes import of_other_classes
from exportlens.rewriting.state.plain_objects import made_module, module_first
from exportlens.rewriting.state.registrations import refuse_before_module

# What hands on what it is given.
_TAKING_ANYTHING = ("Identity", "Sequential", "ModuleList", "ModuleDict", "Module")


def begun_by_the_first_call(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that registers the number, and a flag for the None."""
    why = (
        "the state is None at first: make it a tensor of its final shape in `__init__`, "
        "or give the file example inputs, which tell it"
    )
    return begun_as(UnbegunState, place, context, why)


def begun_for_branch(path: str, context: RewriteContext) -> Fix | None:
    """The fix that registers the state at `path`, which a branch on tensor data sets that torch.cond is to take the place of; None
    where its sizes are not known, or it cannot be registered."""
    made = context.state_in_sizes().get(path.removeprefix("self."), {})
    for place in made.values():
        if place.began == Const(None) and path == f"self.{place.attr}":
            fix = begun_by_the_first_call(place, context)
            return fix if isinstance(fix, Fix) else None
    return None


def begun_as(
    state: type[UnbegunState], place: AttributeWrite, context: RewriteContext, why: str
) -> Fix | Refusal:
    """The fix that registers `state`; `why` there is none where the tensor is not known to be one number."""
    try:
        owner = place.owner.cls if isinstance(place.owner, Instance) else None
        if not isinstance(owner, ClassValue):
            raise Refused("the class that keeps the state is not known")
        draft, cls = class_with_bases(owner, place.attr, context)
        sized = SizedState.of(draft, place)
        if sized is None and not is_one_float(place.value):
            raise Refused(why)
        base = made_module(draft, cls, class_that_begins(owner, place.attr), place.owner)
        if base and begun_in_class(cls, place.attr) is not None:
            return module_first(draft, cls, base)
        written = draft.source.enclosing_statement(draft.find(place.node, place.site.chunk))
        if sized is None and not all(
            isinstance(each, Tensor) and each.dtype for each in options(place.value)
        ):
            _refuse_ints(draft, written)
        assert isinstance(place.owner, Instance)
        swaps = state(draft, cls, place.owner, place.attr, written, sized or SizedState()).swaps()
        of_sizes = (
            f", of the sizes that the example inputs give it: {sized.sizes}" if sized and sized.sizes else ""
        )
        message = f"Begin `{place.attr}` as a buffer{of_sizes}"
        return base.joined(draft.replace(message, [*base, *swaps], Applicability.UNSAFE))
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


@dataclass(frozen=True)
class SizedState:
    """The sizes and the dtype ("" for the default one) of a state, and the statements that are known to write such a tensor."""

    sizes: tuple[int, ...] = ()
    dtype: str = ""
    written: frozenset[ast.stmt] = frozenset()

    @classmethod
    def of(cls, draft: Draft, place: AttributeWrite) -> SizedState | None:
        """What the example inputs of the file make of the state that `place` writes; None where they do not tell."""
        made = draft.context.state_in_sizes().get(place.attr, {})
        tensor = made[place.node].value if place.node in made else None
        sizes = sizes_of(tensor)
        if sizes is None or not isinstance(tensor, Tensor):
            return None
        dtype = "" if tensor.dtype in ("float", "float32") else tensor.dtype
        if dtype is None or dtype in ("int", "complex"):
            return None
        written = set()
        for node, each in made.items():
            with contextlib.suppress(LookupError):
                statement = draft.source.enclosing_statement(draft.find(node, each.site.chunk))
                one = each.value
                alike = isinstance(one, Tensor) and dtype_family(one.dtype) == dtype_family(tensor.dtype)
                if alike and sizes_of(one) == sizes:
                    written.add(statement)
        return cls(sizes, dtype, frozenset(written))

    def made(self, torch: str, begin: float | None = None) -> str:
        """The text that makes a tensor of zeros, or of `begin`, in these sizes."""
        dtype = f", dtype={torch}.{self.dtype}" if self.dtype else ""
        if begin is None:
            sizes = "()" if not self.sizes else ", ".join(map(str, self.sizes))
            return f"{torch}.zeros({sizes}{dtype})"
        return (
            f"{torch}.full({self.sizes}, {begin}{dtype})"
            if self.sizes or dtype
            else f"{torch}.tensor({begin})"
        )


def _refuse_ints(draft: Draft, statement: ast.stmt) -> None:
    """Raise Refused where what `statement` binds may be of ints: the buffer holds floats."""
    function = draft.source.enclosing_function(statement)
    placed = [each for one in draft.context.document.placed for each in one.chunk.body]
    names = _computed_of(function, statement)
    if not computes_with_floats(placed) or (function is not None and counts_or_picks(function, names)):
        raise Refused(f"`{draft.source.of(statement)}` may bind a tensor of ints: nothing tells its dtype")


def _computed_of(function: Function | None, statement: ast.stmt) -> set[str]:
    """The names that `statement` is computed of, and those that these are computed of in the function."""
    names = {each.id for each in ast.walk(statement) if isinstance(each, ast.Name)}
    assigned = [each for each in (ast.walk(function) if function else ()) if isinstance(each, ast.Assign)]
    for each in sorted(assigned, key=lambda one: -one.lineno):
        if names & {
            one.id for target in each.targets for one in ast.walk(target) if isinstance(one, ast.Name)
        }:
            names |= {one.id for one in ast.walk(each.value) if isinstance(one, ast.Name)}
    return names - {"self"}


def is_one_float(value: Value) -> bool:
    """Whether `value` is a tensor of floats without dimensions, as far as its dtype is known."""
    return all(
        isinstance(each, Tensor) and each.rank == 0 and dtype_family(each.dtype) in (None, "float")
        for each in options(value)
    )


class UnbegunState:
    """One attribute: where the class begins it, asks for the None, and writes it."""

    def __init__(
        self, draft: Draft, cls: ast.ClassDef, owner: Instance, attr: str, known: ast.stmt, sized: SizedState
    ) -> None:
        self.draft, self.source, self.cls, self.attr = draft, draft.source, cls, attr
        self.owner = owner
        self.path = f"self.{attr}"
        # The statement that is known to bind such a tensor.
        self.known = known
        self.sized = sized
        self.flag = fresh(f"{attr}_begun", draft.taken(draft.source.tree))
        # Where nothing asks for the None, what is asked of another attribute decides for this one, too.
        self.asked = any(self._question(each) is not None or self._is_reset(each) for each in ast.walk(cls))

    def swaps(self) -> list[Replacement]:
        swaps, begun = self._changed()
        if begun == 0:
            swaps.update({(one.start, one.end): one for one in self._begun_elsewhere()})
        elif begun != 1:
            raise Refused(f"`{self.path}` is not set to None once in `__init__`")
        whole = [each for each in swaps.values() if each.start < each.end]
        return [
            each
            for each in swaps.values()
            if not any(one is not each and one.start <= each.start and each.end <= one.end for one in whole)
        ]

    def _changed(self) -> tuple[dict[tuple[int, int], Replacement], int]:
        """What changes of the class, by its place, and in how many statements `__init__` sets the state."""
        self._refuse_other_users()
        swaps: dict[tuple[int, int], Replacement] = {}
        begun = 0
        for each in ast.walk(self.cls):
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and self._is_bound_by(each):
                found = self._write(each)
                begun += self._of_constructor(each)
            else:
                found = self._others(each)
            swaps.update({(one.start, one.end): one for one in found})
        return swaps, begun

    def _others(self, node: ast.AST) -> list[Replacement]:
        """What becomes of `node`, which does not bind the state."""
        if isinstance(node, ast.Delete) and self.path in map(dotted, node.targets):
            return [self._deleted(node)]
        if (swap := self._question(node)) is not None:
            return [swap]
        if isinstance(node, ast.expr) and reads_it(node, self.path):
            self._refuse_none(node)
        return []

    def _begun_elsewhere(self) -> list[Replacement]:
        """What registers the state in `__init__`, which does not set it: the class does, a method that it calls, or the first call."""
        source, newline = self.source, self.source.newline
        begin = begun_in_class(self.cls, self.attr)
        if begin is not None and isinstance(begin[1], ast.Constant) and begin[1].value is None:
            text = newline.join(self._registered())
            return registered_by_constructor(source, self.cls, begin[0], text)
        if not self._is_asked_by_hasattr() and not is_emptied_by_constructor(self.cls, self.path):
            raise Refused(f"`{self.path}` is not set to None once in `__init__`")
        made = module_made(source, self._constructor())
        at, indent = source.end(made), newline + source.indent_of(made)
        return [Replacement(at, at, "".join(indent + line for line in self._registered()))]

    def _refuse_other_users(self) -> None:
        inside = {id(each) for each in ast.walk(self.cls)} | of_other_classes(self.cls, self.draft.file())
        asked = {id(part) for each in ast.walk(self.cls) for part in names_it(each, self.attr)}
        called: set[int] = set()
        for each in (one for statement in self.draft.file() for one in ast.walk(statement)):
            if isinstance(each, ast.Call):
                # Nobody calls a tensor: `x.mean()` is of another object.
                called.add(id(each.func))
            if isinstance(each, ast.Constant) and each.value == self.attr and id(each) not in asked:
                raise Refused(f"`{self.attr}` is also used by its name, as a text")
            other = isinstance(each, ast.Attribute) and each.attr == self.attr
            if other and id(each) not in called and (id(each) not in inside or dotted(each) != self.path):
                raise Refused(f"`{ast.unparse(each)}` is used as well, perhaps of the same object")

    def _refuse_none(self, read: ast.expr) -> None:
        """Raise Refused where `read` may give the None away, or asks for it by its truth."""
        parent = self.source.parents[read]
        if isinstance(parent, (ast.Attribute, ast.Subscript, ast.Compare)):
            return  # what None does not have, or not do
        if isinstance(parent, ast.BinOp) or (isinstance(parent, ast.AugAssign) and parent.value is read):
            return
        if isinstance(parent, ast.Call) and self.draft.qualified(parent.func).startswith("torch."):
            return
        if isinstance(parent, ast.Call) and read in parent.args and self._is_layer(parent.func):
            return
        function = self.source.enclosing_function(read)
        tells = Together(self.source, self.cls, self.path).asked
        if function is None or not is_set_before(self.source, function, read, self.path, tells):
            text = ast.unparse(parent).splitlines()[0]
            raise Refused(f"`{text}` takes `{self.path}`, which may be None")

    def _is_layer(self, called: ast.expr) -> bool:
        """Whether `called` is a layer of torch's that the model holds: what those take first may not be None."""
        path = dotted(called) or ""
        held = self.owner.attributes.get(path.removeprefix("self.")) if path.startswith("self.") else None
        kind = held.cls.name if isinstance(held, Instance) and isinstance(held.cls, Named) else ""
        return kind.startswith("torch.nn.") and kind.rpartition(".")[2] not in _TAKING_ANYTHING

    def _constructor(self) -> Function:
        for each in self.cls.body:
            if isinstance(each, ast.FunctionDef) and each.name == "__init__":
                return each
        raise Refused("the class has no constructor that could register the state")

    def _of_constructor(self, node: ast.AST) -> bool:
        return getattr(self.source.enclosing_function(node), "name", "") == "__init__"

    def _is_asked_by_hasattr(self) -> bool:
        return any(names_it(each, self.attr) for each in ast.walk(self.cls))

    def _is_bound_by(self, statement: ast.Assign | ast.AnnAssign) -> bool:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        return any(
            dotted(part) == self.path
            for each in targets
            for part in (each.elts if isinstance(each, (ast.Tuple, ast.List)) else [each])
        )

    def _registered(self) -> list[str]:
        torch = self.draft.torch
        lines = [
            f'self.register_buffer("{self.attr}", {self.sized.made(torch)}, persistent=False)',
            f'self.register_buffer("{self.flag}", {torch}.tensor(False), persistent=False)',
        ]
        return lines if self.asked else lines[:1]

    def _is_reset(self, node: ast.AST) -> bool:
        """Whether `node` sets the state back to None, or deletes it."""
        if isinstance(node, ast.Delete):
            return self.path in map(dotted, node.targets)
        return (
            isinstance(node, (ast.Assign, ast.AnnAssign))
            and not self._of_constructor(node)
            and any(
                dotted(target) == self.path and isinstance(value, ast.Constant)
                for target, value in assigned_pairs(node)
            )
        )

    def _write(self, statement: ast.Assign | ast.AnnAssign) -> list[Replacement]:
        source, function = self.source, self.source.enclosing_function(statement)
        if not source.begins_line(statement) or function is None:
            raise Refused(
                f"`{self.path}` is set on a line with other statements, or in the body of the class"
            )
        if statement.value is None:
            raise Refused(f"`{source.of(statement)}` declares the attribute again")
        pairs = assigned_pairs(statement)
        own = [(target, value) for target, value in pairs if dotted(target) == self.path]
        if not own and statement in self.sized.written:
            return self._written_beside(function, statement)
        if len(own) != 1:
            raise Refused(f"`{self.path}` is set together with other targets")
        value = own[0][1]
        next_line = source.newline + source.indent_of(statement)
        empty = isinstance(value, ast.Constant) and value.value is None
        if self._of_constructor(statement):
            if not empty or self.source.parents[statement] is not function:
                raise Refused(f"`{self.path}` is not set to None in `__init__`")
            refuse_before_module(source, statement)
            lines = self._registered()
        elif empty:
            lines = [f"self.{self.flag}.fill_(False)"]
        else:
            self._refuse_dimensions(function, statement, value)
            kept = kept_apart(source, function, self.path, statement, self.draft.kinds({}))
            inside = [each for each in kept if source.start(statement) <= each.start <= source.end(statement)]
            inside += [swap for each in ast.walk(value) if (swap := self._question(each)) is not None]
            begins = [f"self.{self.flag}.fill_(True)"] if self.asked else []
            lines = [f"{self.path}.copy_({source.of(value, inside)})", *begins]
            if len(pairs) > 1:
                # The others are computed first, as the two sides of the assignment are.
                name = fresh(self.attr.strip("_") or "state", self.draft.taken(source.tree))
                swaps = [*inside, source.swap(own[0][0], name)]
                lines = [source.of(statement, swaps), f"{self.path}.copy_({name})", *begins]
            others = [each for each in kept if each not in inside]
            return [source.swap(statement, next_line.join(lines)), *others]
        # What is set to None beside it goes on being set to what it was.
        lines += [
            f"{source.of(target)} = {source.of(one)}" for target, one in pairs if target is not own[0][0]
        ]
        return [source.swap(statement, next_line.join(lines))]

    def _written_beside(self, function: Function, statement: ast.Assign | ast.AnnAssign) -> list[Replacement]:
        """`self.h, self.c = cell(x)`: what is unpacked is bound to a name, and then written."""
        source = self.source
        targets = [
            each
            for each in ast.walk(statement)
            if isinstance(each, ast.Attribute)
            and dotted(each) == self.path
            and isinstance(each.ctx, ast.Store)
        ]
        around = source.parents[targets[0]]
        plain = isinstance(around, (ast.Tuple, ast.List)) and source.parents[around] is statement
        if len(targets) != 1 or not plain or not isinstance(statement, ast.Assign):
            raise Refused(f"`{self.path}` is set together with other targets")
        name = fresh(self.attr.strip("_") or "state", self.draft.taken(source.tree))
        kept = kept_apart(source, function, self.path, statement, self.draft.kinds({}))
        inside = [each for each in kept if source.start(statement) <= each.start <= source.end(statement)]
        begins = [f"self.{self.flag}.fill_(True)"] if self.asked else []
        lines = [
            source.of(statement, [*inside, source.swap(targets[0], name)]),
            f"{self.path}.copy_({name})",
            *begins,
        ]
        text = (source.newline + source.indent_of(statement)).join(lines)
        return [source.swap(statement, text), *(each for each in kept if each not in inside)]

    def _deleted(self, statement: ast.Delete) -> Replacement:
        if len(statement.targets) > 1:
            raise Refused(f"`{self.source.of(statement)}` deletes more than `{self.path}`")
        return self.source.swap(statement, f"self.{self.flag}.fill_(False)")

    def _refuse_dimensions(self, function: Function, statement: ast.stmt, value: ast.expr) -> None:
        if statement in self.sized.written or (
            statement is self.known and value is getattr(statement, "value", None)
        ):
            return
        if self.sized.sizes:
            text, sizes = self.source.of(value), self.sized.sizes
            raise Refused(
                f"`{text}` is not known to have the sizes {sizes}, which the example inputs give the state"
            )
        kinds = kinds_before(function, statement, self.draft.kinds({}))
        kinds.names |= {
            f"self.{name}": of_value(each, f"self.{name}") for name, each in self.owner.attributes.items()
        }
        kinds.names[self.path] = Kind("tensor", "float32", 0, roots=frozenset({self.path}))
        if not has_no_dimensions(value, function, kinds, self.draft):
            raise Refused(f"`{self.source.of(value)}` is not known to be a tensor without dimensions")

    def _question(self, node: ast.AST) -> Replacement | None:
        """What asks for the flag in the place of `node`, which asks whether the state has begun; None where it asks nothing."""
        if asks_for_it(node, self.attr):
            return self.source.swap(node, f"self.{self.flag}")
        begun = asks_for_none(node, self.path)
        if begun is None:
            return None
        return self.source.swap(node, f"self.{self.flag}" if begun else f"not self.{self.flag}")
