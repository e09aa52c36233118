"""Effects: what a stretch of code does besides binding names, and whose memory it writes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from exportlens.inference import knowledge
from exportlens.inference.knowledge import EffectKind
from exportlens.inference.modules import container_kind
from exportlens.inference.told_ranks import by_test
from exportlens.inference.values import Const, Instance, Tensor, Unknown
from exportlens.inference.values import Sequence as ListValue
from exportlens.rewriting.arms.super_reads import refuse_super_reads
from exportlens.rewriting.code.draft import Refused, RefusedLog
from exportlens.rewriting.code.liveness import leaves, live_before
from exportlens.rewriting.code.names import arguments, bound, dotted, reads, walk_own
from exportlens.rewriting.code.passed_in import unread
from exportlens.rewriting.code.text import Function, Source
from exportlens.rewriting.kinds.kind import (
    LOCAL,
    SEVERAL,
    UNKNOWN_KIND,
    Kind,
    element_of,
    is_filled,
    joined_items,
    length_from_data,
    merged,
    merged_names,
    numbers,
    union,
)
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.untaken import untaken
from exportlens.rewriting.memory.changing_lists import is_list, lengthened_around
from exportlens.rewriting.memory.helper_writes import asks_in_place, written_arguments, written_state
from exportlens.rewriting.memory.method_writes import written_by_method
from exportlens.rewriting.memory.own_containers import own_containers
from exportlens.rewriting.numbers.operands import is_power_of_int
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

_BINDING = (ast.Assign, ast.AnnAssign, ast.AugAssign)
_NO_ARGUMENTS = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
_ANY_BOOL = Kind("number", type="bool")
_LOG_METHODS = {"debug", "info", "warning", "warning_once", "warn", "error", "critical", "exception", "log"}
# Functions of one's own around warnings.warn, that take its text: `rank_zero_warn("...")`.
_WARNS = re.compile(r"(?:^|[._])warn(?:ing)?(?:_once)?$")
# Functions of numbers that have no counterpart in torch: in an arm, which torch compiles in eager mode too, they raise.
_WITHOUT_SYMBOLS = frozenset(
    {
        f"math.{name}"
        for name in (
            "isclose",
            "gcd",
            "lcm",
            "comb",
            "perm",
            "factorial",
            "fsum",
            "prod",
            "frexp",
            "modf",
            "gamma",
        )
    }
)
# Measured on torch 2.13: the program raises that a tensor has escaped from the function that is mapped.
_MAPPING = frozenset({"torch.vmap", "torch.func.vmap"})
_CONTAINER_WRITES = {
    "append",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "update",
    "setdefault",
    "add",
    "discard",
    "popitem",
    "sort",
    "reverse",
}
_ASSERTIONS = {
    "torch._assert_async",
    "torch._assert",
    "torch._assert_scalar",
    "torch._check",
    "torch._check_is_size",
    "torch._check_value",
}


@dataclass(frozen=True, slots=True)
class Write:
    """Memory is written in place: that of `base`, by the statement or call `node`."""

    base: ast.expr
    node: ast.AST


def visit(statements: Sequence[ast.stmt], kinds: Kinds, see: Callable[[ast.stmt, Kinds], None]) -> None:
    """Call `see` for each statement at any depth of this scope, with the kinds of names just before it;
    follows the statements."""
    for node in statements:
        see(node, kinds)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Constant):
            # As where a method is written out for a caller that does not give the option.
            visit(node.body if node.test.value else node.orelse, kinds, see)
        elif isinstance(node, ast.If):
            _visit_arms([node.body, node.orelse], kinds, see, node.test)
        elif isinstance(node, (ast.For, ast.While)):
            probe = kinds.copy()
            probe.run([node])
            # What the rounds put something into may be empty in the first one.
            empty = {name: kind for name, kind in kinds.names.items() if not is_filled(kind)}
            for name, kind in kinds.names.items():
                if probe.names.get(name, kind) != kind:
                    kinds.names[name] = probe.names[name]
            if isinstance(node, ast.For):
                kinds._assign_iteration(node)
            entry = kinds.copy()
            for name in empty:
                if is_filled(entry.names[name]):
                    entry.names[name] = replace(entry.names[name], type="")
            entry.names |= _left_by_rounds(node, kinds)
            visit(node.body, entry, see)
            visit(node.orelse, kinds.copy(), see)
            kinds.names = {**entry.names, **kinds.names}
        elif isinstance(node, ast.With):
            kinds.run([ast.With(items=node.items, body=[])])
            visit(node.body, kinds, see)
        elif isinstance(node, ast.Try):
            _visit_arms(
                [[*node.body, *node.orelse], *(handler.body for handler in node.handlers)], kinds, see
            )
            visit(node.finalbody, kinds, see)
        elif isinstance(node, ast.Match):
            _visit_arms([case.body for case in node.cases], kinds, see)
        else:
            kinds.run([node])


def _left_by_rounds(node: ast.For | ast.While, kinds: Kinds) -> dict[str, Kind]:
    """The tensors that a round of the loop may read as an earlier one left them, of names that nothing binds before the loop: what
    all rounds bind them to. They are no names for the very same tensor that the round itself has."""
    late = set(bound(node.body)).intersection(_entering(node)) - set(kinds.names)
    if not late:
        return {}
    left: dict[str, list[Kind]] = {}

    def see(statement: ast.stmt, now: Kinds) -> None:
        names = late.intersection(bound(statement)) if isinstance(statement, _BINDING) else ()
        for name in names:
            after = now.copy()
            after.run([statement])
            left.setdefault(name, []).append(after.names.get(name, UNKNOWN_KIND))

    visit(node.body, kinds.copy(), see)
    return {
        name: replace(merged(found))
        for name, found in left.items()
        if all(each.what == "tensor" for each in found)
    }


def _entering(node: ast.For | ast.While) -> frozenset[str]:
    """The names that the body of the loop may read before it binds them."""
    probe = ast.FunctionDef(name="", args=_NO_ARGUMENTS, body=[], decorator_list=[])
    return live_before(node.body, frozenset(), probe)


class _Arrived(Exception):
    """The statement that was looked for is reached, where names are of `kinds`."""

    def __init__(self, kinds: Kinds) -> None:
        self.kinds = kinds


def names_before(statements: Sequence[ast.stmt], goal: ast.stmt, kinds: Kinds) -> dict[str, Kind] | None:
    """What names are just before `goal`, with `kinds` before `statements`, as far as it is followed; None where `goal` is not in their scope."""

    def see(node: ast.stmt, now: Kinds) -> None:
        if node is goal:
            raise _Arrived(now)

    try:
        visit(statements, kinds, see)
    except _Arrived as there:
        return there.kinds.names
    return None


def _given_with(name: str, kind: Kind, function: Function, known: Kinds) -> frozenset[str]:
    """The roots of a parameter: its own, and those of others that the caller gives views of the same memory."""
    shared = {name}
    for each in arguments(function.args):
        other = known.names.get(each.arg)
        if other is None or not isinstance(kind.value, Tensor) or not isinstance(other.value, Tensor):
            continue
        # The very same tensor under two names is fine.
        if kind.value.root == other.value.root != 0 and kind.value is not other.value:
            shared.add(each.arg)
    return frozenset(shared)


def is_unlike(kind: Kind) -> bool:
    """Whether `kind` is used as no tensor can be."""
    return isinstance(kind.value, Unknown) and kind.value.unlike


def kinds_before(function: ast.FunctionDef | ast.AsyncFunctionDef, goal: ast.stmt, known: Kinds) -> Kinds:
    """The kinds just before `goal`: what names are is `known` from the interpreter, whose memory they share
    is followed here."""
    own = Kinds({}, known.modules)
    own.told, own.cancelled, own.around = known.names, known.cancelled, known.around
    own.functions, own.answers, own.supposed = known.functions, known.answers, known.supposed
    for each in arguments(function.args):
        kind = known.names.get(each.arg)
        own.names[each.arg] = (
            replace(kind, roots=_given_with(each.arg, kind, function, known))
            if kind is not None
            else Kind("unknown", roots=None)
        )
    for name in set(reads(function)) - {*bound(function.body), *own.names}:
        # What a function inside of another takes in from around it.
        if name in known.names and known.names[name].what == "tensor":
            own.names[name] = known.names[name]
    for each in arguments(function.args):
        annotation = "" if each.annotation is None else ast.unparse(each.annotation).strip("'\"")
        if annotation.endswith("Tensor") and own.names[each.arg].what == "unknown":
            own.names[each.arg] = Kind("tensor", roots=frozenset({each.arg}))
    for each in _plain(function.args) if function.name == "forward" else []:
        if (
            each.arg != "self"
            and own.names[each.arg].what == "unknown"
            and not is_unlike(own.names[each.arg])
        ):
            # What a model is called with and says nothing else of is a tensor.
            own.names[each.arg] = Kind("tensor", roots=frozenset({each.arg}))
    for name in floating(function, goal, own):
        if own.names[name].what == "tensor" and own.names[name].dtype is None:
            own.names[name] = replace(own.names[name], dtype="float")
    own.settled = True
    arrived = names_before(function.body, goal, own) or {}
    names = dict(known.names)
    same: dict[int, Kind] = {}
    changed = lengthened_around(function, goal)
    bound_in_loop = set(bound(goal)) if isinstance(goal, (ast.For, ast.While)) else set()
    for name, kind in arrived.items():
        told = names.get(name)
        if isinstance(goal, (ast.For, ast.While)) and kind.what != "unknown":
            # The interpreter speaks of every round of the loop, this room of what it starts with.
            if told is not None and told.what == kind.what == "tensor" and name not in bound_in_loop:
                kind = replace(kind, dtype=kind.dtype or told.dtype)
            names[name] = kind
            continue
        if told is not None and told.what in ("number", "none") and kind.type == SEVERAL:
            # In a first round of a loop, which is not the only one.
            names[name] = kind
        elif told is None or told.what == "unknown":
            if kind.what != "unknown":
                names[name] = kind
        elif told.what == "tensor" and kind.type == SEVERAL:
            # A test has told which of them it is here: how that lies in memory is followed here.
            tensors = [each for each in kind.items or () if each.what == "tensor"]
            moved, parted, later = (
                any(getattr(each, flag) for each in tensors) for flag in ("moved", "parted", "later")
            )
            names[name] = replace(told, moved=moved, parted=parted, later=later)
        elif told.what == kind.what == "container" and kind.roots is not None:
            if name in changed and told.items is not None and is_list(told):
                # The interpreter speaks of one round of a loop, in which the list has another length than in others.
                element = joined_items([told, kind])
                told = replace(told, items=None, value=ListValue("list", None, element))
            # Whose memory the parts are is followed here, and so are the parts that the interpreter does not know.
            items = told.items if told.items is not None and not kind.items else kind.items
            if told.items is not None and kind.items is not None and len(told.items) == len(kind.items):
                items = tuple(
                    replace(one, roots=other.roots, moved=other.moved, parted=other.parted, later=other.later)
                    for one, other in zip(told.items, kind.items, strict=True)
                )
            elif told.items is not None:
                items = tuple(
                    replace(one, roots=kind.roots, parted=kind.parted, later=kind.later) for one in told.items
                )
            names[name] = replace(
                told,
                type=kind.type,
                items=items,
                keys=kind.keys or told.keys,
                roots=kind.roots,
                parted=kind.parted,
                later=kind.later,
            )
        elif told.what == kind.what == "scalar" and not told.type:
            names[name] = kind
        elif told == _ANY_BOOL and kind.what == "scalar" and kind.type == "bool":
            # What `not` makes of a tensor is a bool to the interpreter, as any other.
            names[name] = kind
        elif told.what == kind.what == "tensor":
            # Names for the very same tensor keep one kind, by which they are known.
            dtype = told.dtype or kind.dtype
            # That a mask picked the rows is not always seen by the interpreter.
            value = told.value
            if length_from_data(kind) and isinstance(value, Tensor):
                value = replace(value, unbacked=True)
            again = replace(
                told,
                roots=kind.roots,
                dtype=dtype,
                value=value,
                moved=kind.moved,
                parted=kind.parted,
                later=kind.later,
            )
            names[name] = same.setdefault(id(kind), again)
    found = known.copy()
    found.told = known.told or known.names
    found.names = names | _shared_by_calls(names, arrived)
    return found


def _shared_by_calls(names: Mapping[str, Kind], followed: Mapping[str, Kind]) -> dict[str, Kind]:
    """The names whose memory is not followed here, as what a call gave, with the memory that the interpreter knows they share."""
    groups: dict[int, list[str]] = {}
    for name, kind in names.items():
        if kind.what == "tensor" and isinstance(kind.value, Tensor) and kind.value.root:
            groups.setdefault(kind.value.root, []).append(name)
    found: dict[str, Kind] = {}
    for group in groups.values():
        lost = [name for name in group if name in followed and followed[name].what == "unknown"]
        if len(group) > 1 and lost:
            roots = union([names[name] for name in group if name not in lost]) or frozenset(
                {f"{LOCAL}{next(numbers)}"}
            )
            found |= {name: replace(names[name], roots=roots) for name in lost}
    return found


# What torch refuses to do with a tensor of integers (measured on torch 2.13).
_OF_FLOATS = frozenset({"mean", "std", "var", "norm"})


def floating(function: ast.FunctionDef | ast.AsyncFunctionDef, goal: ast.stmt, kinds: Kinds) -> Iterator[str]:
    """The parameters that certainly are of a float dtype where `goal` stands: an operation on the way there takes no other."""
    names = {each.arg for each in arguments(function.args)}
    for statement in function.body:
        inside = any(each is goal for each in walk(statement))
        parts = own_expressions(statement) if inside or not _is_plain(statement) else walk(statement)
        for each in parts:
            if isinstance(each, ast.Call) and not any(key.arg == "dtype" for key in each.keywords):
                taken = _takes_floats(each, kinds)
                if isinstance(taken, ast.Name) and taken.id in names:
                    yield taken.id
        if inside:
            return
        names -= set(bound(statement))


def _is_plain(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr))


def _takes_floats(call: ast.Call, kinds: Kinds) -> ast.expr | None:
    """The tensor that must be of a float dtype, or the call would raise."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _OF_FLOATS:
        name = kinds.qualified(func)
        if name is None:
            return func.value
        return call.args[0] if name.removeprefix("torch.") in _OF_FLOATS and call.args else None
    return None


