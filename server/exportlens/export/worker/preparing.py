"""From a request to a model that eager has run once: imported, constructed, with inputs that it takes."""

from __future__ import annotations

import inspect
import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from exportlens.export.request import CHANGEABLE
from exportlens.export.worker import cases as inputs_of
from exportlens.export.worker.blame import Owner, describe
from exportlens.export.worker.cases import EXAMPLE
from exportlens.export.worker.changing import is_of_inputs
from exportlens.export.worker.comparing import forward_only, needs_what_is_kept
from exportlens.export.worker.confirming import Begun, begin
from exportlens.export.worker.fitting import FITTED, Calls, Fitter, Refusal, counted_calls, wider
from exportlens.export.worker.loading import (
    HOW_TO_GIVE_ARGUMENTS,
    HOW_TO_GIVE_INPUTS,
    Inputs,
    NotEvaluated,
    Subject,
    construct,
    import_user_module,
    read_inputs,
    seed_all,
    wrapped,
)
from exportlens.export.worker.stages import StageError, Stages
from exportlens.export.worker.witness import values_at

MOST_BYTES = 1 << 30
"""Of one tensor within a model, where it is called with sizes that nobody stated."""


@dataclass
class Prepared:
    """A model with inputs that eager takes."""

    subject: Subject
    inputs: Inputs
    chosen: dict[str, Any]
    cost: inputs_of.Cost
    without_backward: bool
    """The call needed no backward pass of its own."""
    begun: Begun | None = None
    """That call, where it took so long that it is not made once more."""

    @property
    def slow(self) -> bool:
        """Whether a call takes so long that fewer of them are made."""
        return self.cost.is_high

    def compared(self) -> AbstractContextManager[None]:
        """In what calls that are only compared run: a slow model's keep nothing for a backward pass."""
        return forward_only() if self.slow and self.without_backward else nullcontext()


@dataclass
class Ready:
    """A model before its first call: with the inputs for it, and with what that call takes, where it is known."""

    inputs: Inputs
    cost: inputs_of.Cost | None = None
    without_backward: bool = False


BeforeCall = Callable[[Subject, Inputs], Ready]


def prepare(
    request: dict[str, Any],
    stages: Stages,
    before_call: BeforeCall = lambda subject, inputs: Ready(inputs),
) -> Prepared:
    """Import, construct, make inputs and run eager once. Of several proposals, the first that works is
    taken; where none does, those that are guessed are changed by what eager says of them. What `before_call` knows of
    the call is not found out by making it.
    """
    stages.enter("import")
    module, name = import_user_module(request["model"], request.get("roots") or [])
    trials = _Trials(module, name, request, stages, before_call)
    proposals = request.get("proposals") or []
    given = {key: request.get(key) for key in ("init", "inputs", "kwargs", "dynamic_shapes")}
    stated = given["inputs"] is not None or given["kwargs"] is not None
    attempts = [given] if stated or not proposals else [_filled(given, proposal) for proposal in proposals]
    prepared = trials.first(attempts)
    if prepared is None and stated and given["init"] is None and trials.unmade:
        made = {proposal["init"]: None for proposal in proposals if proposal.get("init")}
        prepared = trials.first([{**given, "init": init} for init in made])
    if prepared is None and not stated:
        prepared = trials.fitted(may_construct=given["init"] is None)
    if prepared is None:
        raise trials.failure(len(attempts))
    stages.put("chosen", {**prepared.chosen})
    stages.put("passed_over", trials.passed_over())
    return prepared


def _filled(given: dict[str, Any], proposal: dict[str, Any]) -> dict[str, Any]:
    """The request's own words, and the proposal's where it has none."""
    return {**proposal, **{key: value for key, value in given.items() if value is not None}}


