"""A plan is made once in a run that only checks, and each time in a run that writes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible import constants, context
from ansible.module_utils.common.collections import ImmutableDict

from plugins.plugin_utils import modules

REQUEST = ["esxi_profile", {"cluster": "gpu", "profile": {"pvrdma": {}}, "password": "Zq7vKx4mTw9hRb2n"}]
Count = Callable[[Any], int]


@pytest.fixture(params=[True])
def plans(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Count:
    """Return a function that plans a request in a run, in check mode unless the test says otherwise."""
    monkeypatch.setattr(context, "CLIARGS", ImmutableDict(check=request.param))
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path))
    made = list[int]()

    def plan() -> dict[str, Any]:
        made.append(1)
        return {"changed": True, "failed": False, "number": len(made)}

    return lambda requested: int(modules.planned_once(requested, plan)["number"])


def test_second_check_task_reuses_the_first_tasks_plan(plans: Count, tmp_path: Path) -> None:
    assert [plans(REQUEST), plans(REQUEST)] == [1, 1]
    assert plans(["esxi_profile", {"cluster": "other"}]) == 2, "another cluster has another plan"

    files = list(tmp_path.iterdir())
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600, 0o600]
    assert not any("Zq7vKx4mTw9hRb2n" in path.read_text() for path in files)


@pytest.mark.parametrize("plans", [False], indirect=True)
def test_writing_run_plans_each_time(plans: Count, tmp_path: Path) -> None:
    assert [plans(REQUEST), plans(REQUEST)] == [1, 2]
    assert list(tmp_path.iterdir()) == []


def test_plans_again_if_file_is_old_or_damaged(plans: Count, tmp_path: Path) -> None:
    plans(REQUEST)
    (path,) = tmp_path.iterdir()
    earlier = time.time() - modules.KEPT_SECONDS - 1

    os.utime(path, (earlier, earlier))
    assert plans(REQUEST) == 2

    path.write_text("{")
    assert plans(REQUEST) == 3


def test_does_not_keep_a_failed_plan(plans: Count, tmp_path: Path) -> None:
    refused = {"failed": True, "msg": "gpu: could not log in"}

    assert modules.planned_once(REQUEST, lambda: dict(refused)) == refused
    assert list(tmp_path.iterdir()) == []
    assert plans(REQUEST) == 1


def test_each_task_plans_without_a_writable_folder(
    plans: Count, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "DEFAULT_LOCAL_TMP", str(tmp_path / "gone"))

    assert [plans(REQUEST), plans(REQUEST)] == [1, 2]
