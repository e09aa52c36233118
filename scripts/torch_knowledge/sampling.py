"""Rules and effects by observation: torch's own sample inputs are run, and a rule that predicts every
result is kept.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from exportlens.inference.knowledge.model import Constant, Op, TensorFacts
from exportlens.inference.knowledge.rules import DTYPE_RULES, RANK_RULES, dtype_after, rank_after, tensors_of
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float64, torch.float16)
SAMPLES_PER_DTYPE = 24
RANK_CANDIDATES = (
    "first", "=0", "first+1", "first-1", "first+2", "first-2", "=1", "=2", "=3", "=4", "broadcast", "reduce",
    "reduce-dim", "loss", "matmul", "size", "tile", "flatten", "unflatten", "one-dim", "embedding", "second",
    "nesting", "diagonal", "at-least-1", "at-least-2", "at-least-3", "reduce-broadcast",
)  # fmt: skip
DTYPE_CANDIDATES = (
    "same", "promote", "float", "promote-float", "accumulate", "real", "float-real", "complex", "second", 
    "numbers",
)  # fmt: skip


@dataclass
class Seen:
    """What one call of one overload did. `of_ints` are the dtypes that the same call of whole numbers gives."""

    bound: dict[str, Any]
    result: Any
    tags: set[str]
    mutated: list[int]
    shared: list[int]
    of_ints: tuple[str, ...] | None = None


class TagRecorder(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch types neither
    """Collects the tags of all operators that a call dispatches to."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.tags: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.tags |= {str(tag).removeprefix("Tag.") for tag in func.tags}
        return func(*args, **(kwargs or {}))


def facts(value: Any) -> Any:
    """A real argument as the knowledge package sees it."""
    if isinstance(value, torch.Tensor):
        return TensorFacts(dtype_name(value.dtype), value.dim())
    if isinstance(value, torch.dtype):
        return Constant(str(value), "dtype", dtype_name(value))
    if isinstance(value, (torch.Size, tuple, list)):
        return tuple(facts(item) for item in value)
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return Constant(type(value).__name__, "object", None)


def dtype_name(dtype: torch.dtype) -> str:
    """ "float32" for torch.float32."""
    return str(dtype).removeprefix("torch.")


def shape_of(result: Any) -> Any:
    """The structure of a result: facts for tensors, words for all else."""
    if isinstance(result, torch.Tensor):
        return TensorFacts(dtype_name(result.dtype), result.dim())
    if isinstance(result, torch.Size):
        return "size"
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return ("tuple", tuple(result._fields), tuple(shape_of(item) for item in result))
    if isinstance(result, tuple):
        fields = _structseq_names(result)
        return ("tuple", fields, tuple(shape_of(item) for item in result))
    if isinstance(result, list):
        return ("list", (), tuple(shape_of(item) for item in result))
    for kind, word in ((bool, "bool"), (int, "int"), (float, "float"), (complex, "number"), (str, "str")):
        if isinstance(result, kind):
            return word
    if result is None:
        return "none"
    if isinstance(result, torch.dtype):
        return "dtype"
    return "any"


def _structseq_names(result: tuple[Any, ...]) -> tuple[str, ...]:
    if type(result).__module__ != "torch.return_types":
        return ()
    return tuple(getattr(type(result), "__match_args__", ()))


def observe(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], op: Op) -> Seen | None:
    """Run one call; None where it raises or does not fit the overload's signature."""
    bound_values = op.bind(args, kwargs)
    if bound_values is None:
        return None
    before = {name: _version(value) for name, value in bound_values.items()}
    recorder = TagRecorder()
    torch.manual_seed(0)
    try:
        with warnings.catch_warnings(), recorder, torch.no_grad():
            warnings.simplefilter("ignore")
            result = call(*args, **kwargs)
    except Exception:
        return None
    if "nondeterministic_seeded" in recorder.tags and not _draws(call, args, kwargs):
        recorder.tags.discard("nondeterministic_seeded")
    order = [param.name for param in op.params]
    mutated = [order.index(name) for name, value in bound_values.items() if _version(value) != before[name]]
    storages = {_storage(tensor) for tensor in _leaves(result)} - {0}
    shared = [
        order.index(name)
        for name, value in bound_values.items()
        if storages & {_storage(tensor) for tensor in _leaves(value)}
    ]
    bound = {name: facts(value) for name, value in bound_values.items()}
    return Seen(bound, shape_of(result), recorder.tags, mutated, shared, _dtypes_of_ints(call, args, kwargs))


