"""What stands in the way of a fix: code inside of a new branch or loop is traced even in eager mode.

torch.cond and while_loop compile what they are given whenever they run (measured on torch 2.13): where an arm holds, or
calls, what cannot be traced and has no fix of its own, the code would no longer run at all.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence

from exportlens.finding import Fix, Refusal
from exportlens.fixing import apply_edits
from exportlens.inference.places import Conversion, Truth
from exportlens.lost_writes import lost_attribute
from exportlens.outcome import FAILS, Mode, TorchVersion
from exportlens.rewriting.code.names import dotted, own_calls
from exportlens.rule import Report
from exportlens.source.document import Chunk, Document
from exportlens.source.parsing import parse_python
from exportlens.source.walking import walk

# A number that the rounds of a loop read out of its counter's tensor.
_NUMBER_OF_ROUND = re.compile(r"^\s*(\w+) = .*\.item\(\)", re.MULTILINE)

_TRACING = (".cond(", "while_loop(", "_ops.map(", "_ops.scan(")


# An operator that takes no size from data: before the branch the number is one in eager mode, inside of it there is none.
OPEN_SIZE = "EXL408"
# A list of as many items as tensor data says: before the branch it becomes a tensor or numbers, in an arm nothing finds it.
OPEN_LIST = "EXL113"
# What stays as it is in an arm, as no rewrite of the branch takes it along: an operator that nothing traces, a call that asks
# which number, which dimension, or how many rows it is given, and a complex number.
_STAYING = frozenset({"EXL409", "EXL415", "EXL423", "EXL425"})
# `and` and `or` of tensors outside of a test: where they cannot become torch's, they stay in the arm as they are.
_COMBINED = "EXL106"
_SCRIPTED = ("jit.script", "jit.script_method")


def traces(fix: Fix) -> bool:
    """Whether `fix` writes an operator that traces its functions."""
    return any(name in edit.content for edit in fix.edits for name in _TRACING)


def compiled(report: Report, document: Document) -> str | None:
    """How TorchScript is told to compile the function that a fix would change, or its class: few of torch's operators, and
    no functions inside of functions, are known there."""
    function = report.place.site.function
    if function is None:
        return None
    decorator = next((name for name in function.decorators if name.endswith(_SCRIPTED)), None)
    if decorator is not None:
        return f"@{decorator}"
    owner = function.owner
    for each in owner.node.decorator_list if owner is not None else ():
        if ast.unparse(each).endswith(_SCRIPTED):
            return f"@{ast.unparse(each)}"
    names = {function.name.rpartition(".")[2] if owner is None else owner.node.name}
    statements = (each for placed in document.placed for each in placed.chunk.body)
    return next((call for each in statements for call in _scripting(each, names)), None)


def _scripting(statement: ast.stmt, names: Container[str]) -> Iterator[str]:
    """The calls of `torch.jit.script` that a statement of a file makes with one of `names`."""
    value = getattr(statement, "value", None)
    if isinstance(value, ast.Call) and (dotted(value.func) or "").endswith(_SCRIPTED) and value.args:
        given = value.args[0]
        if isinstance(given, ast.Name) and given.id in names:
            yield ast.unparse(value)


def moved(report: Report, fix: Fix, document: Document) -> tuple[int, int]:
    """The first and last line, in the chunk of `report`, that `fix` writes anew."""
    placed = next((each for each in document.placed if each.chunk is report.place.site.chunk), None)
    before = placed.first_line if placed is not None else 0
    lines = []
    for edit in fix.edits:
        start, end = edit.range.start, edit.range.end
        lines += [start.line, end.line if end.column or end == start else end.line - 1]
    inner = [line - before + 1 for line in lines if line >= before]
    return (min(inner), max(inner)) if inner else (0, 0)


def calls_moved(fix: Fix, document: Document) -> frozenset[str]:
    """What more functions inside of functions call, in the text of `document`, once `fix` is applied."""
    edits = [edit for edit in fix.edits if edit.path in (None, document.path)]
    try:
        before, after = (_called_inside(text) for text in (document.text, apply_edits(document.text, edits)))
    except SyntaxError:
        return frozenset()
    return frozenset(after - before)


def _called_inside(text: str) -> Counter[str]:
    functions = [each for each in walk(parse_python(text)) if isinstance(each, ast.FunctionDef)]
    inner = {
        id(each): each
        for function in functions
        for statement in function.body
        for each in walk(statement)
        if isinstance(each, (ast.FunctionDef, ast.Lambda))
    }
    calls = {
        id(each): dotted(each.func)
        for function in inner.values()
        for each in walk(function)
        if isinstance(each, ast.Call)
    }
    return Counter(name for name in calls.values() if name is not None)


def hands_on_numbers(report: Report, fix: Fix) -> bool:
    """Whether the loop that `fix` rewrites hands a number, which then is one from data, to a function of the user's."""
    node = report.place.node if not isinstance(report.place, Truth) else report.place.statement
    content = "\n".join(each.content for each in fix.edits)
    names = set(_NUMBER_OF_ROUND.findall(content)) if "while_loop(" in content else set()
    statements: Sequence[ast.stmt] = [node] if isinstance(node, ast.stmt) else _loops_around(report, node)
    calls = (each for one in statements for each in walk(one) if isinstance(each, ast.Call)) if names else ()
    return any(
        isinstance(given, ast.Name) and given.id in names and _may_be_own(each.func)
        for each in calls
        for given in [*each.args, *(keyword.value for keyword in each.keywords)]
    )


def _loops_around(report: Report, node: ast.AST) -> Sequence[ast.stmt]:
    """The innermost loop of the chunk of `report` around `node`."""
    line = getattr(node, "lineno", 0)
    nodes = (each for statement in report.place.site.chunk.body for each in walk(statement))
    loops = (each for each in nodes if isinstance(each, (ast.For, ast.While)))
    around = [each for each in loops if each.lineno <= line <= (each.end_lineno or each.lineno)]
    return around[-1:]


