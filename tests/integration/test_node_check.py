"""node_check as roles call it: values come from templates, and a misfit fails the task in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.ansible import Ansible

MPI = [{"name": "openmpi-bin", "version": "4.1.4"}]
DOCKER = {"ServerVersion": "28.3.3", "Runtimes": {"nvidia": {"path": "n"}}, "LiveRestoreEnabled": True}
# Text of JSON, numbers and truths come out of templates differently in the versions of Ansible.
VARIABLES = {
    "packages": MPI,
    "lines": ["openmpi-bin 4.1.4 installed"],
    "listed": {"stdout": json.dumps([{"name": "six", "version": "1"}])},
    "docker": {"stdout": json.dumps(DOCKER)},
    "asked": {"stdout": json.dumps({"nvcc": "12.2", "devices": [{"name": "A100"}]})},
    "logins": {"results": [{"stdout": '{"nofile": [4096]}'}]},
    "count": 2,
}
TASKS: dict[str, dict[str, Any]] = {
    "good": {"kind": "packages", "found": {"installed": "{{ lines }}"}, "desired": {"packages": "{{ packages }}"}},
    "misfit": {"kind": "packages", "found": {"installed": []}, "desired": {"packages": "{{ packages }}"}},
    "looked at": {
        "kind": "packages",
        "found": {"installed": []},
        "desired": {"packages": "{{ packages }}"},
        "fail": False,
    },
    "pip": {
        "kind": "python_packages",
        "found": {"listed": "{{ listed.stdout }}"},
        "desired": {"packages": [{"name": "six", "version": "{{ '1' }}"}]},
    },
    "docker": {
        "kind": "docker",
        "found": {"info": "{{ docker.stdout }}", "settings": "{{ '{\"debug\": true}' }}"},
        "desired": {
            "version": "28.3.3",
            "nvidia": "n",
            "nvidia_default": "{{ count > 2 }}",
            "mirrors": [],
            "settings": {},
        },
    },
    "cuda": {
        "kind": "cuda",
        "found": {"reported": "{{ asked.stdout }}"},
        "desired": {"versions": {"nvcc": "12.2"}, "devices": "{{ count }}"},
    },
    "node": {
        "kind": "node",
        "found": {
            "sysctls": [],
            "limits": "{{ logins.results | map(attribute='stdout') }}",
            "ssh": "stricthostkeychecking true",
            "sshd": "",
        },
        "desired": {"sysctls": {}, "limits": {"nofile": 4096}, "stun_seconds": "{{ count }}"},
    },
    "broken": {"kind": "docker", "found": {"info": "", "settings": "{oops"}, "desired": {"version": "1"}},
    "incomplete": {"kind": "packages", "found": {}, "desired": {"packages": []}},
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of each task, all of them in one play in check mode, in which they run too."""
    folder = tmp_path_factory.mktemp("checks")
    tasks: list[dict[str, Any]] = []
    for name, arguments in TASKS.items():
        check = {"name": name, "dml.vsphere.node_check": arguments, "register": name.replace(" ", "_")}
        tasks.append({**check, "failed_when": False})
    kept = "{{ {" + ", ".join(f"'{name}': {name.replace(' ', '_')}" for name in TASKS) + "} | to_json }}"
    write = {"dest": str(folder / "answers.json"), "content": kept, "mode": "0600"}
    tasks.append({"ansible.builtin.copy": write, "check_mode": False})
    play = {"hosts": "n1", "gather_facts": False, "vars": VARIABLES, "tasks": tasks}
    (folder / "play.yml").write_text(yaml.safe_dump([play], sort_keys=False))
    done = Ansible({}, folder).playbook(folder / "play.yml", "-i", "n1,", "-c", "local", "--check")
    assert done.rc == 0, done.out
    return dict(json.loads((folder / "answers.json").read_text()))


@pytest.mark.parametrize("name", ["good", "pip", "docker", "node"])
def test_correct_node_has_no_misfit(answers: dict[str, Any], name: str) -> None:
    assert answers[name].get("misfits") == [], answers[name]


def test_returns_the_facts_of_a_node(answers: dict[str, Any]) -> None:
    assert answers["docker"]["facts"]["live_restore"] is True
    assert answers["docker"]["facts"]["settings"]["debug"] is True


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("misfit", "The packages of n1 are not as they should be: The package openmpi-bin is missing, not 4.1.4."),
        ("looked at", "The packages of n1 are not as they should be: The package openmpi-bin is missing, not 4.1.4."),
        ("cuda", "CUDA on n1 does not match its settings: CUDA sees 1 devices, not 2."),
        ("broken", "Docker on n1 does not match its settings: /etc/docker/daemon.json is not valid JSON"),
        (
            "incomplete",
            "The packages of n1 are not as they should be: The output of its programs cannot be read (it has no",
        ),
    ],
)
def test_reports_a_misfit_with_its_message(answers: dict[str, Any], name: str, message: str) -> None:
    assert message in answers[name]["msg"]


def test_misfit_fails_the_task_and_its_play(tmp_path: Path) -> None:
    tasks = [{"dml.vsphere.node_check": TASKS["misfit"]}]
    play = {"hosts": "n1", "gather_facts": False, "vars": VARIABLES, "tasks": tasks}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    done = Ansible({}, tmp_path).playbook(tmp_path / "play.yml", "-i", "n1,", "-c", "local")
    assert done.rc != 0
    assert "The package openmpi-bin is missing, not 4.1.4." in " ".join(done.out.split())
