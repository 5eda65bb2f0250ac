"""The plan of a training job from its run directory, and its start and stop with a small program instead of mpirun."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils.errors import Failed, Refused, TimedOut
from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.ending.job_state import SIGNAL_REQUEST, STOP_REQUEST
from plugins.module_utils.training.guest import job
from plugins.module_utils.training.guest.job import TrainingJob, job_state
from plugins.module_utils.training.launch import mpirun
from tests.unit.plugins.module_utils.guests.test_supervisor import wait_for

PATIENCE = 60
HOSTS = [{"name": "localhost", "slots": 2}]
REQUEST = {"id": "one", "command": ["train"], "hosts": HOSTS, "nodes_of_ranks": ["n1", "n2"], "transport": "tcp"}
SWEPT = {"nodes": ["no.host"], "here": [], "remote_python": "python3", "remote_shell": "false"}
END = {"ended": 7.0, "stopped": False, "exit_code": 0, "left": {}, "swept": True}
LOST = "[1,1]<stderr>:RuntimeError: out of memory\n"


def params(folder: Path, **changes: Any) -> dict[str, Any]:
    return {
        "run_dir": str(folder / "run"),
        "state": "started",
        "command": ["train"],
        "hosts": HOSTS,
        "ranks": None,
        "environment": {"SEED": 7},
        "secret_environment": {},
        "transport": "tcp",
        "stack": None,
        "script": None,
        "mpirun": "mpirun",
        "mpirun_arguments": [],
        "remote_shell": "false",
        "daemon_shell": None,
        "queued": False,
        "remote_python": sys.executable,
        "start_timeout": PATIENCE,
        "stop_timeout": PATIENCE,
        "by": "",
        **changes,
    }


def program(folder: Path, text: str) -> str:
    """Write a program that replaces mpirun, and return its path."""
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def gone() -> dict[str, Any]:
    return {**supervisor.identity(os.getpid()), "start": 1}


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder, and end its job if a test left one."""
    yield tmp_path
    if (tmp_path / "run" / supervisor.RUN).exists():
        TrainingJob(params(tmp_path, state="stopped"))._stop()


def written(folder: Path, **files: Any) -> Path:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    names = {"wish": supervisor.DESIRED, "run": supervisor.RUN, "end": supervisor.END}
    for name, content in files.items():
        if name == "output":
            (run / supervisor.OUTPUT).write_text(content)
        else:
            supervisor.write(str(run), names[name], content)
    return run


def run_of(launcher: dict[str, Any], by: dict[str, Any]) -> dict[str, Any]:
    return {"id": "one", "launcher": launcher, "supervisor": by, "job": "42", "started": 1.0}


def test_an_empty_folder_holds_no_job(tmp_path: Path) -> None:
    assert job_state(str(tmp_path / "run")) == {"state": "absent"}
    assert TrainingJob(params(tmp_path)).read() == {"state": "absent"}


@pytest.mark.parametrize(
    ("launcher_lives", "supervisor_lives", "end", "state"),
    [
        (True, True, None, "running"),
        (True, False, None, "running"),
        (False, True, None, "running"),
        (False, False, None, "died"),
        # Its processes on other nodes are still being ended.
        (False, True, {**END, "swept": False}, "running"),
        (False, False, {**END, "swept": False}, "finished"),
        (False, False, END, "finished"),
        (False, False, {**END, "exit_code": 1}, "died"),
        (False, False, {**END, "exit_code": None, "stopped": True}, "stopped"),
    ],
)
def test_the_state_follows_from_files_and_processes(
    tmp_path: Path, launcher_lives: bool, supervisor_lives: bool, end: dict[str, Any] | None, state: str
) -> None:
    alive, dead = supervisor.identity(os.getpid()), gone()
    files: dict[str, Any] = {"run": run_of(alive if launcher_lives else dead, alive if supervisor_lives else dead)}
    run = written(tmp_path, wish=REQUEST, **files, **({"end": end} if end else {}))
    state_of_job = job_state(str(run))
    assert (state_of_job["state"], state_of_job["run_id"], state_of_job["transport"]) == (state, "one", "tcp")
    assert ("ended" in state_of_job) == (state != "running")
    assert ("why" in state_of_job) == (state == "died")


