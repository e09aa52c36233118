"""A document is cut into chunks as Python reads it, whatever the text, and an edit gives what parsing anew
gives.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from exportlens.finding import Position
from exportlens.source.document import Document
from hypothesis import given, settings
from hypothesis import strategies as st

PATH = Path("model.py")
FRAGMENTS = [
    "import torch\n",
    "x = 1\n",
    "class A:\n    def f(self):\n        return 1\n\n",
    "@decorate\n@twice(\n1)\ndef f():\n    pass\n",
    "if a:\n    pass\nelse:\n    pass\n",
    "try:\n    pass\nexcept E:\n    pass\nfinally:\n    pass\n",
    'text = """\nimport os\nclass No:\n"""\n',
    "call(\na,\nb\n)\n",
    "y = 1 + \\\n2\n",
    '# a comment with "quotes" and (brackets\n',
    "\n",
    "    indented = 1\n",
    '"""',
    "'''",
    "(",
    ")",
    "else:\n",
    "@\n",
    "\\\n",
    "\f",
    "\r\n",
    "\r",
    "é = '\U0001f600'\n",
    "\ud800",
    "\0",
    "x",
    " ",
]


def shape(document: Document) -> list[object]:
    return [(p.first_line, p.start, p.chunk.text, p.chunk.problem, p.chunk.lines) for p in document.placed]


@settings(max_examples=600, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=14))
def test_chunks_are_what_python_reads(fragments: list[str]) -> None:
    text = "".join(fragments)
    document = Document.parse(PATH, text)
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    statements = [(p, s) for p in document.placed for s in p.chunk.body]
    assert not list(document.problems())
    assert [ast.dump(s) for _, s in statements] == [ast.dump(s) for s in module.body]
    assert [p.first_line + s.lineno for p, s in statements] == [s.lineno for s in module.body]


@settings(max_examples=1500, deadline=None)
@given(st.data())
def test_an_edit_gives_what_parsing_anew_gives(data: st.DataObject) -> None:
    text = "".join(data.draw(st.lists(st.sampled_from(FRAGMENTS), max_size=14)))
    document = Document.parse(PATH, text)
    for _ in range(3):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 12)))
        text = text[:start] + data.draw(st.sampled_from(["", *FRAGMENTS])) + text[end:]
        document = document.edited(text)
        assert shape(document) == shape(Document.parse(PATH, text))
        chunks = [id(p.chunk) for p in document.placed]
        assert len(set(chunks)) == len(chunks)


def test_an_edit_keeps_the_other_chunks() -> None:
    text = "import torch\n\ndef f():\n    return 1\n\ndef g():\n    return 2\n\ndef h():\n    return 3\n"
    before = Document.parse(PATH, text)
    after = before.edited(text.replace("return 2", "if x:\n        return 2"))
    same = [a.chunk is b.chunk for a, b in zip(before.placed, after.placed, strict=True)]
    assert same == [True, True, False, True]
    assert after.placed[3].first_line == before.placed[3].first_line + 1


def test_a_syntax_error_costs_only_its_own_chunk() -> None:
    text = 'def f():\n    return 1\n\ndef g(:\n    return """open\n\ndef h():\n    """Doc."""\n    return 3\n'
    document = Document.parse(PATH, text)
    assert [bool(p.chunk.body) for p in document.placed] == [True, False, True]
    [(problem, position)] = document.problems()
    assert position.line in (3, 4) and problem.message


def test_comments_between_statements_cost_nothing() -> None:
    before = Document.parse(PATH, "x = 1\n\n# one\ny = 2\n")
    after = before.edited("x = 1\n\n# another\n# two\ny = 2\n")
    assert [a.chunk is b.chunk for a, b in zip(before.placed, after.placed, strict=True)] == [True, True]


def test_columns_count_code_points() -> None:
    document = Document.parse(PATH, "\n'\U0001f600é' + name\n")
    placed = document.placed[0]
    name = placed.chunk.body[0].value.right
    assert document.range_of(placed.chunk, name).start == Position(1, 7)


def test_a_byte_order_mark_is_no_error_and_takes_one_column() -> None:
    document = Document.parse(PATH, "\ufeffx = 1\n")
    placed = document.placed[0]
    assert not list(document.problems())
    assert document.range_of(placed.chunk, placed.chunk.body[0]).start == Position(0, 1)


@pytest.mark.parametrize(
    "text", ["(" * 5000, "-" * 100_000 + "1", "x = " + "[" * 300 + "]" * 300, "a" + ".b" * 50_000]
)
def test_deep_nesting_does_not_raise(text: str) -> None:
    document = Document.parse(PATH, f"y = 1\n{text}\nz = 2\n")
    assert document.placed[0].chunk.body
