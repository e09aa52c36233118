"""Sizes and dimensions that Python or torch would have to know: `len(t)`, `torch.arange(n).tolist()`, rows that may be none."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.places import Call, Conversion, Site
from exportlens.inference.values import Tensor
from exportlens.rewriting.arrays.array_methods import dot
from exportlens.rewriting.arrays.numpy_calls import bracketed
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.source.document import Chunk

_LONGEST = 40
_NOT_COUNTED = (
    "the dimensions do not come from `torch.arange(...).tolist()`, here or where the function is called"
)


def shape_for_length(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`len(t)` -> `t.shape[0]`, the same number, which tracing keeps symbolic."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not (isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) == "len"):
            raise Refused("the size is not asked for by a plain `len(...)`")
        text = f"{primary(draft.source.of(node.args[0]))}.shape[0]"
        short = text if len(text) < _LONGEST else ".shape[0]"
        return draft.replace(f"Use `{short}`", [draft.source.swap(node, text)], Applicability.SAFE, False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def shape_for_listed_length(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`len(t.tolist())` -> `t.shape[0]`: the list is made to be counted only."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        call = draft.source.parents.get(node)
        counted = isinstance(call, ast.Call) and ast.unparse(call.func) == "len" and call.args == [node]
        if not counted or not isinstance(call, ast.Call) or call.keywords or not _ends_in_tolist(node):
            raise Refused("the list is not only counted")
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        text = f"{primary(draft.source.of(node.func.value))}.shape[0]"
        return draft.replace("Use `.shape[0]`", [draft.source.swap(call, text)], Applicability.SAFE, False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def empty_for_size(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.FloatTensor(x.size())` -> `torch.empty(x.size(), dtype=torch.float32)`: neither says what is in it."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        name = draft.qualified(node.func) if isinstance(node, ast.Call) else ""
        short = name.removeprefix("torch.")
        if not isinstance(node, ast.Call):
            raise Refused("which kind of tensor is made is not written in the call")
        if name == short or not (short in TENSOR_TYPES or short == "Tensor"):
            # A type that has another name, as a variable or an attribute that the constructor is given: an empty tensor of it makes more.
            if dotted(node.func) is None:
                raise Refused("which kind of tensor is made is not written in the call")
            at = draft.source.end(node.func)
            made = [Replacement(at, at, "().new_empty")]
            return draft.replace("Use `.new_empty`", made, uses_torch=False)
        _, end = bracketed(draft.source, node, node.args[0])
        dtype = f", dtype={draft.torch}.{TENSOR_TYPES[short]}" if short in TENSOR_TYPES else ""
        swaps = [draft.source.swap(node.func, f"{draft.torch}.empty"), Replacement(end, end, dtype)]
        return draft.replace(f"Use `{draft.torch}.empty`", swaps)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def new_for_resized(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`t.new().resize_(size)` -> `t.new_empty(size)`, and the same of `resize_as_(u)` by the size of `u`: of a tensor that is made
    there nothing else shares the memory."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        named = _resized_when_made(draft, node)
        if named is not None:
            return draft.replace("Use `.new_empty`", [named], uses_torch=False)
        made = (
            node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        )
        if (
            not isinstance(node, ast.Call)
            or not isinstance(node.func, ast.Attribute)
            or node.func.attr not in ("resize_", "resize_as_")
            or node.keywords
            or not node.args
            or not isinstance(made, ast.Call)
            or not isinstance(made.func, ast.Attribute)
            or made.func.attr != "new"
            or made.args
            or made.keywords
            or (dotted(made.func) or "").partition(".")[0] in draft.modules
        ):
            raise Refused(
                "what else shares the memory is not provable: make the tensor anew with `reshape` or `new_empty`, and "
                "bind the name to it"
            )
        swaps = [Replacement(dot(draft.source, made.func), draft.source.end(node.func), ".new_empty")]
        if node.func.attr == "resize_as_":
            like = node.args[0]
            swaps.append(draft.source.swap(like, f"{primary(draft.source.of(like))}.size()"))
        return draft.replace("Use `.new_empty`", swaps, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _resized_when_made(draft: Draft, node: ast.AST) -> Replacement | None:
    """`y = y.new_empty(t.size())` for `y.resize_as_(t)`, where the statement before made `y` by `x.new()`: nothing else shares
    its memory yet. None where it is not so."""
    source = draft.source
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or not isinstance(node.func.value, ast.Name)
        or node.func.attr not in ("resize_", "resize_as_")
        or node.keywords
        or not node.args
    ):
        return None
    name, statement = node.func.value.id, source.parents[node]
    if not isinstance(statement, ast.Expr):
        return None
    block, index = source.block_of(statement)
    before = block[index - 1] if index else None
    if (
        not isinstance(before, ast.Assign)
        or [ast.unparse(each) for each in before.targets] != [name]
        or not ast.unparse(before.value).endswith(".new()")
        or not isinstance(before.value, ast.Call)
        or (dotted(before.value.func) or "").partition(".")[0] in draft.modules
    ):
        return None
    given = ", ".join(source.of(each) for each in node.args)
    size = f"{primary(given)}.size()" if node.func.attr == "resize_as_" else given
    return source.swap(node, f"{name} = {name}.new_empty({size})")


@dataclass(frozen=True, slots=True)
class Counted:
    """Where dimensions are counted by a tensor: `node` is `torch.arange(...).tolist()` at `site`."""

    site: Site
    node: ast.Call


def range_for_dimensions(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`torch.arange(a, b).tolist()`, which gives the dimensions at `place`, -> `list(range(a, b))`."""
    try:
        counted = counted_dimensions(place)
        if counted.site.scope.path != context.document.path:
            raise Refused(f"the dimensions are counted in {counted.site.scope.path.name}, which has the fix")
        draft = Draft.of_chunk(counted.site.chunk, context)
        given = draft.source.find(counted.node)
        made = (
            given.func.value
            if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute)
            else None
        )
        if not isinstance(made, ast.Call) or draft.kinds({}).qualified(made.func) != "torch.arange":
            raise Refused(_NOT_COUNTED)
        arguments = ", ".join(draft.source.of(each) for each in made.args)
        swap = draft.source.swap(given, f"list(range({arguments}))")
        return draft.replace("Count by `range`", [swap], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def counted_dimensions(place: Conversion) -> Counted:
    """Where the dimensions that `place` is given are counted: in its function, or in those that hand them on to it.

    Raises Refused where that is not `torch.arange(...).tolist()`.
    """
    node, site = _dimensions_of(place.node), place.site
    function = _function_around(place.node, site.chunk)
    while isinstance(node, ast.Name) and function is not None:
        bound = _bound_to(node.id, function)
        if bound is not None:
            node = bound
            break
        given = _given_for(node.id, function, site)
        if given is None:
            break
        node, site = given
        function = _function_around(node, site.chunk)
    if _is_counted(node):
        assert isinstance(node, ast.Call)
        return Counted(site, node)
    raise Refused(_NOT_COUNTED)


def check_rows(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch._check(rows.shape[0] != 0)` (or the dimension that is open) before the statement that gives `rows`, a name, to the call."""
    try:
        draft = Draft.of(place, context)
        source = draft.source
        node = source.find(place.node)
        given = node.args[0] if isinstance(node, ast.Call) and node.args else None
        statement = source.enclosing_statement(node)
        if not isinstance(given, ast.Name):
            raise Refused("the rows have no name: bind them to one, and check its `.shape[0]`")
        if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr, ast.AnnAssign)):
            raise Refused("the call is a part of a compound statement")
        if not source.begins_line(statement) or is_inner(source, node, statement):
            raise Refused("the call does not run whenever its statement does")
        rows = place.argument(0, "input")
        if not isinstance(rows, Tensor) or rows.open_dim is None:
            raise Refused(f"which dimension of `{given.id}` depends on the data is not known")
        line = f"{draft.torch}._check({given.id}.shape[{rows.open_dim}] != 0){source.newline}{source.indent_of(statement)}"
        start = source.start(statement)
        # The check raises where no row is left, which the code before did not: whether that happens is not known here.
        return draft.replace(
            f"Promise that `{given.id}` has rows",
            [Replacement(start, start, line)],
            Applicability.DISPLAY_ONLY,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def is_inner(source: Source, node: ast.AST, statement: ast.stmt) -> bool:
    """Whether `node` stands in what its statement may not run, or may run with other names."""
    for each in source.ancestors(node):
        if each is statement:
            return False
        if isinstance(
            each, (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.GeneratorExp, ast.DictComp)
        ):
            return True
    return True


def _dimensions_of(node: ast.AST) -> ast.AST:
    """The expression that gives the dimensions to a call: the one that is named so, or the last."""
    if isinstance(node, ast.Call) and not _ends_in_tolist(node):
        keywords = [key.value for key in node.keywords if key.arg in ("dim", "dims", "axis", "axes")]
        candidates = keywords or node.args[-1:]
        return candidates[0] if len(candidates) == 1 else node
    return node


def _bound_to(name: str, function: ast.AST) -> ast.expr | None:
    """What `name` is bound to in `function`: by its one assignment, or by the one of several that counts. None where it is not
    bound there. Raises Refused where it is bound in several ways."""
    found: list[ast.expr] = []
    count = 0
    for each in ast.walk(function):
        if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            found += [each.value for target in targets if isinstance(target, ast.Name) and target.id == name]
        if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store):
            count += 1
    if not count:
        return None
    counted = [each for each in found if _is_counted(each)]
    if count > 1 and len(counted) == 1:
        # The others build on it (`dims = [0] + dims`).
        found, count = counted, 1
    if len(found) != 1 or count != 1:
        raise Refused(f"`{name}` is bound in several ways")
    return found[0]


def _given_for(name: str, function: ast.AST, site: Site) -> tuple[ast.expr, Site] | None:
    """What the caller of `function`, which is at `site`, gives for the parameter `name`, and where; None where that is not written."""
    call = site.trail[-1][2] if site.trail else None
    if not isinstance(call, ast.Call) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    assert isinstance(function, ast.FunctionDef)
    parameters = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if parameters[:1] == ["self"]:
        parameters = parameters[1:]
    given = next((key.value for key in call.keywords if key.arg == name), None)
    if given is None and name in parameters and parameters.index(name) < len(call.args):
        given = call.args[parameters.index(name)]
    if given is None:
        return None
    scope, chunk, _ = site.trail[-1]
    return given, replace(site, scope=scope, chunk=chunk, function=None, trail=site.trail[:-1])


def _function_around(node: ast.AST, chunk: Chunk) -> ast.FunctionDef | None:
    """The innermost function of `chunk` in which `node` stands."""
    found = None
    for statement in chunk.body:
        for each in ast.walk(statement):
            if isinstance(each, ast.FunctionDef) and any(inner is node for inner in ast.walk(each)):
                found = each
    return found


def _is_counted(node: ast.AST) -> bool:
    """Whether this is `torch.arange(...).tolist()` of whole numbers, by however torch is called."""
    made = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    return (
        _ends_in_tolist(node)
        and isinstance(made, ast.Call)
        and (dotted(made.func) or "").rpartition(".")[2] == "arange"
        and bool(made.args)
        and not made.keywords
        and all(not isinstance(each, ast.Constant) or type(each.value) is int for each in made.args)
    )


def _ends_in_tolist(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "tolist"