def test_a_claimed_job_that_never_ran_has_died(tmp_path: Path) -> None:
    assert job_state(str(written(tmp_path, wish=REQUEST)))["state"] == "died"


def test_a_dead_job_names_its_rank_and_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"run": run_of(gone(), gone()), "end": {**END, "exit_code": 1}, "output": "x" * job.LOG_BYTES + "\n" + LOST}
    run = written(tmp_path, wish=REQUEST, **files)
    state_of_job = job_state(str(run))
    assert (state_of_job["rank"], state_of_job["node"], state_of_job["exit_code"]) == (1, "n2", 1)
    assert state_of_job["why"] == "rank 1 on n2 ended: RuntimeError: out of memory"
    full = f"; no space left on {socket.gethostname()}:{run}"
    monkeypatch.setattr(job.os, "statvfs", lambda _path: SimpleNamespace(f_bavail=1, f_blocks=3000, f_frsize=4096))
    assert job_state(str(run))["why"].endswith(f"{full}, whose file system / has 12.3 MB")
    monkeypatch.undo()
    supervisor.write(str(run), supervisor.END, {**END, "exit_code": 1, "full": True})
    assert f"{full}, whose file system " in job_state(str(run))["why"], "the disk was full when the job ended"


@pytest.mark.parametrize(
    ("desired", "before", "after"),
    [
        ("started", "absent", "running"),
        ("started", "running", "running"),
        ("started", "finished", "finished"),
        ("stopped", "absent", "absent"),
        ("stopped", "running", "stopped"),
        ("stopped", "finished", "finished"),
        ("stopped", "died", "died"),
        ("stopped", "stopped", "stopped"),
    ],
)
def test_plans_the_action_for_each_job_state(tmp_path: Path, desired: str, before: str, after: str) -> None:
    same = params(tmp_path, state=desired)
    if before != "absent":
        written(tmp_path, wish={**REQUEST, **{key: same[key] for key in job.REQUESTED}})
    plan = TrainingJob(same).plan({"state": before})
    assert (plan.before, plan.after) == ({"state": before}, {"state": after})
    assert bool(plan.changes) == (before != after)


