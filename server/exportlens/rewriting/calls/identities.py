"""Questions that are asked by `id`, asked of the objects themselves."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import bound, dotted, fresh, reads
from exportlens.rewriting.code.text import Source

_IDENTICAL = {ast.Eq: "is", ast.NotEq: "is not"}
_LISTS = frozenset({"set", "frozenset", "list", "tuple"})


def recorded_by(around: Sequence[ast.AST]) -> ast.Attribute | None:
    """The attribute of self that an `id(...)` is compared with or looked up in, where the constructor of the class fills it with
    identities. `around` are the nodes around the call, innermost first."""
    first = around[0] if around else None
    attribute: ast.expr | None = None
    if isinstance(first, ast.Compare):
        sides = [first.left, *first.comparators]
        attribute = next((each for each in sides if isinstance(each, ast.Attribute)), None)
    elif isinstance(first, ast.Subscript):
        attribute = first.value
    elif isinstance(first, ast.Call) and isinstance(first.func, ast.Attribute) and first.func.attr == "get":
        attribute = first.func.value
    owner = next((each for each in around if isinstance(each, ast.ClassDef)), None)
    if (
        not isinstance(attribute, ast.Attribute)
        or owner is None
        or dotted(attribute) != f"self.{attribute.attr}"
    ):
        return None
    made = _fillings(owner, attribute.attr)
    return attribute if made and all(_holds_identities(each) for each in made) else None


def identity_for_id(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`id(a) == id(b)` -> `a is b`, which is the same question."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        compared = source.parents.get(node)
        sides = [compared.left, *compared.comparators] if isinstance(compared, ast.Compare) else []
        owners = [_identified(draft, each) for each in sides]
        if not owners or None in owners or not all(type(each) in _IDENTICAL for each in compared.ops):  # type: ignore[union-attr]
            raise Refused(
                "what the identity stands for is not provable: use a key of your own, such as the name of the layer"
            )
        assert isinstance(compared, ast.Compare)
        if any(dotted(each) is None for each in owners if each is not None):
            raise Refused(
                "what is compared is made for the question, and may be at the address of what was before"
            )
        text = source.of(owners[0])  # type: ignore[arg-type]
        for op, owner in zip(compared.ops, owners[1:], strict=True):
            assert owner is not None
            text += f" {_IDENTICAL[type(op)]} {source.of(owner)}"
        return draft.replace(
            "Ask whether it is the same object", [source.swap(compared, text)], Applicability.SAFE, False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def member_by_identity(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`id(p) in self.frozen` -> `any(p is each for each in self.backbone.parameters())`, where the constructor filled
    `self.frozen` with the identities of these.

    Unsafe: a parameter that was replaced since is another object.
    """
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        compared = source.parents.get(node)
        asked = (
            isinstance(compared, ast.Compare)
            and compared.left is node
            and len(compared.ops) == 1
            and isinstance(compared.ops[0], (ast.In, ast.NotIn))
        )
        owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        subject = _identified(draft, node) if isinstance(node, ast.expr) else None
        attribute = recorded_by(list(source.ancestors(node)))
        if not asked or owner is None or subject is None or attribute is None:
            raise Refused("the identity is a key: use the name of the parameter for it")
        assert isinstance(compared, ast.Compare)
        made = _fillings(owner, attribute.attr)
        if dotted(subject) is None or len(made) != 1 or _is_changed(owner, attribute.attr):
            raise Refused(f"`self.{attribute.attr}` changes: which parameters it knows is not provable")
        over = _objects(made[0])
        if over is None:
            raise Refused(f"which parameters `self.{attribute.attr}` knows is not written where it is filled")
        text = _for_the_method(source, owner, over)
        name = fresh("each", draft.taken(source.enclosing_statement(node)))
        question = f"any({source.of(subject)} is {name} for {name} in {text})"
        if isinstance(compared.ops[0], ast.NotIn):
            question = f"not {question}"
            if isinstance(source.parents.get(compared), (ast.UnaryOp, ast.BinOp, ast.Compare)):
                question = f"({question})"
        return draft.replace(
            "Ask for the parameter itself", [source.swap(compared, question)], uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _identified(draft: Draft, node: ast.expr) -> ast.expr | None:
    """What `id(...)` is asked of."""
    if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
        return None
    return node.args[0] if draft.qualified(node.func) in ("id", "builtins.id") else None


def _fillings(owner: ast.ClassDef, attr: str) -> list[ast.expr]:
    """What is assigned to `self.attr` in the class."""
    return [
        each.value
        for each in ast.walk(owner)
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        and each.value is not None
        and any(dotted(one) == f"self.{attr}" for one in _targets(each))
    ]


def _targets(node: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _is_changed(owner: ast.ClassDef, attr: str) -> bool:
    """Whether a method of `self.attr`, or a statement, adds to it."""
    for each in ast.walk(owner):
        called = isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute)
        if called and dotted(each.func.value) == f"self.{attr}":  # type: ignore[attr-defined]
            return True
        if isinstance(each, ast.AugAssign) and dotted(each.target) == f"self.{attr}":
            return True
    return False


def _holds_identities(node: ast.expr) -> bool:
    return any(
        isinstance(each, ast.Call)
        and isinstance(each.func, ast.Name)
        and (
            each.func.id == "id"
            or (each.func.id == "map" and bool(each.args) and getattr(each.args[0], "id", "") == "id")
        )
        for each in ast.walk(node)
    )


def _objects(node: ast.expr) -> ast.expr | None:
    """What `{id(p) for p in objects}`, `set(map(id, objects))` and the like are made of."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LISTS:
        if len(node.args) != 1 or node.keywords:
            return None
        [node] = node.args
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "map":
        plain = len(node.args) == 2 and getattr(node.args[0], "id", "") == "id"
        return node.args[1] if plain else None
    if not isinstance(node, (ast.SetComp, ast.ListComp, ast.GeneratorExp)) or len(node.generators) != 1:
        return None
    [loop] = node.generators
    of_each = (
        isinstance(node.elt, ast.Call)
        and getattr(node.elt.func, "id", "") == "id"
        and len(node.elt.args) == 1
        and isinstance(loop.target, ast.Name)
        and getattr(node.elt.args[0], "id", "") == loop.target.id
    )
    return loop.iter if of_each and not loop.ifs and not loop.is_async else None


def _for_the_method(source: Source, owner: ast.ClassDef, over: ast.expr) -> str:
    """The text of `over`, which the constructor writes, for another method: what it reads of its parameters, by the attribute
    that holds the same."""
    constructor = source.enclosing_function(over)
    if constructor is None or constructor.name != "__init__":
        raise Refused("the identities are not recorded in the constructor")
    held = {}
    for each in constructor.body:
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name) and len(each.targets) == 1:
            target = dotted(each.targets[0]) or ""
            if target.startswith("self.") and len(_fillings(owner, target.removeprefix("self."))) == 1:
                held[each.value.id] = target
    swaps = []
    for name in reads(over) - {"self"}:
        if name not in held or name in bound(constructor.body):
            raise Refused(f"`{name}` is known to the constructor only")
        swaps += [
            source.swap(each, held[name])
            for each in ast.walk(over)
            if isinstance(each, ast.Name) and each.id == name
        ]
    for part in ast.walk(over):
        path = dotted(part) if isinstance(part, ast.Attribute) else None
        attr = (path or "").removeprefix("self.").partition(".")[0]
        if path and path.startswith("self.") and len(_fillings(owner, attr)) > 1:
            raise Refused(f"`self.{attr}` is assigned more than once")
    return source.of(over, swaps)
