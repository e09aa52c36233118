"""Functions of Python's standard library that strict tracing does not follow."""

from __future__ import annotations

from exportlens.finding import Fix, Refusal
from exportlens.inference.places import Call
from exportlens.inference.values import Mapping_, Sequence, Tensor
from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rewriting.calls.plain_calls import method_for_copy, power_for_pow
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.decisions.bisected import BISECTING
from exportlens.rule import Example, Report

from exportlens_rules.calls import CallOf
from exportlens_rules.reading import is_data, tensors_in

# Measured on torch 2.13, each in a forward of its own: strict tracing fails, non-strict tracing runs them.
_UNTRACED = {
    "ast": ("literal_eval",),
    "base64": ("b64decode", "b64encode"),
    "binascii": ("hexlify", "unhexlify"),
    "bisect": ("bisect", "bisect_left", "bisect_right", "insort", "insort_left", "insort_right"),
    "builtins": ("pow",),
    "cmath": ("exp", "sqrt"),
    "copy": ("copy",),
    "decimal": ("Decimal",),
    "functools": ("cmp_to_key",),
    "gc": ("collect",),
    "getpass": ("getuser",),
    "glob": ("glob",),
    "hashlib": ("md5", "sha1", "sha256", "sha512"),
    "heapq": ("heapify", "heappop", "heappush", "heappushpop", "heapreplace", "nlargest", "nsmallest"),
    "importlib": ("import_module",),
    "inspect": ("getsource",),
    "itertools": ("combinations_with_replacement",),
    "logging": ("getLogger",),
    "os": ("cpu_count", "getcwd", "getpid", "path.abspath"),
    "pprint": ("pformat",),
    "queue": ("Queue",),
    "resource": ("getrusage",),
    "shutil": ("which",),
    "socket": ("gethostname",),
    "statistics": ("mean",),
    "sys": ("getsizeof",),
    "types": ("SimpleNamespace",),
    "zlib": ("compress", "crc32"),
}  # fmt: skip


class UntracedLibrary(CallOf):
    """A function of Python's standard library that strict tracing does not follow.

    ## What it does
    Finds calls into `heapq`, `bisect`, `hashlib`, `decimal`, `importlib` and other modules in traced code: those
    functions of the standard library whose calls fail in strict mode. So do `copy.copy` of a list or dict, and
    `pow(t, 2)` of a tensor (`t**2` is fine).

    ## Why it matters
    Strict tracing follows Python's bytecode, and these have none, or are left out on purpose. What they compute does
    not depend on tensors, so it can be computed before: in `__init__`, or at the top of the file.

    ## References
    - https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/export/programming_model.html
    """

    code = "EXL328"
    name = "untraced-library"
    outcome = Outcome(FAILS, OK)
    callees = tuple(f"{module}.{name}" for module, names in _UNTRACED.items() for name in names)
    no_fix = (
        "where it can be computed once is for you to say: in `__init__` where nothing of the call changes between runs, "
        "with operators of torch where it does"
    )
    wrong = "is a function that strict tracing does not follow."
    advice = "Compute it in __init__ or outside of the model, or export with strict=False."
    examples = (
        Example(
            bad="""
import bisect

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bounds = [2, 4, 8]

    def forward(self, x):
        return x * bisect.bisect(self.bounds, x.shape[1])
""",
            good="""
from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.bounds = [2, 4, 8]

    def forward(self, x):
        return x * sum(bound <= x.shape[1] for bound in self.bounds)
""",
        ),
        Example(
            bad="""
import hashlib

from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x * len(hashlib.md5(b"layer").hexdigest())
""",
            good="""
import hashlib

from torch import nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.length = len(hashlib.md5(b"layer").hexdigest())

    def forward(self, x):
        return x * self.length
""",
        ),
    )

    def applies(self, place: Call) -> bool:
        first = place.args[0] if place.args else None
        if place.name == "builtins.pow":
            return any(True for value in place.args for _ in tensors_in(value) if isinstance(value, Tensor))
        if place.name == "copy.copy":
            return isinstance(first, (Mapping_, Sequence)) and getattr(first, "kind", "dict") != "tuple"
        if place.name == "logging.getLogger":
            return first is not None
        # What bisects by tensor data is told there (EXL402), for both modes.
        return not (place.name in BISECTING and any(map(is_data, place.args)))

    def fix(self, report: Report, context: RewriteContext) -> Fix | Refusal | None:
        assert isinstance(report.place, Call)
        if report.place.name == "builtins.pow":
            return power_for_pow(report.place, context)
        if report.place.name == "copy.copy":
            return method_for_copy(report.place, context)
        return Refusal(self.no_fix)
