"""A draft: the place of a rewrite as text, and the Fix that a new text makes."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exportlens.finding import Applicability, Edit, Fix, Position, Range
from exportlens.inference.places import Call, Place
from exportlens.inference.values import Value
from exportlens.outcome import TorchVersion
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.file_constants import constants_of
from exportlens.rewriting.code.imports import document_imports, import_edit, spelled
from exportlens.rewriting.code.names import arguments, dotted, every_name, walk_own
from exportlens.rewriting.code.text import Replacement, Source, edits, replaced
from exportlens.rewriting.kinds.kinds import Kinds
from exportlens.source.document import Chunk, Document

# The first version that has torch.compiler.is_exporting.
TELLS_EXPORTING = TorchVersion(2, 7)


class Refused(Exception):
    """A rewrite cannot be proved; the message is for people, and becomes a Refusal."""


class RefusedNumber(Refused):
    """A Python number that tensor data would choose is no output of a branch. One that `counts` is an int which data decides on one
    side at least: nothing is lost where it is read behind the branch."""

    def __init__(self, reason: str, *, counts: bool = False) -> None:
        super().__init__(reason)
        self.counts = counts


class RefusedType(Refused):
    """Whether a number that is tested is a bool is not known."""


class RefusedNested(Refused):
    """A branch in an arm of another would stand where gradients are switched off."""


class RefusedState(Refused):
    """The branch sets the attribute at `path`, which is no tensor yet when the model is first called."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.path = path


class RefusedLog(Refused):
    """What is printed or logged would be part of a program."""


class RefusedDtypes(Refused):
    """The dtypes that the ways through a branch give are not known, and may differ."""


@dataclass
class Draft:
    """The chunk of one place, its imports, and how it calls torch."""

    context: RewriteContext
    chunk: Chunk
    source: Source
    modules: dict[str, str]
    torch: str
    needs_torch: bool
    supposed: tuple[str, ...] = ()

    @classmethod
    def of(cls, place: Place, context: RewriteContext) -> Draft:
        draft = cls.of_chunk(place.site.chunk, context)
        draft.supposed = place.site.supposed
        draft.refuse_other_torch(place.node)
        return draft

    @classmethod
    def of_chunk(cls, chunk: Chunk, context: RewriteContext) -> Draft:
        modules = document_imports(context.document)
        torch = spelled(modules, "torch")
        return cls(context, chunk, Source(chunk.text), modules, torch or "torch", torch is None)

    def refuse_other_torch(self, node: ast.AST) -> None:
        """Raise Refused where a function around `node` means something else by the name that the file has for torch."""
        row = getattr(node, "lineno", 0)
        for each in ast.walk(self.source.tree):
            if (
                isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
                and each.lineno <= row <= (each.end_lineno or 0)
                and self.torch in _otherwise_bound(each)
            ):
                raise Refused(f"`{self.torch}` is another name in `{each.name}`, where torch is needed")

    def kinds(self, variables: Mapping[str, Value]) -> Kinds:
        kinds = Kinds.from_values(variables, {**self.modules, self.torch: "torch"})
        kinds.around = Draft.others(self)
        kinds.functions = self._functions()
        kinds.elsewhere = self.context.elsewhere
        kinds.constants = constants_of(placed.chunk for placed in self.context.document.placed)
        kinds.cancelled, kinds.supposed = self.context.cancelled, self.supposed
        return kinds

    def find(self, node: ast.AST, chunk: Chunk) -> ast.AST:
        """What `node`, one of `chunk`, is in this draft. Raises LookupError."""
        if chunk is not self.chunk:
            raise LookupError("it stands outside of its class")
        return self.source.find(node)

    def file(self) -> list[ast.stmt]:
        """The statements of the file, those of this draft as its own nodes."""
        return [*self.source.tree.body, *(each for chunk in self.others() for each in chunk.body)]

    def others(self) -> list[Chunk]:
        """The other chunks of the file."""
        return [placed.chunk for placed in self.context.document.placed if placed.chunk is not self.chunk]

    def classes_of(self, node: ast.AST) -> list[ast.ClassDef]:
        """The class around `node` and those of the file that it, or one of those, extends, the nearest first."""
        own = next((each for each in self.source.ancestors(node) if isinstance(each, ast.ClassDef)), None)
        classes = [each for each in self.file() if isinstance(each, ast.ClassDef)]
        return [] if own is None else _with_bases(own, classes)

    def extended(self) -> list[Chunk]:
        """The file's other chunks that define a class which a class of this draft extends, or one of those does."""
        found: list[Sequence[ast.stmt]] = [self.source.tree.body]
        chunks: list[Chunk] = []
        for body in found:
            names = {ast.unparse(base) for each in body for base in getattr(each, "bases", ())}
            more = [
                each
                for each in self.others()
                if each not in chunks
                and any(isinstance(one, ast.ClassDef) and one.name in names for one in each.body)
            ]
            chunks += more
            found += [each.body for each in more]
        return chunks

    def _functions(self) -> dict[str, ast.FunctionDef]:
        """The functions of the file, and the methods of the chunk's class and of those that it extends which no other class of the file
        has anew."""
        body = [each for placed in self.context.document.placed for each in placed.chunk.body]
        classes = [each for each in body if isinstance(each, ast.ClassDef)]
        own = next((each for each in self.chunk.body if isinstance(each, ast.ClassDef)), None)
        derived = _derived(own, classes) if own is not None else []
        anew = {one.name for each in derived for one in each.body if isinstance(one, ast.FunctionDef)}
        found = {each.name: each for each in body if isinstance(each, ast.FunctionDef)}
        for node in reversed(_with_bases(own, classes)) if own is not None else ():
            for each in node.body:
                if isinstance(each, ast.FunctionDef) and each.name not in anew:
                    found[f"self.{each.name}"] = each
        return found

    @property
    def exporting(self) -> str:
        """The question whether the model is being exported; what is older than the function asks for any compilation, as
        strict tracing is one."""
        name = "is_exporting" if self.context.version >= TELLS_EXPORTING else "is_compiling"
        return f"{self.torch}.compiler.{name}()"

    def qualified(self, node: ast.expr) -> str:
        """The qualified name of `node`, the written one where its head is not imported; "" for what is no dotted name."""
        head, dot, rest = (dotted(node) or "").partition(".")
        return self.modules.get(head, head) + dot + rest

    def taken(self, node: ast.AST) -> set[str]:
        """The names that a new local name near `node` must not have."""
        return every_name(node) | set(self.modules)

    def fix(
        self,
        message: str,
        text: str,
        applicability: Applicability = Applicability.UNSAFE,
        uses_torch: bool = True,
    ) -> Fix:
        """The Fix that turns this chunk into `text`, with the import of torch where it was missing."""
        made = list(edits(self.chunk.text, text, first_line(self.context.document, self.chunk)))
        if uses_torch and self.needs_torch:
            made.insert(0, import_edit(self.context.document, "import torch"))
        return Fix(message, tuple(made), applicability)

    def replace(
        self,
        message: str,
        replacements: list[Replacement],
        applicability: Applicability = Applicability.UNSAFE,
        uses_torch: bool = True,
    ) -> Fix:
        """The Fix that makes `replacements` in this chunk, each an edit of its own characters alone."""
        text = replaced(self.source.text, replacements)
        Source(text)
        made: list[Edit] = [
            Edit(Range(self._position(each.start), self._position(each.end)), each.text)
            for each in sorted(replacements, key=lambda each: each.start)
        ]
        if uses_torch and self.needs_torch:
            made.insert(0, import_edit(self.context.document, "import torch"))
        return Fix(message, tuple(made), applicability)

    def _position(self, offset: int) -> Position:
        line, column = self.source.line_and_column(offset)
        return Position(first_line(self.context.document, self.chunk) + line, column)


