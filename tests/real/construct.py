# ruff: noqa: E501 - one pattern a line reads better than one wrapped
"""Guess constructor arguments and inputs for a module class nobody described, until its eager forward runs.

Guesses go by parameter name, annotation and default, and by the module's own first layers; what torch or Python
says of a wrong guess is not parsed. Everything is bounded by `Budget`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import itertools
import re
import sys
import time
import typing
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn


class GaveUp(Exception):
    """No guess worked."""


@dataclasses.dataclass
class Budget:
    """Processor seconds that may be spent on one class, and the largest module worth exporting."""

    seconds: float = 6.0
    parameters: int = 40_000_000
    began: float = dataclasses.field(default_factory=time.process_time)

    def check(self) -> None:
        if time.process_time() - self.began > self.seconds:
            raise GaveUp("out of time")


@dataclasses.dataclass
class Built:
    """A module that ran, with what it was built from and run on, as text."""

    module: nn.Module
    arguments: tuple[Any, ...]
    init: str
    inputs: str
    profile: int = 0


class Settings(SimpleNamespace):
    """Stands for a `config`/`args` parameter: gets the attributes that the constructor asks for."""


class Keyed(dict[str, Any]):
    """The same for configurations that are read as dictionaries."""


# (pattern of the parameter's name, values by profile); the first that matches counts.
NAMED: list[tuple[str, tuple[Any, ...]]] = [
    (r"device", ("cpu",)),
    (r"dtype", (torch.float32,)),
    (r"(drop|dropout|drop_?path|p|prob|rate|keep_?prob)(out|_rate|_prob|_p|_ratio)?$", (0.1, 0.5)),
    (r".*(dropout|drop_rate|drop_prob|drop_path)", (0.1,)),
    (r"(eps|epsilon|.*_eps)$", (1e-5,)),
    (r"(alpha|beta|gamma|lambda_?|margin|temperature|tau|momentum|sigma|lr|scale|weight|negative_slope|smooth|.*_(weight|ratio|scale|coef|rate|factor|temperature|decay|margin))$", (0.5, 2, None)),
    (r"(use|with|is|has|do|no|return|enable|learn|apply|add|include|only)_", (False, True)),
    (r"(bias|affine|causal|bidirectional|bidir|batch_first|residual|inplace|training|normalize|pretrained|cuda|gpu|sparse|share.*|trainable|verbose|debug|deep_supervision|.*_only|.*bias)$", (False, True)),
    (r"(kernel|ksize|filter_size|k_size|conv_kernel|.*kernel_size|kernel_?sizes?|ks)$", (3, 1, (3, 3), [3, 3])),
    (r"(stride|strides|dilation|dilations|groups|group|.*_stride|upsample|downsample|ratio)$", (1, 2, (1, 1), [1, 2])),
    (r"(padding|pad|.*padding|output_padding)$", (1, 0, (1, 1))),
    (r"padding_idx|pad_id(x)?|.*_(idx|index|id)$", (0,)),
    (r"reduction(_ratio)?$", ("mean", 2, 1)),
    (r".*(activation|nonlinearity|non_linearity|act|act_layer|act_func|act_fn|activ)(_fn|_func|_layer|_type|_name)?$", (nn.ReLU, "relu", nn.ReLU())),
    (r".*norm(_layer|alization|_fn|_type|_func)?$", (nn.BatchNorm2d, "batch", nn.LayerNorm, None, nn.Identity, "bn")),
    (r"(block|blocks|conv_?layer|conv|conv_?block)$", (1, nn.Conv2d, nn.Identity())),
    (r"(mode|method|type|.*_type|.*_mode|name|.*_name|arch|model_name|pool|pooling|interpolation)$", ("mean", "bilinear", "max", "sum", "dot", "relu", "resnet18", "default")),
    (r"(num_)?(layers|blocks|stages|depths?|n_?blocks?|num_?repeat)(_?num|_per.*)?$", (1, 2, [1, 1, 1, 1], [2, 2], 4)),
    (r".*(n_?layers?|num_?layers?|nlayers|num_?blocks?|n_?blocks?|depth|num_?stages|n_?stacks?|n_?flows?|repeats?)$", (1, 2, [1, 1, 1, 1], 4)),
    (r".*(heads?|n_?head|nhead|num_heads)$", (4, 2, 1)),
    (r".*(image|img|input|spatial|feature|feat|fmap|map|grid|crop|target|out|output|window|patch|resolution|tile)_?(size|shape|resolution|hw)s?$", (4, 16, (4, 4), [4, 4], 32, 64, (4,))),
    (r".*(height|width|h|w|res|resolution)$", (4, 16, 64)),
    (r".*(hidden|channels?|dims?|features?|planes|filters|units|sizes|widths)_?(list|sizes|dims|channels)$", ([4, 4], 4, [4, 4, 4, 4], (4, 4))),
    (r"(model|net|network|encoder|decoder|backbone|module|layer|fn|func|function|base|base_model|body|head|generator|discriminator|classifier|sub_?module|transform|mlp|projection|embedder|embedding|attn|attention|attention_layer|self_attn|feed_forward|ff|feedforward|loss|loss_fn|criterion|bert|submodule|main|inner|distance|metric|wrapped|.*_(model|net|encoder|decoder|module|fn|layer|network|transform|head|embedder|extractor))$", (nn.ReLU(), nn.Linear(4, 4), nn.Conv2d(4, 4, 3, padding=1), nn.Identity, nn.LSTM(4, 4, batch_first=True))),
    (r"(modules|nets|models|encoders|backbones|mlps|heads_list|layers_list|experts)$", ([nn.ReLU()], [nn.Linear(4, 4)], nn.ModuleList([nn.ReLU(), nn.ReLU()]))),
    (r".*(vocab|dict|dictionary|tokenizer|alphabet)$", (["a", "b", "c", "d"], {"a": 0, "b": 1, "<pad>": 2, "<unk>": 3})),
    (r".*(vocab_?size|num_?tokens|n_?vocab|num_?embeddings|ntokens?|num_?classes|n_?class(es)?|nclass|num_?labels|n_?labels|num_items|n_?items)$", (4, 10)),
    (r".*(max_?len|max_?length|max_?seq_?len|seq_?len(gth)?|block_size|num_?positions|n_?ctx|context_(length|size))$", (16, 4, 64)),
    (r".*(weights?|matrix|tensor|embeddings|adj|adjacency|graph|mean|std|points|anchors|basis|grid|init)$", ("TENSOR", 0.5, None, 4, [0.5, 0.5])),
]  # fmt: skip

DIM_PROFILES = (4, 8, 16, 64, 1, 3, 2, 32)
PATTERNS = [(re.compile(pattern), values) for pattern, values in NAMED]


def tensor(*shape: int) -> torch.Tensor:
    return torch.rand(*shape)


def config_classes(annotation: Any, cls: type | None) -> list[type]:
    """Classes that a configuration parameter may want: its annotation, or a ...Config beside `cls`."""
    if annotation not in (None, inspect.Parameter.empty) and inspect.isclass(annotation):
        return [annotation]
    if cls is None:
        return []
    beside = vars(sys.modules[cls.__module__])
    named = [value for name, value in beside.items() if name.endswith(("Config", "Configuration", "Args"))]
    kinds = [value for value in named if inspect.isclass(value)]

    def distance(kind: type) -> int:
        pairs = enumerate(zip(kind.__name__, cls.__name__, strict=False))
        return -next((place for place, (one, other) in pairs if one != other), len(kind.__name__))

    return sorted(kinds, key=distance)[:2]


def value_for(name: str, annotation: Any, profile: int, depth: int = 0, cls: type | None = None) -> Any:
    """A value for a required parameter; `profile` turns through the alternatives."""
    lowered = name.lower()
    number = DIM_PROFILES[profile % len(DIM_PROFILES)]
    if re.fullmatch(
        r"(config|cfg|conf|args|opts?|options?|hparams?|params|hyperparams|hps?|flags|configs|h|settings|.*_(config|cfg|args|opts?|params))",
        lowered,
    ):
        for kind in config_classes(annotation, cls):
            with contextlib.suppress(Exception):
                return construct(kind, profile, depth + 1)
        return Keyed() if profile % 3 == 2 or "kwargs" in lowered else Settings()
    known = annotated(annotation, lowered, profile, number, depth)
    if known is not NotImplemented:
        return known
    for pattern, values in PATTERNS:
        if pattern.match(lowered):
            value = values[profile % len(values)]
            return tensor(4, 4) if isinstance(value, str) and value == "TENSOR" else value
    return [4, 4] if profile in (5, 9) else number


def annotated(annotation: Any, name: str, profile: int, number: int, depth: int) -> Any:
    """A value by annotation, NotImplemented where the name should decide."""
    origin = typing.get_origin(annotation)
    arguments = typing.get_args(annotation)
    if origin is typing.Union or str(type(annotation)) == "<class 'types.UnionType'>":
        kept = [item for item in arguments if item is not type(None)]
        return annotated(kept[profile % len(kept)], name, profile, number, depth) if kept else None
    if origin is typing.Literal:
        return arguments[profile % len(arguments)]
    if annotation is bool:
        return bool(profile % 2)
    if annotation is float:
        return (0.5, 0.1, 1.0, 2.0)[profile % 4]
    if annotation is int:
        for pattern, values in PATTERNS:
            if pattern.match(name):
                whole = [item for item in values if isinstance(item, int) and not isinstance(item, bool)]
                if whole:
                    return whole[profile % len(whole)]
        return number
    if annotation is torch.Tensor:
        return tensor(4, 4)
    if annotation is nn.Module:
        return (nn.ReLU(), nn.Linear(4, 4), nn.Conv2d(4, 4, 3, padding=1))[profile % 3]
    if origin in (list, tuple, typing.Sequence) or str(origin) == "<class 'collections.abc.Sequence'>":
        if not arguments:
            return [number, number]
        items = [item for item in arguments if item is not Ellipsis]
        if origin is tuple and Ellipsis not in arguments:
            return tuple(value_for(name.rstrip("s"), item, profile, depth) for item in items)
        made = [value_for(name.rstrip("s"), items[0], profile, depth) for _ in range(2 + 2 * (profile % 2))]
        return tuple(made) if origin is tuple else made
    if origin is dict:
        return {}
    if annotation is inspect.Parameter.empty:
        return NotImplemented
    ours = inspect.isclass(annotation) and annotation.__module__.split(".")[0] not in (
        "builtins",
        "typing",
        "torch",
    )
    if ours and depth < 2:
        return construct(annotation, profile, depth + 1)
    return NotImplemented


def hints(target: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(target)
    except Exception:
        return dict(getattr(target, "__annotations__", {}))


def constructor(cls: type) -> tuple[list[inspect.Parameter], dict[str, Any], bool]:
    """The parameters of `cls(...)`, those of the next class's constructor where `**kwargs` pass on; and their types."""
    found: dict[str, inspect.Parameter] = {}
    types: dict[str, Any] = {}
    passed_on = False
    for kind in cls.__mro__:
        init = vars(kind).get("__init__")
        if init is None or kind is nn.Module or kind is object:
            continue
        parameters = list(inspect.signature(init).parameters.values())[1:]
        for parameter in parameters:
            found.setdefault(parameter.name, parameter)
        types = {**hints(init), **types}
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
            break
        passed_on = True
    return list(found.values()), types, passed_on