def _may_be_own(func: ast.expr) -> bool:
    """Whether what is called may be a function of the user's: a plain name, or a method of `self`."""
    root = (dotted(func) or "").partition(".")[0]
    return (isinstance(func, ast.Name) and not hasattr(builtins, func.id)) or root == "self"


def inside(
    report: Report,
    others: Iterable[Report],
    version: TorchVersion,
    written: tuple[int, int],
    moved_calls: Callable[[], Container[str]],
) -> Iterator[Report]:
    """Those of `others` that stop tracing, and that the code which a fix of `report` moves holds or calls; `written` are the
    first and last line that it writes anew, `moved_calls` what it moves into a function of a branch or loop."""
    chunk = report.place.site.chunk
    first, last = _region(report)
    again = _calls_itself(report, first, last)
    called_there = functools.cache(lambda: _called_between(chunk, first, last))
    for other in others:
        if other is report or other.rule.targets or not other.place.site.certain:
            continue
        if other.outcome.result(version, Mode.STRICT) is not FAILS:
            continue
        line = getattr(other.node, "lineno", 0)
        if (
            other.rule.code == OPEN_SIZE
            and other.place.site.chunk is chunk
            and written[0] <= line <= written[1]
        ):
            yield other
            continue
        # Decisions and indices of the moved code itself (EXL1xx, EXL4xx) are rewritten with it, or the whole is refused.
        code = other.rule.code
        decides = isinstance(other.place, Truth) and code != _COMBINED
        stays = code in _STAYING or (isinstance(other.place, Conversion) and other.place.to == "complex")
        apart = decides or (code.startswith("EXL4") and not stays)
        own = other.place.site.chunk is chunk and not apart
        nodes = [other.node] if own else []
        trails = (other.place.site.trail, *other.ways)
        calls = [node for trail in trails for _, called, node in trail if called is chunk]
        if any(first <= getattr(node, "lineno", 0) <= last for node in [*nodes, *calls]):
            yield other
            continue
        # Of several calls with the same arguments the first alone is followed.
        if any(isinstance(each, ast.Call) and dotted(each.func) in called_there() for each in calls):
            yield other
            continue
        # A function that calls itself comes to all of its own statements again, inside of the branch.
        if again and other.place.site.function is report.place.site.function:
            yield other
            continue
        # What follows the statement moves with it where its sides leave other numbers of Python behind.
        behind = [each for each in calls if written[0] <= getattr(each, "lineno", 0) <= written[1]]
        if any(isinstance(each, ast.Call) and dotted(each.func) in moved_calls() for each in behind):
            yield other


def _called_between(chunk: Chunk, first: int, last: int) -> frozenset[str]:
    """The names of what is called in these lines of a chunk."""
    nodes = (node for statement in chunk.body for node in walk(statement))
    calls = (each for each in nodes if isinstance(each, ast.Call) and first <= each.lineno <= last)
    return frozenset(filter(None, (dotted(each.func) for each in calls)))


def replaced(report: Report) -> tuple[Chunk, ast.AST]:
    """What an operator would take the place of, with its chunk."""
    place = report.place
    return place.site.chunk, place.statement if isinstance(place, Truth) else place.node


def lost_behind(report: Report) -> str | None:
    """The attribute that tracing would lose if an operator took the place of what was reported."""
    chunk, at = replaced(report)
    here = chunk.body, at
    ways = ([here, *((chunk.body, node) for _, chunk, node in reversed(way))] for way in report.ways)
    return next(filter(None, map(lost_attribute, ways)), None)


def lost_refusal(attr: str) -> Refusal:
    """Why no operator may come where it would lose what is written to `attr`."""
    return Refusal(
        f"strict tracing loses what is written to `{attr}` behind torch.cond and while_loop, where an attribute of the same "
        "object was written before: keep it in a local variable"
    )


def _region(report: Report) -> tuple[int, int]:
    """The first and last line, in its chunk, of what may move: the statement, and what follows it where an arm leaves."""
    place = report.place
    node = place.statement if isinstance(place, Truth) else _loop_over(report) or place.node
    first, last = _lines(node)
    leaves = isinstance(node, ast.stmt) and any(
        isinstance(each, (ast.Return, ast.Break, ast.Continue)) for each in ast.walk(node)
    )
    if leaves:
        for statement in place.site.chunk.body:
            for each in ast.walk(statement):
                if isinstance(each, (ast.FunctionDef, ast.For, ast.While)):
                    start, end = _lines(each)
                    if start <= first <= end:
                        last = max(last, end) if isinstance(each, ast.FunctionDef) else last
                        first = min(first, start) if not isinstance(each, ast.FunctionDef) else first
    return first, last


def _loop_over(report: Report) -> ast.For | None:
    """The loop over what was reported: `range(int(n))`, or a tensor of as many rows as data says."""
    nodes = (each for statement in report.place.site.chunk.body for each in walk(statement))
    loops = (each for each in nodes if isinstance(each, ast.For))
    return next((each for each in loops if any(one is report.place.node for one in walk(each.iter))), None)


def _calls_itself(report: Report, first: int, last: int) -> bool:
    """Whether one of the lines from `first` to `last` calls the function that they are in."""
    function = report.place.site.function
    if function is None or isinstance(function.node, ast.Lambda):
        return False
    return any(first <= each.lineno <= last for each in own_calls(function.node))


def _lines(node: ast.AST) -> tuple[int, int]:
    start = getattr(node, "lineno", 0)
    return start, getattr(node, "end_lineno", None) or start
