"""Options of torch's functions, true or false, that tensor data tell: `torch.sort(x, descending=flag)`."""

from __future__ import annotations

from exportlens.inference import knowledge
from exportlens.inference.places import Call
from exportlens.inference.values import Tensor, TensorScalar, Value, from_data

# Contexts ask for the truth of what they are given, by the name of the argument and its position.
_CONTEXTS = {
    "torch.autocast": ("enabled", 2),
    "torch.amp.autocast": ("enabled", 2),
    "torch.amp.autocast_mode.autocast": ("enabled", 2),
    "torch.cuda.amp.autocast": ("enabled", 0),
    "torch.cpu.amp.autocast": ("enabled", 0),
    "torch.set_grad_enabled": ("mode", 0),
    "torch.autograd.set_grad_enabled": ("mode", 0),
    "torch.inference_mode": ("mode", 0),
    "torch.autograd.inference_mode": ("mode", 0),
}


def option_from_data(place: Call) -> str | None:
    """The name of the argument that says yes or no, and that was read out of tensor data; None where there is none."""
    if not any(_is_read_out(each) for each in (*place.args, *place.kwargs.values())):
        return None
    context = _CONTEXTS.get(place.name)
    if context is not None:
        name, at = context
        given = place.argument(at, name)
        return name if _is_read_out(given) or _is_traced(given) else None
    op = knowledge.lookup_function(place.name)
    if op is None:
        return None
    shift = 1 if place.name.startswith("torch.Tensor.") else 0
    names = {
        parameter.name
        for each in op.overloads or (op,)
        for parameter in each.params
        if parameter.type.rstrip("?") == "bool"
    }
    for name in sorted(names):
        positions = {
            index - shift
            for each in op.overloads or (op,)
            for index, parameter in enumerate(each.params)
            if parameter.name == name and parameter.kind == "positional"
        }
        if _is_flag(place.kwargs.get(name)) or any(
            index < len(place.args) and _is_flag(place.args[index]) for index in positions if index >= 0
        ):
            return name
    return None


def _is_flag(value: Value | None) -> bool:
    return isinstance(value, TensorScalar) and value.type == "bool"


def _is_read_out(value: Value | None) -> bool:
    return isinstance(value, (TensorScalar, Tensor))


def _is_traced(value: Value | None) -> bool:
    """Whether `value` is a tensor whose value no mode knows: of one that the model holds, non-strict tracing does."""
    held = ("literal", "attribute")
    return isinstance(value, Tensor) and from_data(value) and value.origin not in held
