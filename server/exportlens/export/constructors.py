"""Proposed constructor arguments: by annotation, by name, and by what is read of them."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from exportlens.export.configurations import configuration, reads_of
from exportlens.export.flows import in_order
from exportlens.export.inlining import inlined
from exportlens.export.uses import sequence_length, used_arguments
from exportlens.source.parsing import parse_python

if TYPE_CHECKING:
    from exportlens.export.models import FileNames

BATCH = 2
LENGTH = 8
SIDE = 32
WIDTH = 8

# Constructor arguments by name, where neither a default nor an annotation gives a value: small sizes that
# fit together.
INT_BY_NAME = (
    (re.compile(r"head|group"), 2),
    (re.compile(r"layer|depth|block|repeat|stage"), 2),
    (re.compile(r"kernel|window"), 3),
    (re.compile(r"stride|scale|factor|dilation|expansion|ratio|patch"), 2),
    (re.compile(r"padding"), 1),
    (re.compile(r"vocab|token|entit|item|user"), 32),
    (re.compile(r"img|image|resolution"), SIDE),
    (re.compile(r"in_c|channels_in|in_chan"), 4),
    (re.compile(r""), WIDTH),
)
FLOAT_NAMES = re.compile(
    r"drop|rate|eps|alpha|beta|gamma|prob|temperature|momentum|slope|lambda|lr\b|weight$|^p$"
)
BOOL_NAMES = re.compile(
    r"^(use_|is_|has_|with_|return_)|bias$|bidirectional|batch_first|causal|inplace|affine"
)


_CONFIGURATIONS = re.compile(r"^(?:args|opts?|cfg|configs?|hparams|hps?|params)$")
_OBJECTS = re.compile(
    r"^(?!(?:d|dim|n)_)(?:\w+_)?(?:model|module|encoder|decoder|configs?|cfg|net|network|args|opts?|hparams|backbone)$"
)
"""Names of what is no number."""
_OR_AN_INT = re.compile(r"^(?:typing\.)?Union\[int,|^int \||\| int$")
"""Annotations of what may be one whole number."""
_PER_SIDE = re.compile(r"kernel|window|stride|padding|dilation|(?:img|image|patch|grid)_?size|resolution")
"""Names of what has a number for each side, as torch's layers take them."""


@dataclass
class Constructor:
    """Proposed constructor arguments: their text, and the values of the class's parameters as expressions."""

    text: str
    values: dict[str, ast.expr] = field(default_factory=dict)


def constructor_proposal(cls: ast.ClassDef, names: FileNames) -> Constructor | None:
    """Arguments for parameters without a default, by annotation and name; None where one cannot be made
    up.
    """
    init = names.method(cls, "__init__")
    if init is None:
        return Constructor("")
    used = used_arguments(init, names.method(cls, "forward"))
    arguments = [*init.args.posonlyargs, *init.args.args][1:]
    defaults: list[ast.expr | None] = [None] * (len(arguments) - len(init.args.defaults)) + list(
        init.args.defaults
    )
    pairs = [
        *zip(arguments, defaults, strict=True),
        *zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True),
    ]
    values: dict[str, ast.expr] = {}
    words = []
    for argument, default in pairs:
        if default is not None:
            values[argument.arg] = default
            continue
        named = _model_called(argument, cls, names)
        if named is not None:
            made: ast.expr | None = named
        elif argument.arg in used:
            made = parse_python(used[argument.arg], mode="eval").body
        else:
            made = _configuration(cls, argument, names) or _argument_value(
                argument, names, sequence_length(init, argument.arg)
            )
        if made is None:
            return None
        values[argument.arg] = made
        words.append(f"{argument.arg}={ast.unparse(made)}")
    return Constructor(", ".join(words), values)


def written_constructor(cls: ast.ClassDef, call: ast.expr, names: FileNames) -> Constructor | None:
    """The arguments of a constructor call that somebody wrote; None where it unpacks some."""
    init = names.method(cls, "__init__")
    if not isinstance(call, ast.Call) or init is None:
        return None
    if any(isinstance(each, ast.Starred) for each in call.args) or any(not k.arg for k in call.keywords):
        return None
    arguments = [a.arg for a in (*init.args.posonlyargs, *init.args.args)][1:]
    values = {**defaults_of(init), **dict(zip(arguments, call.args, strict=False))}
    values.update({k.arg: k.value for k in call.keywords if k.arg})
    words = [ast.unparse(each) for each in call.args]
    words += [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords]
    return Constructor(", ".join(words), values)