class _Trials:
    """The ways tried to make a model and to call it, and what became of each."""

    def __init__(
        self, module: Any, name: str, request: dict[str, Any], stages: Stages, before_call: BeforeCall
    ) -> None:
        self._module, self._name = module, name
        self._request, self._stages, self._before_call = request, stages, before_call
        self._made: dict[str | None, Subject | StageError] = {}
        self._refused: list[Refusal] = []

    @property
    def unmade(self) -> bool:
        """Whether no attempt got as far as a model."""
        return all(each.error.kind == "construct" for each in self._refused)

    def first(self, attempts: list[dict[str, Any]]) -> Prepared | None:
        """The first of the attempts that eager takes."""
        for words in attempts:
            found = self._tried(words)
            if not isinstance(found, Refusal):
                return found
            self._refused.append(found)
            if found.error.kind == "eager" and is_something_missing(found.error.error):
                break
        return None

    def fitted(self, *, may_construct: bool) -> Prepared | None:
        """A guess changed by what eager says of it, until eager takes it; None where it never does."""
        guesses = [each for each in self._refused if each.words.get("source") in CHANGEABLE]
        if guesses and may_construct and self.unmade:
            found = self.first([wider(each.words) for each in guesses])
            if found is not None:
                return found
            guesses = [each for each in self._refused if each.words.get("source") in CHANGEABLE]
        return Fitter(self._tried).fit(
            [
                each
                for each in guesses
                if each.error.kind == "eager" and not no_matter_of_inputs(each.error.error)
            ]
        )

    def passed_over(self) -> list[dict[str, Any]]:
        """The file's own export calls that were tried in vain before something else fitted: where each stands, what it gives
        and what became of it. One that does not evaluate outside of its place says nothing.
        """
        return [
            {"line": each.words["line"], "stage": each.error.kind, "message": each.error.message}
            for each in self._refused
            if each.words.get("line") and not isinstance(each.error, NotEvaluated)
        ]

    def failure(self, count: int) -> StageError:
        """What to say where nothing fits: of one attempt its own failure, of several what the furthest ran into."""
        last = max(self._refused[:count], key=lambda each: each.progress)
        error, words = self._explained(last.error), last.words
        if "source" not in words or no_matter_of_inputs(error.error):
            return error
        if error.kind == "construct" and words.get("init") and not self._request.get("init"):
            step = f"It was made as {self._name}({words['init']}), which is proposed. {HOW_TO_GIVE_ARGUMENTS}"
            return StageError("construct", f"{error.message}. {step}", error.error, _advised(error, step))
        if error.kind != "eager":
            return error
        tried = " and ".join(str(words[key]) for key in ("inputs", "kwargs") if words.get(key))
        guessed = words["source"] in CHANGEABLE
        step = f"The inputs are {'guessed' if guessed else 'from ' + words['source']}: {tried}"
        step += f", of {count} the furthest. {HOW_TO_GIVE_INPUTS}" if count > 1 else f". {HOW_TO_GIVE_INPUTS}"
        said = error.message.removeprefix("eager fails on the example inputs: ")
        message = f"no proposed inputs fit {self._name}: {said}. {step}"
        return StageError("inputs", message, error.error, _advised(error, step))

    def _tried(self, words: dict[str, Any]) -> Prepared | Refusal:
        with counted_calls() as calls:
            try:
                return self._attempt(words, calls)
            except StageError as error:
                # one that got to its call got further than one that could not be made
                reached = calls.ended + 1 if error.kind == "eager" else 0
                return Refusal(words, error, reached)

    def _subject(self, init: str | None) -> Subject:
        """The model made with these arguments; made once, as every call has a copy of its own."""
        if init not in self._made:
            self._stages.enter("construct")
            seed_all(0)
            try:
                made = construct(self._module, self._name, init, train=bool(self._request.get("train")))
                self._made[init] = wrapped(made) if self._request.get("wrap") and not made.is_module else made
            except StageError as error:
                self._made[init] = error
        found = self._made[init]
        if isinstance(found, StageError):
            raise found
        return found

    def _attempt(self, words: dict[str, Any], calls: Calls) -> Prepared:
        subject = self._subject(words.get("init"))
        self._stages.enter("inputs")
        ready = self._before_call(subject, read_inputs(subject, words))
        inputs = ready.inputs
        fitted = str(words.get("source")).endswith(FITTED)
        if fitted and not _in_range(subject, inputs):
            raise StageError("inputs", "the sizes are not those that dynamic_shapes allow")
        if ready.cost is not None:
            return Prepared(subject, inputs, words, ready.cost, ready.without_backward)
        self._stages.enter("eager")
        started = time.perf_counter()
        try:
            if "source" in words:
                calls.restart()
                refuse_by_shape(subject, inputs, MOST_BYTES if fitted else None)
            calls.restart()
            return _first_call(subject, inputs, words)
        except BaseException as error:
            said = f"{type(error).__name__}: {error}".rstrip(": ")
            message = f"eager fails on the example inputs: {said}"
            seconds = time.perf_counter() - started
            raise _EagerError(message, error, subject, inputs, seconds) from error

    def _explained(self, error: StageError) -> StageError:
        """The failure with the place at fault and the values there, which take another call to be found."""
        if isinstance(error, _EagerError) and error.error is not None:
            found = describe(error.error, Owner(self._request.get("homes") or [os.getcwd()]))
            if found["message"] != found["type"]:
                found["message"] = f"{found['type']}: {found['message']}"
            found["advice"] = "Call the model by itself with these inputs first: no export has begun"
            found["values"] = values_at(error.subject, error.inputs, found["frame"], error.seconds)
            error.blames = [found]
        elif error.blames is None and error.error is not None:
            error.blames = [describe(error.error, Owner(self._request.get("homes") or [os.getcwd()]))]
        for blame in error.blames or ():
            if blame["frame"] is None and isinstance(error, _EagerError):
                blame.update({"frame": class_frame(error.subject), "whole": "definition"})
        return error


def _advised(error: StageError, step: str) -> list[dict[str, Any]]:
    """The places at fault with what to do about a guess."""
    return [{**blame, "advice": step} for blame in error.blames or ()]


def no_matter_of_inputs(error: BaseException | None) -> bool:
    """Whether a model fails whatever it is given: what it needs is missing, or not written yet.

    Kernels that take no such dtype and layers that take no such rank raise NotImplementedError, too.
    """
    if isinstance(error, NotImplementedError):
        return not is_of_inputs(str(error))
    return is_something_missing(error)


