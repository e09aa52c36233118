"""The public surface of torch: functions, Tensor methods, properties, constants, and the overloads behind
each.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F

NAMESPACES = (
    "torch",
    "torch.nn.functional",
    "torch.linalg",
    "torch.fft",
    "torch.special",
    "torch.sparse",
    "torch.nested",
    "torch.autograd",
    "torch.autograd.functional",
    "torch.func",
    "torch.nn.init",
    "torch.nn.utils",
    "torch.nn.utils.rnn",
    "torch.nn.utils.parametrize",
    "torch.nn.utils.parametrizations",
    "torch.signal.windows",
    "torch.utils.checkpoint",
    "torch.utils.dlpack",
    "torch.random",
    "torch.functional",
)

_TYPES = {
    "Tensor": "tensor",
    "int": "int",
    "SymInt": "int",
    "float": "float",
    "bool": "bool",
    "Scalar": "number",
    "ScalarType": "dtype",
    "Device": "device",
    "Layout": "layout",
    "MemoryFormat": "memory_format",
    "Generator": "generator",
    "str": "str",
}


@dataclass
class Overload:
    """One row of the data while it is being filled in."""

    params: list[str]
    returns: Any
    flags: set[str] = field(default_factory=set)
    mutates: list[int] = field(default_factory=list)
    aliases: list[int] = field(default_factory=list)
    fixed: bool = False
    data_when: str = ""

    def row(self) -> list[Any]:
        """The form in which store.py reads it."""
        fields = [self.params, self.returns, "".join(sorted(self.flags)), self.mutates, self.aliases]
        return [*fields, self.data_when] if self.data_when else fields


@dataclass
class Surface:
    """Everything that has a name."""

    ops: dict[str, Overload] = field(default_factory=dict)
    functions: dict[str, list[str]] = field(default_factory=dict)
    methods: dict[str, list[str]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)


# --- aten schemas
# -----------------------------------------------------------------------------------------------


def split_top(text: str) -> list[str]:
    """Split at commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


_ARGUMENT = re.compile(
    r"(?P<base>\w+)(?:\((?P<alias>[^)]*)\))?(?P<rest>[\[\]\d?]*)\s*(?P<name>\w+)?(?:=(?P<default>.*))?$"
)


def type_word(base: str, rest: str) -> str:
    """ScalarType? -> dtype?, SymInt[2] -> int[n], Tensor?[] -> tensor[]."""
    word = _TYPES.get(base, "any")
    lists = "[n]" if re.search(r"\[\d+\]", rest) else "[]" if "[" in rest else ""
    return word + lists + ("?" if rest.endswith("?") else "")


def default_text(text: str) -> str:
    """A schema's default as Python's repr would write it."""
    try:
        return repr(float(text)) if re.search(r"[.e]", text) else text
    except ValueError:
        return text


def from_schema(schema: Any, tags: list[Any]) -> Overload:
    """An overload as its schema and tags state it."""
    text = str(schema)
    opened = text.index("(")
    arrow = text.rindex(") ->")
    params: list[str] = []
    mutates: list[int] = []
    views: set[str] = set()
    by_alias: dict[str, int] = {}
    index = 0
    for part in split_top(text[opened + 1 : arrow]):
        if part == "*":
            params.append("|")
            continue
        match = _ARGUMENT.match(part)
        assert match, (text, part)
        word = type_word(match["base"], match["rest"])
        default = match["default"]
        params.append(f"{match['name']}:{word}" + ("" if default is None else f"={default_text(default)}"))
        if match["alias"]:
            by_alias[match["alias"].split(" ")[0].rstrip("!")] = index
            if "!" in match["alias"]:
                mutates.append(index)
        index += 1
    returned = text[arrow + 4 :].strip()
    returns = _schema_returns(returned)
    for group in re.findall(r"\(([a-z|]+)!?\)", returned):
        views |= set(group.split("|"))
    aliases = sorted(by_alias[name] for name in views if name in by_alias)
    names = {str(tag).removeprefix("Tag.") for tag in tags}
    flags = set()
    if "data_dependent_output" in names:
        flags |= {"d"} if returns in ("number", "bool", "int", "float") else {"h"}
    for tag, letter in (("dynamic_output_shape", "s"), ("nondeterministic_seeded", "r"), ("pointwise", "p")):
        if tag in names:
            flags.add(letter)
    if mutates and mutates[0] == 0 and aliases == [0]:
        returns = "tensor same first"
    return Overload(params, returns, flags, mutates, aliases)


