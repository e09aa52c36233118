"""What is the same in each call of a method: numbers that are written there, that the constructor sets, and sizes of tensors.

Measured on torch 2.13: a size that a method under `torch.compiler.assume_constant_result` is given is checked by the program, which
raises for another one, and an export with that dimension dynamic fails. Neither mode gives a program that is wrong.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from exportlens.rewriting.code.draft import Draft, Refused
from exportlens.rewriting.code.names import arguments, bound, dotted, fresh
from exportlens.rewriting.code.text import Replacement, Source
from exportlens.rewriting.kinds.class_constants import class_constant

if TYPE_CHECKING:
    from exportlens.rewriting.kinds.kinds import Kinds

MAKERS = ("random.Random", "numpy.random.RandomState", "numpy.random.default_rng")
TO_PYTHON = frozenset({"int", "float", "bool"})
TO_TORCH = frozenset({"torch.from_numpy", "torch.tensor", "torch.as_tensor"})
_OF_NUMBERS = frozenset({"range", "len", "min", "max", "list", "tuple", "round", "abs", "numpy.arange"})
_OPEN = (
    ast.Constant,
    ast.Tuple,
    ast.List,
    ast.BinOp,
    ast.UnaryOp,
    ast.Slice,
    ast.Subscript,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
)
# What gives a tensor another shape where it lies.
_RESHAPES = frozenset(
    {"resize_", "resize_as_", "t_", "squeeze_", "unsqueeze_", "transpose_", "swapaxes_", "swapdims_", "set_", "detach_"}
)  # fmt: skip


class SameNumbers(ABC):
    """The expressions of `function` that are known to be the same in each call, where the statement `begin` of it stands."""

    draft: Draft
    source: Source
    function: ast.FunctionDef
    cls: ast.ClassDef
    begin: ast.stmt
    maker: ast.Call
    block: list[ast.stmt]
    kinds: Kinds
    # The parameters of the method that is made, and what it is given for each.
    params: dict[str, str]
    # The sizes that a parameter stands for.
    sizes: list[Replacement]
    # The statements that the method holds as well.
    copied: list[ast.Assign]

    @abstractmethod
    def is_draw(self, node: ast.AST) -> bool:
        """Whether `node` asks the generator for something."""

    def refuse_open(self, node: ast.AST, besides: ast.AST | None = None) -> None:
        """Raise Refused where `node`, but for the part `besides`, holds anything else than numbers that the constructor sets, and
        that local names have before the generator is made."""
        if node is besides:
            return
        if isinstance(node, ast.expr) and self._is_size(node):
            return
        if isinstance(node, (ast.Name, ast.Attribute)):
            self._refuse_open_name(node)
            return
        if isinstance(node, ast.Call):
            method = self.is_draw(node) or (
                isinstance(node.func, ast.Attribute) and besides is not None and node.func.value is besides
            )
            known = self.draft.qualified(node.func) in {*MAKERS, *TO_TORCH, *TO_PYTHON, *_OF_NUMBERS}
            here = (dotted(node.func) or "").partition(".")[0] in bound(self.function.body)
            if not method and (not known or here):
                raise Refused(f"what `{self.source.of(node)}` gives is not known to be the same in each call")
            for each in (*node.args, *(key.value for key in node.keywords)):
                self.refuse_open(each, besides)
            return
        if isinstance(node, ast.ListComp) and self._only_counts(node):
            self.refuse_open(node.generators[0].iter)
            return
        if not isinstance(node, _OPEN):
            raise Refused(f"`{self.source.of(node)}` is not known to be the same in each call")
        for child in ast.iter_child_nodes(node):
            self.refuse_open(child, besides)

    @staticmethod
    def _only_counts(node: ast.ListComp) -> bool:
        """Whether `node` lists what it goes through: `[i for i in range(n)]`."""
        first = node.generators[0]
        same = isinstance(node.elt, ast.Name) and isinstance(first.target, ast.Name)
        return (
            same and len(node.generators) == 1 and not first.ifs and dotted(first.target) == dotted(node.elt)
        )

    def _is_size(self, node: ast.expr) -> bool:
        """Whether `node` is a size of a tensor that has it from `begin` on: a parameter then stands for it."""
        of: ast.expr | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.UnaryOp)):
            of = node.value if isinstance(node.value, ast.Attribute) and node.value.attr == "shape" else None
            of = of.value if isinstance(of, ast.Attribute) else None
        elif isinstance(node, ast.Attribute):
            of = node.value if node.attr == "shape" else None
        elif isinstance(node, ast.Call) and not node.keywords:
            if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
                plain = all(isinstance(each, (ast.Constant, ast.UnaryOp)) for each in node.args)
                of = node.func.value if plain else None
            elif isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
                of = node.args[0]
        if not isinstance(of, ast.Name):
            return False
        what, counted = self.kinds.of(of).what, isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        # Only an array or a tensor has a shape; what has a length may be a list that grows.
        if what != "tensor" and (
            counted or what not in ("unknown", "other") or of.id not in self._parameters()
        ):
            return False
        if not self._stays(of.id, node):
            raise Refused(
                f"`{of.id}` is bound anew, or given another shape, behind where the generator begins"
            )
        text = self.source.of(node)
        names = {given: name for name, given in self.params.items()}
        name = names.get(text) or fresh("size", {*self.draft.taken(self.source.tree), *self.params})
        self.params[name] = text
        self.sizes.append(self.source.swap(node, name))
        return True

    def _parameters(self) -> set[str]:
        return {each.arg for each in arguments(self.function.args)} - {"self"}

    def _stays(self, name: str, size: ast.expr) -> bool:
        """Whether the tensor `name` is not bound anew between `begin` and where its `size` is read, nor given another shape."""
        statement = self.source.enclosing_statement(size)
        behind, read = self.source.start(self.begin), self.source.end(statement)
        # What a statement binds is bound once it has read the size.
        own = [each for one in getattr(statement, "targets", ()) for each in ast.walk(one)]
        loops = [each for each in self.source.ancestors(size) if isinstance(each, (ast.For, ast.While))]
        for each in ast.walk(self.function):
            if isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load):
                again = any(one in loops for one in self.source.ancestors(each))
                before = self.source.start(each) < read and each not in own
                if behind < self.source.start(each) and (before or again):
                    return False
            elif (
                isinstance(each, ast.Attribute)
                and isinstance(each.value, ast.Name)
                and each.value.id == name
                and (each.attr in _RESHAPES or not isinstance(each.ctx, ast.Load))
            ):
                return False
        return True

    def _refuse_open_name(self, node: ast.Name | ast.Attribute) -> None:
        head, _, rest = (dotted(node) or "").partition(".")
        if head in self.draft.modules and head not in bound(self.function.body):
            return
        if head == "self" and rest and "." not in rest:
            if self.kept(rest) is not None:
                return
        elif head and not rest and self._is_given(head):
            return
        raise Refused(f"`{self.source.of(node)}` is not known to be a number that is the same in each call")

    def _is_given(self, name: str) -> bool:
        """Whether the local `name` certainly is one number, or a list of some: a parameter has it where it is bound before the
        generator begins, and else the method binds it too."""
        sets = [
            self.source.enclosing_statement(each)
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == name and isinstance(each.ctx, ast.Store)
        ]
        if len(sets) != 1:
            return False
        made, before = sets[0], self.source.start(sets[0]) < self.source.start(self.begin)
        if before and self.kinds.of(ast.Name(name, ast.Load())).what in ("number", "static"):
            self.params[name] = name
            return True
        if (
            not isinstance(made, ast.Assign)
            or len(made.targets) != 1
            or not isinstance(made.targets[0], ast.Name)
            or made not in self.block
        ):
            return False
        listed = self._may_be_list(made.value)
        if listed and not all(
            self._only_reads(each)
            for each in ast.walk(self.function)
            if isinstance(each, ast.Name) and each.id == name
        ):
            raise Refused(f"`{name}` is a list, and may be written where it is not followed")
        if before and not listed:
            params, sizes = dict(self.params), list(self.sizes)
            self.refuse_open(made.value)
            self.params, self.sizes = {**params, name: name}, sizes
        elif made not in self.copied:
            self.refuse_open(made.value)
            self.copied.append(made)
        return True

    def _may_be_list(self, node: ast.expr) -> bool:
        return any(
            isinstance(each, (ast.List, ast.ListComp))
            or (
                isinstance(each, ast.Call)
                and self.draft.qualified(each.func) in ("list", "range", "tuple", "numpy.arange")
            )
            for each in ast.walk(node)
        )

    def _only_reads(self, node: ast.Name) -> bool:
        """Whether a list is not written, and has no other name, where `node` reads it."""
        parent = self.source.parents[node]
        if isinstance(parent, ast.Call):
            name = self.draft.qualified(parent.func)
            return (self.is_draw(parent) and not name.endswith(".shuffle")) or name in {
                *TO_PYTHON, *TO_TORCH, *_OF_NUMBERS, "enumerate", "sum", "sorted",
            }  # fmt: skip
        if isinstance(parent, ast.Assign):
            return node in parent.targets
        if isinstance(parent, ast.Subscript):
            return isinstance(parent.ctx, ast.Load)
        if isinstance(parent, ast.Tuple):
            return isinstance(self.source.parents[parent], ast.Subscript)
        return isinstance(
            parent, (ast.For, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Slice, ast.If, ast.IfExp)
        )

    def kept(self, attribute: str) -> ast.expr | None:
        """What the constructor alone sets `self.attribute` to, where that is given to it or written there."""
        sets = [
            (source, each)
            for source in self._sources()
            for each in ast.walk(source.tree)
            if isinstance(each, ast.Attribute)
            and each.attr == attribute
            and not isinstance(each.ctx, ast.Load)
        ]
        if not sets:
            return class_constant(self.cls, attribute, self.draft.file())
        source, target = sets[0]
        if len(sets) != 1 or dotted(target) != f"self.{attribute}":
            return None
        function, statement = source.enclosing_function(target), source.enclosing_statement(target)
        if function is None or function.name != "__init__" or not isinstance(statement, ast.Assign):
            return None
        inside = function in self.cls.body if source is self.source else function in _of_classes(source)
        if not inside or any(
            isinstance(each, ast.Call) and self.draft.qualified(each.func) not in {*TO_PYTHON, *_OF_NUMBERS}
            for each in ast.walk(statement.value)
        ):
            return None
        several = statement.targets[0]
        if isinstance(several, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            places = {
                ast.unparse(one): value
                for one, value in zip(several.elts, statement.value.elts, strict=False)
            }
            return places.get(f"self.{attribute}", statement.value)
        return statement.value

    def _sources(self) -> list[Source]:
        """The text of the class, and of those in the file that it extends."""
        return [self.source, *(Source(each.text) for each in self.draft.extended())]

    def is_seed(self, node: ast.expr) -> bool:
        """Whether the seed `node`, which is the same in each call, certainly is not None, which would stand for any."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, (int, str))
        head, _, rest = (dotted(node) or "").partition(".")
        if head != "self":
            return True
        value = self.kept(rest)
        if not isinstance(value, ast.Name):
            return value is not None and self.is_seed(value)
        made = next(
            (source.enclosing_function(value) for source in self._sources() if value in source.parents),
            None,
        )
        if made is None:
            return False
        args = [*made.args.posonlyargs, *made.args.args]
        defaults = dict(zip(args[::-1], made.args.defaults[::-1], strict=False))
        defaults.update(
            {
                arg: default
                for arg, default in zip(made.args.kwonlyargs, made.args.kw_defaults, strict=True)
                if default
            }
        )
        for arg in (*args, *made.args.kwonlyargs):
            if arg.arg == value.id:
                default = defaults.get(arg)
                plain = isinstance(default, ast.Constant) and isinstance(default.value, int)
                told = arg.annotation is not None and ast.unparse(arg.annotation) == "int"
                return plain or (told and default is None)
        return False


def _of_classes(source: Source) -> list[ast.stmt]:
    """What stands in the bodies of the classes of a chunk."""
    return [one for each in source.tree.body if isinstance(each, ast.ClassDef) for one in each.body]
