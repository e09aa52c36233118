"""What all tests share: the order in which several processes take them, and no needless garbage collection."""

from __future__ import annotations

import gc
import os

import pytest

# torch collects garbage in full after each compilation, and non-strict mode compiles every torch.cond by itself:
# a tenth of such an export. Set before torch is imported; the processes that tests start inherit it.
os.environ.setdefault("TORCH_DYNAMO_RUN_GC_AFTER_COMPILE", "0")

# The folders whose tests take longest, one at a time or in their set-up. What stands in one group installs the same
# packages, or begins with an installation: two processes that ask for it at once would only wait for one another.
LONGEST = (("tests/real/",), ("tests/targets/", "tests/run/", "tests/fuzz/"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let each of several processes begin with long tests: what comes last ought to be short.

    pytest-xdist gives every process a stretch of this list, all equally long, and one that is through with its own
    takes over the end of another's.
    """
    processes = getattr(config, "workerinput", {}).get("workercount", 1)
    if processes == 1:
        return
    first: list[list[pytest.Item]] = [[] for _ in range(processes)]
    rest: list[pytest.Item] = []
    for item in items:
        group = next((at for at, folders in enumerate(LONGEST) if item.nodeid.startswith(folders)), None)
        (rest if group is None else first[group % processes]).append(item)
    ordered: list[pytest.Item] = []
    for process, long in enumerate(first):
        # As xdist counts: what is left, divided by the processes that are left, rounded down.
        length = (len(items) - len(ordered)) // (processes - process)
        ordered += long
        short = max(0, length - len(long))
        ordered += rest[:short]
        del rest[:short]
    items[:] = ordered + rest


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave torch and the tests themselves out of the collections to come: a tenth of the tests' time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