def _dtypes_of_ints(
    call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str, ...] | None:
    """The dtypes that the call gives where its tensors of floats and its numbers are whole ones; None where it has no such tensor."""
    tensors = [tensor for value in (*args, *kwargs.values()) for tensor in _leaves(value)]
    # Of nothing much is computed that no dtype has a kernel for.
    if not any(each.is_floating_point() for each in tensors) or any(each.numel() == 0 for each in tensors):
        return None
    found: list[str] = []
    for dtype in (torch.int64, torch.uint8, torch.bool):

        def whole(value: Any, dtype: torch.dtype = dtype) -> Any:
            if isinstance(value, float):
                return int(value) if math.isfinite(value) else value
            return value.detach().to(dtype) if value.is_floating_point() else value

        given = tree_map_only((torch.Tensor, float), whole, (args, kwargs))
        try:
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                found += [dtype_name(tensor.dtype) for tensor in _leaves(call(*given[0], **given[1]))]
        except Exception:
            continue
    return tuple(found)


def gives_floats(seen: list[Seen]) -> bool:
    """Whether nothing but tensors of floats was seen, of whole numbers as well, where none is complex and no dtype was asked for."""
    free = [
        item
        for item in seen
        if not isinstance(item.bound.get("dtype"), Constant)
        and not any((each.dtype or "").startswith("complex") for each in tensors_of(item.bound))
    ]
    tried = [item.of_ints for item in free if item.of_ints is not None]
    given = [dtype for item in free for dtype in _dtypes(item.result)]
    return bool(tried and given) and all(
        each.startswith(("float", "bfloat")) for each in [*given, *(one for found in tried for one in found)]
    )


def _dtypes(result: Any) -> list[str]:
    if isinstance(result, TensorFacts):
        return [str(result.dtype)]
    return [each for item in result[2] for each in _dtypes(item)] if isinstance(result, tuple) else []


