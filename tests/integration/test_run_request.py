"""A run with a name that does not exist ends with a sentence before it connects to vCenter."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.ansible import BIN, Ansible, Outcome

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
HAS_NONE = "has none; name an inventory with -i that has them"


def inventory(folder: Path, **variables: Any) -> str:
    """Write an inventory with two clusters and return its path."""
    path = folder / "inventory.yml"
    path.write_text(yaml.safe_dump({"clusters": {"hosts": {"one": {}, "two": {}}, "vars": {**LOCAL, **variables}}}))
    return str(path)


@pytest.fixture
def ansible(tmp_path: Path) -> Ansible:
    """Ansible whose vCenter does not exist: a run that reaches it ends with another sentence."""
    return Ansible({"VMWARE_HOST": "vcenter.invalid", "VMWARE_USER": "u", "VMWARE_PASSWORD": "p"}, tmp_path)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "sentences"),
    [
        (
            ["-e", "canarry=esx01.lab", "--tags", "host"],
            ["-e canarry: this variable does not exist (did you mean canary?)", "--tags host: hosts has no such tag;"],
        ),
        (["--limit", "one,esx01.lab"], ["--limit esx01.lab: the inventory has no such host or group"]),
    ],
)
def test_refuses_names_that_do_not_exist(
    ansible: Ansible, tmp_path: Path, arguments: list[str], sentences: list[str]
) -> None:
    done = ansible.playbook("playbooks/hosts.yml", "-i", inventory(tmp_path), *arguments)
    assert done.rc != 0
    assert [sentence for sentence in sentences if sentence not in words(done.out)] == [], done.out


def test_refuses_an_inventory_without_its_hosts(ansible: Ansible, tmp_path: Path) -> None:
    done = ansible.playbook("playbooks/train.yml", "-i", inventory(tmp_path))
    assert done.rc != 0
    assert f"needs hosts that match workers, but the inventory {tmp_path}/inventory.yml {HAS_NONE}" in words(done.out)


@pytest.mark.parametrize("arguments", [["--skip-tags", "always"], ["--start-at-task", "Apply the desired state"]])
def test_refuses_options_that_skip_the_checks(ansible: Ansible, tmp_path: Path, arguments: list[str]) -> None:
    done = ansible.playbook("playbooks/hosts.yml", "-i", inventory(tmp_path), *arguments)
    assert done.rc != 0 and "leaves out checks that protect running jobs" in words(done.out), done.out


def test_refuses_a_wrong_type_on_the_command_line(ansible: Ansible, tmp_path: Path) -> None:
    done = ansible.playbook("playbooks/hosts.yml", "-i", inventory(tmp_path), "-e", "max_out_of_service=seven")
    assert done.rc != 0 and "the variable max_out_of_service must be " in words(done.out), done.out
    assert "PLAY RECAP" not in done.out, "it ends before the first play"


@pytest.mark.parametrize(
    ("arguments", "reached"),
    [([], "the inventory sets confirm, which allows harm"), (["-e", "confirm=true"], "vcenter.invalid")],
)
def test_inventory_cannot_confirm_a_teardown(
    ansible: Ansible, tmp_path: Path, arguments: list[str], reached: str
) -> None:
    given = inventory(tmp_path, confirm=True)

    done = ansible.playbook("playbooks/teardown.yml", "-i", given, "--limit", "one", *arguments)

    assert done.rc != 0 and reached in words(done.out), done.out


def test_accepts_known_names(ansible: Ansible, tmp_path: Path) -> None:
    given = json.dumps({"canary": "esx01.lab", "esxi_host_lock_ttl": 60, "my_site": 1})
    done = ansible.playbook(
        "playbooks/hosts.yml", "-i", inventory(tmp_path), "--limit", "one", "--tags", "hosts", "-e", given
    )
    assert done.rc != 0
    assert "vcenter.invalid" in done.out and "two" not in done.out, done.out


slow = partial(pytest.param, marks=pytest.mark.slow)
# The processes of a training job, and a playbook that sees no processes of other tests.
ALONE = "unshare --fork --mount-proc --kill-child --pid" + ("" if os.geteuid() == 0 else " --user --map-root-user")
JOB = 'DML_RECORDS=/var/lib/dml/runs/nightly DML_RUN_ID=1 sleep 600 & exec "$@"'


@pytest.mark.parametrize(
    ("playbook", "arguments", "refused", "reaches"),
    [
        ("hosts", [], True, ""),
        ("hosts", ["-e", "interrupt_training=true"], False, "vcenter.invalid"),
        slow("hosts", ["--limit", "one"], True, ""),
        slow("hosts", ["--limit", "one", "-e", "interrupt_training=true"], False, "vcenter.invalid"),
        slow("hosts", ["--limit", "one", "-e", "under_training=true"], False, "--limit one excludes the workers"),
        slow("rollback", ["--limit", "one"], True, ""),
        slow("teardown", ["--limit", "one", "-e", "confirm=true"], True, ""),
        slow("workers", ["-e", "power_cycle=true"], True, ""),
        slow("workers", [], False, "worker_vms has no worker"),
        ("teardown", ["-e", "confirm=true"], True, ""),
        slow("guests", [], True, ""),
        slow("train", ["-e", "training_name=another"], True, ""),
        slow("train", ["-e", "training_name=nightly", "-e", "training_backend=none"], False, "training_backend"),
        slow("train", ["-e", "training_name=nightly", "-e", "training_nodes=[]"], False, "training_nodes is ['[]']"),
        slow("train", ["-e", "training_name=nightly", "-e", '{"training_nodes": ["w2"]}'], False, "play are w1;"),
    ],
)
def test_does_not_interrupt_a_training_job(
    ansible: Ansible, tmp_path: Path, playbook: str, arguments: list[str], refused: bool, reaches: str
) -> None:
    path = Path(inventory(tmp_path))
    workers = {"workers": {"hosts": {"w1": {**LOCAL, "ansible_become": False}}}}
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **workers}))
    command = [str(BIN / "ansible-playbook"), f"playbooks/{playbook}.yml", "-i", str(path), *arguments]
    ran = ansible.run([*ALONE.split(), "sh", "-c", JOB, "sh", *command])
    done = Outcome(ran.returncode, ran.stdout, {})
    found = re.search(
        r"w1: the training job nightly of \w+ since [-0-9]+ [0-9:]+ UTC runs on this worker\.", words(done.out)
    )
    assert bool(found) is refused, done.out
    assert done.rc != 0 and reaches in words(done.out)


PART = """
- hosts: clusters
  gather_facts: false
  tasks: []
- name: Change the guests
  hosts: "{{ query('dml.vsphere.run_request', 'guests', hosts='workers') }}"
  gather_facts: false
  tasks: [{ansible.builtin.debug: {msg: "reaches {{ inventory_hostname }}"}}]
"""


@pytest.mark.parametrize(
    ("variables", "arguments", "reached"), [({}, [], False), ({"guests": "{{ 1 == 1 }}"}, [], True)]
)
def test_site_prepares_guests_only_if_a_variable_requests(
    ansible: Ansible, tmp_path: Path, variables: dict[str, Any], arguments: list[str], reached: bool
) -> None:
    path, playbook = Path(inventory(tmp_path)), tmp_path / "site.yml"
    playbook.write_text(PART)
    workers = {"workers": {"hosts": {"w1": {}}, "vars": {**LOCAL, **variables}}}
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **workers}))
    done = ansible.playbook(playbook, "-i", str(path), *arguments)
    assert done.rc == 0 and ("reaches w1" in done.out) is reached, done.out
