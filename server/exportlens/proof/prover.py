"""Runs under any interpreter that has torch: exports each example in both modes and compares with eager.

Reads JSON lines `{"text", "inputs", "kwargs", "init", "dynamic_shapes"}` on stdin and answers each with one
JSON line `{"strict": {"result", "detail", "eager"}, "non-strict": {...}}`; the first line out is `{"torch":
version}`. `result` is

- "ok": exports, and the program equals eager over two consecutive calls, fresh inputs and other seeds;
- "fails": torch.export raises;
- "differs": exports, but the program raises, returns no real tensors, or differs from eager;
- "broken": the example does not even run in eager, and yet it exports; or it cannot be built.

`detail` is torch's words, `eager` those of the eager run where it raised too (as torch.cond does, which
traces even in eager). Every example and mode runs in a process of its own, forked from one that has torch
warm. Standard library and torch only.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import io
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

LIMIT_SECONDS = 120


def prove(request: dict[str, Any]) -> dict[str, str]:
    """The answer to one request in its mode, computed in this process."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        result, detail, eager = _outcome(request, request["mode"] == "strict")
    return {"result": result, "detail": detail, "eager": eager}


def _outcome(request: dict[str, Any], strict: bool) -> tuple[str, str, str]:
    expected: list[tuple[int, Any]] = []
    eager_error = ""
    try:
        _seed(0)
        module = _load(request)
        eager = _model(module, request)
        _seed(0)
        inputs, kwargs = _inputs(module, request)
    except Exception as error:
        return "broken", _words(error), ""
    try:
        expected = [_call(eager, *arguments, kwargs) for arguments in _rounds(inputs)]
    except Exception as error:
        eager_error = _words(error)
    try:
        program = _export(request, module, inputs, kwargs, strict)
    except Exception as error:
        return "fails", _words(error), eager_error
    if eager_error:
        return "broken", eager_error, eager_error
    return *_compared(program, inputs, kwargs, expected), ""


def _compared(
    program: Callable[..., Any], inputs: Any, kwargs: dict[str, Any], expected: list[tuple[int, Any]]
) -> tuple[str, str]:
    for number, (arguments, (seed, wanted)) in enumerate(zip(_rounds(inputs), expected, strict=True)):
        try:
            got = _call(program, *arguments, kwargs)[1]
        except Exception as error:
            return "differs", f"call {number + 1} of the program raised {_words(error)}"
        difference = _difference(got, wanted)
        if difference:
            return "differs", f"call {number + 1} (seed {seed}): {difference}"
    return "ok", ""


def _export(
    request: dict[str, Any], module: Any, inputs: Any, kwargs: dict[str, Any], strict: bool
) -> Callable[..., Any]:
    # Afresh, so that the export does not see what the eager run left in the module's globals; operators of a
    # library can be defined once only, and then the first load has to do.
    with contextlib.suppress(Exception):
        _seed(0)
        module = _load(request)
    if hasattr(module, "program"):
        with _default_mode(strict):
            _seed(0)
            program: Callable[..., Any] = module.program().module()
            return program
    model = _model(module, request)
    shapes = request.get("dynamic_shapes")
    _seed(0)
    exported: Callable[..., Any] = torch.export.export(
        model,
        _copy(inputs),
        _copy(kwargs),
        strict=strict,
        **({"dynamic_shapes": eval(shapes, vars(module))} if shapes else {}),
    ).module()
    return exported


@contextlib.contextmanager
def _default_mode(strict: bool) -> Iterator[None]:
    """Let an example's own call of torch.export.export trace in the asked mode unless it says otherwise."""
    real = torch.export.export

    def export(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **{"strict": strict, **kwargs})

    torch.export.export = export
    try:
        yield
    finally:
        torch.export.export = real


