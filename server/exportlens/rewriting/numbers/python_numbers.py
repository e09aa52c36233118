"""`int(t)` and `float(t)` of tensor data: `.item()` gives the same number, and one that the program keeps."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.legacy import TENSOR_TYPES
from exportlens.inference.places import Call, Conversion, Truth
from exportlens.inference.values import Const, Sequence, Shape, Static, Tensor, TensorScalar, Value
from exportlens.rewriting.arms.numbers_read_again import is_read_again
from exportlens.rewriting.branches.around import refuse_caught_index
from exportlens.rewriting.code.callers import given_to
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.imports import import_edit, spelled
from exportlens.rewriting.code.names import arguments, dotted, every_name, fresh
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.kind import element_of
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.rewriting.kinds.supposed_parts import stems_from
from exportlens.rewriting.memory.effects import kinds_before
from exportlens.rewriting.numbers.bounded_tensors import bounded, refuse_mixed
from exportlens.rewriting.numbers.products import product_of
from exportlens.rewriting.numbers.replacing import importing_math, replaced_number
from exportlens.rewriting.numbers.tables import converted, stacked_table


def item_for_number(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`int(t)` -> `t.item()` (through `.long()` where `t` is not known to be of integers), `float(t)` ->
    `t.item()`."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        refuse_caught_index(draft.source, node)
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1):
            raise Refused("the conversion is not a plain call")
        inner, value = node.args[0], place.value
        dtype = value.dtype if isinstance(value, Tensor) else None
        if node.func.id == "complex":
            raise Refused("`complex()` has no symbolic counterpart")
        if node.func.id == "int" and (product := product_of(draft, place, node, inner)) is not None:
            return product
        either = place.use == "either"
        tensor = isinstance(value, Tensor)
        if isinstance(inner, ast.Name) and (either or _may_be_number(draft, node, inner.id, tensor)):
            return _of_either(draft, node, inner.id)
        if either:
            raise Refused(f"`{draft.source.of(inner)}` may be a number already: give it a name first")
        if isinstance(value, Shape):
            if node.func.id == "int" and value.type != "int":
                return _truncated(draft, node, inner)
            # A float stays one: beside integers it decides the dtype.
            number = draft.source.of(inner)
            text = f"{primary(number)} * 1.0" if node.func.id == "float" else number
            return replaced_number(draft, node, text, Applicability.SAFE)
        if isinstance(value, TensorScalar):
            if value.by_numpy:
                # NumPy's ints have no counterpart of what `math.trunc` asks for, and torch makes tensors of its floats that are doubles.
                raise Refused(f"`{draft.source.of(inner)}` is NumPy's: compute it with torch first")
            if value.type == node.func.id:
                return replaced_number(draft, node, draft.source.of(inner), Applicability.SAFE)
            if not is_item(inner) and value.type == "bool":
                # Python asks a truth value which it is before it counts it.
                given = "1, 0" if node.func.id == "int" else "1.0, 0.0"
                text = f"{draft.torch}.sym_ite({draft.source.of(inner)}, {given})"
                return replaced_number(draft, node, text, Applicability.SAFE)
            if not is_item(inner) and node.func.id == "int" and value.type in ("float", ""):
                return _truncated(draft, node, inner)
            if not is_item(inner) and node.func.id == "float" and value.type in ("int", ""):
                # As of a size: the number stays one that the program keeps, and one that is a float stays as it is.
                return replaced_number(
                    draft, node, f"{primary(draft.source.of(inner))} * 1.0", Applicability.SAFE
                )
            if not is_item(inner):
                raise Refused(
                    f"`{draft.source.of(inner)}` is a Python number already: convert before `.item()`"
                )
            assert isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute)
            inner = inner.func.value
        elif not isinstance(value, Tensor):
            raise Refused(f"`{draft.source.of(inner)}` is not known to be a tensor")
        text = primary(draft.source.of(inner))
        if isinstance(inner, ast.Name) and inner.id in draft.supposed:
            # It may be a number of Python after all.
            if node.func.id == "float" and _is_divided(draft.source, node):
                raise Refused(
                    "tracing answers what is asked of the rest of a float with the rest of whole numbers (torch 2.13): `x % 1.0` is 0 to it. "
                    f"Say by an annotation that `{inner.id}` is a tensor"
                )
            text = f"{draft.torch}.as_tensor({text})"
        elif isinstance(value, Tensor) and stems_from(
            draft.source.enclosing_function(node), inner, draft.supposed
        ):
            # A double, as what is computed with a float of Python.
            dtype = dtype if (dtype or "").startswith("int") else "float64"
            double = "" if dtype != "float64" else f", dtype={draft.torch}.float64"
            text = f"{draft.torch}.as_tensor({draft.source.of(inner)}{double})"
        around, path = draft.source.enclosing_function(node), dotted(inner)
        if around is not None and path is not None and is_read_again(draft.source, around, node, path):
            text += ".clone()"
        # int() cuts towards zero as .long() does, but raises for nan and inf; float() of a float tensor is its item.
        applicability = Applicability.SAFE
        if node.func.id == "int":
            whole = dtype is not None and dtype.startswith(("int", "uint"))
            text += ".item()" if whole else ".long().item()"
            if not whole and dtype != "bool":
                applicability = Applicability.UNSAFE
        elif node.func.id == "float" and _is_divided(draft.source, node):
            # Of the rest of a symbol that is a float torch 2.13 answers what it would of whole numbers: `x % 1.0` is 0 to it.
            rest = draft.source.parents[node]
            assert isinstance(rest, ast.BinOp)
            text = f"{draft.torch}.remainder({text}.double(), {draft.source.of(rest.right)}).item()"
            return replaced_number(draft, rest, text, Applicability.UNSAFE)
        elif node.func.id == "float":
            text += (
                ".item()"
                if dtype is not None and dtype.startswith(("float", "bfloat"))
                else ".double().item()"
            )
        else:
            raise Refused(f"`{node.func.id}()` has no symbolic counterpart")
        return replaced_number(draft, node, text, applicability)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _is_divided(source: Source, node: ast.expr) -> bool:
    """Whether the rest of `node` by another number is taken."""
    parent = source.parents.get(node)
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mod) and parent.left is node


def _may_be_number(draft: Draft, node: ast.expr, name: str, tensor: bool) -> bool:
    """Whether `name` is a parameter of a function that a known call may give a number of Python; where it was a `tensor` in one call,
    also whether it is an item of a list of numbers in another."""
    function = draft.source.enclosing_function(node)
    if function is None:
        return False
    listed = _gone_through(draft.source, node, name) if tensor else None
    parameter = next((each for each in arguments(function.args) if each.arg == (listed or name)), None)
    if parameter is None or (
        parameter.annotation is not None and ast.unparse(parameter.annotation).endswith("Tensor")
    ):
        return False
    given = given_to(draft.source, function, parameter.arg, draft.kinds({}))
    if listed is not None:
        given = [element_of(each) for each in given]
    return any(each.what in ("scalar", "size", "number") for each in given)


def _gone_through(source: Source, node: ast.expr, name: str) -> str | None:
    """The name of what a loop or a comprehension around `node` takes `name` out of."""
    for outer in source.ancestors(node):
        rounds = [outer] if isinstance(outer, ast.For) else getattr(outer, "generators", [])
        for each in rounds:
            if isinstance(each.target, ast.Name) and each.target.id == name:
                return each.iter.id if isinstance(each.iter, ast.Name) else None
        if isinstance(outer, ast.FunctionDef):
            break
    return None


def _of_either(draft: Draft, node: ast.Call, name: str) -> Fix:
    """`int(n)` of what some calls give as a tensor, and others as a number."""
    assert isinstance(node.func, ast.Name)
    if node.func.id == "int":
        item, number = f"{name}.long().item()", f"{spelled(draft.modules, 'math') or 'math'}.trunc({name})"
    else:
        item, number = f"{name}.double().item()", f"{name} * 1.0"
    text = f"{item} if isinstance({name}, {draft.torch}.Tensor) else {number}"
    parent = draft.source.parents.get(node)
    if not isinstance(parent, (ast.Assign, ast.Return)) and not (
        isinstance(parent, ast.Call) and parent.func is not node
    ):
        text = f"({text})"
    fix = draft.replace("Ask whether it is a tensor", [draft.source.swap(node, text)])
    return importing_math(draft, fix) if node.func.id == "int" else fix


def _truncated(draft: Draft, node: ast.Call, inner: ast.expr) -> Fix:
    """`int(n * 0.5)` -> `math.trunc(n * 0.5)`: the same number, which stays symbolic in both modes."""
    text = f"{spelled(draft.modules, 'math') or 'math'}.trunc({draft.source.of(inner)})"
    return importing_math(draft, replaced_number(draft, node, text, Applicability.SAFE))


def is_item(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "item"


def quotient_and_rest(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`divmod(a, b)` -> `(a // b, a % b)`, for arguments that may be evaluated twice."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        if not isinstance(node, ast.Call) or len(node.args) != 2 or node.keywords:
            raise Refused("the call is not of two arguments")
        source, swaps, texts = draft.source, [], []
        statement = source.enclosing_statement(node)
        whole = (
            isinstance(statement, ast.Assign) and statement.value is node and source.begins_line(statement)
        )
        for given in node.args:
            if isinstance(given, ast.Constant) or not any(map(_may_do_more, ast.walk(given))):
                texts.append(
                    source.of(given) if isinstance(given, ast.Constant) else primary(source.of(given))
                )
            elif whole and given is node.args[0] and not isinstance(given, ast.Starred):
                name = fresh("number", every_name(source.tree))
                line = f"{name} = {source.of(given)}{source.newline}{source.indent_of(statement)}"
                swaps.append(Replacement(source.start(statement), source.start(statement), line))
                texts.append(name)
            else:
                raise Refused(
                    "an argument is computed by a call: give its result a name, then write `a // b, a % b`"
                )
        left, right = texts
        swaps.append(source.swap(node, f"({left} // {right}, {left} % {right})"))
        return draft.replace("Use `//` and `%`", swaps, Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _may_do_more(node: ast.AST) -> bool:
    """Whether evaluating `node` once more may do something, or take long: a call, unless it asks for a size."""
    if isinstance(node, ast.Call):
        return not (
            isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel", "dim", "nelement")
        )
    return isinstance(node, (ast.Starred, ast.NamedExpr, ast.Await))


def symbolic_extreme(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`max(a, b)` of floats from data -> `torch.sym_max(a, b)`, which gives a float where any of them is one."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or node.keywords:
            raise Refused("the call has keywords")
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise Refused("the call takes its numbers from a list")
        kinds = draft.kinds(place.variables)
        statement = source.enclosing_statement(node)
        function = source.enclosing_function(statement)
        if function is not None:
            kinds = kinds_before(function, statement, kinds)
        if len(node.args) < 2:
            return _extreme_of_list(draft, place, node, kinds)
        types = [_number_type(each, kinds) for each in node.args]
        if sum(not isinstance(each, ast.Constant) for each in node.args) == 1 and "" in types:
            # It is the float that was read out of data.
            types[types.index("")] = "float"
        if set(types) != {"float"} and not only_in_quotients(draft.source, node):
            raise Refused(
                "the call may give an int or a float, and `torch.sym_max` and `torch.sym_min` always give the float: "
                "write all of its numbers as floats"
            )
        name = f"{draft.torch}.sym_{place.use}"
        text = source.of(node.args[0])
        for each in node.args[1:]:
            text = f"{name}({text}, {source.of(each)})"
        return draft.replace(f"Use `{name}`", [source.swap(node, text)], Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _extreme_of_list(draft: Draft, place: Conversion, node: ast.Call, kinds: Kinds) -> Fix:
    """`max(scores)` of a list of floats -> `functools.reduce(torch.sym_max, scores)`; of `t.tolist()` -> `t.max().item()`."""
    listed = node.args[0]
    if isinstance(listed, ast.Call) and getattr(listed.func, "attr", "") == "tolist" and not listed.args:
        assert isinstance(listed.func, ast.Attribute)
        # A list of lists is computed with and compared in no such way: it is one of numbers.
        single = isinstance(draft.source.parents[node], (ast.BinOp, ast.Compare, ast.UnaryOp, ast.AugAssign))
        if single and kinds.of(listed.func.value).what == "tensor":
            text = f"{primary(draft.source.of(listed.func.value))}.{place.use}().item()"
            return draft.replace(f"Use `.{place.use}`", [draft.source.swap(node, text)], uses_torch=False)
    known = kinds.of(node.args[0]).value
    items = known.items if isinstance(known, Sequence) else None
    if not items or any(_python_type(each) != "float" for each in items):
        raise Refused("the call takes its numbers from a list, and not all of them are known to be floats")
    functools = spelled(draft.modules, "functools")
    text = (
        f"{functools or 'functools'}.reduce({draft.torch}.sym_{place.use}, {draft.source.of(node.args[0])})"
    )
    fix = draft.replace(
        f"Use `{draft.torch}.sym_{place.use}`", [draft.source.swap(node, text)], Applicability.SAFE
    )
    if functools is not None:
        return fix
    return replace(fix, edits=(import_edit(draft.context.document, "import functools"), *fix.edits))


def largest_by_torch(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`max(n, 1)` of sizes -> `torch.sym_max(n, 1)`, which gives an int for ints, and a float where any of them is one."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or node.keywords:
            raise Refused("the call has keywords")
        numbers = node.args
        if len(numbers) == 1 and isinstance(numbers[0], (ast.List, ast.Tuple)):
            numbers = numbers[0].elts
        if len(numbers) < 2 or any(isinstance(each, ast.Starred) for each in numbers):
            raise Refused("the call does not say its numbers one by one")
        values = place.args if numbers is node.args else getattr(place.args[0], "items", None) or ()
        types = {_python_type(each) for each in values}
        if (len(types) > 1 or "" in types) and not only_in_quotients(source, node):
            raise Refused("the call may give an int or a float, and `torch.sym_max` always gives the float")
        text = source.of(numbers[0])
        for each in numbers[1:]:
            text = f"{draft.torch}.sym_max({text}, {source.of(each)})"
        return draft.replace(f"Use `{draft.torch}.sym_max`", [source.swap(node, text)], Applicability.SAFE)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _python_type(value: Value) -> str:
    """ "int" or "float", empty where that is not certain."""
    if isinstance(value, Const):
        return type(value.value).__name__
    return value.type if isinstance(value, (Shape, Static, TensorScalar)) else ""


def extreme_of_pairs(place: Truth, context: RewriteContext) -> Fix | Refusal:
    """`max(a, b, c)` of tensors -> `max(max(a, b), c)`, which compares the same ones in the same order."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or node.keywords:
            raise Refused("the call has keywords")
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise Refused("the call takes its tensors from a list")
        name, text = source.of(node.func), source.of(node.args[0])
        for each in node.args[1:]:
            text = f"{name}({text}, {source.of(each)})"
        return draft.replace("Compare two at a time", [source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


# What may stand between a tensor and its `.item()` without choosing an item.
_CASTS = frozenset({"long", "int", "double", "float", "cpu", "detach", "item"})


def extreme_of_tensor(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """`max(t)` -> `t.max(0).values`, or `t.max()` where a number is made of the result."""
    try:
        draft = Draft.of(place, context)
        source, node = draft.source, draft.source.find(place.node)
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            raise Refused("the call has keywords, or several arguments")
        # Python compares the rows, which have one item each, or there is one row: both give what the first dimension does.
        owner = primary(source.of(node.args[0]))
        text = f"{owner}.{place.use}()" if _becomes_number(source, node) else f"{owner}.{place.use}(0).values"
        return draft.replace(f"Use `.{place.use}`", [source.swap(node, text)], uses_torch=False)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _becomes_number(source: Source, node: ast.expr) -> bool:
    parent = source.parents[node]
    if isinstance(parent, ast.Call):
        return (
            isinstance(parent.func, ast.Name) and parent.func.id in ("int", "float") and len(parent.args) == 1
        )
    while isinstance(parent, ast.Attribute) and parent.attr in _CASTS:
        call = source.parents[parent]
        if not isinstance(call, ast.Call) or call.args or call.keywords:
            return False
        if parent.attr == "item":
            return True
        parent = source.parents[call]
    return False


def _number_type(node: ast.expr, kinds: Kinds) -> str:
    """ "int" or "float", empty where that is not certain."""
    if isinstance(node, ast.Constant):
        return type(node.value).__name__
    if isinstance(node, ast.BinOp):
        sides = {_number_type(node.left, kinds), _number_type(node.right, kinds)}
        if isinstance(node.op, ast.Div) or "float" in sides:
            return "float"
    return kinds.of(node).type if kinds.of(node).what in ("scalar", "number", "size") else ""


def only_in_quotients(source: Source, node: ast.expr) -> bool:
    """Whether the number is only divided by, or divided, where an int does what the equal float does."""
    parent = source.parents[node]
    if (
        isinstance(parent, ast.Assign)
        and len(parent.targets) == 1
        and isinstance(parent.targets[0], ast.Name)
    ):
        name, function = parent.targets[0].id, source.enclosing_function(parent)
        same = [
            each
            for each in ast.walk(function or source.tree)
            if isinstance(each, ast.Name) and each.id == name
        ]
        loads = [each for each in same if isinstance(each.ctx, ast.Load)]
        return len(loads) == len(same) - 1 and all(_is_in_quotient(source, each) for each in loads)
    return _is_in_quotient(source, node)


def _is_in_quotient(source: Source, node: ast.expr) -> bool:
    parent = source.parents[node]
    return isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Div)


def stack_for_tensor(place: Call, context: RewriteContext) -> Fix | Refusal:
    """`torch.tensor([a, b])` of tensors -> `torch.stack([a, b]).detach()`: the same values, and no gradient as before."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        given = place.argument(0, "data")
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            raise Refused("the tensors are not written as a list in the call")
        if isinstance(given, (TensorScalar, Shape)) or _holds_numbers(given):
            return _of_numbers(draft, node, place.name)
        if isinstance(node.args[0], (ast.Name, ast.ListComp)) and isinstance(given, Sequence):
            return _stacked_list(draft, node, node.args[0], given, place.name)
        if not isinstance(node.args[0], (ast.List, ast.Tuple)):
            raise Refused("the tensors are not written as a list in the call")
        if not isinstance(given, Sequence) or given.items is None:
            raise Refused("what the list holds is not known")
        row, inner = node.args[0].elts[0] if len(node.args[0].elts) == 1 else None, given.items[:1]
        if isinstance(row, ast.ListComp) and isinstance(inner[0], Sequence):
            return _stacked_list(draft, node, row, inner[0], place.name, "1, -1")
        others = _others(draft, node, place.name)
        refuse_mixed(draft, node.args[0])
        text = stacked_table(draft, node, node.args[0], given, others)
        return draft.replace("Use `torch.stack`", [draft.source.swap(node, text)])
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _holds_numbers(given: Value | None) -> bool:
    """Whether it is a list of numbers, however long it is."""
    if not isinstance(given, Sequence) or given.type_name == "torch.Size":
        return False
    items = list(given.items) if given.items is not None else [given.element]
    return bool(items) and all(isinstance(each, (TensorScalar, Const, Shape)) for each in items)


def _of_numbers(draft: Draft, node: ast.Call, name: str) -> Fix:
    """`torch.FloatTensor([t.item(), 1.0])` -> `torch.tensor([t.item(), 1.0], dtype=torch.float32)`; `x.new(lengths)`
    -> `torch.tensor(lengths, dtype=x.dtype, device=x.device)`; `torch.as_tensor` and `torch.asarray` of numbers are `torch.tensor`."""
    if name in ("torch.as_tensor", "torch.asarray") and {each.arg for each in node.keywords} <= {
        "dtype",
        "device",
    }:
        swap = draft.source.swap(node.func, f"{draft.torch}.tensor")
        return draft.replace(f"Use `{draft.torch}.tensor`", [swap], Applicability.SAFE)
    if node.keywords:
        raise Refused("the numbers are given with keywords")
    module, _, function = name.rpartition(".")
    dtype = TENSOR_TYPES.get(function) if module == "torch" else None
    owner = draft.source.of(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    if dtype is not None:
        others = f"dtype={draft.torch}.{dtype}"
    elif module == "torch.Tensor" and isinstance(node.func, ast.Attribute) and dotted(node.func.value):
        others = f"dtype={owner}.dtype, device={owner}.device"
    else:
        raise Refused("`torch.tensor` takes the same numbers as they are, in a dtype that is for you to say")
    end = draft.source.end(node.args[0])
    swaps = [draft.source.swap(node.func, f"{draft.torch}.tensor"), Replacement(end, end, f", {others}")]
    return draft.replace(f"Use `{draft.torch}.tensor`", swaps, Applicability.SAFE)


def _stacked_list(
    draft: Draft, node: ast.Call, data: ast.expr, given: Sequence, constructor: str, shape: str = "-1"
) -> Fix:
    """`torch.tensor(values)` of a list of tensors that has a name, or gets one in the line before, and may be empty.

    In `torch.tensor([values])`, the list is the only row.
    """
    source = draft.source
    items = list(given.items) if given.items is not None else [given.element]
    if not items or not all(isinstance(each, Tensor) for each in items):
        raise Refused(f"`{source.of(data)}` is not known to hold tensors alone")
    dtypes = {each.dtype for each in items if isinstance(each, Tensor)}
    if len(dtypes) > 1:
        raise Refused("the tensors are not known to have one dtype")
    swaps = []
    name = source.of(data)
    if isinstance(data, ast.Name):
        refuse_mixed(draft, data)
    else:
        statement = source.enclosing_statement(node)
        around = itertools.takewhile(lambda each: each is not statement, source.ancestors(node))
        if (
            not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr))
            or not source.begins_line(statement)
            or any(isinstance(each, _NOT_ALWAYS_RUN) for each in around)
        ):
            raise Refused(
                "the call does not run whenever its statement does: bind the list to a name before it"
            )
        taken = draft.taken(source.tree)
        name = next(each for each in map("values{}".format, ("", *range(2, 100))) if each not in taken)
        start = source.start(statement)
        values = source.of(data, bounded(draft, data))
        line = f"{name} = {values}{source.newline}{source.indent_of(statement)}"
        swaps.append(Replacement(start, start, line))
    # Each has one item, or the code before raised.
    others = _others(draft, node, constructor)
    text = f"{draft.torch}.stack({name}).reshape({shape}).detach(){converted(dtypes, others)}"
    if given.items is None:
        rest = "".join(f", {key}={value}" for key, value in others.items())
        text = f"{text} if {name} else {draft.torch}.empty({shape.replace('-1', '0')}{rest})"
        if not isinstance(source.parents[node], (ast.Assign, ast.Return)):
            text = f"({text})"
    return draft.replace("Use `torch.stack`", [*swaps, source.swap(node, text)])


_NOT_ALWAYS_RUN = (
    ast.IfExp,
    ast.BoolOp,
    ast.Lambda,
    ast.ListComp,
    ast.GeneratorExp,
    ast.SetComp,
    ast.DictComp,
)


def _others(draft: Draft, node: ast.Call, constructor: str) -> dict[str, str]:
    """The dtype and device that a call asks for: `torch.FloatTensor` has its dtype in its name."""
    named = {str(key.arg): draft.source.of(key.value) for key in node.keywords}
    if set(named) - {"dtype", "device"}:
        raise Refused(f"`{min(key for key in set(named) - {'dtype', 'device'})}` has no counterpart")
    short = constructor.rpartition(".")[2]
    if short == "Tensor":
        named["dtype"] = f"{draft.torch}.get_default_dtype()"
    elif short in TENSOR_TYPES:
        named["dtype"] = f"{draft.torch}.{TENSOR_TYPES[short]}"
    return named
