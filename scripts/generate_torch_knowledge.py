"""Write what the installed torch does into server/exportlens/inference/knowledge/torch.json and
docs/torch-calls.md.

    python scripts/generate_torch_knowledge.py [--keep-measured]

Needs torch and expecttest (for torch's own sample inputs). The same torch gives the same files. With
--keep-measured, export outcomes of calls whose text is unchanged are taken over from the existing file.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "server")]

from exportlens.inference.knowledge import store  # noqa: E402
from torch_knowledge import constants, curated, exports, modules, page, sampling, surface  # noqa: E402

DATA = ROOT / "server/exportlens/inference/knowledge/torch.json"
# So many sampled calls without one draw say that an operator does not draw by itself, whatever its tag.
ENOUGH_TO_DENY = 8
PAGE = ROOT / "docs/torch-calls.md"


def write(data: dict[str, Any], path: Path = DATA) -> None:
    """Compact, one entry per line so that differences can be read, sorted so that runs agree."""
    lines = []
    for section in sorted(data):
        value = data[section]
        if isinstance(value, dict):
            rows = [
                f"{json.dumps(key)}:{json.dumps(value[key], separators=(',', ':'))}" for key in sorted(value)
            ]
            lines.append(f"{json.dumps(section)}:{{\n" + ",\n".join(rows) + "\n}")
        else:
            lines.append(f"{json.dumps(section)}:{json.dumps(value)}")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def assemble(found: surface.Surface) -> dict[str, Any]:
    """The data file's sections that need no run."""
    return {
        "torch": torch.__version__.partition("+")[0],
        "ops": {key: overload.row() for key, overload in found.ops.items()},
        "functions": found.functions,
        "methods": found.methods,
        "aliases": found.aliases,
        "properties": {name: list(entry) for name, entry in curated.PROPERTIES.items()},
        "constants": constants.collect(),
        "modules": {},
        "module_aliases": {},
        "notes": {},
    }


def resolve(name: str) -> Any:
    """The object behind "nn.functional.relu" under torch."""
    value: Any = torch
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def all_calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """(name under torch or Tensor, args, kwargs): torch's own samples, then the typical calls."""
    for name, sample in sampling.samples():
        yield name, (sample.input, *sample.args), sample.kwargs
    for name, args, kwargs in exports.evaluated_calls():
        yield name.removeprefix("torch.Tensor.").removeprefix("torch."), args, kwargs


def sample_all(found: surface.Surface) -> dict[str, list[sampling.Seen]]:
    """Run every call through its function and its method; observations by overload key."""
    by_key: dict[str, list[sampling.Seen]] = {}
    for name, args, kwargs in all_calls():
        qualified = store.canonical_name(f"torch.{name}")
        for op, keys, call in (
            (store.lookup_function(qualified), found.functions.get(qualified), resolve(name)),
            (store.lookup_method(name), found.methods.get(name), getattr(torch.Tensor, name, None)),
        ):
            if op is None or keys is None or call is None:
                continue
            chosen = op.match(
                [sampling.facts(item) for item in args], {k: sampling.facts(v) for k, v in kwargs.items()}
            )
            key = keys[[item is chosen for item in op.overloads].index(True)]
            seen = sampling.observe(call, args, kwargs, chosen)
            if seen is not None:
                by_key.setdefault(key, []).append(seen)
    return by_key


def _defaults(params: list[str]) -> dict[str, str | None]:
    rows = [row for row in params if row != "|"]
    return {row.partition(":")[0].lstrip("*"): row.partition("=")[2] if "=" in row else None for row in rows}


def learn(found: surface.Surface, by_key: dict[str, list[sampling.Seen]]) -> None:
    """Fill rules, effects and aliases of each overload from what was observed."""
    for key, seen in by_key.items():
        overload = found.ops[key]
        lists = bool(overload.params) and ":tensor[]" in overload.params[0]
        returns = sampling.infer_returns(seen, pointwise="p" in overload.flags or lists)
        stated = isinstance(overload.returns, str) and " " in overload.returns
        if returns is not None and not overload.fixed and not stated:
            overload.returns = returns
        if not isinstance(overload.returns, str) or overload.returns.startswith("tensor"):
            overload.flags |= {"f"} if sampling.gives_floats(seen) else set()
        if len(seen) >= ENOUGH_TO_DENY:
            overload.flags.discard("r")
        for item in seen:
            if "nondeterministic_seeded" in item.tags:
                overload.flags.add("r")
            if "dynamic_output_shape" in item.tags:
                overload.flags.add("s")
            if "data_dependent_output" in item.tags and "d" not in overload.flags:
                overload.flags.add("h")
            if "i" not in overload.flags:
                overload.aliases = sorted({*overload.aliases, *item.shared})
        if overload.flags & {"s", "h"} and not overload.data_when:
            overload.data_when = sampling.data_condition(seen, _defaults(overload.params))
        if "i" not in overload.flags:
            always = set.intersection(*(set(item.mutated) for item in seen))
            overload.mutates = sorted({*overload.mutates, *always})
    for overload in found.ops.values():
        if "p" in overload.flags and overload.returns == "tensor":
            overload.returns = "tensor - broadcast"


def main() -> None:
    """Generate and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--keep-measured", action="store_true", help="export only the calls that the existing file lacks"
    )
    options = parser.parse_args()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    previous = json.loads(DATA.read_text(encoding="utf-8")) if DATA.exists() else {}
    found = surface.collect()
    curated.apply(found)
    with tempfile.TemporaryDirectory() as folder:
        store.DATA_FILE = Path(folder) / DATA.name
        write(assemble(found), store.DATA_FILE)
        by_key = sample_all(found)
    learn(found, by_key)
    data = assemble(found)
    kept = (
        previous.get("notes", {}) if options.keep_measured and previous.get("torch") == data["torch"] else {}
    )
    data["modules"], data["module_aliases"], module_notes = modules.collect(kept)
    notes, refused = exports.measure_calls(kept)
    data["notes"] = {**notes, **module_notes}
    write(data)
    PAGE.write_text(page.render(data), encoding="utf-8")
    print(
        f"{len(data['functions'])} functions, {len(data['methods'])} methods, {len(data['ops'])} overloads, "
        f"{sum(map(len, by_key.values()))} observed calls"
    )
    print("not runnable here, so not measured:", "; ".join(refused))


if __name__ == "__main__":
    main()
