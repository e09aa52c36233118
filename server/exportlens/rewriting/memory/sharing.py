"""Memory that several names share: torch.cond and while_loop take no two tensors of the same memory.

Measured on torch 2.13: two names for the very same tensor are fine, a tensor and a view of it (or two
views) are not, be they arguments or closures ("Input-to-input aliasing").
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace

from exportlens.rewriting.code.callers import given_together
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.names import arguments, dotted, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.function_kinds import own_function
from exportlens.rewriting.kinds.kind import LOCAL, Kind, element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.cut_tensors import CUTTING
from exportlens.rewriting.memory.untold_views import UntoldViews
from exportlens.source.parsing import parse_python


def to_separate(
    statements: Sequence[ast.stmt],
    also: set[str],
    kinds: Kinds,
    written: set[str],
    entering: frozenset[str] | None = None,
    *,
    source: Source,
    function: Function | None,
    inside: bool = False,
    bound: set[str] | None = None,
) -> dict[str, str]:
    """The names to copy beforehand and the copy of each, so that no two tensors that `statements` of `function` read (and
    `also`) share memory.

    `entering` are the names whose outside value may be read (None: all); `written` are the names that are
    written in place, in the statements or later. Raises Refused where one of those shares. `bound` are the names that certainly
    have a value there (None: all).

    What stands `inside` of an arm hands on no tensor as it came in where it copies another view of the same memory: around the
    arm the same are copied, strict tracing numbers the copies of both anew, and two would bear one name (torch 2.13).
    """
    seen: list[tuple[str, object, frozenset[str]]] = []
    clones: dict[str, str] = {}
    parameters = set() if function is None else {each.arg for each in arguments(function.args)} - {"self"}
    given: set[frozenset[str]] | None = None
    names = dict.fromkeys([*read_paths(statements, kinds), *sorted(also)])
    if function is not None:
        clones |= _copies_of_untold(names, entering, kinds, written, function)
    for name in names:
        if name in clones:
            continue
        if entering is not None and name.isidentifier() and name not in entering:
            continue
        kind = (
            kinds.names.get(name) if name.isidentifier() else kinds.of(parse_python(name, mode="eval").body)
        )
        if (
            kind is None
            or kind.what not in ("tensor", "unknown")
            or not kind.roots
            or any(name == each for each, _, _ in seen)
        ):
            continue
        roots = kind.roots
        own = roots & parameters
        if function is not None and own and any((each & parameters) - own for _, _, each in seen):
            # What two parameters share is known to those that call the function.
            if given is None:
                given = given_together(source, function, kinds)
            roots = roots.union(*(pair for pair in given if pair & own))
        partners = [(each, held) for each, other, held in seen if held & roots and other is not kind]
        if partners:
            if kind.what == "unknown":
                raise Refused(
                    f"`{name}` may share memory with `{partners[0][0]}`, and is not known to be a tensor"
                )
            if written & {name, *(each for each, _ in partners), *roots}:
                raise Refused(
                    f"`{name}` may share memory with `{partners[0][0]}`, and one of them is written"
                )
            named = {each for each, _ in partners}
            if name.isidentifier() and bound is not None and name not in bound and named <= bound:
                # Only what has a value on every way can be copied beforehand: here that is all that shares with it.
                for each, held in partners:
                    clones[each] = f"{_made_tensor(each, held, kinds)}.clone()"
                seen = [each for each in seen if each[0] not in named]
                seen.append((name, kind, kind.roots))
                continue
            cloned = name if name.isidentifier() else partners[0][0]
            if _may_be_none(cloned, function):
                cloned = next(
                    (each for each in (name, partners[0][0]) if not _may_be_none(each, function)), ""
                )
                if not cloned.isidentifier():
                    raise Refused(f"`{name}` may share memory with `{partners[0][0]}`, or be None")
            clones[cloned] = f"{_made_tensor(cloned, kind.roots, kinds)}.clone()"
            continue
        seen.append((name, kind, kind.roots))
    if function is not None:
        refuse_given_twice(source, function, kinds, written & parameters, parameters & reads(function.body))
    if inside and clones:
        copied = [kinds.names[each].roots or frozenset() for each in clones if each in kinds.names]
        for name, _, held in seen:
            views = (
                name.isidentifier() and name not in {*clones, *written} and not _may_be_none(name, function)
            )
            if views and any(held & each for each in copied):
                clones[name] = f"{_made_tensor(name, held, kinds)}.clone()"
    if function is not None:
        for name in names:
            if name.isidentifier() and (entering is None or name in entering):
                copy = _copy_of_views(name, statements, kinds, written, seen, function)
                if copy is not None:
                    clones[name] = copy
    return clones


def _copies_of_untold(
    names: Iterable[str],
    entering: frozenset[str] | None,
    kinds: Kinds,
    written: set[str],
    function: Function,
) -> dict[str, str]:
    """The copies of those of `names` that are views of others where these are tensors, and are tensors themselves. Raises Refused."""
    read = [each for each in names if each.isidentifier() and (entering is None or each in entering)]
    views = UntoldViews(function, kinds, read)
    held: dict[str, frozenset[str]] = {}
    copies: dict[str, str] = {}
    for name in read:
        held[name] = views.owners(name)
    for name, owners in held.items():
        partners = [
            other
            for other in read
            if other not in {name, *copies}
            and (other in owners or owners & held[other])
            and kinds.names[other].what in ("tensor", "unknown")
        ]
        if not partners or not views.is_tensor(name) or _may_be_none(name, function):
            continue
        if written & {name, *partners, *owners}:
            raise Refused(f"`{name}` may share memory with `{partners[0]}`, and one of them is written")
        copies[name] = f"{name}.clone()"
    return copies


def refuse_given_twice(
    source: Source, function: Function, kinds: Kinds, written: Iterable[str], read: Iterable[str]
) -> None:
    """Raise Refused where a caller gives one tensor both as a parameter that is `written` and as another that is `read`: what is
    written to a copy of the one would not be seen in the other."""
    pairs = {frozenset({each, other}) for each in written for other in read if each != other}
    for pair in pairs and pairs & given_together(source, function, kinds, same=True):
        one, other = sorted(pair)
        raise Refused(
            f"a call of `{function.name}` gives one tensor both as `{one}` and as `{other}`, and one of them is written"
        )


def _made_tensor(name: str, roots: frozenset[str], kinds: Kinds) -> str:
    """`name`, or the tensor that is made of it where it is a part of an argument that may as well hold numbers of Python."""
    torch = spelled(kinds.modules, "torch")
    return name if torch is None or roots.isdisjoint(kinds.supposed) else f"{torch}.as_tensor({name})"


def _copy_of_views(
    name: str,
    statements: Sequence[ast.stmt],
    kinds: Kinds,
    written: set[str],
    seen: list[tuple[str, object, frozenset[str]]],
    function: Function,
) -> str | None:
    """The copy of the list, tuple or dict `name` of views that `statements` read beside what they are views of, or beside
    each other; None where they read no two of the same memory. Adds what is read to `seen`. Raises Refused."""
    kind = kinds.names.get(name)
    if kind is None or kind.what != "container" or not kind.roots:
        return None
    inside = {id(each) for one in statements for each in ast.walk(one)}
    made = [each for each in _bound_to(name, function) if id(each) not in inside]

    fields = getattr(kind.value, "fields", ())

    def of_views(node: ast.expr) -> bool:
        return (
            bool(fields and isinstance(node, ast.Call))
            or _cuts_tensor(node, kinds)
            or _is_written_out(node)
            or _takes_views(node, kinds)
            or bool(_given_by(node, kinds))
        )

    # What is put into a list one by one is not followed so far that two of its items were certainly the same.
    if not made or not all(map(of_views, made)):
        return None
    items = [
        (name, item, _of_tensors(item.roots or frozenset(), kinds))
        for item in _read_items(name, kind, statements, kinds)
    ]
    shared = {
        root
        for index, (_, item, roots) in enumerate(items)
        for _, other, held in [*seen, *items[:index]]
        for root in roots & held
        if other is not item
    }
    if not shared:
        seen += items
        return None
    if written & {name, *kind.roots, *shared}:
        raise Refused(f"the items of `{name}` may share memory with what is written")
    if kind.items is not None and any(item.what != "tensor" for item in kind.items):
        raise Refused(f"some items of `{name}` share memory, and others are no tensors")
    if fields:
        return f"{name}._make([each.clone() for each in {name}])"
    makers = {maker for each in made for maker in _given_by(each, kinds) or [_maker(each)]}
    if makers == {"list"}:
        return f"[each.clone() for each in {name}]"
    if makers == {"tuple"}:
        return f"tuple(each.clone() for each in {name})"
    if makers == {"dict"}:
        return f"{{key: each.clone() for key, each in {name}.items()}}"
    raise Refused(f"items of `{name}` may share memory: torch.cond takes no two tensors of the same memory")


def _of_tensors(roots: frozenset[str], kinds: Kinds) -> frozenset[str]:
    """Those of `roots` that are tensors: what one list or object holds shares no memory for that."""
    return frozenset(
        root
        for root in roots
        if root.startswith(LOCAL)
        or (
            root.replace(".", "").isidentifier()
            and kinds.of(parse_python(root, mode="eval").body).what == "tensor"
        )
    )


def _read_items(name: str, kind: Kind, statements: Sequence[ast.stmt], kinds: Kinds) -> list[Kind]:
    """The tensors that `statements` read out of the container `name`, as far as they may share memory; two of those that
    are not told apart."""
    picked: dict[object, Kind] = {}
    told: set[int] = set()
    for node in (each for statement in statements for each in ast.walk(statement)):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == name:
            item = kinds.of(node)
            if isinstance(node.slice, ast.Constant) and item.what == "tensor":
                picked[node.slice.value] = item if kind.items is not None else replace(item)
                told.add(id(node.value))
    whole = any(
        isinstance(node, ast.Name) and node.id == name and id(node) not in told
        for statement in statements
        for node in ast.walk(statement)
    )
    if whole and kind.items is not None:
        return [item for item in kind.items if item.what == "tensor" and item.roots]
    if whole:
        # Of items that are not told apart there may be two.
        element = element_of(kind)
        return [replace(element), replace(element)] if element.what == "tensor" else []
    return [item for item in picked.values() if item.roots]


def _maker(node: ast.expr) -> str:
    """What `node` makes: "list", "tuple", "dict", or "" where that is not told."""
    if isinstance(node, (ast.List, ast.ListComp)):
        return "list"
    if isinstance(node, ast.Tuple):
        return "tuple"
    if isinstance(node, (ast.Dict, ast.DictComp)):
        return "dict"
    called = _called(node)
    return called if called in ("list", "tuple") else "tuple" if called in CUTTING else ""


def _given_by(node: ast.expr, kinds: Kinds) -> list[str]:
    """What a function of the file that `node` calls makes on each of its ways out, as `_maker` tells it; empty where it is none
    of whose result all parts are known."""
    function = own_function(kinds, node) if isinstance(node, ast.Call) else None
    if function is None or kinds.of(node).items is None:
        return []
    ways = [each.value for each in ast.walk(function) if isinstance(each, ast.Return)]
    return [_maker(each) if each is not None and _is_written_out(each) else "" for each in ways]


def _cuts_tensor(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` makes several views of one tensor: `x.chunk(2)`, `torch.unbind(x)`, `list(x)`."""
    called = _called(node)
    return called in CUTTING or (
        called in ("list", "tuple")
        and isinstance(node, ast.Call)
        and len(node.args) == 1
        and kinds.of(node.args[0]).what == "tensor"
    )


