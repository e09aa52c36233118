"""Calls that strict tracing does not follow, written as the operator, method or builtin that it does follow."""

from __future__ import annotations

import ast
import string

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Mapping_, Sequence, Tensor, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, plain_call
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.kinds.number_types import is_size


def power_for_pow(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`pow(a, b)` -> `a ** b`, which Python says is the same."""
    try:
        draft, node = _written(place, context)
        if len(node.args) != 2:
            raise Refused("a power modulo a number is no operator")
        base, exponent = (_operand(draft.source.of(each), each) for each in node.args)
        text = f"({base} ** {exponent})" if _binds_closer(draft, node) else f"{base} ** {exponent}"
        return draft.replace("Use `**`", [draft.source.swap(node, text)], Applicability.SAFE, False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def method_for_copy(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`copy.copy(items)` -> `items.copy()`, where `items` certainly is a plain list or dict."""
    try:
        draft, node = _written(place, context)
        value = place.args[0] if len(place.args) == 1 else None
        is_list = isinstance(value, Sequence) and value.kind == "list" and not value.guessed
        is_dict = isinstance(value, Mapping_) and value.kind == "dict"
        if not (is_list and getattr(value, "type_name", "") in ("", "list")) and not is_dict:
            raise Refused(
                "what is copied is not known to be a plain list or dict, whose `.copy()` is the same"
            )
        text = f"{primary(draft.source.of(node.args[0]))}.copy()"
        return draft.replace("Use `.copy()`", [draft.source.swap(node, text)], Applicability.SAFE, False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


# How opt_einsum goes about it, which torch decides itself.
_ONLY_HOW = frozenset({"optimize", "backend", "memory_limit", "use_blas"})
_EQUATION = frozenset(string.ascii_letters + ".,-> ")


def torch_einsum(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`opt_einsum.contract("ij,jk->ik", a, b)` -> `torch.einsum(...)`, which looks for the best order itself."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        assert isinstance(node, ast.Call)
        equation = node.args[0] if node.args else None
        written = isinstance(equation, ast.Constant) and isinstance(equation.value, str)
        if not written or not _EQUATION.issuperset(getattr(equation, "value", "")):
            raise Refused(
                "the equation is not written in the call, or in letters that torch.einsum does not take"
            )
        if not _ONLY_HOW.issuperset(key.arg for key in node.keywords):
            raise Refused("what else the call is given is no option of torch.einsum")
        given = ", ".join(map(draft.source.of, node.args))
        text = f"{draft.torch}.einsum({given})"
        return draft.replace("Use torch.einsum", [draft.source.swap(node, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def builtin_isinstance(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.jit.isinstance(x, C)` -> `isinstance(x, C)` for a class, and for `List[C]` the question for each item as well."""
    try:
        draft, node = _written(place, context)
        if len(node.args) != 2:
            raise Refused("what is asked about, or for which class, is not written in the call")
        asked, of = node.args
        name = draft.source.of(asked)
        if dotted(of) is not None and not draft.qualified(of).startswith("typing."):
            text = f"isinstance({name}, {draft.source.of(of)})"
        elif _is_list_of_class(draft, of) and isinstance(asked, ast.Name):
            assert isinstance(of, ast.Subscript)
            item = "item" if name != "item" else "each"
            inner = f"isinstance({item}, {draft.source.of(of.slice)})"
            text = f"(isinstance({name}, list) and all({inner} for {item} in {name}))"
        else:
            raise Refused(
                "Python's `isinstance` takes classes alone: ask for the container, and for what it holds"
            )
        return draft.replace("Use `isinstance`", [draft.source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def isinstance_of_tensor(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`type(x) == torch.Tensor` -> `isinstance(x, torch.Tensor)`, and for a parameter, which has a class of its own, that of `nn.Parameter`;
    `type(x)(2, 3)` -> `torch.Tensor(2, 3)`."""
    try:
        draft, node = _written(place, context)
        compared = draft.source.parents.get(node)
        if isinstance(compared, ast.Call) and compared.func is node and _makes_of_numbers(compared):
            if any(
                not isinstance(each, Tensor) or each.origin == "parameter" for each in options(place.args[0])
            ):
                raise Refused("a parameter is of a class of its own, which makes parameters")
            swap = draft.source.swap(node, f"{draft.torch}.Tensor")
            return draft.replace("Make a torch.Tensor", [swap], Applicability.UNSAFE)
        if not isinstance(compared, ast.Compare) or len(compared.ops) != 1 or len(node.args) != 1:
            raise Refused("which dtype is meant is not provable: name it, as in `.to(x.dtype)`")
        operation, other = compared.ops[0], compared.comparators[0]
        if other is node:
            other = compared.left
        among = isinstance(operation, (ast.In, ast.NotIn))
        if among and not (isinstance(other, ast.Tuple) and compared.left is node):
            raise Refused("the classes that are asked for are not written out as a tuple")
        if not among and not isinstance(operation, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            raise Refused("the class is not asked for by `is` or `==`")
        if any(
            not isinstance(each, Tensor)
            or (each.origin == "parameter" and not draft.source.of(other).endswith("Parameter"))
            for each in options(place.args[0])
        ):
            raise Refused(
                "a parameter is of a class of its own, which `isinstance` takes for a tensor: say which is meant"
            )
        text = f"isinstance({draft.source.of(node.args[0])}, {draft.source.of(other)})"
        if isinstance(operation, (ast.IsNot, ast.NotEq, ast.NotIn)):
            text = f"(not {text})"
        return draft.replace("Use `isinstance`", [draft.source.swap(compared, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _makes_of_numbers(call: ast.Call) -> bool:
    """Whether `call` of a tensor's class is given sizes or a list that is written out: of those no other class makes a tensor."""
    if len(call.args) == 1 and isinstance(call.args[0], (ast.List, ast.Tuple)) and not call.keywords:
        return True
    whole = all(
        is_size(each) or (isinstance(each, ast.Constant) and type(each.value) is int) for each in call.args
    )
    return bool(call.args) and whole and not call.keywords


# What makes a tensor that nothing else holds.
_MAKING = frozenset(
    {"empty", "empty_like", "zeros", "zeros_like", "ones", "ones_like", "new_empty", "new_zeros"}
)


def drawn_like(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.empty_like(x).random_(0, 5)` -> `torch.randint_like(torch.empty_like(x), 0, 5)`, and `x.random_(0, 5)` ->
    `x.copy_(torch.randint_like(x, 0, 5))`: the same numbers are drawn."""
    try:
        draft, node = _written(place, context)
        if not isinstance(node.func, ast.Attribute) or node.func.attr != "random_":
            raise Refused(
                "torch has no other operator that gives this result: compute it before the model is called, and hand it in"
            )
        owner = node.func.value
        last = node.args[-1] if len(node.args) in (1, 2) else None
        if last is None or (isinstance(last, ast.Constant) and last.value is None):
            raise Refused(
                "up to which number is drawn is not written: `random_` goes as far as the dtype does"
            )
        given = ", ".join(map(draft.source.of, node.args))
        of = draft.source.of(owner)
        text = f"{draft.torch}.randint_like({of}, {given})"
        fresh = isinstance(owner, ast.Call) and (dotted(owner.func) or "").rpartition(".")[2] in _MAKING
        if not fresh:
            if dotted(owner) is None:
                raise Refused(f"`{of}` would be computed twice")
            text = f"{of}.copy_({text})"
        return draft.replace("Draw with torch.randint_like", [draft.source.swap(node, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _written(place: Call, context: RewriteContext) -> tuple[Draft, ast.Call]:
    """The draft, and the call with all of its arguments in their places."""
    draft, node = plain_call(place, context)
    if node.keywords:
        raise Refused("the arguments are not written one by one, in their places")
    return draft, node


def _operand(text: str, node: ast.expr) -> str:
    return text if isinstance(node, ast.Constant) else primary(text)


def _binds_closer(draft: Draft, node: ast.Call) -> bool:
    """Whether what stands around the call would take a part of `a ** b` for itself."""
    around = draft.source.parents[node]
    if isinstance(around, ast.BinOp):
        return isinstance(around.op, ast.Pow)
    return isinstance(around, (ast.Attribute, ast.Await)) or (
        isinstance(around, (ast.Subscript, ast.Call))
        and node in (getattr(around, "value", None), getattr(around, "func", None))
    )


def _is_list_of_class(draft: Draft, node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Subscript)
        and draft.qualified(node.value) in ("list", "List", "typing.List")
        and dotted(node.slice) is not None
        and not draft.qualified(node.slice).startswith("typing.")
    )
