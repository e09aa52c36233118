"""Items of a list that tensor data chooses. Of layers, all compute, and the data chooses among what they gave; numbers are
chosen out of a tensor of them.

    layer = self.layers[t.argmax()]       chosen = t.argmax().reshape(1)
    y = layer(x)                    ->    y = torch.stack([each(x) for each in self.layers])[chosen].squeeze(0)

The layers must be made alike, or differ in sizes between their parts alone, so that what they give has one shape, and change
nothing: neither what they are given nor themselves, as batch normalization does. Numbers must be written out, so that they are
of one type.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from exportlens.finding import Fix, Refusal
from exportlens.inference import knowledge
from exportlens.inference.places import Conversion
from exportlens.inference.values import Tensor, options
from exportlens.rewriting.branches.around import refuse_caught_index
from exportlens.rewriting.branches.chosen_constants import number_of_dict, numbers_of_list
from exportlens.rewriting.branches.chosen_ways import one_way_for_each
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, every_name, fresh, reads
from exportlens.rewriting.code.precedence import primary
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.lists.counted_numbers import counted_in_tensor
from exportlens.rewriting.memory.helper_writes import puts_in
from exportlens.rewriting.memory.moving import has_option, writes

# Layers of torch.nn that change no state and give one tensor of their own (torch/nn/modules).
_PLAIN = frozenset(
    {
        *(
            "Linear",
            "Bilinear",
            "Conv1d",
            "Conv2d",
            "Conv3d",
            "Embedding",
            "LayerNorm",
            "GroupNorm",
            "RMSNorm",
        ),
        *("ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "PReLU"),
    }
)
# What may stand beside them in a Sequential.
_BESIDE = frozenset(
    {
        *("ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "ELU", "LeakyReLU", "Softplus", "Softmax", "LogSoftmax"),
        *("Dropout", "Dropout1d", "Dropout2d", "Flatten", "MaxPool1d", "MaxPool2d", "AvgPool1d", "AvgPool2d"),
        *("AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "Upsample", "Identity"),
    }
)
# Those that work on the last dimension or on each element, and leave the others as they are.
_OF_LAST = frozenset(
    {
        *("Linear", "LayerNorm", "RMSNorm", "ReLU", "GELU", "SiLU", "Tanh", "Sigmoid", "ELU", "LeakyReLU"),
        *("Softplus", "Dropout", "Identity"),
    }
)
_UNITS = ("ReLU", "SiLU", "ELU", "LeakyReLU")
_OF_NUMBERS = (
    "int",
    "float",
    "bool",
    "len",
    "max",
    "min",
    "round",
    "abs",
    "str",
    "tuple",
    "list",
    "range",
    "sum",
)
# Methods and functions that give several tensors.
_SEVERAL = frozenset(
    {
        *("max", "min", "sort", "topk", "median", "mode", "kthvalue", "aminmax", "cummax", "cummin"),
        *("split", "chunk", "unbind", "tensor_split", "unique", "var_mean", "std_mean", "nonzero"),
    }
)
_UNKNOWN = (
    "what the items are, and whether they can be stacked into one tensor, is not provable here: stack them in `__init__` "
    "and take `torch.index_select`, or use an embedding"
)


def choose_among_items(place: Conversion, context: RewriteContext) -> Fix | Refusal:
    """The choice among the results for the choice of a layer, that out of a tensor for that of a number."""
    try:
        draft = Draft.of(place, context)
        node = draft.source.find(place.node)
        refuse_caught_index(draft.source, node)
        number = number_of_dict(draft, node, place) if isinstance(node, ast.Call) else None
        if number is not None:
            return draft.replace("Choose out of a tensor", [draft.source.swap(node, number)])
        if not isinstance(node, ast.Subscript) or isinstance(node.slice, ast.Slice):
            raise Refused(_UNKNOWN)
        counted = counted_in_tensor(draft, node, place)
        if counted is not None:
            return counted
        if place.to == "key":
            return one_way_for_each(draft, node, place)
        if place.use == "array":
            raise Refused(_UNKNOWN)
        numbers = _numbers(draft, node) or numbers_of_list(draft, node, place)
        if numbers is not None:
            text = f"{numbers}[{_host_index(draft, node.slice, place)}].item()"
            return draft.replace("Choose out of a tensor", [draft.source.swap(node, text)])
        try:
            return _among_results(draft, node, place)
        except Refused:
            return one_way_for_each(draft, node, place)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


def _among_results(draft: Draft, node: ast.Subscript, place: Conversion) -> Fix:
    """All layers compute, and the data chooses among what they gave. Raises Refused."""
    index = _index(draft, node.slice, place)
    _Layers(draft, node.value).check()
    parent = draft.source.parents[node]
    if isinstance(parent, ast.Call) and parent.func is node:
        swaps = [_called(draft, node, parent, index)]
    elif isinstance(parent, ast.Assign) and [type(each) for each in parent.targets] == [ast.Name]:
        swaps = [_named(draft, node, parent, index)]
    else:
        raise Refused("the chosen layer is not called at once, nor given a name")
    return draft.replace("Choose among what all layers give", swaps)


def _index(draft: Draft, node: ast.expr, place: Conversion) -> str:
    """The text of an index tensor of one element."""
    text = draft.source.of(node)
    if all(isinstance(each, Tensor) for each in options(place.value)):
        known = {each.dtype for each in options(place.value) if isinstance(each, Tensor)}
        return f"{primary(text)}.reshape(1)" + ("" if known == {"int64"} else ".long()")
    return f"{draft.torch}.full((1,), {text})"


def _host_index(draft: Draft, node: ast.expr, place: Conversion) -> str:
    """The same, of the host's memory, in which the tensor of the numbers is: that of another device takes no index of it."""
    text = draft.source.of(node)
    if all(isinstance(each, Tensor) for each in options(place.value)):
        text = f"{primary(text)}.item()"
    return f"{draft.torch}.full((1,), {text})"


