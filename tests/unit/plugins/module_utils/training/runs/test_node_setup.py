"""The preparation of the nodes of a run names what they lack."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.runs.node_setup import require_stack
from tests.fakes.training_world import TrainingWorld


@pytest.mark.parametrize(
    ("command", "is_refused"),
    [(["python", "train.py"], True), (["/opt/dml/horovod/bin/python", "train.py"], False), (["./train"], False)],
)
def test_names_nodes_without_a_stack(command: list[str], is_refused: bool) -> None:
    run = TrainingWorld(python="/opt/dml/horovod/bin/python", command=command).run()
    run.nodes["w2"]["facts"] = {}  # type: ignore[index]  # made for this test

    sentence = r"no stack is recorded on w2; run the playbook dml.vsphere.site"
    with pytest.raises(Refused, match=sentence) if is_refused else nullcontext():
        require_stack(run)
