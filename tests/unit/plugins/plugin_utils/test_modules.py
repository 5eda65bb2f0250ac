"""The options and the environment of modules that an action runs; a plan is made once in a run that only checks."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import yaml
from ansible import constants, context
from ansible.module_utils.common.collections import ImmutableDict

from plugins.doc_fragments.connection import ModuleDocFragment
from plugins.plugin_utils import modules


def test_action_passes_on_every_connection_option() -> None:
    assert set(modules.CONNECTION) == set(yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"])


def test_module_result_is_plain_data_for_the_journal() -> None:
    class Warned:
        def __str__(self) -> str:
            return "a warning"

    answer = {"changed": True, "warnings": [Warned()]}

    result = modules.Modules(mock.Mock(), {})._ended(mock.Mock(), "vmotion", lambda: answer)

    assert result == {"changed": True, "warnings": ["a warning"]}


def test_error_names_the_module_and_not_its_action() -> None:
    action = mock.Mock()
    action._task.action = "dml.vsphere.vmotion_test"
    answer = {"failed": True, "rc": 137, "module_stdout": "", "module_stderr": ""}

    result = modules.Modules(action, {})._ended(mock.Mock(), "vmotion", lambda: answer)

    assert "the module vmotion was killed" in result["msg"]


def test_kubeconfig_is_relative_to_the_users_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/anna")
    monkeypatch.setenv("KUBECONFIG", os.pathsep.join(["lab.yml", "~/.kube/config"]))
    monkeypatch.delenv("K8S_AUTH_KUBECONFIG", raising=False)

    assert modules._absolute({"kubeconfig": "keys/admin.conf"}) == {"kubeconfig": f"{tmp_path}/keys/admin.conf"}
    assert modules._absolute({"kubeconfig": "", "name": "job"}) == {"kubeconfig": "", "name": "job"}
    assert modules._kubernetes_environment() == {"KUBECONFIG": f"{tmp_path}/lab.yml:/home/anna/.kube/config"}


@pytest.mark.parametrize(
    ("variables", "chosen", "python"),
    [
        ({"ansible_connection": "ssh"}, "ssh", "/venv/bin/python"),
        ({}, "ssh", "/venv/bin/python"),
        ({"ansible_connection": "local"}, "ssh", "/usr/bin/python3"),
        ({"ansible_connection": "ansible.builtin.local"}, "ssh", "/usr/bin/python3"),
        ({}, "local", "/usr/bin/python3"),
    ],
    ids=["worker", "worker by default", "cluster", "cluster, full name", "cluster by --connection"],
)
def test_controller_module_never_uses_the_python_of_workers(
    variables: dict[str, str], chosen: str, python: str
) -> None:
    action = mock.Mock()
    # Such as the connection to the worker to which the task of a cluster is delegated.
    action._connection.transport, action._play_context.connection = "ssh", chosen
    known = {modules.PYTHON: "/usr/bin/python3", "ansible_playbook_python": "/venv/bin/python", **variables}

    here = modules.Modules(action, {**known, "ansible_delegated_vars": {"worker01": known}})._here

    assert here == {**known, modules.PYTHON: python}


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