def _numbers(draft: Draft, node: ast.Subscript) -> str | None:
    """The text of the tensor of the numbers in a list; None where it is no list of ints, or of floats, that is written out."""
    owner, source = node.value, draft.source
    scope: ast.AST | None = source.tree
    if isinstance(owner, ast.Name):
        scope = source.enclosing_function(node)
    elif not (isinstance(owner, ast.Attribute) and ast.unparse(owner.value) == "self"):
        return None
    same = [
        each
        for each in (ast.walk(scope) if scope is not None else ())
        if isinstance(each, (ast.Name, ast.Attribute)) and ast.unparse(each) == ast.unparse(owner)
    ]
    stores = [each for each in same if not isinstance(each.ctx, ast.Load)]
    made = source.parents[stores[0]] if len(stores) == 1 else None
    value = made.value if isinstance(made, ast.Assign) and made.targets == stores else None
    if not stores and isinstance(owner, ast.Attribute):
        value = _of_class(draft, node, owner.attr)
    if not isinstance(value, (ast.List, ast.Tuple)):
        return None
    read = isinstance(value, ast.Tuple) or all(
        isinstance(parent := source.parents[each], ast.Subscript) and isinstance(parent.ctx, ast.Load)
        for each in same
        if each not in stores
    )
    types = {type(_number(each)) for each in value.elts}
    if not read or types not in ({int}, {float}):
        return None
    dtype = f", dtype={draft.torch}.float64" if types == {float} else ""
    return f"{draft.torch}.tensor({source.of(owner)}{dtype})"