def construct(cls: type, profile: int, depth: int = 0) -> Any:
    """One instance of `cls`, its configuration parameters filled with what its constructor asks for."""
    parameters, types, open_ended = constructor(cls)
    keywords: dict[str, Any] = {}
    positional: list[Any] = []
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            if depth == 0 and profile % 2 and not open_ended:
                positional = [nn.ReLU()]
            continue
        if parameter.default is not parameter.empty and not shrinks(parameter, profile):
            continue
        annotation = types.get(parameter.name, parameter.annotation)
        keywords[parameter.name] = value_for(parameter.name, annotation, profile, depth, cls)
    if positional and len(parameters) > 1:
        positional = []
    made = asked(lambda: cls(*positional, **keywords), keywords, profile)
    if depth == 0:
        made.__dict__["_built_from"] = describe(tuple(positional), keywords)
    return made


SHRUNK = re.compile(r".*(dim|hidden|embed|d_model|ffn|ff_size|feedforward|channels|features|vocab).*")


def shrinks(parameter: inspect.Parameter, profile: int) -> bool:
    """Whether a default is a large size that a later profile should replace: published sizes are slow to export."""
    big = isinstance(parameter.default, int) and parameter.default >= 512
    return profile >= 8 and big and SHRUNK.match(parameter.name.lower()) is not None


