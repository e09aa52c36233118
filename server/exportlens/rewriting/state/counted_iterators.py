"""`itertools.count()` that a model keeps, as a number that it counts itself: where other rewrites make a buffer of it.

self.steps = itertools.count(1)         self.steps = 0
...                                     ...
return x / next(self.steps)      ->     self.steps += 1
                                        return x / self.steps
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Call
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted
from exportlens.rewriting.code.text import Replacement, Source

_ONLY_NEXT = "`{}` is used for more than `next`"


def counted_in_attribute(place: Call, context: RewriteContext) -> Fix | Refusal:
    """The fix that makes the iterator the number which it gave last."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        assert isinstance(node, ast.Call)
        path = dotted(node.args[0]) or ""
        cls = next((each for each in draft.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        if cls is None or not path.startswith("self."):
            raise Refused("whose state it is, is for you to say: count in a buffer of the model")
        swaps = _swaps(draft, cls, path)
        return draft.replace(f"Count in `{path}`", swaps, Applicability.UNSAFE, uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _swaps(draft: Draft, cls: ast.ClassDef, path: str) -> list[Replacement]:
    source, attr = draft.source, path.removeprefix("self.")
    uses = [each for each in ast.walk(cls) if isinstance(each, ast.Attribute) and dotted(each) == path]
    _refuse_others(draft, uses, attr)
    begins = [each for each in uses if isinstance(each.ctx, ast.Store)]
    made = source.parents[begins[0]] if len(begins) == 1 else None
    value = made.value if isinstance(made, (ast.Assign, ast.AnnAssign)) else None
    if isinstance(made, ast.AnnAssign) or value is None or made is None:
        raise Refused(f"`{path}` is not set once, in `__init__`")
    first, step = _numbers(draft, value, path)
    taken = [_next_of(source, each, path) for each in uses if each is not begins[0]]
    functions = {source.enclosing_function(each) for each in taken}
    statements = [source.enclosing_statement(each) for each in taken]
    if len(functions) > 1 or len(set(statements)) < len(statements):
        raise Refused(f"`next({path})` is asked in several places, whose order is not known")
    if getattr(source.enclosing_function(begins[0]), "name", "") != "__init__":
        raise Refused(f"`{path}` is set again by a method")
    swaps = [source.swap(value, str(first - step))]
    for call, statement in zip(taken, statements, strict=True):
        _refuse_undecided(source, call, statement)
        begin = source.start(statement)
        counts = f"{path} += {step}" if step > 0 else f"{path} -= {-step}"
        swaps.append(Replacement(begin, begin, f"{counts}{source.newline}{source.indent_of(statement)}"))
        swaps.append(source.swap(call, path))
    return swaps


def _numbers(draft: Draft, value: ast.expr, path: str) -> tuple[int, int]:
    """Where `itertools.count` starts, and its step, as they are written."""
    if not isinstance(value, ast.Call) or draft.qualified(value.func) != "itertools.count":
        raise Refused(
            f"what `{path}` gives is not a count: which item it is in each call has to be counted in a buffer, and the items kept in a "
            "tensor"
        )
    given = dict(zip(("start", "step"), value.args, strict=False))
    given |= {each.arg: each.value for each in value.keywords if each.arg is not None}
    found: list[int] = []
    for name, default in (("start", 0), ("step", 1)):
        try:
            number = ast.literal_eval(given[name]) if name in given else default
        except ValueError:
            number = None
        if type(number) is not int or (name == "step" and number == 0):
            raise Refused(f"`{ast.unparse(value)}` does not count by whole numbers that are written out")
        found.append(number)
    return found[0], found[1]


def _next_of(source: Source, use: ast.Attribute, path: str) -> ast.Call:
    call = source.parents[use]
    if not isinstance(call, ast.Call) or call.args != [use] or call.keywords:
        raise Refused(_ONLY_NEXT.format(path))
    if not isinstance(call.func, ast.Name) or call.func.id != "next":
        raise Refused(_ONLY_NEXT.format(path))
    return call


def _refuse_others(draft: Draft, uses: list[ast.Attribute], attr: str) -> None:
    """Raise Refused where something else than `uses` may be the same attribute."""
    known = {id(each) for each in uses}
    for placed in draft.context.document.placed:
        body = draft.source.tree.body if placed.chunk is draft.chunk else placed.chunk.body
        for statement in body:
            for each in ast.walk(statement):
                other = isinstance(each, ast.Attribute) and each.attr == attr and id(each) not in known
                if other or (isinstance(each, ast.Constant) and each.value == attr):
                    raise Refused(f"`{ast.unparse(each)}` may be the same iterator")


def _refuse_undecided(source: Source, call: ast.Call, statement: ast.stmt) -> None:
    """Raise Refused unless `statement` asks for the next number in any case, once, and before it does anything else that counts."""
    inner: ast.AST = call
    for outer in source.ancestors(call):
        if outer is statement:
            break
        later = (
            (isinstance(outer, ast.IfExp) and inner is not outer.test)
            or (isinstance(outer, ast.BoolOp) and inner is not outer.values[0])
            or (isinstance(outer, ast.Compare) and inner in outer.comparators[1:])
            or isinstance(outer, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp))
        )
        if later:
            raise Refused(f"`{ast.unparse(call)}` is not asked in any case, or more than once")
        inner = outer
    plain = isinstance(statement, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr)) or (
        isinstance(statement, ast.If) and inner is statement.test
    )
    above = source.parents[statement]
    elif_ = isinstance(statement, ast.If) and isinstance(above, ast.If) and above.orelse == [statement]
    if not plain or elif_ or not source.begins_line(statement):
        raise Refused(f"no statement that counts fits before the one that asks `{ast.unparse(call)}`")
