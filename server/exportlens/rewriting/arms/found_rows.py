"""Rows that a mask picks in an arm of a branch which only runs where the mask picks some.

Some operators of torch.cond's arms ask whether they are given any rows (the negative log likelihood and torch.cdist do,
measured on torch 2.13), and tracing cannot say. Where the condition of the branch says it, `torch._check` hands it on. That
may only be said of rows that are picked inside of the arm: of others torch asserts it of the whole program.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, bound, dotted, reads
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import LOCAL
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.walking import walk

_ASKING = frozenset({"cross_entropy", "nll_loss", "cdist", "logsumexp"})
_ASKING_MODULES = frozenset({"CrossEntropyLoss", "NLLLoss"})
_COUNTS = frozenset({"sum", "count_nonzero"})
# What makes another tensor of a mask, of which torch does not know that it picks as many rows.
_OTHERS = frozenset(
    {
        "any",
        "all",
        "sum",
        "mean",
        "float",
        "long",
        "int",
        "double",
        "shape",
        "size",
        "numel",
        "unsqueeze",
        "view",
        "expand_as",
    }
)
_TAKING = frozenset({"any", "all", "sum", "logical_and", "logical_or", "logical_not", "count_nonzero"})
_CONVERSIONS = frozenset({"item", "float", "long", "int", "detach", "cpu", "double", "bool"})


def checks(
    source: Source,
    function: Function,
    branch: ast.If,
    statements: Sequence[ast.stmt],
    taken: bool,
    kinds: Kinds,
    torch: str,
) -> tuple[list[str], list[str]]:
    """The lines that say, at the start of the arm of `statements`, which masks pick rows: the arm runs where `branch`'s
    condition is `taken`. And the masks that they copy, as others pick by them as well. Raises Refused where an operator
    asks for the rows of a mask of which it cannot be said."""
    asking = [
        each
        for statement in statements
        for each in walk(statement)
        if isinstance(each, ast.Call) and _asks(source, each)
    ]
    written = set(bound(statements))
    asked = dict.fromkeys(_masks(source, function, branch.test, taken) if asking else ())
    said = [
        mask
        for mask in asked
        if (mask not in written or _is_bound_to_its_rows(statements, mask))
        and _is_known_by_name(source, function, mask, kinds)
        and _picks_here_alone(source, function, mask, statements, _since(source, branch, mask))
    ]
    copied = [
        mask
        for mask in asked
        if mask not in (*said, *written)
        and mask in kinds.names
        and kinds.names[mask].what == "tensor"
        and any(_is_pick(each, mask) for statement in statements for each in walk(statement))
        and not _is_picked_before(source, function, statements, mask)
    ]
    said += copied
    for call in asking:
        for name in _names_picked_by(call):
            is_mask = name.id in asked or kinds.of(name).dtype == "bool"
            if (
                is_mask
                and name.id not in (*said, *written)
                and not _is_asked_inside(source, function, name, branch)
            ):
                raise Refused(
                    f"an operator in the branch asks whether `{name.id}` picks any rows: that they are there is not known, "
                    "or what else picks by it is not"
                )
    lines = [f"{mask} = {mask}.clone()" for mask in copied]
    return [*lines, *(f"{torch}._check({mask}.nonzero().shape[0] > 0)" for mask in said)], copied


def _is_picked_before(source: Source, function: Function, statements: Sequence[ast.stmt], mask: str) -> bool:
    """Whether the arm of `statements` reads what was picked by `mask` before it: of a copy torch does not know that it picks as
    many rows."""
    begin = source.start(statements[0])
    picked = {
        name
        for each in walk(function)
        if isinstance(each, ast.stmt)
        and source.end(each) <= begin
        and any(_is_pick(one, mask) for one in walk(each))
        for name in bound([each])
    }
    return bool(picked & reads(statements))


def _is_bound_to_its_rows(statements: Sequence[ast.stmt], mask: str) -> bool:
    """Whether the first statement that binds `mask` picks by it: `valid = valid.nonzero()`."""
    first = next(each for each in statements if mask in bound([each]))
    return isinstance(first, ast.Assign) and any(_is_pick(each, mask) for each in walk(first.value))


def asks_for_rows(source: Source, node: ast.expr) -> bool:
    """Whether an operator in `node` asks whether the mask that picks its rows picks any."""
    calls = (each for each in walk(node) if isinstance(each, ast.Call) and _asks(source, each))
    return any(True for each in calls for _ in _names_picked_by(each))


def _names_picked_by(call: ast.Call) -> Iterator[ast.Name]:
    """The names of tensors by which the arguments of `call` are picked there."""
    for each in walk(call):
        if isinstance(each, ast.Subscript) and isinstance(each.slice, ast.Name):
            yield each.slice


def _is_asked_inside(source: Source, function: Function, name: ast.Name, branch: ast.If) -> bool:
    """Whether a branch inside of the arm, which becomes an operator of its own, asks whether the mask `name` picks rows."""
    for outer in source.ancestors(name):
        if outer is branch:
            return False
        if isinstance(outer, ast.If) and _asks_for(source, function, outer.test, name.id):
            return True
    return False


def _asks(source: Source, node: ast.Call) -> bool:
    name = (dotted(node.func) or "").rpartition(".")[2] or getattr(node.func, "attr", "")
    if name in _ASKING:
        return True
    return isinstance(node.func, ast.Attribute) and any(
        isinstance(each, ast.Assign)
        and isinstance(each.value, ast.Call)
        and (dotted(each.value.func) or "").rpartition(".")[2] in _ASKING_MODULES
        and any(isinstance(one, ast.Attribute) and one.attr == name for one in each.targets)
        for each in walk(source.tree)
    )


def _masks(source: Source, function: Function, test: ast.expr, taken: bool) -> Iterator[str]:
    """The names of tensors of which some element is true where `test` is `taken`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _masks(source, function, test.operand, not taken)
    elif isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == taken:
            for each in test.values:
                yield from _masks(source, function, each, taken)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        mask = _counted(source, function, test.left)
        if mask is not None and _says_some(test.ops[0], test.comparators[0], taken):
            yield mask
    elif taken:
        mask = _called_on(_unconverted(test), {"any"}) or _counted(source, function, test)
        if mask is not None:
            yield mask


