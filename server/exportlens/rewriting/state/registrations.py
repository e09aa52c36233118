"""What torch must be told of: fake kernels, caches left out, tensors that a Module holds."""

from __future__ import annotations

import ast
from collections.abc import Callable

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeWrite, Call, Mutation, Output, Place
from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import (
    Bound,
    ClassValue,
    Const,
    Function,
    Instance,
    Sequence,
    Tensor,
    Value,
    options,
)
from exportlens.rewriting.calls.data_attribute import IN_PLACE
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import TELLS_EXPORTING, Draft, Refused
from exportlens.rewriting.code.names import assigned_pairs, dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.exporting.fake_kernels import fake_kernel
from exportlens.rewriting.state.begun_by_methods import begun_by_method
from exportlens.rewriting.state.begun_in_arms import set_in_one_arm_each
from exportlens.rewriting.state.begun_in_bases import class_that_begins
from exportlens.rewriting.state.begun_state import begun_as_buffer
from exportlens.rewriting.state.copied_in import (
    bound_elsewhere,
    copied_text,
    copies,
    refuse_written_later,
    written_by,
)
from exportlens.rewriting.state.plain_objects import made_module
from exportlens.rewriting.state.written_constructors import constructor_written_out
from exportlens.source.document import Chunk


def register_fake(place: Call, context: RewriteContext) -> Fix | Refusal:
    """A fake kernel behind the custom operator."""
    try:
        function = place.callee.function if isinstance(place.callee, Bound) else place.callee
        if not isinstance(function, Function) or not isinstance(function.node, ast.FunctionDef):
            raise Refused("the operator is not a function of the workspace")
        document = function.scope.document
        if document.path != context.document.path:
            raise Refused(f"the operator is defined in {document.path.name}")
        draft = Draft.of_chunk(function.chunk, context)
        node = draft.source.find(function.node)
        assert isinstance(node, ast.FunctionDef)
        first = next(
            (
                each.arg
                for each in node.args.args
                if each.annotation is not None and draft.source.of(each.annotation).endswith("Tensor")
            ),
            None,
        )
        returns = draft.source.of(node.returns) if node.returns is not None else ""
        count = _tensors_given(draft, node.returns)
        if first is None or not count:
            raise Refused(
                "the operator does not take a tensor and give back one: write its fake kernel by hand"
            )
        nl = draft.source.newline
        head = f"def _({ast.unparse(node.args)}) -> {returns}:"
        lines = ["", "", *fake_kernel(draft, node, head, first, count)]
        end = draft.source.end(node)
        swap = Replacement(end, end, nl + nl.join(lines))
        return draft.replace(f"Register a fake kernel for `{node.name}`", [swap])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _tensors_given(draft: Draft, returns: ast.expr | None) -> int:
    """How many tensors an operator gives by its annotation, 0 where it does not say."""
    if returns is None:
        return 0
    if isinstance(returns, ast.Subscript) and draft.source.of(returns.value).lower().endswith("tuple"):
        items = returns.slice.elts if isinstance(returns.slice, ast.Tuple) else [returns.slice]
        tensors = [draft.source.of(each).endswith("Tensor") for each in items]
        return len(tensors) if all(tensors) and len(tensors) > 1 else 0
    return int(draft.source.of(returns).endswith("Tensor"))


def without_cache(place: Output, context: RewriteContext, holds: Callable[[Value], bool]) -> Fix | Refusal:
    """`use_cache=False` in the call whose result is returned; where the output is put together, no cache in it, which
    `holds` tells, while exporting: who runs the model in eager may read it.
    """
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        made = node.value if isinstance(node, ast.Return) and node.value is not None else node
        caches = _caches_among(made, place.value, holds)
        if caches is None:
            return _without_cache(draft, node)
        if not caches:
            raise Refused("the cache is not named where the output is put together")
        if context.version < TELLS_EXPORTING:
            swaps = [draft.source.swap(each, "None") for each in caches]
            return draft.replace("Leave the cache out", swaps, uses_torch=False)
        swaps = [draft.source.swap(each, _unless_exported(each, draft)) for each in caches]
        return draft.replace("Leave the cache out of what is exported", swaps)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _unless_exported(cache: ast.expr, draft: Draft) -> str:
    text = draft.source.of(cache)
    if isinstance(cache, (ast.IfExp, ast.Lambda)):
        text = f"({text})"
    return f"None if {draft.exporting} else {text}"


