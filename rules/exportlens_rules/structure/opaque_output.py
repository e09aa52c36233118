"""Outputs of classes that torch does not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from exportlens.finding import Applicability, Fix, Refusal
from exportlens.inference.places import Output, Place
from exportlens.inference.values import (
    Choice,
    ClassValue,
    Function,
    Instance,
    Mapping_,
    Named,
    Sequence,
    Static,
    Value,
    options,
)
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.distribution_outputs import distributions_in, register_distributions
from exportlens.rewriting.exporting.output_classes import register_output_classes
from exportlens.rule import Example, Report, Rule

from exportlens_rules.pytrees import REGISTRATIONS, children, is_registered
from exportlens_rules.structure.cache_output import is_cache

_OPAQUE_NAMES = {
    "torch.distributions.": "a distribution",
    "types.SimpleNamespace": "a SimpleNamespace",
    "argparse.Namespace": "a Namespace",
}


class OpaqueOutput(Rule):
    """The model returns an object that torch cannot take apart.

    ## What it does
    Finds outputs that hold instances of your own classes (dataclasses too), subclasses of dict and list,
    sets, generators, distributions, functions, Modules, dtypes and devices. Tensors, numbers, strings, None,
    tuples, named tuples, lists and dicts of them are fine, and so are classes that are registered as pytrees.

    ## Why it matters
    The outputs of a program are tensors in a structure that torch knows. Export fails with "Found <class
    ...> in output, which is not a known type".

    ## References
    - https://docs.pytorch.org/docs/stable/export/api_reference.html#torch.export.register_dataclass
    """

    code = "EXL601"
    name = "opaque-output"
    outcome = Outcome(FAILS, FAILS)
    places = (Output,)
    examples = (
        Example(
            bad="""
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Scores:
    mean: torch.Tensor


class M(nn.Module):
    def forward(self, x):
        return Scores(x.mean())
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return {"mean": x.mean()}
""",
        ),
        Example(
            bad="""
from torch import nn


class Result(dict):
    pass


class M(nn.Module):
    def forward(self, x):
        return Result(mean=x.mean())
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return dict(mean=x.mean())
""",
        ),
        Example(
            bad="""
def forward(self, x: torch.Tensor):
    return x + 1, x.dtype
""",
            good="""
def forward(self, x: torch.Tensor):
    return x + 1
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Output)
        for option in options(place.value):
            what = opaque(option, place, 0)
            if what:
                yield self.report(
                    place,
                    f"The model returns {what}, which torch.export does not know. Return tensors in a "
                    "tuple or dict, or "
                    "register the class with torch.export.register_dataclass or torch.utils._pytree.",
                )
                return

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Output)
        found = [each for option in options(report.place.value) for each in _unknown_objects(option, 0)]
        if not found:
            made = [each for option in options(report.place.value) for each in distributions_in(option)]
            if made:
                return register_distributions(made, context)
            return Refusal(
                "what is returned is of no class of yours that could be registered: return the tensors in a tuple, a "
                "list or a dict, and ask the tensors for the rest"
            )
        classes = register_output_classes(found, context)
        held = [
            each
            for one in found
            for value in one.attributes.values()
            for each in distributions_in(value)
            if isinstance(each.cls, Named) and not _registers(report.place, each.cls.name)
        ]
        if not held or isinstance(classes, Refusal):
            return classes
        distributions = register_distributions(held, context)
        if isinstance(distributions, Refusal):
            return distributions
        # Both may import torch.
        edits = tuple(dict.fromkeys((*distributions.edits, *classes.edits)))
        return Fix(classes.message, edits, Applicability.UNSAFE)


def opaque(value: Value, place: Output, depth: int) -> str:
    """What in `value` torch cannot take apart, in words; "" where nothing is known to be opaque."""
    if depth > 6:
        return ""
    if isinstance(value, Choice):
        found = [opaque(option, place, depth) for option in value.options]
        return found[0] if all(found) else ""
    if isinstance(value, Sequence):
        return _in_sequence(value, place, depth)
    if isinstance(value, Mapping_):
        return next(filter(None, (opaque(item, place, depth + 1) for item in value.items.values())), "")
    if isinstance(value, Function):
        return f"the function `{value.name}`"
    if isinstance(value, Named):
        return _named(value.name)
    if isinstance(value, Instance):
        return _instance(value, place, depth)
    if isinstance(value, Static) and value.type in ("dtype", "device", "layout", "range", "slice"):
        return f"a {value.type}"
    return ""


def _unknown_objects(value: Value, depth: int) -> Iterator[Instance]:
    """The objects in `value` whose classes torch does not know, those that they hold included."""
    if depth > 6:
        return
    inner: Iterable[Value] = ()
    if isinstance(value, Choice):
        for option in value.options:
            yield from _unknown_objects(option, depth)
        return
    if isinstance(value, Instance) and isinstance(value.cls, ClassValue):
        if not is_registered(value.cls):
            yield value
        inner = value.attributes.values()
    elif isinstance(value, Sequence):
        inner = value.items if value.items is not None else [value.element] if value.element else ()
    elif isinstance(value, Mapping_):
        inner = value.items.values()
    for each in inner:
        yield from _unknown_objects(each, depth + 1)


def _in_sequence(value: Sequence, place: Output, depth: int) -> str:
    if value.kind in ("set", "frozenset"):
        return f"a {value.kind}"
    if value.kind == "generator":
        return "a generator"
    items = value.items if value.items is not None else [value.element] if value.element else []
    return next(filter(None, (opaque(item, place, depth + 1) for item in items)), "")


def _named(name: str) -> str:
    parent, _, last = name.rpartition(".")
    dtypes = ("float16", "float32", "float64", "bfloat16", "int8", "int16", "int32", "int64", "uint8", "bool")
    return f"the dtype `{name}`" if parent == "torch" and last in dtypes else ""


def _instance(value: Instance, place: Output, depth: int) -> str:
    cls = value.cls
    if isinstance(cls, Named):
        for prefix, what in _OPAQUE_NAMES.items():
            if cls.name.startswith(prefix):
                return "" if _registers(place, cls.name) else what
        return f"the Module `{cls.name}`" if cls.name.startswith("torch.nn.modules.") else ""
    inside = children(value)
    if inside is not None:
        return next(filter(None, (opaque(item, place, depth + 1) for item in inside)), "")
    if not isinstance(cls, ClassValue) or is_cache(cls) or is_registered(cls) or not _bases_known(cls):
        return ""
    return f"an instance of `{cls.name}`"


def _registers(place: Output, name: str) -> bool:
    """Whether the file of `place` registers the library's class `name`."""
    text = getattr(place.site.scope.document, "text", "")
    firsts = [part.partition(",")[0] for word in REGISTRATIONS for part in text.split(f"{word}(")[1:]]
    return name.rpartition(".")[2] in {first.strip().rpartition(".")[2] for first in firsts}


def _bases_known(cls: ClassValue) -> bool:
    """Whether all bases are seen, and none of them is one that torch or a library registers."""
    known = (
        "builtins.",
        "typing.Generic",
        "abc.ABC",
        "collections.OrderedDict",
        "collections.UserDict",
        "enum.",
        "torch.distributions.",
    )
    for base in cls.bases:
        if isinstance(base, ClassValue):
            if is_registered(base) or not _bases_known(base):
                return False
        elif not (isinstance(base, Named) and base.name.startswith(known)):
            return False
    return True
