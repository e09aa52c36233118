"""Helpers that arrays are handed to: a method of the class or a function of the file that all its calls give what was a tensor."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from exportlens.rewriting.code.callers import identifiers
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.names import arguments, dotted
from exportlens.rewriting.code.text import Function, Source

_PLAIN = frozenset({"staticmethod", "classmethod", "torch.no_grad()"})


@dataclass
class Helpers:
    """The functions of one text that arrays went into, and the arguments by which they came."""

    source: Source
    # The texts of the file around that one.
    around: list[str] = field(default_factory=list)
    entered: dict[Function, set[str]] = field(default_factory=dict)
    # What is returned to the callers is an array, or a tuple with arrays at these indices.
    returned: dict[Function, set[int | None]] = field(default_factory=dict)

    def called(self, call: ast.Call) -> Function | None:
        """The function of this text that `call` calls; None for any other."""
        name = dotted(call.func) or ""
        if any(isinstance(each, ast.Starred) for each in call.args) or any(
            key.arg is None for key in call.keywords
        ):
            return None
        block: list[ast.stmt] = self.source.tree.body
        if "." in name:
            head, _, name = name.partition(".")
            cls = next((each for each in self.source.ancestors(call) if isinstance(each, ast.ClassDef)), None)
            if cls is None or head not in ("self", cls.name):
                return None
            block = self._home(cls, name)
        found = [each for each in block if isinstance(each, ast.FunctionDef) and each.name == name]
        if len(found) != 1 or name == "forward" or not self._is_plain(found[0]):
            return None
        return found[0]

    def _home(self, cls: ast.ClassDef, name: str) -> list[ast.stmt]:
        """The body of the class that defines the method `name` of `cls`: its own, or that of its only base, where this text has it."""
        if any(isinstance(each, ast.FunctionDef) and each.name == name for each in cls.body):
            return cls.body
        bases = [
            each
            for each in self.source.tree.body
            if isinstance(each, ast.ClassDef) and [dotted(base) for base in cls.bases] == [each.name]
        ]
        return self._home(bases[0], name) if len(bases) == 1 and bases[0].lineno < cls.lineno else []

    def _is_plain(self, function: Function) -> bool:
        """Whether calls run the body of `function` with what they give, and nothing but calls uses it."""
        if not {ast.unparse(each) for each in function.decorator_list} <= _PLAIN:
            return False
        inner = [
            each for each in ast.walk(function) if isinstance(each, (ast.Yield, ast.YieldFrom, ast.Lambda))
        ]
        if function.args.vararg or function.args.kwarg or inner:
            return False
        if any(function.name in identifiers(each) for each in self.around):
            return False
        for each in ast.walk(self.source.tree):
            is_method = isinstance(self.source.parents[function], ast.ClassDef)
            is_named = (isinstance(each, ast.Attribute) and each.attr == function.name) or (
                isinstance(each, ast.Name) and each.id == function.name and not is_method
            )
            parent = self.source.parents.get(each)
            if isinstance(each, ast.FunctionDef) and each.name == function.name and each is not function:
                return False
            if is_named and not (isinstance(parent, ast.Call) and parent.func is each):
                return False
        return True

    def calls_of(self, function: Function) -> list[ast.Call]:
        return [
            each
            for each in ast.walk(self.source.tree)
            if isinstance(each, ast.Call) and (dotted(each.func) or "").rpartition(".")[2] == function.name
        ]

    def parameter(self, function: Function, call: ast.Call, node: ast.expr) -> str:
        """The name under which `function` gets the argument `node` of `call`. Raises Refused where there is none."""
        for key in call.keywords:
            if key.value is node and key.arg is not None:
                return key.arg
        plain = self._positional(function)
        if node in call.args and call.args.index(node) < len(plain):
            return plain[call.args.index(node)]
        raise Refused(f"which argument of `{function.name}` the array is is not known")

    def _positional(self, function: Function) -> list[str]:
        plain = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
        is_method = isinstance(self.source.parents[function], ast.ClassDef)
        bare = "staticmethod" in {ast.unparse(each) for each in function.decorator_list}
        return plain[1:] if is_method and not bare else plain

    def argument(self, function: Function, call: ast.Call, name: str) -> ast.expr | None:
        """What `call` gives the parameter `name`."""
        for key in call.keywords:
            if key.arg == name:
                return key.value
        plain = self._positional(function)
        index = plain.index(name) if name in plain else len(call.args)
        return call.args[index] if index < len(call.args) else None

    def enter(self, function: Function, name: str) -> list[ast.Name]:
        """The reads of the parameter `name`, where it is entered for the first time."""
        if name not in {each.arg for each in arguments(function.args)}:
            raise Refused(f"which argument of `{function.name}` the array is is not known")
        names = self.entered.setdefault(function, set())
        if name in names:
            return []
        names.add(name)
        return [
            each
            for each in ast.walk(function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Load)
        ]

    def give_back(self, node: ast.expr) -> list[ast.Call] | None:
        """The calls that get `node`, which is returned by a function that arrays went into, for the first time; None where it is
        not returned so."""
        index: int | None = None
        parent = self.source.parents[node]
        if isinstance(parent, ast.Tuple):
            index = parent.elts.index(node)
            parent = self.source.parents[parent]
        function = self.source.enclosing_function(node)
        if not isinstance(parent, ast.Return) or function is None:
            return None
        if function not in self.entered:
            if function.name in ("forward", "__init__", "__call__") or not self._is_plain(function):
                return None
            self.entered[function] = set()
        known = self.returned.setdefault(function, set())
        if index in known:
            return []
        known.add(index)
        return self.calls_of(function)

    def refuse_others(self, passed: set[ast.expr], plain: set[ast.expr]) -> None:
        """Refuse where a call gives something else than what was a tensor, or something else is returned in its place."""
        for function, names in self.entered.items():
            for call in self.calls_of(function):
                for name in names:
                    if self.argument(function, call, name) not in passed:
                        raise Refused(
                            f"`{function.name}` is called with something else than what was a tensor"
                        )
            indices = self.returned.get(function, set())
            if len(indices) > 1 and None in indices:
                raise Refused(f"`{function.name}` returns one array, or several")
            for each in ast.walk(function):
                if not isinstance(each, ast.Return) or not indices:
                    continue
                for index in indices:
                    value = each.value
                    if index is not None:
                        value = (
                            value.elts[index]
                            if isinstance(value, ast.Tuple) and index < len(value.elts)
                            else None
                        )
                    if value not in passed | plain:
                        raise Refused(f"`{function.name}` returns an array, or something else")
