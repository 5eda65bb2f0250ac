"""The period of an audit is a number, also if the command line gives it, where it is a text."""

from __future__ import annotations

import time

import pytest

from tests.rendering import rendered, task_of


@pytest.mark.parametrize("hours", [48, 48.0, "48", "48.0"])
def test_audits_the_requested_hours_when_they_are_text(hours: object) -> None:
    check = task_of("audit", "gpus.yml", "Check the health")
    since = rendered(check["dml.vsphere.node_check"]["desired"]["since"], audit_hours=hours)
    assert time.time() - float(since) == pytest.approx(48 * 3600, abs=60)
    listed = task_of("audit", "slurm.yml", "List the jobs")
    (start,) = [word for word in listed["ansible.builtin.command"]["argv"] if word.startswith("--starttime")]
    assert rendered(start, audit_hours=hours) == "--starttime=now-2880minutes"
