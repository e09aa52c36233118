"""Which of torch's functions a hardware target does not take: each one in a model of its own, lowered and saved.

    .tools/targets-coreml/bin/python scripts/measure_target_operators.py coreml

Run it with the interpreter that has the target's packages. The table is rules/exportlens_rules/targets/refused.json: per target the
functions that it refused, with its words; those of other targets are kept. A function counts as refused only where the model exports,
and where the model around it (`x + 1`) lowers.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "server"))
TABLE = ROOT / "rules" / "exportlens_rules" / "targets" / "refused.json"
LIMIT_SECONDS = 240

F = nn.functional
# Only functions whose refusal does not hang on their arguments (fold's stride, stft's window).
# The name by which code calls it, and what a forward returns; `x` is a float tensor of (4, 4), `i` an int64 one.
PROBES: dict[str, Any] = {
    "torch.fft.fft": lambda x, i: torch.fft.fft(x).abs(),
    "torch.fft.rfft": lambda x, i: torch.fft.rfft(x).abs(),
    "torch.fft.irfft": lambda x, i: torch.fft.irfft(torch.fft.rfft(x)),
    "torch.fft.fft2": lambda x, i: torch.fft.fft2(x).abs(),
    "torch.complex": lambda x, i: torch.complex(x, x).abs(),
    "torch.view_as_complex": lambda x, i: torch.view_as_complex(x.reshape(8, 2)).abs(),
    "torch.polar": lambda x, i: torch.polar(x, x).real,
    "torch.unique": lambda x, i: torch.unique(x),
    "torch.nonzero": lambda x, i: torch.nonzero(x),
    "torch.masked_select": lambda x, i: torch.masked_select(x, x > 0),
    "torch.linalg.svd": lambda x, i: torch.linalg.svd(x)[1],
    "torch.linalg.inv": lambda x, i: torch.linalg.inv(x),
    "torch.linalg.qr": lambda x, i: torch.linalg.qr(x)[0],
    "torch.linalg.eigh": lambda x, i: torch.linalg.eigh(x)[0],
    "torch.linalg.solve": lambda x, i: torch.linalg.solve(x, x),
    "torch.linalg.cholesky": lambda x, i: torch.linalg.cholesky(x @ x.mT),
    "torch.det": lambda x, i: torch.det(x),
    "torch.inverse": lambda x, i: torch.inverse(x),
    "torch.sort": lambda x, i: torch.sort(x)[0],
    "torch.topk": lambda x, i: torch.topk(x, 2)[0],
    "torch.kthvalue": lambda x, i: torch.kthvalue(x, 2)[0],
    "torch.median": lambda x, i: torch.median(x, dim=1)[0],
    "torch.mode": lambda x, i: torch.mode(x)[0],
    "torch.cumsum": lambda x, i: torch.cumsum(x, 1),
    "torch.cumprod": lambda x, i: torch.cumprod(x, 1),
    "torch.cummax": lambda x, i: torch.cummax(x, 1)[0],
    "torch.logcumsumexp": lambda x, i: torch.logcumsumexp(x, 1),
    "torch.bincount": lambda x, i: torch.bincount(i.reshape(-1)),
    "torch.histc": lambda x, i: torch.histc(x, 4),
    "torch.searchsorted": lambda x, i: torch.searchsorted(x, x),
    "torch.bucketize": lambda x, i: torch.bucketize(x, x[0]),
    "torch.cdist": lambda x, i: torch.cdist(x, x),
    "torch.einsum": lambda x, i: torch.einsum("ij,kj->ik", x, x),
    "torch.roll": lambda x, i: torch.roll(x, 1, 1),
    "torch.rot90": lambda x, i: torch.rot90(x),
    "torch.rand_like": lambda x, i: x + torch.rand_like(x),
    "torch.randperm": lambda x, i: x[torch.randperm(4)],
    "torch.erfinv": lambda x, i: torch.erfinv(x),
    "torch.lgamma": lambda x, i: torch.lgamma(x),
    "torch.digamma": lambda x, i: torch.digamma(x),
    "torch.scatter_add": lambda x, i: torch.scatter_add(x, 1, i, x),
    "torch.index_add": lambda x, i: torch.index_add(x, 0, i[0], x),
    "torch.scatter_reduce": lambda x, i: torch.scatter_reduce(x, 1, i, x, "amax"),
    "torch.take_along_dim": lambda x, i: torch.take_along_dim(x, i, 1),
    "torch.tril": lambda x, i: torch.tril(x),
    "torch.cond": lambda x, i: torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, (x,)),
    "torch.nn.functional.grid_sample": lambda x, i: F.grid_sample(
        x[None, None], torch.stack([x, x], -1)[None], align_corners=False
    ),
    "torch.nn.functional.unfold": lambda x, i: F.unfold(x[None, None], 2),
    "torch.nn.functional.pixel_shuffle": lambda x, i: F.pixel_shuffle(x.reshape(1, 4, 2, 2), 2),
    "torch.nn.functional.adaptive_max_pool2d": lambda x, i: F.adaptive_max_pool2d(x[None, None], 3),
    "torch.nn.functional.max_unpool2d": lambda x, i: F.max_unpool2d(
        *F.max_pool2d(x[None, None], 2, return_indices=True), (2, 2)
    ),
    "torch.nn.functional.ctc_loss": lambda x, i: F.ctc_loss(
        x[:, None].log_softmax(-1), i[:1, :2] + 1, torch.tensor([4]), torch.tensor([2])
    ),
}


class Probe(nn.Module):
    """One function, and nothing else that a target could refuse."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor, i: torch.Tensor) -> Any:
        """What the function makes of the two tensors."""
        return self.function(x, i)


def refusal(target: Any, function: Any) -> str | None:
    """The target's words on a program of `function`; None where it takes it, or where torch does not export it."""
    inputs = (torch.rand(4, 4), torch.arange(16).reshape(4, 4) % 4)
    try:
        program = torch.export.export(Probe(function).eval(), inputs)
    except Exception as error:
        print(f"  not exported: {type(error).__name__}")
        return None
    try:
        signal.alarm(LIMIT_SECONDS)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            lowered = target.lower(program, inputs, {})
            target.save(lowered, Path(tempfile.mkdtemp()) / f"artifact{target.suffix}")
    except TimeoutError:
        return None
    except Exception as error:
        words = str(error).strip().splitlines() or [type(error).__name__]
        return words[0][:160]
    finally:
        signal.alarm(0)
    return None


def _too_slow(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    """Measure one target and write its part of the table."""
    from exportlens.export.registry import known_targets

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("target", help="a name of `exportlens targets`")
    parser.add_argument(
        "--module", help="where its class is, for an interpreter without ExportLens: module:Class"
    )
    options = parser.parse_args()
    entry = options.module or known_targets()[options.target].entry
    module, _, attribute = entry.partition(":")
    target = getattr(importlib.import_module(module), attribute)()
    signal.signal(signal.SIGALRM, _too_slow)
    found = refusal(target, lambda x, i: x + 1)
    if found is not None:
        sys.exit(f"{options.target} takes nothing here: {found}")
    refused = {}
    for name, function in PROBES.items():
        words = refusal(target, function)
        print(f"{name}: {words or 'taken'}", flush=True)
        if words is not None:
            refused[name] = words
    table = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    table[options.target] = {"with": target.describe(), "torch": torch.__version__, "refused": refused}
    TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n", encoding="utf-8")
    # Some converters leave threads that would keep the process.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