def _says_some(operator: ast.cmpop, bound_: ast.expr, taken: bool) -> bool:
    """Whether a sum compared so is not 0."""
    value = bound_.value if isinstance(bound_, ast.Constant) else None
    if not isinstance(value, (int, float)):
        return False
    if taken:
        return (
            (isinstance(operator, ast.Gt) and value >= 0)
            or (isinstance(operator, ast.GtE) and value > 0)
            or (isinstance(operator, ast.NotEq) and value == 0)
        )
    # Of what is no number at all `not (s < 1)` says nothing: the sum of a mask is one.
    return isinstance(operator, ast.Eq) and value == 0


def _unconverted(node: ast.expr) -> ast.expr:
    while (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _CONVERSIONS
        and not node.args
    ):
        node = node.func.value
    return node


def _counted(source: Source, function: Function, node: ast.expr) -> str | None:
    """The mask whose elements `node` adds up, be it through a name that is bound once."""
    node = _unconverted(node)
    if isinstance(node, ast.Name):
        bindings = _bindings(function, node.id)
        parent = source.parents.get(bindings[0]) if len(bindings) == 1 else None
        if not isinstance(parent, ast.Assign) or isinstance(parent.value, ast.Name):
            return None
        mask = _counted(source, function, parent.value)
        # The mask must be what it was when it was counted.
        return mask if mask is not None and len(_bindings(function, mask)) < 2 else None
    return _called_on(node, _COUNTS)


def _bindings(function: Function, name: str) -> list[ast.Name | ast.arg]:
    """Where `name` is bound, the parameters of `function` included."""
    given = [each for each in arguments(function.args) if each.arg == name]
    return given + [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
    ]