def _schema_returns(text: str) -> Any:
    if text.startswith("("):
        inner = split_top(text[1:-1])
        if not inner:
            return "none"
        matches = [_ARGUMENT.match(part) for part in inner]
        names = ",".join(match["name"] or "" for match in matches if match)
        items = [_leaf(match) for match in matches if match]
        return [f"tuple:{names}" if names.strip(",") else "tuple", *items]
    match = _ARGUMENT.match(text)
    assert match, text
    return _leaf(match)


def _leaf(match: re.Match[str]) -> Any:
    word = type_word(match["base"], match["rest"])
    if word.endswith("]"):
        return ["list", word.partition("[")[0]]
    return word


def aten_overloads() -> dict[str, Overload]:
    """Every dispatcher overload of aten that is no out= or backward variant, by its full name."""
    found: dict[str, Overload] = {}
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        if not full.startswith("aten::") or "backward" in full or full.startswith("aten::__"):
            continue
        name, _, overload = full.removeprefix("aten::").partition(".")
        if "dimname" in overload or overload.startswith(("prim_", "names", "with_names")):
            continue
        packet = getattr(torch.ops.aten, name, None)
        if packet is None or (overload or "default") not in packet.overloads():
            continue
        op = getattr(packet, overload or "default")
        text = str(op._schema)
        if (
            torch.Tag.out in op.tags
            or "Dimname" in text
            or "Stream" in text
            or "Storage" in text
            or "__torch__" in text
        ):
            continue
        found[full] = from_schema(op._schema, op.tags)
    return found


def overload_keys(ops: dict[str, Overload], name: str) -> list[str]:
    """The overloads of an aten name in the order in which torch's argument parser would try them."""
    keys = [key for key in ops if key == f"aten::{name}" or key.startswith(f"aten::{name}.")]

    def rank(key: str) -> tuple[int, int, str]:
        params = [row for row in ops[key].params if row != "|"]
        tensors = sum(":tensor" in row for row in params)
        required = sum("=" not in row for row in params)
        return ("generator" in key, required, -tensors, key)  # type: ignore[return-value]

    return sorted(keys, key=rank)


# --- Python signatures
# ------------------------------------------------------------------------------------------


def annotation_word(annotation: Any) -> str:
    """A parameter's type word from its annotation."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    if annotation is inspect.Parameter.empty:
        return "any"
    text = str(annotation) if "[" in str(annotation) or "|" in str(annotation) else text
    text = text.replace("torch.", "").replace("typing.", "")
    optional = "Optional[" in text or "None" in text
    core = re.sub(r"Optional\[(.*)\]$", r"\1", text)
    core = re.sub(r"\s*\|\s*None|None\s*\|\s*", "", core)
    words = {"Tensor": "tensor", "int": "int", "float": "float", "bool": "bool", "str": "str"}
    word = words.get(core, "any")
    return word + "?" if optional and word != "any" else word


def from_signature(function: Callable[..., Any], *, drop_self: bool = False) -> Overload | None:
    """An overload as a Python function's signature states it."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    params: list[str] = []
    keyword_only = False
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if index == 0 and drop_self:
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(row.startswith("*") and not row.startswith("**") for row in params):
                params.append("|")
        variadic = {str(parameter.VAR_POSITIONAL): "*", str(parameter.VAR_KEYWORD): "**"}
        stars = variadic.get(str(parameter.kind), "")
        keyword_only = keyword_only or stars == "*"
        word = annotation_word(parameter.annotation)
        row = f"{stars}{name}:{word}"
        if parameter.default is not parameter.empty:
            row += f"={json_safe_repr(parameter.default)}"
        params.append(row)
    returns = annotation_word(signature.return_annotation)
    leaf = returns if returns in ("tensor", "int", "float", "bool", "str") else "any"
    overload = Overload(params, leaf)
    names = [row.partition(":")[0] for row in params]
    if "inplace" in names:
        overload.flags.add("i")
        overload.mutates = [0]
        overload.aliases = [0]
    return overload


def json_safe_repr(value: Any) -> str:
    """A default's repr that is the same on every run and machine."""
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType)):
        return getattr(value, "__qualname__", "...")
    text = repr(value)
    return "..." if " at 0x" in text or len(text) > 60 else text


def _boolean_dispatched(name: str) -> Callable[..., Any] | None:
    private = getattr(F, f"_{name}", None)
    return private if private is not None and hasattr(F, f"{name}_with_indices") else None