def asked(make: Any, keywords: dict[str, Any], profile: int) -> Any:
    """Call `make`, adding to configurations the attribute or key that it missed, until it returns or fails otherwise."""
    for _ in range(60):
        try:
            return make()
        except AttributeError as error:
            if not isinstance(error.obj, Settings) or error.name is None:
                raise
            setattr(error.obj, error.name, config_value(error.name, profile))
        except KeyError as error:
            owners = [value for value in keywords.values() if isinstance(value, Keyed)]
            key = error.args[0] if error.args else None
            if not owners or not isinstance(key, str) or key in owners[0]:
                raise
            owners[0][key] = config_value(key, profile)
    raise GaveUp("configuration never complete")


def config_value(name: str, profile: int) -> Any:
    if (
        re.match(r".*(config|cfg|args|opt|model|data|train|encoder|decoder|network)$", name.lower())
        and profile % 2
    ):
        return Settings()
    return value_for(name, None, profile)


def describe(positional: tuple[Any, ...], keywords: dict[str, Any]) -> str:
    """The arguments as text, short."""
    parts = [shown(value) for value in positional] + [
        f"{name}={shown(value)}" for name, value in keywords.items()
    ]
    return ", ".join(parts)[:400]


def shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        kind = "rand" if value.is_floating_point() else "long" if value.dtype is torch.int64 else "bool"
        return f"{kind}({', '.join(map(str, value.shape))})"
    if isinstance(value, nn.Module):
        return " ".join(repr(value).split())[:80]
    if isinstance(value, type):
        return value.__name__
    if isinstance(value, list | tuple):
        inner = ", ".join(shown(item) for item in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner},)"
    return repr(value)[:300]


