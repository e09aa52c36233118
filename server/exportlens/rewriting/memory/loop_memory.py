"""Memory that a loop on tensor data writes, and that what it gives may share: while_loop gives memory of its own."""

from __future__ import annotations

import ast
from dataclasses import replace

from exportlens.inference.values import ClassValue, Instance
from exportlens.rewriting.branches.outputs import is_again
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.liveness import Liveness
from exportlens.rewriting.code.names import bound, dotted, reads
from exportlens.rewriting.code.text import Source
from exportlens.rewriting.decisions.decisions import hazard_among
from exportlens.rewriting.kinds.function_kinds import own_function
from exportlens.rewriting.kinds.kind import LOCAL, UNKNOWN_KIND, Kind, merged, union
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.afterwards import afterwards
from exportlens.rewriting.memory.effects import loaded, visit, writes_of
from exportlens.rewriting.memory.outside_writes import augmented_names, bound_anew
from exportlens.source.walking import walk


class LoopMemory:
    """The loop `node`; `kinds` are those just before it. `counted` are the ints that tensors stand for, `read_back` those that are
    ints again behind it, `cloned` what it gives that is copied there."""

    def __init__(
        self, source: Source, node: ast.While | ast.For, function: ast.FunctionDef, kinds: Kinds, torch: str
    ) -> None:
        self.source, self.node, self.function, self.kinds, self.torch = source, node, function, kinds, torch
        self.live = Liveness(function)
        self.counted: list[str] = []
        self.read_back: list[str] = []
        self.cloned: list[str] = []

    def written(self) -> list[str]:
        """The outside tensors that the body writes in place."""
        found: dict[str, None] = {}
        before = self.inside_with({})
        mark = before.mark()
        read = reads(self.node.body) | augmented_names(self.node.body) | reads(self.node)

        def see(node: ast.stmt, now: Kinds) -> None:
            for write in writes_of(node, now):
                kind = now.of(loaded(write.base))
                if kind.roots is None:
                    raise Refused(f"it is not known whose memory `{self.source.of(write.base)}` is")
                for root in kind.roots:
                    if root.startswith(LOCAL) and int(root[len(LOCAL) :]) > mark:
                        continue
                    owners = [
                        one
                        for one, each in self.kinds.names.items()
                        if one in read and root in (each.roots or ())
                    ]
                    if len(owners) != 1 or "." in root:
                        raise Refused(
                            "a tensor that the loop writes is an attribute, or has several names there"
                        )
                    found[owners[0]] = None
            for target in getattr(node, "targets", [getattr(node, "target", None)]):
                if isinstance(target, ast.Attribute):
                    raise Refused(f"the loop sets `{self.source.of(target)}`")

        visit(self.node.body, before, see)
        anew = bound_anew(self.node.body)
        for name in found:
            roots = self.kinds.names[name].roots or frozenset()
            if name in anew and not all(root.startswith(LOCAL) for root in roots):
                raise Refused(
                    f"`{name}` comes from outside, and the loop both writes it in place and binds it anew"
                )
            shared: list[str] = [
                other
                for other, kind in self.kinds.names.items()
                if other != name and kind.roots and kind.roots & roots
            ]
            if shared:
                raise Refused(f"`{shared[0]}` may share memory with `{name}`, which the loop writes in place")
        return list(found)

    def see_later_writes(self, carried: list[str], own_writes: list[str], ends: list[Kinds]) -> None:
        """Raise Refused where what the loop gives is written later and may be, after no round or after the last one,
        memory that another name has too: while_loop gives memory of its own. What the loop itself writes has no other name."""
        after = self.kinds.copy()
        own: dict[str, str] = {}
        for name in carried:
            ways = [now.names.get(name, UNKNOWN_KIND) for now in (self.kinds, *ends)]
            own[name] = f"{LOCAL}{after.mark()}"
            if any(each.what == "tensor" for each in ways):
                known, roots = merged(ways), (union(ways) or frozenset()) | {own[name]}
                # While_loop carries a tensor only as another one, whatever else is known of what the rounds make.
                tensor = known if known.what == "tensor" else Kind("tensor")
                after.names[name] = replace(tensor, roots=roots)
        written = afterwards(self.source, self.node, self.function, after).written
        for name in carried:
            for now in (self.kinds, *ends) if name not in own_writes else ():
                for root in (now.names.get(name, UNKNOWN_KIND).roots or frozenset()) & written:
                    others = {
                        each
                        for each in {*self.kinds.names, *carried} - {name}
                        if root in (now.names.get(each, UNKNOWN_KIND).roots or ())
                    }
                    if others or not root.startswith(LOCAL):
                        raise Refused(
                            f"`{name}` may still share memory with `{min(others | {root.split('.')[0]})}` after the "
                            "loop, and one is written later: clone it before the loop"
                        )
            if name in own_writes and not self.is_own(name):
                # What the loop gives is written back to it.
                continue
            if own[name] in written or self._taken_in(name, after):
                self.cloned.append(name)

    def is_own(self, name: str) -> bool:
        """Whether the memory of `name` certainly is the function's own."""
        return all(root.startswith(LOCAL) for root in self.kinds.names[name].roots or ())

    def _taken_in(self, name: str, after: Kinds) -> bool:
        """Whether an operator behind the loop may take in the tensor `name`. In non-strict mode torch takes in no view whose place
        data tells, and where gradients are recorded the loop gives the last of all rounds (measured on torch 2.13)."""
        if (
            name not in self.live.live_after(self.node)
            or name in self.read_back
            or after.names[name].what != "tensor"
        ):
            return False
        statement: ast.stmt = self.node
        for outer in self.source.ancestors(self.node):
            if not isinstance(outer, ast.stmt):
                continue
            block, index = self.source.block_of(statement)
            if any(ast.unparse(each) == f"{name} = {name}.item()" for each in block[index + 1 :]):
                return False
            if _has_operator(block[index + 1 :]) or _counts_by_data(block[index + 1 :], after):
                return True
            if hazard_among(self.source, block[index + 1 :], after.copy(), self.torch) is not None:
                return True
            if _leads_to_next_round(block[index + 1 :], after) or _is_handed_in(
                block[index + 1 :], name, after
            ):
                return True
            if isinstance(outer, (ast.For, ast.While)) and name in self.live.before[outer.body[0]]:
                return True
            if outer is self.function:
                return self._is_given_on(block[index + 1 :], name)
            statement = outer
        return False

    def _is_given_on(self, statements: list[ast.stmt], name: str) -> bool:
        """Whether `statements` return `name` to code of the file, which may have operators as well."""
        returned = {
            one
            for each in statements
            if isinstance(each, ast.Return) and each.value
            for one in reads(each.value)
        }
        if name not in returned:
            return False
        owner = self.source.parents.get(self.function)
        called = owner.name if isinstance(owner, ast.ClassDef) and self.function.name == "forward" else None
        bodies = [self.source.tree.body, *(chunk.body for chunk in self.kinds.around)]
        calls = (each for body in bodies for one in body for each in walk(one) if isinstance(each, ast.Call))
        return called is None or any(dotted(each.func) == called for each in calls)

    def written_later(self) -> set[str]:
        """The names that are written in place somewhere else in the function."""
        inside = {id(each) for each in ast.walk(self.node)}
        found: set[str] = set()
        for statement in ast.walk(self.function):
            if isinstance(statement, ast.stmt) and id(statement) not in inside:
                for write in writes_of(statement, self.kinds):
                    found |= {each.id for each in ast.walk(write.base) if isinstance(each, ast.Name)}
        return found - set(self.counted)

    def inside_with(self, kinds: dict[str, Kind]) -> Kinds:
        inside = self.kinds.copy()
        inside.names |= kinds
        return inside


