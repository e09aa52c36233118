"""Library: objects of other packages that model code makes and asks, namespaces and probability distributions."""

from __future__ import annotations

from exportlens.inference.values import Bound, Instance, Named, Native, Tensor, Unknown, Value

_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
_DISTRIBUTIONS = "torch.distributions."
# What torch.distributions.Distribution gives: tensors by method, and tensors by property.
_DRAWS = frozenset(
    {"sample", "rsample", "log_prob", "entropy", "cdf", "icdf", "perplexity", "enumerate_support"}
)
_MOMENTS = frozenset({"mean", "mode", "stddev", "variance", "probs", "logits", "loc", "scale", "base_dist"})


_STACK = "contextlib.ExitStack"


def make_object(name: str, args: list[Value], kwargs: dict[str, Value]) -> Instance | None:
    """The object that calling the external class `name` makes; None for classes that are not known here."""
    short = name.rpartition(".")[2]
    if name == _STACK:
        return Instance(Named(name), open=True)
    if name in _NAMESPACES:
        return Instance(Named(name), dict(kwargs), open=bool(args))
    if name.startswith(_DISTRIBUTIONS) and short[:1].isupper() and not short.endswith(("Transform", "Error")):
        return Instance(
            Named(name),
            {},
            open=True,
            arguments={**{str(number): value for number, value in enumerate(args)}, **kwargs},
        )
    return None


def object_attribute(owner: Instance, attr: str) -> Value | None:
    """An attribute of an object that `make_object` made; None where nothing is known of it."""
    if isinstance(owner.cls, Named) and owner.cls.name == _STACK and attr == "enter_context":
        return Bound(owner, Native(f"{_STACK}.{attr}", lambda *_: Unknown("what a context gives")), attr)
    if not (isinstance(owner.cls, Named) and owner.cls.name.startswith(_DISTRIBUTIONS)):
        return None
    if attr in _DRAWS:
        return Bound(owner, Native(f"{owner.cls.name}.{attr}", lambda *_: Tensor()), attr)
    if attr in _MOMENTS:
        return Tensor() if attr != "base_dist" else Unknown("the base of a distribution")
    return None