def _caches_among(node: ast.AST, value: Value, holds: Callable[[Value], bool]) -> list[ast.expr] | None:
    """The expressions that are the caches of an output that `node` makes; None where it comes from elsewhere."""
    if isinstance(node, ast.Tuple) and isinstance(value, Sequence) and value.items is not None:
        if len(node.elts) == len(value.items) and not any(
            isinstance(each, ast.Starred) for each in node.elts
        ):
            return [each for each, item in zip(node.elts, value.items, strict=True) if holds(item)]
        return []
    if isinstance(node, ast.Call) and isinstance(value, Instance) and isinstance(value.cls, ClassValue):
        made = ast.unparse(node.func).rpartition(".")[2] == value.cls.name
        named = [each for each in node.keywords if each.arg in value.attributes]
        return [each.value for each in named if holds(value.attributes[each.arg or ""])] if made else None
    return None


def without_cache_at(line: int, context: RewriteContext) -> Fix | Refusal:
    """The same for the `return` that stands on `line` (from 0) of the document, as an export blames it."""
    try:
        blamed: list[tuple[Chunk, ast.Return]] = []
        for placed in context.document.placed:
            for node in (each for statement in placed.chunk.body for each in ast.walk(statement)):
                # torch blames the `return`, or the line of the `def` around it.
                if isinstance(node, (ast.FunctionDef, ast.Return)):
                    where = context.document.range_of(placed.chunk, node)
                    if where.start.line <= line <= where.end.line:
                        found = [
                            each for each in ast.walk(node) if isinstance(each, ast.Return) and each.value
                        ]
                        blamed = [(placed.chunk, each) for each in found]
        if len(blamed) == 1:
            draft = Draft.of_chunk(blamed[0][0], context)
            return _without_cache(draft, draft.source.find(blamed[0][1]))
        raise Refused("the line that torch blames does not lead to one `return`")
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _without_cache(draft: Draft, node: ast.AST) -> Fix:
    value = node.value if isinstance(node, ast.Return) else node
    if isinstance(value, ast.Name):
        value = _assigned(draft.source, node, value.id) or value
    if not isinstance(value, ast.Call):
        raise Refused("what is returned is not the result of one call")
    if ast.unparse(value.func).rpartition(".")[2][:1].isupper():
        raise Refused("the output is put together here: leave the cache out of it")
    for keyword in value.keywords:
        if keyword.arg == "use_cache":
            return draft.replace(
                "Leave the cache out", [draft.source.swap(keyword.value, "False")], uses_torch=False
            )
    given = [*value.args, *(keyword.value for keyword in value.keywords)]
    if given:
        end = draft.source.end(max(given, key=draft.source.end))
        swap = Replacement(end, end, ", use_cache=False")
    else:
        end = draft.source.end(value) - 1
        swap = Replacement(end, end, "use_cache=False")
    return draft.replace("Leave the cache out", [swap], uses_torch=False)


def _assigned(source: Source, node: ast.AST, name: str) -> ast.expr | None:
    function = source.enclosing_function(node)
    found = [
        each.value
        for each in ast.walk(function or source.tree)
        if isinstance(each, ast.Assign)
        and len(each.targets) == 1
        and isinstance(each.targets[0], ast.Name)
        and each.targets[0].id == name
    ]
    return found[0] if len(found) == 1 else None


def register_tensor(
    place: Place, attribute: str, owner: ClassValue, context: RewriteContext
) -> Fix | Refusal:
    """`self.name = tensor` in `__init__` becomes a buffer that is not saved with the state dict."""
    try:
        owner = class_that_begins(owner, attribute)
        if owner.scope.path != context.document.path:
            raise Refused(f"`{owner.name}` is defined in {owner.scope.path.name}")
        draft = Draft.of_chunk(owner.chunk, context)
        node = draft.source.find(owner.node)
        assert isinstance(node, ast.ClassDef)
        held = (
            place.owner
            if isinstance(place, AttributeWrite)
            else place.holder
            if isinstance(place, Mutation)
            else None
        )
        constructor = constructor_written_out(draft, node)
        if constructor is not None:
            return constructor
        base = made_module(draft, node, owner, held)
        _refuse_other_values(context, attribute)
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                found = [each for each in ast.walk(method) if _sets(each, attribute)]
                written_out = begun_by_method(draft, node, attribute) if not found else None
                if written_out is not None:
                    return written_out
                begins = [
                    each
                    for each in found
                    if isinstance(each, (ast.Assign, ast.AnnAssign)) and each.value is not None
                ]
                alone = len(found) == 1 or set_in_one_arm_each(draft, method, begins, attribute)
                if not begins or len(begins) != len(found) or not alone:
                    often = "several times" if found else "in another way than by a statement"
                    raise Refused(f"`self.{attribute}` is set {often} in `__init__`")
                swaps = []
                for begin in begins:
                    refuse_before_module(draft.source, begin)
                    text = _registered_apart(draft.source, begin, attribute)
                    swaps.append(draft.source.swap(begin, text))
                message = f"Register `{attribute}` as a buffer"
                return base.joined(draft.replace(message, [*base, *swaps], uses_torch=bool(base)))
        raise Refused(f"`self.{attribute}` is not set in `__init__`")
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _registered_apart(source: Source, begin: ast.Assign | ast.AnnAssign, attribute: str) -> str:
    """The text that registers the attribute, and sets what `begin` sets beside it one by one. Raises Refused."""
    pairs = assigned_pairs(begin)
    paths = {dotted(target) for target, _ in pairs}
    if len(pairs) > 1 and isinstance(begin, ast.Assign):
        tied = len(begin.targets) > 1 or any(
            isinstance(each, ast.Starred) or dotted(each) in paths
            for _, value in pairs
            for each in ast.walk(value)
        )
        if tied or not source.begins_line(begin):
            raise Refused(f"`self.{attribute}` is set together with others in `__init__`")
    lines = []
    for target, value in pairs:
        if dotted(target) == f"self.{attribute}" and isinstance(value, ast.Constant):
            raise Refused(f"`{source.of(begin)}` begins with no tensor")
        own = dotted(target) == f"self.{attribute}"
        text = source.of(value)
        register = f'self.register_buffer("{attribute}", {text}, persistent=False)'
        lines.append(register if own else f"{source.of(target)} = {text}")
    return (source.newline + source.indent_of(begin)).join(lines)