# What stands in a public namespace only because a file there imported it.
_INTERNAL_HOMES = (
    "torch.overrides",
    "torch._jit_internal",
    "torch._classes",
    "torch._utils",
    "torch._C",
    "typing",
)


def public_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Qualified name and object of every public function, namespace by namespace."""
    import importlib

    for namespace in NAMESPACES:
        module = importlib.import_module(namespace)
        listed = getattr(module, "__all__", None)
        for name in sorted(set(dir(module)) | set(listed or ())):
            value = getattr(module, name, None)
            if name.startswith("_") or isinstance(value, (type, types.ModuleType)) or not callable(value):
                continue
            home = getattr(value, "__module__", None) or ""
            if type(value).__name__ in ("_SpecialForm", "TypeVar") or home.startswith(
                ("typing", "collections")
            ):
                continue
            if home in _INTERNAL_HOMES:
                continue
            if home and not home.startswith("torch") and isinstance(value, types.FunctionType):
                continue
            yield f"{namespace}.{name}", value


def collect() -> Surface:
    """The whole surface from schemas and signatures alone."""
    surface = Surface(ops=aten_overloads())
    with_out = {
        name
        for name in {key.removeprefix("aten::").partition(".")[0] for key in surface.ops}
        if any(
            torch.Tag.out in getattr(getattr(torch.ops.aten, name), overload).tags
            for overload in getattr(torch.ops.aten, name).overloads()
        )
    }
    for key, overload in surface.ops.items():
        if key.removeprefix("aten::").partition(".")[0] in with_out:
            overload.flags.add("o")
    homes: dict[int, str] = {}
    for qualified, value in public_functions():
        if id(value) in homes:
            surface.aliases[qualified] = homes[id(value)]
            continue
        keys = _function_keys(surface, qualified, value)
        if keys:
            homes[id(value)] = qualified
            surface.functions[qualified] = keys
            home = f"{getattr(value, '__module__', '')}.{getattr(value, '__name__', '')}"
            if home != qualified and home.startswith("torch."):
                surface.aliases.setdefault(home, qualified)
    for name in sorted(dir(torch.Tensor)):
        value = getattr(torch.Tensor, name)
        if name.startswith("_") or isinstance(value, types.GetSetDescriptorType) or not callable(value):
            continue
        keys = _method_keys(surface, name, value)
        if keys:
            surface.methods[name] = keys
    for name in [alias for alias in surface.aliases if alias in surface.functions]:
        del surface.aliases[name]
    return surface


def _function_keys(surface: Surface, qualified: str, value: Any) -> list[str]:
    own = getattr(value, "__name__", qualified.rpartition(".")[2])
    if isinstance(value, types.FunctionType):
        name = qualified.rpartition(".")[2]
        overload = from_signature(_boolean_dispatched(name) or value)
        if overload is None:
            return []
        _borrow_aliases(surface, overload, name)
        surface.ops[f"py::{qualified}"] = overload
        return [f"py::{qualified}"]
    keys = overload_keys(surface.ops, own)
    if keys:
        return keys
    surface.ops[f"py::{qualified}"] = from_signature(value) or Overload(["*args:any", "**kwargs:any"], "any")
    return [f"py::{qualified}"]


def _method_keys(surface: Surface, name: str, value: Any) -> list[str]:
    if isinstance(value, types.FunctionType):
        overload = from_signature(value)
        if overload is None:
            return []
        _borrow_aliases(surface, overload, name)
        surface.ops[f"py::torch.Tensor.{name}"] = overload
        return [f"py::torch.Tensor.{name}"]
    keys = [
        key
        for key in overload_keys(surface.ops, name)
        if surface.ops[key].params and surface.ops[key].params[0].startswith("self:tensor")
    ]
    if keys:
        return keys
    overload = from_signature(value) or Overload(["self:tensor", "*args:any", "**kwargs:any"], "any")
    if overload.params:
        overload.params[0] = "self:tensor"
    surface.ops[f"py::torch.Tensor.{name}"] = overload
    return [f"py::torch.Tensor.{name}"]


def _borrow_aliases(surface: Surface, overload: Overload, name: str) -> None:
    """A Python function over an aten view is a view too (Tensor.split over aten::split)."""
    for key in overload_keys(surface.ops, name):
        if 0 in surface.ops[key].aliases and not overload.aliases:
            overload.aliases = [0]
