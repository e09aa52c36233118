"""What a slow original gives is known in the next trial of a repair: for the same weights and inputs, and for no others."""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from exportlens.export.worker.cases import EXAMPLE, Case, Cost
from exportlens.export.worker.confirming import begin
from exportlens.export.worker.loading import Inputs, Space, Subject
from exportlens.export.worker.preparing import Prepared
from exportlens.export.worker.remembering import Expected, Memory


def subject(weight: float = 1.0) -> Subject:
    model = torch.nn.Linear(4, 2, bias=False)
    torch.nn.init.constant_(model.weight, weight)
    return Subject(model, Space(sys.modules[__name__]), "Linear", None, True)


def inputs(value: float = 1.0) -> Inputs:
    return Inputs((torch.full((3, 4), value),), {}, None)


def remembered(folder: Path, seconds: float) -> None:
    memory, given = Memory(str(folder)), inputs()
    model = subject()
    assert memory.before_call(model, given).cost is None
    first = begin(model.copy(), Case(EXAMPLE, given.args, given.kwargs, 0))
    expected = Expected({0: {"output": (first.outputs[0], "")}}, [first.inputs_after], [None])
    memory.keep(Prepared(model, given, {"source": "a call", "inputs": "x"}, Cost(seconds), True), expected)


def test_a_slow_model_is_remembered(tmp_path: Path) -> None:
    remembered(tmp_path, seconds=5.0)
    memory = Memory(str(tmp_path))
    request = memory.request({"proposals": [{"source": "another call"}, {"source": "a call"}]})
    assert request["proposals"] == [{"source": "a call", "inputs": "x"}]
    ready = memory.before_call(subject(), inputs())
    assert (ready.cost, ready.without_backward) == (Cost(5.0), True)
    expected = memory.recall(1)
    assert expected is not None and expected.opened[0]["output"][0].tolist() == [[4.0, 4.0]] * 3
    assert memory.recall(2) is None


def test_other_weights_or_inputs_are_not_known(tmp_path: Path) -> None:
    remembered(tmp_path, seconds=5.0)
    for model, given in ((subject(2.0), inputs()), (subject(), inputs(2.0))):
        memory = Memory(str(tmp_path))
        assert memory.before_call(model, given).cost is None
        assert memory.recall(1) is None


def test_a_quick_model_is_called_again(tmp_path: Path) -> None:
    remembered(tmp_path, seconds=0.01)
    assert list(tmp_path.iterdir()) == []