def _draws(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether the state of torch's generator differs after the call: an operator may draw only for some
    arguments.
    """
    torch.manual_seed(0)
    before = torch.get_rng_state()
    try:
        with torch.no_grad():
            call(*args, **kwargs)
    except Exception:
        return True
    return not torch.equal(before, torch.get_rng_state())


def _version(value: Any) -> tuple[int, ...]:
    return tuple(tensor._version for tensor in _leaves(value) if not tensor.is_inference())


def _storage(tensor: torch.Tensor) -> int:
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def _leaves(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _leaves(item)


def samples(every: int = 1) -> Iterator[tuple[str, Any]]:
    """(name under torch, sample input) of torch's operator database, the same on every run.

    Of the database's entries only each `every`th is taken.
    """
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo.core import BinaryUfuncInfo

    for info in op_db[::every]:
        if info.name.startswith(("_", "ops.", "masked.")) or "__" in info.name:
            continue
        for dtype in DTYPES:
            if dtype not in info.supported_dtypes("cpu"):  # type: ignore[no-untyped-call]
                continue
            torch.manual_seed(0)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    make = info.reference_inputs if isinstance(info, BinaryUfuncInfo) else info.sample_inputs
                    # Seeding before each sample takes longer than making it.
                    given = make("cpu", dtype, set_seed=False)  # type: ignore[no-untyped-call]
                    found = list(itertools.islice(given, 200))
            except Exception:
                continue
            step = max(1, len(found) // SAMPLES_PER_DTYPE)
            for sample in found[::step]:
                for name in (info.name, *(alias.name for alias in info.aliases)):
                    yield name, sample


# --- from observations to rules
# ---------------------------------------------------------------------------------


Pairs = list[tuple[dict[str, Any], Any]]


def infer_returns(seen: list[Seen], *, pointwise: bool = False) -> Any | None:
    """The returns entry that all observations agree on; None where they differ in structure.

    For a pointwise operator of several tensors the rules that look at all of them come first, because samples
    in which the first decides alone do not speak against them.
    """
    return _infer([(item.bound, item.result) for item in seen], pointwise)


def _infer(pairs: Pairs, pointwise: bool = False) -> Any | None:
    first = pairs[0][1]
    if all(isinstance(result, TensorFacts) for _, result in pairs):
        dtype = _dtype_rule([(bound, result.dtype) for bound, result in pairs], pointwise)
        rank = _rank_rule([(bound, result.rank) for bound, result in pairs], pointwise)
        return f"tensor {dtype or '-'} {rank or '-'}"
    if all(isinstance(result, str) for _, result in pairs):
        words = {result for _, result in pairs}
        if len(words) == 1:
            return first
        return "number" if words <= {"int", "float", "bool", "number"} else None
    if not all(isinstance(result, tuple) and result[0] == first[0] for _, result in pairs):
        return None
    lengths = {len(result[2]) for _, result in pairs}
    if first[0] == "tuple" and len(lengths) == 1:
        items = [
            _infer([(bound, result[2][index]) for bound, result in pairs]) for index in range(len(first[2]))
        ]
        names = ",".join(first[1])
        return [f"tuple:{names}" if names else "tuple", *(item or "any" for item in items)]
    elements = [(bound, item) for bound, result in pairs for item in result[2]]
    element = _infer(elements) if elements else None
    return ["list", element or "any"]


def data_condition(seen: list[Seen], defaults: dict[str, str | None]) -> str:
    """The one argument that tells the calls that read data from those that do not; "" where none, or all, do.

    `defaults` are the parameters with their defaults as text, None where there is none.
    """
    tagged = [bool(item.tags & {"data_dependent_output", "dynamic_output_shape"}) for item in seen]
    if all(tagged) or not any(tagged):
        return ""
    for name, default in defaults.items():
        values = [item.bound.get(name, _MISSING) for item in seen]
        if [value is not _MISSING for value in values] == tagged:
            return f"{name} is given"
        if [value is _MISSING for value in values] == tagged and default is None:
            return f"{name} is missing"
        if [isinstance(value, TensorFacts) for value in values] == tagged:
            return f"{name} is tensor"
        texts = [default if value is _MISSING else repr(value) for value in values]
        reading = {text for text, flag in zip(texts, tagged, strict=True) if flag}
        other = {text for text, flag in zip(texts, tagged, strict=True) if not flag}
        if len(reading) == 1 and not reading & other and "(" not in str(min(reading, key=str)):
            return f"{name} == {reading.pop()}"
    return ""


_MISSING = object()


def _holds(predictions: list[Any], actual: list[Any]) -> bool:
    known = [(guess, real) for guess, real in zip(predictions, actual, strict=True) if guess is not None]
    return bool(known) and len(known) * 2 >= len(actual) and all(guess == real for guess, real in known)


def _dtype_rule(pairs: Pairs, pointwise: bool) -> str | None:
    free = [(bound, real) for bound, real in pairs if not isinstance(bound.get("dtype"), Constant)]
    if not free:
        return None
    actual = [real for _, real in free]
    candidates = ("promote", *DTYPE_CANDIDATES) if pointwise else DTYPE_CANDIDATES
    for rule in candidates:
        assert rule in DTYPE_RULES
        if _holds([dtype_after(rule, bound) for bound, _ in free], actual):
            return rule
    return f"={actual[0]}" if len(set(actual)) == 1 else None


def _rank_rule(pairs: Pairs, pointwise: bool) -> str | None:
    actual = [real for _, real in pairs]
    candidates = ("broadcast", *RANK_CANDIDATES) if pointwise else RANK_CANDIDATES
    for rule in candidates:
        assert rule.startswith(("=", "first")) or rule in RANK_RULES
        if _holds([rank_after(rule, bound) for bound, _ in pairs], actual):
            return rule
    return None
