"""A command that runs as a fork ends, prints and dies as one in a separate process does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration import callers, warm
from tests.integration.ansible import BIN, Ansible
from tests.integration.killing import wait_for

SHOW = r"""
- hosts: localhost
  gather_facts: false
  vars: {ansible_connection: local, process: "/proc/{{ lookup('pipe', 'echo $PPID') }}/cmdline"}
  tasks:
    - ansible.builtin.debug: {msg: "{{ lookup('env', 'SHOWN') }} {{ shown }}"}
    - ansible.builtin.shell: >-
        tr '\0' ' ' < {{ process }} | grep -o 'ansible-playbook .*='
      register: above
    - ansible.builtin.fail: {msg: "{{ above.stdout }}"}
      when: shown == 'fails'
"""
WAIT = """
- hosts: localhost
  gather_facts: false
  vars: {ansible_connection: local}
  tasks: [{ansible.builtin.command: "sleep 4"}]
"""


@pytest.fixture
def ansible(tmp_path: Path) -> Ansible:
    return Ansible({"SHOWN": "of the environment,"}, tmp_path)


def forked(
    command: list[str], environment: dict[str, str], seconds: int = 60
) -> subprocess.CompletedProcess[str] | None:
    """Run a command in a fork: the second one with these settings is one for certain."""
    warm.run([str(BIN / "ansible"), "--version"], environment, 60)
    return warm.run(command, environment, seconds)


def separate(ansible: Ansible, command: list[str]) -> subprocess.CompletedProcess[str]:
    both = subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(
        command,
        env=ansible.environment,
        stdin=subprocess.DEVNULL,
        stdout=both[0],
        stderr=both[1],
        text=True,
        check=False,
    )


@pytest.mark.parametrize("shown", ["ends", "fails"])
def test_fork_ends_and_prints_like_a_process(ansible: Ansible, tmp_path: Path, shown: str) -> None:
    playbook = tmp_path / "show.yml"
    playbook.write_text(SHOW)
    command = [str(BIN / "ansible-playbook"), str(playbook), "-i", "localhost,", "-e", f"shown={shown}"]
    fork, process = forked(command, ansible.environment), separate(ansible, command)
    assert fork is not None and f"of the environment, {shown}" in fork.stdout
    assert fork.returncode == process.returncode == (2 if shown == "fails" else 0)
    assert re.sub(r"/proc/\d+", "/proc", fork.stdout) == re.sub(r"/proc/\d+", "/proc", process.stdout)
    assert shown == "ends" or f"ansible-playbook {playbook} -i localhost, -e shown=" in " ".join(fork.stdout.split())


def test_kills_a_fork_that_takes_too_long(ansible: Ansible, tmp_path: Path) -> None:
    playbook = tmp_path / f"wait{os.getpid()}.yml"
    playbook.write_text(WAIT)
    with pytest.raises(subprocess.TimeoutExpired):
        forked([str(BIN / "ansible-playbook"), str(playbook), "-i", "localhost,"], ansible.environment, 3)
    found = ["pgrep", "-f", f"ansible-playbook.{playbook}"]
    wait_for(lambda: subprocess.run(found, check=False, capture_output=True).returncode == 1, 20)
    version = warm.run([str(BIN / "ansible-playbook"), "--version"], ansible.environment, 60)
    assert version is not None and version.returncode == 0, "the next command runs"


def test_other_ansible_settings_require_a_separate_process(ansible: Ansible) -> None:
    command = [str(BIN / "ansible-playbook"), "--version"]
    other = {**ansible.environment, "ANSIBLE_FORKS": f"{os.getpid()}"}
    assert forked(command, ansible.environment) is not None
    assert warm.run(command, other, 60) is None and warm.run(command, other, 60) is not None
    assert warm.run(["ansible-doc", "--version"], ansible.environment, 60) is None


def test_fork_records_opened_files_for_its_test(ansible: Ansible, tmp_path: Path) -> None:
    log, playbook, test = tmp_path / "opened.log", tmp_path / "opened.yml", "tests/integration/test_other.py"
    tasks = "pre_tasks: [{dml.vsphere.esxi_info: {}}], roles: [dml.vsphere.alone]"
    playbook.write_text(f"- {{hosts: localhost, connection: local, gather_facts: false, {tasks}}}")
    ansible.environment |= {"DML_OPENED": str(log), "DML_OPENED_BY": test}

    forked([str(BIN / "ansible-playbook"), str(playbook), "-i", "localhost,"], ansible.environment)

    opened = set(log.read_text().splitlines())
    expected = ("roles/alone/tasks/main.yml", "roles/alone/defaults/main.yml", "plugins/modules/esxi_info.py")
    assert {f"{test}\t{path}" for path in expected} <= opened


@pytest.mark.parametrize("bytecode", [True, False])
def test_loader_of_collections_compiles_each_file_once(ansible: Ansible, bytecode: bool) -> None:
    variables = ansible.environment if bytecode else {**ansible.environment, "PYTHONPATH": ""}
    file = {"source": b"1 + 1", "filename": "/a/ansible_collections/b.py", "mode": "eval"}
    again = f"finder.compile(**{file}, flags=0, dont_inherit=True)"
    program = (
        "import builtins; from ansible.utils.collection_loader import _collection_finder as finder;"
        f"{again}; builtins.compile = None; print(eval({again}))"
    )
    done = subprocess.run([sys.executable, "-c", program], env=variables, check=False, capture_output=True, text=True)
    assert (done.stdout == "2\n") is bytecode, done.stderr


def test_processes_of_a_run_pack_a_module_once(ansible: Ansible, tmp_path: Path) -> None:
    playbook = tmp_path / "packed.yml"
    task = {"dml.vsphere.esxi_info": {"cluster": "gpu"}, "connection": "local"}
    playbook.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]))
    done = forked([str(BIN / "ansible-playbook"), str(playbook), "-i", "localhost,"], ansible.environment)
    assert done is not None and done.returncode == 2, "the module has no vCenter"
    assert list(Path(os.environ[callers.FOLDER]).glob("packed/*/*.esxi_info-*"))