@pytest.mark.parametrize(
    ("before", "changes", "words"),
    [
        (
            {"state": "died", "why": "rank 1 ended"},
            {},
            "start a job: its job has died: rank 1 ended; give each job a separate run",
        ),
        ({"state": "stopped"}, {}, "its job has stopped; give each job a separate run directory"),
        ({"state": "running"}, {"command": ["other"], "ranks": 1}, "it contains a job with another command, ranks"),
        ({"state": "absent"}, {"command": []}, "command is empty: specify the program and its arguments"),
        ({"state": "absent"}, {"hosts": HOSTS * 2}, "hosts names 'localhost' twice"),
        ({"state": "absent"}, {"ranks": 3}, "ranks is 3, and the hosts have 2 slots: specify from 1 to 2"),
    ],
)
def test_a_job_that_cannot_be_started_is_refused(
    tmp_path: Path, before: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    if before["state"] != "absent":
        written(tmp_path, wish={**REQUEST, **{key: params(tmp_path)[key] for key in job.REQUESTED}})
    with pytest.raises(Refused) as refused:
        TrainingJob(params(tmp_path, **changes)).plan(before)
    assert words in str(refused.value)
    assert str(tmp_path / "run") in str(refused.value)


def test_starts_reads_and_stops_a_job(left: Path) -> None:
    mpirun = program(left, 'echo "seed $SEED, records $DML_RECORDS"; exec sleep 600')
    subject = TrainingJob(params(left, mpirun=mpirun))
    subject.apply(subject.plan(subject.read()))
    assert subject.plan(subject.read()).changes == ()
    output = left / "run" / supervisor.OUTPUT
    wait_for(lambda: output.read_text() == f"seed 7, records {left / 'run'}\n")
    state_of_job = subject.read()
    assert (state_of_job["state"], state_of_job["nodes_of_ranks"]) == ("running", ["localhost"] * 2)
    assert state_of_job["mpirun_command"][0] == mpirun
    # Another job cannot use the folder, also if its plan is older.
    with pytest.raises(Refused, match="another job has just been started in it"):
        subject._start()
    stopping = TrainingJob(params(left, state="stopped", by="bert@lap"))
    stopping.apply(stopping.plan(stopping.read()))
    stopped = stopping.read()
    assert (stopped["state"], stopped["why"]) == ("stopped", "stopped by bert@lap")
    assert list(supervisor.processes_of(state_of_job["run_id"], "")) == []


def test_a_failed_start_leaves_the_folder_free(tmp_path: Path) -> None:
    subject = TrainingJob(params(tmp_path, mpirun="/nowhere/mpirun"))
    with pytest.raises(Failed, match="could not start /nowhere/mpirun: /nowhere/mpirun: No such file"):
        subject._start()
    assert subject.read() == {"state": "absent"}


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    subject = TrainingJob(params(tmp_path, run_dir=str(tmp_path / "file" / "run")))
    with pytest.raises(Failed, match=r"create the run directory: .*file/run: Not a directory"):
        subject._start()


def test_a_missing_script_leaves_the_folder_free(tmp_path: Path) -> None:
    subject = TrainingJob(params(tmp_path, script="train.py"))
    with pytest.raises(Refused, match=r"could not read the script train\.py: No such file or directory"):
        subject._start()
    assert subject.read() == {"state": "absent"}


def test_queued_job_waits_until_a_batch_script_runs_it(left: Path) -> None:
    options = params(left, queued=True, mpirun=program(left, 'echo "$@" > "$DML_RECORDS/words"; exit 3'))
    waiting = TrainingJob(options)

    waiting.apply(waiting.plan(waiting.read()))

    assert waiting.read()["state"] == "waiting" and not waiting.plan(waiting.read()).due
    with pytest.raises(Refused, match="it waits in the queue of a batch system"):
        TrainingJob({**options, "state": "stopped"}).plan(waiting.read())
    batch = [sys.executable, left / "run" / "supervisor.py", "run", left / "run"]
    assert subprocess.run(batch, check=False).returncode == 3
    assert (waiting.read()["state"], waiting.read()["exit_code"]) == ("died", 3)
    words = (left / "run" / "words").read_text()
    assert "--host" not in words and "plm_rsh_agent" not in words and "-np 2 --map-by slot" in words


def test_queued_job_names_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, wish={**REQUEST, "queued": True})
    assert "full" not in job.job_state(str(tmp_path / "run"))

    monkeypatch.setattr(job.os, "statvfs", lambda _path: SimpleNamespace(f_bavail=1, f_blocks=3000, f_frsize=4096))

    assert "; no space left on" in job.job_state(str(tmp_path / "run"))["full"]


def test_reports_a_job_that_outlives_its_stop_timeout(tmp_path: Path) -> None:
    alive = {**supervisor.identity(os.getpid())}
    written(tmp_path, wish=REQUEST, run=run_of(alive, {**alive, "boot_id": "another"}))
    (tmp_path / "run" / job.PROGRAM).write_text("# It ends nothing.\n")
    with pytest.raises(TimedOut, match="stop the job: it still runs after 0 s"):
        TrainingJob(params(tmp_path, state="stopped", stop_timeout=0))._stop()


def test_nodes_where_processes_may_be_left_are_named(tmp_path: Path) -> None:
    end, desired = {**END, "stopped": True, "left": {"no.host": "-"}}, {**REQUEST, **SWEPT}
    run = written(tmp_path, wish=desired, run=run_of(gone(), gone()), end=end)
    (run / job.PROGRAM).write_text(Path(supervisor.__file__).read_text())
    with pytest.raises(Failed, match=r"no\.host: .*; check these nodes manually"):
        TrainingJob(params(tmp_path, state="stopped"))._stop()


