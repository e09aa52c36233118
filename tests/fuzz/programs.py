"""Small modules with branches and loops over tensors, made by hypothesis: the text of a whole file with a
Module M."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st

# One program in so many nests deeply: the long run (EXPORTLENS_FUZZ) has time for more of them.
RARELY = 30 if os.environ.get("EXPORTLENS_FUZZ") else 400

HEAD = """import torch
import torch.nn.functional as F
from torch import nn


class M(nn.Module):
    def __init__(self, gate=True):
        super().__init__()
        self.gate = gate
        self.linear = nn.Linear(4, 4)
        self.act = nn.ReLU()
        self.register_buffer("seen", torch.zeros(3, 4))

"""


@dataclass
class Scope:
    """The names that may be read here: tensors of shape (3, 4), ints, tensors of one element, flags and lists of tensors.

    What is `wild` leaves loops in all ways, and calls the method `added`, which takes two tensors.
    """

    tensors: list[str]
    ints: list[str] = field(default_factory=list)
    scalars: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    wild: bool = False
    calls: bool = False
    depth: int = 0
    in_loop: bool = False
    may_return: bool = True
    deepest: int = 2

    def inner(self, **changes: object) -> Scope:
        scope = replace(
            self,
            tensors=list(self.tensors),
            ints=list(self.ints),
            scalars=list(self.scalars),
            flags=list(self.flags),
            depth=self.depth + 1,
        )
        for name, value in changes.items():
            setattr(scope, name, value)
        return scope


def expression(draw: st.DrawFn, scope: Scope) -> str:
    """A tensor of shape (3, 4) whose values stay small."""
    a, b = draw(st.sampled_from(scope.tensors)), draw(st.sampled_from(scope.tensors))
    number = draw(st.sampled_from(["0.5", "1", "2", "1.5"]))
    if draw(st.integers(0, 14)) == 0:
        # Now and then another name for the same memory.
        return draw(st.sampled_from([a, f"{a}[:]"]))
    forms = [
        f"{a} + {number}",
        f"{a} - {b} * 0.5",
        f"torch.tanh({a}) + {b}",
        f"F.relu({a}) - 0.25",
        f"self.linear({a})",
        f"self.act({a} - {number})",
        f"{a}.clamp(min=-{number}, max={number})",
        f"({a} + {b}) / 2",
        f"torch.where({a} > {b}, {a}, -{b})",
        f"{a}.abs() * 0.5",
        f"{a} * {a}.mean(dim=1, keepdim=True)",
        f"{a}.softmax(dim=-1)",
    ]
    if scope.ints:
        forms.append(f"{a} + {draw(st.sampled_from(scope.ints))}")
    if scope.scalars:
        forms.append(f"{a} * {draw(st.sampled_from(scope.scalars))}.clamp(-1, 1)")
    if scope.calls:
        forms.append(f"self.added({a}, {b})")
    return draw(st.sampled_from(forms))


def condition(draw: st.DrawFn, scope: Scope, depth: int = 0) -> str:
    """A condition on tensor data."""
    a, b = draw(st.sampled_from(scope.tensors)), draw(st.sampled_from(scope.tensors))
    number = draw(st.sampled_from(["0", "0.5", "-1", "1"]))
    forms = [
        f"{a}.sum() > {number}",
        f"{a}.mean() < {b}.mean()",
        f"({a} > {number}).any()",
        f"torch.all({a} < {b} + {number})",
        f"{a}.max().item() > {number}",
        f"{number} < {a}.max() < 2",
        f"torch.allclose({a}, {b})",
        f"float({a}.min()) < {number}",
        f"{a}[0, 0] > {number}",
    ]
    if scope.scalars:
        forms.append(f"{draw(st.sampled_from(scope.scalars))} > {number}")
    if scope.flags:
        forms += [draw(st.sampled_from(scope.flags)), f"not {draw(st.sampled_from(scope.flags))}"]
    if scope.wild and scope.ints:
        forms.append(f"{draw(st.sampled_from(scope.ints))} > 1")
    if depth < 2:
        forms += ["not", "and", "or", "static"]
    form = draw(st.sampled_from(forms))
    if form == "not":
        return f"not ({condition(draw, scope, depth + 1)})"
    if form in ("and", "or"):
        return f"({condition(draw, scope, depth + 1)}) {form} ({condition(draw, scope, depth + 1)})"
    if form == "static":
        return f"self.gate and {draw(st.sampled_from(forms[:4]))}" if depth == 0 else forms[0]
    return form


def block(draw: st.DrawFn, scope: Scope, indent: str, at_least: int = 1) -> list[str]:
    """Some statements; names that they bind for sure are added to `scope`."""
    lines: list[str] = []
    for _ in range(draw(st.integers(at_least, scope.deepest if scope.depth else scope.deepest + 1))):
        lines += statement(draw, scope, indent)
    return lines


def statement(draw: st.DrawFn, scope: Scope, indent: str) -> list[str]:
    kinds = ["assign"] * 5
    if scope.wild and draw(st.integers(0, 3)) == 0:
        return wilder(draw, scope, indent)
    if draw(st.integers(0, 2)) == 0:
        kinds = ["augment", "write", "method"]
    elif scope.depth < scope.deepest:
        kinds += ["if", "else", "ternary", "for", "while", "assert", "buffer", "number"]
    kind = draw(st.sampled_from(kinds))
    name = draw(st.sampled_from(["x", "y", "z", "h"]))
    old = draw(st.sampled_from([each for each in scope.tensors if each != "x"] or scope.tensors))
    comment = draw(st.sampled_from(["", "", "  # keep me"]))
    if kind == "augment":
        return [f"{indent}{old} += {draw(st.sampled_from(['1', '0.5', 'self.seen']))}{comment}"]
    if kind == "write":
        return [
            f"{indent}{old}[{draw(st.sampled_from(['0', ':, 1', '..., 2:']))}] = {draw(st.sampled_from(['0.5', '-1.0']))}"
        ]
    if kind == "method":
        return [f"{indent}{old}.{draw(st.sampled_from(['mul_(0.5)', 'add_(1)', 'clamp_(-2, 2)']))}"]
    if kind == "buffer":
        return [
            f"{indent}{draw(st.sampled_from(['self.seen += 0.5', 'self.seen.copy_(' + old + '.detach())', 'self.seen.mul_(0.5)']))}"
        ]
    if kind == "assert":
        return [f"{indent}assert ({old}.abs() < 1e6).all(), 'too big'"]
    if kind == "number":
        scope.ints.append("k") if "k" not in scope.ints else None
        return [f"{indent}k = {draw(st.integers(1, 3))}"]
    if kind == "ternary":
        text = f"{indent}{name} = {expression(draw, scope)} if {condition(draw, scope)} else {expression(draw, scope)}"
    elif kind in ("if", "else", "elif"):
        return branch(draw, scope, indent, kind)
    elif kind == "for":
        inner = scope.inner(in_loop=True, may_return=scope.wild and scope.may_return)
        body = block(draw, inner, indent + "    ")
        return [
            f"{indent}for step in range({draw(st.integers(1, 2))}):{comment}",
            *(ending(draw, inner, indent + "    ", body) if scope.wild else body),
            *otherwise(draw, scope, indent),
        ]
    elif kind == "while":
        return loop(draw, scope, indent)
    else:
        text = f"{indent}{name} = {expression(draw, scope)}{comment}"
    if name not in scope.tensors:
        scope.tensors.append(name)
    return [text]


def wilder(draw: st.DrawFn, scope: Scope, indent: str) -> list[str]:
    """A number or flag from data, an int that is counted up, a list that grows, or a loop over rows."""
    a = draw(st.sampled_from(scope.tensors))
    kinds = ["scalar", "flag", "count", "state"]
    if scope.lists:
        kinds += ["append"] * 2
    if scope.depth < scope.deepest:
        kinds += ["rows"] * 2
    kind = draw(st.sampled_from(kinds))
    if kind == "scalar":
        name = draw(st.sampled_from(["p", "q"]))
        scope.scalars.append(name) if name not in scope.scalars else None
        return [f"{indent}{name} = {a}.{draw(st.sampled_from(['sum()', 'mean()', 'max()']))}"]
    if kind == "flag":
        name = draw(st.sampled_from(["done", "hit"]))
        value = draw(st.sampled_from(["True", "False", condition(draw, scope)]))
        scope.flags.append(name) if name not in scope.flags else None
        return [f"{indent}{name} = {value}"]
    if kind == "count":
        if not scope.ints:
            scope.ints.append("k")
            return [f"{indent}k = {draw(st.integers(0, 2))}"]
        return [f"{indent}{draw(st.sampled_from(scope.ints))} += 1"]
    if kind == "state":
        return [
            f"{indent}{draw(st.sampled_from(['self.count += 1', 'self.total = self.total * 0.5 + ' + a + '.mean().detach()']))}"
        ]
    if kind == "append":
        return [f"{indent}{draw(st.sampled_from(scope.lists))}.append({expression(draw, scope)})"]
    inner = scope.inner(in_loop=True)
    name = f"row{scope.depth}"
    lines = [f"{indent}for {name} in {a}:", f"{indent}    h = {a} * 0.5 + {name}"]
    if "h" not in inner.tensors:
        inner.tensors.append("h")
    lines += ending(draw, inner, indent + "    ", block(draw, inner, indent + "    "))
    return lines + otherwise(draw, scope, indent)


def otherwise(draw: st.DrawFn, scope: Scope, indent: str) -> list[str]:
    """The `else` of a loop, now and then."""
    if not scope.wild or draw(st.integers(0, 7)):
        return []
    return [f"{indent}else:", *block(draw, scope.inner(), indent + "    ")]


def branch(draw: st.DrawFn, scope: Scope, indent: str, kind: str) -> list[str]:
    deeper = indent + "    "
    lines = [f"{indent}if {condition(draw, scope)}:"]
    then = scope.inner()
    lines += ending(draw, then, deeper, block(draw, then, deeper))
    ends = [then]
    if kind == "elif":
        lines.append(f"{indent}elif {condition(draw, scope)}:  # second")
        middle = scope.inner()
        lines += ending(draw, middle, deeper, block(draw, middle, deeper))
        ends.append(middle)
    if kind != "if":
        lines.append(f"{indent}else:")
        other = scope.inner()
        lines += block(draw, other, deeper)
        ends.append(other)
        for name in ("y", "z", "h"):
            if all(name in each.tensors for each in ends) and name not in scope.tensors:
                scope.tensors.append(name)
    return lines


def ending(draw: st.DrawFn, scope: Scope, indent: str, lines: list[str]) -> list[str]:
    """The arm, which now and then leaves the function or the loop's round."""
    choice = draw(st.integers(0, 5))
    if choice == 0 and scope.may_return:
        return [*lines, f"{indent}return {expression(draw, scope)}"]
    if choice == 1 and scope.in_loop:
        return [*lines, f"{indent}continue"]
    if choice == 2 and scope.in_loop and scope.wild:
        return [*lines, f"{indent}break"]
    return lines


