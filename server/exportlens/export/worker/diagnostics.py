"""What compilers write to stderr behind Python's back."""

from __future__ import annotations

import os
import sys
import tempfile

LONGEST = 1 << 20


class Diagnostics:
    """What is written to the process's stderr while the block runs; when it ends it goes there all the same, unless it
    is of a try that another one may follow.
    """

    def __init__(self, *, of_a_try: bool = False) -> None:
        self.text = ""
        self._of_a_try = of_a_try

    def __enter__(self) -> Diagnostics:
        sys.stderr.flush()
        self._file = tempfile.TemporaryFile()  # closed in __exit__
        self._log = os.dup(2)
        os.dup2(self._file.fileno(), 2)
        return self

    def __exit__(self, *_: object) -> None:
        sys.stderr.flush()
        os.dup2(self._log, 2)
        self._file.seek(0)
        written = self._file.read(LONGEST)
        self._file.close()
        if not self._of_a_try:
            os.write(2, written)
        os.close(self._log)
        self.text = written.decode(errors="replace")
