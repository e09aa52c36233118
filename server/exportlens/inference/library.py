"""Library: objects of other packages that model code makes and asks, namespaces, distributions and generators of random numbers."""

from __future__ import annotations

from exportlens.inference.numpy_calls import call_numpy
from exportlens.inference.values import (
    Bound,
    Const,
    Instance,
    Named,
    Native,
    Shape,
    Static,
    Tensor,
    Unknown,
    Value,
)

_NAMESPACES = frozenset({"types.SimpleNamespace", "argparse.Namespace"})
_DISTRIBUTIONS = "torch.distributions."
# What torch.distributions.Distribution gives: tensors by method, and tensors by property.
_DRAWS = frozenset(
    {"sample", "rsample", "log_prob", "entropy", "cdf", "icdf", "perplexity", "enumerate_support"}
)
_MOMENTS = frozenset({"mean", "mode", "stddev", "variance", "probs", "logits", "loc", "scale", "base_dist"})
# How far one distribution is from another: a tensor.
_DIVERGENCES = frozenset({"torch.distributions.kl_divergence", "torch.distributions.kl.kl_divergence"})

_STACK = "contextlib.ExitStack"
# What makes generators of random numbers, and their classes.
_GENERATORS = {
    "numpy.random.default_rng": "numpy.random.Generator",
    "numpy.random.RandomState": "numpy.random.RandomState",
    "random.Random": "random.Random",
}
_NUMBERS = {
    **dict.fromkeys(
        ("random", "uniform", "gauss", "normalvariate", "betavariate", "triangular", "expovariate"), "float"
    ),
    **dict.fromkeys(("randint", "randrange", "getrandbits"), "int"),
}


def make_object(name: str, args: list[Value], kwargs: dict[str, Value], tracing: bool) -> Instance | None:
    """The object that calling the external class `name` makes; None for classes that are not known here."""
    short = name.rpartition(".")[2]
    if name == _STACK:
        return Instance(Named(name), open=True)
    if name in _GENERATORS:
        seed = kwargs.get("seed") or kwargs.get("x") or (args[0] if args else None)
        anew = {_SEED: seed} if tracing and seed is not None and _is_number(seed) else {}
        return Instance(Named(_GENERATORS[name]), arguments=anew, open=True)
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


def compare_objects(name: str, args: list[Value]) -> Value | None:
    """What the external function `name` tells of objects that `make_object` made; None for other functions and objects."""
    if name in _DIVERGENCES and any(_is_distribution(each) for each in args):
        return Tensor()
    return None


def _is_distribution(value: Value) -> bool:
    return (
        isinstance(value, Instance)
        and isinstance(value.cls, Named)
        and value.cls.name.startswith(_DISTRIBUTIONS)
    )


def object_attribute(owner: Instance, attr: str) -> Value | None:
    """An attribute of an object that `make_object` made; None where nothing is known of it."""
    if isinstance(owner.cls, Named) and owner.cls.name == _STACK and attr == "enter_context":
        return Bound(owner, Native(f"{_STACK}.{attr}", lambda *_: Unknown("what a context gives")), attr)
    if isinstance(owner.cls, Named) and owner.cls.name in _GENERATORS.values():
        return Bound(owner, _draw(owner.cls.name, attr), attr)
    if not (isinstance(owner.cls, Named) and _is_distribution(owner)):
        return None
    if attr in _DRAWS:
        return Bound(owner, Native(f"{owner.cls.name}.{attr}", lambda *_: Tensor()), attr)
    if attr in _MOMENTS:
        return Tensor() if attr != "base_dist" else Unknown("the base of a distribution")
    return None


# Under this key stands the seed of a generator that each run of the traced code makes.
_SEED = "seed"


def draws_the_same(generator: Value | None) -> bool:
    """Whether `generator` certainly is one of random numbers that each run of the traced code makes anew, from one seed."""
    return isinstance(generator, Instance) and _SEED in generator.arguments


def _is_number(seed: Value) -> bool:
    if isinstance(seed, Const):
        return isinstance(seed.value, int)
    return isinstance(seed, Shape) or (isinstance(seed, Static) and seed.type == "int")


def _draw(kind: str, method: str) -> Native:
    """The method of a generator of random numbers of the class `kind`."""
    if kind.startswith("numpy."):
        return Native(
            f"{kind}.{method}",
            lambda machine, args, kwargs, frame, node: call_numpy(
                machine, f"numpy.random.{method}", args, kwargs, frame, node
            ),
        )
    number = _NUMBERS.get(method)
    drawn: Value = (
        Static(number) if number is not None else Unknown("what a generator of random numbers gives")
    )
    return Native(f"{kind}.{method}", lambda *_: drawn)
