"""Threads, pools, subprocesses."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class Processes(CallOf):
    """Threads or processes are started while tracing.

    ## What it does
    Finds `threading`, `concurrent.futures`, `multiprocessing`, `subprocess` and `os.system` in traced code.

    ## Why it matters
    Strict tracing fails. What other threads compute is not recorded.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL311"
    name = "threads-and-processes"
    outcome = Outcome(FAILS, OK)
    no_fix = "a program has no threads or processes: start them where the model is called"
    callees = (
        "threading.*",
        "concurrent.futures.*",
        "multiprocessing.*",
        "torch.multiprocessing.*",
        "subprocess.*",
        "os.system",
        "os.popen",
        "os.fork",
        "asyncio.run",
    )
    wrong = "starts work that tracing does not see: strict tracing fails."
    advice = "Compute in forward itself."
    examples = (
        Example(
            bad="""
import threading

from torch import nn


class M(nn.Module):
    def forward(self, x):
        worker = threading.Thread(target=print)
        worker.start()
        worker.join()
        return x + 1
""",
            good="""
from torch import nn


class M(nn.Module):
    def forward(self, x):
        return x + 1
""",
        ),
    )