def _plain(args: ast.arguments) -> list[ast.arg]:
    """The parameters without default and annotation."""
    required = args.args[: len(args.args) - len(args.defaults)]
    return [each for each in required if each.annotation is None]


def _visit_arms(
    arms: Sequence[list[ast.stmt]],
    kinds: Kinds,
    see: Callable[[ast.stmt, Kinds], None],
    test: ast.expr | None = None,
) -> None:
    ends = []
    idle = untaken(test, kinds.names) if kinds.settled else None
    for index, arm in enumerate(arms):
        way = kinds.copy()
        if test is not None:
            way.tell_ranks(by_test(test, index == 0))
        visit(arm, way, see)
        if index != idle and not leaves(arm):
            ends.append(way.names)
    if ends:
        kinds.names = merged_names(ends)


def own_expressions(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of `node`'s own expressions, without the statements inside it."""
    for _, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.withitem):
                yield from walk(each)
            elif isinstance(each, ast.expr):
                yield from walk_own(each)


def writes_of(node: ast.stmt, kinds: Kinds) -> Iterator[Write]:
    """The in-place writes of tensors that `node` itself makes (not the statements inside it)."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = list(node.targets)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        targets = [node.target]
    for target in targets:
        for each in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            if isinstance(each, ast.Subscript):
                yield Write(each.value, node)
            elif isinstance(node, ast.AugAssign) and kinds.of(loaded(each)).what == "tensor":
                yield Write(each, node)
    for part in own_expressions(node):
        if isinstance(part, ast.Call):
            yield from _writes_of_call(part, kinds)


def loaded(node: ast.expr) -> ast.expr:
    return parse_python(ast.unparse(node), mode="eval").body


def _writes_of_call(node: ast.Call, kinds: Kinds) -> Iterator[Write]:
    for keyword in node.keywords:
        if keyword.arg == "out" and kinds.of(keyword.value).what != "none":
            yield Write(keyword.value, node)
    name = kinds.qualified(node.func)
    inplace = any(
        key.arg == "inplace" and not (isinstance(key.value, ast.Constant) and key.value.value is False)
        for key in node.keywords
    )
    if name is not None:
        op = knowledge.lookup_function(name)
        inplace = inplace or (op is not None and asks_in_place(node, op))
        if node.args and ((op is not None and 0 in op.mutates and not op.mutates_when) or inplace):
            yield Write(node.args[0], node)
        return
    if isinstance(node.func, ast.Attribute):
        attr = node.func.attr
        if (
            attr.endswith("_")
            and not attr.endswith("__")
            and kinds.of(node.func.value).what in ("tensor", "unknown")
        ):
            if attr not in ("requires_grad_",):
                yield Write(node.func.value, node)
            return
    callee = kinds.of(node.func).value
    if isinstance(callee, Instance) and callee.arguments.get("inplace") == Const(True) and node.args:
        yield Write(node.args[0], node)
    for given in written_arguments(node, kinds):
        yield Write(given, node)


def repeatable(test: ast.expr, kinds: Kinds) -> bool:
    """Whether evaluating `test` once more changes nothing: no name is bound, no random number is drawn."""
    for each in walk(test):
        if isinstance(each, (ast.NamedExpr, ast.Await, ast.Yield)):
            return False
        if isinstance(each, ast.Call):
            name = str(dotted(each.func) or getattr(each.func, "attr", "")).rpartition(".")[2]
            if "rand" in name or name.endswith("_") or name in ("bernoulli", "multinomial", "dropout", "pop"):
                return False
            # What belongs to the model may do anything, unless it is a method of a tensor.
            if (dotted(each.func) or "").startswith("self.") and not (
                isinstance(each.func, ast.Attribute) and kinds.of(each.func.value).what == "tensor"
            ):
                return False
    return True


def refuse_effects(
    source: Source, statements: Sequence[ast.stmt], kinds: Kinds, function: Function | None
) -> None:
    """Raise Refused where `statements` of `function` do what torch.cond and while_loop do not take in a branch or body.

    Where it is None, methods of the same class are not asked for what they write.
    """

    own = own_containers(source, statements)
    refuse_super_reads(source, statements, kinds)

    def see(node: ast.stmt, now: Kinds) -> None:
        line = f"`{_short(source, node)}`"
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            raise Refused(f"{line} binds a name outside of the function")
        if isinstance(node, ast.Delete):
            raise Refused(f"{line} deletes a name or an item")
        if isinstance(node, ast.Try):
            raise Refused("a `try` statement inside of a branch that depends on tensor data")
        for each in own_expressions(node):
            if isinstance(each, (ast.Yield, ast.YieldFrom, ast.Await)):
                raise Refused("the branch yields or awaits")
            if isinstance(each, ast.Call):
                _refuse_call(source, each, now, function, own)
            if (
                isinstance(each, ast.BinOp)
                and now.of(each.right).what == "scalar"
                and is_power_of_int(each, now)
            ):
                raise Refused(
                    f"`{_short(source, each)}` is a power of an int, whose exponent torch asks for its sign"
                )
            if isinstance(each, ast.Subscript) and _picks_by_data(source, each, now):
                raise Refused(
                    f"`{_short(source, each)}` takes an item of Python's by tensor data inside of the branch"
                )
            if isinstance(each, (ast.ListComp, ast.GeneratorExp)):
                inside = now.in_comprehension(each)
                for test in (test for one in each.generators for test in one.ifs):
                    if inside.of(test).from_data:
                        raise Refused(f"`{_short(source, each)}` filters by tensor data inside of the branch")
        for write in writes_of(node, now):
            kind = now.of(loaded(write.base))
            if kind.what not in ("tensor", "unknown") and ast.unparse(write.base) not in own:
                raise Refused(f"{line} changes `{source.of(write.base)}`, which is no tensor")
            if not _may_be_tensor(write, kind):
                raise Refused(f"{line} changes `{source.of(write.base)}`, which is not always a tensor")
        if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
            _refuse_statement(source, node, now, own)

    visit(statements, kinds.copy(), see)


def _may_be_tensor(write: Write, kind: Kind) -> bool:
    """Whether each thing that what is written may be is a tensor, as far as is known: `out=None` writes nothing, an item of None raises."""
    given = isinstance(write.node, ast.Call) and any(each.value is write.base for each in write.node.keywords)
    known = {"tensor", "unknown"} if given else {"tensor", "unknown", "none"}
    return kind.type != SEVERAL or all(each.what in known for each in kind.items or ())


def _picks_by_data(source: Source, node: ast.Subscript, kinds: Kinds) -> bool:
    owner = kinds.of(node.value)
    if owner.what == "unknown" and _holds_a_list(source, dotted(node.value)):
        return kinds.of(node.slice).from_data
    # A ModuleList or a ModuleDict, too.
    holds = isinstance(owner.value, Instance) and container_kind(owner.value.cls) is not None
    return (owner.what == "container" or holds) and kinds.of(node.slice).from_data


def _holds_a_list(source: Source, path: str | None) -> bool:
    """Whether the class sets the attribute at `path` to a list that is written out, `[rate] * n`, in one place at least."""
    if path is None or not path.startswith("self."):
        return False
    made = (
        each.value.left if isinstance(each.value, ast.BinOp) else each.value
        for each in ast.walk(source.tree)
        if isinstance(each, ast.Assign) and path in map(dotted, each.targets)
    )
    return any(isinstance(each, (ast.List, ast.ListComp)) for each in made)


def _refuse_statement(source: Source, node: ast.Expr, kinds: Kinds, own: set[str]) -> None:
    call = node.value
    if not isinstance(call, ast.Call):
        return
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _CONTAINER_WRITES and ast.unparse(func.value) in own:
        return
    if any(True for _ in _writes_of_call(call, kinds)):
        return
    name = kinds.qualified(call.func)
    if name in _ASSERTIONS:
        return
    if is_log(call, kinds):
        if is_kept_out(source.parents[node]):
            return
        raise RefusedLog(
            f"`{_short(source, node)}` prints or logs: tracing would do that once and not per run"
        )
    if isinstance(call.func, ast.Attribute) and call.func.attr == "append":
        raise Refused(_appends_by_data(source, call.func, node))
    raise Refused(f"`{_short(source, node)}` is called for its effect")


def _appends_by_data(source: Source, func: ast.Attribute, call: ast.AST) -> str:
    return (
        f"`{_short(source, call)}` changes `{source.of(func.value)}` outside of the branch, and data would decide how long the list "
        "becomes: append in each round, and weigh what is dropped with zero"
    )


def is_kept_out(node: ast.AST) -> bool:
    """Whether the body of `node` only runs where nothing is traced."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    test = node.test
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        test = test.values[0]
    return (
        isinstance(test, ast.UnaryOp)
        and isinstance(test.op, ast.Not)
        and ast.unparse(test.operand).endswith(".compiler.is_compiling()")
    )


