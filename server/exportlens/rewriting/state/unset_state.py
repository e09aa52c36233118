"""State that the first call does not find: attributes that are None or missing until a call sets them, and lists and dicts
whose items come call by call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from exportlens.rewriting.code.names import arguments, assigned_pairs, dotted, is_none
from exportlens.rewriting.code.text import Function
from exportlens.rewriting.state.plain_writes import named_write
from exportlens.source.walking import walk

# None; no such attribute; an empty list or dict; one whose items are None; something that calls bind anew.
How = Literal["none", "missing", "empty", "items", "held"]

ADDING = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault"})
_CONTAINERS = frozenset({"list", "dict", "deque", "OrderedDict", "set"})


class KeptState:
    """What objects of the class `cls` keep from call to call, as it and its bases of the file (`classes`) tell; with `named`, what
    `setattr` sets by a name counts, too."""

    def __init__(self, cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef], named: bool = False) -> None:
        self.cls, self.classes, self.named = cls, classes, named
        self.order = _order(cls, classes)
        self.methods: dict[str, ast.FunctionDef] = {}
        for one in reversed(self.order):
            self.methods |= {each.name: each for each in one.body if isinstance(each, ast.FunctionDef)}
        names = [(dotted(base) or "").rpartition(".")[2] for one in self.order for base in one.bases]
        self.is_module = "Module" in names
        # Whether all that may give an attribute is in the file.
        self.is_known = all(name in classes or name in ("Module", "object") for name in names)
        constructors = [
            each
            for one in self.order
            for each in one.body
            if isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__post_init__")
        ]
        self.constructors = self._led_to(constructors)
        entries = [self.methods["forward"]] if "forward" in self.methods else list(self.methods.values())
        self.traced = self._led_to([each for each in entries if each not in constructors])
        self._found: dict[str, How | None] = {}

    def unset(self, attr: str) -> How | None:
        """How the first call may find the attribute; None where it is there, or where no call sets it."""
        if attr not in self._found:
            self._found[attr] = self._unset(attr)
        return self._found[attr]

    def is_renewed(self, attr: str) -> bool:
        """Whether the constructor makes what calls bind anew or write in place: no number, and no flag."""
        begins = [value for _, value in self._begins(attr)]
        plain = any(value is None or isinstance(value, ast.Constant) for value in begins)
        if not begins or plain:
            return False
        return self._is_set_by_calls(attr) or any(
            writes_whole(each, f"self.{attr}") for method in self._later() for each in walk(method)
        )

    def class_of(self, attr: str) -> ast.ClassDef | None:
        """The class of the file that the object in `self.attr` is made of."""
        made = [value for _, value in self._begins(attr)]
        call = made[0] if len(made) == 1 else None
        return self.classes.get(dotted(call.func) or "") if isinstance(call, ast.Call) else None

    def _unset(self, attr: str) -> How | None:
        begins = self._begins(attr)
        hows = {_begun(value, method) for method, value in begins}
        if not begins and self._may_be_given(attr):
            return None
        how = hows.pop() if len(hows) == 1 else None if begins else "missing"
        if how in ("none", "missing"):
            return how if self._is_set_by_calls(attr) else None
        filled = how is not None and any(_fills(each, attr) for each in self._later())
        return how if filled and not any(_fills(each, attr) for each in self.constructors) else None

    def _begins(self, attr: str) -> list[tuple[Function | None, ast.expr | None]]:
        """What the constructor sets the attribute to, and in which method; what the class says where it sets none."""
        path = f"self.{attr}"
        found: list[tuple[Function | None, ast.expr | None]] = []
        for method in self.constructors:
            for each in walk(method):
                found += [(method, value) for target, value in stored(each) if dotted(target) == path]
                if isinstance(each, ast.Call) and _names(each) == attr and len(each.args) > 1:
                    found.append((method, each.args[1]))
        if found:
            return found
        return [
            (None, value)
            for one in self.order
            for each in one.body
            for target, value in stored(each)
            if dotted(target) == attr
        ]

    def _may_be_given(self, attr: str) -> bool:
        """Whether an attribute that the constructor does not set may be there all the same."""
        named = any(
            isinstance(each, ast.Call) and dotted(each.func) in ("setattr", "self.__dict__.update")
            for method in self.constructors
            for each in walk(method)
        )
        special = {"__getattr__", "__getattribute__", "__setattr__"} & set(self.methods)
        return not (self.is_module and self.is_known) or named or bool(special) or attr in self.methods

    def _is_set_by_calls(self, attr: str) -> bool:
        if self.named and any(may_set(each, attr) for method in self._later() for each in walk(method)):
            return True
        return any(
            isinstance(target, ast.Attribute) and target.attr == attr and not is_none(value)
            for method in self._later()
            for each in walk(method)
            for target, value in stored(each)
        )

    def _later(self) -> Iterable[ast.AST]:
        """What runs in a call of the model: of an object that is no Module, all of the file may."""
        if self.is_module:
            return self.traced
        return [
            each
            for one in self.classes.values()
            for each in one.body
            if isinstance(each, ast.FunctionDef) and each not in self.constructors
        ]

    def _led_to(self, methods: list[ast.FunctionDef]) -> list[ast.FunctionDef]:
        """The methods that `methods` lead to, themselves included."""
        found = list(methods)
        for method in found:
            for each in walk(method):
                path = dotted(each) if isinstance(each, ast.Attribute) else None
                if path is not None and path.startswith("self.") and path.count(".") == 1:
                    other = self.methods.get(path.removeprefix("self."))
                    if other is not None and other not in found:
                        found.append(other)
        return found


def stored(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """The targets that an assignment sets one by one, each with its value where that is written out."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target, value in assigned_pairs(node):
            if isinstance(target, (ast.Tuple, ast.List)):
                yield from ((each, None) for each in target.elts)
            else:
                yield target, value


