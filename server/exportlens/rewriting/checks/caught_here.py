"""An error that data raises and the same function catches is a branch:

    try:                                        h = self.encode(x)
        h = self.encode(x)                      if h.norm() > 9:
        if h.norm() > 9:                            y = x
            raise ValueError("too long")        else:
        y = h * 2                       ->          y = h * 2
    except ValueError:
        y = x

Nothing else of the `try` may raise what is caught.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from exportlens.inference.values import Instance, Named
from exportlens.rewriting.checks.caught_by_callers import CANNOT_FAIL, refuse_ends
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.inlining import negated
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_log, loaded
from exportlens.source.walking import walk

# What torch's operators do not raise for what data says, and what they are derived from; all others than these and the classes
# of the file are left.
_BUILT_IN = {
    "ValueError": ("ValueError",),
    "ArithmeticError": ("ArithmeticError",),
    "OverflowError": ("OverflowError", "ArithmeticError"),
    "FloatingPointError": ("FloatingPointError", "ArithmeticError"),
    "AssertionError": ("AssertionError",),
}
_HARMLESS = frozenset({"len", "range", "enumerate", "zip", "isinstance", "print", "list", "tuple", "dict"})


def caught_as_branch(source: Source, node: ast.If | ast.Assert, kinds: Kinds) -> str | None:
    """The whole text where what `node` raises is a branch of its function; None where its own function does not catch it. Raises
    Refused where that cannot be told."""
    attempt = source.parents.get(node)
    if not isinstance(attempt, ast.Try) or node not in attempt.body:
        return None
    raised = _raised(source, node)
    if raised is None:
        return None
    error, exception = raised
    classes = {each.name: each for each in walk(source.tree) if isinstance(each, ast.ClassDef)}
    for chunk in kinds.around:
        classes |= {each.name: each for each in chunk.body if isinstance(each, ast.ClassDef)}
    lineage = list(_lineage(error, classes))
    if error not in classes and error not in _BUILT_IN:
        return None
    handler = next((each for each in attempt.handlers if set(_caught(each)) & set(lineage)), None)
    if handler is None or any(each not in classes and each not in _BUILT_IN for each in _caught(handler)):
        return None
    if attempt.handlers != [handler]:
        raise Refused("the `try` has several handlers")
    own = all(each in classes for each in _caught(handler))
    index = attempt.body.index(node)
    before, behind = attempt.body[:index], attempt.body[index + 1 :]
    for each in (*before, *behind):
        _refuse_raising(source, each, kinds, own)
    refuse_ends(source, attempt, handler, node)
    return _branch(source, attempt, node, handler, exception, kinds)


def _raised(source: Source, node: ast.If | ast.Assert) -> tuple[str, str] | None:
    """The class of what `node` raises, and the expression that makes it; None where it does anything else beside."""
    if isinstance(node, ast.Assert):
        message = "" if node.msg is None else source.of(node.msg)
        return "AssertionError", f"AssertionError({message})"
    [only, *others] = node.body
    if others or node.orelse or not isinstance(only, ast.Raise) or only.exc is None:
        return None
    made = only.exc
    name = dotted(made.func if isinstance(made, ast.Call) else made)
    return (name, source.of(made)) if name is not None else None


def _lineage(name: str, classes: dict[str, ast.ClassDef]) -> Iterator[str]:
    """`name` and the classes that it is derived from, as far as the file tells."""
    yield from _BUILT_IN.get(name, (name,))
    for base in classes[name].bases if name in classes else ():
        yield from _lineage(dotted(base) or "", {key: each for key, each in classes.items() if key != name})


def _caught(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return [""]
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [dotted(each) or "" for each in types]


def _refuse_raising(source: Source, statement: ast.stmt, kinds: Kinds, own: bool) -> None:
    """Raise Refused where `statement` may raise what is caught as well: an error of the file's `own`, or also what Python raises."""
    for each in walk(statement):
        if isinstance(each, (ast.Raise, ast.Assert, ast.With, ast.Await, ast.Yield, ast.YieldFrom, ast.Try)):
            raise Refused("another statement of the `try` may raise the same error")
        if isinstance(each, ast.Call) and not _is_harmless(each, kinds, own):
            raise Refused(f"`{source.of(each)}` may raise the same error")
        if not own and _may_divide_by_zero(each, kinds):
            raise Refused(f"`{source.of(each)}` may raise the same error")


