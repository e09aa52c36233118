"""Tuples, lists and dicts of tensors that a Module binds to an attribute anew, as attributes of their own, which can become buffers.

    self.state = (torch.zeros(4), torch.zeros(4))        self.state_h = torch.zeros(4)
    ...                                                  self.state_c = torch.zeros(4)
    h, c = self.state                             ->     ...
    ...                                                  h, c = self.state_h, self.state_c
    self.state = (h * 2, c + x)                          ...
                                                         self.state_h = h * 2
                                                         self.state_c = c + x

A state that is None until the first call is None in each of them.
"""

from __future__ import annotations

import ast

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import AttributeWrite, ContainerWrite
from exportlens.inference.values import Sequence, options
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import dotted, fresh
from exportlens.rewriting.code.text import Replacement
from exportlens.rewriting.state.own_attributes import module_of, uses_of
from exportlens.rewriting.state.registrations import refuse_before_module
from exportlens.rewriting.state.traced_methods import led_to

_Key = str | int
# Of more items the attributes would read worse than what holds them.
_MOST_ITEMS = 8
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def taken_apart(place: AttributeWrite | ContainerWrite, context: RewriteContext) -> Fix | Refusal:
    """The fix that keeps each part of what the attribute is bound to in an attribute of its own."""
    try:
        _, draft, cls, base = module_of(place, context)
        given = place.value if isinstance(place, AttributeWrite) else None
        known = [each for each in ([] if given is None else options(given)) if isinstance(each, Sequence)]
        counts = {len(each.items) if each.items is not None and not each.fields else None for each in known}
        sorts = {each.kind for each in known}
        whole = _Whole(
            draft,
            cls,
            place.attr,
            counts.pop() if len(counts) == 1 else None,
            sorts.pop() if len(sorts) == 1 else "",
        )
        swaps = whole.swaps()
        message = f"Keep each part of `self.{place.attr}` in an attribute of its own"
        made = draft.replace(message, [*base, *swaps], Applicability.UNSAFE, uses_torch=bool(base))
        return base.joined(made)
    except (Refused, LookupError, SyntaxError) as refused:
        return Refusal(str(refused))


