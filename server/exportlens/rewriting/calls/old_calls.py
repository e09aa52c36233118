"""Calls written the old way, or the one way that strict tracing does not take, in the words that it takes."""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Const, Tensor, options
from exportlens.rewriting.checks.assertions import assert_text
from exportlens.rewriting.code.callers import given_together
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, plain_call
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.rewriting.code.text import Source, replaced
from exportlens.rewriting.memory.effects import kinds_before


def reduction(place: Call, context: RewriteContext, average: int, reduce: int) -> Fix | Refusal:
    """`nn.MSELoss(size_average=False)` -> `nn.MSELoss(reduction="sum")`, as torch itself translates it; `average` and
    `reduce` are the places of the two old arguments."""
    try:
        draft, node = plain_call(place, context)
        averages = _said(place, average, "size_average")
        reduces = _said(place, reduce, "reduce")
        word = "none" if reduces is False else "sum" if averages is False else "mean"
        first, second = sorted((average, reduce))
        # `reduction` itself stands behind them: the old ones overrule it.
        if len(node.args) > (second + 2 if second == first + 1 else first + 1):
            raise Refused("other arguments stand behind the old ones, by their place alone")
        kept = [
            *node.args[:first],
            *(key for key in node.keywords if key.arg not in ("size_average", "reduce", "reduction")),
        ]
        given = [*map(draft.source.of, kept), f'reduction="{word}"']
        text = f"{draft.source.of(node.func)}({', '.join(given)})"
        return draft.replace(
            f'Write `reduction="{word}"`', [draft.source.swap(node, text)], Applicability.SAFE, False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _said(place: Call, position: int, word: str) -> bool:
    """What an old argument says; both are true where they are left out."""
    value = place.argument(position, word)
    if value is None or (isinstance(value, Const) and value.value is None):
        return True
    if isinstance(value, Const) and isinstance(value.value, (bool, int)):
        return bool(value.value)
    raise Refused(f"what `{word}` is given is not known")


def check_of_data(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch._assert(t, message)` and `torch._check(t)` of tensor data, as `assert t, message` is rewritten."""
    try:
        draft, node = plain_call(place, context)
        source = draft.source
        statement = source.enclosing_statement(node)
        if (
            not isinstance(statement, ast.Expr)
            or statement.value is not node
            or not source.begins_line(statement)
        ):
            raise Refused("the check is a part of a longer statement")
        given = {key.arg: key.value for key in node.keywords} | dict(
            zip(("cond", "message"), node.args, strict=False)
        )
        condition = given.get("cond", given.get("condition"))
        message = given.get("message")
        if condition is None:
            raise Refused("the condition is not written in the call")
        if isinstance(message, ast.Lambda):
            message = message.body
        text = f"assert {source.of(condition)}" + ("" if message is None else f", {source.of(message)}")
        changed = Source(replaced(source.text, [source.swap(statement, text)]))
        check = next(
            each
            for each in ast.walk(changed.tree)
            if isinstance(each, ast.Assert) and changed.start(each) == source.start(statement)
        )
        function = changed.enclosing_function(check)
        kinds = draft.kinds({})
        if function is not None:
            kinds = kinds_before(function, check, kinds)
        value = place.argument(0, "cond") or place.argument(0, "condition")
        return draft.fix(
            "Check it while the program runs", assert_text(changed, check, kinds, draft.torch, value)
        )
    except (Refused, LookupError, SyntaxError, StopIteration) as refused:
        return Refusal(str(refused) or "the condition does not fit into an assertion")


def message_for_check(place: Call, context: RewriteContext, of_data: bool) -> Fix | Refusal:
    """`torch._check(c, "text")` -> `torch._check(c, lambda: "text")`; without its message, which strict tracing cannot keep,
    where it says a value, or where the condition is `of_data`."""
    try:
        draft, node = plain_call(place, context)
        source = draft.source
        message = next((key.value for key in node.keywords if key.arg == "message"), None)
        if message is None and len(node.args) == 2:
            message = node.args[1]
        if message is None:
            raise Refused("the message is not written in the call")
        if (
            isinstance(message, (ast.Constant, ast.Name))
            and isinstance(place.argument(1, "message"), Const)
            and not of_data
        ):
            change = source.swap(message, f"lambda: {source.of(message)}")
            return draft.replace("Give the message as a function", [change], uses_torch=False)
        condition = source.of(node.args[0]) if node.args else None
        if condition is None:
            raise Refused("the condition is not written in the call")
        text = f"{source.of(node.func)}({condition})"
        return draft.replace("Leave the message out", [source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def tensor_of_array(place: Call, context: RewriteContext, dtype: str) -> Fix | Refusal:
    """`torch.FloatTensor(array)` -> `torch.tensor(array, dtype=torch.float32)`: a copy of the type that the name says."""
    try:
        draft, node = plain_call(place, context)
        if len(node.args) != 1 or node.keywords:
            raise Refused("the array is not the only argument")
        text = f"{draft.torch}.tensor({draft.source.of(node.args[0])}, dtype={draft.torch}.{dtype})"
        return draft.replace("Convert with `torch.tensor`", [draft.source.swap(node, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def view_for_in_place(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`x.unsqueeze_(1)` -> `x = x.unsqueeze(1)`: the function goes on with the view, a caller keeps the tensor that it gave."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            raise Refused("the method is not written in the call")
        owner = node.func.value
        if _is_detached_attribute(place, source, node):
            # Its shape stays: the attribute goes on with a tensor of the same memory.
            text = f"{source.of(owner)} = {source.of(owner)}.detach()"
            return draft.replace(
                "Set the attribute to the detached tensor", [source.swap(node, text)], uses_torch=False
            )
        if node.func.attr == "detach_" and _is_parameter(place):
            raise Refused(
                f"`{source.of(owner)}` is a Parameter, to which no other tensor is bound: register it as a buffer, or write "
                "detached values to it"
            )
        if not isinstance(owner, ast.Name):
            raise Refused(
                f"`{source.of(owner)}` lives on behind the function, with the shape that it has then"
            )
        if place.receiver is None or not all(
            isinstance(each, Tensor) and each.origin == "input" for each in options(place.receiver)
        ):
            raise Refused(f"`{owner.id}` lives on behind the function, with the shape that it has then")
        statement = source.enclosing_statement(node)
        _refuse_other_names(source, statement, owner.id)
        view = (
            f"{owner.id}.{node.func.attr.rstrip('_')}{source.text[source.end(node.func) : source.end(node)]}"
        )
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if not (isinstance(statement, (ast.Expr, ast.Assign)) and statement.value is node):
            raise Refused("the method is called within a longer expression")
        names = [source.of(each) for each in targets]
        text = " = ".join([*names, *([] if owner.id in names else [owner.id]), view])
        return draft.replace("Bind the name to the view", [source.swap(statement, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_parameter(place: Call) -> bool:
    return place.receiver is not None and any(
        isinstance(each, Tensor) and each.origin == "parameter" for each in options(place.receiver)
    )


def _is_detached_attribute(place: Call, source: Source, node: ast.Call) -> bool:
    """Whether `node` is the statement `self.x.detach_()` on a plain attribute or a buffer, which no name of the function has as
    well."""
    assert isinstance(node.func, ast.Attribute)
    path, function = dotted(node.func.value) or "", source.enclosing_function(node)
    plain = place.receiver is not None and all(
        isinstance(each, Tensor) and each.origin in ("attribute", "buffer")
        for each in options(place.receiver)
    )
    return (
        plain
        and node.func.attr == "detach_"
        and path.startswith("self.")
        and path.count(".") == 1
        and isinstance(source.parents[node], ast.Expr)
        and function is not None
        and not any(
            isinstance(each, ast.Assign) and dotted(each.value) == path for each in ast.walk(function)
        )
    )


def _refuse_other_names(source: Source, statement: ast.stmt, name: str) -> None:
    """Raise Refused where the tensor may have another name in the function, which would keep the old shape, or where the
    change happens on one of several ways."""
    function = source.enclosing_function(statement)
    if function is None or statement not in function.body:
        raise Refused("whether the view is made on every way through the function is not certain")
    for each in ast.walk(function):
        if isinstance(each, ast.Assign) and isinstance(each.value, ast.Name) and each.value.id == name:
            raise Refused(
                f"`{source.of(each.targets[0])}` is another name for `{name}`, which would keep its shape"
            )
        if isinstance(each, (ast.Lambda, ast.FunctionDef)) and each is not function:
            raise Refused("another function inside of this one may look at the tensor")


def identity_for_address(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`a.data_ptr() == b.data_ptr()` -> `a is b`, which is told of the tensors while tracing.

    Unsafe: two tensors of the same memory are two objects.
    """
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        compared = source.parents.get(node)
        if not isinstance(compared, ast.Compare):
            raise Refused("the address is not compared with another tensor's")
        sides = [compared.left, *compared.comparators]
        words = {ast.Eq: "is", ast.NotEq: "is not"}
        owners = [_address_of(each) for each in sides]
        if not all(type(each) in words for each in compared.ops) or None in owners:
            raise Refused("the address is not compared with another tensor's")
        _refuse_views(draft, compared, [each for each in owners if each is not None])
        text = source.of(owners[0])  # type: ignore[arg-type]
        for op, owner in zip(compared.ops, owners[1:], strict=True):
            assert owner is not None
            text += f" {words[type(op)]} {source.of(owner)}"
        return draft.replace(
            "Ask whether it is the same tensor", [source.swap(compared, text)], uses_torch=False
        )
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _refuse_views(draft: Draft, compared: ast.Compare, owners: list[ast.expr]) -> None:
    """Raise Refused where one of `owners` may be a view of another: two objects of one address."""
    function = draft.source.enclosing_function(compared)
    if function is None:
        raise Refused("which tensors are compared is not certain")
    given = {each.arg for each in arguments(function.args)} - set(bound(function.body))
    names = [each.id for each in owners if isinstance(each, ast.Name)]
    if not all(name in given for name in names):
        raise Refused(
            "one of the tensors may be a view of another, which is another object at the same address"
        )
    if any(pair <= set(names) for pair in given_together(draft.source, function, draft.kinds({}))):
        raise Refused("a caller gives a tensor and a view of it, which are two objects at the same address")


def _address_of(node: ast.expr) -> ast.expr | None:
    called = isinstance(node, ast.Call) and not node.args and isinstance(node.func, ast.Attribute)
    if called and node.func.attr == "data_ptr" and isinstance(node.func.value, (ast.Name, ast.Attribute)):  # type: ignore[attr-defined]
        return node.func.value  # type: ignore[attr-defined]
    return None
