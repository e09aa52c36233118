"""Whether what two ways through a branch give can be one output of it: torch.cond takes the same dtype and structure on both."""

from __future__ import annotations

from collections.abc import Sequence

from exportlens.inference.values import Const, Mapping_, Tensor
from exportlens.rewriting.code.draft import Refused, RefusedNumber
from exportlens.rewriting.kinds.kind import Kind, may_be_none


def same_kind(name: str, a: Kind, b: Kind) -> None:
    """Raise Refused where `a` and `b`, two ways to the result `name`, cannot both be outputs."""
    whats = {a.what, b.what}
    if "none" in whats or may_be_none(a) or may_be_none(b):
        raise Refused(f"{name} is None on one way")
    if whats <= {"number", "size", "scalar"} and {a.type, b.type} == {"int"}:
        return
    if "scalar" in whats:
        raise RefusedNumber(f"{name} is a Python number read out of tensor data")
    if whats <= {"number", "size"}:
        raise RefusedNumber(f"{name} is a Python number that tensor data would choose")
    if whats & {"number", "size"} and whats & {"tensor", "container"}:
        raise Refused(f"{name} is a tensor on one way and a Python number on another")
    if whats & {"number", "size"} and "unknown" in whats:
        raise Refused(f"{name} is a Python number on one way, and not known on another")
    for each in (a, b):
        refuse_object(name, each)
    if whats & {"static", "object"}:
        raise Refused(f"{name} is a Python object that tensor data would choose")
    same_tensor(name, a, b)


def same_tensor(name: str, a: Kind, b: Kind) -> None:
    """Raise Refused where `a` and `b`, two ways to the result `name`, are not tensors of one dtype and structure."""
    if a.what == b.what == "tensor":
        if a.dtype and b.dtype and _dtype_differs(a.dtype, b.dtype):
            raise Refused(
                f"{name} is of dtype {a.dtype} on one side of the branch and of {b.dtype} on the other, and torch.cond "
                "gives one dtype: convert the side that may change to the other's"
            )
        if a.rank is not None and b.rank is not None and a.rank != b.rank:
            raise Refused(
                f"{name} has {a.rank} dimensions on one side of the branch and {b.rank} on the other"
            )
    elif {a.what, b.what} == {"tensor", "container"}:
        raise Refused(f"{name} is one tensor on one side of the branch and several on the other")
    elif _keys_of(a) and _keys_of(b) and _keys_of(a) != _keys_of(b):
        odd = min(map(repr, _keys_of(a) ^ _keys_of(b)))
        raise Refused(f"{name} has {odd} on one side of the branch alone: torch.cond gives the same keys")
    elif (
        a.what == b.what == "container"
        and a.items is not None
        and b.items is not None
        and not (a.keys or b.keys)
    ):
        if len(a.items) != len(b.items):
            raise Refused(
                f"{name} has {len(a.items)} items on one side of the branch and {len(b.items)} on the other"
            )
        pairs = list(zip(a.items, b.items, strict=True))
        for one, other in pairs:
            if "container" in (one.what, other.what):
                same_tensor(f"an item of {name}", one, other)
        if any(is_number(one) != is_number(other) for one, other in pairs):
            raise Refused(
                f"{name} has Python numbers among its items on one side of the branch and tensors on the other: start with "
                "tensors, as `torch.zeros(())`"
            )


def _keys_of(kind: Kind) -> set[object]:
    """The keys of a dict, as far as they are known."""
    return set(kind.keys or (kind.value.items if isinstance(kind.value, Mapping_) else ()))


def refuse_object(name: str, kind: Kind) -> None:
    """Raise Refused where the result `name` is an object of Python."""
    if kind.what == "object" and kind.type.startswith("a "):
        raise Refused(
            f"{name} is an object ({kind.type}), of which torch.cond gives none: return its tensors as a tuple, and make it behind the branch"
        )


def is_number(kind: Kind) -> bool:
    return kind.what in ("number", "size", "scalar")


def is_constant(kind: Kind) -> bool:
    return kind.what == "number" and isinstance(kind.value, Const)


def _dtype_differs(a: str, b: str) -> bool:
    families = {
        "float": ("float", "bfloat", "double", "half"),
        "int": ("int", "uint"),
        "complex": ("complex",),
        "bool": ("bool",),
    }
    if a in families or b in families:
        short, full = (a, b) if a in families else (b, a)
        # What is only known to be of some float dtype is of the default one, mostly.
        return not full.startswith(families[short]) or (short == "float" and full not in ("float", "float32"))
    return a != b


def refuse_dimensions_by_data(ways: Sequence[Kind]) -> None:
    """Raise Refused where there are two `ways` to a result, and one gives a tensor without dimensions, the other one with. More ways may
    differ by an option, which is known when the program is traced."""
    first, *rest = ways
    for a, b in ((first, rest[0]), (rest[0], first)) if len(rest) == 1 else ():
        if a.what == "tensor" and a.rank == 0 and _has_dimensions(b):
            raise Refused(
                "the result has no dimensions on one side of the branch, and as many elements as data tell on the other"
            )


def _has_dimensions(kind: Kind) -> bool:
    """Whether it has one dimension at least, as what has as many elements as data tell: `x[x > 0] * 0.0`."""
    return kind.rank is None and isinstance(kind.value, Tensor) and kind.value.unbacked
