"""Modules and Parameters that traced code moves, makes or runs in a way of training's own."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference import knowledge
from exportlens.inference.places import Call
from exportlens.inference.values import Bound, Function, Instance, Sequence, Shape, Tensor, Value
from exportlens.rewriting.calls.contexts import FACTORIES
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import spelled
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kind import Kind, of_value
from exportlens.rewriting.memory.effects import names_before

# What `torch.utils.checkpoint.checkpoint` keeps for itself; all other keywords go to the function.
_OF_CHECKPOINT = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
)
_ELEMENTWISE = frozenset(
    {
        "abs", "add", "clamp", "clip", "clone", "detach", "div", "exp", "float", "log", "masked_fill", "mul", "nan_to_num", "neg",
        "normalize", "relu", "renorm", "round", "sigmoid", "sign", "softmax", "softplus", "sqrt", "square", "sub", "tanh",
    }
)  # fmt: skip
# The layers whose parameters are the same whenever they are made, and the arguments that decide what they compute.
_ARGUMENTS = {
    "LayerNorm": ("normalized_shape", "eps"),
    "GroupNorm": ("num_groups", "num_channels", "eps"),
    **{f"BatchNorm{rank}d": ("num_features", "eps", "momentum") for rank in (1, 2, 3)},
}


def stays_where_it_is(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`self.layer.to(x.device)` -> `self.layer`: a model that is moved as a whole has its parts where they are needed.

    Unsafe: a part that no one moves, because it is registered nowhere, stays behind.
    """
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise Refused("what is moved is not written in the call")
        if not _moves_alone(draft, node):
            raise Refused(
                "the Module may be given another dtype, too: cast the model once, before the export"
            )
        owner = source.of(node.func.value)
        statement = source.enclosing_statement(node)
        alone = isinstance(statement, ast.Expr) and statement.value is node
        itself = (
            isinstance(statement, ast.Assign)
            and statement.value is node
            and [source.of(each) for each in statement.targets] == [owner]
        )
        change = source.without(statement) if alone or itself else source.swap(node, owner)
        if change is None:
            raise Refused("the statement shares its line with another one")
        return draft.replace(f"`{owner}` stays where the model is", [change], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _moves_alone(draft: Draft, node: ast.Call) -> bool:
    """Whether the call names a device and nothing else."""
    assert isinstance(node.func, ast.Attribute)
    if node.func.attr in ("cpu", "cuda"):
        return True
    if node.func.attr != "to":
        return False
    given = [*node.args, *(key.value for key in node.keywords if key.arg != "non_blocking")]
    named = [key.arg for key in node.keywords if key.arg != "non_blocking"]
    return len(given) == 1 and named in ([], ["device"]) and (bool(named) or _is_device(draft, given[0]))


def _is_device(draft: Draft, node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (str, int))
    if isinstance(node, ast.Call):
        return draft.qualified(node.func) == "torch.device" or (
            isinstance(node.func, ast.Attribute) and node.func.attr == "get_device"
        )
    last = (dotted(node) or "").rpartition(".")[2]
    return last == "device" or last.endswith("_device")


def plain_for_parameter(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`nn.Parameter(t)` in traced code -> `t.detach()`, or, where it takes the place of a Parameter of the model, a write
    into that one."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        given = [*node.args, *(key.value for key in node.keywords)] if isinstance(node, ast.Call) else []
        if not given or isinstance(given[0], ast.Starred):
            raise Refused("the tensor is not written in the call")
        value = given[0]
        if not isinstance(place.argument(0, "data"), Tensor):
            raise Refused("what becomes a Parameter is not known to be a tensor")
        statement = source.enclosing_statement(node)
        if isinstance(statement, ast.Assign) and statement.value is node:
            target = statement.targets[0]
            if isinstance(target, ast.Attribute):
                return _written_into(draft, place, statement, target, value)
        text = source.of(value)
        if not (
            isinstance(value, ast.Call) and draft.qualified(value.func) in FACTORIES - {"torch.as_tensor"}
        ):
            text = f"{primary(text)}.detach()"
        return draft.replace("Use a plain tensor", [source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _written_into(
    draft: Draft, place: Call, statement: ast.Assign, target: ast.Attribute, value: ast.expr
) -> Fix:
    """`self.weight = nn.Parameter(f(self.weight))` as a write into the Parameter that is there."""
    source = draft.source
    path = source.of(target)
    owner = place.site.function
    parts = (dotted(target) or "").split(".")
    if len(statement.targets) != 1 or parts[0] != "self" or len(parts) not in (2, 3):
        raise Refused(f"which Parameter of the model `{path}` takes the place of is not certain")
    classes = draft.classes_of(statement)
    if owner is None or not (
        _is_made_at_first(draft, classes, parts[1])
        if len(parts) == 2
        else _is_of_layer(draft, classes, parts[1], parts[2])
    ):
        raise Refused(f"the model has no Parameter `{path}` before: make it in `__init__`")
    if not _keeps_shape(draft, _behind_name(source, statement, value, path), path):
        raise Refused(f"whether the new Parameter has the shape of `{path}` is not certain")
    if not source.begins_line(statement):
        raise Refused("the statement shares its line with another one")
    _refuse_held(draft, statement, path)
    indent, nl = source.indent_of(statement), source.newline
    text = f"with {draft.torch}.no_grad():{nl}{indent}{source.indent_unit()}{path}.copy_({source.of(value)})"
    return draft.replace("Write into the Parameter", [source.swap(statement, text)])


def _keeps_shape(draft: Draft, node: ast.expr, path: str) -> bool:
    """Whether `node` is computed element by element of `path`: it is as large at least, and a larger one does not fit."""
    if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.MatMult):
        return _keeps_shape(draft, node.left, path) or _keeps_shape(draft, node.right, path)
    if isinstance(node, ast.Attribute):
        return dotted(node) == path or (node.attr == "data" and _keeps_shape(draft, node.value, path))
    if not isinstance(node, ast.Call):
        return False
    name = draft.qualified(node.func)
    if name.startswith("torch.") and node.args:
        return name.rpartition(".")[2] in _ELEMENTWISE and _keeps_shape(draft, node.args[0], path)
    method = isinstance(node.func, ast.Attribute) and node.func.attr in _ELEMENTWISE
    return method and _keeps_shape(draft, node.func.value, path)  # type: ignore[attr-defined]


def _refuse_held(draft: Draft, statement: ast.stmt, path: str) -> None:
    """Raise Refused where a name that is read later holds the Parameter that was there, or a view of it."""
    function = draft.source.enclosing_function(statement)
    if function is None:
        return
    first = draft.kinds({})
    first.names[path] = Kind("tensor", roots=frozenset({path}))
    known = names_before(function.body, statement, first) or {}
    for name in sorted(Liveness(function).live_after(statement) & set(known) - {path, "self"}):
        if path in (known[name].roots or ()):
            raise Refused(f"`{name}` holds the Parameter `{path}` that was there before")


def _behind_name(source: Source, statement: ast.stmt, value: ast.expr, path: str) -> ast.expr:
    """What the name `value` was bound to in the same block before `statement`, where the function binds it nowhere else and what it
    is computed of is still the same; `value` itself where that is not so."""
    function = source.enclosing_function(statement)
    if not isinstance(value, ast.Name) or function is None:
        return value
    block, index = source.block_of(statement)
    made = [
        each
        for each in block[:index]
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [value.id]
    ]
    stores = [
        each
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and each.id == value.id and not isinstance(each.ctx, ast.Load)
    ]
    between = block[block.index(made[0]) + 1 : index] if len(made) == 1 else block
    sets = any(
        isinstance(each, ast.Attribute) and dotted(each) == path and not isinstance(each.ctx, ast.Load)
        for one in between
        for each in ast.walk(one)
    )
    return made[0].value if len(made) == len(stores) == 1 and not sets else value


def _made_in(classes: list[ast.ClassDef], path: str) -> list[ast.expr]:
    """What the constructors of `classes` set `path` to."""
    return [
        each.value
        for cls in classes
        for method in cls.body
        if isinstance(method, ast.FunctionDef) and method.name == "__init__"
        for each in ast.walk(method)
        if isinstance(each, ast.Assign) and any(dotted(target) == path for target in each.targets)
    ]


def _is_made_at_first(draft: Draft, classes: list[ast.ClassDef], name: str) -> bool:
    """Whether the constructor of one of the classes, or torch's of the layer that they extend, makes the Parameter `name`."""
    made = [each for each in _made_in(classes, f"self.{name}") if isinstance(each, ast.Call)]
    if any(draft.qualified(each.func).rpartition(".")[2] == "Parameter" for each in made):
        return True
    bases = [draft.qualified(base) for cls in classes for base in cls.bases]
    return not made and any(_has_parameter(base, name) for base in bases)


def _is_of_layer(draft: Draft, classes: list[ast.ClassDef], layer: str, name: str) -> bool:
    """Whether the constructors set `self.layer` to layers of torch that all have the Parameter `name`."""
    made = _made_in(classes, f"self.{layer}")
    return bool(made) and all(
        isinstance(each, ast.Call) and _has_parameter(draft.qualified(each.func), name) for each in made
    )


def _has_parameter(layer: str, name: str) -> bool:
    known = knowledge.lookup_module(layer) if layer.startswith("torch.nn.") else None
    return known is not None and any(
        each.name == name and each.type == "parameter" and not each.conditions for each in known.state
    )


def function_for_layer(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`nn.LayerNorm(4)(x)` -> `F.layer_norm(x, (4,))`: a layer that is made anew has weights of one and zero, and one that
    normalizes batches is in training mode."""
    try:
        draft = Draft.of(place, context)
        source, made = draft.source, draft.source.find(place.node)
        name = place.name.rpartition(".")[2]
        if name not in _ARGUMENTS:
            raise Refused(
                "its weights are random: make it in `__init__`, where its parameters are the model's"
            )
        if not isinstance(made, ast.Call):
            raise Refused("the layer is not made by a call")
        call, used = _called_at_once(draft, made)
        given = _by_name(made, _ARGUMENTS[name])
        if len(call.args) != 1 or call.keywords or isinstance(call.args[0], ast.Starred):
            raise Refused("the layer is not called with one tensor")
        functional = spelled(draft.modules, "torch.nn.functional") or f"{draft.torch}.nn.functional"
        x, eps = source.of(call.args[0]), f", eps={source.of(given['eps'])}" if "eps" in given else ""
        if name == "LayerNorm":
            shape = source.of(given["normalized_shape"])
            size = place.argument(0, "normalized_shape")
            plain = size is not None and of_value(size, "").what in ("number", "size")
            text = f"{functional}.layer_norm({x}, {f'({shape},)' if plain else shape}{eps})"
            if not plain and not isinstance(size, (Shape, Sequence)):
                raise Refused("whether its shape is one number is not known")
        elif name == "GroupNorm":
            text = f"{functional}.group_norm({x}, {source.of(given['num_groups'])}{eps})"
        else:
            text = f"{functional}.batch_norm({x}, None, None, training=True{eps})"
        return draft.replace("Call the function", [source.swap(call, text), *used])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _by_name(made: ast.Call, names: tuple[str, ...]) -> dict[str, ast.expr]:
    """The arguments of a layer; Raises Refused where there are others, or they are not written one by one."""
    if any(key.arg not in names for key in made.keywords) or len(made.args) > len(names):
        raise Refused("the layer is made with more than its size")
    if any(isinstance(each, ast.Starred) for each in made.args):
        raise Refused("the arguments are not written one by one")
    return dict(zip(names, made.args, strict=False)) | {
        key.arg: key.value for key in made.keywords if key.arg
    }


def _called_at_once(draft: Draft, made: ast.Call) -> tuple[ast.Call, list[Replacement]]:
    """The one call of the layer, and the removal of the statement that gives it a name before."""
    source = draft.source
    outer: ast.AST = made
    while True:
        around = source.parents[outer]
        moved = source.parents[around] if isinstance(around, ast.Attribute) else None
        if (
            isinstance(moved, ast.Call)
            and isinstance(around, ast.Attribute)
            and around.attr in ("to", "cuda", "cpu")
        ):
            if not _moves_alone(draft, moved):
                raise Refused("the layer is given another dtype")
            outer = moved
            continue
        break
    if isinstance(around, ast.Call) and around.func is outer:
        return around, []
    function = source.enclosing_function(made)
    if isinstance(around, ast.Assign) and isinstance(around.targets[0], ast.Name) and function is not None:
        name = around.targets[0].id
        uses = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == name]
        reads = [each for each in uses if isinstance(each.ctx, ast.Load)]
        removed = source.without(around)
        if len(uses) == 2 and len(reads) == 1 and removed is not None:
            call = source.parents[reads[0]]
            if isinstance(call, ast.Call) and call.func is reads[0]:
                return call, [removed]
    raise Refused("the layer is kept: make it in `__init__`")


def direct_call(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`checkpoint(f, x, use_reentrant=False)` -> `f(x)` while exporting: what is saved in training is no part of a program."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or not node.args:
            raise Refused("the function is not written in the call")
        if any(isinstance(each, ast.Starred) for each in node.args[:1]):
            raise Refused("the function is not written in the call")
        if place.name.endswith("checkpoint_sequential"):
            called, given = _of_sequence(place, node), [source.of(node.args[2])]
        else:
            called, given = node.args[0], [source.of(each) for each in node.args[1:]]
            if any(key.arg is None for key in node.keywords):
                raise Refused("the keywords are not written one by one")
            given += [source.of(key) for key in node.keywords if key.arg not in _OF_CHECKPOINT]
        text = source.of(called)
        direct = f"{text if isinstance(called, ast.Call) else primary(text)}({', '.join(given)})"
        if "\n" in source.of(node) or "\n" in direct:
            return _by_statement(draft, node, direct)
        asked = f"{direct} if {draft.exporting} else {source.of(node)}"
        around = source.parents[node]
        bare = isinstance(around, (ast.Return, ast.Assign, ast.AnnAssign, ast.Expr))
        return draft.replace(
            "Call it directly while exporting",
            [source.swap(node, asked if bare else f"({asked})")],
            Applicability.SAFE,
        )
    except (Refused, LookupError, SyntaxError, IndexError) as refused:
        return Refusal(str(refused))


def _by_statement(draft: Draft, node: ast.Call, direct: str) -> Fix:
    """The statement of a long call written twice, under `if`."""
    source = draft.source
    statement = source.enclosing_statement(node)
    if not isinstance(statement, (ast.Assign, ast.Return, ast.Expr)) or statement.value is not node:
        raise Refused("the call is a part of a longer statement")
    if not source.begins_line(statement):
        raise Refused("the statement shares its line with another one")
    indent, nl = source.indent_of(statement), source.newline
    inner = indent + source.indent_unit()
    head = source.text[source.start(statement) : source.start(node)]
    before = source.shifted(source.start(statement), source.end(statement), indent, inner)
    text = nl.join(
        [
            f"if {draft.exporting}:",
            f"{inner}{head}{direct}",
            f"{indent}else:",
            f"{inner}{before}",
        ]
    )
    return draft.replace(
        "Call it directly while exporting", [source.swap(statement, text)], Applicability.SAFE
    )


def _of_sequence(place: Call, node: ast.Call) -> ast.expr:
    """The nn.Sequential that `checkpoint_sequential` runs in parts."""
    functions: Value | None = place.argument(0, "functions")
    sequential = isinstance(functions, Instance) and str(getattr(functions.cls, "name", "")).endswith(
        "Sequential"
    )
    if not sequential or len(node.args) != 3 or isinstance(node.args[2], ast.Starred):
        raise Refused("what is run in parts is not known to be an nn.Sequential with one input")
    return node.args[0]


def without_mark(place: Call, context: RewriteContext, marks: frozenset[str]) -> Fix | Refusal:
    """The function without the decorator that keeps it out of tracing; eager does not look at it."""
    try:
        function = place.callee.function if isinstance(place.callee, Bound) else place.callee
        assert isinstance(function, Function)
        placed = next(
            (
                each
                for each in context.document.placed
                if any(inner is function.node for top in each.chunk.body for inner in ast.walk(top))
            ),
            None,
        )
        if placed is None:
            raise Refused("the function is marked in another file")
        draft = Draft.of_chunk(placed.chunk, context)
        source = draft.source
        node = source.find(function.node)
        assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        changes = [
            _without_line(source, each) for each in node.decorator_list if _is_mark(draft, each, marks)
        ]
        if not changes:
            raise Refused("where the function is marked is not certain")
        return draft.replace("Let the function be traced", changes, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_mark(draft: Draft, node: ast.expr, marks: frozenset[str]) -> bool:
    return draft.qualified(node.func if isinstance(node, ast.Call) else node) in marks


def _without_line(source: Source, decorator: ast.expr) -> Replacement:
    start = source.text.rindex("@", 0, source.start(decorator))
    begin = start - len(source.indent_of(decorator))
    end = source.text.find("\n", source.end(decorator))
    return Replacement(begin, len(source.text) if end < 0 else end + 1, "")