class _Whole:
    """One attribute: what the class binds it to, and how it reads it. `count` is how many parts it is known to have, a "tuple" or "list"
    as `sort` says."""

    def __init__(self, draft: Draft, cls: ast.ClassDef, attr: str, count: int | None, sort: str) -> None:
        self.draft, self.source, self.cls, self.attr, self.count = draft, draft.source, cls, attr, count
        self.path = f"self.{attr}"
        self.kind, self.sort = "", sort
        self.keys: list[_Key] = []
        self.names: dict[_Key, str] = {}
        self.none = False
        # The statements that set others beside the attribute, and its place among those.
        self.beside: dict[ast.Assign, ast.Attribute] = {}

    def swaps(self) -> list[Replacement]:
        uses = uses_of(self.draft, self.cls, self.attr)
        stores = [self._store(each) for each in uses if not isinstance(each.ctx, ast.Load)]
        self._learn(stores)
        swaps, written = [], list[ast.AST]()
        for each in stores:
            alone = self._begun_apart(each)
            written.append(each if alone is None else self.source.parents[each])
            swaps.append(self.source.swap(written[-1], alone or self._written(each)))
        inside = {id(one) for each in written for one in ast.walk(each)}
        for use in uses:
            if isinstance(use.ctx, ast.Load) and id(use) not in inside:
                swaps.append(self._read(use))
        # What reads the attribute in an `update` is written with it.
        return [
            each
            for each in swaps
            if not any(
                one is not each and one.start <= each.start and each.end <= one.end and len(one.text)
                for one in swaps
            )
        ]

    def _store(self, target: ast.Attribute) -> ast.Assign:
        statement = around = self.source.parents[target]
        if isinstance(around, ast.Tuple):
            # `out, self.state = self.layer(x, self.state)`
            statement = self.source.parents[around]
        if (
            not isinstance(statement, ast.Assign)
            or statement.targets not in ([target], [around])
            or not self.source.begins_line(statement)
        ):
            raise Refused(f"`{self.path}` is set in another way than by a statement of its own")
        if around is not statement:
            self.beside[statement] = target
        return statement

    def _learn(self, stores: list[ast.Assign]) -> None:
        """What the attribute is bound to, and what its parts are called. Raises Refused."""
        begins = [each for each in stores if self._function(each).name == "__init__"]
        if begins or not self._is_begun_outside(stores):
            if len(begins) != 1 or begins[0] not in self._function(begins[0]).body:
                raise Refused(f"`{self.path}` is not made once in `__init__`")
            refuse_before_module(self.source, begins[0])
        kinds: set[tuple[str, tuple[_Key, ...]]] = set()
        for each in stores:
            if each in self.beside:
                continue
            if isinstance(each.value, ast.Constant) and each.value.value is None:
                self.none = True
                continue
            parts = _parts(each.value)
            if parts is not None:
                kinds.add((_kind(each.value), tuple(parts)))
        if not kinds and self.count and self.sort in ("tuple", "list"):
            kinds.add((self.sort, tuple(range(self.count))))
        if len(kinds) != 1:
            raise Refused(f"`{self.path}` is not bound to the same parts wherever they are written out")
        self.kind, keys = kinds.pop()
        self.keys = list(keys)
        if not 1 < len(self.keys) <= _MOST_ITEMS:
            raise Refused(f"`{self.path}` holds one part, or many: keep them in one tensor")
        taken = {each.attr for each in ast.walk(self.cls) if isinstance(each, ast.Attribute)}
        taken |= {each.name for each in self.cls.body if isinstance(each, ast.FunctionDef)}
        told = self._told_names()
        for key in self.keys:
            wish = told.get(key, str(key))
            self.names[key] = fresh(f"{self.attr}_{wish if wish.isidentifier() else key}", taken)
            if not self.names[key].isidentifier():
                raise Refused(f"`{self.path}[{key!r}]` has no name that an attribute may have")

    def _is_begun_outside(self, stores: list[ast.Assign]) -> bool:
        """Whether a method that the call does not lead to makes it, as `reset` does before the model runs."""
        called = led_to(self.cls, ("forward",))
        return any(self._function(each).name not in called for each in stores)

    def _told_names(self) -> dict[_Key, str]:
        """What the code calls the parts: `h, c = self.state`, `self.state = (h, c)`."""
        for each in ast.walk(self.cls):
            if self.kind == "dict" or not isinstance(each, ast.Assign) or len(each.targets) != 1:
                continue
            names = [each.targets[0], each.value]
            if dotted(names[1]) != self.path:
                names.reverse()
            if dotted(names[1]) == self.path and isinstance(names[0], (ast.Tuple, ast.List)):
                texts = [one.id.strip("_") for one in names[0].elts if isinstance(one, ast.Name)]
                if len(texts) == len(names[0].elts) == len(self.keys) == len({*texts} - {""}):
                    return dict(zip(self.keys, texts, strict=True))
        return {}

    def _function(self, node: ast.AST) -> ast.FunctionDef | ast.AsyncFunctionDef:
        found = self.source.enclosing_function(node)
        if found is None or found not in self.cls.body:
            raise Refused(f"`{self.path}` is used outside of the methods of its class")
        return found

    def _written(self, statement: ast.Assign) -> str:
        value = statement.value
        between = self.source.newline + self.source.indent_of(statement)
        if statement in self.beside:
            return self._written_beside(statement, between)
        if isinstance(value, ast.Constant):
            return between.join(f"self.{self.names[key]} = None" for key in self.keys)
        parts = _parts(value)
        if parts is None:
            parts = self._of_each(value)
        if parts is not None:
            texts = {key: self._text(part) for key, part in parts.items()}
            if not any(self._looks(part) for part in [*parts.values()][1:]):
                return between.join(f"self.{self.names[key]} = {texts[key]}" for key in self.keys)
            given = ", ".join(texts[key] for key in self.keys)
        elif self.kind == "dict" or self.count != len(self.keys):
            raise Refused(f"`{ast.unparse(statement)}` does not write out what it binds")
        else:
            given = self._text(value)
        function = self._function(statement)
        again = any(
            dotted(target) == self.path and each.lineno < statement.lineno
            for each in ast.walk(function)
            if isinstance(each, ast.Assign)
            for target in each.targets
        )
        if again and self._looks(value):
            raise Refused(f"`{ast.unparse(statement)}` binds anew what the call has just bound")
        taken = self.draft.taken(self.source.tree)
        names = [fresh(self.names[key], taken) for key in self.keys]
        lines = [f"{', '.join(names)} = {given}"]
        lines += [f"self.{self.names[key]} = {name}" for key, name in zip(self.keys, names, strict=True)]
        return between.join(lines)

    def _written_beside(self, statement: ast.Assign, between: str) -> str:
        """`out, self.state = layer(x, self.state)`, where names take the parts first."""
        if self.kind == "dict" or self.count != len(self.keys):
            raise Refused(f"`{ast.unparse(statement)}` does not write out what it binds")
        taken = self.draft.taken(self.source.tree)
        names = [fresh(self.names[key], taken) for key in self.keys]
        target = self.beside[statement]
        reads = [
            self._read(each)
            for each in ast.walk(statement.value)
            if isinstance(each, ast.Attribute) and dotted(each) == self.path
        ]
        swaps = [self.source.swap(target, f"({', '.join(names)})"), *reads]
        lines = [self.source.of(statement, swaps)]
        lines += [f"self.{self.names[key]} = {name}" for key, name in zip(self.keys, names, strict=True)]
        return between.join(lines)

    def _begun_apart(self, store: ast.Assign) -> str | None:
        """`if self.state is None: self.state = (a, b)` as a question for each part, where that is all that is done there."""
        around, parts = self.source.parents[store], _parts(store.value)
        if (
            store in self.beside
            or not isinstance(around, ast.If)
            or around.body != [store]
            or around.orelse
            or ast.unparse(around.test) != f"{self.path} is None"
            or parts is None
            or "#" in self.source.of(around)
            or not self.source.of(around).startswith("if ")
            or any(map(self._looks, parts.values()))
        ):
            return None
        inner = self.source.newline + self.source.indent_of(store)
        lines = [
            f"if self.{self.names[key]} is None:{inner}self.{self.names[key]} = {self._text(part)}"
            for key, part in parts.items()
        ]
        return (self.source.newline + self.source.indent_of(around)).join(lines)

    def _of_each(self, value: ast.expr) -> dict[_Key, ast.expr] | None:
        """The parts of `{k: v.detach() for k, v in self.state.items()}` and `tuple(v.detach() for v in self.state)`, each with its own
        name in the place of `v`."""
        if isinstance(value, ast.Call) and dotted(value.func) == self.kind and len(value.args) == 1:
            value = value.args[0]
        if (
            not isinstance(value, (ast.DictComp, ast.GeneratorExp, ast.ListComp))
            or len(value.generators) != 1
        ):
            return None
        part = value.generators[0]
        bound = part.target.elts if isinstance(part.target, ast.Tuple) else [part.target]
        made = value.value if isinstance(value, ast.DictComp) else value.elt
        names = [each.id for each in bound if isinstance(each, ast.Name)]
        if (
            part.ifs
            or len(names) < len(bound)
            or any(isinstance(each, (ast.Lambda, ast.comprehension)) for each in ast.walk(made))
        ):
            return None
        if isinstance(value, ast.DictComp):
            own = isinstance(value.key, ast.Name) and [value.key.id] == names[:1]
            if not own or len(names) != 2 or ast.unparse(part.iter) != f"{self.path}.items()":
                return None
        elif self.kind == "dict" or len(names) != 1 or ast.unparse(part.iter) != self.path:
            return None
        found: dict[_Key, ast.expr] = {}
        for each in self.keys:
            put = dict(zip(names, [repr(each), f"{self.path}[{each!r}]"][-len(names) :], strict=True))
            found[each] = _Renamed(put).visit(ast.parse(ast.unparse(made), mode="eval").body)
        return found

    def _text(self, node: ast.expr) -> str:
        """The text of `node`, with the parts in the places of what holds them."""
        if node not in self.source.parents:
            # Put together here.
            return ast.unparse(_Attributes(self.path, self.names).visit(node))
        if dotted(node) == self.path:
            raise Refused(f"`{self.path}` is bound to itself")
        inside = [
            each for each in ast.walk(node) if isinstance(each, ast.Attribute) and dotted(each) == self.path
        ]
        return self.source.of(node, [self._read(each) for each in inside])

    def _looks(self, node: ast.expr) -> bool:
        """Whether `node` reads the attribute, or runs a method of the class that may."""
        methods = {each.name for each in self.cls.body if isinstance(each, _FUNCTIONS)}
        called = {each.func for each in ast.walk(node) if isinstance(each, ast.Call)}
        return any(
            isinstance(each, ast.Attribute)
            and (dotted(each) == self.path or (each in called and each.attr in methods))
            for each in ast.walk(node)
        )

    def _read(self, use: ast.Attribute) -> Replacement:
        self._function(use)
        parent = self.source.parents[use]
        if isinstance(parent, ast.Compare) and len(parent.ops) == 1 and parent.left is use:
            other = parent.comparators[0]
            if isinstance(other, ast.Constant) and other.value is None:
                return self.source.swap(use, f"self.{self.names[self.keys[0]]}")
        if isinstance(parent, ast.Attribute) and parent.attr == "update" and self.kind == "dict":
            return self._updated(use, parent)
        around = self.source.parents.get(parent)
        set_alone = isinstance(around, ast.AugAssign) or (
            isinstance(around, ast.Assign) and around.targets == [parent]
        )
        if (
            isinstance(parent, ast.Subscript)
            and parent.value is use
            and (isinstance(parent.ctx, ast.Load) or (isinstance(parent.ctx, ast.Store) and set_alone))
        ):
            key = _index(parent.slice)
            if isinstance(key, int) and self.kind != "dict" and key < 0:
                key += len(self.keys)
            if key in self.names and type(key) is type(self.keys[0]):
                return self.source.swap(parent, f"self.{self.names[key]}")
        unpacked = (
            isinstance(parent, ast.Assign)
            and parent.value is use
            and all(isinstance(each, (ast.Tuple, ast.List)) for each in parent.targets)
        )
        if self.kind == "dict" or (self.kind == "list" and not unpacked):
            raise Refused(f"`{ast.unparse(parent)}` reads `{self.path}` as a whole")
        if isinstance(parent, (ast.Attribute, ast.Subscript, ast.Compare, ast.BoolOp, ast.UnaryOp)) or (
            isinstance(parent, (ast.If, ast.While, ast.IfExp)) and parent.test is use
        ):
            raise Refused(f"`{ast.unparse(parent)[:60]}` asks for the whole of `{self.path}`")
        if self.none and not unpacked and not self._has_begun(use):
            raise Refused(f"`{ast.unparse(parent)[:60]}` may read `{self.path}` while it is None")
        text = ", ".join(f"self.{self.names[key]}" for key in self.keys)
        return self.source.swap(use, text if unpacked else f"({text})")

    def _updated(self, use: ast.Attribute, method: ast.Attribute) -> Replacement:
        """`self.state.update(h=h, c=c)` as a statement for each."""
        call = self.source.parents[method]
        statement = self.source.parents.get(call)
        if not isinstance(call, ast.Call) or call.func is not method or not isinstance(statement, ast.Expr):
            raise Refused(f"`{ast.unparse(method)}` reads `{self.path}` as a whole")
        named = ast.Call(ast.Name("dict", ast.Load()), [], call.keywords)
        parts = _parts(call.args[0] if len(call.args) == 1 and not call.keywords else named)
        if call.args and call.keywords:
            parts = None
        if (
            parts is None
            or not set(parts) <= set(self.keys)
            or not self.source.begins_line(statement)
            or any(map(self._looks, [*parts.values()][1:]))
        ):
            raise Refused(f"`{ast.unparse(statement)}` does not write out what it sets")
        between = self.source.newline + self.source.indent_of(statement)
        text = between.join(f"self.{self.names[key]} = {self._text(part)}" for key, part in parts.items())
        return self.source.swap(statement, text)

    def _has_begun(self, use: ast.Attribute) -> bool:
        """Whether the function has bound the attribute where it was None, before it comes to `use`."""
        function = self._function(use)
        asked = f"{self.path} is None"
        bound = [
            each
            for each in function.body
            if isinstance(each, ast.Assign)
            and (each.end_lineno or 0) < use.lineno
            and [dotted(target) for target in each.targets] == [self.path]
        ]
        if bound and not isinstance(bound[-1].value, ast.Constant):
            return True
        return any(
            isinstance(each, ast.If)
            and (each.end_lineno or 0) < use.lineno
            and ast.unparse(each.test) == asked
            and any(
                isinstance(one, ast.Assign)
                and [dotted(target) for target in one.targets] == [self.path]
                and not isinstance(one.value, ast.Constant)
                for one in each.body
            )
            for each in function.body
        ) or any(
            isinstance(each, ast.If)
            and ast.unparse(each.test) == f"{self.path} is not None"
            and any(use in ast.walk(one) for one in each.body)
            for each in self.source.ancestors(use)
        )


