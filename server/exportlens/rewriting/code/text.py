"""A chunk's text as rewrites see it: where a node stands, statements with their comments, and edits from a
new text."""

from __future__ import annotations

import ast
import bisect
import functools
import io
import itertools
import re
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from exportlens.finding import Edit, Position, Range
from exportlens.rewriting.code.precedence import fitting, standing
from exportlens.source.parsing import parse_python
from exportlens.source.walking import children

_NEWLINE = re.compile(r"\r\n|\r|\n")
_ATOMS = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)
_OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.MatMult: "@",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
}
# Expressions that no brackets go around.
_UNBRACKETED = (ast.Slice, ast.Starred)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Replacement:
    """Put `text` in the place of the characters from `start` up to, not including, `end`."""

    start: int
    end: int
    text: str


@functools.lru_cache(maxsize=32)
def _parsed(text: str) -> tuple[ast.Module, list[ast.AST], dict[ast.AST, ast.AST]]:
    """The tree, which nobody changes, its nodes breadth first, and what each is directly below.

    Several steps of one rewrite begin with the same text, and so do the fixes of one chunk.
    """
    tree = parse_python(text)
    parents: dict[ast.AST, ast.AST] = {}
    nodes: list[ast.AST] = [tree]
    for node in nodes:
        below = children(node)
        parents.update(dict.fromkeys(below, node))
        nodes += below
    return tree, nodes, parents


@functools.lru_cache(maxsize=32)
def _line_starts(text: str) -> list[int]:
    if "\r" in text:
        return [0, *(match.end() for match in _NEWLINE.finditer(text))]
    return [0, *itertools.accumulate(len(line) + 1 for line in text.split("\n")[:-1])]


def _comment_ends(text: str, starts: list[int]) -> dict[int, tuple[int, int]]:
    """For each line with a comment, from 1, where that begins and ends."""
    comments = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                start = starts[token.start[0] - 1]
                comments[token.start[0]] = (start + token.start[1], start + token.end[1])
    except (tokenize.TokenError, SyntaxError, IndexError):
        return comments
    return comments


