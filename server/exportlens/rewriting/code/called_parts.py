"""The functions of the file that a call of a method, of a part of a Module or of each of its parts runs."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Source
from exportlens.source.document import Chunk

Called = tuple[Chunk, ast.ClassDef, ast.FunctionDef]


def called_functions(draft: Draft, cls: ast.ClassDef, call: ast.Call) -> list[Called]:
    """What `call` in `cls` runs, one function for each class that the part may be of; nothing where that is not certain.

    `self.step(n)`, `self.block(x, n)`, and `layer(x, n)` in `for layer in self.layers`.
    """
    path = dotted(call.func) or ""
    if path.startswith("self.") and path.count(".") == 1:
        own = _method(cls, path.removeprefix("self."))
        if own is not None:
            return [(draft.chunk, cls, own)]
    elif "." not in path and path:
        path = _parts_looped_over(draft.source, call, path)
    if not path.startswith("self.") or path.count(".") != 1:
        return []
    made = [
        each.value
        for each in ast.walk(cls)
        if isinstance(each, ast.Assign) and path in [dotted(one) for one in each.targets]
    ]
    if len(made) != 1:
        return []
    found = []
    for name in _classes_made(made[0]):
        forward = _forward_of(draft, name)
        if forward is None:
            return []
        found.append(forward)
    return found


def parameter_for(call: ast.Call, given: ast.AST, function: ast.FunctionDef) -> str | None:
    """The parameter that takes the argument `given`; None where the function binds it anew, or it is not certain."""
    plain = [each.arg for each in [*function.args.posonlyargs, *function.args.args]][1:]
    name = next((each.arg for each in call.keywords if each.value is given), None)
    if name is None and given in call.args and not any(isinstance(each, ast.Starred) for each in call.args):
        index = call.args.index(given)
        name = plain[index] if index < len(plain) else None
    if name is None or name not in {each.arg for each in arguments(function.args)}:
        return None
    anew = any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
        for each in ast.walk(function)
    )
    return None if anew or function.decorator_list else name


def _parts_looped_over(source: Source, call: ast.Call, name: str) -> str:
    """The attribute whose items the loop around `call` names so."""
    for each in source.ancestors(call):
        if isinstance(each, ast.For):
            target, over = each.target, each.iter
            if isinstance(over, ast.Call) and dotted(over.func) == "enumerate" and len(over.args) == 1:
                if not (isinstance(target, ast.Tuple) and len(target.elts) == 2):
                    continue
                target, over = target.elts[1], over.args[0]
            if dotted(target) == name:
                return dotted(over) or ""
    return ""


def _classes_made(value: ast.expr) -> list[str]:
    """The classes of the parts that `value` makes: of `Block(8)`, or of the items of a ModuleList."""
    if not isinstance(value, ast.Call):
        return []
    if (dotted(value.func) or "").rpartition(".")[2] not in ("ModuleList", "Sequential"):
        return [dotted(value.func) or ""]
    items: list[ast.expr] = list(value.args)
    if len(items) == 1 and isinstance(items[0], (ast.List, ast.Tuple)):
        items = items[0].elts
    elif len(items) == 1 and isinstance(items[0], (ast.ListComp, ast.GeneratorExp)):
        items = [items[0].elt]
    calls = [each for each in items if isinstance(each, ast.Call)]
    names = list(dict.fromkeys(dotted(each.func) or "" for each in calls))
    return names if len(calls) == len(items) else [""]


def _forward_of(draft: Draft, name: str) -> Called | None:
    found = [
        (placed.chunk, each)
        for placed in draft.context.document.placed
        for each in placed.chunk.body
        if isinstance(each, ast.ClassDef) and each.name == name
    ]
    if len(found) != 1 or any("Module" not in ast.unparse(base) for base in found[0][1].bases):
        return None
    forward = _method(found[0][1], "forward")
    return None if forward is None else (*found[0], forward)


def _method(cls: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((each for each in cls.body if isinstance(each, ast.FunctionDef) and each.name == name), None)


_MAKING = frozenset(
    f"torch.{name}"
    for name in ("zeros", "ones", "empty", "full", "rand", "randn", "arange", "linspace", "tensor")
)


def is_made_as_tensor(draft: Draft, cls: ast.ClassDef, path: str) -> bool:
    """Whether `cls` binds the attribute to what functions of torch make, or registers it as a buffer."""
    made = [
        each.value
        for each in ast.walk(cls)
        if isinstance(each, ast.Assign) and path in [dotted(one) for one in each.targets]
    ]
    registered = [
        each
        for each in ast.walk(cls)
        if isinstance(each, ast.Call)
        and dotted(each.func) == "self.register_buffer"
        and len(each.args) > 1
        and isinstance(each.args[0], ast.Constant)
        and each.args[0].value == path.removeprefix("self.")
        and not isinstance(each.args[1], ast.Constant)
    ]
    return bool(made or registered) and all(
        isinstance(each, ast.Call) and draft.qualified(each.func) in _MAKING for each in made
    )
