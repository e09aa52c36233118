"""State that is None until the first call: `if self.state is None: self.state = torch.zeros(4)`, as a buffer from the start.

The exported program never sees the None: it would start every call from what stands under the question.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Edit
from exportlens.inference.places import AttributeWrite
from exportlens.inference.values import ClassValue
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.state.joined_classes import class_with_bases

# What gives the same tensor whenever it is called.
_STEADY = frozenset(
    f"torch.{name}" for name in ("zeros", "ones", "full", "eye", "arange", "linspace", "tensor")
)
# What reads of a tensor only its sizes, its dtype and where it is.
_ALIKE = frozenset(f"torch.{name}_like" for name in ("zeros", "ones", "full"))
_SIZES = frozenset({"size", "numel", "dim"})
_FACTS = frozenset({"shape", "ndim"})


def begun_as_buffer(place: AttributeWrite, owner: ClassValue, context: RewriteContext) -> list[Edit]:
    """The edits that register the state in `__init__` as what the first call would make of it. Raises Refused."""
    draft, cls = class_with_bases(owner, place.attr, context)
    source = draft.source
    path = f"self.{place.attr}"
    questions = [each for each in ast.walk(cls) if _asks(each, path)]
    named = _named_before(source, questions)
    guards = [
        each
        for each in ast.walk(cls)
        if isinstance(each, ast.If) and (each.test in questions or each in named)
    ]
    if len(questions) != 1 or len(guards) != 1:
        raise Refused(f"what the first call does while `{path}` is None is not one statement that makes it")
    guard = guards[0]
    made = guard.body[0]
    if not (isinstance(made, ast.Assign) and len(guard.body) == 1 and _targets(made) == [path]):
        raise Refused(f"more is done while `{path}` is None than to make it")
    begins = [each for each in ast.walk(cls) if isinstance(each, ast.Assign) and path in _targets(each)]
    nones = [each for each in begins if isinstance(each.value, ast.Constant) and each.value.value is None]
    if len(nones) != 1 or getattr(source.enclosing_function(nones[0]), "name", "") != "__init__":
        raise Refused(f"`{path}` is set to None elsewhere, and made anew by the next call")
    _refuse_unsteady(draft, source, cls, nones[0], made.value)
    text = f'self.register_buffer("{place.attr}", {source.of(made.value)}, persistent=False)'
    swaps = [source.swap(nones[0], text)]
    if not guard.orelse and source.begins_line(guard):
        begin = source.start(named.get(guard, guard))
        block, index = source.block_of(guard)
        if index + 1 < len(block):
            swaps.append(Replacement(begin, source.start(block[index + 1]), ""))
    return list(draft.replace("Register it", swaps, uses_torch=False).edits)


def _named_before(source: Source, questions: list[ast.AST]) -> dict[ast.If, ast.Assign]:
    """The `if` of a name that the statement before it binds to one of `questions`, and that nothing else reads, with that statement."""
    found = {}
    for each in questions:
        made = source.parents.get(each)
        if not (isinstance(made, ast.Assign) and len(made.targets) == 1 and source.begins_line(made)):
            continue
        block, index = source.block_of(made)
        asked = block[index + 1] if index + 1 < len(block) else None
        name, function = made.targets[0], source.enclosing_function(made)
        if function is None or not isinstance(name, ast.Name) or not isinstance(asked, ast.If):
            continue
        uses = [one for one in ast.walk(function) if isinstance(one, ast.Name) and one.id == name.id]
        if not asked.orelse and dotted(asked.test) == name.id and len(uses) == 2:
            found[asked] = made
    return found


def _asks(node: ast.AST, path: str) -> bool:
    """Whether `node` asks for the None: by identity, by its truth in a test, or by a name that stands for it."""
    if isinstance(node, ast.Compare):
        return dotted(node.left) == path and isinstance(node.ops[0], (ast.Is, ast.IsNot, ast.Eq, ast.NotEq))
    if isinstance(node, (ast.If, ast.While, ast.IfExp)):
        return dotted(node.test) == path
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return dotted(node.operand) == path
    return isinstance(node, ast.BoolOp) and any(dotted(each) == path for each in node.values)


def _targets(statement: ast.Assign) -> list[str | None]:
    return [dotted(each) for each in statement.targets]


def _parts_of_targets(statement: ast.Assign) -> list[str | None]:
    """What `statement` binds, also among others."""
    parts = [
        part for each in statement.targets for part in (each.elts if isinstance(each, ast.Tuple) else [each])
    ]
    return [dotted(each) for each in parts]


def _refuse_unsteady(
    draft: Draft, source: Source, cls: ast.ClassDef, begin: ast.Assign, value: ast.expr
) -> None:
    """Raise Refused where `value` is not the same in `__init__`, at `begin`, as in the first call."""
    constructor = source.enclosing_function(begin)
    for each in _parts(value):
        path = dotted(each) if isinstance(each, ast.Attribute) else None
        if isinstance(each, ast.Name) and each.id != "self" and not draft.qualified(each).startswith("torch"):
            raise Refused(
                f"what the state begins with depends on `{each.id}`, which is only known when the model is called"
            )
        if path is None or not path.startswith("self."):
            continue
        held = ".".join(path.split(".")[:2])
        sets = [
            one for one in ast.walk(cls) if isinstance(one, ast.Assign) and held in _parts_of_targets(one)
        ]
        early = len(sets) == 1 and source.enclosing_function(sets[0]) is constructor
        of_layer = path.count(".") == 2 and len(sets) == 1 and _is_layer(sets[0].value, draft)
        if (
            (path.count(".") != 1 and not of_layer)
            or not early
            or source.start(sets[0]) > source.start(begin)
        ):
            raise Refused(f"`{path}` is not set once, before the state, in `__init__`")
    calls = [each for each in ast.walk(value) if isinstance(each, ast.Call)]
    if not calls or not all(_is_steady(each, draft) for each in calls):
        raise Refused(
            "what the state begins with is made by no plain function of torch that always gives the same"
        )


def _parts(value: ast.expr) -> Iterator[ast.AST]:
    """The parts of `value`; of what is asked for its sizes, the tensor alone."""
    waiting: list[ast.AST] = [value]
    while waiting:
        each = waiting.pop()
        asked = _sized(each)
        if asked is not None:
            waiting += [asked, *(each.args if isinstance(each, ast.Call) else [])]
            continue
        yield each
        waiting += ast.iter_child_nodes(each)


def _sized(node: ast.AST) -> ast.expr | None:
    """The tensor whose sizes `node` asks for: `self.weight.size(0)`, `self.weight.shape`."""
    func = node.func if isinstance(node, ast.Call) else node
    names = _SIZES if isinstance(node, ast.Call) else _FACTS
    if not isinstance(func, ast.Attribute) or func.attr not in names:
        return None
    path = dotted(func.value)
    return func.value if path is not None and path.startswith("self.") else None


def _is_steady(call: ast.Call, draft: Draft) -> bool:
    """Whether `call` gives the same in `__init__` as in the first call of the model."""
    name = draft.qualified(call.func)
    if name in _ALIKE:
        return bool(call.args) and isinstance(call.args[0], ast.Attribute)
    if name == "torch.nn.functional.normalize":
        # What a parameter holds may be loaded later: only of steady values.
        return bool(call.args) and isinstance(call.args[0], ast.Call) and _is_steady(call.args[0], draft)
    return name in _STEADY or _sized(call) is not None


def _is_layer(made: ast.expr, draft: Draft) -> bool:
    """Whether `made` is a layer of torch, whose parameters have their sizes from the start."""
    name = draft.qualified(made.func) if isinstance(made, ast.Call) else ""
    return name.startswith("torch.nn.") and "Lazy" not in name