def register_written(place: Mutation, context: RewriteContext) -> Fix | Refusal:
    """The attribute of the model that `place` writes in place becomes a buffer."""
    path = written_attribute(place.node)
    owner = place.site.function.owner if place.site.function is not None else None
    if not isinstance(path, ast.Attribute) or owner is None:
        return Refusal("it is not known which class holds the tensor")
    return register_tensor(place, path.attr, owner, context)


def written_attribute(node: ast.AST) -> ast.AST | None:
    """What a write in place names: `self.x` of `self.x += 1`, `self.x.add_(1)` and `self.x[0] = 1`."""
    path = (
        node.target
        if isinstance(node, ast.AugAssign)
        else getattr(getattr(node, "func", node), "value", None)
    )
    while isinstance(path, ast.Subscript):
        path = path.value
    return path


def refuse_before_module(source: Source, statement: ast.stmt) -> None:
    """Raise Refused where `statement` of a constructor stands before `super().__init__()`: until then there are no buffers."""
    function = source.enclosing_function(statement)
    if function in source.becoming:
        return
    made = [
        each
        for each in (ast.walk(function) if function is not None else ())
        if isinstance(each, ast.Attribute) and each.attr == "__init__"
    ]
    if any(source.start(each) < source.start(statement) for each in made):
        return
    raise Refused(f"`{ast.unparse(statement)}` stands before the Module is made by `super().__init__()`")


def _refuse_other_values(context: RewriteContext, attribute: str) -> None:
    """Raise Refused where the file sets the attribute to what is no tensor, which a buffer does not take."""
    for statement in (each for placed in context.document.placed for each in placed.chunk.body):
        for each in ast.walk(statement):
            if not isinstance(each, ast.Assign) or not any(
                isinstance(target, ast.Attribute) and target.attr == attribute for target in each.targets
            ):
                continue
            number = isinstance(each.value, ast.Constant) and each.value.value is not None
            if number or isinstance(each.value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp)):
                raise Refused(f"`{ast.unparse(each)}` sets what would be a buffer to no tensor")


def _sets(node: ast.AST, attribute: str) -> bool:
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return False
    targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
    pairs = assigned_pairs(node)
    if isinstance(node.value, ast.Tuple) and len(pairs) == len(node.value.elts):
        targets = [target for target, _ in pairs]
    return f"self.{attribute}" in map(dotted, targets)