def is_something_missing(error: BaseException | None) -> bool:
    """Whether a package, a file or a device is missing. What is not implemented may be so for some inputs only."""
    return isinstance(error, (ImportError, OSError)) or (
        "CUDA" in str(error) and not isinstance(error, torch.OutOfMemoryError)
    )


def class_frame(subject: Subject) -> dict[str, Any] | None:
    """The line of the model's class: where a failure stands that has no line of the user's."""
    try:
        line = inspect.getsourcelines(type(subject.original))[1] if subject.is_module else None
    except (OSError, TypeError):
        line = None
    return {"file": subject.file, "line": line, "function": subject.name} if line and subject.file else None


class _EagerError(StageError):
    """Eager fails on the inputs; with what is needed to say where."""

    def __init__(
        self, message: str, error: BaseException, subject: Subject, inputs: Inputs, seconds: float
    ) -> None:
        super().__init__("eager", message, error)
        self.subject, self.inputs, self.seconds = subject, inputs, seconds


def _first_call(subject: Subject, inputs: Inputs, words: dict[str, Any]) -> Prepared:
    """The model with what one call of eager takes, and whether that needs no backward pass of its own."""
    case = inputs_of.Case(EXAMPLE, inputs.args, inputs.kwargs, 0)

    def prepared(without_backward: bool) -> Prepared:
        model = subject.copy()
        started, worked = time.perf_counter(), time.process_time()
        begun = begin(model, case)
        waited, worked = time.perf_counter() - started, time.process_time() - worked
        # the processor's time where that is less, as a busy machine makes no model slow; but one that sleeps is slow
        seconds = min(waited, worked) if worked > 0.1 * waited else waited
        found = Prepared(subject, inputs, words, inputs_of.Cost(seconds, begun.returned), without_backward)
        found.begun = begun if found.slow else None
        return found

    try:
        with forward_only():
            return prepared(True)
    except Exception as error:
        if not needs_what_is_kept(error):  # it would fail again, however long that takes
            raise
    return prepared(False)


def _in_range(subject: Subject, inputs: Inputs) -> bool:
    """Whether the inputs have sizes that their dynamic shapes allow, one for each name."""
    sizes: dict[str, int] = {}
    for dim, size in _dynamic_sizes(inputs.dynamic_shapes, inputs.by_name(subject)):
        if not dim.min <= size <= dim.max or sizes.setdefault(dim.__name__, size) != size:
            return False
    return True


def _dynamic_sizes(shapes: Any, value: Any) -> Iterator[tuple[Any, int]]:
    """Each Dim of dynamic shapes with the size that it has here."""
    if isinstance(value, torch.Tensor):
        for at, dim in shapes.items() if isinstance(shapes, dict) else ():
            # Dim.AUTO and its like have no bounds
            bounded = isinstance(getattr(dim, "min", None), int)
            if bounded and isinstance(at, int) and at < value.dim():
                yield dim, value.shape[at]
    elif isinstance(value, dict) and isinstance(shapes, dict):
        for key in value.keys() & shapes.keys():
            yield from _dynamic_sizes(shapes[key], value[key])
    elif isinstance(value, (tuple, list)) and isinstance(shapes, (tuple, list)):
        for shape, item in zip(shapes, value, strict=False):
            yield from _dynamic_sizes(shape, item)


@contextmanager
def _unsaid(logger: str) -> Iterator[None]:
    """What torch logs there is not written: a shape that does not fit is expected here."""
    found = logging.getLogger(logger)
    before, found.disabled = found.disabled, True
    try:
        yield
    finally:
        found.disabled = before


class _Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses operators that give tensors of more than so many bytes, of which fake ones take none."""

    def __init__(self, most: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._most = most

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for leaf in pytree.tree_leaves(made):
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage().nbytes() > self._most:
                raise MemoryError(f"{func} gives a tensor of {leaf.untyped_storage().nbytes()} bytes")
        return made


def refuse_by_shape(subject: Subject, inputs: Inputs, most: int | None) -> None:
    """Try a proposal on fake tensors first, which costs no arithmetic. Raises RuntimeError where shapes cannot
    fit, MemoryError where a tensor has more bytes than `most`.
    """
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        model = subject.copy()
        args, kwargs = pytree.tree_map(
            lambda v: mode.from_tensor(v) if isinstance(v, torch.Tensor) else v, (inputs.args, inputs.kwargs)
        )
        bound = nullcontext() if most is None else _Bounded(most)
        with mode, bound, torch.no_grad(), _unsaid("torch._subclasses.fake_tensor"):
            model(*args, **kwargs)
    except MemoryError:
        raise
    except RuntimeError as error:
        words = str(error)
        fits_not = any(word in words for word in ("size", "shape", "dimension", "dtype"))
        own = any(word in words.lower() for word in ("data-dependent", "internal error", "nested"))
        if fits_not and not own:
            raise
    except Exception:
        return  # what fake tensors cannot do, eager may
