"""State that a method begins before the model runs, as `reset` does, and that each call binds anew: a buffer that the method registers.

    def reset(self, count):                             def reset(self, count):
        self.state = torch.zeros(count, 4)                  self.register_buffer("state", torch.zeros(count, 4), persistent=False)

    def forward(self, x):                         ->    def forward(self, x):
        self.state = torch.tanh(self.state + x)             self.state.copy_(torch.tanh(self.state + x))

Unsafe: that the method begins it with the sizes that it keeps is not proven. A write of more elements raises, one of fewer is broadcast.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.classes import class_attribute
from exportlens.inference.places import AttributeWrite
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Const, Instance, Tensor
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, assigned_pairs, dotted
from exportlens.rewriting.code.text import Function, Replacement
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.state.copied_in import copied_text, copies, refuse_written_later, written_by
from exportlens.rewriting.state.own_attributes import module_of, uses_of
from exportlens.rewriting.state.registrations import refuse_before_module
from exportlens.rewriting.state.taken_apart import taken_apart
from exportlens.rewriting.state.traced_methods import led_to

# Methods that tensors have, and numbers do not, which give a tensor.
_OF_TENSORS = frozenset(
    {
        "to",
        "clone",
        "detach",
        "repeat",
        "expand",
        "unsqueeze",
        "squeeze",
        "contiguous",
        "view",
        "reshape",
        "float",
    }
)


def begun_by_methods(place: AttributeWrite, several: bool, context: RewriteContext) -> Fix | Refusal | None:
    """The fix that registers the state where methods begin it, and copies into it where the call binds it; for `several` tensors the
    one that gives each an attribute of its own. None where the constructor begins it, or no method does."""
    try:
        _, draft, cls, base = module_of(place, context)
        path, called = f"self.{place.attr}", led_to(cls, ("forward", _name_of(place)))
        beginning = {
            each.name for each in cls.body if isinstance(each, ast.FunctionDef) and begins(each, path)
        } - called
        # What is None until then may be read before any of these methods ran.
        if "__init__" in beginning or not beginning or place.began == Const(None):
            return None
        if several:
            return taken_apart(place, context)
        if isinstance(place.owner, Instance) and class_attribute(place.owner.cls, place.attr)[0] is not None:
            raise Refused(
                f"the class has a `{place.attr}` of its own: a buffer is none where the name is taken"
            )
        if not isinstance(place.value, Tensor):
            raise Refused(f"what `self.{place.attr}` is bound to is not known to be one tensor")
        _refuse_heirs(draft, cls, place.attr)
        swaps = _Begun(draft, cls, place.attr, place.value).swaps(_name_of(place))
        message = f"Register `{place.attr}` where it is begun, and write into it with `copy_`"
        made = draft.replace(message, [*base, *swaps], Applicability.UNSAFE, uses_torch=bool(base))
        return base.joined(made)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def begins(method: ast.AST, path: str) -> bool:
    """Whether `method` binds `path`, `self.state`, to more than None, alone or among others."""
    return any(
        isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store) and dotted(part) == path
        for each in ast.walk(method)
        for target in _bound_to_more(each)
        for part in ast.walk(target)
    )


def _bound_to_more(node: ast.AST) -> list[ast.expr]:
    """The targets that `node` binds to more than None."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        pairs = assigned_pairs(node)
        return [one for one, value in pairs if not (isinstance(value, ast.Constant) and value.value is None)]
    if isinstance(node, (ast.AugAssign, ast.For)):
        return [node.target]
    return [node.optional_vars] if isinstance(node, ast.withitem) and node.optional_vars else []


def _refuse_heirs(draft: Draft, cls: ast.ClassDef, attr: str) -> None:
    """Raise Refused where a class that extends `cls` sets the attribute as well: there it would be none of its buffers."""
    classes = [one for each in draft.file() for one in ast.walk(each) if isinstance(one, ast.ClassDef)]
    for each in (one for one in classes if cls.name in map(dotted, one.bases)):
        if any(begins(one, f"self.{attr}") for one in each.body if isinstance(one, ast.FunctionDef)):
            raise Refused(f"`{each.name}` sets `self.{attr}` as well: register the buffer in the constructor")


def _name_of(place: AttributeWrite) -> str:
    return getattr(place.site.function.node if place.site.function else None, "name", "forward")


