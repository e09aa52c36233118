"""Reads the generated data (torch.json) on first use and answers by name; torch itself is never imported."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from exportlens.inference.knowledge.effects import EFFECT_PREFIXES, EFFECTS
from exportlens.inference.knowledge.model import (
    Condition,
    Constant,
    Effect,
    ExportNote,
    ModuleKnowledge,
    Op,
    Param,
    Property,
    Returns,
    StateEntry,
    renamed,
)

DATA_FILE = Path(__file__).with_name("torch.json")


# Operators with another name for the same: torch's record of the dtypes says less of these.
_OTHER_NAMES = {"clip": "clamp", "clip_": "clamp_"}


@lru_cache(maxsize=1)
def _data() -> dict[str, Any]:
    text = DATA_FILE.read_bytes()
    data: dict[str, Any] = json.loads(text)
    return data


def torch_version() -> str:
    """The release from which the data was generated, e.g. "2.13.0"."""
    return str(_data()["torch"])


def canonical_name(qualified_name: str) -> str:
    """The public name of a re-export or private home: "torch.functional.einsum" is "torch.einsum"."""
    data = _data()
    name = data["aliases"].get(qualified_name, qualified_name)
    return str(data["module_aliases"].get(name, name))


@lru_cache(maxsize=4096)
def lookup_function(qualified_name: str) -> Op | None:
    """A function of torch by its qualified name; None for what torch does not have.

    Accepted are `torch.*` with its submodules, re-exports, `torch.Tensor.name` (the unbound method) and
    `torch.ops.aten.name[.overload]`.
    """
    if qualified_name.startswith("torch.Tensor."):
        return lookup_method(qualified_name.removeprefix("torch.Tensor."))
    if qualified_name.startswith("torch.ops.aten."):
        return _lookup_aten(qualified_name.removeprefix("torch.ops.aten."))
    name = canonical_name(qualified_name)
    other = _OTHER_NAMES.get(name.removeprefix("torch."))
    keys = _data()["functions"].get(name if other is None else f"torch.{other}")
    return None if keys is None else _group(name, keys, {"self": "input"})


@lru_cache(maxsize=2048)
def lookup_method(name: str) -> Op | None:
    """A Tensor method, the receiver being the first parameter (`self`); None for what a Tensor does not
    have.
    """
    keys = _data()["methods"].get(_OTHER_NAMES.get(name, name))
    return None if keys is None else _group(f"torch.Tensor.{name}", keys, {})


@lru_cache(maxsize=256)
def tensor_property(name: str) -> Property | None:
    """A Tensor attribute that is no method: shape, dtype, T, grad, data, ..."""
    entry = _data()["properties"].get(name)
    if entry is None:
        return None
    return Property(name, _returns(entry[0]), bool(entry[1]), _notes(f"torch.Tensor.{name}"))


@lru_cache(maxsize=512)
def lookup_module(qualified_name: str) -> ModuleKnowledge | None:
    """A class of torch.nn by its public name or by the file that defines it."""
    name = canonical_name(qualified_name)
    entry = _data()["modules"].get(name)
    if entry is None:
        return None
    forward = Op(
        name=f"{name}.forward",
        params=_params(entry["forward"]),
        returns=_returns(entry["returns"]),
        exports=_notes(name),
        **_flags(entry.get("flags", "")),
    )
    return ModuleKnowledge(
        name,
        _params(entry["params"]),
        tuple(StateEntry(name, kind, tuple(needs)) for name, kind, needs in entry["state"]),
        tuple(entry["attributes"]),
        forward,
        tuple((_condition(text), _returns(returns)) for text, returns in entry.get("alternatives", ())),
    )


@lru_cache(maxsize=512)
def lookup_constant(qualified_name: str) -> Constant[Any] | None:
    """A constant or class of torch that is neither function nor module: torch.float32, torch.pi,
    torch.finfo, ...
    """
    entry = _data()["constants"].get(qualified_name)
    if entry is None:
        return None
    kind, value = entry
    return Constant(qualified_name, kind, _FLOATS.get(value, value) if kind == "float" else value)


@lru_cache(maxsize=1024)
def effect_of(qualified_name: str) -> Effect | None:
    """What a call outside torch's operators does to the world: random numbers, clocks, logging, files, ..."""
    known = EFFECTS.get(qualified_name)
    if known is None:
        prefix = next((text for text in EFFECT_PREFIXES if qualified_name.startswith(text)), None)
        if prefix is None:
            return None
        known = EFFECT_PREFIXES[prefix]
    kind, returns = known
    return Effect(qualified_name, kind, returns, _notes(qualified_name))


def export_notes(qualified_name: str) -> tuple[ExportNote, ...]:
    """What was measured for any name, those included that are no operators: torch.distributions.Normal,
    builtins.max.
    """
    return _notes(canonical_name(qualified_name))


