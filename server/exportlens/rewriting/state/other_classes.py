"""Classes of a file of which no object is one of a given class: what their methods call `self` is another object."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping

from exportlens.source.walking import walk


def of_other_classes(cls: ast.ClassDef, statements: Iterable[ast.stmt]) -> set[int]:
    """The ids of what stands in classes among the `statements` of the file that `cls` does not extend, that do not extend it, and that
    no third class extends beside it."""
    classes = {each.name: each for each in statements if isinstance(each, ast.ClassDef)}
    extended = {name: _extended(each, classes) for name, each in classes.items()}
    own = _extended(cls, classes) | extended.get(cls.name, set())
    found: set[int] = set()
    for name, each in classes.items():
        if name == cls.name or name in own or cls.name in extended[name]:
            continue
        if any({name, cls.name} <= both for both in extended.values()):
            continue
        found |= {id(one) for one in walk(each)}
    return found


def _extended(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> set[str]:
    """The names of the classes that `cls` extends, and of what those extend, as far as the file tells."""
    found: set[str] = set()
    left = [cls]
    while left:
        for base in left.pop().bases:
            name = ast.unparse(base.value if isinstance(base, ast.Subscript) else base).rpartition(".")[2]
            if name not in found:
                found.add(name)
                left += [classes[name]] if name in classes else []
    return found