class _Begun:
    """One attribute: where methods begin it, and where the call binds it to a new tensor."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, attr: str, new: Tensor) -> None:
        self.draft, self.source, self.cls, self.attr, self.new = draft, draft.source, cls, attr, new
        self.path = f"self.{attr}"
        self.begun = False

    def swaps(self, caller: str) -> list[Replacement]:
        called = led_to(self.cls, ("forward", caller))
        swaps: dict[tuple[int, int], Replacement] = {}
        for use in uses_of(self.draft, self.cls, self.attr):
            if isinstance(use.ctx, ast.Load):
                continue
            statement, function = self.source.enclosing_statement(use), self.source.enclosing_function(use)
            if function is None or function not in self.cls.body or not self.source.begins_line(statement):
                raise Refused(
                    f"`{self.path}` is set outside of the methods of its class, or on a line with other statements"
                )
            if isinstance(statement, ast.AugAssign) and function.name in called:
                continue
            found = (
                self._copied(statement)
                if function.name in called
                else [self._registered(statement, function)]
            )
            swaps.update({(each.start, each.end): each for each in found})
        if not self.begun:
            raise Refused(
                f"no method of the class is known to begin `{self.path}` with a tensor: register a buffer, and copy into it"
            )
        whole = [each for each in swaps.values() if each.start < each.end]
        return [
            each
            for each in swaps.values()
            if not any(one is not each and one.start <= each.start and each.end <= one.end for one in whole)
        ]

    def _copied(self, statement: ast.stmt) -> list[Replacement]:
        """What stands for a statement of the call that binds the attribute."""
        source, written = self.source, written_by(statement, self.attr)
        if written is None or not isinstance(statement, ast.Assign):
            raise Refused(f"`{self.path}` is set in another way than by an assignment")
        refuse_written_later(self.draft, statement, self.path)
        kept = copies(self.draft, statement, self.path)
        inside = [each for each in kept if source.start(statement) <= each.start <= source.end(statement)]
        text = copied_text(self.draft, statement, written, inside)
        return [source.swap(statement, text), *(each for each in kept if each not in inside)]

    def _registered(self, statement: ast.stmt, function: Function) -> Replacement:
        """What stands for a statement that begins the attribute before the call."""
        source = self.source
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)):
            raise Refused(f"`{source.of(statement)}` does not begin `{self.path}` by an assignment")
        pairs = assigned_pairs(statement)
        own = [value for target, value in pairs if dotted(target) == self.path]
        others = [(target, value) for target, value in pairs if dotted(target) != self.path]
        paths = {dotted(target) for target, _ in pairs}
        if len(own) != 1 or any(dotted(each) in paths for _, value in pairs for each in ast.walk(value)):
            raise Refused(f"`{self.path}` is begun together with others")
        value = source.of(own[0])
        if isinstance(own[0], ast.Constant) and own[0].value is None:
            if function.name != "__init__":
                return source.swap(statement, source.of(statement))
            refuse_before_module(source, statement)
        else:
            if self._is_fresh(own[0], statement, function):
                pass
            elif isinstance(own[0], (ast.Name, ast.Attribute, ast.Call, ast.Subscript)):
                value += ".clone()"
            else:
                value = f"({value}).clone()"
            self.begun = True
        lines = [f"{source.of(target)} = {source.of(one)}" for target, one in others]
        shared = next((target for target, one in others if one is own[0]), None)
        if shared is not None:
            # `self.mean = self.last = made()` makes one tensor: what is written to is another.
            value = f"{source.of(shared)}.clone()"
        lines.append(f'self.register_buffer("{self.attr}", {value}, persistent=False)')
        return source.swap(statement, (source.newline + source.indent_of(statement)).join(lines))

    def _is_fresh(self, value: ast.expr, statement: ast.stmt, function: Function) -> bool:
        """Whether nothing else holds the tensor `value`. Raises Refused where it is not known to be a tensor like the new one."""
        kinds = self.draft.kinds({})
        for each in arguments(function.args)[1:]:
            kinds.assign(ast.Name(each.arg, ast.Store()), Kind("unknown", roots=frozenset({each.arg})))
        kind = kinds_before(function, statement, kinds).of(value)
        if kind.what != "tensor" and not (kind.what == "unknown" and self._is_as_tensor(value, function)):
            raise Refused(
                f"`{self.source.of(statement)}` is not known to begin with a tensor: register a buffer there, and copy into it"
            )
        old, new = dtype_family(kind.dtype) if kind.dtype else None, dtype_family(self.new.dtype)
        if new in ("int", "bool") and new != old:
            raise Refused("the new tensor may be of another dtype than the one that the state begins with")
        if old in ("int", "bool") and new != old:
            raise Refused("the new tensor may be of another dtype than the one that the state begins with")
        if None not in (kind.rank, self.new.rank) and kind.rank != self.new.rank:
            raise Refused("the new tensor is of another shape than the one that the state begins with")
        return kind.what == "tensor" and bool(kind.fresh)

    def _is_as_tensor(self, value: ast.expr, function: Function) -> bool:
        """Whether `value` is a parameter that has to be given, or what a method gives that only tensors have."""
        if isinstance(value, ast.Name):
            given = [*function.args.posonlyargs, *function.args.args]
            needed = given[: len(given) - len(function.args.defaults)]
            found = next((each for each in needed if each.arg == value.id), None)
            return found is not None and (
                found.annotation is None or ast.unparse(found.annotation).endswith("Tensor")
            )
        return (
            isinstance(value, ast.Call)
            and isinstance(value.func, ast.Attribute)
            and value.func.attr in _OF_TENSORS
            and dotted(value.func.value) != "self"
        )