def defaults_of(function: ast.FunctionDef) -> dict[str, ast.expr]:
    """The parameters of a function that have a default, with it."""
    arguments = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    defaults = function.args.defaults
    found = dict(zip(arguments[len(arguments) - len(defaults) :], defaults, strict=True))
    only = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return found | {argument.arg: default for argument, default in only if default is not None}


def returned_call(function: ast.FunctionDef) -> ast.Call | None:
    """The call whose result a function returns, at once or by a name: `return Net(8)`, with its defaults and what it
    binds in it; None where it returns others.
    """
    bound: dict[str, ast.expr] = defaults_of(function)
    found: ast.expr | None = None
    for node in in_order(function):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            bound[node.targets[0].id] = inlined(node.value, bound)
        elif isinstance(node, ast.Return) and node.value is not None:
            found = inlined(node.value, bound)
    return found if isinstance(found, ast.Call) else None


def run_by_default(function: ast.FunctionDef) -> list[ast.stmt] | None:
    """What a function called without arguments runs, where it does nothing but bind names and return; None of one that does
    more, as it may train, read or write.
    """
    off = {
        n for n, value in defaults_of(function).items() if isinstance(value, ast.Constant) and not value.value
    }
    run = [
        statement
        for statement in function.body
        if not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant))
        and not (isinstance(statement, ast.If) and _asks_for(statement.test, off) and not statement.orelse)
    ]
    return run if all(isinstance(each, (ast.Assign, ast.AnnAssign, ast.Return)) for each in run) else None


def _asks_for(test: ast.expr, names: set[str]) -> bool:
    return isinstance(test, ast.Name) and test.id in names


def _model_called(argument: ast.arg, cls: ast.ClassDef, names: FileNames) -> ast.expr | None:
    """The model of this file that an argument is named or annotated for: `encoder` for `Encoder`."""
    said = names.full(argument.annotation) if argument.annotation is not None else ""
    wanted = argument.arg.replace("_", "").lower()
    found = next(
        (c for n, c in names.classes.items() if n == said or (not said and n.lower() == wanted)), None
    )
    if found is None or found is cls or not names.is_model(found):
        return None
    made = constructor_proposal(found, names)
    return parse_python(f"{found.name}({made.text})", mode="eval").body if made is not None else None


def _configuration(cls: ast.ClassDef, argument: ast.arg, names: FileNames) -> ast.expr | None:
    """An object for an argument of which the model reads parts by name."""

    def by_name(name: str, said: str, items: int | None) -> ast.expr | None:
        annotation = parse_python(said, mode="eval").body if said else None
        return _argument_value(ast.arg(name, annotation), names, items)

    annotation = names.full(argument.annotation) if argument.annotation is not None else ""
    unread = _CONFIGURATIONS.match(argument.arg) is not None and not annotation
    return configuration(reads_of(cls, argument.arg, names), annotation, names, by_name, unread=unread)


def _argument_value(argument: ast.arg, names: FileNames, items: int | None) -> ast.expr | None:
    said = ast.unparse(argument.annotation) if argument.annotation is not None else ""
    name = argument.arg.lower()
    if argument.annotation is not None and names.full(argument.annotation) in names.classes:
        return None
    if said in ("", "torch.device", "str") and name == "device":
        return ast.Constant("cpu")
    if said in ("bool",) or (not said and BOOL_NAMES.search(name)):
        return ast.Constant(False)
    number = next(size for pattern, size in INT_BY_NAME if pattern.search(name))
    if _OR_AN_INT.search(said):
        return ast.Constant(number)
    if items is not None and not said:
        several: list[ast.expr] = [ast.Constant(number) for _ in range(items)]
        return ast.Tuple(several) if _PER_SIDE.search(name) else ast.List(several)
    if said == "float" or (not said and FLOAT_NAMES.search(name)):
        return ast.Constant(0.1)
    if said == "int" or (not said and not _OBJECTS.search(name)):
        return ast.Constant(number)
    if re.fullmatch(r"(?:typing\.)?(?:Sequence|List|list|Tuple|tuple)\[int.*\]", said):
        return parse_python(
            f"[{WIDTH}, {WIDTH}]" if "ist" in said or "eq" in said else f"({WIDTH}, {WIDTH})", mode="eval"
        ).body
    if said.startswith(("Optional", "typing.Optional")) or said.endswith("| None"):
        return ast.Constant(None)
    if items is not None:  # gone through, whatever its annotation is called
        return ast.List([ast.Constant(WIDTH) for _ in range(items)])
    return None
