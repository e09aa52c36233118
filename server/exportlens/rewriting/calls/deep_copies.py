"""`copy.deepcopy` of tensors, and of lists, tuples and dicts that hold some, as what it does to them: each tensor is cloned.

    state = {"h": h, "n": 0}        state = {"h": h, "n": 0}
    s = copy.deepcopy(state)   ->   s = {
                                         name: each.detach().clone() if isinstance(each, torch.Tensor) else each
                                         for name, each in state.items()
                                     }

`copy.deepcopy` copies what is held twice once, so that the copy holds it twice, too: where two of the tensors may share
memory, writing to one copy would change the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import (
    Const,
    Mapping_,
    Sequence,
    Shape,
    Static,
    Tensor,
    TensorScalar,
    Value,
    options,
)
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, every_name, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.source.parsing import parse_python

# What these types name cannot be written to: the copy is the same object.
_FIXED = frozenset({"int", "float", "bool", "str", "complex", "bytes", "dtype", "device", "NoneType"})
_SHARED = "two of the tensors that are copied may share memory, and so may their copies"
_NOT_KNOWN = "what is copied is not known to be a tensor"


def clone_for_copy(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`copy.deepcopy(t)` -> `t.detach().clone()`, as no gradient goes through it, also of lists, tuples and dicts that hold
    tensors; `copy.copy(t)` -> `t.detach()`, which shares the memory as well."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        given = place.argument(0, "x")
        if not isinstance(node, ast.Call) or not node.args:
            raise Refused("what is copied is not written in the call")
        if given is None:
            raise Refused(_NOT_KNOWN)
        text = primary(draft.source.of(node.args[0]))
        if place.name == "copy.copy":
            if not _is_tensor(given):
                raise Refused(_NOT_KNOWN)
            text = f"{text}.detach()"
        else:
            _refuse_shared(given)
            _refuse_views(draft, node)
            text = _copied(draft, given, text, dotted(node.args[0]) is not None)
        return draft.replace(
            f"Use `{_short(text)}`", [draft.source.swap(node, text)], uses_torch="isinstance(" in text
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _copied(draft: Draft, value: Value, text: str, again: bool) -> str:
    """The text of a copy of `value`, which `text` gives; `again`: it may be read several times. Raises Refused."""
    if _is_tensor(value):
        return f"{text}.detach().clone()"
    if _is_fixed(value):
        return text
    taken = every_name(parse_python(text))
    name, each = fresh("name", taken), fresh("each", taken)
    if isinstance(value, Sequence) and value.kind in ("list", "tuple") and not value.fields:
        items = value.items if value.items is not None else [value.element] if value.element else []
        if items and _is_flat(items):
            inner = f"{_each(draft, items, each)} for {each} in {text}"
            return f"[{inner}]" if value.kind == "list" else f"tuple({inner})"
        if value.items is not None and again:
            parts = [_copied(draft, item, f"{text}[{number}]", again) for number, item in enumerate(items)]
            inner = ", ".join(parts) + ("," if value.kind == "tuple" and len(parts) == 1 else "")
            return f"[{inner}]" if value.kind == "list" else f"({inner})"
    if isinstance(value, Mapping_) and value.kind == "dict" and value.factory is None and value.rest is None:
        items = list(value.items.values())
        if items and _is_flat(items):
            return f"{{{name}: {_each(draft, items, each)} for {name}, {each} in {text}.items()}}"
        if again:
            held = [(_spelled(key), item) for key, item in value.items.items() if not _is_fixed(item)]
            parts = [f"{key}: {_copied(draft, item, f'{text}[{key}]', again)}" for key, item in held]
            return f"{{{', '.join([f'**{text}', *parts])}}}"
    raise Refused(_NOT_KNOWN)


def _spelled(key: object) -> str:
    """The text of a constant key."""
    text = repr(key)
    return f'"{key}"' if text == f"'{key}'" and '"' not in text else text


def _is_flat(items: list[Value]) -> bool:
    return all(_is_tensor(each) or _is_fixed(each) for each in items)


def _each(draft: Draft, items: list[Value], each: str) -> str:
    """The text of a copy of `each`, one of `items`."""
    copied = f"{each}.detach().clone()"
    if all(map(_is_tensor, items)):
        return copied
    return f"{copied} if isinstance({each}, {draft.torch}.Tensor) else {each}"


def _refuse_shared(value: Value) -> None:
    """Raise Refused where two tensors in `value` may be one, or views of one."""
    found = list(_tensors(value))
    roots = [each.root for each in found if each.root]
    if len(set(roots)) < len(roots) or len({id(each) for each in found}) < len(found):
        raise Refused(_SHARED)


def _refuse_views(draft: Draft, node: ast.Call) -> None:
    """Raise Refused where the function shows that two of the tensors are views of one."""
    function = draft.source.enclosing_function(node)
    if function is None:
        return
    statement = draft.source.enclosing_statement(node)
    kind = kinds_before(function, statement, draft.kinds({})).of(node.args[0])
    seen: set[str] = set()
    for roots in _roots(kind):
        if roots & seen:
            raise Refused(_SHARED)
        seen |= roots


def _roots(kind: Kind) -> Iterator[frozenset[str]]:
    """What each tensor in `kind` may share its memory with."""
    for each in kind.items or ():
        yield from _roots(each)
    if kind.what == "tensor":
        yield kind.roots or frozenset()


def _tensors(value: Value | None) -> Iterator[Tensor]:
    if isinstance(value, Sequence):
        for each in value.items or ():
            yield from _tensors(each)
    elif isinstance(value, Mapping_):
        for each in value.items.values():
            yield from _tensors(each)
    elif value is not None:
        yield from (each for each in options(value) if isinstance(each, Tensor))


def _is_tensor(value: Value) -> bool:
    return all(isinstance(option, Tensor) for option in options(value))


def _is_fixed(value: Value) -> bool:
    """Whether `value` certainly is a number, a text or another object that no one can write to."""
    return all(
        (isinstance(each, Const) and type(each.value).__name__ in _FIXED)
        or (isinstance(each, Static) and each.type in _FIXED)
        or isinstance(each, (Shape, TensorScalar))
        for each in options(value)
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 50 else line[:47] + "..."
