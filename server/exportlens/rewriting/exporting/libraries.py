"""The old recipe for operators, `Library.define` and `impl`, becomes torch.library.custom_op with a fake kernel."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from exportlens.finding import Applicability, Edit, Fix, Position, Range, Refusal
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import document_imports
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.exporting.fake_kernels import fake_kernel
from exportlens.source.document import Chunk

# The dispatch keys that stand for a device, and what custom_op calls them.
_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "cpu": "cpu", "cuda": "cuda"}
_LEAVES_DEVICE_OPEN = {"CompositeExplicitAutograd", "default"}
_SCHEMA = re.compile(r"(?P<takes>\(.*\))\s*->\s*(?P<gives>.+)", re.S)


@dataclass
class _Recipe:
    """The statements that make one operator."""

    schema: str = ""
    library: tuple[Chunk, ast.Assign] | None = None
    defines: list[tuple[Chunk, ast.stmt]] = field(default_factory=list)
    kernels: list[tuple[Chunk, ast.FunctionDef, str]] = field(default_factory=list)
    calls: list[tuple[Chunk, ast.stmt]] = field(default_factory=list)


def to_custom_op(namespace: str, name: str, context: RewriteContext) -> Fix | Refusal:
    """One custom_op for the operator `namespace::name` of this document, the shape of its result for the user to
    confirm."""
    try:
        recipe = _recipe(namespace, name, context)
        return _rewritten(f"{namespace}::{name}", recipe, context)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _recipe(namespace: str, name: str, context: RewriteContext) -> _Recipe:
    found = _Recipe()
    statements = [(each.chunk, one) for each in context.document.placed for one in each.chunk.body]
    libraries = _libraries(statements, namespace, context)
    owner = ""
    functions = {one.name: (chunk, one) for chunk, one in statements if isinstance(one, ast.FunctionDef)}
    for chunk, one in statements:
        call = one.value if isinstance(one, ast.Expr) and isinstance(one.value, ast.Call) else None
        if call is not None and _is_definition(call, libraries, f"{namespace}::{name}", name, context):
            found.defines.append((chunk, one))
            found.schema = "".join(
                str(_text(each)) for each in call.args[: 2 if "::" in str(_text(call.args[0])) else 1]
            )
            owner = dotted(call.func.value) or "" if isinstance(call.func, ast.Attribute) else ""
        elif (
            call is not None
            and isinstance(call.func, ast.Attribute)
            and call.func.attr == "impl"
            and dotted(call.func.value) in libraries
        ):
            if call.args and _text(call.args[0]) == name:
                found.calls.append((chunk, one))
                kernel = functions.get(dotted(call.args[1]) or "") if len(call.args) > 1 else None
                if kernel is None:
                    raise Refused(f"the kernel of `{name}` is no function of this file")
                given = (
                    call.args[2] if len(call.args) > 2 else next((each.value for each in call.keywords), None)
                )
                found.kernels.append((*kernel, str(_text(given)) if given is not None else ""))
        elif isinstance(one, ast.FunctionDef):
            for decorator in one.decorator_list:
                key = _kernel_key(decorator, libraries, f"{namespace}::{name}", name, context)
                if key is not None:
                    found.kernels.append((chunk, one, key))
    found.library = libraries.get(owner)
    if not found.defines:
        raise Refused(f"the definition of `{name}` is no statement of this file by itself")
    return found


def _libraries(
    statements: list[tuple[Chunk, ast.stmt]], namespace: str, context: RewriteContext
) -> dict[str, tuple[Chunk, ast.Assign]]:
    """The Library objects of `namespace` by the name that they have."""
    found: dict[str, tuple[Chunk, ast.Assign]] = {}
    for chunk, one in statements:
        if isinstance(one, ast.Assign) and isinstance(one.value, ast.Call) and len(one.targets) == 1:
            call, target = one.value, dotted(one.targets[0])
            made = _qualified(call.func, context) == "torch.library.Library" and call.args
            if target and made and _text(call.args[0]) == namespace:
                found[target] = (chunk, one)
    return found


def _is_definition(
    call: ast.Call,
    libraries: dict[str, tuple[Chunk, ast.Assign]],
    full: str,
    name: str,
    context: RewriteContext,
) -> bool:
    text = str(_text(call.args[0])) if call.args else ""
    if _qualified(call.func, context) == "torch.library.define":
        return text == full or text.startswith(f"{full}(")
    owner = call.func.value if isinstance(call.func, ast.Attribute) and call.func.attr == "define" else None
    return owner is not None and dotted(owner) in libraries and text.startswith(f"{name}(")


def _kernel_key(
    decorator: ast.expr,
    libraries: dict[str, tuple[Chunk, ast.Assign]],
    full: str,
    name: str,
    context: RewriteContext,
) -> str | None:
    """The dispatch key of `@torch.library.impl(...)`, None for any other decorator."""
    if not isinstance(decorator, ast.Call) or _qualified(decorator.func, context) != "torch.library.impl":
        return None
    texts = [_text(each) for each in decorator.args]
    if decorator.args and dotted(decorator.args[0]) in libraries and texts[1:2] == [name]:
        return str(texts[2]) if len(texts) > 2 else ""
    return str(texts[1]) if texts[:1] == [full] and len(texts) > 1 else None


def _rewritten(full: str, recipe: _Recipe, context: RewriteContext) -> Fix:
    if len(recipe.defines) != 1 or len(recipe.kernels) != 1:
        raise Refused(
            f"`{full}` has {len(recipe.kernels)} kernels: make one of them the custom_op and register the others with "
            "its `register_kernel`"
        )
    chunk, like, key = recipe.kernels[0]
    matched = _SCHEMA.search(recipe.schema)
    if matched is None or "!" in recipe.schema or "(a" in matched["gives"] or "(a" in matched["takes"]:
        raise Refused(f"the schema of `{full}` says that it writes or gives back what it takes")
    if matched["gives"].strip() != "Tensor" or not matched["takes"].startswith("(Tensor "):
        raise Refused("the operator does not take a tensor and give back one: write its fake kernel by hand")
    if key not in _DEVICES and key not in _LEAVES_DEVICE_OPEN:
        raise Refused(f"its kernel is registered for {key!r}, which custom_op has no word for")
    draft = Draft.of_chunk(chunk, context)
    node = draft.source.find(like)
    assert isinstance(node, ast.FunctionDef)
    _refuse_kernel(node)
    parameters = [each.arg for each in arguments(node.args)]
    device = f', device_types="{_DEVICES[key]}"' if key in _DEVICES else ""
    schema = f"{matched['takes']} -> Tensor"
    decorator = f'@{draft.torch}.library.custom_op("{full}", mutates_args=(){device}, schema="{schema}")'
    nl = draft.source.newline
    fake = fake_kernel(draft, node, f"def _({ast.unparse(node.args)}):", parameters[0], 1)
    body = draft.source.text[draft.source.start(node) : draft.source.end(node)]
    head = body.index(
        "def ",
        draft.source.end(node.decorator_list[-1]) - draft.source.start(node) if node.decorator_list else 0,
    )
    new = decorator + nl + body[head:] + nl * 3 + nl.join(fake)
    edits = list(draft.replace("", [draft.source.swap(node, new)]).edits)
    gone: list[tuple[Chunk, ast.stmt]] = [*recipe.defines, *recipe.calls]
    if recipe.library is not None and _uses(recipe.library[1], context) == len(gone) + len(
        node.decorator_list
    ):
        gone.append(recipe.library)
    edits += _deleted(gone, context)
    message = f"Define `{full}` with torch.library.custom_op"
    return Fix(message, tuple(sorted(edits, key=lambda each: each.range)), Applicability.UNSAFE)


def _refuse_kernel(node: ast.FunctionDef) -> None:
    if len(node.decorator_list) > 1:
        raise Refused(f"`{node.name}` has other decorators")
    names = {each.arg for each in arguments(node.args)}
    for each in ast.walk(node):
        if isinstance(each, ast.Return) and isinstance(each.value, ast.Name) and each.value.id in names:
            raise Refused(f"`{node.name}` may return what it takes, which no custom operator may")
        if isinstance(each, ast.Return) and each.value is None:
            raise Refused(f"`{node.name}` may return nothing")


def _uses(library: ast.Assign, context: RewriteContext) -> int:
    """How often the document reads the name of `library`."""
    name = dotted(library.targets[0])
    return sum(
        isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        for placed in context.document.placed
        for one in placed.chunk.body
        for each in ast.walk(one)
    )


def _deleted(gone: list[tuple[Chunk, ast.stmt]], context: RewriteContext) -> list[Edit]:
    """The edits that take out statements with their lines, and the empty lines before them where others follow."""
    lines = context.document.text.splitlines()
    spans: list[tuple[int, int]] = []
    for where in sorted(context.document.range_of(chunk, node) for chunk, node in gone):
        first, last = where.start.line, where.end.line
        if lines[first][: where.start.column].strip() or ";" in lines[last][where.end.column :]:
            raise Refused("a statement of the definition shares its line with another")
        if spans and spans[-1][1] + 1 == first:
            first = spans.pop()[0]
        spans.append((first, last))
    edits = []
    for first, last in spans:
        if last + 1 < len(lines) and not lines[last + 1].strip():
            while first and not lines[first - 1].strip():
                first -= 1
        edits.append(Edit(Range(Position(first, 0), Position(last + 1, 0)), ""))
    return edits


def _qualified(node: ast.expr, context: RewriteContext) -> str | None:
    name = dotted(node)
    if name is None:
        return None
    head, _, rest = name.partition(".")
    modules = document_imports(context.document)
    return None if head not in modules else f"{modules[head]}.{rest}" if rest else modules[head]


def _text(node: ast.expr) -> object:
    return node.value if isinstance(node, ast.Constant) else None