def loop(draw: st.DrawFn, scope: Scope, indent: str) -> list[str]:
    name = draw(st.sampled_from(scope.tensors))
    count = f"n{scope.depth}"
    inner = scope.inner(may_return=scope.wild and scope.may_return, in_loop=scope.wild)
    body = block(draw, inner, indent + "    ")
    if scope.wild:
        body = ending(draw, inner, indent + "    ", body)
    test = draw(
        st.sampled_from([f"{name}.abs().sum() < 40 and {count} < 3", f"{count} < 2 and ({name} < 3).all()"])
    )
    step = f"{indent}    {count} += 1"
    # What begins the next round early has counted before.
    body = [step, *body] if scope.wild else [*body, step]
    return [f"{indent}{count} = 0", f"{indent}while {test}:", *body, *otherwise(draw, scope, indent)]


@st.composite
def modules(draw: st.DrawFn) -> str:
    """The text of a file with a Module M whose forward takes one tensor of shape (3, 4); few nest deeply.

    Tracing nested torch.conds takes time that grows with their depth by a power: 0.3 s for one, 30 s for ten.
    """
    deep = draw(st.integers(0, RARELY)) == RARELY // 2
    scope = Scope(["x"], deepest=2 if deep else 1)
    lines = ["        x = x * 1.0"] if draw(st.integers(0, 3)) else []
    lines += block(draw, scope, " " * 8, at_least=2 if deep else 0)
    lines += branch(draw, scope, " " * 8, draw(st.sampled_from(["if", "if", "else", "else", "elif"])))
    result = draw(st.sampled_from(scope.tensors))
    several = draw(st.booleans())
    returns = any(line.strip().startswith("return") for line in lines)
    last = (
        f"        return {result}, {expression(draw, scope)}"
        if several and not returns
        else f"        return {result} * 2"
    )
    return HEAD + "\n".join(["    def forward(self, x):", *lines, last]) + "\n"


