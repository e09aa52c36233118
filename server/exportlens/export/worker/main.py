"""The worker's front door, run by path in the user's interpreter: `python main.py`.

The protocol is JSON lines on what the server opened as stdin and stdout, moved at once to descriptors of
their own:
from then on fd 0 is empty and fd 1 is the log, so that nothing a model reads or prints can reach the
protocol.
"""

from __future__ import annotations

import importlib.util
import os
import sys


def _make_own_package_importable() -> None:
    """Register `exportlens` from this file's place, without putting any folder on the user's sys.path."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != here]
    package = os.path.dirname(os.path.dirname(here))
    spec = importlib.util.spec_from_file_location(
        "exportlens", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["exportlens"] = module
    spec.loader.exec_module(module)


def _take_protocol_descriptors() -> tuple[int, int]:
    """The request and event descriptors; stdin becomes empty and stdout the log (stderr)."""
    requests, events = os.dup(0), os.dup(1)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    return requests, events


def main() -> None:
    requests, events = _take_protocol_descriptors()
    if sys.version_info < (3, 10):  # noqa: UP036 (the user's interpreter, not ours)
        found = "{}.{}".format(*sys.version_info[:2])
        os.write(events, ('{"event": "unusable", "message": "Python %s is too old"}\n' % found).encode())  # noqa: UP031
        return
    _make_own_package_importable()
    from exportlens.export.worker.channel import Channel

    channel = Channel(events)
    if "--once" in sys.argv:
        from exportlens.export.worker.parent import serve_once

        serve_once(requests, channel)
    else:
        from exportlens.export.worker.parent import serve

        serve(requests, channel)


if __name__ == "__main__":
    main()
