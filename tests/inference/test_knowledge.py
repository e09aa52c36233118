"""What the data says of torch, held against torch itself: sampled calls, modules, real exports."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from exportlens.inference import knowledge
from exportlens.inference.knowledge import UNKNOWN, Constant, TensorFacts, dtype_after, rank_after, store

torch = pytest.importorskip("torch")

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

from torch_knowledge import exports, sampling  # noqa: E402

NOTES = json.loads(Path(store.__file__).with_name("torch.json").read_text(encoding="utf-8"))["notes"]
SAME_RELEASE = torch.__version__.partition("+")[0] == knowledge.torch_version()
needs_release = pytest.mark.skipif(
    not SAME_RELEASE, reason="the data was generated from another torch release"
)


def _plain_calls() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    return list(exports.evaluated_calls())


def _object(name: str) -> Any:
    value: Any = torch
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def _claims(structure: Any, returns: knowledge.Returns, bound: dict[str, Any], where: str) -> int:
    """Check a real result's structure against the data; how many dtype and rank claims held."""
    if isinstance(structure, TensorFacts):
        assert returns.kind in ("tensor", "self", "any"), (where, returns)
        dtype = dtype_after(returns.dtype, bound) if returns.kind == "tensor" else None
        rank = rank_after(returns.rank, bound) if returns.kind == "tensor" else None
        assert dtype in (None, structure.dtype), (where, returns, structure)
        assert rank in (None, structure.rank), (where, returns, structure)
        return (dtype is not None) + (rank is not None)
    if isinstance(structure, str):
        words = {structure, "any", "number"} if structure in ("int", "float", "bool") else {structure, "any"}
        assert returns.kind in words or structure == "any" or returns.kind == "list", (
            where,
            returns,
            structure,
        )
        return 0
    if returns.kind == "any" or structure[0] == "any":
        return 0
    if returns.kind == "number" and structure[0] == "list":  # tolist nests as deep as the tensor's rank
        return 0
    assert returns.kind in ("list", "tuple", "size"), (where, returns, structure)
    if returns.kind == "tuple":
        assert len(returns.items) == len(structure[2]), (where, returns, structure)
        pairs = zip(structure[2], returns.items, strict=True)
    else:
        pairs = ((item, returns.items[0]) for item in structure[2] if returns.items)
    return sum(_claims(item, entry, bound, where) for item, entry in pairs)


@needs_release
def test_typical_calls_give_what_the_data_says() -> None:
    held = 0
    for name, args, kwargs in _plain_calls():
        op = knowledge.lookup_function(name)
        if op is None:
            continue
        chosen = op.match(
            [sampling.facts(item) for item in args], {k: sampling.facts(v) for k, v in kwargs.items()}
        )
        seen = sampling.observe(_object(name), args, kwargs, chosen)
        assert seen is None or set(seen.mutated) <= set(chosen.mutates), (name, seen.mutated)
        if seen is not None:
            assert set(seen.shared) <= {*chosen.aliases, *chosen.mutates}, (name, seen.shared)
            held += _claims(seen.result, chosen.returned(seen.bound), seen.bound, name)
    assert held > 500


@needs_release
def test_sampled_operators_give_what_the_data_says() -> None:
    pytest.importorskip("expecttest")
    held = 0
    for index, (short, sample) in enumerate(sampling.samples(every=17)):
        name = knowledge.canonical_name(f"torch.{short}")
        op = knowledge.lookup_function(name)
        if op is None or index % 3:
            continue
        args = (sample.input, *sample.args)
        facts = {key: sampling.facts(value) for key, value in sample.kwargs.items()}
        chosen = op.match([sampling.facts(item) for item in args], facts)
        seen = sampling.observe(_object(f"torch.{short}"), args, sample.kwargs, chosen)
        if seen is not None:
            held += _claims(seen.result, chosen.returned(seen.bound), seen.bound, name)
    assert held > 300


@pytest.fixture(scope="module")
def warm() -> None:
    exports.warm_up()


