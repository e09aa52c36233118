"""Configuration: defaults, `[tool.exportlens]` of the nearest pyproject.toml, command line or editor -> one
frozen Config.
"""

from __future__ import annotations

import difflib
import fnmatch
import functools
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exportlens.environment import installed_torch
from exportlens.finding import Finding
from exportlens.outcome import Mode, TorchVersion
from exportlens.source.suppressions import names

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

NEWEST_TORCH = TorchVersion(2, 13)
OLDEST_TORCH = TorchVersion(2, 4)
DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox", ".pyenv",
    ".pytest_cache", ".ruff_cache", ".svn", ".tools", ".tox", ".venv", ".vscode", "__pycache__",
    "__pypackages__", "_build", "build", "dist", "node_modules", "site-packages", "venv",
)  # fmt: skip
_MODES: Mapping[str, tuple[Mode, ...] | None] = {
    "auto": None,
    "strict": (Mode.STRICT,),
    "non-strict": (Mode.NON_STRICT,),
    "both": (Mode.STRICT, Mode.NON_STRICT),
}
_LISTS = ("select", "ignore", "extend-select", "extend-ignore", "exclude", "extend-exclude", "target")
_STRINGS = ("torch-version", "mode", "interpreter")
_BOOLS = ("training",)
_OTHER = ("per-file-ignores", "models")


class BadSetting(Exception):
    """A setting that cannot be used; the message names the value, where it stands, and what is allowed."""


@dataclass(frozen=True)
class Config:
    """What one check needs to know. `root` is the folder that paths in patterns are relative to; `training` says that models are
    exported as they are in training, not after `model.eval()`."""

    root: Path
    torch_version: TorchVersion = NEWEST_TORCH
    torch_version_origin: str = "newest known"
    modes: tuple[Mode, ...] = (NEWEST_TORCH.default_mode,)
    training: bool = False
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = DEFAULT_EXCLUDE
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    targets: tuple[str, ...] = ()
    interpreter: Path = Path(sys.executable)
    settings_file: Path | None = None

    def selects(self, code: str, name: str) -> bool:
        """Whether the rule is selected; between select and ignore the longer, more exact selector wins,
        ignore on a tie.
        """
        selected = _exactness(self.select, code, name)
        return selected >= 0 and selected > _exactness(self.ignore, code, name)

    def selects_finding(self, finding: Finding) -> bool:
        """Whether `finding` is selected, per-file ignores of its path included."""
        if not self.selects(finding.code, finding.name):
            return False
        for pattern, codes in self.per_file_ignores.items():
            if matches(finding.path, pattern, self.root) and any(
                names(code, finding.code, finding.name) for code in codes
            ):
                return False
        return True

    def excludes(self, path: Path) -> bool:
        """Whether a file or folder met while walking is to be passed over."""
        return any(matches(path, pattern, self.root) for pattern in self.exclude)

    def fingerprint(self) -> str:
        """Equal for configurations that lead to the same findings."""
        return repr(
            (
                self.root,
                self.torch_version,
                self.modes,
                self.training,
                self.select,
                self.ignore,
                dict(self.per_file_ignores),
                self.targets,
            )
        )


def load_config(
    near: Path, overrides: Mapping[str, Any] | None = None, *, origin: str = "command line"
) -> Config:
    """The configuration for files at or below `near`; `overrides` has the same keys as the file, None values
    count as not given.

    Raises BadSetting.
    """
    settings_file = _find_settings(near)
    settings: dict[str, Any] = {}
    if settings_file is not None:
        settings = _checked(_read_table(settings_file), str(settings_file))
    given = {key: value for key, value in (overrides or {}).items() if value is not None and value != ""}
    settings |= _checked(given, origin)
    where = {key: origin if key in given else str(settings_file) for key in settings}
    root = settings_file.parent if settings_file else _folder(near)
    interpreter = _interpreter(settings, root, where)
    version, version_origin = _torch_version(settings, interpreter, where)
    modes = _modes(settings, version, where)
    return Config(
        root=root,
        torch_version=version,
        torch_version_origin=version_origin,
        modes=modes,
        training=settings.get("training", False),
        select=_selectors(settings, "select", ("ALL",), where)
        + _selectors(settings, "extend-select", (), where),
        ignore=_selectors(settings, "ignore", (), where) + _selectors(settings, "extend-ignore", (), where),
        exclude=tuple(settings.get("exclude", DEFAULT_EXCLUDE)) + tuple(settings.get("extend-exclude", ())),
        per_file_ignores={
            pattern: tuple(codes) for pattern, codes in settings.get("per-file-ignores", {}).items()
        },
        targets=tuple(settings.get("target", ())),
        interpreter=interpreter,
        settings_file=settings_file,
    )


def matches(path: Path, pattern: str, root: Path) -> bool:
    """Whether `pattern` names `path`: a base name ("build", "*_pb2.py") or a path relative to `root`
    ("src/gen/*.py", "tests/").
    """
    pattern = pattern.rstrip("/")
    if "/" not in pattern:
        return fnmatch.fnmatchcase(path.name, pattern)
    absolute = os.path.abspath(path)
    full = pattern if os.path.isabs(pattern) else os.path.join(os.path.abspath(root), pattern)
    return fnmatch.fnmatchcase(absolute, full) or fnmatch.fnmatchcase(absolute, full + "/*")


def _exactness(selectors: tuple[str, ...], code: str, name: str) -> int:
    """How exactly the best of `selectors` means the rule: 0 for ALL, more for longer codes, -1 where none
    does.
    """
    exactness = -1
    for selector in selectors:
        if names(selector, code, name):
            exactness = max(
                exactness,
                0 if selector.upper() == "ALL" else 100 if selector.lower() == name else len(selector),
            )
    return exactness