class Source:
    """A parsed text that can be cut at its nodes.

    Rewrites go from text to text: a Source is read, a new text is made, and `edits` says where the two
    differ. Raises SyntaxError when `text` does not parse.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree, self._nodes, self.parents = _parsed(text)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self._starts = _line_starts(text)
        self._comments = _comment_ends(text, self._starts) if "#" in text else {}
        self._inside_string = self._lines_inside_strings()
        # Constructors that come to make a Module before all else, by the fix that is being made.
        self.becoming: set[ast.AST] = set()

    def offset(self, line: int, utf8_column: int) -> int:
        """The character offset for `ast`'s 1-based line and UTF-8 column."""
        start = self._starts[line - 1]
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        text = self.text[start:end]
        if text.isascii():
            return start + utf8_column
        return start + len(text.encode()[:utf8_column].decode(errors="replace"))

    def start(self, node: ast.AST) -> int:
        """Where `node` starts, decorators included."""
        decorators = getattr(node, "decorator_list", None)
        if decorators:
            first = decorators[0]
            return self.text.rindex("@", 0, self.offset(first.lineno, first.col_offset) + 1)
        return self.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        return self.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def of(self, node: ast.AST, replacements: Iterable[Replacement] = ()) -> str:
        """The text of `node`, with those of `replacements` that lie in it made; in brackets where it is an expression that goes over
        several lines by the brackets around it, which do not go with it."""
        text = self.between(self.start(node), self.end(node), replacements)
        return standing(text) if isinstance(node, ast.expr) and not isinstance(node, _UNBRACKETED) else text

    def between(self, start: int, end: int, replacements: Iterable[Replacement] = ()) -> str:
        pieces: list[str] = []
        at = start
        for replacement in sorted(replacements, key=lambda each: (each.start, each.end)):
            if replacement.start < at or replacement.end > end:
                continue
            pieces += [self.text[at : replacement.start], replacement.text]
            at = replacement.end
        return "".join([*pieces, self.text[at:end]])

    def swap(self, node: ast.AST, text: str) -> Replacement:
        """Put `text` in the place of `node`, in brackets where what stands around it binds tighter."""
        start, end = self.start(node), self.end(node)
        bracketed = self.text[:start].rstrip()[-1:] == "(" and self.text[end:].lstrip()[:1] == ")"
        if isinstance(node, ast.expr) and not bracketed:
            text = fitting(text, node, self.parents.get(node))
        return Replacement(start, end, text)

    def without(self, statement: ast.stmt, others: int = 0) -> Replacement | None:
        """Take `statement` away with its line, and leave its comment; `others` of its block go as well, and a block keeps a
        `pass`. None where it shares its line with another statement."""
        start, end = self.start(statement), self.end(statement)
        rest = self.text[end:].split("\n", 1)[0]
        if not self.begins_line(statement) or rest.lstrip(" \t").startswith(";"):
            return None
        if len(self.block_of(statement)[0]) == others + 1:
            return self.swap(statement, "pass")
        if rest.strip():
            return Replacement(start, end + len(rest) - len(rest.lstrip(" \t")), "")
        return Replacement(start - len(self.indent_of(statement)), end + len(rest) + 1, "")

    def computed(self, node: ast.AugAssign, value: str | None = None, now: str | None = None) -> str:
        """What `x -= y` computes as `x - y`, where `value` may stand for `y` and `now` for `x`."""
        text = self.of(node.value) if value is None else value
        if not isinstance(node.value, _ATOMS):
            text = f"({text})"
        return f"{self.of(node.target) if now is None else now} {_OPERATORS[type(node.op)]} {text}"

    def indent_of(self, node: ast.AST) -> str:
        """The white space before the line on which `node` starts."""
        line_start = self.line_start(self.start(node))
        match = re.match(r"[ \t]*", self.text[line_start:])
        return match[0] if match else ""

    def indent_unit(self) -> str:
        """One step of this text's indentation."""
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            if (
                isinstance(node, ast.stmt)
                and isinstance(body, list)
                and body
                and body[0].lineno > node.lineno
            ):
                outer, inner = self.indent_of(node), self.indent_of(body[0])
                if inner.startswith(outer) and len(inner) > len(outer):
                    return inner[len(outer) :]
        return "    "

    def begins_line(self, node: ast.AST) -> bool:
        start = self.start(node)
        return not self.text[self.line_start(start) : start].strip()

    def span(self, statements: Sequence[ast.stmt]) -> tuple[int, int]:
        """From the first statement (with the comments right above it) to the end of the last one (with its
        trailing comment)."""
        return self._leading(statements[0]), self._trailing(statements[-1])

    def block(
        self, statements: Sequence[ast.stmt], indent: str, replacements: Sequence[Replacement] = ()
    ) -> str:
        """`statements`, which follow each other in one block, with their comments, at another indentation;
        no newline at the end."""
        if not statements:
            return ""
        if len(statements) == 1 and self.text.startswith("elif", self.start(statements[0])):
            # An `elif` is an `if` once it stands alone.
            start, end = self.start(statements[0]), self._trailing(statements[0])
            text = self.shifted(start, end, self.indent_of(statements[0]), indent, replacements)
            return indent + text.removeprefix("el")
        if all(self.begins_line(statement) for statement in statements):
            start, end = self.span(statements)
            return indent + self.shifted(
                start, end, self.indent_of(statements[0]), indent, replacements
            ).lstrip(" \t")
        return self.newline.join(
            indent
            + self.shifted(self.start(each), self._trailing(each), self.indent_of(each), indent, replacements)
            for each in statements
        )

    def shifted(
        self, start: int, end: int, old: str, new: str, replacements: Sequence[Replacement] = ()
    ) -> str:
        """The text from `start` to `end` with indentation `old` made `new`; lines that begin inside a
        string stay."""
        moved = list(replacements)
        for number, line_start in enumerate(self._starts, 1):
            if not start < line_start < end or number in self._inside_string:
                continue
            if any(each.start < line_start < each.end for each in replacements):
                continue
            line = _NEWLINE.split(self.text[line_start:], maxsplit=1)[0]
            if not line.strip():
                continue
            white = line[: len(line) - len(line.lstrip(" \t"))]
            kept = white[len(old) :] if white.startswith(old) else ""
            moved.append(Replacement(line_start, line_start + len(white), new + kept))
        return self.between(start, end, moved)

    def gap_before(self, node: ast.stmt) -> str:
        """What sets a new function off from the statement before `node`: an empty line, or nothing at a
        block's start."""
        start = self.line_start(self._leading(node))
        before = self.text[:start].splitlines()
        if not before or not before[-1].strip() or before[-1].strip().startswith("#"):
            return ""
        _block, index = self.block_of(node)
        return self.newline if index and start == self.line_start(self.start(node)) else ""

    def comments_between(self, start: int, end: int) -> list[str]:
        """The comments that begin between the two offsets, in order."""
        return [
            self.text[first:last] for first, last in sorted(self._comments.values()) if start <= first < end
        ]

    def header_comments(self, loop: ast.For | ast.While) -> list[str]:
        """The comments in the condition of a loop and behind it, or behind what it goes through, before its first statement."""
        first = self.end(loop.iter) if isinstance(loop, ast.For) else self.start(loop)
        return self.comments_between(first, self.span(loop.body)[0])

    def comments_lost(self, start: int, end: int, *texts: str) -> list[str]:
        """The comments between the two offsets that none of `texts`, which stand there from now on, has."""
        return [each for each in self.comments_between(start, end) if not any(each in text for text in texts)]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """The 0-based line and the column in characters."""
        line = bisect.bisect_right(self._starts, offset) - 1
        return line, offset - self._starts[line]

    def line_start(self, offset: int) -> int:
        """Where the line of `offset` begins."""
        return self._starts[bisect.bisect_right(self._starts, offset) - 1]

    def _leading(self, statement: ast.stmt) -> int:
        start = self.start(statement)
        if not self.begins_line(statement):
            return start
        line_start = self.line_start(start)
        result = line_start
        indent = self.indent_of(statement)
        number = self._starts.index(line_start)
        while number > 0:
            number -= 1
            line = self.text[self._starts[number] : self._starts[number + 1]]
            if number + 1 in self._inside_string or not line.startswith(indent + "#"):
                break
            result = self._starts[number]
        return result

    def _trailing(self, statement: ast.stmt) -> int:
        end = self.end(statement)
        return self._comments.get(statement.end_lineno or 0, (end, end))[1] if self._ends_line(end) else end

    def _ends_line(self, end: int) -> bool:
        rest = _NEWLINE.split(self.text[end:], maxsplit=1)[0].strip()
        return rest.startswith("#")

    def _lines_inside_strings(self) -> set[int]:
        lines: set[int] = set()
        for node in self._nodes:
            if isinstance(node, (ast.Constant, ast.JoinedStr)) and (node.end_lineno or 0) > node.lineno:
                if isinstance(node, ast.Constant) and not isinstance(node.value, (str, bytes)):
                    continue
                text = self.of(node)
                if '"""' in text or "'''" in text or "\\" in text:
                    lines.update(range(node.lineno + 1, (node.end_lineno or node.lineno) + 1))
        return lines

    def enclosing_function(self, node: ast.AST) -> Function | None:
        """The innermost function around `node`, None at module or class level."""
        for parent in self.ancestors(node):
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)):
                return parent
            if isinstance(parent, ast.ClassDef):
                return None
        return None

    def same_function(self, before: Source, node: ast.AST) -> ast.FunctionDef | None:
        """The outermost function around `node` of `before`, of which this text was made; None where that is not certain."""
        outermost = [each for each in before.ancestors(node) if isinstance(each, _FUNCTIONS)]
        if not outermost:
            return None
        path = before._names_around(outermost[-1])
        found = [each for each in ast.walk(self.tree) if isinstance(each, _FUNCTIONS)]
        same = [each for each in found if self._names_around(each) == path]
        return same[0] if len(same) == 1 and isinstance(same[0], ast.FunctionDef) else None

    def _names_around(self, function: ast.AST) -> list[str]:
        """The names of the classes and functions around `function`, and its own."""
        around = [function, *self.ancestors(function)]
        return [each.name for each in around if isinstance(each, (*_FUNCTIONS, ast.ClassDef))]

    def enclosing_statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement that is or holds `node`."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around `node`, innermost first."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def around(self, node: ast.AST, statements: Sequence[ast.stmt]) -> list[ast.AST]:
        """What stands around `node` up to the one of `statements` that holds it, that included."""
        found: list[ast.AST] = []
        for each in self.ancestors(node):
            found.append(each)
            if each in statements:
                break
        return found

    def branch_at(self, offset: int) -> ast.If:
        """The `if` that begins at `offset`."""
        return next(
            each for each in ast.walk(self.tree) if isinstance(each, ast.If) and self.start(each) == offset
        )

    def block_of(self, statement: ast.stmt) -> tuple[list[ast.stmt], int]:
        """The list of statements that holds `statement`, and its index there."""
        for _, value in ast.iter_fields(self.parents[statement]):
            if isinstance(value, list):
                for index, each in enumerate(value):
                    if each is statement:
                        return value, index
        raise ValueError("a statement outside of every block")

    def find(self, like: ast.AST) -> ast.AST:
        """The node of this text that stands where `like` stood, of the same type. Raises LookupError."""
        place = _extent(like)
        for node in self._nodes:
            if type(node) is type(like) and _extent(node) == place:
                return node
        raise LookupError("the code around it could not be followed")