def _of_class(draft: Draft, node: ast.expr, name: str) -> ast.expr | None:
    """The value of the class variable `name` of the class around `node`, where nothing else of the file binds that name."""
    owner = next((each for each in draft.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
    bodies = [draft.source.tree.body, *(chunk.body for chunk in draft.others())]
    stores = [
        each
        for body in bodies
        for statement in body
        for each in ast.walk(statement)
        if name == getattr(each, "id", getattr(each, "attr", None))
        and not isinstance(getattr(each, "ctx", None), ast.Load)
    ]
    made = [
        each.value
        for each in (owner.body if owner is not None else ())
        if isinstance(each, ast.Assign) and [ast.unparse(one) for one in each.targets] == [name]
    ]
    return made[0] if len(made) == len(stores) == 1 else None


def _number(node: ast.expr) -> int | float | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    known = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return node.value if known else None  # type: ignore[attr-defined]


def _chosen(draft: Draft, layers: ast.expr, given: str, index: str) -> str:
    name = fresh("each", every_name(draft.source.tree))
    results = f"[{name}({given}) for {name} in {draft.source.of(layers)}]"
    return f"{draft.torch}.stack({results})[{index}].squeeze(0)"


def _called(draft: Draft, node: ast.Subscript, call: ast.Call, index: str) -> Replacement:
    source = draft.source
    given = [*call.args, *(each.value for each in call.keywords)]
    if all(_is_repeatable(each) for each in given):
        texts = [source.of(each) for each in call.args]
        texts += [
            f"{each.arg}={source.of(each.value)}" if each.arg else source.of(each) for each in call.keywords
        ]
        return source.swap(call, _chosen(draft, node.value, ", ".join(texts), index))
    taken = every_name(source.tree)
    parameters = f"*{fresh('given', taken)}" + (f", **{fresh('named', taken)}" if call.keywords else "")
    start, end = source.end(node), source.end(call)
    chosen = _chosen(draft, node.value, parameters, index)
    return source.swap(call, f"(lambda {parameters}: {chosen}){source.text[start:end]}")


def _is_repeatable(node: ast.expr) -> bool:
    return not any(
        isinstance(each, (ast.Call, ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom))
        for each in ast.walk(node)
    )


def _named(draft: Draft, node: ast.Subscript, statement: ast.Assign, index: str) -> Replacement:
    """The layer that `statement` gives a name becomes a function, where it is called and nothing else."""
    source = draft.source
    function = source.enclosing_function(node)
    target = statement.targets[0]
    assert isinstance(target, ast.Name)
    if function is None:
        raise Refused("the layer is not chosen in a function")
    same = [each for each in ast.walk(function) if isinstance(each, ast.Name) and each.id == target.id]
    loads = [each for each in same if isinstance(each.ctx, ast.Load)]
    calls = [source.parents[each] for each in loads]
    if len(loads) != len(same) - 1 or not all(
        isinstance(call, ast.Call) and call.func is each for call, each in zip(calls, loads, strict=True)
    ):
        raise Refused(f"`{target.id}` is used for more than to be called")
    taken = every_name(source.tree)
    given, chosen = fresh("given", taken), fresh("chosen", taken)
    keywords = any(isinstance(call, ast.Call) and call.keywords for call in calls)
    named = f", **{fresh('named', taken)}" if keywords else ""
    result = _chosen(draft, node.value, f"*{given}{named}", chosen)
    if not isinstance(node.slice, (ast.Call, ast.BinOp)) and not index.startswith(f"{draft.torch}.full("):
        # What is written to that tensor later chooses nothing else.
        index += ".clone()"
    return source.swap(node, f"lambda *{given}, {chosen}={index}{named}: {result}")


class _Layers:
    """The list of layers that `node`, an attribute of the model, is."""

    def __init__(self, draft: Draft, node: ast.expr) -> None:
        self.draft, self.source, self.node = draft, draft.source, node

    def check(self) -> None:
        """Raise Refused unless the layers are made alike and change nothing."""
        made = list(self._made())
        texts = {ast.unparse(each) for each in made}
        if len(texts) != 1:
            raise Refused(_UNKNOWN)
        if not self._is_plain(made[0]):
            raise Refused(
                f"`{self.source.of(made[0])}` may write to what it is given, or change its own state: all layers would"
            )

    def _made(self) -> Iterator[ast.Call]:
        """The calls that make the layers."""
        if not (isinstance(self.node, ast.Attribute) and ast.unparse(self.node.value) == "self"):
            raise Refused(_UNKNOWN)
        uses = [
            each
            for each in ast.walk(self.source.tree)
            if isinstance(each, ast.Attribute) and each.attr == self.node.attr
        ]
        stores = [each for each in uses if not isinstance(each.ctx, ast.Load)]
        statement = self.source.parents[stores[0]] if len(stores) == 1 else None
        value = statement.value if isinstance(statement, ast.Assign) else None
        listed = isinstance(value, ast.Call) and self.draft.qualified(value.func) == "torch.nn.ModuleList"
        if not isinstance(value, ast.Call) or not listed or value.keywords or len(value.args) > 1:
            raise Refused(_UNKNOWN)
        for given in value.args:
            if isinstance(given, ast.List):
                yield from self._alike(given.elts, set())
            elif isinstance(given, (ast.ListComp, ast.GeneratorExp)):
                targets = {name for each in given.generators for name in _names(each.target)}
                yield from self._alike([given.elt], targets)
            else:
                raise Refused(_UNKNOWN)
        for each in uses:
            used = self.source.parents[each]
            if isinstance(used, ast.Subscript) and not isinstance(used.ctx, ast.Load):
                raise Refused(_UNKNOWN)
            if isinstance(used, ast.Attribute) and isinstance(each.ctx, ast.Load):
                call = self.source.parents[used]
                if used.attr != "append" or not isinstance(call, ast.Call):
                    raise Refused(_UNKNOWN)
                loops = [one for one in self.source.ancestors(call) if isinstance(one, ast.For)]
                yield from self._alike(call.args, {name for one in loops for name in _names(one.target)})

    def _alike(self, made: list[ast.expr], counters: set[str]) -> Iterator[ast.Call]:
        for each in made:
            counted = isinstance(each, ast.Call) and bool(reads(each) & counters)
            if not isinstance(each, ast.Call) or (counted and not self._is_counted_inside(each, counters)):
                raise Refused(_UNKNOWN)
            if self._varies(each, counters):
                raise Refused(_UNKNOWN)
            yield each

    def _is_counted_inside(self, made: ast.Call, counters: set[str]) -> bool:
        """Whether `counters` change nothing but sizes between the layers of `made`: all take the same, and give one shape.

        Its layers leave all dimensions but the last as they are, and the last is what the last Linear says.
        """
        if self.draft.qualified(made.func) != "torch.nn.Sequential" or made.keywords:
            return False
        linear: list[ast.Call] = []
        for each in made.args:
            name = (
                self.draft.qualified(each.func).removeprefix("torch.nn.")
                if isinstance(each, ast.Call)
                else ""
            )
            if name not in _OF_LAST or not isinstance(each, ast.Call):
                return False
            linear += [each] if name == "Linear" else []
            if not linear and reads(each) & counters:
                # What it takes would be of another size in each.
                return False
        if not linear or len(linear[0].args) < 1 or len(linear[-1].args) < 2:
            return False
        behind = made.args[made.args.index(linear[-1]) + 1 :]
        said = [*linear[-1].args[1:], *(each.value for each in linear[-1].keywords)]
        return not reads([linear[0].args[0], *said, *behind]) & counters

    def _varies(self, made: ast.Call, counters: set[str]) -> bool:
        """Whether a name or an attribute that `made` reads may be another value the next time, or what it calls gives one."""
        function = self.source.enclosing_function(made)
        scope: ast.AST = function or self.source.tree
        read = {ast.unparse(each) for each in ast.walk(made) if isinstance(each, (ast.Name, ast.Attribute))}
        read -= counters
        stores = [
            each
            for each in ast.walk(scope)
            if isinstance(each, (ast.Name, ast.Attribute))
            and not isinstance(each.ctx, ast.Load)
            and ast.unparse(each) in read
        ]
        in_loop = any(
            isinstance(one, (ast.For, ast.While, ast.comprehension))
            for each in stores
            for one in self.source.ancestors(each)
        )
        names = [ast.unparse(each) for each in stores]
        if function is not None:
            names += [each.arg for each in arguments(function.args) if each.arg in read]
        calls = [each for each in ast.walk(made) if isinstance(each, ast.Call)]
        return in_loop or len(set(names)) < len(names) or not all(map(self._makes_same, calls))

    def _makes_same(self, call: ast.Call) -> bool:
        """Whether `call` makes a layer, or is a plain function of numbers."""
        name = self.draft.qualified(call.func)
        return (
            name.startswith("torch.nn.") or name in _OF_NUMBERS or len(list(_classes(self.draft, name))) == 1
        )

    def _is_plain(self, node: ast.expr, beside: bool = False) -> bool:
        if not isinstance(node, ast.Call) or any(each.arg in (None, "inplace") for each in node.keywords):
            return False
        home, _, name = self.draft.qualified(node.func).rpartition(".")
        if home == "torch.nn":
            if name == "Sequential":
                return (
                    bool(node.args)
                    and all(self._is_plain(each, True) for each in node.args)
                    and any(self._is_plain(each) for each in node.args)
                )
            # `ReLU(True)` and `Dropout(0.1, True)` write in place.
            numbers = (isinstance(each, ast.Constant) and each.value is not True for each in node.args)
            in_place = name.startswith(("Dropout", *_UNITS)) and not all(numbers)
            return (name in _PLAIN or (beside and name in _BESIDE)) and not in_place
        given = [*node.args, *(each.value for each in node.keywords)]
        handed = any(
            isinstance(each, (ast.Name, ast.Attribute)) and self.draft.qualified(each).startswith("torch.nn.")
            for one in given
            for each in ast.walk(one)
        )
        return home == "" and not handed and self._is_plain_class(name)

    def _is_plain_class(self, name: str) -> bool:
        """Whether the class `name` of the file makes plain layers only, and writes nothing when it is called."""
        classes = list(_classes(self.draft, name))
        if len(classes) != 1:
            return False
        [cls] = classes
        if [self.draft.qualified(each) for each in cls.bases] != ["torch.nn.Module"]:
            return False
        for method in cls.body:
            if isinstance(method, ast.Expr) and isinstance(method.value, ast.Constant):
                continue
            if not isinstance(method, ast.FunctionDef) or method.decorator_list:
                return False
            if method.name == "__init__":
                calls = (each for each in ast.walk(method) if isinstance(each, ast.Call))
                if not all(map(self._is_known, calls)):
                    return False
            elif not self._is_pure(method) or not all(
                self._calls_known(each, cls) for each in ast.walk(method)
            ):
                return False
        return True

    def _is_known(self, call: ast.Call) -> bool:
        """Whether a call of a constructor makes a plain layer, or nothing that is called later."""
        name = self.draft.qualified(call.func)
        if self._is_of_torch(call) or list(_classes(self.draft, name)):
            return self._is_plain(call, True)
        # Of what is called by the name of a parameter nothing is known.
        return isinstance(call.func, ast.Attribute) or name in _OF_NUMBERS or name == "super"

    def _calls_known(self, node: ast.AST, cls: ast.ClassDef) -> bool:
        """Whether what `node` calls, where it calls anything, writes nothing: what the constructor made, a method that is
        looked at as well, or torch's."""
        if not isinstance(node, ast.Call):
            return True
        name, called = self.draft.qualified(node.func), node.func
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "self":
            methods = {each.name for each in cls.body if isinstance(each, ast.FunctionDef)}
            made = [
                each.value
                for each in ast.walk(cls)
                if isinstance(each, ast.Assign) and ast.unparse(called) in map(ast.unparse, each.targets)
            ]
            return called.attr in methods or (
                bool(made)
                and all(
                    isinstance(each, ast.Call)
                    and (self._is_of_torch(each) or bool(list(_classes(self.draft, ast.unparse(each.func)))))
                    for each in made
                )
            )
        op = knowledge.lookup_function(name)
        if op is not None:
            return not op.mutates or (bool(op.mutates_when) and not has_option(node))
        return isinstance(called, ast.Attribute) or name in _OF_NUMBERS

    def _is_of_torch(self, node: ast.Call) -> bool:
        name = self.draft.qualified(node.func)
        return (
            name.startswith("torch.nn.")
            and name.rpartition(".")[2][:1].isupper()
            and not name.endswith("Parameter")
        )

    def _is_pure(self, method: ast.FunctionDef) -> bool:
        ends = [each.value for each in ast.walk(method) if isinstance(each, ast.Return)]
        stored = any(
            (isinstance(each, (ast.Attribute, ast.Subscript)) and not isinstance(each.ctx, ast.Load))
            or puts_in(each).startswith("self.")
            for each in ast.walk(method)
        )
        result = all(isinstance(each, (ast.Call, ast.BinOp, ast.Name)) for each in ends)
        named = {each.id for each in ends if isinstance(each, ast.Name)}
        values = [
            each.value
            for each in ast.walk(method)
            if isinstance(each, ast.Assign)
            and any(isinstance(one, ast.Name) and one.id in named for one in each.targets)
        ]
        if any(map(_is_of_several, [*ends, *values])):
            return False
        return result and bool(ends) and not stored and not writes(method.body)


def _is_of_several(node: ast.expr | None) -> bool:
    """Whether `node` is certainly, or maybe, no one tensor."""
    if isinstance(node, ast.Call):
        return (getattr(node.func, "attr", None) or getattr(node.func, "id", "")) in _SEVERAL
    return isinstance(node, (ast.Tuple, ast.List, ast.Dict, ast.ListComp, ast.DictComp))


def _classes(draft: Draft, name: str) -> Iterator[ast.ClassDef]:
    """The classes of the file by that name."""
    for placed in draft.context.document.placed:
        for each in placed.chunk.body:
            if isinstance(each, ast.ClassDef) and each.name == name:
                yield each


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
