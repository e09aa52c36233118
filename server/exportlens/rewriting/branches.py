"""`if` on tensor data becomes torch.cond.

Each arm becomes a function; its outputs are the names that it may bind and that are live afterwards, or,
where an arm returns, what the rest of the function returns. What torch.cond takes was measured on torch
2.13: closures over anything, default arguments of any type, tensors and ints as outputs; it refuses outputs
that share memory with anything else, and writes to memory that was made outside.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exportlens.inference.values import Tensor, Value
from exportlens.rewriting.draft import Refused
from exportlens.rewriting.effects import refuse_effects, visit, writes_of
from exportlens.rewriting.kinds import LOCAL, Kind, Kinds, of_value
from exportlens.rewriting.liveness import Liveness, always_bound, certainly_bound_before, exits, live_before
from exportlens.rewriting.names import bound, dotted, fresh, reads, walk_own
from exportlens.rewriting.outputs import Outputs
from exportlens.rewriting.predicates import Predicates
from exportlens.rewriting.sharing import to_separate
from exportlens.rewriting.text import Function, Replacement, Source, replaced

# Copying more than this of what follows into a branch hides the code more than the rewrite helps.
_MOST_COPIED = 14


@dataclass
class Arm:
    """One side of a branch on its way to become a function."""

    body: list[ast.stmt]
    rest: list[list[ast.stmt]]
    outer: tuple[int, int]
    end_kinds: Kinds | None = None
    replacements: list[Replacement] = field(default_factory=list)
    first_lines: list[str] = field(default_factory=list)
    parameters: list[str] = field(default_factory=list)

    @property
    def statements(self) -> list[ast.stmt]:
        return [*self.body, *(statement for block in self.rest for statement in block)]

    @property
    def falls(self) -> bool:
        return "falls" in exits(self.statements)


@dataclass
class Written:
    """A tensor of the outside that an arm writes: `path` (`x`, `self.buffer`), known in the arms as
    `local`."""

    path: str
    local: str
    rebinds: bool
    in_place: bool


class BranchRewrite:
    """Turns one `if` of `source` into torch.cond; `kinds` are those just before it."""

    def __init__(
        self,
        source: Source,
        node: ast.If,
        kinds: Kinds,
        torch: str,
        value: Value | None = None,
        arms: tuple[Mapping[str, Value], Mapping[str, Value]] = ({}, {}),
    ) -> None:
        self.source, self.node, self.kinds, self.torch, self.value, self.arm_values = (
            source,
            node,
            kinds,
            torch,
            value,
            arms,
        )
        function = source.enclosing_function(node)
        if function is None:
            raise Refused("the branch is not inside a function")
        self.function: Function = function
        if isinstance(function, ast.AsyncFunctionDef):
            raise Refused("the function is asynchronous")
        for each in ast.walk(function):
            if isinstance(each, (ast.Yield, ast.YieldFrom)) and source.enclosing_function(each) is function:
                raise Refused("the function is a generator")
        self.liveness = Liveness(function)
        self.taken = _names_in(source.tree)
        self.written: list[Written] = []
        self.rebound: list[str] = []
        self.outputs: list[str] = []

    def text(self) -> tuple[str, list[str]]:
        """The whole new text and the names of the new functions."""
        ways = exits(self.node.body) | exits(self.node.orelse)
        if "raises" in ways:
            raise Refused("one way through the branch raises, another does not")
        if {"returns", "continues"} <= ways:
            raise Refused("the branch both returns and continues a loop")
        self.test = Predicates(self.source, self.kinds, self.torch).for_cond(self.node.test, self.value)
        test_kinds = self.kinds
        test_kinds.bind_walruses(ast.Expr(self.node.test))
        self.mark = self.kinds.mark()
        self.returning = "returns" in ways and not self._returns_nothing()
        self.leaving = "returns" in ways and not self.returning
        rest: list[list[ast.stmt]] = []
        if self.returning or self.leaving or "continues" in ways:
            rest = self._continuation("continues" in ways)
        self.region_end = self.node if not rest else self.source.block_of(self.node)[0][-1]
        self.then = Arm(
            self.node.body, rest if "falls" in exits(self.node.body) else [], self._inner_span(self.node.body)
        )
        self.other = Arm(
            self.node.orelse,
            rest if "falls" in exits(self.node.orelse) else [],
            self._inner_span(self.node.orelse),
        )
        if self.returning:
            for arm in (self.then, self.other):
                if arm.falls:
                    raise Refused("one way through the branch returns a value, another returns none")
        for arm in (self.then, self.other):
            refuse_effects(self.source, arm.statements, self.kinds, self._method_writes)
            self._replace_super(arm)
        self._functionalize()
        return self._returning_text() if self.returning else self._merging_text("continues" in ways)

    def _returns_nothing(self) -> bool:
        """Whether the function is one that never returns a value."""
        return not any(
            isinstance(each, ast.Return)
            and each.value is not None
            and self.source.enclosing_function(each) is self.function
            for each in ast.walk(self.function)
        )

    # --- which code -----------------------------------------------------------------------------------------

    def _continuation(self, of_loop: bool) -> list[list[ast.stmt]]:
        """What runs after the `if` up to the end of the function (or of the loop's body), block by block."""
        blocks: list[list[ast.stmt]] = []
        statement: ast.stmt = self.node
        copied = 0
        while True:
            block, index = self.source.block_of(statement)
            following = block[index + 1 :]
            if following:
                blocks.append(following)
                if statement is not self.node:
                    copied += sum(
                        1 for one in following for each in ast.walk(one) if isinstance(each, ast.stmt)
                    )
            owner = self.source.parents[statement]
            if owner is self.function:
                break
            if following and "falls" not in exits(following) and not of_loop:
                break
            if of_loop and isinstance(owner, (ast.For, ast.While)) and block is owner.body:
                break
            if isinstance(owner, ast.If):
                statement = owner
            elif isinstance(owner, ast.With) and not of_loop and self._nothing_follows(owner):
                break
            else:
                raise Refused(f"the branch leaves a `{_word(owner)}` statement from inside")
        if copied > _MOST_COPIED:
            raise Refused("much of the code that follows would have to be copied into the branch")
        return blocks

    def _nothing_follows(self, statement: ast.stmt) -> bool:
        while statement is not self.function:
            block, index = self.source.block_of(statement)
            if block[index + 1 :]:
                return False
            owner = self.source.parents[statement]
            if not isinstance(owner, (ast.If, ast.With, ast.FunctionDef)):
                return False
            statement = owner
        return True

    def _inner_span(self, block: list[ast.stmt]) -> tuple[int, int]:
        return self.source.span(block) if block else (0, 0)

    # --- writes to memory from outside ----------------------------------------------------------------------

    def _functionalize(self) -> None:
        """Find the outside tensors that the arms write in place, and the attributes that they set."""
        paths: dict[str, Written] = {}
        for arm in (self.then, self.other):
            for path, rebinds in self._outside_writes(arm):
                known = paths.get(path)
                if known is None:
                    local = (
                        path
                        if path.isidentifier()
                        else fresh(path.split(".")[-1].lstrip("_") or "value", self.taken)
                    )
                    paths[path] = Written(path, local, rebinds, not rebinds)
                else:
                    known.rebinds |= rebinds
                    known.in_place |= not rebinds
        for written in paths.values():
            unshared = self._is_unshared(written)
            rebound = written.path in self._rebound()
            if rebound and not unshared:
                raise Refused(f"`{written.path}` is both written in place and bound anew in the branch")
            if written.in_place and written.rebinds:
                raise Refused(f"`{written.path}` is both written in place and set anew in the branch")
            self._refuse_aliases(written)
        for arm in (self.then, self.other):
            for written in paths.values():
                self._localize(arm, written)
        # What no one else can hold is bound anew; the rest is written back in place.
        self.rebound = [path for path, written in paths.items() if self._is_unshared(written)]
        self.written = [written for written in paths.values() if written.path not in self.rebound]

    def _rebound(self) -> set[str]:
        """The names that the arms bind otherwise than by an augmented assignment of a tensor."""
        names = set()
        for statement in [*self.then.statements, *self.other.statements]:
            augmented = {
                each.target
                for each in ast.walk(statement)
                if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
            }
            names |= {
                each.id
                for each in walk_own(statement)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each not in augmented
            }
        return names

    def _entry_kinds(self, arm: Arm) -> Kinds:
        """The kinds at the start of the arm's function: what it clones first is its own."""
        kinds = self.kinds.copy()
        for line in arm.first_lines:
            name = line.split(" = ")[0]
            known = kinds.names.get(name)
            if line.endswith(".clone()"):
                kinds.names[name] = Kind(
                    "tensor",
                    known.dtype if known else None,
                    known.rank if known else None,
                    frozenset({f"{LOCAL}{kinds.mark()}"}),
                )
        return kinds

    def _outside_writes(self, arm: Arm) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []

        def see(node: ast.stmt, now: Kinds) -> None:
            for write in writes_of(node, now):
                kind = now.of(ast.parse(ast.unparse(write.base), mode="eval").body)
                if kind.roots is None:
                    raise Refused(f"it is not known whose memory `{self.source.of(write.base)}` is")
                for root in kind.roots:
                    if not self._made_inside(root):
                        found.append((self._path_of_root(root), False))
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                        if isinstance(each, ast.Attribute):
                            self._see_attribute(node, each, now, found)

        visit(arm.statements, self.kinds.copy(), see)
        return found

    def _path_of_root(self, root: str) -> str:
        """The one name (or attribute) by which the arms know the memory `root`: its clone stands for all of
        it there."""
        read = reads(self.then.statements) | reads(self.other.statements)
        read |= {each for arm in (self.then, self.other) for each in augmented_names(arm.statements)}
        names = [
            name
            for name, kind in self.kinds.names.items()
            if name in read and kind.roots and root in kind.roots
        ]
        if "." in root and any(
            dotted(each) == root
            for arm in (self.then, self.other)
            for statement in arm.statements
            for each in ast.walk(statement)
        ):
            names.append(root)
        if len(names) != 1:
            raise Refused("a tensor that is written in the branch is known there under several names")
        return names[0]

    def _made_inside(self, root: str) -> bool:
        return root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark

    def _see_attribute(
        self, node: ast.stmt, target: ast.Attribute, now: Kinds, found: list[tuple[str, bool]]
    ) -> None:
        path = dotted(target)
        if path is None or path.split(".")[0] in bound_names([*self.then.statements, *self.other.statements]):
            raise Refused(f"`{self.source.of(target)}` is set in the branch")
        before = now.of(ast.parse(path, mode="eval").body)
        if isinstance(node, ast.AugAssign) and before.what == "tensor":
            return
        value = now.of(node.value) if isinstance(node, ast.Assign) else before
        if before.what != "tensor" or value.what not in ("tensor", "unknown"):
            raise Refused(f"the branch sets `{path}`, which is not known to be a tensor before and after")
        now.names[path] = value
        found.append((path, True))

    def _refuse_aliases(self, written: Written) -> None:
        """In-place writes are seen through every name of the same memory: none of them may be read in the
        arms."""
        kind = self._kind_of_path(written.path)
        if not isinstance(kind.value, Tensor) or not kind.value.root:
            return
        for name, other in self.kinds.names.items():
            if (
                name != written.path
                and isinstance(other.value, Tensor)
                and other.value.root == kind.value.root
            ):
                read = reads(self.then.statements) | reads(self.other.statements)
                if name in read:
                    raise Refused(
                        f"`{name}` may share memory with `{written.path}`, which the branch writes in place"
                    )

    def _kind_of_path(self, path: str) -> Kind:
        return self.kinds.of(ast.parse(path, mode="eval").body)

    def _localize(self, arm: Arm, written: Written) -> None:
        """Let the arm work on a tensor of its own under the local name."""
        touched = written.path in {path for path, _ in self._outside_writes(arm)}
        if not written.path.isidentifier():
            for statement in arm.statements:
                for each in ast.walk(statement):
                    if isinstance(each, ast.Attribute) and dotted(each) == written.path:
                        arm.replacements.append(self.source.swap(each, written.local))
        if touched and written.in_place:
            arm.first_lines.append(f"{written.local} = {written.path}.clone()")
            if written.path.isidentifier():
                arm.parameters.append(written.path)
        elif touched:
            if any(
                isinstance(each, ast.Attribute)
                and isinstance(each.ctx, ast.Load)
                and dotted(each) == written.path
                for one in arm.statements
                for each in ast.walk(one)
            ) or self._maybe_unset(arm, written):
                arm.first_lines.append(f"{written.local} = {written.path}")
        elif not written.path.isidentifier() and any(
            dotted(each) == written.path for one in arm.statements for each in ast.walk(one)
        ):
            arm.first_lines.append(f"{written.local} = {written.path}")

    def _maybe_unset(self, arm: Arm, written: Written) -> bool:
        always = any(
            isinstance(statement, ast.Assign)
            and any(dotted(target) == written.path for target in statement.targets)
            for statement in arm.statements
        )
        return not always

    def _written_output(self, arm: Arm, written: Written, now: Kinds) -> str:
        """What the arm gives back for an outside tensor."""
        touched = any(path == written.path for path, _ in self._outside_writes(arm))
        if not touched:
            held = f"{written.local} = {written.path}" in arm.first_lines
            return f"{written.local if held else written.path}.clone()"
        if written.in_place:
            return written.local
        kind = now.names.get(written.path)
        made_inside = (
            kind is not None
            and kind.roots is not None
            and all(self._made_inside(root) for root in kind.roots)
        )
        return (
            written.local
            if made_inside and not self._maybe_unset(arm, written)
            else f"{written.local}.clone()"
        )

    def _memory_written(self, now: Kinds) -> set[str]:
        """The memory that is an output already because it is written back."""
        roots: set[str] = set()
        for written in self.written:
            known = now.names.get(written.local if written.in_place else written.path)
            roots |= set(known.roots or ()) if known is not None else set()
        return roots

    def _refuse_later_writes(self, names: list[str], ends: list[Kinds]) -> None:
        """An output is memory of its own: where it shared memory before, no one may write to that memory
        later."""
        later = self._written_later()
        for name in names:
            for end in ends:
                for root in end.names[name].roots or () if end.names[name].what != "number" else ():
                    if self._made_inside(root):
                        others = {
                            each for each in names if each != name and root in (end.names[each].roots or ())
                        }
                    else:
                        others = {
                            each for each, kind in self.kinds.names.items() if root in (kind.roots or ())
                        }
                        others = (others - {name}) | (set() if root.startswith(LOCAL) else {root})
                    if others and later & ({name} | others):
                        raise Refused(
                            f"`{name}` may share memory with `{min(others)}`, and one is written later"
                        )

    def _written_later(self) -> set[str]:
        """The names whose memory is written in place after the branch (anywhere in a loop around it)."""
        last = self.source.end(self.region_end)
        loops = [each for each in self.source.ancestors(self.node) if isinstance(each, (ast.For, ast.While))]
        found: set[str] = set()
        for statement in ast.walk(self.function):
            if not isinstance(statement, ast.stmt) or isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                continue
            inside = any(each is statement for loop in loops for each in ast.walk(loop))
            if self.source.start(statement) < last and not inside:
                continue
            for write in writes_of(statement, self.kinds):
                names = [each.id for each in ast.walk(write.base) if isinstance(each, ast.Name)]
                found |= set(names[-1:]) | ({dotted(write.base)} if dotted(write.base) else set())  # type: ignore[arg-type]
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                found.add(statement.target.id)
        return found

    def _write_back(self, written: Written, name: str, indent: str) -> str | None:
        if (written.rebinds and not self._is_buffer(written)) or self._is_unshared(written):
            return None if name == written.path else f"{indent}{written.path} = {name}"
        return f"{indent}{self._destination(written)}.copy_({name})"

    def _destination(self, written: Written) -> str:
        """What is copied into: a parameter takes no write in place where gradients are recorded."""
        value = self._kind_of_path(written.path).value
        is_parameter = isinstance(value, Tensor) and value.origin == "parameter"
        return f"{written.path}.detach()" if is_parameter else written.path

    def _is_buffer(self, written: Written) -> bool:
        """Strict export of torch 2.13 loses a buffer that is bound anew, and keeps one that is written in
        place."""
        value = self._kind_of_path(written.path).value
        if isinstance(value, Tensor) and value.origin == "buffer":
            return True
        owner = next(
            (each for each in self.source.ancestors(self.function) if isinstance(each, ast.ClassDef)), None
        )
        return owner is not None and any(
            isinstance(each, ast.Call)
            and isinstance(each.func, ast.Attribute)
            and each.func.attr == "register_buffer"
            and bool(each.args)
            and isinstance(each.args[0], ast.Constant)
            and written.path == "self." + str(each.args[0].value)
            for each in ast.walk(owner)
        )

    def _is_unshared(self, written: Written) -> bool:
        """Whether no one else can hold the memory, so that binding the name anew is all that writing in
        place did."""
        if not written.path.isidentifier():
            return False
        kind = self._kind_of_path(written.path)
        roots = kind.roots
        if roots is not None and all(root.startswith(LOCAL) for root in roots):
            return not any(
                other.roots and other.roots & roots
                for name, other in self.kinds.names.items()
                if name != written.path
            )
        value = kind.value
        if not isinstance(value, Tensor) or value.origin != "fresh" or not value.root:
            return False
        return not any(
            isinstance(other.value, Tensor) and other.value.root == value.root
            for name, other in self.kinds.names.items()
            if name != written.path
        )

    # --- names ----------------------------------------------------------------------------------------------

    def _parameters(self, arm: Arm, live: frozenset[str]) -> list[str]:
        """The names that the arm binds after it may have read the outside's: they come in as default
        arguments."""
        names = bound_names(arm.statements)
        entering = live_before(arm.statements, live, self.function)
        needed = [name for name in names if name in entering]
        needed += [name for name in arm.parameters if name not in needed]
        certain = certainly_bound_before(self.function, self.node) | {
            each.target.id for each in ast.walk(self.node.test) if isinstance(each, ast.NamedExpr)
        }
        for name in needed:
            if name not in certain:
                raise Refused(f"`{name}` may be unbound before the branch")
        return needed

    def _method_writes(self, name: str) -> str | None:
        """The attribute of `self` that the method `name` of the same class writes, if any."""
        owner = next(
            (each for each in self.source.ancestors(self.function) if isinstance(each, ast.ClassDef)), None
        )
        for method in owner.body if owner else []:
            if isinstance(method, ast.FunctionDef) and method.name == name:
                for each in ast.walk(method):
                    if (
                        isinstance(each, ast.Attribute)
                        and isinstance(each.ctx, ast.Store)
                        and dotted(each.value) == "self"
                    ):
                        return each.attr
                    if (
                        isinstance(each, ast.Call)
                        and isinstance(each.func, ast.Attribute)
                        and each.func.attr.endswith("_")
                    ):
                        base = dotted(each.func.value) or ""
                        if base.startswith("self.") and not each.func.attr.endswith("__"):
                            return base.split(".")[1]
        return None

    def _replace_super(self, arm: Arm) -> None:
        for statement in arm.statements:
            for each in ast.walk(statement):
                if (
                    isinstance(each, ast.Call)
                    and isinstance(each.func, ast.Name)
                    and each.func.id == "super"
                    and not each.args
                ):
                    owner = next(
                        (
                            one
                            for one in self.source.ancestors(self.function)
                            if isinstance(one, ast.ClassDef)
                        ),
                        None,
                    )
                    if owner is None or not self.function.args.args:
                        raise Refused("`super()` in the branch")
                    arm.replacements.append(
                        self.source.swap(each, f"super({owner.name}, {self.function.args.args[0].arg})")
                    )

    # --- output ---------------------------------------------------------------------------------------------

    def _merging_text(self, continues: bool) -> tuple[str, list[str]]:
        live = self._live_out(continues)
        writes = [each.path for each in self.written]
        candidates = dict.fromkeys(
            [*bound_names([*self.then.statements, *self.other.statements]), *self.rebound]
        )
        names = [name for name in candidates if name in live and name not in writes]
        certain = certainly_bound_before(self.function, self.node)
        for arm, word in ((self.then, "true"), (self.other, "false")):
            always = always_bound(arm.statements)
            for name in names:
                if name not in always and name not in certain:
                    raise Refused(f"`{name}` is not bound where the condition is {word}, and used afterwards")
        if not names and not self.written:
            return self._without_branch(), []
        ends = []
        for arm, values in zip((self.then, self.other), self.arm_values, strict=True):
            ends.append(self._end_kinds(arm, values, names))
        outputs = Outputs(self.source, self.torch, self.mark)
        outputs.unify(names, ends[0], ends[1], self._used_as_number)
        self._refuse_later_writes(names, ends)
        self.outputs = names
        functions = []
        for arm, end in zip((self.then, self.other), ends, strict=True):
            arm.parameters = self._parameters(arm, frozenset(names))
            leaf = outputs.names(names, end, set(bound_names(arm.statements)), self._memory_written(end))
            leaf += [self._written_output(arm, each, end) for each in self.written]
            result = leaf[0] if len(leaf) == 1 else f"({', '.join(leaf)})"
            returned = leaf[0] if len(leaf) == 1 else ", ".join(leaf)
            for each in [
                *self._own(arm, ast.Continue),
                *(self._own(arm, ast.Return) if self.leaving else []),
            ]:
                arm.replacements.append(self.source.swap(each, f"return {result}"))
            functions.append(self._function_text(arm, returned if arm.falls else None))
        targets = list(names)
        after = []
        indent = self._indent()
        ending = (
            [f"{indent}return"]
            if self.leaving and self.source.parents[self.node] is not self.function
            else []
        )
        for write in self.written:
            name = (
                write.path
                if write.path.isidentifier() and (write.rebinds or self._is_unshared(write))
                else fresh(f"new_{write.local}", self.taken)
            )
            targets.append(name)
            line = self._write_back(write, name, indent)
            if line is not None:
                after.append(line)
        if len(targets) == 1 and len(after) == 1 and targets[0] not in names:
            # One write back takes the result at once.
            only = self.written[0]
            binds = only.rebinds and not self._is_buffer(only)
            head = f"{only.path} = " if binds else f"{self._destination(only)}.copy_("
            return self._assembled(functions, [f"{indent}{head}{{call}}" + ("" if binds else ")"), *ending])
        return self._assembled(functions, [f"{indent}{', '.join(targets)} = {{call}}", *after, *ending])

    def _without_branch(self) -> str:
        """The text without the `if`: it binds nothing that is read afterwards, and has no effect."""
        for statement in [*self.then.statements, *self.other.statements]:
            for each in ast.walk(statement):
                if isinstance(each, ast.Assert) or (
                    isinstance(each, ast.Call) and "assert" in ast.unparse(each.func)
                ):
                    raise Refused(
                        "the branch only checks: a check of tensor data cannot depend on other data"
                    )
        if self._is_elif() or self.then.rest or self.other.rest or not self.source.begins_line(self.node):
            raise Refused("the branch binds nothing that is used afterwards")
        start, end = self.source.span([self.node])
        block, _ = self.source.block_of(self.node)
        if len(block) == 1:
            return replaced(self.source.text, [Replacement(start, end, f"{self._indent()}pass")])
        following = self.source.text[end:]
        return self.source.text[:start] + following[len(following) - len(following.lstrip("\r\n")) :]

    def _live_out(self, continues: bool) -> frozenset[str]:
        if self.leaving:
            return frozenset()
        if not continues:
            return self.liveness.live_after(self.node)
        loop = next(
            each for each in self.source.ancestors(self.node) if isinstance(each, (ast.For, ast.While))
        )
        live = self.liveness.before.get(loop, frozenset()) | self.liveness.live_after(loop)
        first = loop.body[0]
        return live | self.liveness.before[first]

    def _end_kinds(self, arm: Arm, values: Mapping[str, Value], names: list[str]) -> Kinds:
        end = self._entry_kinds(arm)

        def see(node: ast.stmt, now: Kinds) -> None:
            return None

        visit(arm.statements, end, see)
        for written in self.written:
            if written.rebinds:
                probe = self.kinds.copy()
                self._follow_attribute(arm, written, probe)
                end.names[written.path] = probe.names.get(written.path, Kind("unknown", roots=None))
        for name in names:
            known = end.names.get(name)
            if known is not None and known.what == "unknown" and name in values and not arm.rest:
                told = of_value(values[name], name)
                if told.what != "unknown":
                    unshared = (
                        isinstance(values[name], Tensor) and getattr(values[name], "origin", "") == "fresh"
                    )
                    end.names[name] = Kind(
                        told.what,
                        told.dtype,
                        told.rank,
                        frozenset({f"{LOCAL}{self.kinds.mark()}"}) if unshared else None,
                        told.type,
                        told.items,
                        told.value,
                    )
        return end

    def _follow_attribute(self, arm: Arm, written: Written, probe: Kinds) -> None:
        def see(node: ast.stmt, now: Kinds) -> None:
            if isinstance(node, ast.Assign) and any(
                dotted(target) == written.path for target in node.targets
            ):
                kind = now.of(node.value)
                probe.names[written.path] = Kind(
                    kind.what,
                    kind.dtype,
                    kind.rank,
                    frozenset({f"{LOCAL}{now.mark()}"}) if kind.fresh else kind.roots,
                )

        visit(arm.statements, self.kinds.copy(), see)

    def _used_as_number(self, name: str) -> bool:
        """Whether `name` is, after the branch, ever used but as an operand beside a tensor."""
        last = self.source.end(self.region_end)
        for each in ast.walk(self.function):
            if (
                isinstance(each, ast.Name)
                and each.id == name
                and isinstance(each.ctx, ast.Load)
                and self.source.start(each) >= last
            ):
                parent = self.source.parents[each]
                if isinstance(parent, ast.Call) and ast.unparse(parent.func) == f"{self.torch}.as_tensor":
                    continue
                if not isinstance(parent, ast.BinOp):
                    return True
                other = parent.right if parent.left is each else parent.left
                if self.kinds.of(other).what != "tensor" and not self._bound_later_to_tensor(other):
                    return True
        return any(isinstance(each, (ast.For, ast.While)) for each in self.source.ancestors(self.node))

    def _bound_later_to_tensor(self, node: ast.expr) -> bool:
        probe = self.kinds.copy()
        block, index = self.source.block_of(self.node)
        probe.run(block[index + 1 :])
        return probe.of(node).what == "tensor"

    def _returning_text(self) -> tuple[str, list[str]]:
        outputs = Outputs(self.source, self.torch, self.mark)
        results: list[tuple[Arm, ast.Return, Kinds]] = []
        for arm in (self.then, self.other):

            def see(node: ast.stmt, now: Kinds, arm: Arm = arm) -> None:
                if isinstance(node, ast.Return):
                    results.append((arm, node, now.copy()))

            visit(arm.statements, self._entry_kinds(arm), see)
        shape = outputs.shape([(node.value, now) for _, node, now in results])
        for arm, node, now in results:
            text = outputs.returned(node, now, shape, self._memory_written(now))
            extra = [self._written_output(arm, each, now) for each in self.written]
            if extra:
                text = (
                    f"({text}), {', '.join(extra)}"
                    if text.count(",") and not shape.single
                    else f"{text}, {', '.join(extra)}"
                )
            arm.replacements.append(self.source.swap(node, f"return {text}"))
        functions = []
        for arm in (self.then, self.other):
            arm.parameters = self._parameters(arm, frozenset())
            functions.append(self._function_text(arm, None))
        indent = self._indent()
        if not self.written:
            return self._assembled(functions, shape.lines(indent, self.taken))
        result = fresh("result", self.taken)
        news = [fresh(f"new_{each.local}", self.taken) for each in self.written]
        lines = [f"{indent}{', '.join([result, *news])} = {{call}}"]
        for each, new in zip(self.written, news, strict=True):
            binds = each.rebinds and not self._is_buffer(each)
            copied = f"{indent}{self._destination(each)}.copy_({new})"
            lines.append(f"{indent}{each.path} = {new}" if binds else copied)
        return self._assembled(functions, [*lines, *shape.lines_from(result, indent, self.taken)])

    def _own(self, arm: Arm, kind: type[ast.AST]) -> list[ast.stmt]:
        """The statements of `kind` in the arm that act on the code around it."""
        found: list[ast.stmt] = []

        def walk(statements: Sequence[ast.stmt]) -> None:
            for each in statements:
                if isinstance(each, kind):
                    found.append(each)
                elif not isinstance(each, (ast.For, ast.While, ast.FunctionDef, ast.ClassDef)):
                    for _, block in ast.iter_fields(each):
                        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                            walk(block)

        walk(arm.statements)
        return found

    def _indent(self) -> str:
        indent = self.source.indent_of(self.node)
        return indent + self.source.indent_unit() if self._is_elif() else indent

    def _is_elif(self) -> bool:
        return self.source.text.startswith("elif", self.source.start(self.node))

    def _function_text(self, arm: Arm, returned: str | None) -> tuple[str, str]:
        """(parameters, body) of the arm's function."""
        nl, indent = self.source.newline, self._indent() + self.source.indent_unit()
        lines = [indent + line for line in arm.first_lines]
        if arm.body:
            lines += self._stray_comments(arm.body, indent, before=True)
            if not (len(arm.body) == 1 and isinstance(arm.body[0], ast.Pass)):
                lines.append(self.source.block(arm.body, indent, arm.replacements))
            lines += self._stray_comments(arm.body, indent, before=False)
        for block in arm.rest:
            lines.append(self.source.block(block, indent, arm.replacements))
        if returned is not None:
            lines.append(f"{indent}return {returned}")
        return ", ".join(f"{name}={name}" for name in arm.parameters), nl.join(lines)

    def _stray_comments(self, body: list[ast.stmt], indent: str, before: bool) -> list[str]:
        """Comments of an arm that stand on its header line, or after its last statement."""
        start, end = self.source.span(body)
        if before:
            header_end = self.source.end(self.node.test) if body is self.node.body else self._else_start(body)
            return [indent + comment for comment in self.source.comments_between(header_end, start)]
        following = self._else_start(self.node.orelse) if body is self.node.body and self.node.orelse else end
        return [indent + comment for comment in self.source.comments_between(end, following)]

    def _else_start(self, orelse: list[ast.stmt]) -> int:
        if (
            len(orelse) == 1
            and isinstance(orelse[0], ast.If)
            and self.source.text.startswith("elif", self.source.start(orelse[0]))
        ):
            return self.source.start(orelse[0])
        return self.source.text.rfind(
            "else", self.source.end(self.node.body[-1]), self.source.span(orelse)[0]
        )

    def _assembled(self, functions: list[tuple[str, str]], last: list[str]) -> tuple[str, list[str]]:
        nl, indent = self.source.newline, self._indent()
        statements = [*self.then.statements, *self.other.statements]
        in_place = self._written_later() | {each.path for each in self.written} | set(self.rebound)
        entering = frozenset(self.outputs).union(
            *(live_before(arm.statements, frozenset(), self.function) for arm in (self.then, self.other)),
            augmented_names(statements),
        )
        clones = to_separate(statements, set(self.outputs), self.kinds, in_place, entering)
        for name in set(clones) - certainly_bound_before(self.function, self.node):
            raise Refused(
                f"`{name}` is a view of what the branch reads as well, and belongs to another function"
            )
        names = [fresh(wish, self.taken) for wish in ("if_true", "if_false")]
        call = f"{self.torch}.cond({self.test}, {names[0]}, {names[1]}, ())"
        pieces = [
            f"{indent}def {name}({parameters}):{nl}{body}"
            for name, (parameters, body) in zip(names, functions, strict=True)
        ]
        pieces.append(nl.join(line.replace("{call}", call) for line in last))
        if clones:
            note = "  # torch.cond takes no two tensors of the same memory"
            pieces.insert(0, nl.join(f"{indent}{name} = {name}.clone(){note}" for name in clones))
        text = (nl + nl).join(pieces)
        start = self.source.start(self.node)
        if self._is_elif():
            text = f"else:{nl}{text}"
        else:
            gap = self.source.gap_before(self.node)
            text = gap + (text if gap else text[len(indent) :])
            start -= len(indent) if gap else 0
        end = self.source.span([self.region_end])[1]
        return replaced(self.source.text, [Replacement(start, end, text)]), names


def augmented_names(statements: Sequence[ast.stmt]) -> set[str]:
    return {
        each.target.id
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
    }


def bound_names(statements: Sequence[ast.stmt]) -> list[str]:
    return bound(statements)


def _names_in(tree: ast.AST) -> set[str]:
    from exportlens.rewriting.names import every_name

    return every_name(tree)


def _word(node: ast.AST) -> str:
    return {
        ast.For: "for",
        ast.While: "while",
        ast.Try: "try",
        ast.With: "with",
        ast.ExceptHandler: "except",
        ast.Match: "match",
        ast.match_case: "match",
    }.get(type(node), type(node).__name__.lower())
