"""Memory from outside that the arms of a branch write: the arms get tensors of their own, written back behind it."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from exportlens.inference.tensors import dtype_family
from exportlens.inference.values import Tensor
from exportlens.rewriting.code.callers import given_to
from exportlens.rewriting.code.draft import Refused, RefusedState
from exportlens.rewriting.code.liveness import exits, leaves, live_before
from exportlens.rewriting.code.names import arguments, bound, dotted, fresh, registers_buffer, walk_own
from exportlens.rewriting.code.text import Function, Replacement, Source
from exportlens.rewriting.kinds.kind import LOCAL, Kind, numbers
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.memory.cut_tensors import refuse_cut
from exportlens.rewriting.memory.effects import is_unlike, loaded, visit, writes_of
from exportlens.rewriting.memory.model_methods import is_constant_at_first
from exportlens.rewriting.memory.own_containers import own_containers
from exportlens.rewriting.memory.read_elsewhere import refuse_read_elsewhere
from exportlens.source.parsing import parse_python


@dataclass
class Arm:
    """One side of a branch on its way to become a function."""

    body: list[ast.stmt]
    rest: list[list[ast.stmt]]
    outer: tuple[int, int]
    end_kinds: Kinds | None = None
    replacements: list[Replacement] = field(default_factory=list)
    first_lines: list[str] = field(default_factory=list)
    last_lines: list[str] = field(default_factory=list)
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


class OutsideWrites:
    """Finds and rewrites what the two arms write; `mark` is the number of the oldest memory made inside of them.

    After `collect`, `rebound` are the names that are simply bound anew, because no one else holds their memory, and
    `written` what must be written back.
    """

    def __init__(
        self,
        source: Source,
        function: Function,
        kinds: Kinds,
        mark: int,
        taken: set[str],
        arms: tuple[Arm, Arm],
    ) -> None:
        self.source, self.function, self.kinds, self.mark, self.taken = source, function, kinds, mark, taken
        self.then, self.other = arms
        self.written: list[Written] = []
        self.rebound: list[str] = []
        self._recorded: set[str] = set()

    def collect(self) -> None:
        """Find the outside tensors that the arms write in place, and the attributes that they set."""
        paths: dict[str, Written] = {}
        for arm in (self.then, self.other):
            for path, rebinds in self._of(arm):
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
        own = set(bound([*self.then.statements, *self.other.statements]))
        for written in paths.values():
            if not written.path.isidentifier() and written.path.split(".")[0] in own:
                raise Refused(
                    f"`{written.path}` is written, and which tensor it is the branch decides itself"
                )
            if self._may_be_missing(written.path):
                raise Refused(
                    f"`{written.path}` is written, and an option or this branch decides whether the model has it"
                )
            unshared = self.is_unshared(written)
            rebound = written.path in bound_anew([*self.then.statements, *self.other.statements])
            if rebound and not unshared:
                raise Refused(f"`{written.path}` is both written in place and bound anew in the branch")
            if (
                written.in_place
                and written.rebinds
                and not (self.is_buffer(written) and self._is_of_one_way(written))
            ):
                raise Refused(f"`{written.path}` is both written in place and set anew in the branch")
            self._refuse_aliases(written)
            for arm in (self.then, self.other):
                refuse_read_elsewhere(self.source, self.function, arm.statements, written.path, self.kinds)
        for arm in (self.then, self.other):
            for written in paths.values():
                self._localize(arm, written)
        # What no one else can hold is bound anew; the rest is written back in place.
        self.rebound = [path for path, written in paths.items() if self.is_unshared(written)]
        self.written = [written for written in paths.values() if written.path not in self.rebound]
        region = next(iter([*self.then.statements, *self.other.statements]), None)
        for written in self.written:
            if region is not None and written.in_place and written.path.isidentifier():
                roots = self._kind_of_path(written.path).roots or frozenset()
                refuse_cut(self.source, self.function, region, written.path, roots, self.kinds)

    def _is_of_one_way(self, written: Written) -> bool:
        """Whether each arm only writes in place, or only sets anew."""
        return all(len(self._ways(arm, written)) < 2 for arm in (self.then, self.other))

    def _ways(self, arm: Arm, written: Written) -> set[bool]:
        """How `arm` writes: true for setting anew, false for writing in place."""
        return {rebinds for path, rebinds in self._of(arm) if path == written.path}

    def _of(self, arm: Arm) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []
        own = own_containers(self.source, arm.statements)

        def see(node: ast.stmt, now: Kinds) -> None:
            for write in writes_of(node, now):
                if ast.unparse(write.base) in own:
                    continue
                kind = now.of(loaded(write.base))
                if kind.roots is None:
                    raise Refused(f"it is not known whose memory `{self.source.of(write.base)}` is")
                if kind.what in ("container", "object") or is_unlike(kind):
                    raise Refused(
                        f"`{self.source.of(write.base)}`, into which the branch writes, is no tensor as far as is known"
                    )
                self._refuse_item(write.base, now)
                for root in kind.roots:
                    if _held_twice(root, now):
                        raise Refused(
                            "two attributes hold one tensor that the branch makes, and writes in place"
                        )
                    if not self.made_inside(root):
                        path = self._path_of_root(root)
                        if not self._is_unrecorded(node, write.base):
                            self._recorded.add(path)
                        found.append((path, False))
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                        if isinstance(each, ast.Attribute):
                            self._see_attribute(node, each, now, found)

        visit(arm.statements, self.kinds.copy(), see)
        return found

    def _refuse_item(self, base: ast.expr, now: Kinds) -> None:
        """Raise Refused where `base` is an item of what may be a list: `rows[1].add_(x)`, `rows[1][0] = 2`."""
        holder = loaded(base)
        while isinstance(holder, ast.Subscript):
            holder = holder.value
        if not isinstance(base, ast.Subscript):
            return
        given = {each.arg for each in arguments(self.function.args)}
        if isinstance(holder, ast.Name) and holder.id not in given and now.of(holder).what == "unknown":
            raise Refused(
                f"`{self.source.of(base)}` is written, an item of `{ast.unparse(holder)}`, which may be a list: give the tensor a name "
                "before the branch"
            )

    def _is_unrecorded(self, node: ast.stmt, base: ast.expr) -> bool:
        """Whether autograd sees nothing of a write: `self.codes.detach().copy_(...)`, or one under `torch.no_grad()`."""
        return any(
            isinstance(each, ast.Attribute) and each.attr in ("detach", "data") for each in ast.walk(base)
        ) or any(
            isinstance(each, ast.With)
            and any(
                isinstance(item.context_expr, ast.Call)
                and (dotted(item.context_expr.func) or "").split(".")[-1] == "no_grad"
                for item in each.items
            )
            for each in self.source.ancestors(node)
        )

    def _names_read(self) -> set[str]:
        """The names that an arm reads as they are before the branch: what it binds before it reads it is no name of what was there."""
        read: set[str] = set()
        for arm in (self.then, self.other):
            read |= live_before(arm.statements, frozenset(), self.function)
            read |= set(augmented_names(arm.statements))
        return read

    def _path_of_root(self, root: str) -> str:
        """The one name (or attribute) by which the arms know the memory `root`: its clone stands for all of
        it there."""
        read = self._names_read()
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
        if names[0] in self.kinds.names and self.kinds.names[names[0]].what == "container":
            raise Refused(f"the branch writes to tensors in `{names[0]}`: give the one that it writes a name")
        return names[0]

    def made_inside(self, root: str) -> bool:
        return root.startswith(LOCAL) and int(root[len(LOCAL) :]) > self.mark

    def _see_attribute(
        self, node: ast.stmt, target: ast.Attribute, now: Kinds, found: list[tuple[str, bool]]
    ) -> None:
        path = dotted(target)
        if path is None or path.split(".")[0] in bound([*self.then.statements, *self.other.statements]):
            raise Refused(f"`{self.source.of(target)}` is set in the branch")
        before = now.of(parse_python(path, mode="eval").body)
        if isinstance(node, ast.AugAssign) and before.what == "tensor":
            return
        value = now.of(node.value) if isinstance(node, ast.Assign) else before
        number = not self._is_set_before(path) and is_constant_at_first(path, now)
        if number or before.what != "tensor" or value.what not in ("tensor", "unknown"):
            raise RefusedState(
                f"the branch sets `{path}`, which is not known to be a tensor before and after", path
            )
        if len({dtype_family(before.dtype), dtype_family(value.dtype)} - {None}) > 1:
            raise Refused(f"the branch sets `{path}` to a tensor of another dtype")
        # What is made here is one memory, whatever else gets to hold it.
        now.names[path] = (
            replace(value, roots=frozenset({f"{LOCAL}{next(numbers)}"})) if value.fresh else value
        )
        found.append((path, True))

    def _refuse_aliases(self, written: Written) -> None:
        """In-place writes are seen through every name of the same memory: none of them may be read in the
        arms."""
        kind = self._kind_of_path(written.path)
        if not isinstance(kind.value, Tensor) or not kind.value.root:
            return
        read = self._names_read()
        for name, other in self.kinds.names.items():
            if (
                name != written.path
                and name in read
                and isinstance(other.value, Tensor)
                and other.value.root == kind.value.root
            ):
                raise Refused(
                    f"`{name}` may share memory with `{written.path}`, which the branch writes in place"
                )

    def _kind_of_path(self, path: str) -> Kind:
        return self.kinds.of(parse_python(path, mode="eval").body)

    def _localize(self, arm: Arm, written: Written) -> None:
        """Let the arm work on a tensor of its own under the local name."""
        ways = self._ways(arm, written)
        touched = bool(ways)
        if not written.path.isidentifier():
            for statement in arm.statements:
                for each in ast.walk(statement):
                    if isinstance(each, ast.Attribute) and dotted(each) == written.path:
                        arm.replacements.append(self.source.swap(each, written.local))
        if False in ways:
            arm.first_lines.append(f"{written.local} = {written.path}.clone()")
            if written.path.isidentifier():
                arm.parameters.append(written.path)
        elif touched:
            if _read_before_set(arm.statements, written.path) or self._maybe_unset(arm, written):
                arm.first_lines.append(f"{written.local} = {written.path}")
        elif not written.path.isidentifier() and any(
            dotted(each) == written.path for one in arm.statements for each in ast.walk(one)
        ):
            arm.first_lines.append(f"{written.local} = {written.path}")

    def _maybe_unset(self, arm: Arm, written: Written) -> bool:
        return not _always_set(arm.statements, written.path)

    def output(self, arm: Arm, written: Written, now: Kinds) -> str:
        """What the arm gives back for an outside tensor."""
        ways = self._ways(arm, written)
        if not ways:
            held = f"{written.local} = {written.path}" in arm.first_lines
            return f"{written.local if held else written.path}.clone()"
        if False in ways:
            return written.local
        kind = now.names.get(written.path)
        made_inside = (
            kind is not None and kind.roots is not None and all(self.made_inside(root) for root in kind.roots)
        )
        return (
            written.local
            if made_inside and not self._maybe_unset(arm, written)
            else f"{written.local}.clone()"
        )

    def memory(self, now: Kinds) -> set[str]:
        """The memory that is an output already because it is written back."""
        roots: set[str] = set()
        for written in self.written:
            names = ((written.local, written.in_place), (written.path, written.rebinds))
            for known in (now.names.get(name) for name, used in names if used):
                roots |= set(known.roots or ()) if known is not None else set()
        return roots

    def write_back(self, written: Written, name: str, indent: str) -> str | None:
        if (written.rebinds and not self.is_buffer(written)) or self.is_unshared(written):
            return None if name == written.path else f"{indent}{written.path} = {name}"
        return f"{indent}{self.destination(written)}.copy_({name})"

    def destination(self, written: Written) -> str:
        """What is copied into: a parameter takes no write in place where gradients are recorded, and a buffer that
        the arms write past autograd shall not require gradients behind the branch."""
        value = self._kind_of_path(written.path).value
        is_parameter = (isinstance(value, Tensor) and value.origin == "parameter") or any(
            # An option makes it a parameter, or a buffer.
            isinstance(each, ast.Assign)
            and isinstance(each.value, ast.Call)
            and (dotted(each.value.func) or "").endswith("Parameter")
            and any(dotted(target) == written.path for target in each.targets)
            for each in ast.walk(self.source.tree)
        )
        is_past_autograd = (
            isinstance(value, Tensor)
            and value.origin == "buffer"
            and not written.rebinds
            and written.path not in self._recorded
        )
        return f"{written.path}.detach()" if is_parameter or is_past_autograd else written.path

    def is_buffer(self, written: Written) -> bool:
        """Strict export of torch 2.13 loses a buffer that is bound anew, and keeps one that is written in
        place."""
        value = self._kind_of_path(written.path).value
        if isinstance(value, Tensor) and value.origin == "buffer":
            return True
        owner = next(
            (each for each in self.source.ancestors(self.function) if isinstance(each, ast.ClassDef)), None
        )
        head, _, attr = written.path.partition(".")
        return owner is not None and head == "self" and registers_buffer(owner, attr)

    def _may_be_missing(self, path: str) -> bool:
        """Whether the constructor gives the attribute under a condition only, or nothing but this function does: arms that do
        not set it read it."""
        owner = next(
            (each for each in self.source.ancestors(self.function) if isinstance(each, ast.ClassDef)), None
        )
        methods = [each for each in owner.body if isinstance(each, ast.FunctionDef)] if owner else []
        others = [each for each in methods if each is not self.function]
        plain = owner is None or all((dotted(each) or "").endswith("Module") for each in owner.bases)
        sets_names = any(ast.unparse(each).find("setattr(") >= 0 for each in others)
        if (
            owner is not None
            and plain
            and path.startswith("self.")
            and path.count(".") == 1
            and not sets_names
            and not self._is_set_before(path)
            and not any(_gives(each, path) for method in others for each in ast.walk(method))
            and not any(_gives_in_class(each, path) for each in owner.body)
        ):
            return not all(
                _always_set(arm.statements, path) and not _read_before_set(arm.statements, path)
                for arm in (self.then, self.other)
            )
        if (
            owner is not None
            and self._is_none_at_first(methods, path)
            and any(_read_before_set(arm.statements, path) for arm in (self.then, self.other))
        ):
            return True
        for method in owner.body if owner else []:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                plain = _surely_gives(method.body, path)
                given = [each for each in ast.walk(method) if _gives(each, path)]
                return not plain and bool(given) and not self._is_under_option(method, given)
        return False

    def _is_none_at_first(self, methods: list[ast.FunctionDef], path: str) -> bool:
        """Whether the constructor gives None, and nothing but this function gives more or asks whether it is None."""
        values = {
            method: [
                each.value
                for each in ast.walk(method)
                if isinstance(each, (ast.Assign, ast.AnnAssign)) and _gives(each, path)
            ]
            for method in methods
        }
        others = [value for method, found in values.items() if method is not self.function for value in found]
        nothing = all(isinstance(value, ast.Constant) and value.value is None for value in others)
        asked = any(
            isinstance(each, ast.Compare) and dotted(each.left) == path for each in ast.walk(self.function)
        )
        return bool(others) and nothing and not asked and not self._is_set_before(path)

    def _is_under_option(self, constructor: ast.FunctionDef, given: list[ast.AST]) -> bool:
        """Whether the branch stands under the option by which the constructor gives an attribute."""
        asked = _asked_around(self.source, (self.then.body or self.other.body)[0], self.function)
        return any(_asked_around(self.source, each, constructor) & asked for each in given)

    def _is_set_before(self, path: str) -> bool:
        """Whether every way to the branch sets `path` in this function."""
        first = (self.then.body or self.other.body)[0]
        for each in self.source.ancestors(first):
            if each is self.function:
                break
            if isinstance(each, ast.stmt):
                block, index = self.source.block_of(each)
                if _always_set(block[:index], path):
                    return True
        return False

    def is_unshared(self, written: Written) -> bool:
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
        # Of what a caller gave a view, no name is known here.
        if not all(map(self.is_own, roots or ())):
            return False
        return not any(
            isinstance(other.value, Tensor) and other.value.root == value.root
            for name, other in self.kinds.names.items()
            if name != written.path
        )

    def is_own(self, root: str) -> bool:
        """Whether memory is this function's alone: made in it, or given by calls that keep no name for it."""
        if root.startswith(LOCAL):
            return True
        given = given_to(self.source, self.function, root, self.kinds) if root.isidentifier() else []
        return bool(given) and all(each.what == "tensor" and each.fresh for each in given)