def function_names() -> tuple[str, ...]:
    """All public functions, sorted."""
    return tuple(sorted(_data()["functions"]))


def method_names() -> tuple[str, ...]:
    """All Tensor methods, sorted."""
    return tuple(sorted(_data()["methods"]))


def module_names() -> tuple[str, ...]:
    """All module classes, sorted."""
    return tuple(sorted(_data()["modules"]))


_FLOATS = {"inf": math.inf, "nan": math.nan, "-inf": -math.inf}
_FLAGS = {
    "d": "data_dependent",
    "s": "dynamic_shape",
    "h": "reads_data",
    "r": "random",
    "p": "pointwise",
    "f": "gives_floats",
}


def _lookup_aten(name: str) -> Op | None:
    ops = _data()["ops"]
    base, _, overload = name.partition(".")
    if overload:
        key = f"aten::{base}" if overload == "default" else f"aten::{base}.{overload}"
        return _group(f"torch.ops.aten.{name}", [key], {}) if key in ops else None
    keys = [key for key in ops if key == f"aten::{base}" or key.startswith(f"aten::{base}.")]
    return _group(f"torch.ops.aten.{name}", keys, {}) if keys else None


def _group(name: str, keys: list[str], names: dict[str, str]) -> Op:
    notes = _notes(name)
    ops = _data()["ops"]
    overloads = tuple(renamed(_op(name, ops[key], notes), names) for key in keys)
    for op in overloads:
        object.__setattr__(op, "overloads", overloads)
    return overloads[0]


def _op(name: str, row: list[Any], notes: tuple[ExportNote, ...]) -> Op:
    rows, returns, flags, mutates, aliases = row[:5]
    method = name.startswith("torch.Tensor.")
    params = _spread(_params(rows), receiver=method)
    if "o" in flags and not method:
        params += (Param("out", "keyword", "any", "None"),)
    return Op(
        name=name,
        params=params,
        returns=_returns(returns),
        mutates=tuple(mutates),
        mutates_when="inplace" if "i" in flags else "max_norm" if "m" in flags else "",
        aliases=tuple(aliases),
        exports=notes,
        data_when=_condition(row[5]) if len(row) > 5 else None,
        **_flags(flags),
    )


def _flags(letters: str) -> dict[str, Any]:
    return {word: True for letter, word in _FLAGS.items() if letter in letters}


def _spread(params: tuple[Param, ...], *, receiver: bool) -> tuple[Param, ...]:
    """An int list may be spread over the call where it is the only positional parameter beside the receiver.

    Source: `allow_varargs_intlist` in torch/csrc/utils/python_arg_parser.cpp.
    """
    positional = [index for index, param in enumerate(params) if param.kind == "positional"][receiver:]
    if len(positional) != 1 or not params[positional[0]].type.startswith("int["):
        return params
    index = positional[0]
    return (*params[:index], replace(params[index], variadic=True), *params[index + 1 :])


_MARKS = {"*": "var", "**": "varkw"}


def _params(rows: list[str]) -> tuple[Param, ...]:
    """["self:tensor", "size:int[]", "|", "dtype:dtype?=None"]: after "|" by keyword only."""
    params: list[Param] = []
    kind = "positional"
    for row in rows:
        if row == "|":
            kind = "keyword"
            continue
        head, _, default = row.partition("=")
        name, _, type_word = head.partition(":")
        stars = len(name) - len(name.lstrip("*"))
        params.append(
            Param(
                name.lstrip("*"),
                _MARKS["*" * stars] if stars else kind,
                type_word or "any",
                default if "=" in row else None,
            )
        )
        if stars == 1:
            kind = "keyword"
    return tuple(params)


def _returns(entry: Any) -> Returns:
    """ "tensor bool reduce" (kind, dtype rule, rank rule; "-" where unknown) or ["tuple:values,indices",
    item, ...].
    """
    if isinstance(entry, str):
        words = entry.split(" ")
        dtype, rank = (None if word == "-" else word for word in ([*words[1:], "-", "-"])[:2])
        return Returns(words[0], dtype=dtype, rank=rank)
    head, *items = entry
    kind, _, names = head.partition(":")
    return Returns(kind, tuple(_returns(item) for item in items), tuple(names.split(",")) if names else ())


def _notes(name: str) -> tuple[ExportNote, ...]:
    rows = _data()["notes"].get(name, ())
    return tuple(
        ExportNote(strict, non_strict, tuple(_condition(text) for text in when), call, error)
        for when, strict, non_strict, call, error in rows
    )


def _condition(text: str) -> Condition:
    param, test, value = text.split(" ", 2)
    return Condition(param, test, value)
