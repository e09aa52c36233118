"""A method that is called for what it does, written out where it is called."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from exportlens.inference.classes import class_attribute
from exportlens.inference.values import ClassValue, Function, Instance
from exportlens.rewriting.code.moved_arms import Arms
from exportlens.rewriting.code.names import arguments, bound, dotted, fresh, reads
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kinds import Kinds

_LONGEST = 24
# Statements that mean something else, or names that are others, where they are written out elsewhere.
NEVER_MOVED = (
    ast.Return,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.Lambda,
    ast.ClassDef,
    ast.YieldFrom,
    ast.Await,
    ast.Global,
    ast.Nonlocal,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
)
_UNSUITED = (*NEVER_MOVED, ast.Yield, ast.Import, ast.ImportFrom, ast.Try)
_NO_GRAD = re.compile(r"torch\.(no_grad|inference_mode)\(\)|torch\.no_grad")


@dataclass(frozen=True)
class Callee:
    """A method that a statement calls: the text that it stands in, and the path of what it is called on."""

    source: Source
    method: ast.FunctionDef
    owner: str


def callee_of(source: Source, statement: ast.Expr | ast.Assign, kinds: Kinds) -> Callee | None:
    """The method that `self.method(...)`, the whole of `statement` or what it binds, calls, or that of a submodule whose class
    stands in the same file: `self.part.method(...)`, `self.part(...)`."""
    call = statement.value
    if not isinstance(call, ast.Call) or not (path := dotted(call.func) or "").startswith("self."):
        return None
    owner, _, name = path.rpartition(".")
    if owner == "self":
        method = _method(source, statement, name)
        if method is not None:
            return Callee(source, method, "self")
        inherited = _inherited(source, statement, name, kinds)
        if inherited is not None:
            return inherited
        owner, name = path, "forward"
    return None if isinstance(statement, ast.Assign) else _of_submodule(statement, call, owner, name, kinds)


def _inherited(source: Source, node: ast.AST, name: str, kinds: Kinds) -> Callee | None:
    """The method that the class around `node` has of another one of its file, where no class that extends it has it anew."""
    own = getattr(kinds.names.get("self"), "value", None)
    cls = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    if cls is None or not isinstance(own, Instance) or not isinstance(own.cls, ClassValue):
        return None
    function, home, hidden = class_attribute(own.cls, name)
    if hidden or not isinstance(function, Function) or function.scope is not own.cls.scope:
        return None
    classes = [each for chunk in kinds.around for each in chunk.body if isinstance(each, ast.ClassDef)]
    heirs = [cls]
    for heir in heirs:
        heirs += [each for each in classes if each not in heirs and heir.name in map(ast.unparse, each.bases)]
    anew = any(getattr(one, "name", "") == name for each in heirs for one in each.body)
    if anew or not isinstance(home, ClassValue) or home.name in {each.name for each in heirs}:
        return None
    inside = Source(function.chunk.text)
    method = inside.find(function.node)
    return Callee(inside, method, "self") if isinstance(method, ast.FunctionDef) else None


def _of_submodule(statement: ast.Expr, call: ast.Call, owner: str, name: str, kinds: Kinds) -> Callee | None:
    path = call.func if name == "forward" else call.func.value  # type: ignore[attr-defined]
    part, own = kinds.of(path).value, getattr(kinds.names.get("self"), "value", None)
    if (
        not isinstance(part, Instance)
        or not isinstance(part.cls, ClassValue)
        or not isinstance(own, Instance)
    ):
        return None
    function = class_attribute(part.cls, name)[0]
    same_file = isinstance(own.cls, ClassValue) and own.cls.scope is part.cls.scope
    if not isinstance(function, Function) or not same_file or function.scope is not part.cls.scope:
        return None
    source = Source(function.chunk.text)
    method = source.find(function.node)
    return Callee(source, method, owner) if isinstance(method, ast.FunctionDef) else None


def inlined(
    source: Source, statement: ast.Expr | ast.Assign, taken: set[str], callee: Callee | None
) -> str | None:
    """The statements of the method that the whole of `statement`, or what it binds, calls, indented as it is.

    None where the method is not known, returns in the midst of a branch (what is bound: anywhere but at its end), is long, or is
    called in an unusual way. Names that it binds get fresh ones, added to `taken`.
    """
    call = statement.value
    if callee is None or not isinstance(call, ast.Call) or not source.begins_line(statement):
        return None
    method = callee.method
    body = method.body[1:] if _is_text(method.body[0]) else method.body
    result: ast.expr | None = None
    if isinstance(statement, ast.Assign):
        last = body[-1] if body else None
        if not isinstance(last, ast.Return) or last.value is None or method.decorator_list:
            return None
        body, result = body[:-1], last.value
        if any(_leaves(each) for each in body):
            return None
    elif body and isinstance(body[-1], ast.Return) and _gives_nothing_needed(body[-1]):
        body = body[:-1]
    arms = Arms(callee.source, method)
    if (not body and result is None) or sum(
        isinstance(each, ast.stmt) and not arms.holds(each) for each in ast.walk(method)
    ) > _LONGEST:
        return None
    inner = [
        part
        for each in body
        for part in ([each.test, *each.body[:-1]] if isinstance(each, ast.If) and _leaves(each) else [each])
    ]
    whole = [*inner, *([result] if result is not None else [])]
    if any(isinstance(each, _UNSUITED) and not arms.holds(each) for one in whole for each in ast.walk(one)):
        return None
    given, own = _given(source, call, method), arms.names()
    if given is None or method.args.args[0].arg in own:
        return None
    if (callee.owner != "self" or callee.source is not source) and not _stands_anywhere(
        source, statement, [*inner], given
    ):
        return None
    given |= {method.args.args[0].arg: (callee.owner, True)}
    # What is computed for a parameter, or bound anew in the method, gets a name of its own first.
    own = [*bound(body), *own]
    first = [name for name, (text, plain) in given.items() if not plain or name in own]
    renamed = {name: fresh(name, taken) for name in dict.fromkeys([*own, *first])}
    before = [f"{renamed[name]} = {given[name][0]}" for name in first]
    swaps = arms.renamed(renamed)
    for one in [*body, *([result] if result is not None else [])]:
        for each in ast.walk(one):
            if isinstance(each, ast.Name) and (each.id in given or each.id in renamed):
                swaps.append(callee.source.swap(each, renamed.get(each.id) or given[each.id][0]))
    indent = source.indent_of(statement)
    lines = [indent + each for each in before]
    if body:
        text = _block(callee.source, method, body, indent, swaps)
        if text is None:
            return None
        lines.append(text)
    if result is not None:
        assert isinstance(statement, ast.Assign)
        targets = source.text[source.start(statement) : source.start(statement.value)]
        several = isinstance(result, ast.Tuple) and not callee.source.of(result).startswith("(")
        value = callee.source.of(result, swaps)
        lines.append(f"{indent}{targets}{f'({value})' if several else value}")
    return source.newline.join(lines).lstrip(" \t")


def is_guard(node: ast.stmt) -> bool:
    """Whether `node` is `if done: return`."""
    return (
        isinstance(node, ast.If)
        and not node.orelse
        and len(node.body) == 1
        and isinstance(node.body[0], ast.Return)
        and node.body[0].value is None
    )


def _leaves(node: ast.stmt) -> bool:
    """Whether `node` is an `if` without `else` that ends in a return, of which nobody needs what it gives."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    last = node.body[-1]
    return isinstance(last, ast.Return) and _gives_nothing_needed(last)