@needs_release
@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    ("key", "expression"),
    [
        ("torch.nn.functional.one_hot", "F.one_hot(i)"),
        ("torch.nn.functional.relu", "F.relu(x)"),
        ("torch.Tensor.tolist", "x.tolist()"),
        ("torch.Tensor.data", "x.data * 2"),
        ("torch.equal", "torch.equal(x, y)"),
        ("torch.autograd.Variable", "torch.autograd.Variable(x) + 1"),
        ("random.random", "x + random.random()"),
        ("torch.zeros", "torch.zeros(int(t))"),
        ("torch.nn.functional.gaussian_nll_loss", "F.gaussian_nll_loss(x, y, y)"),
    ],
)
def test_export_notes_hold(key: str, expression: str) -> None:
    note = next(row for row in NOTES[key] if row[3] == expression)
    assert exports.outcome(lambda: exports.build(expression))[:2] == (note[1], note[2])  # type: ignore[index]


@pytest.mark.parametrize("name", knowledge.module_names())
def test_modules_have_the_parameters_that_the_data_names(name: str) -> None:
    known = knowledge.lookup_module(name)
    assert known is not None
    cls = _object(name)
    if any(param.kind in ("var", "varkw") for param in known.params) or issubclass(cls, torch.nn.RNNBase):
        return
    assert [param.name for param in known.params] == list(inspect.signature(cls).parameters)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("torch.nn.Linear", (3, 4), {"bias": False}),
        ("torch.nn.Linear", (3, 4), {}),
        ("torch.nn.BatchNorm2d", (3,), {"affine": False}),
        ("torch.nn.BatchNorm2d", (3,), {"track_running_stats": False}),
        ("torch.nn.LayerNorm", (3,), {"bias": False}),
        ("torch.nn.LayerNorm", (3,), {"elementwise_affine": False}),
        ("torch.nn.Conv2d", (3, 4, 1), {"bias": False}),
        ("torch.nn.InstanceNorm2d", (3,), {"affine": True}),
    ],
)
def test_state_and_its_conditions(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    known = knowledge.lookup_module(name)
    assert known is not None
    bound = known.bind(args, kwargs)
    assert bound is not None
    given = {
        param.name: bound.get(param.name, ast.literal_eval(param.default or "None")) for param in known.params
    }
    module = _object(name)(*args, **kwargs)
    for entry in known.state:
        present = getattr(module, entry.name) is not None
        assert present == all(given[condition] for condition in entry.conditions), (name, entry)
    made = {key for key, _ in [*module.named_parameters(), *module.named_buffers()]}
    assert made <= {entry.name for entry in known.state}


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (("torch.max", [TensorFacts("float32", 2)], {}), "tensor"),
        (("torch.max", [TensorFacts("float32", 2), 1], {}), "tuple"),
        (("torch.max", [TensorFacts("float32", 2)], {"axis": 1, "keepdims": True}), "tuple"),
        (("torch.max", [TensorFacts("float32", 2), TensorFacts("float32", 2)], {}), "tensor"),
        (("torch.where", [TensorFacts("bool", 2)], {}), "list"),
        (("torch.where", [TensorFacts("bool", 2), UNKNOWN, UNKNOWN], {}), "tensor"),
        (("torch.unique", [UNKNOWN], {"return_counts": True}), "tuple"),
        (("torch.unique", [UNKNOWN], {}), "tensor"),
        (("torch.nonzero", [UNKNOWN], {"as_tuple": True}), "list"),
        (("torch.nn.functional.max_pool2d", [UNKNOWN, 2], {"return_indices": True}), "tuple"),
        (("torch.nn.functional.max_pool2d", [UNKNOWN, 2], {}), "tensor"),
        (("torch.Tensor.type", [UNKNOWN], {}), "str"),
        (("torch.Tensor.type", [UNKNOWN, Constant("torch.float32", "dtype", "float32")], {}), "tensor"),
        (("torch.Tensor.size", [UNKNOWN, 0], {}), "int"),
        (("torch.Tensor.size", [UNKNOWN], {}), "size"),
    ],
)
def test_the_overload_is_chosen_by_the_arguments(call: Any, expected: str) -> None:
    name, args, keywords = call
    op = knowledge.lookup_function(name)
    assert op is not None
    assert op.match(args, keywords).returns.kind == expected