def _may_divide_by_zero(node: ast.AST, kinds: Kinds) -> bool:
    """Whether `node` divides numbers of Python, or raises one to a power."""
    if isinstance(node, ast.BinOp):
        sides = [node.left, node.right]
    elif isinstance(node, ast.AugAssign):
        sides = [loaded(node.target), node.value]
    else:
        return False
    if not isinstance(node.op, (ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)):
        return False
    return "tensor" not in {kinds.of(each).what for each in sides} and not isinstance(sides[1], ast.Constant)


def _is_harmless(call: ast.Call, kinds: Kinds, own: bool) -> bool:
    name = (dotted(call.func) or "").rpartition(".")[2] or getattr(call.func, "attr", "")
    if is_log(call, kinds) or name in CANNOT_FAIL or (isinstance(call.func, ast.Name) and name in _HARMLESS):
        return True
    if isinstance(call.func, ast.Attribute) and name in ("append", "extend"):
        return True
    value = kinds.of(call.func).value
    if isinstance(value, Instance):
        return isinstance(value.cls, Named) and value.cls.name.startswith("torch.nn.")
    if not own:
        qualified = kinds.qualified(call.func) or ""
        return qualified.startswith(("torch.linalg.", "torch.fft.", "torch.special."))
    if (kinds.qualified(call.func) or "").startswith(("torch.", "numpy.", "math.")):
        return True
    return isinstance(call.func, ast.Attribute) and kinds.of(call.func.value).what == "tensor"


def _branch(
    source: Source,
    attempt: ast.Try,
    node: ast.If | ast.Assert,
    handler: ast.ExceptHandler,
    exception: str,
    kinds: Kinds,
) -> str:
    outer, unit, nl = source.indent_of(attempt), source.indent_unit(), source.newline
    index = attempt.body.index(node)
    test = source.of(node.test) if isinstance(node, ast.If) else negated(source, node.test)
    lines = [source.block(attempt.body[:index], outer)] if index else []
    named = _named(source, handler, exception, kinds)
    lines += [f"{outer}if {test}:", source.block(handler.body, outer + unit, named)]
    rest = [each for part in (attempt.body[index + 1 :], attempt.orelse) for each in _blocks(part)]
    if rest:
        lines += [f"{outer}else:", *(source.block(each, outer + unit) for each in rest)]
    if attempt.finalbody:
        lines.append(source.block(attempt.finalbody, outer))
    start, end = source.start(attempt), source.span([attempt])[1]
    return replaced(source.text, [Replacement(start, end, nl.join(lines).removeprefix(outer))])


def _blocks(part: Sequence[ast.stmt]) -> list[list[ast.stmt]]:
    return [list(part)] if part and not all(isinstance(each, ast.Pass) for each in part) else []


def _named(source: Source, handler: ast.ExceptHandler, exception: str, kinds: Kinds) -> list[Replacement]:
    """The exception in the place of its name, where the handler only logs it. Raises Refused."""
    if handler.name is None:
        return []
    swaps = []
    for each in (each for one in handler.body for each in walk(one)):
        if not isinstance(each, ast.Name) or each.id != handler.name:
            continue
        logged = any(is_log(one, kinds) for one in source.ancestors(each) if isinstance(one, ast.Call))
        if not logged or any(isinstance(one, ast.JoinedStr) for one in source.ancestors(each)):
            raise Refused("the handler reads the exception that data raises")
        swaps.append(source.swap(each, exception))
    return swaps
