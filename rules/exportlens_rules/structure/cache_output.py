"""Cache objects of transformers in outputs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeGuard

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Output, Place
from exportlens.inference.values import ClassValue, Instance, Mapping_, Named, Sequence, Value, options
from exportlens.outcome import FAILS, Outcome
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.exporting.caches import register_caches, registers_cache
from exportlens.rewriting.exporting.output_classes import register_output_classes
from exportlens.rewriting.state.registrations import without_cache
from exportlens.rule import Example, Report, Rule

from exportlens_rules.pytrees import ancestors, is_registered

# Known by name where their source is not: transformers has never registered these.
_CACHES = (
    "EncoderDecoderCache",
    "StaticCache",
    "HybridCache",
    "SlidingWindowCache",
    "MambaCache",
    "QuantizedCache",
)


class CacheOutput(Rule):
    """A key-value cache object is part of the output.

    ## What it does
    Finds outputs that hold an object of a cache class which nothing registers as a pytree, such as transformers'
    `DynamicCache` (registered by its own file up to 4.55) or `EncoderDecoderCache`, also inside an output class.

    ## Why it matters
    torch.export takes outputs apart into tensors, and does not know the class: export fails in both modes.
    Most models do not need the cache to be exported: `use_cache=False`. Where it is wanted, `register_dynamic_cache_export_support`
    of `transformers.integrations.executorch` (from 4.56 on) tells torch what a `DynamicCache` holds: the program then gives back
    its tensors.

    ## References
    - https://huggingface.co/docs/transformers/kv_cache
    """

    code = "EXL602"
    name = "cache-output"
    outcome = Outcome(FAILS, FAILS)
    places = (Output,)
    examples = (
        Example(
            bad="""
from torch import nn


class EncoderDecoderCache:
    def __init__(self, keys):
        self.keys = keys


class M(nn.Module):
    def forward(self, x, use_cache=True):
        cache = EncoderDecoderCache(x * 2) if use_cache else None
        return x + 1, cache
""",
            good="""
from torch import nn


class EncoderDecoderCache:
    def __init__(self, keys):
        self.keys = keys


class M(nn.Module):
    def forward(self, x, use_cache=False):
        cache = EncoderDecoderCache(x * 2) if use_cache else None
        return x + 1, cache
""",
        ),
    )

    def check(self, place: Place) -> Iterator[Report]:
        assert isinstance(place, Output)
        for option in options(place.value):
            name = next((_name(cache) for cache in _unregistered(option, place)), "")
            if name:
                yield self.report(
                    place,
                    f"The model returns an instance of the cache class `{name}`, which torch.export does not know. "
                    "Call it with use_cache=False, or register the class as a pytree.",
                )
                return

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        place = report.place
        assert isinstance(place, Output)
        found = [cache for option in options(place.value) for cache in _unregistered(option, place)]
        classes = [cache.cls for cache in found if isinstance(cache.cls, ClassValue)]
        if len(classes) == len(found):
            own = all(cls.scope.path == context.document.path for cls in classes)
            registered = (
                register_output_classes(found, context) if own else register_caches(classes, place, context)
            )
            if isinstance(registered, Fix):
                return registered
        return without_cache(place, context, _holds_cache)


def _holds_cache(value: Value) -> bool:
    return any(True for each in options(value) for _ in _caches(each, 0))


def _name(cache: Instance) -> str:
    return getattr(cache.cls, "name", "").rpartition(".")[2]


def _unregistered(value: Value, place: Output) -> Iterator[Instance]:
    """The caches in `value` whose class neither its own file nor that of the model registers."""
    for cache in _caches(value, 0):
        if not registers_cache(place.site.scope.document, _name(cache)):
            yield cache


def _caches(value: Value, depth: int) -> Iterator[Instance]:
    """The caches in `value` that are no pytrees."""
    if depth > 6:
        return
    inner: Iterable[Value] = ()
    if isinstance(value, Instance):
        if is_cache(value.cls):
            yield value
            return
        inner = value.attributes.values()
    elif isinstance(value, Mapping_):
        inner = value.items.values()
    elif isinstance(value, Sequence):
        inner = value.items or []
    for each in inner:
        yield from _caches(each, depth + 1)


def is_cache(cls: Value | None) -> TypeGuard[Named | ClassValue]:
    """Whether `cls` is a cache class that is no pytree. Old transformers register some in the file that defines them."""
    if isinstance(cls, ClassValue) and cls.scope.module_name.endswith("cache_utils"):
        return "Cache" in ancestors(cls) and not is_registered(cls)
    return isinstance(cls, (Named, ClassValue)) and cls.name.rpartition(".")[2] in _CACHES
