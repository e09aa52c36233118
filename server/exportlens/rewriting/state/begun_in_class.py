"""State that the body of a class begins, `steps = 0`, or a method that its constructor calls, `self.reset()`: as what the constructor
registers, a buffer belongs to the object."""

from __future__ import annotations

import ast

from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import assigned_pairs, dotted, is_none
from exportlens.rewriting.code.text import Function, Replacement, Source


def begun_in_class(cls: ast.ClassDef, attr: str) -> tuple[ast.Assign | ast.AnnAssign, ast.expr] | None:
    """The statement of the class body that begins `attr` alone, and what it begins with."""
    found: list[tuple[ast.Assign | ast.AnnAssign, ast.expr]] = []
    for each in cls.body:
        targets = each.targets if isinstance(each, ast.Assign) else [getattr(each, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == attr for target in targets):
            if not isinstance(each, (ast.Assign, ast.AnnAssign)) or each.value is None or len(targets) > 1:
                return None
            found.append((each, each.value))
    return found[0] if len(found) == 1 else None


def registered_by_constructor(
    source: Source, cls: ast.ClassDef, begin: ast.stmt, text: str
) -> list[Replacement]:
    """`text` as what the constructor of `cls` does first once the Module is made, in the place of `begin` of the class body, whose
    comments go with it. Raises Refused."""
    if not source.begins_line(begin) or len(cls.body) == 1:
        raise Refused(f"`{source.of(begin)}` stands on a line with other statements")
    start, end = source.span([begin])
    moved = source.block([begin], "", [source.swap(begin, text)])
    behind = source.text[end:]
    gone = Replacement(start, end + len(behind) - len(behind.lstrip("\r\n")), "")
    constructor = next((each for each in cls.body if getattr(each, "name", "") == "__init__"), None)
    if constructor is None:
        indent, unit, newline = source.indent_of(begin), source.indent_unit(), source.newline
        inner = newline + indent + unit
        lines = [line for line in moved.splitlines() if line.strip()]
        made = f"{indent}def __init__(self, *args, **kwargs):{inner}super().__init__(*args, **kwargs){inner}{inner.join(lines)}"
        return [Replacement(start, end, made)]
    if not isinstance(constructor, (ast.FunctionDef, ast.AsyncFunctionDef)):
        raise Refused("the constructor is no function of the class")
    made_at = module_made(source, constructor)
    at = source.end(made_at)
    indent = source.newline + source.indent_of(made_at)
    return [gone, Replacement(at, at, "".join(indent + line for line in moved.splitlines() if line.strip()))]


def is_emptied_by_constructor(cls: ast.ClassDef, path: str) -> bool:
    """Whether the constructor of `cls`, which is a Module of torch's itself, calls a method that sets `path` to None in any case."""
    methods = {each.name: each for each in cls.body if isinstance(each, ast.FunctionDef)}
    if "__init__" not in methods or [(dotted(each) or "").rpartition(".")[2] for each in cls.bases] != [
        "Module"
    ]:
        return False
    called = {
        dotted(each.value.func)
        for each in methods["__init__"].body
        if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)
    }
    return any(
        dotted(target) == path and is_none(value)
        for name, method in methods.items()
        if f"self.{name}" in called
        for each in method.body
        if isinstance(each, (ast.Assign, ast.AnnAssign))
        for target, value in assigned_pairs(each)
    )


def module_made(source: Source, constructor: Function) -> ast.stmt:
    """`super().__init__()` in the constructor. Raises Refused."""
    for each in constructor.body:
        func = each.value.func if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr == "__init__" and source.begins_line(each):
            return each
    raise Refused("where the constructor makes the Module by `super().__init__()` is not certain")
