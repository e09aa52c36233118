"""Whether the file says by itself how many items a list has, or which keys a dict: what a constructor or a function is given
may be more."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

from exportlens.rewriting.code.draft import Draft
from exportlens.rewriting.code.liveness import exits
from exportlens.rewriting.code.names import arguments, bound, dotted
from exportlens.source.walking import walk

_MAKERS = frozenset(
    {
        *("torch.nn.ModuleList", "torch.nn.ModuleDict", "torch.nn.ParameterList", "torch.nn.ParameterDict"),
        *("list", "tuple", "dict", "range", "len", "zip", "enumerate", "reversed", "sorted"),
    }
)
_ADDING = frozenset({"append", "add_module"})
_GROWING = _ADDING | {"insert", "extend", "update", "setdefault"}
_SHRINKING = frozenset({"pop", "clear", "remove", "popitem"})


class Written:
    """What the file says of what is read at the node `read`."""

    def __init__(self, draft: Draft, read: ast.AST) -> None:
        self.draft, self.source = draft, draft.source
        self.read = read
        self.asked: set[str] = set()

    def has_all(self, node: ast.expr) -> bool:
        """Whether all items of `node`, an expression that makes a list, a dict, a range or the like, are written."""
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return all(not isinstance(each, ast.Starred) or self.has_all(each.value) for each in node.elts)
        if isinstance(node, ast.Dict):
            return all(constant(each) is not None for each in node.keys)
        if isinstance(node, ast.Constant):
            return True
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.DictComp)):
            return all(self.has_all(each.iter) and not each.ifs for each in node.generators)
        if isinstance(node, ast.Call):
            return self._is_made(node)
        if isinstance(node, ast.BinOp):
            return self.has_all(node.left) and self.has_all(node.right)
        path = dotted(node)
        if path is None or path in self.asked:
            return False
        self.asked.add(path)
        if isinstance(node, ast.Name):
            return self._is_name(node)
        return path.startswith("self.") and path.count(".") == 1 and self._is_attribute(path)

    def grows(self, node: ast.expr) -> bool:
        """Whether something is appended to it."""
        return any(True for _ in _growing(list(walk(self.source.tree)), ast.unparse(node)))

    def _is_made(self, call: ast.Call) -> bool:
        name = self.draft.qualified(call.func)
        if name == "torch.nn.Sequential":
            return not call.keywords and not any(isinstance(each, ast.Starred) for each in call.args)
        func = call.func
        method = isinstance(func, ast.Attribute) and func.attr in ("items", "keys", "values")
        given = [*call.args, *([func.value] if method and isinstance(func, ast.Attribute) else [])]
        return (name in _MAKERS or method) and not call.keywords and all(map(self.has_all, given))

    def _is_name(self, node: ast.Name) -> bool:
        """Whether `node` is a local name of one list, or the file's name of one."""
        function = self.source.enclosing_function(node)
        if function is not None:
            if node.id in {each.arg for each in arguments(function.args)}:
                return False
            if node.id in bound(function.body):
                return self._is_once(walk(function), node.id)
        trees = [each for placed in self.draft.context.document.placed for each in placed.chunk.body]
        nodes = [each for tree in trees for each in walk(tree)]
        values = [
            each.value
            for each in trees
            if isinstance(each, (ast.Assign, ast.AnnAssign)) and node.id in bound(each)
        ]
        if len(values) != 1 or len(stores_of(nodes, node.id)) != 1 or _changes(nodes, node.id):
            return False
        [value] = values
        return isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.Constant)) and self.has_all(value)

    def _is_attribute(self, path: str) -> bool:
        """Whether `path` is an attribute of the model that one constructor of the file sets."""
        attr = path.removeprefix("self.")
        others = [each for chunk in Draft.others(self.draft) for one in chunk.body for each in walk(one)]
        if any(
            isinstance(each, ast.Attribute) and each.attr == attr and not isinstance(each.ctx, ast.Load)
            for each in others
        ):
            return False
        return self._is_once(walk(self.source.tree), path) or self._is_of_class(attr)

    def _is_of_class(self, attr: str) -> bool:
        """Whether `attr` is a list that the class itself has, and no other class of the file."""
        trees = [each for placed in self.draft.context.document.placed for each in placed.chunk.body]
        nodes = [each for tree in trees for each in walk(tree)]
        if any(
            isinstance(each, ast.Attribute) and each.attr == attr and not isinstance(each.ctx, ast.Load)
            for each in nodes
        ):
            return False
        owner = next(
            (each for each in self.source.ancestors(self.read) if isinstance(each, ast.ClassDef)), None
        )
        made = [
            (each, one)
            for each in nodes
            if isinstance(each, ast.ClassDef)
            for one in each.body
            if isinstance(one, (ast.Assign, ast.AnnAssign)) and attr in bound(one)
        ]
        if owner is None or len(made) != 1 or made[0][0].name != owner.name:
            return False
        value = made[0][1].value
        changed = any(_changes(nodes, f"{head}.{attr}") for head in ("self", "cls", owner.name))
        return isinstance(value, (ast.List, ast.Tuple, ast.Dict)) and self.has_all(value) and not changed

    def _is_once(self, nodes: Iterable[ast.AST], path: str) -> bool:
        """Whether `path` is bound once, to what is written, and grows by what is written alone."""
        known = list(nodes)
        stores = stores_of(known, path)
        statement = self.source.parents.get(stores[0]) if len(stores) == 1 else None
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or statement.value is None:
            return False
        if not self.has_all(statement.value) or not self._runs_as_written(statement):
            return False
        grown = all(self._runs_as_written(each) and self._is_before(each) for each in _growing(known, path))
        return grown and not _changes(known, path, _ADDING)

    def _is_before(self, grows: ast.AST) -> bool:
        """Whether a list has grown by `grows` for the last time when the item is read."""
        function = self.source.enclosing_function(self.read)
        if self.source.enclosing_function(grows) is not function:
            return True
        around = [each for each in self.source.ancestors(self.read) if isinstance(each, (ast.For, ast.While))]
        shared = any(each in around for each in self.source.ancestors(grows))
        return not shared and self.source.end(grows) < self.source.start(self.read)

    def _runs_as_written(self, node: ast.AST) -> bool:
        """Whether `node` runs as often as the file says."""
        for each in self.source.ancestors(node):
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return True
            if isinstance(each, (ast.If, ast.While, ast.Try)):
                return False
            if isinstance(each, ast.For) and (exits(each.body) != {"falls"} or not self.has_all(each.iter)):
                return False
        return True


