"""What is kept out of the program gives a value and does nothing else: `if self.track(x) > 3: print(...)` tracks as well."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.effects import is_kept_out, is_log, writes_of
from exportlens.rewriting.memory.helper_writes import written_state
from exportlens.rewriting.memory.moving import writes
from exportlens.source.walking import walk

# Methods of containers and iterators that change them, and functions that do so.
_CHANGING = frozenset(
    {"append", "appendleft", "extend", "insert", "pop", "popleft", "popitem", "remove", "clear", "update", "setdefault", "discard",
     "sort", "reverse", "next", "send", "__next__", "setattr", "delattr"}
)  # fmt: skip
# How many methods that call each other are followed.
_DEEPEST = 4


def refuse_lasting(source: Source, node: ast.AST, kinds: Kinds) -> None:
    """Raise Refused where evaluating `node` binds a name, or changes anything that others see, as far as that can be told."""
    for each in walk(node):
        if isinstance(each, ast.NamedExpr):
            raise Refused(
                f"`{source.of(each)}` binds a name, which would be left out of the program with the rest"
            )
        if isinstance(each, (ast.Await, ast.Yield, ast.YieldFrom)):
            raise Refused(f"`{source.of(each)}` waits or yields, and would be left out of the program")
        if isinstance(each, ast.Call) and not is_log(each, kinds) and _lasts(source, each, kinds):
            raise Refused(
                f"`{source.of(each)}` changes more than it gives, and would be left out of the program with the rest: call it "
                "before"
            )


def _lasts(source: Source, call: ast.Call, kinds: Kinds) -> bool:
    name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
    if name in _CHANGING or written_state(call, kinds) is not None:
        return True
    if any(True for _ in writes_of(ast.Expr(call), kinds)):
        return True
    cls = next((each for each in source.ancestors(call) if isinstance(each, ast.ClassDef)), None)
    return cls is not None and _method_lasts(cls, call, 0)


def _method_lasts(cls: ast.ClassDef, call: ast.Call, depth: int) -> bool:
    """Whether `call` runs a method of `cls` that sets or changes what the model holds."""
    path = dotted(call.func) or ""
    methods = (each for each in cls.body if isinstance(each, ast.FunctionDef) and f"self.{each.name}" == path)
    method = next(methods, None)
    if method is None:
        return False
    if depth >= _DEEPEST:
        return True
    for each in walk(method):
        if isinstance(each, (ast.Attribute, ast.Subscript)) and not isinstance(each.ctx, ast.Load):
            return True
        if isinstance(each, (ast.Global, ast.Nonlocal)):
            return True
        if isinstance(each, ast.Call):
            base, _, name = (dotted(each.func) or "").rpartition(".")
            changes = name in _CHANGING or (name.endswith("_") and not name.endswith("__"))
            if (changes and base.startswith("self.")) or _method_lasts(cls, each, depth + 1):
                return True
    return False


def logs_kept_out(
    source: Source, region: ast.AST, node: ast.stmt, kinds: Kinds, torch: str
) -> tuple[Source, ast.stmt] | None:
    """The text where what prints or logs in `region` does so where nothing is traced, and `node`, in or around it; None where
    it has no line of its own. Raises Refused where it does more."""
    swaps = []
    for each in walk(region):
        if isinstance(each, ast.Expr) and is_log(each.value, kinds) and not is_kept_out(source.parents[each]):
            writing = any(isinstance(one, ast.NamedExpr) for one in walk(each)) or writes([each])
            if not source.begins_line(each) or writing:
                return None
            refuse_lasting(source, each, kinds)
            indent = source.indent_of(each)
            inner = indent + source.indent_unit()
            start, end = source.start(each), source.span([each])[1]
            text = inner + source.shifted(start, end, indent, inner)
            head = f"if not {torch}.compiler.is_compiling():{source.newline}"
            swaps.append(Replacement(start, end, head + text))
    if not swaps:
        return None
    begin = source.start(node)
    offset = begin + sum(len(each.text) - (each.end - each.start) for each in swaps if each.end <= begin)
    changed = Source(replaced(source.text, swaps))
    for found in walk(changed.tree):
        if type(found) is type(node) and isinstance(found, ast.stmt) and changed.start(found) == offset:
            return changed, found
    return None
