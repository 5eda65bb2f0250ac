"""Only the machine on which a process runs can say that it is gone."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from plugins.module_utils.errors import Abandoned
from plugins.module_utils.maintenance.lock import holder
from plugins.module_utils.maintenance.lock.lock_rules import RunProcess, safe_text


@pytest.fixture
def here() -> RunProcess:
    found = holder._described(os.getpid())
    assert found is not None
    return found


def test_a_process_that_runs_is_alive(here: RunProcess) -> None:
    assert holder.is_alive(here) and not holder.is_dead(here)
    assert not holder.is_alive(None) and not holder.is_dead(None)


def test_recognizes_ended_processes_despite_a_reused_pid(here: RunProcess) -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    there = holder._described(child.pid)
    assert there is not None and not holder.is_dead(there)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert holder.is_dead(there), "a zombie is dead"
    child.communicate()
    assert holder.is_dead(there)
    assert holder.is_dead(replace(here, started=here.started + 1))


@pytest.mark.parametrize("key", ["machine", "boot", "namespace"])
def test_knows_nothing_about_another_machine_boot_or_container(here: RunProcess, key: str) -> None:
    assert not holder.is_dead(replace(here, pid=2**22 + 1, **{key: "another"}))
    assert not holder.is_alive(replace(here, **{key: "another"}))


def test_finds_a_run_on_a_long_machine_name(here: RunProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder.socket, "gethostname", lambda: "controller-of-the-gpu-clusters." * 2 + "example.com")
    found = holder._described(here.pid)
    assert found is not None
    run = f"{found.machine}.{2**22}.{10**11}"
    assert safe_text(run) == run, "the name of a run is whole in a record"
    monkeypatch.setenv(holder.RUN, f"{found.machine}.{here.pid}.{here.started}")
    assert holder.running() == replace(here, machine=found.machine)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/usr/bin/python3.11 /home/me/.local/bin/ansible-playbook site.yml", True),
        ("/usr/bin/python3.11 -m ansible playbook site.yml", True),
        ("/usr/bin/python3.11 -m ansible_runner run .", False),
        ("bash -c ansible-playbook", False),
        ("ansible gpu -m ping", True),
    ],
)
def test_recognizes_ansible_commands_by_their_first_words(
    command: str, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "4711").mkdir()
    (tmp_path / "4711" / "cmdline").write_bytes(command.replace(" ", "\0").encode() + b"\0")
    monkeypatch.setattr(holder, "PROC", tmp_path)
    assert holder._is_ansible(4711) is expected


def test_the_outermost_ansible_command_is_found(tmp_path: os.PathLike[str]) -> None:
    script = os.path.join(tmp_path, "ansible-playbook")
    inner = (
        "import os; from plugins.module_utils.maintenance.lock import holder; print(holder.running().pid, os.getppid())"
    )
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}], check=True)\n")
    done = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, check=True, env=_here())
    found, parent = done.stdout.split()
    assert found == parent


def test_finds_a_running_module_until_it_ends(here: RunProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(holder.RUN, f"{here.machine}.{here.pid}.{here.started}")
    assert holder.survivors(here) == []
    with holder.marked():
        assert holder.survivors(here) == [os.getpid()]
        assert holder.survivors(replace(here, started=here.started + 1)) == []
    assert holder.survivors(here) == []
    assert holder.survivors(None) == []


def test_module_does_not_start_after_its_run_ended(here: RunProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(holder.RUN, f"{here.machine}.{here.pid}.{here.started + 1}")
    with pytest.raises(Abandoned, match="the ansible run that requested it has ended"), holder.marked():
        raise AssertionError


@pytest.mark.parametrize("name", ["", "by-hand", "another.1.2"])
def test_ignores_names_without_a_run_on_this_machine(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(holder.RUN, name)
    assert holder.running() is None
    with holder.marked():
        pass


def _here() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.getcwd()}


@pytest.mark.parametrize("variable", ["LOGNAME", "USER", "LNAME", "USERNAME"])
def test_the_owner_does_not_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "somebody")
    assert not holder.owner().startswith("somebody@")


@pytest.mark.parametrize(
    "planted", ["1", str(os.getppid()), str(os.getpid()), "999999999"], ids=["init", "parent", "own", "none"]
)
def test_does_not_take_foreign_sockets_for_modules(here: RunProcess, planted: str) -> None:
    """Any user can take the name, with the ID of a process that has no such socket, or that is another user's."""
    name = f"\0dml.vsphere/{here.pid}.{here.started}/{planted}"
    program = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1].replace('@', chr(0), 1)); input()"
    )
    command = [sys.executable, "-c", program, name.replace("\0", "@")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as other:
        wait_for_name(name)
        assert holder.survivors(here) == []
        other.communicate("\n")


def test_counts_only_the_owners_processes_as_modules(here: RunProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(holder.RUN, f"{here.machine}.{here.pid}.{here.started}")
    with holder.marked():
        assert holder.survivors(here, f"{holder.current_user()}@ctl01") == [os.getpid()]
        monkeypatch.setattr(holder.os, "geteuid", lambda: 4321)
        other = pwd.getpwnam("nobody").pw_name
        assert holder.survivors(here, f"{other}@ctl01") == []


def wait_for_name(name: str) -> None:
    """Wait until an abstract socket has this name."""
    deadline = time.monotonic() + 30
    while name.replace("\0", "@") not in Path("/proc/net/unix").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
