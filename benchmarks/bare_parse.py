"""Parses each file named on the command line with libcst and does nothing else, the cyclic collector off."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import libcst

if __name__ == "__main__":
    gc.disable()
    for name in sys.argv[1:]:
        libcst.parse_module(Path(name).read_bytes())
