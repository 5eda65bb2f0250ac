"""The role worker shuts a running worker down only with consent, with which its playbook looks for training jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fakes.workers import FakeVcenter, call
from tests.rendering import rendered, truth

ROOT = Path(__file__).parents[3]
DESIRED: dict[str, Any] = {
    "defaults": {"template": "golden", "gpus": [{"profile": "grid_t4-16c"}]},
    "workers": [{"name": "w1"}, {"name": "w2"}],
}


def refusal() -> dict[str, Any]:
    """Return the task that stands before the first write of the role."""
    tasks = yaml.safe_load((ROOT / "roles/worker/tasks/present.yml").read_text(encoding="utf-8"))
    writes = next(place for place, task in enumerate(tasks) if "change.yml" in str(task))
    return next(task for task in tasks[:writes] if "without consent" in task["name"])


@pytest.mark.parametrize(
    ("power", "consent", "passes"), [("off", False, False), ("off", True, True), ("on", False, True)]
)
def test_refuses_to_stop_running_workers_without_consent(power: str, consent: bool, passes: bool) -> None:
    vcenter, task = FakeVcenter(), refusal()
    assert not call(vcenter, **DESIRED).get("failed")
    desired = {**DESIRED, "workers": [{"name": "w1", "power": power, "annotation": "idle"}, {"name": "w2"}]}
    known: dict[str, Any] = {"__worker_plan": call(vcenter, check=True, **desired), "worker_power_cycle": consent}
    for name, text in task["vars"].items():
        known[name] = rendered(text, **known)
    assert known["__worker_stopped"] == (["w1"] if power == "off" else [])
    assert truth(task["ansible.builtin.assert"]["that"], **known) is passes


def test_workers_that_are_off_need_no_consent() -> None:
    vcenter, task = FakeVcenter(), refusal()
    desired = {**DESIRED, "workers": [{"name": "w1", "power": "off"}]}
    for _run in range(2):
        known: dict[str, Any] = {"__worker_plan": call(vcenter, check=True, **desired), "worker_power_cycle": False}
        for name, text in task["vars"].items():
            known[name] = rendered(text, **known)
        assert known["__worker_stopped"] == []
        call(vcenter, **desired)