def _has_operator(statements: list[ast.stmt]) -> bool:
    """Whether `statements` call an operator of torch's that takes functions."""
    calls = (each for one in statements for each in walk(one) if isinstance(each, ast.Call))
    return any((dotted(each.func) or "").rpartition(".")[2] in ("cond", "while_loop") for each in calls)


def _leads_to_next_round(statements: list[ast.stmt], kinds: Kinds) -> bool:
    """Whether `statements` call the function of a loop's rounds, whose branch takes in what this round has made."""
    calls = (each for one in statements for each in walk(one) if isinstance(each, ast.Call))
    return any(is_again(each, kinds) for each in calls)


def _is_handed_in(statements: list[ast.stmt], name: str, kinds: Kinds) -> bool:
    """Whether `statements` hand `name` to code of the file that has, or may come to have, such operators."""
    names = _named_alike(statements, name)
    for call in (each for one in statements for each in walk(one) if isinstance(each, ast.Call)):
        if not names & reads([*call.args, *(each.value for each in call.keywords)]):
            continue
        helper, module = own_function(kinds, call), kinds.of(call.func).value
        bodies: list[ast.AST] = [] if helper is None else [helper]
        if isinstance(module, Instance) and isinstance(module.cls, ClassValue):
            bodies += [each for each in module.cls.node.body if getattr(each, "name", "") != "__init__"]
        if any(isinstance(each, (ast.If, ast.IfExp, ast.While)) for body in bodies for each in walk(body)):
            return True
        if _has_operator([each for each in bodies if isinstance(each, ast.stmt)]):
            return True
    return False


def _named_alike(statements: list[ast.stmt], name: str) -> set[str]:
    """`name` and the names that `statements` give to the same tensor: `x, f = cand, value`."""
    names = {name}
    for each in (one for statement in statements for one in walk(statement) if isinstance(one, ast.Assign)):
        if isinstance(each.value, (ast.Name, ast.Tuple, ast.IfExp)) and _given(each.value) & names:
            names |= {one for target in each.targets for one in bound(target)}
    return names


def _given(node: ast.expr) -> set[str]:
    """The names of which `node` is one, or has them as items."""
    if isinstance(node, ast.Tuple):
        return set().union(*map(_given, node.elts))
    if isinstance(node, ast.IfExp):
        return _given(node.body) | _given(node.orelse)
    return {node.id} if isinstance(node, ast.Name) else set()


def _counts_by_data(statements: list[ast.stmt], kinds: Kinds) -> bool:
    """Whether there is a `for` among `statements` that runs as often as tensor data says."""
    loops = (each for one in statements for each in walk(one) if isinstance(each, ast.For))
    limits = [
        each.iter.args
        for each in loops
        if isinstance(each.iter, ast.Call) and dotted(each.iter.func) == "range"
    ]
    return any(kinds.of(each).what in ("scalar", "tensor") for args in limits for each in args)