@pytest.mark.parametrize(
    ("fault", "is_of_machine"), [("no route to host", True), ("processes 7 could not be ended", False)]
)
def test_lost_silent_node_counts_as_machine_failure(fault: str, is_of_machine: bool, tmp_path: Path) -> None:
    end = {**END, "exit_code": 1, "left": {"n2": fault}}
    run = written(tmp_path, wish={**REQUEST, "nodes_of_ranks": ["n1", "n2"]}, run=run_of(gone(), gone()), end=end)
    reset = "RuntimeError: [gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.2]:4711"
    (run / supervisor.OUTPUT).write_text(f"[1,0]<stderr>:{reset}\n")

    assert job.job_state(str(run))["machine"] is is_of_machine


def test_ends_leftovers_of_a_rebooted_launcher(tmp_path: Path) -> None:
    rebooted = {**supervisor.identity(os.getpid()), "boot_id": "another"}
    run = written(tmp_path, wish={**REQUEST, "nodes": ["localhost"], "here": []}, run=run_of(rebooted, rebooted))
    (run / supervisor.END).write_bytes(b" " * supervisor.END_BYTES)
    (run / job.PROGRAM).write_text(Path(supervisor.__file__).read_text())
    subject = TrainingJob(params(tmp_path, state="stopped"))
    with subprocess.Popen(["sleep", "600"], env={supervisor.MARK: "one", "PATH": os.environ["PATH"]}) as rank:
        wait_for(lambda: list(supervisor.processes_of("one", "")))
        plan = subject.plan(subject.read())
        assert (plan.before, plan.after) == ({"state": "died"}, {"state": "stopped"})
        subject.apply(plan)
        assert rank.wait() < 0
    assert (subject.read()["state"], subject.plan(subject.read()).changes) == ("stopped", ())


@pytest.mark.parametrize(("code", "is_stopped", "state"), [(1, False, "died"), (None, True, "stopped")])
def test_second_stop_ends_ranks_of_a_returned_node(
    tmp_path: Path, code: int | None, is_stopped: bool, state: str
) -> None:
    end = {**END, "exit_code": code, "stopped": is_stopped, "left": {"localhost": "No route to host"}}
    files = {"wish": {**REQUEST, "nodes": ["localhost"], "here": []}, "run": run_of(gone(), gone()), "end": end}
    run = written(tmp_path, **files)
    (run / job.PROGRAM).write_text(Path(supervisor.__file__).read_text())
    subject = TrainingJob(params(tmp_path, state="stopped"))
    with subprocess.Popen(["sleep", "600"], env={supervisor.MARK: "one", "PATH": os.environ["PATH"]}) as rank:
        wait_for(lambda: list(supervisor.processes_of("one", "")))
        try:
            plan = subject.plan(subject.read())
            assert plan.due
            subject.apply(plan)
            assert rank.wait(PATIENCE) < 0
        finally:
            rank.kill()
    after = subject.read()
    assert (after["state"], after["exit_code"], after["ended"], after["left"]) == (state, code, 7.0, {})
    assert not subject.plan(after).due


def test_identifies_the_script_by_checksum_and_commit(tmp_path: Path) -> None:
    assert job._script_facts(None) == {"script_sha256": None, "script_git": None}
    script = tmp_path / "train.py"
    script.write_text("pass\n")
    facts = job._script_facts(str(script))
    assert facts == {"script_sha256": hashlib.sha256(b"pass\n").hexdigest(), "script_git": None}


