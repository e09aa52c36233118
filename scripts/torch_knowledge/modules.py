"""The classes of torch.nn: what their constructors make, what forward gives, and whether they export in
eval mode.

Instances come from torch's own module database and from MORE below for the classes that it lacks.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from exportlens.inference.knowledge.model import Op

from torch_knowledge import exports, sampling, surface
from torch_knowledge.calls import VARIABLES

NAMESPACES = ("torch.nn", "torch.nn.utils.parametrizations", "torch.nn.utils.parametrize")

# constructor | forward
MORE = """
nn.AlphaDropout(0.5) | x
nn.ChannelShuffle(2) | pix
nn.CosineSimilarity() | x, y
nn.CrossMapLRN2d(2) | img
nn.Dropout(0.5) | x
nn.Dropout1d(0.5) | seq
nn.Dropout2d(0.5) | img
nn.Dropout3d(0.5) | vol
nn.EmbeddingBag(5, 4) | i
nn.EmbeddingBag(5, 4) | ix, torch.tensor([0, 2])
nn.FeatureAlphaDropout(0.5) | img
nn.Flatten() | b
nn.Flatten() | img
nn.Fold((5, 5), 2) | torch.rand(1, 12, 16)
nn.Hardsigmoid() | x
nn.Identity() | x
nn.LazyLinear(4) | x
nn.LazyBatchNorm1d() | x
nn.LazyBatchNorm2d() | img
nn.LazyBatchNorm3d() | vol
nn.LazyInstanceNorm1d() | seq
nn.LazyInstanceNorm2d() | img
nn.LazyInstanceNorm3d() | vol
nn.MaxPool1d(2) | seq
nn.MaxPool2d(2) | img
nn.MaxPool3d(2) | vol
nn.MaxPool1d(2, return_indices=True) | seq
nn.MaxPool2d(2, return_indices=True) | img
nn.MaxPool3d(2, return_indices=True) | vol
nn.AdaptiveMaxPool1d(2, return_indices=True) | seq
nn.AdaptiveMaxPool2d(2, return_indices=True) | img
nn.AdaptiveMaxPool3d(2, return_indices=True) | vol
nn.FractionalMaxPool2d(2, output_size=3, return_indices=True) | img
nn.MaxUnpool1d(2) | *F.max_pool1d(seq, 2, return_indices=True)
nn.MaxUnpool2d(2) | *F.max_pool2d(img, 2, return_indices=True)
nn.MaxUnpool3d(2) | *F.max_pool3d(vol, 2, return_indices=True)
nn.PairwiseDistance() | x, y
nn.PixelShuffle(2) | pix
nn.PixelUnshuffle(2) | pix
nn.RReLU() | x
nn.Sequential(nn.Linear(3, 4), nn.ReLU()) | x
nn.SyncBatchNorm(3) | img
nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, batch_first=True), 1) | seq, seq
nn.TripletMarginLoss() | x, y, x + y
nn.TripletMarginWithDistanceLoss() | x, y, x + y
nn.AdaptiveLogSoftmaxWithLoss(3, 5, [2]) | x, ix[:2]
nn.Unflatten(1, (1, 3)) | x
nn.Unfold(2) | img
nn.Upsample(scale_factor=2) | img
nn.UpsamplingBilinear2d(scale_factor=2) | img
nn.UpsamplingNearest2d(scale_factor=2) | img
nn.MultiheadAttention(8, 2, batch_first=True) | seq, seq, seq
nn.RNN(8, 4, batch_first=True) | seq
nn.LSTM(8, 4, batch_first=True) | seq
nn.LSTM(8, 4, proj_size=2) | seq
nn.GRU(8, 4, 2, bidirectional=True) | seq
nn.Linear(3, 4) | x
nn.Linear(4, 2) | b
"""

Case = tuple[Callable[[], torch.nn.Module], tuple[Any, ...], dict[str, Any], dict[str, Any]]


def classes() -> dict[str, type[torch.nn.Module]]:
    """Public module classes by qualified name."""
    found: dict[str, type[torch.nn.Module]] = {}
    for name in sorted(dir(torch.nn)):
        value = getattr(torch.nn, name)
        if isinstance(value, type) and issubclass(value, torch.nn.Module) and value is not torch.nn.Module:
            found[f"torch.nn.{name}"] = value
    return found


def cases() -> dict[type, list[Case]]:
    """(constructor, forward args, forward kwargs, constructor arguments by name) by class."""
    from torch.testing._internal.common_modules import module_db

    found: dict[type, list[Case]] = {}
    scope = exports.environment()
    for line in MORE.strip().splitlines():
        constructor, _, forward = line.partition(" | ")
        torch.manual_seed(5)
        local = scope | {name: eval(text, scope) for name, text in VARIABLES.items()}
        args = eval(f"({forward},)", local)
        make = eval(f"lambda: {constructor}", scope)
        cls = type(make())
        arguments = eval("(lambda *a, **k: (a, k))" + constructor[constructor.index("(") :], scope)
        found.setdefault(_named_class(constructor, scope, cls), []).append(
            (make, args, {}, _named(cls, *arguments))
        )
    for info in module_db:
        for training in (False, True):
            torch.manual_seed(5)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    inputs = info.module_inputs_func(
                        info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
                    )
            except Exception:
                continue
            for item in inputs[:12]:
                built, given = item.constructor_input, item.forward_input
                if given is None:
                    continue
                make = _maker(info.module_cls, built.args, built.kwargs)
                named = _named(info.module_cls, built.args, built.kwargs)
                found.setdefault(info.module_cls, []).append((make, given.args, given.kwargs, named))
    return found


def _named_class(constructor: str, scope: dict[str, Any], built: type) -> type:
    named = eval(constructor[: constructor.index("(")], scope)
    return named if isinstance(named, type) else built


def _maker(cls: type, args: Any, kwargs: Any) -> Callable[[], torch.nn.Module]:
    return lambda: cls(*args, **kwargs)


def _named(cls: type, args: Any, kwargs: Any) -> dict[str, Any]:
    try:
        return dict(inspect.signature(cls).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):
        return dict(kwargs)


def collect(
    measured: dict[str, list[list[Any]]],
) -> tuple[dict[str, Any], dict[str, str], dict[str, list[list[Any]]]]:
    """The sections `modules`, `module_aliases` and the export notes of modules."""
    modules: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    notes: dict[str, list[list[Any]]] = {}
    known = cases()
    exports.warm_up()
    for qualified, cls in classes().items():
        aliases[f"{cls.__module__}.{cls.__qualname__}"] = qualified
        found = known.get(cls, [])
        modules[qualified] = _entry(cls, found)
        if qualified in measured:
            notes[qualified] = measured[qualified]
        elif found:
            note = _exported(found[0])
            if note is not None:
                notes[qualified] = [note]
    return modules, {key: value for key, value in aliases.items() if key != value}, notes


def _entry(cls: type[torch.nn.Module], found: list[Case]) -> dict[str, Any]:
    constructor = surface.from_signature(cls)
    if constructor and issubclass(cls, torch.nn.RNNBase) and cls is not torch.nn.RNNBase:
        constructor = _recurrent(cls)
    forward = surface.from_signature(cls.forward, drop_self=True)
    seen = [item for case in found if (item := _observe(case, forward)) is not None]
    returns, alternatives = _returns(seen, constructor)
    entry: dict[str, Any] = {
        "params": constructor.params if constructor else ["*args:any", "**kwargs:any"],
        "state": _state(cls, found),
        "attributes": _attributes(found),
        "forward": forward.params if forward else ["*args:any", "**kwargs:any"],
        "returns": returns,
    }
    if alternatives:
        entry["alternatives"] = alternatives
    # A container gives what its last Module gives.
    container = issubclass(cls, torch.nn.Sequential)
    flags = "f" if not container and sampling.gives_floats([item for _, item in seen]) else ""
    if any("nondeterministic_seeded" in item.tags for _, item in seen):
        flags += "r"
    if flags:
        entry["flags"] = flags
    return entry


def _recurrent(cls: type[torch.nn.Module]) -> surface.Overload | None:
    """RNN, LSTM and GRU pass their arguments on to RNNBase, which takes the kind of cell before them."""
    base = surface.from_signature(torch.nn.RNNBase)
    assert base is not None
    rows = [row for row in base.params if not row.startswith("mode:")]
    if cls is torch.nn.RNN:
        rows.insert(3, "nonlinearity:str='tanh'")
    if cls is not torch.nn.LSTM:
        rows = [row for row in rows if not row.startswith("proj_size:")]
    return surface.Overload(rows, base.returns)


def _observe(case: Case, forward: surface.Overload | None) -> tuple[dict[str, Any], sampling.Seen] | None:
    make, args, kwargs, arguments = case
    if forward is None:
        return None
    from exportlens.inference.knowledge.store import _params

    op = Op("forward", _params(forward.params), None)  # type: ignore[arg-type]
    torch.manual_seed(5)
    try:
        module = make().eval()
    except Exception:
        return None
    seen = sampling.observe(module, args, kwargs, op)
    return None if seen is None else (arguments, seen)


def _structure(result: Any) -> Any:
    if isinstance(result, tuple):
        return (result[0], tuple(_structure(item) for item in result[2]))
    return "tensor" if not isinstance(result, str) else result


def _returns(
    seen: list[tuple[dict[str, Any], sampling.Seen]], constructor: Any
) -> tuple[Any, list[list[Any]]]:
    """What forward gives, and what it gives instead under a constructor argument (return_indices == True)."""
    groups: dict[Any, list[tuple[dict[str, Any], sampling.Seen]]] = {}
    for arguments, item in seen:
        groups.setdefault(_structure(item.result), []).append((arguments, item))
    if not groups:
        return "any", []
    if len(groups) == 1:
        return sampling.infer_returns([item for _, item in seen]) or "any", []
    for name in ("return_indices", "return_attn_weights"):
        on = [item for arguments, item in seen if arguments.get(name) is True]
        off = [item for arguments, item in seen if arguments.get(name) is not True]
        if on and off and len({str(_structure(item.result)) for item in off}) == 1:
            entry = sampling.infer_returns(on)
            return sampling.infer_returns(off) or "any", [[f"{name} == True", entry]]
    merged = sampling.infer_returns([item for _, item in seen])
    return merged or "any", []


_LAYER = re.compile(r"_l\d+(_reverse)?$")


def _tensors(module: torch.nn.Module) -> Iterator[tuple[str, str]]:
    for name, value in module._parameters.items():
        if value is not None:
            yield _LAYER.sub("_l*", name), "parameter"
    for name, buffer in module._buffers.items():
        if buffer is not None:
            yield name, "buffer"
    for name, child in module._modules.items():
        if child is not None:
            public = next(base.__name__ for base in type(child).__mro__ if hasattr(torch.nn, base.__name__))
            yield name, f"torch.nn.{public}"


def _state(cls: type[torch.nn.Module], found: list[Case]) -> list[list[Any]]:
    """State of the first instance, each with the boolean argument without which it is None."""
    for _, _, _, arguments in found:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                full = _flipped(cls, arguments, None)
                state = dict.fromkeys(_tensors(full))
        except Exception:
            continue
        conditions: dict[tuple[str, str], list[str]] = {}
        for name, parameter in inspect.signature(cls).parameters.items():
            if not isinstance(parameter.default, bool):
                continue
            try:
                without = dict.fromkeys(_tensors(_flipped(cls, arguments, name)))
            except Exception:
                continue
            for entry in state:
                if entry not in without:
                    conditions.setdefault(entry, []).append(name)
        return [[name, kind, conditions.get((name, kind), [])] for name, kind in state]
    return []


def _flipped(cls: type[torch.nn.Module], arguments: dict[str, Any], off: str | None) -> torch.nn.Module:
    """An instance with every state-making flag on, but `off`."""
    given = dict(arguments)
    for name, parameter in inspect.signature(cls).parameters.items():
        if isinstance(parameter.default, bool) and name in _STATE_FLAGS:
            given[name] = name != off
    positional = given.pop("args", ())
    extra = given.pop("kwargs", {})
    return cls(*positional, **given, **extra)


_STATE_FLAGS = (
    "bias", "affine", "elementwise_affine", "track_running_stats", "add_bias_kv",
)  # fmt: skip


def _attributes(found: list[Case]) -> list[str]:
    """Constructor arguments that every instance keeps under their own name and with their value."""
    kept: set[str] | None = None
    for make, _, _, arguments in found:
        try:
            module = make()
        except Exception:
            continue
        mine = {
            name
            for name in inspect.signature(type(module)).parameters
            if name in vars(module) and (name not in arguments or _equal(vars(module)[name], arguments[name]))
        }
        kept = mine if kept is None else kept & mine
    return sorted(kept or ())


def _equal(kept: Any, given: Any) -> bool:
    plain = (bool, int, float, str, tuple, list, type(None))
    return isinstance(kept, plain) and isinstance(given, plain) and (kept == given)


def _exported(case: Case) -> list[Any] | None:
    make, args, kwargs, _ = case

    class Holder(torch.nn.Module):
        """Calls the module with what is no tensor held back."""

        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(5)
            self.inner = make()

        def forward(self, *given: Any) -> Any:
            return self.inner(*given, **kwargs)

    def build() -> tuple[torch.nn.Module, Callable[[int], tuple[Any, ...]]]:
        holder = Holder()
        with torch.no_grad():
            holder(*args)
        return holder.eval(), lambda seed: tuple(
            value.detach().clone() if isinstance(value, torch.Tensor) else value for value in args
        )

    result = exports.outcome(build)
    return None if result is None else [[], result[0], result[1], "", result[2]]
