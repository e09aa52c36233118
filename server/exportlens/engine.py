"""The engine: documents in, findings out. The only place where source, inference, rules and rewriting meet."""

from __future__ import annotations

import ast
import functools
import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from exportlens.config import Config
from exportlens.dispatching import Dispatcher, Known, RuleIndex
from exportlens.finding import Finding, Fix, Refusal, Severity
from exportlens.fixing import apply_edits
from exportlens.handed_in import fix_of_all
from exportlens.hindrances import (
    OPEN_LIST,
    OPEN_SIZE,
    calls_moved,
    compiled,
    hands_on_numbers,
    inside,
    lost_behind,
    lost_refusal,
    moved,
    replaced,
    traces,
)
from exportlens.inference.classes import called_as
from exportlens.inference.constructions import Construction, Outside, constructions, flags_set_outside
from exportlens.inference.entries import (
    export_chunks,
    module_classes,
    needs_arguments,
    run_class,
    run_exported,
    run_script,
    trace_callable,
)
from exportlens.inference.examples import Examples, StateInSizes, example_chunks, examples, state_in_sizes
from exportlens.inference.handed_parts import making_chunks
from exportlens.inference.machine import Cancelled, Frame, Machine, OutOfBudget, Raised, Settings
from exportlens.inference.names import lookup_global
from exportlens.inference.places import Definition, Site
from exportlens.inference.scopes import ModuleScope, Workspace
from exportlens.inference.values import Bound, Function, Value
from exportlens.memory import Memory, Reach
from exportlens.outcome import FAILS, Mode
from exportlens.rewriting.arms.attributes_in_locals import kept_in_locals
from exportlens.rewriting.arms.written_behind import written_behind
from exportlens.rewriting.arrays.handed_arrays import of_handed_arrays
from exportlens.rewriting.branches.chosen_results import WRITE_OUT_CHOICE
from exportlens.rewriting.branches.parts_in_names import made_behind_operator
from exportlens.rewriting.code.callers import identifiers
from exportlens.rewriting.code.context import RewriteContext
from exportlens.rewriting.code.draft import Refused
from exportlens.rewriting.code.imports import document_imports
from exportlens.rule import Report, concerns, registry
from exportlens.source.collector import collector_paused
from exportlens.source.document import Chunk, Document

# How many expressions a fix may read what they are, again and again: twenty times as many as any needed in the code of
# 150 models.
_READINGS = 250_000


def _bounded(cancelled: Callable[[], bool]) -> Callable[[], bool]:
    """`cancelled`, which each reading of an expression asks, and which raises Refused where there are too many: code whose ways
    multiply must not hold up the editor."""
    readings = itertools.count(1)

    def asked() -> bool:
        if next(readings) > _READINGS:
            raise Refused("the ways through this code are too many to follow: divide the function")
        return cancelled()

    return asked


def _run_name(
    machine: Machine,
    scope: ModuleScope,
    name: str,
    given: Examples,
    made: Sequence[Construction],
    outside: Outside,
) -> None:
    """Trace the nn.Module that `name` is bound to, where it is one with a forward, with what is `given` as examples, as it is `made`,
    and as its flags are set from `outside`."""
    for cls in module_classes(machine, scope, only=name):
        run_class(machine, cls, given.get(name, ()), made, outside)


def _run_exports(machine: Machine, scope: ModuleScope) -> None:
    """Interpret the code that calls torch.export, and trace what is no Module but passed to it."""
    for chunk, statement in export_chunks(scope):
        run_script(machine, scope, chunk, statement)
    observer = machine.observer
    for place in list(observer.exported) if isinstance(observer, Dispatcher) else []:
        model = called_as(place.model) or place.model
        if isinstance(model, Function) and not isinstance(model.node, ast.Lambda):
            trace_callable(machine, model, None)
        elif isinstance(model, Bound) and isinstance(model.function, Function):
            trace_callable(machine, model.function, model.receiver)
        elif needs_arguments(place):
            run_exported(machine, place)
    if isinstance(observer, Dispatcher):
        _run_declared(machine, observer)