def _called_on(node: ast.expr, names: set[str] | frozenset[str]) -> str | None:
    """The name `m` of `m.any()`, `m.long().any()` and `torch.any(m)`."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names):
        return None
    if node.keywords or len(node.args) > 1:
        return None
    inner = node.args[0] if node.args else node.func.value
    if node.args and dotted(node.func.value) is None:
        return None
    inner = _unconverted(inner)
    return inner.id if isinstance(inner, ast.Name) else None


def _is_known_by_name(source: Source, function: Function, mask: str, kinds: Kinds) -> bool:
    """Whether the tensor was made here or is the model's input, and has no other name by which it could pick elsewhere."""
    known = kinds.names.get(mask)
    if known is None or not known.roots:
        return False
    bindings = _bindings(function, mask)
    given = all(isinstance(each, ast.arg) for each in bindings) and not _is_submodule(source, function, kinds)
    made = known.what == "tensor" and all(_is_computed(source, each) for each in bindings)
    if not (known.roots == {mask} and (given or made)) and not all(
        root.startswith(LOCAL) for root in known.roots
    ):
        return False
    if any(_takes_from_several(source, each, kinds) for each in bindings):
        return False
    kept = _is_kept_apart(source, function, mask)
    return not any(
        name != mask
        and (
            kind.roots & known.roots
            if kind.roots is not None
            else not (kept and _is_older(function, name, mask))
        )
        for name, kind in kinds.names.items()
    )


def _is_computed(source: Source, binding: ast.Name | ast.arg) -> bool:
    """Whether a name is bound to what an operator of Python gives, which makes a tensor anew."""
    parent = source.parents[binding]
    return isinstance(parent, ast.Assign) and isinstance(parent.value, (ast.Compare, ast.BinOp, ast.UnaryOp))


def _is_kept_apart(source: Source, function: Function, mask: str) -> bool:
    """Whether `mask` is only asked and picked by, so that nothing else comes to hold it."""
    uses = [
        each
        for each in walk(function)
        if isinstance(each, ast.Name) and each.id == mask and isinstance(each.ctx, ast.Load)
    ]
    parents = [source.parents[each] for each in uses]
    return all(
        isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Subscript) and parent.slice is each)
        for each, parent in zip(uses, parents, strict=True)
    )


def _is_older(function: Function, name: str, mask: str) -> bool:
    """Whether `name` was bound before the tensor `mask` was made, and is not bound again."""
    first = min((each.lineno for each in _bindings(function, mask)), default=0)
    bindings = _bindings(function, name)
    return bool(bindings) and all(each.lineno < first for each in bindings)


def _takes_from_several(source: Source, binding: ast.Name | ast.arg, kinds: Kinds) -> bool:
    """Whether a name is bound to what a list, a dict or the like may hold: it can be taken from there once more."""
    parent = source.parents[binding]
    if isinstance(parent, ast.Assign):
        value = parent.value
        return isinstance(value, ast.Subscript) and kinds.of(value.value).what != "tensor"
    if isinstance(parent, ast.For):
        return kinds.of(parent.iter).what != "tensor"
    return False


def _is_submodule(source: Source, function: Function, kinds: Kinds) -> bool:
    """Whether another class of the file names the class of `function`: it may have given it what it picks by itself."""
    own = next((each.name for each in source.ancestors(function) if isinstance(each, ast.ClassDef)), None)
    classes = [
        each
        for chunk in kinds.around
        for each in chunk.body
        if isinstance(each, ast.ClassDef)
        and own in {one.id for one in walk(each) if isinstance(one, ast.Name)}
    ]
    return bool(classes)


def _since(source: Source, branch: ast.If, mask: str) -> int:
    """Where the name `mask` got what it is at `branch`: what is read before is another value. 0 where that is not known."""
    if any(isinstance(each, (ast.For, ast.While)) for each in source.ancestors(branch)):
        return 0
    block, index = source.block_of(branch)
    made = [each for each in block[:index] if isinstance(each, ast.Assign) and mask in bound([each])]
    return source.end(made[-1]) if made and _is_made_anew(made[-1].value) else 0


