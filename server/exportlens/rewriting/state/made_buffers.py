"""Buffers that traced code makes, kept in plain attributes."""

from __future__ import annotations

import ast

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Place
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.source.walking import walk


def attribute_for_buffer(place: Place, attr: str, context: RewriteContext) -> Fix | Refusal:
    """`self.register_buffer("mask", None)` -> `self.mask = None`, and `self.register_buffer("mask", made)` -> `self.mask = made`; a
    parameter of the constructor stays a buffer where it is given.

    Unsafe: `state_dict` does not save a plain attribute, and `.to()` does not move it.
    """
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        if owner is None:
            raise Refused("the class that has the buffer is not certain")
        swaps = []
        for call in ast.walk(owner):
            if not isinstance(call, ast.Call) or dotted(call.func) != "self.register_buffer":
                continue
            given = dict(zip(("name", "tensor", "persistent"), call.args, strict=False))
            given.update({key.arg: key.value for key in call.keywords if key.arg is not None})
            name, tensor = given.get("name"), given.get("tensor")
            if not isinstance(name, ast.Constant):
                raise Refused("a buffer is registered by a name that is computed")
            if name.value != attr:
                continue
            if tensor is None or not isinstance(source.parents.get(call), ast.Expr):
                raise Refused("the buffer is not registered by a statement")
            method = source.enclosing_function(call)
            if method is not None and _is_run_by_constructor(owner, method.name):
                raise Refused(
                    f"the constructor makes `{attr}` by `{method.name}` as well, and `.to()` does not move a plain attribute: register "
                    "it in the constructor, as long as it ever gets"
                )
            if method is not None and method.name == "__init__" and isinstance(tensor, ast.Name):
                if not source.begins_line(call):
                    raise Refused("the buffer shares its line with another statement")
                indent, nl = source.indent_of(call), source.newline
                inner = indent + source.indent_unit()
                text = f"if {tensor.id} is None:{nl}{inner}self.{attr} = None{nl}{indent}else:{nl}{inner}{source.of(call)}"
                swaps.append(source.swap(call, text))
            else:
                swaps.append(source.swap(call, f"self.{attr} = {source.of(tensor)}"))
        if not swaps:
            raise Refused(f"where `{attr}` is registered is not written in this class")
        return draft.replace("Keep it in a plain attribute", swaps, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_run_by_constructor(owner: ast.ClassDef, method: str) -> bool:
    """Whether the constructor of `owner` calls the `method`, or one that does."""
    methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef)}
    run: set[str] = set()
    left = ["__init__"] if "__init__" in methods else []
    while left:
        name = left.pop()
        called = (dotted(each.func) for each in walk(methods[name]) if isinstance(each, ast.Call))
        found = {(each or "").removeprefix("self.") for each in called} & methods.keys() - run - {"__init__"}
        run |= found
        left += found
    return method in run


def is_none_by_default(node: ast.expr, function: ast.FunctionDef) -> bool:
    """Whether `node` is None, or a parameter of `function` that is None where it is not given."""
    if isinstance(node, ast.Constant):
        return node.value is None
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    defaults: dict[str, ast.expr | None] = dict(
        zip([each.arg for each in plain][::-1], args.defaults[::-1], strict=False)
    )
    defaults |= {each.arg: value for each, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)}
    default = defaults.get(node.id) if isinstance(node, ast.Name) else None
    return isinstance(default, ast.Constant) and default.value is None