def copy_into_state(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """`self.state = f(self.state)` -> `self.state.copy_(f(self.state))`; a plain attribute becomes a buffer
    as well."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        statement = draft.source.enclosing_statement(node)
        written = written_by(statement, place.attr)
        if written is None or not isinstance(statement, ast.Assign):
            raise Refused("the attribute is set together with other targets")
        if written is not statement.targets[0] and not draft.source.begins_line(statement):
            raise Refused("the attribute is set together with others, on a line with other statements")
        if place.began == Const(None) and not isinstance(place.old, Tensor):
            raise Refused(
                "the state is None at first: make it a tensor of its final shape in `__init__`, or give the file example inputs, "
                "which tell it"
            )
        if place.began is None and isinstance(place.owner, Instance):
            raise Refused(
                "the constructor does not begin the state: make it a tensor of its final shape in `__init__`"
            )
        if isinstance(place.old, Sequence) and place.old.kind == "list":
            raise Refused(
                "a list has no buffers: keep its tensors in one buffer, with a dimension for the items, or in a buffer each"
            )
        before = [*options(place.old or Const(None))]
        kept_ones = [each for each in before if isinstance(each, Tensor)]
        ranks = {each.rank for each in [*kept_ones, place.value] if isinstance(each, Tensor)} - {None}
        if len(kept_ones) != len(before) or len(ranks) > 1:
            raise Refused("the new tensor may be of another shape than the old one")
        families = {dtype_family(each.dtype) for each in kept_ones}
        if len(families) > 1:
            raise Refused("the tensor of the state may be of one dtype or another")
        old = families.pop()
        new = dtype_family(place.value.dtype) if isinstance(place.value, Tensor) else None
        # What is written to a tensor of ints loses its fraction.
        if new != old and (old in ("int", "bool") or None not in (old, new)):
            raise Refused("the new tensor may be of another dtype than the old one")
        target = draft.source.of(written)
        refuse_written_later(draft, statement, target)
        others = bound_elsewhere(draft, statement, target)
        found = [each for one in (statement, *others) for each in copies(draft, one, target)]
        kept = list({(each.start, each.end): each for each in found}.values())
        inside = [
            each
            for each in kept
            if draft.source.start(statement) <= each.start <= draft.source.end(statement)
        ]
        text = copied_text(draft, statement, written, inside)
        swaps = [draft.source.swap(statement, text), *(each for each in kept if each not in inside)]
        for other in others:
            own = [
                each for each in kept if draft.source.start(other) <= each.start <= draft.source.end(other)
            ]
            swaps = [each for each in swaps if each not in own]
            text = f"{target}.copy_({draft.source.of(other.value, own)})"
            swaps.append(draft.source.swap(other, text))
        fix = draft.replace("Write into the tensor with `copy_`", swaps, uses_torch=False)
        if (
            all(each.origin == "buffer" for each in kept_ones)
            or (isinstance(place.began, Tensor) and place.began.origin == "buffer")
            or not isinstance(place.owner, Instance)
            or not isinstance(place.owner.cls, ClassValue)
        ):
            return fix
        if place.began == Const(None):
            edits = begun_as_buffer(place, place.owner.cls, context)
            return Fix(fix.message, (*edits, *fix.edits), Applicability.UNSAFE)
        registered = register_tensor(place, place.attr, place.owner.cls, context)
        if isinstance(registered, Refusal) or registered.message.startswith("Write out"):
            return registered
        return Fix(fix.message, (*registered.edits, *fix.edits), Applicability.UNSAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def clone_before_write(place: Mutation | Place, context: RewriteContext) -> Fix | Refusal:
    """`t[i] = v` on a tensor that may not be written: `t = t.clone()` in the line before."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        statement = draft.source.enclosing_statement(node)
        base: ast.expr | None = None
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            base = target.value if isinstance(target, ast.Subscript) else target
        elif (
            isinstance(statement, ast.Expr)
            and isinstance(statement.value, ast.Call)
            and isinstance(statement.value.func, ast.Attribute)
        ):
            base = statement.value.func.value
        while isinstance(base, ast.Subscript):
            base = base.value
        if (
            base is None
            or not isinstance(base, (ast.Name, ast.Attribute))
            or not draft.source.begins_line(statement)
        ):
            raise Refused("what is written to has no name of its own")
        name = draft.source.of(base)
        start = draft.source.start(statement)
        line = f"{name} = {name}.clone(){draft.source.newline}{draft.source.indent_of(statement)}"
        return draft.replace(
            f"Write to a clone of `{name}`", [Replacement(start, start, line)], uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def detached_where_written(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """`self.b += v` -> `self.b.add_(v)`, and `self.b = self.b.to(d)` -> `self.b = self.b.to(d).detach()`."""
    try:
        draft = Draft.of(place, context)
        statement = draft.source.enclosing_statement(draft.source.find(place.node))
        if isinstance(statement, ast.AugAssign) and type(statement.op) in IN_PLACE:
            target, value = draft.source.of(statement.target), draft.source.of(statement.value)
            swap = draft.source.swap(statement, f"{target}.{IN_PLACE[type(statement.op)]}({value})")
            return draft.replace("Write in place", [swap], Applicability.SAFE, uses_torch=False)
        if isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Call, ast.Attribute)):
            end = draft.source.end(statement.value)
            return draft.replace(
                "Bind the detached tensor", [Replacement(end, end, ".detach()")], uses_torch=False
            )
        raise Refused("what is bound is not the result of one call")
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))
