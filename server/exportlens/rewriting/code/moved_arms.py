"""The functions that a method gives to torch's operators of control flow alone: they move with it where it is written out elsewhere."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from exportlens.rewriting.code.liveness import given_to_operators
from exportlens.rewriting.code.names import arguments, bound
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.source.walking import walk


class Arms:
    """Those of `method`, which stands in `source`, also those inside of others."""

    def __init__(self, source: Source, method: ast.FunctionDef) -> None:
        self.source = source
        given = given_to_operators(method)
        inside = [each for each in walk(method) if each is not method]
        self.lambdas = [each for each in inside if isinstance(each, ast.Lambda) and each in given]
        self.functions = [
            each
            for each in inside
            if isinstance(each, ast.FunctionDef)
            and each.name in given
            and not each.decorator_list
            and source.text.startswith(f"def {each.name}(", source.start(each))
            and not any(one.annotation for one in arguments(each.args))
        ]
        self.given = [one for each in self.functions for one in arguments(each.args)]
        self.given += [one for each in self.lambdas for one in arguments(each.args)]
        self.held = {
            *self.lambdas,
            *self.functions,
            *(
                each
                for each in inside
                if isinstance(each, ast.Return) and source.enclosing_function(each) in self.functions
            ),
        }

    def holds(self, node: ast.AST) -> bool:
        """Whether `node` is one of them, or what gives the result of one."""
        return node in self.held

    def names(self) -> list[str]:
        """What they bind for themselves, their parameters included."""
        found = [name for each in self.functions for name in bound(each.body)]
        return [*found, *(each.arg for each in self.given)]

    def renamed(self, names: Mapping[str, str]) -> list[Replacement]:
        """Their own names and those of their parameters, as `names` has them."""
        starts = [(each.name, self.source.start(each) + len("def ")) for each in self.functions]
        swaps = [Replacement(at, at + len(name), names.get(name, name)) for name, at in starts]
        return [*swaps, *(self.source.swap(one, names[one.arg]) for one in self.given if one.arg in names)]