def _run_declared(machine: Machine, observer: Dispatcher) -> None:
    """Trace what the export calls declare the sizes of, for the rules on such sizes alone: all others have judged."""
    own = Dispatcher(RuleIndex(rule for rule in observer.index.rules if rule.of_declared_sizes))
    own.scope = observer.scope
    if not own.index.rules:
        return
    machine.observer = own
    try:
        for place in list(observer.exported):
            run_exported(machine, place, declared=True)
    finally:
        machine.observer = observer
    observer.take(own.found)


def _run_definition(machine: Machine, scope: ModuleScope, name: str) -> None:
    """Show the class or function that `name` is bound to to the rules on definitions."""
    chunk, statement = scope.bindings[name][-1]
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        value = lookup_global(machine, name, scope)
        machine.observer.notice(Definition(machine.site(Frame(scope, chunk, {})), statement, value))


class Engine:
    """Holds the workspace and answers for its documents."""

    def __init__(self, config: Config, workspace: Workspace | None = None) -> None:
        self.config = config
        self.workspace = workspace or Workspace()
        self.rules = tuple(
            rule
            for rule in registry()
            if config.selects(rule.code, rule.name) and concerns(rule.targets, config.targets)
        )
        self._index = RuleIndex(self.rules)
        self._documents: dict[Path, Document] = {}
        self._reports: dict[Path, dict[tuple[str, Path, object], Report]] = {}
        self._memory: Memory[dict[tuple[int, str], Known]] = Memory()
        self._examples: Memory[Examples] = Memory()
        self._states: Memory[StateInSizes] = Memory()
        # Whether this engine only looks at what a fix would lead to.
        self._looks_ahead = False
        # The files that may call what is in a file, where someone may look for them on disk.
        self.neighbours: Callable[[Path], Iterable[Path]] = lambda path: ()

    # --- documents ---

    def update(self, path: Path, text: str, version: int | None = None) -> Document:
        """Take the text of `path` as it is now."""
        known = self._documents.get(path)
        document = known.edited(text, version) if known is not None else Document.parse(path, text, version)
        self._documents[path] = document
        if known is not None or self.workspace.knows(path):
            # Else nobody can have looked at it yet.
            self._memory.changed(path)
            self._examples.changed(path)
            self._states.changed(path)
        self.workspace.open(document)
        return document

    def forget(self, path: Path) -> None:
        """The text of `path` is to be read again: it was closed, or changed on disk."""
        self._documents.pop(path, None)
        self._memory.changed(path)
        self._examples.changed(path)
        self._states.changed(path)
        self.workspace.forget(path)

    def document(self, path: Path) -> Document | None:
        if path in self._documents:
            return self._documents[path]
        scope = self.workspace.load(path)
        return scope.document if scope is not None else None

    # --- findings ---

    def check(self, path: Path, cancelled: Callable[[], bool] = lambda: False) -> list[Finding]:
        """The findings that the document at `path` leads to, without fixes; some may lie in files that it calls into.

        Raises Cancelled when `cancelled` says so.
        """
        with collector_paused():
            dispatcher = Dispatcher(self._index)
            machine = self._machine(dispatcher, cancelled)
            self.workspace.adopt(path)
            scope = self.workspace.load(path)
            if scope is None:
                return []
            dispatcher.scope = scope
            self._interpret(machine, scope, dispatcher)
            self._reports[path] = {}
            return self._findings(dispatcher, self._reports[path])

    def _machine(self, dispatcher: Dispatcher, cancelled: Callable[[], bool]) -> Machine:
        settings = Settings(self.config.torch_version, self.config.modes, self.config.training)
        return Machine(self.workspace, settings, dispatcher, cancelled)

    def _interpret(self, machine: Machine, scope: ModuleScope, dispatcher: Dispatcher) -> None:
        """Interpret from each entry point of a document, and take what those found that can reach nothing new from memory."""
        reach = Reach(scope, self._memory.identifiers)
        everything = reach.everything()
        whole = self._is_imported_elsewhere(scope)
        steps: list[tuple[Hashable, tuple[Chunk, ...], Callable[[], None]]] = []
        definitions: list[tuple[Hashable, tuple[Chunk, ...], Callable[[], None]]] = []
        given, told = self._given(scope, reach, whole, machine.cancelled)
        outside = flags_set_outside(scope)
        for name, bindings in scope.bindings.items():
            chunks = everything if whole else reach.of(chunk for chunk, _ in bindings)
            if any(isinstance(statement, (ast.ClassDef, ast.If, ast.Try)) for _, statement in bindings):
                made = list(constructions(scope, name))
                trace = functools.partial(_run_name, machine, scope, name, given, made, outside)
                telling = told if name in given else ()
                if made and not whole:
                    telling = (*telling, *reach.of(each.chunk for each in made))
                steps.append((("class", name, outside), (*chunks, *telling), trace))
            if dispatcher.wants(Definition):
                show = functools.partial(_run_definition, machine, scope, name)
                definitions.append((("definition", name), chunks, show))
        steps.append(
            (("export calls",), self._script_reach(scope, reach, whole), lambda: _run_exports(machine, scope))
        )
        for entry, reached, run in (*steps, *definitions):
            found = self._memory.recall(
                scope.path, entry, reached, functools.partial(self._run, machine, scope, run)
            )
            dispatcher.take(found)
        self._memory.keep_only(scope.path, [entry for entry, _, _ in (*steps, *definitions)])

    def _given(
        self, scope: ModuleScope, reach: Reach, whole: bool, cancelled: Callable[[], bool]
    ) -> tuple[Examples, tuple[Chunk, ...]]:
        """What the document gives its models as examples, and the chunks that tell."""
        chunks = [chunk for chunk, _ in example_chunks(scope)]
        if not chunks:
            return {}, ()
        reached = reach.everything() if whole else (*reach.of(chunks), *making_chunks(scope))

        def read() -> Examples:
            # A machine of its own: what it remembers of calls and objects has sizes, on which no finding hangs.
            machine = self._machine(Dispatcher(self._index), cancelled)
            return examples(machine, scope, list(module_classes(machine, scope)))

        return self._examples.recall(scope.path, "examples", reached, read), reached

    def _run(
        self, machine: Machine, scope: ModuleScope, run: Callable[[], None]
    ) -> dict[tuple[int, str], Known]:
        """What one entry point leads to."""
        own = Dispatcher(self._index)
        own.scope = scope
        machine.observer, before = own, machine.observer
        machine.steps = 0
        try:
            run()
        except (Raised, OutOfBudget, RecursionError):
            # What could not be followed to the end is judged as far as it was followed.
            machine.quiet = 0
        finally:
            machine.observer = before
        return own.found

    def _script_reach(self, scope: ModuleScope, reach: Reach, whole: bool) -> tuple[Chunk, ...]:
        return reach.everything() if whole else reach.of(chunk for chunk, _ in export_chunks(scope))

    def _is_imported_elsewhere(self, scope: ModuleScope) -> bool:
        """Whether code of another file may lead back into this one; then any chunk may be reached from any entry point."""
        name = scope.module_name.rpartition(".")[2] or scope.path.stem
        others = (
            other
            for other in self.workspace.loaded()
            if other is not scope and not self.workspace.is_library(other.path)
        )
        return any(name in other.document.text for other in others)

    def _findings(
        self, dispatcher: Dispatcher, reports: dict[tuple[str, Path, object], Report]
    ) -> list[Finding]:
        findings: list[Finding] = []
        for known in dispatcher.found.values():
            finding = self._finding(known)
            if finding is not None:
                report = replace(known.report, ways=tuple(known.ways.values()), elsewhere=known.elsewhere())
                reports[finding.code, finding.path, finding.range] = report
                findings.append(finding)
        return sorted(findings, key=Finding.sort_key)

    def _finding(self, known: Known) -> Finding | None:
        report = known.report
        site = report.place.site
        if self.workspace.is_library(site.scope.path) or not concerns(report.targets, self.config.targets):
            return None
        severity = report.rule.severity(report.outcome, self.config.torch_version, self.config.modes)
        if severity is None:
            return None
        notes = report.notes
        if report.only_where:
            severity = Severity.INFORMATION
            notes = (*notes, f"Only where {report.only_where}: nothing here tells that.")
        if known.supposed:
            severity = Severity.INFORMATION
            names = " and ".join(f"`{name}`" for name in site.supposed)
            what = "is a tensor" if len(site.supposed) == 1 else "are tensors"
            notes = (
                *notes,
                f"Only where {names} {what}: nothing here tells what is given. An annotation does.",
            )
        elif not site.certain and severity is Severity.ERROR:
            severity = Severity.ERROR if known.certain else Severity.WARNING
            condition = site.condition
            given = (
                f"where `{ast.unparse(condition)}` lets it"
                if condition is not None
                else "for some configurations"
            )
            notes = (*notes, f"Reached only {given}: what decides that is not known here.")
        document = self.document(site.scope.path) or site.scope.document
        where = document.range_of(site.chunk, report.node)
        return Finding(
            report.rule.code,
            report.rule.name,
            severity,
            report.message,
            site.scope.path,
            where,
            notes=(*notes, *self._way(site)),
            url=report.rule.url,
            entry=tuple(sorted(known.surely if known.certain else known.entries)),
        )

    def with_fixes(
        self, findings: list[Finding], cancelled: Callable[[], bool] = lambda: False
    ) -> list[Finding]:
        """The same findings with the fixes that their rules offer, or with the reasons why there are none.

        Raises Cancelled when `cancelled` says so.
        """
        done: list[Finding] = []
        for finding in findings:
            if cancelled():
                raise Cancelled
            document = self.document(finding.path)
            report = self._report(finding, document)
            if report is not None and not report.rule.has_fix() and report.rule.no_fix:
                done.append(finding.with_fix(Refusal(report.rule.no_fix)))
                continue
            if report is None or document is None or not report.rule.has_fix():
                done.append(finding)
                continue
            fix = self._fix(report, document, cancelled)
            lost = lost_behind(report) if isinstance(fix, Fix) and traces(fix) else None
            if isinstance(fix, Fix) and lost is not None:
                others = [other for other in fix.alternatives if not traces(other)]
                fix = (
                    next(iter(others), fix.without_operator)
                    or kept_in_locals(lost, replaced(report), self._context(document, cancelled))
                    or made_behind_operator(lost, replaced(report), self._context(document, cancelled))
                    or written_behind(replaced(report), self._context(document, cancelled))
                    or lost_refusal(lost)
                )
            if isinstance(fix, Fix) and traces(fix):
                fix = (
                    self._hindrance(report, fix, document, cancelled)
                    or self._behind_numbers(report, fix, document, cancelled)
                    or fix
                )
            done.append(finding.with_fix(fix))
        return done

    def _fix(self, report: Report, document: Document, cancelled: Callable[[], bool]) -> Fix | Refusal | None:
        compiling = compiled(report, document)
        if compiling is not None:
            return Refusal(
                f"TorchScript compiles this function, and takes little of what torch.export needs: without `{compiling}` it "
                "can be rewritten"
            )
        context = self._context(document, cancelled)
        try:
            if report.supposing is not None:
                fix = report.rule.fix(report.supposing, context)
                if isinstance(fix, Fix):
                    return of_handed_arrays(report.place, context) or fix
            fix = report.rule.fix(report, context)
            if isinstance(fix, Fix):
                return of_handed_arrays(report.place, context) or fix
            return fix_of_all(report, context) or fix if isinstance(fix, Refusal) else fix
        except Refused as refused:
            return Refusal(str(refused))
        except RecursionError:
            return Refusal("the code around it is nested too deeply to be rewritten")

    def _context(self, document: Document, cancelled: Callable[[], bool]) -> RewriteContext:
        return RewriteContext(
            document,
            self.config.torch_version,
            self.config.modes,
            functools.partial(self._elsewhere, document.path),
            _bounded(cancelled),
            self._is_reported,
            self.config.training,
            functools.partial(self._state_in_sizes, document.path, cancelled),
        )

    def _state_in_sizes(self, path: Path, cancelled: Callable[[], bool]) -> StateInSizes:
        """What the models of a document write to their attributes in the sizes of its example inputs."""
        scope = self.workspace.load(path)
        if scope is None or not any(True for _ in example_chunks(scope)):
            return {}
        machine = self._machine(Dispatcher(self._index), cancelled)
        reach = Reach(scope, self._memory.identifiers)
        given, _ = self._given(scope, reach, self._is_imported_elsewhere(scope), cancelled)
        if not given:
            return {}
        return self._states.recall(
            path,
            "states",
            reach.everything(),
            lambda: state_in_sizes(machine, list(module_classes(machine, scope)), given),
        )

    def _is_reported(self, node: ast.AST) -> bool:
        return any(each.node is node for each in self._all_reports())

    def _all_reports(self) -> Iterator[Report]:
        return (each for reports in self._reports.values() for each in reports.values())

    def _hindrance(
        self, report: Report, fix: Fix, own: Document, cancelled: Callable[[], bool]
    ) -> Refusal | None:
        """Why what `fix` moves into a branch or loop of torch's cannot be traced there."""
        others = {id(other): other for other in self._all_reports()}
        calls = functools.cache(functools.partial(calls_moved, fix, own))
        written = moved(report, fix, own)
        for other in inside(report, others.values(), self.config.torch_version, written, calls):
            path = other.place.site.scope.path
            document = self.document(path)
            if document is None or not document.holds(other.place.site.chunk):
                continue
            # What decides by an open size is rewritten before it moves: behind the move its values have other names.
            first = other.rule.code == OPEN_SIZE
            fixed = self._fix(other, document, cancelled) if other.rule.has_fix() and not first else None
            first = first or (other.rule.code == OPEN_LIST and isinstance(fixed, Fix) and not traces(fixed))
            # The statements of a function come to its calls, and those stand where this fix writes.
            first = first or (isinstance(fixed, Fix) and fixed.message == WRITE_OUT_CHOICE)
            if first or not isinstance(fixed, Fix):
                line = document.range_of(other.place.site.chunk, other.node).start.line + 1
                return Refusal(
                    f"line {line} of {path.name}, which it leads to, cannot be traced either and has no fix ({other.rule.code})"
                )
        return None

    def _behind_numbers(
        self, report: Report, fix: Fix, own: Document, cancelled: Callable[[], bool]
    ) -> Refusal | None:
        """Why a loop whose counter `fix` makes a number from data cannot be traced: a function that it hands the number to decides by it,
        as only the text with the fix shows."""
        if self._looks_ahead or not hands_on_numbers(report, fix):
            return None
        ahead = Engine(self.config, self.workspace.beside())
        ahead._looks_ahead = True
        for path, document in self._documents.items():
            ahead.update(path, document.text)
        edits = [each for each in fix.edits if each.path in (None, own.path)]
        ahead.update(own.path, apply_edits(own.text, edits))
        known = {(each.rule.code, ast.unparse(each.node)) for each in self._all_reports()}
        for path in self._reports:
            for finding in ahead.with_fixes(ahead.check(path, cancelled), cancelled):
                other = ahead._report(finding, ahead.document(finding.path))
                if other is None or finding.fix is not None or other.place.site.function is None:
                    continue
                fails = other.outcome.result(self.config.torch_version, Mode.STRICT) is FAILS
                if fails and other.place.site.trail and (finding.code, ast.unparse(other.node)) not in known:
                    return Refusal(
                        f"`{other.place.site.function.name}`, which the loop hands a number, cannot be traced where tensor data "
                        f"decides it ({finding.code})"
                    )
        return None

    def _elsewhere(self, path: Path, names: frozenset[str]) -> Iterator[tuple[Chunk, Mapping[str, str]]]:
        """The chunks that mention one of `names` in the user's files but `path`: those looked at so far, and its
        neighbours."""
        for neighbour in self.neighbours(path):
            if not names.isdisjoint(identifiers(self.workspace.text(neighbour) or "")):
                self.workspace.load(neighbour)
        for scope in self.workspace.loaded():
            if scope.path == path or scope.library:
                continue
            if names.isdisjoint(identifiers(scope.document.text)):
                continue
            modules = document_imports(scope.document)
            for placed in scope.document.placed:
                if not names.isdisjoint(identifiers(placed.chunk.text)):
                    yield placed.chunk, modules

    def _report(self, finding: Finding, document: Document | None) -> Report | None:
        """What led to a finding, about the text as it is now: other documents may have led there before an edit."""
        key = (finding.code, finding.path, finding.range)
        for reports in self._reports.values():
            report = reports.get(key)
            if report is not None and document is not None and document.holds(report.place.site.chunk):
                return report
        return None

    def _way(self, site: Site) -> tuple[str, ...]:
        """How the traced code comes to a place that is not in the entry point itself."""
        if not site.trail or site.entry is None:
            return ()
        scope, chunk, node = site.trail[-1]
        document = self.document(scope.path) or scope.document
        known = hasattr(node, "lineno") and document.holds(chunk)
        line = f", line {document.range_of(chunk, node).start.line + 1} of {scope.path.name}" if known else ""
        return (
            f"Reached from `{site.entry}` through {len(site.trail)} call{'s' if len(site.trail) > 1 else ''}{line}.",
        )

    # --- what is believed ---

    def explain(self, path: Path, line: int, entries: Sequence[Path] = ()) -> list[str]:
        """What is believed of each value on a line (from 0) of `path`, in the order of the text.

        The entry points are those of `path`, and of the files `entries`.
        """
        scope = self.workspace.load(path)
        if scope is None:
            return []
        dispatcher = Dispatcher(self._index)
        machine = self._machine(dispatcher, lambda: False)
        seen: dict[tuple[int, int, str], dict[str, None]] = {}

        def watch(node: ast.AST, value: Value, frame: Frame) -> None:
            if (
                frame.scope is not scope
                or not isinstance(node, (ast.expr,))
                or isinstance(node, ast.Constant)
            ):
                return
            first = _line_of(scope.document, frame.chunk)
            if first is None or first + node.lineno - 1 != line:
                return
            text = ast.unparse(node)
            if len(text) < 80:
                seen.setdefault((node.col_offset, -(node.end_col_offset or 0), text), {}).setdefault(
                    value.describe()
                )

        machine.watch = watch
        remembered, self._memory = self._memory, Memory()
        try:
            with collector_paused():
                for each in dict.fromkeys((path, *entries)):
                    dispatcher.scope = self.workspace.load(each)
                    if dispatcher.scope is not None:
                        self._interpret(machine, dispatcher.scope, dispatcher)
        finally:
            self._memory = remembered
        return [
            f"`{text}`: {' / '.join(descriptions)}" for (_, _, text), descriptions in sorted(seen.items())
        ]


def _line_of(document: Document, chunk: Chunk) -> int | None:
    for placed in document.placed:
        if placed.chunk is chunk:
            return placed.first_line
    return None


__all__ = ["Cancelled", "Engine"]