class _Renamed(ast.NodeTransformer):
    """Puts expressions in the places of names."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.parse(self.names[node.id], mode="eval").body if node.id in self.names else node


class _Attributes(ast.NodeTransformer):
    """Puts the attributes in the places of items: `self.state['h']`."""

    def __init__(self, path: str, names: dict[_Key, str]) -> None:
        self.path, self.names = path, names

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        key = _index(node.slice)
        if dotted(node.value) == self.path and key in self.names:
            return ast.parse(f"self.{self.names[key]}", mode="eval").body
        self.generic_visit(node)
        return node


def _kind(value: ast.expr) -> str:
    return "tuple" if isinstance(value, ast.Tuple) else "list" if isinstance(value, ast.List) else "dict"


def _parts(value: ast.expr) -> dict[_Key, ast.expr] | None:
    """The parts of a tuple, list or dict that is written out."""
    if isinstance(value, (ast.Tuple, ast.List)):
        plain = not any(isinstance(each, ast.Starred) for each in value.elts)
        return dict(enumerate(value.elts)) if plain else None
    if isinstance(value, ast.Dict):
        keys = [None if each is None else _index(each) for each in value.keys]
        if len({*keys}) < len(keys) or not all(isinstance(each, str) for each in keys):
            return None
        return {str(key): each for key, each in zip(keys, value.values, strict=True)}
    called = isinstance(value, ast.Call) and dotted(value.func) == "dict" and not value.args
    named = value.keywords if called and isinstance(value, ast.Call) else []
    return (
        {str(each.arg): each.value for each in named} if named and all(each.arg for each in named) else None
    )


def _index(node: ast.expr) -> _Key | None:
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
    ):
        value = node.operand.value
        return -value if type(value) is int else None
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, (str, int)) and not isinstance(value, bool) else None