def _is_made_anew(node: ast.expr) -> bool:
    """Whether `node` gives memory of its own, whatever its methods convert: `torch.cat(parts).bool()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and dotted(node.func) is None:
        node = node.func.value
    if isinstance(node, ast.Call):
        return (dotted(node.func) or "").rpartition(".")[2] in ("cat", "stack")
    return isinstance(node, (ast.Compare, ast.BinOp, ast.UnaryOp))


def _picks_here_alone(
    source: Source, function: Function, mask: str, statements: Sequence[ast.stmt], since: int
) -> bool:
    """Whether the arm picks by `mask`, and what is not an arm of a branch that asks it does not, nor may hand it on to what
    does. What stands before `since` reads another value."""
    around = [each for each in source.ancestors(function) if isinstance(each, Function)]
    whole = around[-1] if around else function
    if whole.name != "forward" and mask in {each.arg for each in arguments(whole.args)}:
        return False
    inside = {id(each) for statement in statements for each in walk(statement)}
    found = False
    for each in walk(whole):
        if isinstance(each, ast.expr) and source.end(each) <= since:
            continue
        if _writes(each, mask):
            return False
        if id(each) in inside:
            found = found or _is_pick(each, mask)
        elif (
            isinstance(each, ast.Name)
            and each.id == mask
            and isinstance(each.ctx, ast.Load)
            and not _is_only_asked(source, each)
            and not _is_in_asking_arm(source, whole, each, mask)
        ):
            return False
    return found


def _is_in_asking_arm(source: Source, function: Function, name: ast.Name, mask: str) -> bool:
    """Whether `name` stands in an arm of a branch that asks whether `mask` picks rows: it is or becomes an operator."""
    inner: ast.AST = name
    for outer in source.ancestors(name):
        if (
            isinstance(outer, ast.If)
            and inner is not outer.test
            and _asks_for(source, function, outer.test, mask)
        ):
            return True
        if isinstance(outer, Function) and outer is not function and _is_arm(source, outer):
            return True
        inner = outer
    return False


def _asks_for(source: Source, function: Function, test: ast.expr, mask: str) -> bool:
    return any(mask in _masks(source, function, test, taken) for taken in (True, False))


def _is_arm(source: Source, function: Function) -> bool:
    """Whether `function` is run by `torch.cond` alone."""
    block, index = source.block_of(function)
    uses: list[ast.AST] = []
    for statement in block[index + 1 :]:
        if isinstance(statement, Function) and statement.name == function.name:
            break
        uses += [
            source.parents[each]
            for each in walk(statement)
            if isinstance(each, ast.Name) and each.id == function.name
        ]
    return bool(uses) and all(
        isinstance(each, ast.Call) and (dotted(each.func) or "").endswith(".cond") for each in uses
    )


def _is_only_asked(source: Source, name: ast.Name) -> bool:
    """Whether what is made of the mask there is another tensor, or none."""
    parent = source.parents[name]
    if isinstance(parent, ast.Attribute):
        return parent.attr in _OTHERS
    if isinstance(parent, ast.Call):
        return (dotted(parent.func) or "").rpartition(".")[2] in _TAKING
    return isinstance(parent, (ast.UnaryOp, ast.BinOp, ast.Compare, ast.BoolOp))


def _writes(node: ast.AST, mask: str) -> bool:
    """Whether `node` changes the tensor of that name in place."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return isinstance(node.value, ast.Name) and node.value.id == mask
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr.endswith("_")
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == mask
    )


def _is_pick(node: ast.AST, mask: str) -> bool:
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return any(isinstance(each, ast.Name) and each.id == mask for each in parts)
    return (
        isinstance(node, ast.Call)
        and (dotted(node.func) or str(getattr(node.func, "attr", ""))).rpartition(".")[2]
        in ("masked_select", "nonzero", "where")
        and any(isinstance(each, ast.Name) and each.id == mask for each in walk(node))
    )