def test_passes_secret_values_to_ranks_but_hides_them(tmp_path: Path) -> None:
    secret = "hush-hush-token"
    mpirun = program(tmp_path, 'echo "$TOKEN $SEED" >&2; echo "[1,0]<stderr>:ValueError: $TOKEN is wrong" >&2; exit 3')
    given = params(tmp_path, mpirun=mpirun, secret_environment={"TOKEN": secret, "SEED": 8})
    one = TrainingJob(given)
    one.apply(one.plan(one.read()))
    state_of_job = wait_for(lambda: (current := job_state(given["run_dir"]))["state"] != "running" and current)
    assert f"{secret} 8" in (tmp_path / "run" / "output.log").read_text(), "the secret value has precedence"
    assert secret not in str(state_of_job) and "ValueError: HIDDEN is wrong" in str(state_of_job)
    assert [(tmp_path / "run" / name).stat().st_mode & 0o777 for name in ("wish.json", "output.log")] == [0o600, 0o600]
    with pytest.raises(Refused, match="it contains a job with another secret_environment") as refused:
        TrainingJob({**given, "secret_environment": {"TOKEN": "another-token"}}).plan(state_of_job)
    assert secret not in str(refused.value)


def test_daemons_may_start_with_their_own_shell(tmp_path: Path) -> None:
    def agent(**shells: Any) -> str:
        command = mpirun.command_of(TrainingJob(params(tmp_path, **shells))._job(), "MARK", False)
        return command[command.index("plm_rsh_agent") + 1]

    assert agent() == "false"
    assert agent(daemon_shell="/opt/dml/bin/dml-shell") == "/opt/dml/bin/dml-shell"


@pytest.mark.parametrize(
    ("end", "before", "state", "why"),
    [
        # torchrun ends with 1 although all ranks have saved and ended.
        ({**END, "exit_code": 1}, True, "stopped", "stopped by the window of me; it ended with exit code 1"),
        (END, True, "stopped", "stopped by the window of me"),
        ({**END, "exit_code": 1, "stopped": True}, True, "stopped", "stopped by the window of me"),
        (None, True, "stopped", "stopped by the window of me"),
        ({**END, "exit_code": 1}, False, "died", "mpirun ended with exit code 1"),
        (END, False, "finished", None),
    ],
)
def test_job_that_ends_after_a_request_was_stopped(
    tmp_path: Path, end: dict[str, Any] | None, before: bool, state: str, why: str | None
) -> None:
    run = written(tmp_path, wish=REQUEST, run=run_of(gone(), gone()), **({"end": end} if end else {}))
    supervisor.write(str(run), STOP_REQUEST, {"by": "the window of me"})
    os.utime(run / STOP_REQUEST, (END["ended"] - 1 if before else END["ended"] + 1,) * 2)

    read = job_state(str(run))

    assert (read["state"], read.get("why")) == (state, why)


@pytest.mark.parametrize(("later", "state"), [(9.0, "stopped"), (100.0, "stopped"), (131.0, "finished")])
def test_request_with_a_signal_counts_for_its_seconds(tmp_path: Path, later: float, state: str) -> None:
    """The user may pause the window after the signal, or its controller may be killed: the job trains on."""
    run = written(tmp_path, wish=REQUEST, run=run_of(gone(), gone()), end=END)
    supervisor.write(str(run), SIGNAL_REQUEST, {"by": "the window of me", "seconds": 10.0})
    os.utime(run / SIGNAL_REQUEST, (END["ended"] - later,) * 2)

    assert job_state(str(run))["state"] == state
    supervisor.write(str(run), STOP_REQUEST, {"by": "the window of me"})
    assert job_state(str(run))["state"] == state, "ranks that have saved may end before the window stops them"


def test_rest_of_a_job_that_ended_after_a_request_is_stopped(tmp_path: Path) -> None:
    """The launcher was rebooted, or the supervisor was killed, before processes on other nodes were ended."""
    run = written(tmp_path, wish=REQUEST, run=run_of(gone(), gone()))
    supervisor.write(str(run), STOP_REQUEST, {"by": "the window of me"})
    stopped = TrainingJob(params(tmp_path, state="stopped"))

    plan = stopped.plan(stopped.read())

    assert plan.due, "the other nodes are not swept yet"
