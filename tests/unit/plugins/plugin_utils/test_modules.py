"""The options and the environment that an action passes to the modules that it runs."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest
import yaml

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
