"""State that is written by a computed name: the tensors become buffers of those names, which are written in place.

    for name in ("low", "high"):                          for name in ("low", "high"):
        setattr(self, name, torch.zeros(2))                   self.register_buffer(name, torch.zeros(2), persistent=False)
    ...                                           ->      ...
    setattr(self, name, 0.9 * getattr(self, name) + v)    getattr(self, name).copy_(0.9 * getattr(self, name) + v)

What keeps the tensor of an attribute would see it change, and gets a copy.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.classes import class_attribute, class_order
from exportlens.inference.places import AttributeWrite
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import ClassValue, Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.memory.moving import written_bases
from exportlens.rewriting.state.own_attributes import module_of
from exportlens.rewriting.state.plain_writes import NamedWrite, named_read, named_write
from exportlens.rewriting.state.registrations import refuse_before_module

# What makes a tensor of its own whenever it is called.
_MAKING = frozenset(
    f"torch.{name}" for name in ("zeros", "ones", "full", "eye", "arange", "tensor", "randn", "rand")
)
# What is asked of a tensor without its values.
_FACTS = frozenset({"device", "dtype", "shape", "ndim", "requires_grad", "size", "dim", "numel"})
_JOINING = frozenset({"torch.stack", "torch.cat"})


def copied_by_name(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that writes into the tensor of the name that `place` sets."""
    try:
        owner, draft, cls, base = module_of(place, context)
        if base:
            raise Refused(f"`{owner.name}` is no Module: it has no buffers")
        if sum(isinstance(each, ClassValue) for each in class_order(owner)) > 1:
            raise Refused("another class of the file may set attributes of the same names")
        if class_attribute(owner, "__setattr__")[0] is not None:
            raise Refused("the class sets its attributes by a method of its own")
        _refuse_kinds(place)
        if place.site.chunk is not draft.chunk:
            raise Refused("the attribute is set outside of its class")
        write = draft.source.enclosing_statement(draft.source.find(place.node))
        swaps = _Names(draft, cls, write).swaps()
        return draft.replace(
            "Write into the tensor with `copy_`", swaps, Applicability.UNSAFE, uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _refuse_kinds(place: AttributeWrite) -> None:
    """Raise Refused where the new tensor may not fit into the old one."""
    old, new = place.old, place.value
    if not isinstance(old, Tensor) or not isinstance(new, Tensor):
        raise Refused("the attribute does not always hold one tensor: make it one in `__init__`")
    if None not in (old.rank, new.rank) and old.rank != new.rank:
        raise Refused("the new tensor may be of another shape than the old one")
    was, now = dtype_family(old.dtype), dtype_family(new.dtype)
    if was != now and (was in ("int", "bool") or None not in (was, now)):
        raise Refused("the new tensor may be of another dtype than the old one")


class _Names:
    """The attributes of one class whose names are computed."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, write: ast.stmt) -> None:
        self.draft, self.source, self.cls, self.write = draft, draft.source, cls, write
        self.texts = {
            each.value
            for each in ast.walk(cls)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        }
        found = named_write(write)
        if found is None or dotted(found.owner) != "self":
            raise Refused("it is not the attribute of the Module itself")
        self.found = found
        self.begun = self._begun()
        self.pattern = self._pattern(self.begun[1])

    def swaps(self) -> list[Replacement]:
        self._refuse_other_ways()
        swaps = [self._begin()]
        for each in ast.walk(self.cls):
            found = named_write(each)
            if found is None or found.attr is not None or not isinstance(each, ast.stmt):
                continue
            if self._in_constructor(each):
                continue
            swaps.append(self._copied(each, found))
        written = [(each.start, each.end) for each in swaps]
        for read in self._reads():
            if not any(begin <= read.start < end for begin, end in written):
                swaps.append(read)
        return swaps

    def _in_constructor(self, node: ast.AST) -> bool:
        function = self.source.enclosing_function(node)
        return function is not None and function.name == "__init__"

    def _may_be(self, attr: str) -> bool:
        """Whether the name that is computed may be `attr`."""
        return attr in self.texts if self.pattern is None else re.fullmatch(self.pattern, attr) is not None

    def _pattern(self, name: ast.expr) -> str | None:
        """What the names that are computed look like; None where they are texts of the class. Raises Refused."""
        if isinstance(name, ast.Name):
            function = self.source.enclosing_function(self.begun[0])
            bound = [
                each.value
                for each in (ast.walk(function) if function is not None else ())
                if isinstance(each, ast.Assign) and [dotted(one) for one in each.targets] == [name.id]
            ]
            return self._pattern(bound[0]) if len(bound) == 1 and not isinstance(bound[0], ast.Name) else None
        pattern = "".join(_parts_of(name))
        if not re.sub(r"\.\+", "", pattern):
            raise Refused(f"which attributes `{ast.unparse(name)}` may name is not known")
        return pattern

    def _refuse_other_ways(self) -> None:
        for each in ast.walk(self.cls):
            if isinstance(each, ast.Call) and dotted(each.func) in ("hasattr", "delattr"):
                if len(each.args) > 1 and not isinstance(each.args[1], ast.Constant):
                    raise Refused("whether there is an attribute of the name is asked")
            elif (
                isinstance(each, ast.Attribute)
                and not isinstance(each.ctx, ast.Load)
                and dotted(each.value) == "self"
                and self._may_be(each.attr)
            ):
                raise Refused(f"`self.{each.attr}` may be the same attribute, and is set as well")
            call, found = _registration(each), named_write(each)
            name = call.args[0] if call is not None else None if found is None else found.name
            if isinstance(name, ast.Constant) and self._may_be(str(name.value)):
                raise Refused(f"`{ast.unparse(each)}` may set the same attribute")
        for placed in self.draft.context.document.placed:
            if placed.chunk is self.draft.chunk:
                continue
            for node in (one for statement in placed.chunk.body for one in ast.walk(statement)):
                self._refuse_other_object(node)

    def _refuse_other_object(self, node: ast.AST) -> None:
        """Raise Refused where `node`, outside of the class, may set the attribute of such an object."""
        if isinstance(node, ast.ClassDef) and self.cls.name in map(ast.unparse, node.bases):
            raise Refused(f"`{node.name}`, which is made of the class, may set attributes of the same names")
        if (
            isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and dotted(node.value) != "self"
            and self._may_be(node.attr)
        ):
            raise Refused(f"`{ast.unparse(node)}` may be the same attribute, and is set as well")

    def _begun(self) -> tuple[ast.stmt, ast.expr, ast.expr, bool]:
        """The statement of `__init__` that makes the tensors of all names, the name and the tensor in it, and whether it registers it."""
        begins: list[tuple[ast.stmt, ast.expr, ast.expr, bool]] = []
        for each in ast.walk(self.cls):
            if not isinstance(each, ast.stmt) or not self._in_constructor(each):
                continue
            found = named_write(each)
            own = found is not None and dotted(found.owner) == "self" and found.attr is None
            if found is not None and own and not _are_apart(found.name, self.found.name):
                begins.append((each, found.name, found.value, False))
            call = _registration(each)
            if call is not None and not isinstance(call.args[0], ast.Constant):
                begins.append((each, call.args[0], call.args[1], True))
        if len(begins) != 1:
            raise Refused("`__init__` does not make the tensors of all names by one statement")
        return begins[0]

    def _begin(self) -> Replacement:
        """The statement of `__init__` that makes the tensors registers them as buffers."""
        statement, name, value, registered = self.begun
        refuse_before_module(self.source, statement)
        made = isinstance(value, ast.Call) and self.draft.qualified(value.func) in _MAKING
        # One tensor may be given to several names.
        text = self.source.of(value) if made else f"{_bracketed(value, self.source.of(value))}.clone()"
        if registered:
            return self.source.swap(value, text)
        return self.source.swap(
            statement, f"self.register_buffer({self.source.of(name)}, {text}, persistent=False)"
        )

    def _copied(self, statement: ast.stmt, found: NamedWrite) -> Replacement:
        if dotted(found.owner) != "self":
            raise Refused(f"`{ast.unparse(statement)}` sets an attribute of another object")
        value = found.value
        if statement is not self.write:
            made = isinstance(value, ast.Call) and self.draft.qualified(value.func) in _MAKING
            if not made and ast.dump(value) != ast.dump(self.found.value):
                raise Refused(f"`{ast.unparse(statement)}` sets an attribute of a computed name as well")
        if isinstance(value, ast.Name):
            self._refuse_written(statement, value.id)
        name = self.source.of(found.name)
        text = self.source.of(value, self._reads(value))
        return self.source.swap(statement, f"getattr(self, {name}).copy_({text})")

    def _refuse_written(self, statement: ast.stmt, name: str) -> None:
        """Raise Refused where the tensor of `name` is written in place: the attribute would not change with it any more."""
        function = self.source.enclosing_function(statement)
        for base in written_bases(function) if function is not None else ():
            while isinstance(base, ast.Subscript):
                base = base.value
            if isinstance(base, ast.Name) and base.id == name:
                raise Refused(f"`{name}` is written in place, and the attribute is the same tensor")

    def _reads(self, root: ast.AST | None = None) -> list[Replacement]:
        """The reads of the attributes by copies, where they are kept, and by `getattr` where they go by a dict."""
        swaps = []
        for each in ast.walk(root or self.cls):
            if not isinstance(each, ast.expr) or self._in_constructor(each):
                continue
            read = named_read(each)
            if read is not None and dotted(read[0]) == "self" and not isinstance(read[1], ast.Constant):
                if _are_apart(read[1], self.found.name):
                    continue
                parent = self.source.parents[each]
                if isinstance(parent, ast.Call) and parent.func is each:
                    raise Refused(f"`{self.source.of(each)}` is called, and may be the same attribute")
                text = self.source.of(each)
                if not isinstance(each, ast.Call):
                    text = f"getattr(self, {self.source.of(read[1])})"
            elif (
                isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Load)
                and dotted(each.value) == "self"
                and self._may_be(each.attr)
            ):
                text = self.source.of(each)
            else:
                continue
            copied = f"{text}.clone()" if self._is_kept(each) else text
            if copied != self.source.of(each):
                swaps.append(self.source.swap(each, copied))
        return swaps

    def _is_kept(self, read: ast.expr) -> bool:
        """Whether the tensor may be kept by what it is given to, for later or for a backward pass."""
        parent = self.source.parents[read]
        if isinstance(parent, (ast.Compare, ast.UnaryOp)):
            return False
        if isinstance(parent, ast.BinOp):
            other = parent.left if parent.right is read else parent.right
            return not isinstance(parent.op, (ast.Add, ast.Sub)) and not isinstance(other, ast.Constant)
        if isinstance(parent, ast.Attribute):
            return parent.attr not in _FACTS
        outer = self.source.parents.get(parent)
        if isinstance(parent, (ast.List, ast.Tuple)) and isinstance(outer, ast.Call):
            return self.draft.qualified(outer.func) not in _JOINING
        return True


def _registration(node: ast.AST) -> ast.Call | None:
    """The call, where a statement registers a buffer."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or dotted(call.func) != "self.register_buffer" or len(call.args) < 2:
        return None
    return call


def _parts_of(name: ast.expr) -> Iterator[str]:
    """A pattern for each part of a text that is put together."""
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        yield re.escape(name.value)
    elif isinstance(name, ast.JoinedStr):
        for each in name.values:
            yield from _parts_of(each)
    elif isinstance(name, ast.BinOp) and isinstance(name.op, ast.Add):
        yield from _parts_of(name.left)
        yield from _parts_of(name.right)
    else:
        yield ".+"


def _are_apart(a: ast.expr, b: ast.expr) -> bool:
    """Whether two names that are put together never are the same, as they begin or end in another way."""
    ends = []
    for each in (a, b):
        parts = list(_parts_of(each))
        fixed = ["" if part == ".+" else part for part in parts]
        ends.append((fixed[0], fixed[-1]))
    (first, last), (other_first, other_last) = ends
    begins = first.startswith(other_first) or other_first.startswith(first)
    return not begins or not (last.endswith(other_last) or other_last.endswith(last))


def _bracketed(node: ast.expr, text: str) -> str:
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"
