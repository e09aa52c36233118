"""`.data` and `Variable(...)`: older ways to say what torch has an operator for.

`t.detach()` shares its memory with `t` as `t.data` does, and the tracer sees what is written through it:
reads, writes and assignments export in both modes of torch 2.13 and equal eager (measured).
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Mapping

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeRead, AttributeWrite, Call, Place
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary, standing
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.effects import Write, kinds_before, writes_of
from exportlens.rewriting.numbers.operands import is_detached
from exportlens.rewriting.state.asked_empty import asks_whether_empty, is_filled
from exportlens.rewriting.state.resized_state import refuse_resized
from exportlens.source.walking import walk

IN_PLACE = {
    ast.Add: "add_",
    ast.Sub: "sub_",
    ast.Mult: "mul_",
    ast.Div: "div_",
    ast.Pow: "pow_",
    ast.FloorDiv: "floor_divide_",
    ast.Mod: "remainder_",
    ast.BitAnd: "bitwise_and_",
    ast.BitOr: "bitwise_or_",
    ast.BitXor: "bitwise_xor_",
}


def detach_data(place: AttributeRead, context: RewriteContext) -> Fix | Refusal:
    """`t.data` -> `t.detach()`, read or written through. Safe where it is only read."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Attribute):
            raise Refused("`.data` is reached in an unusual way")
        _refuse_in_part(place, context)
        statement = draft.source.parents.get(node)
        if isinstance(statement, ast.AugAssign) and statement.target is node:
            return _augmented(draft, statement, node)
        if not isinstance(node.ctx, ast.Load):
            return _assigned(draft, node)
        owner = primary(draft.source.of(node.value))
        text = owner if is_detached(node.value) else f"{owner}.detach()"
        safe = not _writes(draft, node)
        swap = draft.source.swap(node, text)
        return draft.replace(
            f"Use `{_short(text)}`",
            [swap],
            Applicability.SAFE if safe else Applicability.UNSAFE,
            uses_torch=False,
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def saved_tensors(place: Place, context: RewriteContext) -> Fix | Refusal:
    """`ctx.saved_variables` -> `ctx.saved_tensors`, as torch has called it since tensors and variables are one."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Attribute):
            raise Refused("what was saved is reached in an unusual way")
        text = f"{draft.source.of(node.value)}.saved_tensors"
        swap = draft.source.swap(node, text)
        return draft.replace(f"Use `{text}`", [swap], Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def assign_data(place: AttributeWrite, context: RewriteContext) -> Fix | Refusal:
    """`t.data = u` -> `t.detach().copy_(u)`, and `t.data += u` -> `t.detach().add_(u)`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        _refuse_in_part(place, context)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Attribute):
            return _augmented(draft, node, node.target)
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Attribute)
        ):
            node = node.targets[0]
        if not isinstance(node, ast.Attribute):
            raise Refused("`.data` is assigned together with other targets")
        _refuse_other_rank(place)
        _refuse_empty(draft.source, node)
        return _assigned(draft, node)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _refuse_in_part(place: Place, context: RewriteContext) -> None:
    """Raise Refused where the function of `place` reads and assigns the `.data` of what nothing is known of: that stays, and what
    is rewritten around it exports no better."""
    function = place.site.function
    parts = [] if function is None else list(ast.walk(function.node))
    statements = [each for each in parts if isinstance(each, (ast.Assign, ast.AugAssign))]
    fetched = {
        target.id
        for each in statements
        for target in _targets(each)
        if isinstance(target, ast.Name) and _is_fetched(each.value)
    }
    read = {_with_data(each) for each in parts if isinstance(getattr(each, "ctx", None), ast.Load)}
    for each in statements:
        for target in _targets(each):
            name = _with_data(target)
            if name in fetched & read and not (context.reported(target) or context.reported(each)):
                raise Refused(
                    f"`{name}.data` is assigned here, too, and nothing is known of `{name}`: the rest alone does not export"
                )


