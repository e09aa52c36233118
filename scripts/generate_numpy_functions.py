"""Which functions of NumPy have the same one in torch: measured, and shipped as data for the rewrites; and which of
them strict tracing does not know at all, for the rule on them.

The names are those that torch itself takes for its own in NumPy code (torch._numpy). One is kept when torch's
function of the same name gives NumPy's numbers, shape and dtype on arrays of float32 and float64 (of int64 where it takes
no others); every form of call is measured by itself. Run it with an interpreter that has torch and NumPy.
"""

from __future__ import annotations

import inspect
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch._numpy

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "server" / "exportlens" / "rewriting" / "arrays" / "numpy_functions.json"
UNTRACED = ROOT / "rules" / "exportlens_rules" / "randomness" / "untraced_numpy.json"
OTHER_NAMES = {
    "absolute": "abs",
    "power": "pow",
    "invert": "bitwise_not",
    "concatenate": "cat",
    "mod": "remainder",
}
FORMS: list[tuple[str, Any]] = [
    ("f(a)", lambda f, a, b: f(a)),
    ("f(a, b)", lambda f, a, b: f(a, b)),
    ("f(a, 2)", lambda f, a, b: f(a, 2)),
    ("f([a, b])", lambda f, a, b: f([a, b])),
    ("f(a, axis=1)", lambda f, a, b: f(a, axis=1)),
    ("f(a, axis=1, keepdims=True)", lambda f, a, b: f(a, axis=1, keepdims=True)),
    ("f(a, keepdims=True)", lambda f, a, b: f(a, keepdims=True)),
]


def arrays(name: str) -> list[tuple[Any, Any]]:
    """Pairs of arrays: of floats, or of integers for the functions that take nothing else."""
    numbers = np.random.default_rng(0)
    a, b = numbers.uniform(0.2, 0.9, (3, 4)), numbers.uniform(0.2, 0.9, (3, 4))
    floats = [(a.astype(dtype), b.astype(dtype)) for dtype in (np.float32, np.float64)]
    if any(result(call, getattr(np, name), *floats[0]) is not None for _, call in FORMS):
        return floats
    return [(numbers.integers(1, 9, (3, 4)), numbers.integers(1, 3, (3, 4)))]


def result(call: Any, function: Any, a: Any, b: Any) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return call(function, a, b)
    except Exception:
        return None


def same(name: str, other: str) -> list[str]:
    """The forms of call that NumPy takes and torch answers alike; empty where one of them differs."""
    forms = []
    for form, call in FORMS:
        verdicts = []
        for a, b in arrays(name):
            expected = result(call, getattr(np, name), a, b)
            if expected is None or not isinstance(expected, (np.ndarray, np.generic)):
                continue
            got = result(call, getattr(torch, other), torch.from_numpy(a), torch.from_numpy(b))
            verdicts.append(
                isinstance(got, torch.Tensor)
                and str(got.numpy().dtype) == str(expected.dtype)
                and got.shape == expected.shape
                and bool(np.allclose(got.numpy(), expected, rtol=1e-5, equal_nan=True))
            )
        if verdicts and all(verdicts):
            forms.append(form)
    return forms


def untraced() -> list[str]:
    """The functions of NumPy that torch has no translation of: a call of one stops strict tracing."""
    from torch._dynamo.variables.misc import get_np_to_tnp_map

    known = get_np_to_tnp_map()
    names = []
    for name in dir(np):
        function = getattr(np, name, None)
        if name.startswith("_") or not callable(function) or isinstance(function, type):
            continue
        try:
            if function not in known:
                names.append(name)
        except TypeError:  # not hashable: no function
            continue
    return sorted([*names, "errstate", "ndenumerate", "ndindex", "nditer", "poly1d", "vectorize"])


# What Dynamo refuses although torch's own array has it.
REFUSED_METHODS = ("tobytes",)


class _Reads(torch.nn.Module):
    """Reads one attribute of an array while it is traced."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        getattr(np.ones(3), self.name)
        return x + 1


def of_arrays() -> tuple[list[str], list[str]]:
    """The methods and the attributes of an array at which strict tracing stops."""
    of_torch = vars(torch._numpy)["ndarray"]
    methods = {
        name
        for name in dir(np.ndarray)
        if callable(getattr(np.ndarray, name)) and not hasattr(of_torch, name)
    }
    attributes = []
    for name in dir(np.ndarray):
        if name.startswith("_") or callable(getattr(np.ndarray, name)):
            continue
        torch._dynamo.reset()
        try:
            torch.export.export(_Reads(name), (torch.ones(3),), strict=True)
        except torch._dynamo.exc.Unsupported:
            attributes.append(name)
    public = {name for name in methods if not name.startswith("_")}
    return sorted(public.union(REFUSED_METHODS)), attributes


def refused() -> dict[str, dict[str, object]]:
    """The parameters that torch's translations know by name only, with the values (their defaults) that do not raise."""
    table: dict[str, dict[str, object]] = {}
    for name in sorted(dir(torch._numpy)):
        function = getattr(torch._numpy, name)
        if not callable(function) or isinstance(function, type) or not callable(getattr(np, name, None)):
            continue
        parameters = inspect.signature(inspect.unwrap(function)).parameters.values()
        found = {
            each.name: each.default for each in parameters if "NotImplementedType" in str(each.annotation)
        }
        if found:
            table[name] = {
                key: value if isinstance(value, bool | str | int) else None for key, value in found.items()
            }
    return table


def main() -> None:
    table = {}
    for name in sorted(dir(torch._numpy)):
        other = OTHER_NAMES.get(name, name)
        if (
            not name.startswith("_")
            and callable(getattr(np, name, None))
            and callable(getattr(torch, other, None))
        ):
            forms = same(name, other)
            if forms:
                table[name] = {"torch": other, "forms": forms}
    TARGET.write_text(
        json.dumps({"torch": torch.__version__, "functions": table}, indent=1) + "\n", encoding="utf-8"
    )
    names = untraced()
    methods, attributes = of_arrays()
    versions = {"torch": torch.__version__, "numpy": np.__version__}
    UNTRACED.write_text(
        json.dumps(
            {
                **versions,
                "names": names,
                "methods": methods,
                "attributes": attributes,
                "refused": refused(),
            },
            indent=1,
        )
        + "\n",
        encoding="utf-8",
    )
    print(f"{len(table)} functions, {len(names)} untraced")


if __name__ == "__main__":
    main()