INTEGER_NAMES = re.compile(
    r".*(ids?|tokens?|idx|indices|index|labels?|tags|targets?|lengths?|lens|tgt_?seq|src_?seq|captions?|text|words|chars|timesteps?|t|users?|items?)$"
)
MASK_NAMES = re.compile(r".*mask.*")
GENERIC = (
    (4, 4, 4, 4), (4, 4, 4), (4, 4), (4,), (4, 4, 4, 4, 4), (2, 3, 32, 32), (2, 3, 64, 64), (2, 1, 16, 16), (2, 64, 4, 4),
    (2, 3, 224, 224), (2, 16, 16), (2, 3, 8, 32, 32), (2, 64, 64), (2, 64), (2, 16000), (2, 1, 16000), (3, 32, 32), (4, 2), (2, 4, 3),
)  # fmt: skip


def shapes_for(module: nn.Module) -> list[tuple[tuple[int, ...], bool]]:
    """(shape, whether of integers) worth trying: what the module's own layers take, then the generic ones."""
    found: list[tuple[tuple[int, ...], bool]] = []
    for layer in itertools.islice(module.modules(), 400):
        new: list[tuple[tuple[int, ...], bool]] = []
        if isinstance(layer, nn.Linear):
            width = layer.in_features
            new = [((2, 4, width), False), ((4, width), False), ((2, 4, 4, width), False)]
        elif isinstance(layer, nn.Conv1d):
            new = [((2, layer.in_channels, 32), False), ((2, 32, layer.in_channels), False)]
        elif isinstance(layer, nn.Conv2d):
            c = layer.in_channels
            new = [((2, c, 16, 16), False), ((2, c, 64, 64), False), ((2, c, 224, 224), False)]
        elif isinstance(layer, nn.Conv3d):
            new = [((2, layer.in_channels, 8, 16, 16), False), ((2, layer.in_channels, 16, 32, 32), False)]
        elif isinstance(layer, nn.Embedding | nn.EmbeddingBag):
            new = [((2, 4), True), ((4,), True)]
        elif isinstance(layer, nn.LSTM | nn.GRU | nn.RNN):
            new = [((4, 4, layer.input_size), False)]
        elif isinstance(layer, nn.LayerNorm):
            new = [((2, 4, *layer.normalized_shape), False), ((2, *layer.normalized_shape), False)]
        elif isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.InstanceNorm2d):
            flat = isinstance(layer, nn.BatchNorm1d)
            new = [((4, layer.num_features) if flat else (2, layer.num_features, 8, 8), False)]
        found += [item for item in new if item not in found]
        if len(found) >= 9:
            break
    found += [(shape, False) for shape in GENERIC if (shape, False) not in found]
    if ((2, 4), True) not in found:
        found.insert(min(len(found), 6), ((2, 4), True))
    return found