def _gives_nothing_needed(node: ast.Return) -> bool:
    return node.value is None or isinstance(node.value, (ast.Constant, ast.Name))


def negated(source: Source, test: ast.expr, swaps: list[Replacement] | None = None) -> str:
    """The text of the opposite of `test`, with `swaps` made in it."""
    is_negation = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    asked = test.operand if isinstance(test, ast.UnaryOp) and is_negation else test
    plain = isinstance(asked, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    text = source.of(asked, swaps or [])
    return ("" if is_negation else "not ") + (text if plain else f"({text})")


def _lines(source: Source, body: list[ast.stmt], indent: str, swaps: list[Replacement]) -> str | None:
    """The statements without returns: what follows `if done: ...; return` stands in a branch."""
    index = next((index for index, each in enumerate(body) if _leaves(each)), len(body))
    lines = [source.block(body[:index], indent, swaps)] if index else []
    if index < len(body):
        guard, following = body[index], body[index + 1 :]
        assert isinstance(guard, ast.If)
        deeper = indent + source.indent_unit()
        inner = _lines(source, following, deeper, swaps)
        if len(guard.body) > 1:
            test = source.of(guard.test, swaps)
            lines += [f"{indent}if {test}:"]
            lines += [source.block(guard.body[:-1], deeper, swaps)]
            if inner is not None:
                lines += [f"{indent}else:", inner]
        elif inner is None:
            return None
        else:
            lines += [f"{indent}if {negated(source, guard.test, swaps)}:", inner]
    return source.newline.join(lines) if lines else None


def _block(
    source: Source, method: ast.FunctionDef, body: list[ast.stmt], indent: str, swaps: list[Replacement]
) -> str | None:
    if not method.decorator_list:
        return _lines(source, body, indent, swaps)
    if len(method.decorator_list) > 1:
        return None
    decorator = source.of(method.decorator_list[0])
    if not _NO_GRAD.fullmatch(decorator):
        return None
    context = decorator if decorator.endswith(")") else f"{decorator}()"
    inner = _lines(source, body, indent + source.indent_unit(), swaps)
    return None if inner is None else f"{indent}with {context}:{source.newline}{inner}"


def _method(source: Source, node: ast.AST, name: str) -> ast.FunctionDef | None:
    owner = next((each for each in source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    if owner is None:
        return None
    found = [each for each in owner.body if isinstance(each, ast.FunctionDef) and each.name == name]
    return found[0] if len(found) == 1 and not _is_overridden(source, owner, name) else None


def _is_overridden(source: Source, owner: ast.ClassDef, name: str) -> bool:
    """Whether a class of the same text that derives from `owner` has a method `name` of its own."""
    return any(
        isinstance(each, ast.ClassDef)
        and any((dotted(base) or "").split(".")[-1] == owner.name for base in each.bases)
        and any(isinstance(one, ast.FunctionDef) and one.name == name for one in each.body)
        for each in ast.walk(source.tree)
    )


def _given(source: Source, call: ast.Call, method: ast.FunctionDef) -> dict[str, tuple[str, bool]] | None:
    """The text for each parameter of the method, and whether it is a plain name, attribute or constant, in the order of
    the call; None where the call is unusual."""
    args = method.args
    if args.vararg or args.kwarg or args.kwonlyargs or args.posonlyargs or not args.args:
        return None
    names = [each.arg for each in arguments(args)][1:]
    texts: dict[str, tuple[str, bool]] = {}
    defaults = dict(zip(names[::-1], reversed(args.defaults), strict=False))
    for name, value in [
        *zip(names, call.args, strict=False),
        *((key.arg or "", key.value) for key in call.keywords),
    ]:
        if name not in names or isinstance(value, ast.Starred):
            return None
        texts[name] = (source.of(value), isinstance(value, ast.Constant) or dotted(value) is not None)
    if len(call.args) > len(names):
        return None
    for name in names:
        if name not in texts:
            default = defaults.get(name)
            if not isinstance(default, ast.Constant):
                return None
            texts[name] = (source.of(default), True)
    return texts


def _stands_anywhere(
    source: Source, statement: ast.stmt, body: list[ast.AST], given: dict[str, tuple[str, bool]]
) -> bool:
    """Whether the statements of another class's method mean the same in the function of `statement`."""
    function = source.enclosing_function(statement)
    if function is None:
        return False
    here = {*bound(function.body), *(each.arg for each in arguments(function.args))}
    free = reads(body) - set(given) - set(bound(body)) - {"self"}
    private = any(
        isinstance(each, ast.Attribute) and each.attr.startswith("__") and not each.attr.endswith("__")
        for one in body
        for each in ast.walk(one)
    )
    return not private and "super" not in free and not free & here


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