def test_spread_sizes_are_bound_as_one_argument() -> None:
    view = knowledge.lookup_method("view")
    assert view is not None
    x = TensorFacts("float32", 2)
    assert view.bind([x, 2, 3], {}) == {"self": x, "size": (2, 3)}
    assert view.bind([x, (2, 3)], {}) == {"self": x, "size": (2, 3)}
    assert rank_after(view.rank, view.bind([x, 2, 3, 4], {}) or {}) == 3


def test_data_dependence_mutation_and_views() -> None:
    for name in ("item", "tolist", "__bool__", "__int__", "equal", "is_nonzero"):
        op = knowledge.lookup_method(name)
        assert op is not None and op.data_dependent, name
    for name in ("dim", "size", "numel", "is_floating_point", "relu", "sum", "is_contiguous"):
        op = knowledge.lookup_method(name)
        assert op is not None and not op.data_dependent and not op.dynamic_shape, name
    for name in ("nonzero", "masked_select", "unique"):
        op = knowledge.lookup_method(name)
        assert op is not None and op.dynamic_shape, name
    for name in ("add_", "copy_", "index_put_", "__setitem__", "zero_"):
        op = knowledge.lookup_method(name)
        assert op is not None and op.mutates == (0,), name
    for name in ("view", "transpose", "detach", "squeeze", "split", "chunk", "__getitem__"):
        op = knowledge.lookup_method(name)
        assert op is not None and op.aliases == (0,), name
    relu = knowledge.lookup_function("torch.nn.functional.relu")
    assert relu is not None and relu.mutates_when == "inplace"
    linear = knowledge.lookup_function("torch.nn.functional.linear")
    assert linear is not None and not linear.random and not linear.mutates


@pytest.mark.parametrize(
    ("args", "keywords", "expected"),
    [
        ([TensorFacts("int64", 1)], {}, True),
        ([TensorFacts("int64", 1), -1], {}, True),
        ([TensorFacts("int64", 1), 5], {}, False),
        ([TensorFacts("int64", 1), UNKNOWN], {}, None),
        ([TensorFacts("int64", 1)], {"num_classes": 7}, False),
    ],
)
def test_when_one_hot_depends_on_data(args: Any, keywords: Any, expected: bool | None) -> None:
    op = knowledge.lookup_function("torch.nn.functional.one_hot")
    assert op is not None and op.data_when is not None
    bound = op.bind(args, keywords)
    assert bound is not None
    assert op.holds(op.data_when, bound) is expected


def test_names_by_which_the_same_thing_is_known() -> None:
    assert knowledge.canonical_name("torch.functional.einsum") == "torch.einsum"
    assert knowledge.canonical_name("torch.nn.modules.linear.Linear") == "torch.nn.Linear"
    assert knowledge.lookup_function("torch.functional.split") is not None
    assert knowledge.lookup_function("torch.ops.aten.add.Tensor") is not None
    assert knowledge.lookup_function("torch.no_such_thing") is None
    assert knowledge.lookup_method("no_such_thing") is None
    assert knowledge.lookup_module("torch.nn.NoSuchThing") is None
    assert knowledge.effect_of("numpy.random.shuffle") is not None
    assert knowledge.effect_of("math.sqrt") is None


def test_every_public_tensor_method_is_known() -> None:
    missing = [
        name
        for name, value in vars(torch._C.TensorBase).items()
        if not name.startswith("_") and callable(value) and knowledge.lookup_method(name) is None
    ]
    assert missing == []


def test_every_entry_can_be_read() -> None:
    for name in knowledge.function_names():
        op = knowledge.lookup_function(name)
        assert op is not None
        for overload in op.overloads:
            assert all(index < len(overload.params) for index in (*overload.mutates, *overload.aliases)), name
    for name in knowledge.method_names():
        op = knowledge.lookup_method(name)
        assert op is not None and op.params, name


def test_reading_needs_no_torch() -> None:
    code = (
        "import sys; from exportlens.inference import knowledge as k; "
        "assert k.lookup_function('torch.add') is not None; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy"} & set(done.stdout.split())


def test_look_ups_are_cached() -> None:
    assert knowledge.lookup_method("add") is knowledge.lookup_method("add")