def _asked_around(source: Source, node: ast.AST, function: ast.AST) -> set[str]:
    """The names of the options of which one side holds `node` inside of `function`: `momentum` for `self.momentum > 0`."""
    names: set[str] = set()
    inner = node
    for each in source.ancestors(node):
        if each is function:
            break
        if isinstance(each, ast.If) and inner in each.body:
            names |= {(dotted(one) or "").removeprefix("self.") for one in ast.walk(each.test)}
        inner = each
    for each in ast.walk(function):
        # `momentum = self.momentum` gives the option another name.
        if isinstance(each, ast.Assign) and names & {dotted(target) for target in each.targets}:
            names.add((dotted(each.value) or "").removeprefix("self."))
    return names - {"", "self"}


def _surely_gives(body: list[ast.stmt], path: str) -> bool:
    """Whether one of the statements of a constructor gives the attribute, or both arms of an `if` do."""
    return any(
        _gives(each, path)
        or (isinstance(each, ast.If) and _surely_gives(each.body, path) and _surely_gives(each.orelse, path))
        for each in body
    )


def _gives(node: ast.AST, path: str) -> bool:
    """Whether the statement `node` sets the attribute `path`, or registers it."""
    if isinstance(node, ast.Assign):
        return any(dotted(target) == path for target in node.targets)
    call = node.value if isinstance(node, ast.Expr) else None
    return (
        isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("register_buffer", "register_parameter")
        and bool(call.args)
        and isinstance(call.args[0], ast.Constant)
        and path == "self." + str(call.args[0].value)
    )


