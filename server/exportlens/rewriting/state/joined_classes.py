"""A class of the file and those that it extends, as one: a base begins in its constructor what the class itself reads and writes.

class Base(nn.Module):              class Model(Base):
    def __init__(self):                 def forward(self, x):
        self.steps = 0                      self.steps += 1
"""

from __future__ import annotations

import ast
import copy

from exportlens.inference.classes import class_order
from exportlens.inference.values import ClassValue
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Draft, Refused, WholeDraft
from exportlens.rewriting.state.begun_in_bases import class_that_begins
from exportlens.rewriting.state.plain_objects import is_module

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def class_with_bases(owner: ClassValue, attr: str, context: RewriteContext) -> tuple[Draft, ast.ClassDef]:
    """The class that has to do with the attribute, in a draft: the one of `owner` and its bases that alone names it, or, in a draft of the
    whole file, one of the bodies of all. Raises Refused."""
    begins = class_that_begins(owner, attr)
    if begins.scope.path != context.document.path:
        raise Refused(f"`{begins.name}` is defined in {begins.scope.path.name}")
    order = [
        each
        for each in class_order(owner)
        if isinstance(each, ClassValue) and each.scope.path == context.document.path
    ]
    naming = [each for each in order if _names(each.node, attr)]
    if begins is owner or naming in ([], [begins]):
        draft = Draft.of_chunk(begins.chunk, context)
        cls = draft.source.find(begins.node)
        assert isinstance(cls, ast.ClassDef)
        return draft, cls
    if not is_module(owner):
        raise Refused(f"`{owner.name}` is no Module: it has no buffers")
    draft = WholeDraft.around(Draft.of_chunk(owner.chunk, context))
    nodes = []
    for each in reversed(order):
        found = draft.find(each.node, each.chunk)
        assert isinstance(found, ast.ClassDef)
        nodes.append(found)
    _refuse_other_heirs(draft, nodes, attr)
    return draft, _joined(nodes)


def _joined(nodes: list[ast.ClassDef]) -> ast.ClassDef:
    """One class of the bodies of `nodes`, the base first, without the methods that a later one has anew. Raises Refused."""
    for each in (one for node in nodes for one in ast.walk(node)):
        if (
            isinstance(each, ast.Attribute)
            and each.attr != "__init__"
            and isinstance(each.value, ast.Call)
            and isinstance(each.value.func, ast.Name)
            and each.value.func.id == "super"
        ):
            raise Refused(f"`{ast.unparse(each)}` is a method that the class has anew")
    body: list[ast.stmt] = []
    for node in nodes:
        anew = {each.name for each in node.body if isinstance(each, _FUNCTIONS)} - {"__init__"}
        body = [each for each in body if getattr(each, "name", "") not in anew] + node.body
    cls = copy.copy(nodes[-1])
    cls.bases, cls.keywords, cls.body = nodes[0].bases, nodes[0].keywords, body
    return cls


def _refuse_other_heirs(draft: Draft, nodes: list[ast.ClassDef], attr: str) -> None:
    """Raise Refused where a class that is none of `nodes` extends one of them, and names the attribute."""
    classes = [each for each in draft.source.tree.body if isinstance(each, ast.ClassDef)]
    heirs = [*nodes]
    for node in heirs:
        heirs += [each for each in classes if each not in heirs and node.name in map(ast.unparse, each.bases)]
    for each in heirs:
        if each not in nodes and _names(each, attr):
            raise Refused(f"`{each.name}` uses `self.{attr}` as well")


def _names(node: ast.AST, attr: str) -> bool:
    return any(
        (isinstance(each, ast.Attribute) and each.attr == attr)
        or (isinstance(each, ast.Constant) and each.value == attr)
        for each in ast.walk(node)
    )