def _find_settings(near: Path) -> Path | None:
    folder = _folder(near)
    nearest = None
    for candidate in (folder, *folder.parents):
        file = candidate / "pyproject.toml"
        if file.is_file():
            nearest = nearest or file
            if _read_table(file):
                return file
    return nearest


def _folder(near: Path) -> Path:
    absolute = Path(os.path.abspath(near))
    return absolute if absolute.is_dir() else absolute.parent


def _read_table(file: Path) -> dict[str, Any]:
    try:
        return _parsed(file, file.stat().st_mtime_ns)
    except OSError as error:
        raise BadSetting(f"{file} cannot be read: {error.strerror or error}") from error


@functools.lru_cache(maxsize=256)
def _parsed(file: Path, _modified: int) -> dict[str, Any]:
    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadSetting(f"{file} is not valid TOML: {error}") from error
    tool = table.get("tool", {})
    own = tool.get("exportlens", {}) if isinstance(tool, dict) else {}
    if not isinstance(own, dict):
        raise BadSetting(f"{file}: tool.exportlens is {own!r}; write it as a table, [tool.exportlens]")
    return own


def _checked(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    known = (*_LISTS, *_STRINGS, *_BOOLS, *_OTHER)
    checked: dict[str, Any] = {}
    for raw_key, raw in given.items():
        key, value = raw_key.replace("_", "-"), raw
        key = "target" if key == "targets" else key
        if key not in known:
            close = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"known settings are {', '.join(known)}"
            raise BadSetting(f"{where}: there is no setting {raw_key!r}; {hint}")
        if key in _STRINGS and not isinstance(value, str):
            raise BadSetting(
                f"{where}: {key} is {value!r}; it must be a string, such as {key} = {_SAMPLES[key]!r}"
            )
        if key in _BOOLS and not isinstance(value, bool):
            raise BadSetting(f"{where}: {key} is {value!r}; it must be true or false")
        if key in _LISTS:
            value = value.split(",") if isinstance(value, str) else value
            if not isinstance(value, (list, tuple)) or not all(isinstance(item, str) for item in value):
                raise BadSetting(f"{where}: {key} is {raw!r}; it must be a list of strings")
            value = [item.strip() for item in value if item.strip()]
        if key in _OTHER and not isinstance(value, Mapping):
            raise BadSetting(f"{where}: {key} is {value!r}; it must be a table")
        if key == "per-file-ignores":
            _check_per_file_ignores(value, where)
        checked[key] = value
    return checked


_SAMPLES = {"torch-version": "2.13", "mode": "both", "interpreter": ".venv/bin/python"}


def _check_per_file_ignores(table: Mapping[str, Any], where: str) -> None:
    for pattern, codes in table.items():
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            raise BadSetting(
                f'{where}: per-file-ignores."{pattern}" is {codes!r}; it must be a list of codes'
            )


def _selectors(
    settings: Mapping[str, Any], key: str, default: tuple[str, ...], where: Mapping[str, str]
) -> tuple[str, ...]:
    if key not in settings:
        return default
    chosen = tuple(settings[key])
    for selector in chosen:
        plain = selector.replace("-", "").replace("_", "")
        if not plain.isalnum() or not plain.isascii():
            raise BadSetting(
                f"{where[key]}: {key} has {selector!r}, which is no rule; "
                "use a code (EXL101), a prefix (EXL1), a rule's name or ALL"
            )
    return chosen


def _interpreter(settings: Mapping[str, Any], root: Path, where: Mapping[str, str]) -> Path:
    if chosen := settings.get("interpreter"):
        path = Path(os.path.abspath(root / Path(chosen).expanduser()))
        if not path.is_file():
            raise BadSetting(
                f"{where['interpreter']}: interpreter {chosen!r} does not exist (looked for {path})"
            )
        return path
    for prefix in (os.environ.get("VIRTUAL_ENV"), str(root / ".venv"), os.environ.get("CONDA_PREFIX")):
        for relative in ("bin/python", "Scripts/python.exe", "python.exe"):
            if prefix and (candidate := Path(prefix) / relative).is_file():
                return candidate
    return Path(sys.executable)


def _torch_version(
    settings: Mapping[str, Any], interpreter: Path, where: Mapping[str, str]
) -> tuple[TorchVersion, str]:
    text = settings.get("torch-version", "auto")
    if text == "auto":
        installed = installed_torch(interpreter)
        if installed is None:
            return NEWEST_TORCH, f"no torch found for {interpreter}; newest known assumed"
        return TorchVersion.parse(installed), f"torch {installed} of {interpreter}"
    try:
        version = TorchVersion.parse(text)
    except ValueError:
        raise BadSetting(
            f"{where['torch-version']}: torch-version is {text!r}; write it as 2.13, or auto"
        ) from None
    if version < TorchVersion(2, 1):
        raise BadSetting(
            f"{where['torch-version']}: torch-version is {text!r}; torch.export exists from torch 2.1 on"
        )
    return version, where["torch-version"]


def _modes(settings: Mapping[str, Any], version: TorchVersion, where: Mapping[str, str]) -> tuple[Mode, ...]:
    text = settings.get("mode", "auto")
    if text not in _MODES:
        raise BadSetting(f"{where['mode']}: mode is {text!r}; use one of {', '.join(_MODES)}")
    return _MODES[text] or (version.default_mode,)