def _gives_in_class(node: ast.stmt, path: str) -> bool:
    """Whether the statement `node` of a class body gives the attribute `path`."""
    return path.partition(".")[2] in bound([node])


def _read_before_set(statements: Sequence[ast.stmt], path: str) -> bool:
    """Whether a way through `statements` may read `path` that has not set it before."""
    for node in statements:
        if isinstance(node, ast.If):
            if _loads(node.test, path) or _read_before_set(node.body, path):
                return True
            if _read_before_set(node.orelse, path):
                return True
        elif isinstance(node, ast.Assign):
            if _loads(node.value, path):
                return True
        elif _loads(node, path) or (isinstance(node, ast.AugAssign) and dotted(node.target) == path):
            return True
        if _always_set([node], path):
            return False
    return False


def _loads(node: ast.AST, path: str) -> bool:
    return any(
        isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Load) and dotted(each) == path
        for each in ast.walk(node)
    )


def augmented_names(statements: Sequence[ast.stmt]) -> set[str]:
    return {
        each.target.id
        for statement in statements
        for each in ast.walk(statement)
        if isinstance(each, ast.AugAssign) and isinstance(each.target, ast.Name)
    }


def _held_twice(root: str, now: Kinds) -> bool:
    """Whether several attributes hold the memory `root`, which was made while following the code."""
    holders = [path for path, kind in now.names.items() if "." in path and root in (kind.roots or ())]
    return root.startswith(LOCAL) and len(holders) > 1


def bound_anew(statements: Sequence[ast.stmt]) -> set[str]:
    """The names that `statements` bind otherwise than by an augmented assignment of a tensor."""
    names = set()
    for statement in statements:
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


def _always_set(statements: Sequence[ast.stmt], path: str) -> bool:
    """Whether `path` is assigned to whenever control falls out of the end of `statements`."""
    for node in statements:
        if isinstance(node, ast.Assign) and any(dotted(target) == path for target in node.targets):
            return True
        if isinstance(node, ast.If):
            arms = [arm for arm in (node.body, node.orelse) if not leaves(arm)]
            if arms and all(_always_set(arm, path) for arm in arms):
                return True
    return False
