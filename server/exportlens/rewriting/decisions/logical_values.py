"""`a and b`, `not a` and chained comparisons of tensor data as values: torch's logical operators."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Source, replaced
from exportlens.rewriting.code.unbound_names import refuse_unbound_operands
from exportlens.rewriting.decisions.predicates import Predicates
from exportlens.rewriting.kinds.kind import Kind
from exportlens.rewriting.kinds.kinds import Kinds

# torch's functions that ask nothing but the truth of their arguments.
_ASKS_ALL = frozenset({"logical_and", "logical_or", "logical_not"})


def logical(
    source: Source, node: ast.BoolOp | ast.UnaryOp | ast.Compare | ast.Call, kinds: Kinds, torch: str
) -> str:
    """A decision as a value: `a and b` gives a tensor as before, the others a Python bool that stays symbolic."""
    if _is_number_or_zero(node, kinds):
        return replaced(source.text, [source.swap(node, _number_or_zero(source, node))])
    if isinstance(node, ast.BoolOp):
        refuse_unbound_operands(source, node, kinds, torch)
    bools = isinstance(node, ast.BoolOp) and all(_is_bool(kinds.of(each)) for each in node.values)
    if isinstance(node, ast.BoolOp) and not bools:
        asked = _only_asked(source, node, kinds)
        for each in node.values:
            kind = kinds.of(each)
            if asked and (_is_negated_data(each, kinds) or kind.what == "tensor" or _is_bool(kind)):
                continue
            if kind.what != "tensor" or kind.dtype != "bool":
                raise Refused(
                    f"`{source.of(each)}` is not known to be a bool tensor: "
                    "`and` and `or` may give something else than torch's"
                )
        return replaced(source.text, [source.swap(node, Predicates(source, kinds, torch).read(node).text)])
    membership = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn))
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and not membership:
        raise Refused(why_not(source, node))
    predicates = Predicates(source, kinds, torch)
    condition = predicates.read(node)
    if condition.form == "symbol":
        return replaced(source.text, [source.swap(node, f"({condition.text})")])
    if condition.form == "mixed" and isinstance(node, ast.BoolOp) and _only_asked(source, node, kinds):
        return replaced(source.text, [source.swap(node, condition.text)])
    if condition.form == "mixed" and isinstance(node, ast.Call):
        # Of a list that may be empty Python tells the answer, else the tensor.
        stands_alone = isinstance(source.parents[node], (ast.Return, ast.Assign))
        text = f"{condition.text}.item()"
        return replaced(source.text, [source.swap(node, text if stands_alone else f"({text})")])
    if condition.form != "tensor":
        raise Refused(why_not(source, node))
    bool_text = condition.text if condition.dtype == "bool" else f"{primary(condition.text)}.bool()"
    # `a < t < b` gives the tensor of one of its comparisons.
    stays = (isinstance(node, ast.Compare) and not membership) or _is_operand(source, node)
    text = bool_text if stays else f"{primary(bool_text)}.item()"
    return replaced(source.text, [source.swap(node, text)])


def _is_number_or_zero(node: ast.AST, kinds: Kinds) -> TypeGuard[ast.BoolOp]:
    """Whether `node` is `n or 0` of a number from data, which gives `n` whatever it is."""
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and len(node.values) == 2):
        return False
    number, zero = node.values
    kind = kinds.of(number)
    plain = dotted(number) is not None and kind.what == "scalar" and kind.type in ("int", "float")
    return (
        plain and isinstance(zero, ast.Constant) and type(zero.value).__name__ == kind.type and not zero.value
    )


def _number_or_zero(source: Source, node: ast.BoolOp) -> str:
    """The number, or zero where it may be None at other times."""
    number, zero = map(source.of, node.values)
    text = f"{number} if {number} is not None else {zero}"
    stands_alone = isinstance(source.parents[node], (ast.keyword, ast.Call, ast.Assign, ast.Return))
    around = source.text[: source.start(node)].rstrip()[-1:] + source.text[source.end(node) :].lstrip()[:1]
    return text if stands_alone or around == "()" else f"({text})"


def _is_negated_data(node: ast.expr, kinds: Kinds) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) and kinds.of(node.operand).from_data


def _only_asked(source: Source, node: ast.expr, kinds: Kinds) -> bool:
    """Whether nothing but the truth is asked of `node`, of the name that it gets, or by those whom it is returned to: there a bool and
    a tensor of it are alike."""
    if isinstance(source.parents[node], ast.Call):
        return _asks(source, node)
    if _is_asked_of_each(source, node):
        return True
    statement, function = source.parents[node], source.enclosing_function(node)
    if isinstance(statement, ast.Return) and isinstance(function, ast.FunctionDef):
        return _callers_only_ask(source, function, kinds)
    if not isinstance(statement, ast.Assign) or function is None or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    same = [
        each
        for each in ast.walk(function)
        if isinstance(target, ast.Name)
        and isinstance(each, ast.Name)
        and each.id == target.id
        and each is not target
    ]
    return bool(same) and all(isinstance(each.ctx, ast.Load) and _asks(source, each) for each in same)


def _is_asked_of_each(source: Source, node: ast.expr) -> bool:
    """Whether `any` or `all` asks `node` of each part of what a comprehension goes through, or that one filters by it."""
    outer = source.parents[node]
    if isinstance(outer, ast.comprehension):
        return node in outer.ifs
    call = source.parents.get(outer)
    listed = isinstance(outer, (ast.GeneratorExp, ast.ListComp)) and outer.elt is node
    return (
        listed and isinstance(call, ast.Call) and call.args == [outer] and dotted(call.func) in ("any", "all")
    )


def _callers_only_ask(source: Source, function: ast.FunctionDef, kinds: Kinds) -> bool:
    """Whether all that speaks of a method calls it in its own class, and asks for the truth of what it gives."""
    spoken = [
        each
        for each in ast.walk(source.tree)
        if isinstance(each, ast.Attribute) and each.attr == function.name
    ]
    calls = [source.parents[each] for each in spoken]
    return (
        bool(spoken)
        and isinstance(source.parents[function], ast.ClassDef)
        and not any(re.search(rf"\b{function.name}\b", chunk.text) for chunk in kinds.around)
        and all(
            dotted(each) == f"self.{function.name}" and isinstance(call, ast.Call) and _asks(source, call)
            for each, call in zip(spoken, calls, strict=True)
        )
    )


def _asks(source: Source, node: ast.expr) -> bool:
    parent = source.parents[node]
    if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        return _asks(source, parent)
    if isinstance(parent, ast.Call):
        # What another rewrite has made of an `if` or an `and`.
        name = (dotted(parent.func) or "").rpartition(".")[2]
        return name in _ASKS_ALL or (name == "cond" and node is parent.args[0])
    return isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)) and parent.test is node


def _is_bool(kind: Kind) -> bool:
    return kind.what in ("scalar", "number") and kind.type == "bool"


def why_not(source: Source, node: ast.AST) -> str:
    """The reason for a decision that no rewrite is known for."""
    around = next((each for each in source.ancestors(node) if isinstance(each, ast.comprehension)), None)
    if around is not None and any(each is part for part in around.ifs for each in ast.walk(part)):
        return (
            f"how many elements `{source.of(node)}` keeps is only known when the model runs, and a list has a length "
            "while tracing: compute all of them and select by a mask, or weigh those that are dropped with zero"
        )
    return "this use of a tensor's truth has no rewrite"


def _is_operand(source: Source, node: ast.expr) -> bool:
    """Whether the value only meets tensors in arithmetic, where a bool tensor does what a bool does."""
    return isinstance(source.parents.get(node), ast.BinOp)