# What print() does, by the streams' own methods.
_STREAMS = frozenset(f"sys.{stream}.{name}" for stream in ("stdout", "stderr") for name in ("write", "flush"))


def is_log(call: ast.expr, kinds: Kinds) -> bool:
    """Whether `call` only prints, logs or warns."""
    if not isinstance(call, ast.Call):
        return False
    if isinstance(call.func, ast.Name) and call.func.id == "print":
        return True
    name = kinds.qualified(call.func)
    if name in _STREAMS:
        return True
    if _WARNS.search(name or str(getattr(call.func, "id", ""))) and call.args and _is_text(call.args[0]):
        return True
    if name is not None:
        effect = knowledge.effect_of(name)
        if effect is not None and effect.kind in (EffectKind.LOGS, EffectKind.WARNS):
            return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in _LOG_METHODS:
        owner = dotted(call.func.value) or ""
        return owner.split(".")[-1].lower() in ("logger", "log", "logging", "_logger", "warnings")
    return False


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _refuse_call(
    source: Source, call: ast.Call, kinds: Kinds, function: Function | None, own: set[str]
) -> None:
    func = call.func
    state = written_state(call, kinds)
    if state is not None:
        raise Refused(f"`{_short(source, call)}` calls a submodule that writes its `{state}`")
    if (
        isinstance(func, ast.Name)
        and func.id in ("locals", "globals", "vars", "exec", "eval")
        and func.id not in kinds.names
    ):
        raise Refused(f"`{func.id}()` looks at names that the rewrite moves")
    named = kinds.qualified(func) or ""
    sparse = named.startswith("torch.sparse_") or getattr(func, "attr", "").startswith("to_sparse")
    if sparse:
        raise Refused(f"`{_short(source, call)}` makes a sparse tensor, which torch takes in no arm")
    if named in _MAPPING:
        raise Refused(
            f"`{_short(source, call)}` maps a function: torch.cond gives its tensors back as those inside of the map"
        )
    takes = isinstance(func, ast.Name) and func.id == "next" and bool(call.args)
    taken = dotted(call.args[0]) if takes else None
    if taken is not None and taken not in own:
        raise Refused(f"`{_short(source, call)}` takes from `{taken}` outside of the branch")
    if named in _WITHOUT_SYMBOLS and any(kinds.of(each).what == "scalar" for each in call.args):
        raise Refused(
            f"`{_short(source, call)}` computes with a number of Python, which torch traces in no arm"
        )
    keyed = any(each.arg == "key" for each in call.keywords)
    compares = isinstance(func, ast.Name) and (func.id == "sorted" or (keyed and func.id in ("max", "min")))
    if isinstance(func, ast.Name) and compares and func.id not in kinds.names and call.args:
        listed = kinds.of(call.args[0])
        among = element_of(listed).what if listed.what == "container" else ""
        if listed.what == "tensor" or among in ("tensor", "scalar"):
            raise Refused(f"`{_short(source, call)}` compares values of tensors with each other in Python")
    if isinstance(func, ast.Attribute) and func.attr == "tolist":
        dtype = kinds.of(func.value).dtype or ""
        if not dtype.startswith(("int", "uint", "bool")):
            raise Refused(f"`{_short(source, call)}` may list floats, which torch traces in no arm")
    if isinstance(func, ast.Attribute):
        if (
            func.attr in _CONTAINER_WRITES
            and ast.unparse(func.value) not in own
            and kinds.of(func.value).what not in ("tensor", "object")
            and (not kinds.of(func.value).fresh or not isinstance(source.parents[call], ast.Expr))
            and (dotted(func.value) is not None or not kinds.of(func.value).fresh)
        ):
            if func.attr == "append" and kinds.of(func.value).what == "container":
                raise Refused(_appends_by_data(source, func, call))
            raise Refused(f"`{_short(source, call)}` changes `{source.of(func.value)}` outside of the branch")
        if isinstance(func.value, ast.Name) and func.value.id == "self":
            written = None if function is None else written_by_method(source, function, func.attr, kinds)
            if written is not None:
                raise Refused(f"`self.{func.attr}` writes `self.{written}`")
            given = unread(source, call, kinds)
            if given is not None:
                raise Refused(
                    f"`{_short(source, call)}` calls what the constructor is given, such as `{given}(...)`: that torch can trace it, "
                    "as torch.cond does in eager too, is not known"
                )
        if func.attr in (
            "backward",
            "register_buffer",
            "register_parameter",
            "add_module",
            "load_state_dict",
            "train",
            "eval",
            "requires_grad_",
        ):
            raise Refused(f"`{_short(source, call)}` changes state")


def _short(source: Source, node: ast.AST) -> str:
    first = source.of(node).splitlines()[0].strip()
    return first if len(first) <= 60 else first[:57] + "..."