def _load(request: dict[str, Any]) -> Any:
    path = os.path.join(request["folder"], f"example_{time.monotonic_ns()}.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(request["text"])
    name = os.path.basename(path)[:-3]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _model(module: Any, request: dict[str, Any]) -> Any:
    """The example's model: what `model()` returns where it defines one, else its Module M."""
    _seed(0)
    if hasattr(module, "model"):
        return module.model()
    return module.M(*eval(request.get("init") or "()", vars(module))).eval()


def _inputs(module: Any, request: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    names = {**vars(module), "torch": torch}
    return eval(request["inputs"], names), eval(request.get("kwargs") or "{}", names)


def _rounds(inputs: Any) -> list[tuple[int, Any]]:
    """Seed and arguments of each call: twice the example's, then other values, then the negatives."""
    return [
        (1, _copy(inputs)),
        (2, _copy(inputs)),
        (3, _map(inputs, _fresh)),
        (4, _map(inputs, lambda tensor: -tensor if tensor.is_floating_point() else _fresh(tensor))),
    ]


def _call(model: Any, seed: int, arguments: Any, kwargs: dict[str, Any]) -> tuple[int, Any]:
    _seed(seed)
    return seed, model(*arguments, **_copy(kwargs))


def _fresh(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype == torch.bool:
        return ~tensor
    if tensor.is_floating_point():
        generator = torch.Generator().manual_seed(tensor.numel())
        return (torch.rand(tensor.shape, generator=generator) * 3 + 0.5).to(tensor.dtype)
    return tensor.flatten().roll(1).reshape(tensor.shape)


def _copy(value: Any) -> Any:
    return _map(value, lambda tensor: tensor.detach().clone().requires_grad_(tensor.requires_grad))


def _map(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_map(item, change) for item in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_map(item, change) for item in value)
    if isinstance(value, dict):
        return {key: _map(item, change) for key, item in value.items()}
    return value


def _difference(got: Any, wanted: Any) -> str:
    if isinstance(got, torch.Tensor) and "Fake" in type(got).__name__:
        return "the program returned a FakeTensor"
    if isinstance(wanted, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            return f"a {type(got).__name__} instead of a tensor"
        if got.shape != wanted.shape or got.dtype != wanted.dtype:
            return f"{tuple(got.shape)} {got.dtype} instead of {tuple(wanted.shape)} {wanted.dtype}"
        if got.is_sparse or wanted.is_sparse:
            got, wanted = got.to_dense(), wanted.to_dense()
        if not torch.allclose(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True):
            return "other numbers"
        return ""
    if isinstance(wanted, (list, tuple)):
        if not isinstance(got, (list, tuple)) or len(got) != len(wanted):
            return f"another structure ({type(got).__name__})"
        return next(filter(None, map(_difference, got, wanted)), "")
    if isinstance(wanted, dict):
        if not isinstance(got, dict) or list(got) != list(wanted):
            return "other keys"
        return next(filter(None, (_difference(got[key], wanted[key]) for key in wanted)), "")
    if hasattr(wanted, "__dict__") and type(got).__name__ == type(wanted).__name__:
        return _difference(dict(vars(got)), dict(vars(wanted)))
    return "" if got == wanted else f"{got!r} instead of {wanted!r}"


def _seed(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed)


def _words(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]


def _forked(request: dict[str, Any]) -> dict[str, str]:
    """`prove` in a child process, killed when it takes too long; a death is an answer too."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            answer = prove(request)
        except BaseException as error:
            answer = {"result": "broken", "detail": _words(error), "eager": ""}
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            pipe.write(json.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "r", encoding="utf-8") as pipe:
        ready, _, _ = select.select([pipe], [], [], LIMIT_SECONDS)
        text = pipe.read() if ready else ""
    if not ready:
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text:
        return dict(json.loads(text))
    why = "took too long" if not ready else f"the process died (status {status})"
    return {"result": "fails", "detail": why, "eager": ""}


def _warm() -> None:
    """Import and compute what exports want lazily, once, before the first fork: also the ways of failing."""
    import torch._dynamo
    import torch.export

    class Warm(torch.nn.Module):
        seen: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.register_buffer("seen", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.seen += 1
            y = torch.cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.clone(), (x,))
            moved: torch.Tensor = self.linear(y[x > 0].sum() + y)
            return moved

    class Decides(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum().item() > 0 else -x

    given = (torch.ones(3, 2),)
    batch = {"x": {0: torch.export.Dim("batch")}}
    for strict in (True, False):
        # Older torch refuses the first of them as well: being warm is worth no error.
        with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
            torch.export.export(Warm(), given, dynamic_shapes=batch, strict=strict).module()(*given)
        with contextlib.suppress(Exception), contextlib.redirect_stderr(io.StringIO()):
            torch.export.export(Decides(), given, strict=strict)
    # torch.cond in eager compiles, and torch.compile turns this off for the rest of the process.
    torch.distributions.Distribution.set_default_validate_args(True)
    # A child that collects garbage would make the kernel copy every page of what is imported.
    gc.collect()
    gc.freeze()


def main() -> None:
    """Answer requests until stdin ends."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    _warm()
    print(json.dumps({"torch": torch.__version__}), file=out, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory(prefix="exportlens-example-") as folder:
            answer = {
                mode: _forked({**request, "mode": mode, "folder": folder})
                for mode in ("strict", "non-strict")
            }
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