def may_set(statement: ast.AST, attr: str) -> bool:
    """Whether `statement` sets an attribute by its name, which is `attr` or is put together."""
    found = named_write(statement)
    return found is not None and dotted(found.owner) == "self" and found.attr in (attr, None)


def writes_whole(node: ast.AST, path: str) -> bool:
    """Whether `node` writes all of the tensor that the attribute holds: `self.last.copy_(x)`."""
    func = node.func if isinstance(node, ast.Call) else None
    return isinstance(func, ast.Attribute) and func.attr == "copy_" and dotted(func.value) == path


def _order(cls: ast.ClassDef, classes: Mapping[str, ast.ClassDef]) -> list[ast.ClassDef]:
    found = [cls]
    for one in found:
        bases = [classes.get(dotted(each) or "") for each in one.bases]
        found += [each for each in bases if each is not None and each not in found]
    return found


def _begun(value: ast.expr | None, method: Function | None) -> How | None:
    """How the attribute that begins with `value` is not set yet; None where it is."""
    if value is None:
        return None
    if isinstance(value, ast.Name) and method is not None:
        value = _default(method, value.id)
    if is_none(value):
        return "none"
    if isinstance(value, ast.List) or (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult)):
        items = value.elts if isinstance(value, ast.List) else _repeated(value)
        return (
            None if items is None else "empty" if not items else "items" if any(map(is_none, items)) else None
        )
    if isinstance(value, ast.Dict):
        return "empty" if not value.keys else "items" if any(map(is_none, value.values)) else None
    if isinstance(value, (ast.ListComp, ast.DictComp)):
        item = value.elt if isinstance(value, ast.ListComp) else value.value
        return "items" if is_none(item) else None
    return _made(value) if isinstance(value, ast.Call) else None


def _made(call: ast.Call) -> How | None:
    """As `_begun`, of what a call makes."""
    name = dotted(call.func) or ""
    if name == "dict.fromkeys":
        return "items" if len(call.args) == 1 or is_none(call.args[1]) else None
    if name.rpartition(".")[2] in _CONTAINERS:
        if call.args:
            return _begun(call.args[0], None)
        given = [each for each in call.keywords if each.arg != "maxlen"]
        return "empty" if not given else "items" if any(is_none(each.value) for each in given) else None
    factory = next((dotted(each.value) for each in call.keywords if each.arg == "default_factory"), None)
    return "empty" if name.rpartition(".")[2] == "field" and factory in _CONTAINERS else None


def _repeated(value: ast.BinOp) -> list[ast.expr] | None:
    return next((each.elts for each in (value.left, value.right) if isinstance(each, ast.List)), None)


def _default(method: Function, name: str) -> ast.expr | None:
    """What the parameter is where nobody gives it."""
    args = method.args
    named = [*args.posonlyargs, *args.args]
    pairs = [
        *zip(named[::-1], args.defaults[::-1], strict=False),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    return next((default for each, default in pairs if each.arg == name), None)


def _names(call: ast.Call) -> str | None:
    """The attribute that a call registers or sets by its name, in the order (name, value) of its last two arguments."""
    if dotted(call.func) not in ("self.register_buffer", "self.register_parameter"):
        return None
    first = call.args[0] if call.args else None
    return str(first.value) if isinstance(first, ast.Constant) else None


def _fills(method: ast.AST, attr: str) -> bool:
    """Whether `method` puts something into the list or dict, also under a name of its own for it."""
    names = {f"self.{attr}"}
    for each in walk(method):
        for target, value in stored(each):
            if (
                value is not None
                and (dotted(value) or "").rpartition(".")[2] == attr
                and isinstance(target, ast.Name)
            ):
                names.add(target.id)
    for each in walk(method):
        for target, value in stored(each):
            if (
                isinstance(target, ast.Subscript)
                and _is_one_of(target.value, names, attr)
                and not is_none(value)
            ):
                return True
        func = each.func if isinstance(each, ast.Call) else None
        if isinstance(func, ast.Attribute) and func.attr in ADDING and _is_one_of(func.value, names, attr):
            return True
    return False


def _is_one_of(node: ast.expr, names: set[str], attr: str) -> bool:
    path = dotted(node) or ""
    return path in names or (path.count(".") > 1 and path.rpartition(".")[2] == attr)


def parameters(function: Function) -> list[str]:
    """The names by which `function` takes what it is given by position, `self` included."""
    return [each.arg for each in arguments(function.args)]