@st.composite
def wild_modules(draw: st.DrawFn) -> str:
    """As `modules`, with loops that are left in all ways, over rows too, numbers and flags of data, lists that grow, state in
    plain attributes and a method beside `forward`."""
    given = Scope(["x", "y"], depth=1, deepest=2, wild=True)
    method = block(draw, given, " " * 8)
    scope = Scope(["x", "y"], wild=True, calls=True, deepest=2)
    lines = ["        x = x * 1.0", "        y = x.roll(1, 0)"]
    last = "        return {} * 1.0"
    if draw(st.integers(0, 3)) == 0:
        lines.append("        out = [x]")
        scope.lists.append("out")
        scope.may_return = False
        last = "        return {} + torch.stack(out).sum(0)"
    lines += block(draw, scope, " " * 8)
    lines += branch(draw, scope, " " * 8, draw(st.sampled_from(["if", "else", "elif"])))
    lines += block(draw, scope, " " * 8)
    result = draw(st.sampled_from(scope.tensors))
    return (
        HEAD.rstrip("\n")
        + "\n"
        + "        self.count = 0\n        self.total = torch.zeros(())\n\n    def added(self, x, y):\n"
        + "\n".join(
            [*method, "        return y * 1.0", "", "    def forward(self, x):", *lines, last.format(result)]
        )
        + "\n"
    )