def _extent(node: ast.AST) -> tuple[int | None, ...]:
    return tuple(
        getattr(node, name, None) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")
    )


def read_again(text: str, offset: int) -> tuple[Source, ast.If]:
    """The source of a changed text, and the `if` that begins at `offset` of it."""
    source = Source(text)
    return source, source.branch_at(offset)


def replaced(text: str, replacements: Iterable[Replacement]) -> str:
    """`text` with `replacements` made; they must not overlap."""
    result = text
    for each in sorted(replacements, key=lambda each: (each.start, each.end), reverse=True):
        result = result[: each.start] + each.text + result[each.end :]
    return result


def edits(old: str, new: str, first_line: int = 0) -> tuple[Edit, ...]:
    """The whole lines to replace so that `old` becomes `new`; `first_line` is where `old` starts in its
    document.

    One edit from the first to the last line that differs: what lies between belongs to the same rewrite,
    and no other fix may be put there at the same time.
    """
    before, after = _lines(old), _lines(new)
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    if first == len(before) == len(after):
        return ()
    return (_edit(before, after[first : len(after) - last], first, len(before) - last, first_line),)


def _edit(before: list[str], lines: list[str], first: int, last: int, first_line: int) -> Edit:
    content = "".join(lines)
    if last == len(before) and before and not before[-1].endswith(("\n", "\r")):
        # The last line has no newline: end at its last character.
        if first == last:
            end = Position(first_line + last - 1, len(before[-1]))
            return Edit(Range(end, end), "\n" + content)
        end = Position(first_line + last - 1, len(before[-1]))
        return Edit(Range(Position(first_line + first, 0), end), content)
    return Edit(Range(Position(first_line + first, 0), Position(first_line + last, 0)), content)


def _lines(text: str) -> list[str]:
    starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]
    pieces = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    return pieces[:-1] if pieces and not pieces[-1] else pieces