def _targets(statement: ast.Assign | ast.AugAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _with_data(node: ast.AST) -> str:
    """The name whose `.data` is `node`; "" where it is anything else."""
    if isinstance(node, ast.Attribute) and node.attr == "data" and isinstance(node.value, ast.Name):
        return node.value.id
    return ""


def _is_fetched(value: ast.expr) -> bool:
    """Whether `value` is an attribute of something: `getattr(self.module, name)`, `self.module.weight`."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "getattr"
    return isinstance(value, ast.Attribute)


def _augmented(draft: Draft, statement: ast.AugAssign, node: ast.Attribute) -> Fix:
    method = IN_PLACE.get(type(statement.op))
    if method is None:
        raise Refused("this operator has no in-place method")
    text = f"{primary(draft.source.of(node.value))}.detach().{method}({draft.source.of(statement.value)})"
    return draft.replace(f"Use `{_short(text)}`", [draft.source.swap(statement, text)], uses_torch=False)


def _assigned(draft: Draft, node: ast.Attribute) -> Fix:
    statement = draft.source.parents[node]
    if not (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.targets[0] is node
    ):
        raise Refused("`.data` is assigned together with other targets")
    text = f"{primary(draft.source.of(node.value))}.detach().copy_({draft.source.of(statement.value)})"
    swaps = [draft.source.swap(statement, text), *_kept_apart(draft, statement, node.value)]
    return draft.replace("Write into the tensor with `copy_`", swaps, uses_torch=False)


def _refuse_other_rank(place: AttributeWrite) -> None:
    """Raise Refused where the tensor gets another number of dimensions, which no copy into it gives it."""
    old = {each.rank for each in options(place.owner) if isinstance(each, Tensor)}
    new = {each.rank for each in options(place.value) if isinstance(each, Tensor)}
    if len(old) == len(new) == 1 and None not in old | new and old != new:
        raise Refused(f"the tensor has {old.pop()} dimensions, and gets one with {new.pop()}")


def _refuse_empty(source: Source, node: ast.Attribute) -> None:
    """Raise Refused where the tensor has no elements at first, or is smaller than what it gets: no copy into it makes it larger."""
    function, path = source.enclosing_function(node), dotted(node.value) or ""
    if function is None or is_filled(source, node, path):
        return
    if asks_whether_empty(function, path):
        raise Refused(f"`{path}` may be empty here, and gets another size: no copy into it gives it that")
    owner = next((each for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    if owner is not None:
        statement = source.enclosing_statement(node)
        refuse_resized(source, owner, function, path, (source.start(statement), source.end(statement)))


def _kept_apart(draft: Draft, statement: ast.Assign, owner: ast.expr) -> list[Replacement]:
    """What changes for names that keep the memory of `owner` while its `.data` is given other memory: `copy_` writes to the
    memory, so that they take a copy of it."""
    source = draft.source
    function = source.enclosing_function(statement)
    if function is None:
        return []
    kinds = kinds_before(function, statement, draft.kinds({}))
    _refuse_shared_values(draft, statement, function, kinds)
    path, roots = dotted(owner) or "", kinds.of(owner).roots or frozenset()
    names = [name for name, kind in kinds.names.items() if roots & (kind.roots or frozenset())]
    names += [
        target.id
        for each in walk(function)
        if isinstance(each, ast.Assign) and dotted(_behind_data(each.value)) == path
        for target in each.targets
        if isinstance(target, ast.Name)
    ]
    swaps = []
    for name in dict.fromkeys(each for each in names if each != path):
        uses = [
            each
            for each in walk(function)
            if isinstance(each, (ast.Name, ast.Attribute)) and dotted(each) == name
        ]
        later = [each for each in uses if source.start(each) >= source.end(statement)]
        looped = any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(statement))
        if not later and not looped:
            continue
        bindings = [source.parents[each] for each in uses if not isinstance(each.ctx, ast.Load)]
        first = bindings[0] if len(bindings) == 1 and not looped else None
        written = any(
            dotted(write.base) in (name, path) for each in walk(function) for write in _writes_in(each, kinds)
        )
        if written or not isinstance(first, ast.Assign) or dotted(_behind_data(first.value)) != path:
            raise Refused(
                f"`{name}` keeps the memory that `{source.of(owner)}` had, and is read after it got other memory"
            )
        end = source.end(first.value)
        swaps.append(Replacement(end, end, ".clone()"))
    return swaps


def _refuse_shared_values(draft: Draft, statement: ast.Assign, function: Function, kinds: Kinds) -> None:
    """Raise Refused where what is assigned to `.data` is written later: it would be the memory of both."""
    value = _behind_data(statement.value)
    if isinstance(value, ast.BinOp):
        # `.data` takes tensors alone, and an operator makes a new one.
        return
    shared = kinds.of(value).roots or frozenset()
    if shared & afterwards(draft.source, statement, function, kinds).written:
        raise Refused(
            f"`{draft.source.of(value)}` is written later, and shares its memory with what it is assigned to"
        )


def _writes_in(node: ast.AST, kinds: Kinds) -> Iterator[Write]:
    if isinstance(node, ast.stmt):
        yield from writes_of(node, kinds)


def _behind_data(node: ast.expr) -> ast.expr:
    """What `t.data` and `t.detach()` are of."""
    while True:
        if isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        elif is_detached(node):
            assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            node = node.func.value
        else:
            return node


def _writes(draft: Draft, node: ast.Attribute) -> bool:
    """Whether memory is written through this `.data`, as far as its own statement shows."""
    parent = draft.source.parents.get(node)
    if isinstance(parent, ast.Attribute) and parent.attr.endswith("_"):
        return True
    if isinstance(parent, ast.Subscript):
        while isinstance(parent, ast.Subscript):
            if not isinstance(parent.ctx, ast.Load):
                return True
            parent = draft.source.parents.get(parent)
        return isinstance(parent, ast.Attribute) and parent.attr.endswith("_")
    # Bound to a name, anything may be done with it later.
    return isinstance(parent, (ast.Assign, ast.AnnAssign, ast.NamedExpr))


def unwrap_variable(place: Place, context: RewriteContext) -> Fix | Refusal:
    """`Variable(t)` -> `t`: since torch 0.4 they are the same. `requires_grad` is kept.

    The others of the function go with it: which of them a model comes to may hang on how it is made.
    """
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call):
            raise Refused("not a call")
        text = _unwrapped(draft, node)
        calls = {node: text}
        for each in _other_calls(draft, node):
            with contextlib.suppress(Refused):
                calls[each] = _unwrapped(draft, each)
        swaps = _without_wrapping(draft.source, calls)
        return draft.replace(f"Use `{_short(text)}`", swaps, Applicability.SAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _without_wrapping(source: Source, calls: Mapping[ast.Call, str]) -> list[Replacement]:
    """The text in the place of each call; `x = Variable(x)` goes as a whole."""
    swaps: list[Replacement] = []
    gone: list[list[ast.stmt]] = []
    for call, text in calls.items():
        statement = source.enclosing_statement(call)
        whole = isinstance(statement, ast.Assign) and statement.value is call
        taken = None
        if whole and [source.of(each) for each in statement.targets] == [text]:  # type: ignore[attr-defined]
            block, _ = source.block_of(statement)
            taken = source.without(statement, sum(each is block for each in gone))
            gone.append(block)
        swaps.append(taken or source.swap(call, text))
    return swaps


def _unwrapped(draft: Draft, node: ast.Call) -> str:
    """What `node` wraps. Raises Refused."""
    given = {keyword.arg: keyword.value for keyword in node.keywords}
    inner = node.args[0] if node.args else given.get("data")
    if inner is None or isinstance(inner, ast.Starred) or len(node.args) > 2:
        raise Refused("what the Variable wraps is not written in the call")
    wants_grad = node.args[1] if len(node.args) == 2 else given.get("requires_grad")
    source, begin = draft.source, draft.source.start(inner)
    outer = source.indent_of(source.enclosing_statement(node))
    text = source.shifted(begin, source.end(inner), source.indent_of(inner), outer)
    parent = source.parents.get(node)
    plain = (
        isinstance(parent, (ast.Assign, ast.Return, ast.Call, ast.keyword))
        and getattr(parent, "func", None) is not node
    )
    text = standing(text) if plain else primary(text)
    if wants_grad is not None and not (isinstance(wants_grad, ast.Constant) and wants_grad.value is False):
        raise Refused("the Variable asks for gradients, which a tensor of the graph cannot start to do")
    return text


def _other_calls(draft: Draft, node: ast.Call) -> list[ast.Call]:
    """The calls of the same function's that stand neither in `node` nor in one another."""
    function = draft.source.enclosing_function(node)
    name = draft.qualified(node.func)
    found: list[ast.Call] = []
    inside = {id(each) for each in ast.walk(node)} | set(map(id, draft.source.ancestors(node)))
    for each in ast.walk(function) if function is not None else ():
        if isinstance(each, ast.Call) and draft.qualified(each.func) == name and id(each) not in inside:
            found.append(each)
            inside |= {id(one) for one in ast.walk(each)}
    return found


def tensor_for_variable(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`isinstance(t, Variable)` -> `isinstance(t, torch.Tensor)`: in eager they answer alike."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or len(node.args) != 2:
            raise Refused("the classes are not written in the call")
        asked = node.args[1]
        found = [
            each
            for each in (asked.elts if isinstance(asked, ast.Tuple) else [asked])
            if (dotted(each) or "").rpartition(".")[2] == "Variable"
        ]
        if not found:
            raise Refused("the classes are not written in the call")
        swaps = [draft.source.swap(each, f"{draft.torch}.Tensor") for each in found]
        return draft.replace(f"Ask for `{draft.torch}.Tensor`", swaps, Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 50 else line[:47] + "..."
