"""The period of an audit is a number, also if the command line gives it, where it is a text."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rendering import rendered

TASKS = Path(__file__).parents[3] / "roles" / "audit" / "tasks"


def tasks_of(name: str) -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = yaml.safe_load((TASKS / name).read_text(encoding="utf-8"))
    return tasks


@pytest.mark.parametrize("hours", [48, 48.0, "48", "48.0"])
def test_audits_the_requested_hours_when_they_are_text(hours: object) -> None:
    check = next(task for task in tasks_of("gpus.yml") if "dml.vsphere.node_check" in task)
    since = rendered(check["dml.vsphere.node_check"]["desired"]["since"], audit_hours=hours)
    assert time.time() - float(since) == pytest.approx(48 * 3600, abs=60)
    (listed,) = tasks_of("slurm.yml")
    (start,) = [word for word in listed["ansible.builtin.command"]["argv"] if word.startswith("--starttime")]
    assert rendered(start, audit_hours=hours) == "--starttime=now-2880minutes"