def _takes_views(node: ast.expr, kinds: Kinds) -> bool:
    """Whether `node` lists views of tensors: `[x[:, i] for i in range(3)]`."""
    return isinstance(node, ast.ListComp) and kinds.of(node).type == "tensors"


def _is_written_out(node: ast.expr) -> bool:
    """Whether `node` is a list, tuple or dict whose items stand in it."""
    if isinstance(node, ast.Dict):
        return bool(node.keys)
    return isinstance(node, (ast.List, ast.Tuple)) and bool(node.elts)


def _called(node: ast.expr) -> str:
    """The last part of the name of the function or method that `node` calls."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else dotted(node.func) or ""


def _bound_to(name: str, function: Function) -> list[ast.expr]:
    return [
        each.value
        for each in ast.walk(function)
        if isinstance(each, ast.Assign) and any(dotted(target) == name for target in each.targets)
    ]


def _may_be_none(name: str, function: Function | None) -> bool:
    """Whether `function` starts `name` with None, and may come without another value: there is nothing to clone then."""
    if function is None:
        return False
    stores = [each for each in ast.walk(function) if isinstance(each, ast.Assign)]
    return any(
        isinstance(each.value, ast.Constant)
        and each.value.value is None
        and any(dotted(target) == name for target in each.targets)
        for each in stores
    )


def read_paths(statements: Sequence[ast.stmt], kinds: Kinds) -> list[str]:
    """The outside names and attribute paths that are read, attributes first: they cannot be bound anew."""
    names: dict[str, None] = {}
    paths: dict[str, None] = {}
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in kinds.names:
                names[node.id] = None
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names[node.target.id] = None
            elif isinstance(node, ast.Attribute):
                path = dotted(node)
                # `self.t.T` is made of `self.t` where it is read.
                if path is not None and path.startswith("self.") and kinds.of(node.value).what != "tensor":
                    paths[path] = None
    return [*paths, *names]