def input_for(name: str, shape: tuple[int, ...], whole: bool) -> Any:
    """A tensor for one input by its name; masks are true everywhere."""
    if MASK_NAMES.match(name):
        return torch.ones(*shape[: max(2, len(shape) - 1)], dtype=torch.bool)
    if whole:
        return torch.randint(0, 4, shape)
    return torch.rand(*shape)


def input_sets(module: nn.Module) -> Iterator[tuple[Any, ...]]:
    """Arguments for `forward`: one shape for all, then pairs of differing shapes, integers by name first."""
    signature = inspect.signature(module.forward)
    names = [
        parameter.name
        for parameter in signature.parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
    ]
    if not names and any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values()):
        names = ["x"]
    if not names:
        names = [next(iter(signature.parameters))] if signature.parameters else []
    if not names:
        yield ()
        return
    shapes = shapes_for(module)
    integers = [INTEGER_NAMES.match(name) is not None for name in names]
    for shape, whole in shapes:
        yield tuple(input_for(name, shape, whole or of) for name, of in zip(names, integers, strict=True))
    if any(integers):
        for shape, _ in shapes:  # integers often have one dimension less, and sometimes the name lies
            yield tuple(
                input_for(name, shape[:1] if of else shape, of)
                for name, of in zip(names, integers, strict=True)
            )
            yield tuple(input_for(name, shape, False) for name in names)
    if len(names) > 1:
        for pair in itertools.islice(itertools.permutations(shapes, min(len(names), 3)), 250):
            padded = [*pair, *[pair[-1]] * (len(names) - len(pair))]
            yield tuple(
                input_for(name, shape, whole or of)
                for name, of, (shape, whole) in zip(names, integers, padded, strict=True)
            )
    else:  # one input may be a list of feature maps
        for shape, _ in shapes[:4]:
            yield ([torch.rand(*shape), torch.rand(*shape)],)


def has_tensor(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, dict):
        return any(has_tensor(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(has_tensor(item) for item in value)
    return hasattr(value, "__dict__") and any(isinstance(item, torch.Tensor) for item in vars(value).values())


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        [item.clone() for item in argument]
        if isinstance(argument, list)
        else argument.clone()
        if isinstance(argument, torch.Tensor)
        else argument
        for argument in arguments
    )


def renewed(cls: type, profile: int) -> nn.Module:
    """The same module again: the tries before the one that worked may have changed the first one's state."""
    torch.manual_seed(0)
    module: nn.Module = construct(cls, profile)
    module.__dict__.pop("_built_from", None)
    return module.eval()


def build(cls: type, budget: Budget) -> Built:
    """A module of `cls` in eval mode and arguments on which it ran and gave a tensor. Raises GaveUp."""
    last = "no profile constructs it"
    runs = 0
    for profile in range(12):
        budget.check()
        torch.manual_seed(0)
        try:
            module = construct(cls, profile)
        except GaveUp:
            raise
        except Exception as error:
            last = f"construct: {type(error).__name__}: {str(error)[:150]}"
            continue
        if not isinstance(module, nn.Module):
            raise GaveUp("no module comes out")
        if (
            sum(p.numel() for p in module.parameters() if not isinstance(p, nn.UninitializedParameter))
            > budget.parameters
        ):
            last = "too large"
            continue
        init = module.__dict__.pop("_built_from", "")
        module.eval()
        for arguments in input_sets(module):
            budget.check()
            runs += 1
            if runs > 300:
                raise GaveUp(last)
            torch.manual_seed(0)
            try:
                result = module(*copied(arguments))
            except Exception as error:
                last = f"run: {type(error).__name__}: {str(error)[:150]}"
                continue
            if has_tensor(result):
                return Built(renewed(cls, profile), arguments, init, describe(arguments, {}), profile)
            last = "gives no tensor"
    raise GaveUp(last)