def constant(node: ast.expr | None) -> int | str | None:
    """The number or text that is written as a key."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        positive = constant(node.operand)
        return -positive if isinstance(positive, int) else None
    if not isinstance(node, ast.Constant):
        return None
    return node.value if isinstance(node.value, (int, str)) and type(node.value) is not bool else None


def stores_of(nodes: Sequence[ast.AST], path: str) -> list[ast.AST]:
    """Those of `nodes` that bind the name or attribute `path`."""
    return [
        each
        for each in nodes
        if isinstance(each, (ast.Name, ast.Attribute))
        and not isinstance(each.ctx, ast.Load)
        and dotted(each) == path
    ]


def _growing(nodes: Sequence[ast.AST], path: str) -> Iterator[ast.Call]:
    for each in nodes:
        func = each.func if isinstance(each, ast.Call) else None
        grows = isinstance(func, ast.Attribute) and func.attr in _GROWING and dotted(func.value) == path
        if grows and isinstance(each, ast.Call):
            yield each


def _changes(nodes: Sequence[ast.AST], path: str, but: frozenset[str] = frozenset()) -> bool:
    """Whether other items are put in or taken out than by the methods `but`."""
    for each in nodes:
        if isinstance(each, ast.Attribute) and dotted(each.value) == path:
            changes = each.attr in (_GROWING | _SHRINKING) - but
        else:
            stored = isinstance(each, ast.Subscript) and not isinstance(each.ctx, ast.Load)
            changes = stored and isinstance(each, ast.Subscript) and dotted(each.value) == path
        if changes:
            return True
    return False