class WholeDraft(Draft):
    """The whole file in the place of one chunk: for what a class and the functions around it do together."""

    @classmethod
    def around(cls, draft: Draft) -> WholeDraft:
        source = Source(draft.context.document.text)
        return cls(draft.context, draft.chunk, source, draft.modules, draft.torch, draft.needs_torch)

    def found(self, node: ast.expr) -> ast.AST:
        """What `node`, one of the chunk, is in the whole file. Raises LookupError."""
        return self.find(node, self.chunk)

    def find(self, node: ast.AST, chunk: Chunk) -> ast.AST:
        """What `node`, one of `chunk`, is in the whole file. Raises LookupError."""
        assert isinstance(node, (ast.expr, ast.stmt))
        line = node.lineno + first_line(self.context.document, chunk)
        for each in ast.walk(self.source.tree):
            if (
                type(each) is type(node)
                and isinstance(each, (ast.expr, ast.stmt))
                and (each.lineno, each.col_offset) == (line, node.col_offset)
                and each.end_col_offset == node.end_col_offset
                and ast.dump(each) == ast.dump(node)
            ):
                return each
        raise LookupError("the node is not in the file")

    def others(self) -> list[Chunk]:
        return []

    def _position(self, offset: int) -> Position:
        return Position(*self.source.line_and_column(offset))


def _otherwise_bound(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters of `function`, and the names that its statements bind, but not by an import."""
    body = [each for each in walk_own(function.body) if not isinstance(each, (ast.Import, ast.ImportFrom))]
    names = {each.id for each in body if isinstance(each, ast.Name) and not isinstance(each.ctx, ast.Load)}
    return names | {each.arg for each in arguments(function.args)}


def plain_call(place: Call, context: RewriteContext) -> tuple[Draft, ast.Call]:
    """The draft, and the call, whose arguments are all written in it."""
    draft = Draft.of(place, context)
    node = draft.source.find(place.node)
    starred = (
        not isinstance(node, ast.Call)
        or any(key.arg is None for key in node.keywords)
        or any(isinstance(each, ast.Starred) for each in node.args)
    )
    if not isinstance(node, ast.Call) or starred:
        raise Refused("the arguments are not written one by one")
    return draft, node


def behind_imports(document: Document) -> Position | None:
    """The start of the line behind the file's last top-level import; None where it imports nothing."""
    chunks = [
        placed.chunk
        for placed in document.placed
        if any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in placed.chunk.body)
    ]
    if not chunks:
        return None
    return Position(first_line(document, chunks[-1]) + (chunks[-1].body[-1].end_lineno or 1), 0)


def first_line(document: Document, chunk: Chunk) -> int:
    """The 0-based line of `document` on which `chunk` starts."""
    if not chunk.body:
        raise Refused("the code around it does not parse")
    node = chunk.body[0]
    return document.range_of(chunk, node).start.line - (node.lineno - 1)


def _with_bases(own: ast.ClassDef, classes: Sequence[ast.ClassDef]) -> list[ast.ClassDef]:
    """`own` and the classes that it, or one of those, extends, the nearest first."""
    found = [own]
    for node in found:
        bases = map(ast.unparse, node.bases)
        found += [each for base in bases for each in classes if each.name == base and each not in found]
    return found


def _derived(own: ast.ClassDef, classes: Sequence[ast.ClassDef]) -> list[ast.ClassDef]:
    """The classes that extend `own`, one of them, or one of those."""
    found = [own]
    for node in found:
        found += [each for each in classes if each not in found and node.name in map(ast.unparse, each.bases)]
    return found[1:]
