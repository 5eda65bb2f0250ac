"""The supervisor with real processes of this machine: files of a run directory, sweeps, and a complete job."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.guests import supervisor
from tests.reuse import reused

# Deadlines of conditions: a loaded machine is slow.
PATIENCE = 60
SLEEP = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
Begin = Callable[..., "subprocess.Popen[bytes]"]


def wait_for(condition: Callable[[], Any]) -> Any:
    """Return the first true value of a condition."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


@pytest.fixture
def begin() -> Iterator[Begin]:
    """Yield a function that starts Python programs, and end all that a test left."""
    started: list[subprocess.Popen[bytes]] = []

    def start(program: str, *words: str, name: str = sys.executable, **environment: str) -> subprocess.Popen[bytes]:
        launched = subprocess.Popen(
            [name, "-c", program, *words],
            executable=sys.executable,
            env={**os.environ, **environment},
            stdout=subprocess.PIPE,
        )
        started.append(launched)
        # A new process has its own environment only after exec.
        wait_for(lambda: supervisor._content(str(launched.pid), "cmdline").startswith(name.encode()))
        return launched

    yield start
    for one in started:
        one.kill()
        one.communicate()


def desired(folder: Path, *command: str, **changes: Any) -> dict[str, Any]:
    """Write the options of a job into its run directory."""
    content: dict[str, Any] = {
        "id": f"id-{folder.name}",
        "nodes": ["localhost"],
        "here": ["localhost"],
        "remote_shell": "false",
        "daemon_shell": None,
        "remote_python": sys.executable,
        "mpirun_command": list(command),
        "mpirun_environment": {},
        **changes,
    }
    supervisor.write(str(folder), supervisor.DESIRED, content)
    return content


