"""Files, paths and serialisation in forward."""

from __future__ import annotations

from exportlens.outcome import FAILS, OK, Outcome
from exportlens.rule import Example

from exportlens_rules.calls import CallOf


class Files(CallOf):
    """Files are read or written while tracing.

    ## What it does
    Finds `open`, `os.path.exists`, `os.makedirs`, `torch.load`, `pickle`, `json.dumps` and the like in traced
    code.

    ## Why it matters
    Strict tracing fails. In non-strict mode they run once, on the machine that exports, and never in the
    program.

    ## References
    - https://docs.pytorch.org/docs/stable/export.html
    """

    code = "EXL312"
    name = "files-in-forward"
    outcome = Outcome(FAILS, OK)
    no_fix = (
        "when the file shall be read or written is for you to say: read it in `__init__` into a buffer, and "
        "write it where the model is called"
    )
    callees = (
        "builtins.open",
        "os.path.exists",
        "os.path.isfile",
        "os.path.isdir",
        "os.makedirs",
        "os.mkdir",
        "os.listdir",
        "os.remove",
        "pathlib.Path.*",
        "torch.load",
        "pickle.*",
        "json.dump",
        "json.dumps",
        "json.load",
        "json.loads",
        "numpy.load",
        "numpy.save",
        "io.open",
    )
    wrong = "goes to files while tracing: strict tracing fails, and the program never does it."
    advice = "Do it in `__init__`, or after the model."
    examples = (
        Example(
            bad="""
def forward(self, x):
    with open("/dev/null") as file:
        text = file.read()
    return x + len(text)
""",
            good="""
def forward(self, x):
    return x + 0
""",
        ),
    )