def supervise(folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
    """Start a supervisor for a run directory, and return it with its answer."""
    started = subprocess.Popen(
        [sys.executable, supervisor.__file__, "run", str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert started.stdout
    with started.stdout:
        return started, json.loads(started.stdout.readline())


def test_reads_files_back_and_ignores_torn_ones(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert supervisor.read(folder, supervisor.RUN) is None
    supervisor.write(folder, supervisor.RUN, {"id": "one"})
    assert supervisor.read(folder, supervisor.RUN) == {"id": "one"}
    assert [path.name for path in tmp_path.iterdir()] == [supervisor.RUN]
    (tmp_path / supervisor.RUN).write_text('{"id": "o')
    assert supervisor.read(folder, supervisor.RUN) is None


def test_the_end_is_written_into_the_allocated_space(tmp_path: Path) -> None:
    (tmp_path / supervisor.END).write_bytes(b" " * supervisor.END_BYTES)
    supervisor.write_end(str(tmp_path), {"exit_code": 3, "swept": False})
    supervisor.write_end(str(tmp_path), {"exit_code": 3})
    assert supervisor.read(str(tmp_path), supervisor.END) == {"exit_code": 3}
    assert (tmp_path / supervisor.END).stat().st_size == supervisor.END_BYTES


def test_distinguishes_a_process_from_another_with_its_pid(begin: Begin) -> None:
    process = begin(SLEEP)
    process_identity = supervisor.identity(process.pid)
    assert supervisor.is_alive(process_identity)
    assert not supervisor.is_alive({**process_identity, "start": process_identity["start"] + 1})
    assert not supervisor.is_alive({**process_identity, "boot_id": "another"})
    process.kill()
    # The test has not waited for it yet: it is a zombie, not a running process.
    wait_for(lambda: not supervisor.is_alive(process_identity))
    assert supervisor.start_ticks(process.pid) is None
    # Also if it ended before its identity was read.
    assert not supervisor.is_alive(supervisor.identity(process.pid))


def test_finds_processes_by_the_jobs_mark_and_daemons(begin: Begin) -> None:
    rank = begin(SLEEP, **{supervisor.MARK: "one"})
    begin(SLEEP, **{supervisor.MARK: "one-more"})
    daemon = begin(SLEEP, "-mca", "ess_base_jobid", "41", name="orted")
    begin(SLEEP, "-mca", "ess_base_jobid", "51", name="orted")
    begin(SLEEP, "-mca", "ess_base_jobid", "41")
    assert set(dict(supervisor.processes_of("one", "42"))) == {rank.pid, daemon.pid}
    assert set(dict(supervisor.processes_of("one", ""))) == {rank.pid}


def test_distinguishes_daemons_with_equal_job_numbers(begin: Begin) -> None:
    # mpirun 4.1.4 writes three dashes, and two for its own options.
    number = ("-mca", "ess_base_jobid", "81", "---mca", "dml_run_id")
    own, other = begin(SLEEP, *number, "red", name="orted"), begin(SLEEP, *number, "blue", name="orted")
    assert set(dict(supervisor.processes_of("red", "82"))) == {own.pid}
    assert set(dict(supervisor.processes_of("blue", ""))) == {other.pid}


@pytest.mark.parametrize("is_marked", [True, False])
def test_spares_unmarked_daemons_if_mpirun_has_the_option(begin: Begin, tmp_path: Path, is_marked: bool) -> None:
    """Another tool's job may have the same number, and its daemons have no such option."""
    option = ["--mca", supervisor.MARK_OPTION, "one"] if is_marked else []
    stop = desired(tmp_path, "mpirun", *option)
    number = 60 + is_marked  # tests beside this one have daemons too
    daemon = begin(SLEEP, "-mca", "ess_base_jobid", str(number), name="orted")
    assert supervisor.sweep_nodes(stop, {"id": "one", "job": str(number + 1)}, PATIENCE) == {}
    assert (daemon.poll() is None) is is_marked


def test_a_sweep_ends_the_job_and_nothing_else(begin: Begin) -> None:
    rank, other = begin(SLEEP, **{supervisor.MARK: "mine"}), begin(SLEEP, **{supervisor.MARK: "theirs"})
    assert supervisor.sweep("mine", "", PATIENCE) == {"left": []}
    assert rank.wait(PATIENCE) == -signal.SIGTERM
    assert other.poll() is None


def test_a_sweep_kills_processes_that_ignore_a_termination(begin: Begin) -> None:
    rank = begin(STUBBORN, **{supervisor.MARK: "stubborn"})
    assert rank.stdout and rank.stdout.readline()
    assert supervisor.sweep("stubborn", "", 0.1) == {"left": []}
    assert rank.wait(PATIENCE) == -signal.SIGKILL


def test_finds_the_job_namespace_from_ranks_or_daemons(begin: Begin) -> None:
    launcher = begin(SLEEP, **{supervisor.MARK: "a"})
    assert supervisor.find_job("a", launcher.pid) == ""
    begin(SLEEP, "ess_base_jobid", "70", **{supervisor.MARK: "a"})
    assert supervisor.find_job("a", launcher.pid) == "71"
    begin(SLEEP, PMIX_NAMESPACE="422313985", **{supervisor.MARK: "b"})
    assert supervisor.find_job("b", launcher.pid) == "422313985"


@pytest.mark.parametrize(
    ("expected", "fault"),
    [
        ("echo Welcome; echo '[1]'; printf '\\377\\n'; shift; exec sh -c \"$*\"", ""),
        ("echo Change your password:", "unexpected output: Change your password:"),
        ("echo '[1]'", "unexpected output: [1]"),
        ("true", "unexpected output: nothing"),
    ],
)
def test_a_login_banner_does_not_answer_a_sweep(tmp_path: Path, expected: str, fault: str) -> None:
    shell = tmp_path / "shell"
    shell.write_text(f"#!/bin/sh\n{expected}\n")
    shell.chmod(0o755)
    requested = {"nodes": ["n2"], "here": ["n1"], "remote_shell": str(shell), "remote_python": sys.executable}
    left = supervisor.sweep_nodes(requested, {"id": "nobody", "job": ""}, 0.1)
    assert left == ({"n2": fault} if fault else {})


def test_other_nodes_are_swept_by_the_remote_shell(begin: Begin, tmp_path: Path) -> None:
    shell = tmp_path / "shell"
    shell.write_text('#!/bin/sh\necho "$1" >> "$0.nodes"; shift; exec sh -c "$*"\n')
    shell.chmod(0o755)
    rank = begin(SLEEP, **{supervisor.MARK: "far"})
    requested = {
        "nodes": ["n2"],
        "here": ["n1"],
        "remote_shell": shlex.quote(str(shell)),
        "remote_python": sys.executable,
    }
    assert supervisor.sweep_nodes(requested, {"id": "far", "job": None}, PATIENCE) == {}
    assert rank.wait(PATIENCE) == -signal.SIGTERM
    assert (tmp_path / "shell.nodes").read_text() == "n2\n"


@pytest.mark.parametrize(
    ("shell", "fault"),
    [
        ("false", "exit code 1"),
        ("sh -c 'echo no route >&2; exit 255'", "no route"),
        ("true", "unexpected output: nothing"),
    ],
)
def test_names_each_unswept_node_with_its_reason(shell: str, fault: str) -> None:
    requested = {"nodes": ["n1", "n2"], "here": ["n1"], "remote_shell": shell, "remote_python": "python3"}
    left = supervisor.sweep_nodes(requested, {"id": "nobody", "job": ""}, 0.1)
    assert list(left) == ["n2"]
    assert left["n2"].startswith(fault)


def test_a_job_is_run_to_its_end(tmp_path: Path) -> None:
    requested = desired(
        tmp_path, "sh", "-c", "echo hello $WHO; echo $DML_RUN_ID; exit 3", mpirun_environment={"WHO": "world"}
    )
    started, answer = supervise(tmp_path)
    assert started.wait(PATIENCE) == 3
    run, end = (supervisor.read(str(tmp_path), name) for name in (supervisor.RUN, supervisor.END))
    assert run and end
    assert answer["launcher"] == run["launcher"]
    assert run["id"] == requested["id"]
    assert (end["exit_code"], end["stopped"], end["swept"], end["left"]) == (3, False, True, {})
    assert (tmp_path / supervisor.OUTPUT).read_text() == f"hello world\n{requested['id']}\n"


def test_a_signal_stops_the_job_and_all_processes(tmp_path: Path) -> None:
    rank = shlex.join([sys.executable, "-c", STUBBORN])
    requested = desired(tmp_path, "sh", "-c", f"setsid {rank} & exec sleep 600")
    started, _answer = supervise(tmp_path)
    wait_for(lambda: len(list(supervisor.processes_of(requested["id"], ""))) == 2)
    started.terminate()
    assert started.wait(PATIENCE) == 143
    end = supervisor.read(str(tmp_path), supervisor.END)
    assert end and (end["stopped"], end["left"]) == (True, {})
    assert list(supervisor.processes_of(requested["id"], "")) == []


def test_answers_with_the_name_of_a_missing_program(tmp_path: Path) -> None:
    desired(tmp_path, "/nowhere/mpirun")
    started, answer = supervise(tmp_path)
    assert started.wait(PATIENCE) == 1
    assert answer == {"error": "/nowhere/mpirun: No such file or directory"}


def test_a_job_whose_supervisor_was_killed_is_ended(tmp_path: Path) -> None:
    requested = desired(tmp_path, "sleep", "600")
    started, _answer = supervise(tmp_path)
    started.kill()
    started.wait()
    assert list(supervisor.processes_of(requested["id"], ""))
    supervisor.main(["end", str(tmp_path)])
    end = supervisor.read(str(tmp_path), supervisor.END)
    assert end and (end["stopped"], end["exit_code"], end["left"]) == (True, None, {})
    assert list(supervisor.processes_of(requested["id"], "")) == []


def test_spares_a_process_that_reuses_a_dead_pid(begin: Begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead = begin(SLEEP, **{supervisor.MARK: "one"})
    launcher = supervisor.identity(dead.pid)
    dead.kill()
    dead.wait()
    found = iter([[(dead.pid, launcher["start"])]])
    monkeypatch.setattr(supervisor, "processes_of", lambda _run_id, _job: next(found, []))
    desired(tmp_path, "sleep", "600")
    (tmp_path / supervisor.END).touch()
    supervisor.write(str(tmp_path), supervisor.RUN, {"id": "one", "launcher": launcher, "supervisor": launcher})
    with reused(dead.pid) as other:
        assert supervisor.sweep("one", "", PATIENCE) == {"left": []}
        assert not supervisor.is_alive(launcher)
        supervisor.end(str(tmp_path))
        assert other.poll() is None


def test_a_stop_that_python_ignored_is_not_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler ran while an object was finalized: its exception is gone, and only the request is left."""
    launcher = subprocess.Popen(["sleep", "600"], start_new_session=True)
    monkeypatch.setattr(supervisor, "_REQUESTED", [True])
    monkeypatch.setattr(supervisor.signal, "signal", lambda *_arguments: None)
    assert supervisor._wait(str(tmp_path), {"id": "x", "job": None}, launcher) is True
    assert launcher.returncode is not None
