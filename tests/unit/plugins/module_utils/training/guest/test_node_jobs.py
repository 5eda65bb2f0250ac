"""The jobs of a node, with real processes of this machine."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.guest import node_jobs
from plugins.module_utils.training.running import busy


@pytest.fixture
def rank(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process with the marks of a job in the run directory tmp_path."""
    marks = {"DML_RECORDS": str(tmp_path), "DML_RUN_ID": "7", "DML_RUN_BY": "anna@desk"}
    program = "import time; print(flush=True); time.sleep(600)"
    started = subprocess.Popen([sys.executable, "-c", program], env={**os.environ, **marks}, stdout=subprocess.PIPE)
    assert started.stdout and started.stdout.readline()
    yield started
    started.kill()
    started.communicate()


def jobs_in(folder: Path) -> list[dict[str, Any]]:
    return [job for job in node_jobs.node_jobs() if job["run_dir"] == str(folder)]


def test_a_marked_process_is_a_job_while_alive(rank: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (job,) = jobs_in(tmp_path)
    assert job["processes"] == [{"pid": rank.pid, "start": supervisor.start_ticks(rank.pid)}]
    assert (job["run_id"], job["asked_by"], job["step"], job["launched_here"]) == ("7", "anna@desk", None, False)
    assert abs(job["started"] - time.time()) < 600
    assert job["title"].startswith(f"{tmp_path.name} of anna@desk since ")
    rank.kill()
    os.waitid(os.P_PID, rank.pid, os.WEXITED | os.WNOWAIT)
    assert jobs_in(tmp_path) == [], "a zombie trains no more"


@pytest.mark.usefixtures("rank")
def test_another_users_process_cannot_claim_who_requested_runs(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root starts processes of other users")
    marks = {"DML_RECORDS": str(tmp_path), "DML_RUN_ID": "7", "DML_RUN_BY": "boss@desk", "PATH": os.environ["PATH"]}
    with subprocess.Popen(["sleep", "600"], env=marks, user="nobody") as fake:
        try:
            found = {job["user"]: job for job in jobs_in(tmp_path)}
        finally:
            fake.kill()

    assert found["root"]["asked_by"] == "anna@desk" and len(found["root"]["processes"]) == 1
    assert found["nobody"]["asked_by"] == "" and "of nobody since" in found["nobody"]["title"]
    (run,) = busy.running({"w1": {"jobs": list(found.values())}})
    assert (run["user"], run["asked_by"]) == ("root", "anna@desk")


@pytest.mark.usefixtures("rank")
def test_reads_step_and_launcher_from_the_run_directory(tmp_path: Path) -> None:
    (tmp_path / "rank0.jsonl").write_text("x" * 9999 + '\n{"step": 3}\n')
    (tmp_path / "rank1.jsonl").write_text('{"step": 5}\n')
    (tmp_path / "rank9.jsonl.old").write_text('{"step": 99}\n')
    (tmp_path / "run.json").touch()
    (job,) = jobs_in(tmp_path)
    assert (job["step"], job["launched_here"]) == (5, True)


@pytest.mark.usefixtures("rank")
@pytest.mark.parametrize(("host", "is_here"), [(socket.gethostname(), True), ("w9", False)])
def test_a_shared_folder_of_runs_has_one_launcher(tmp_path: Path, host: str, is_here: bool) -> None:
    (tmp_path / "run.json").write_text(json.dumps({"launcher": {**supervisor.identity(os.getpid()), "host": host}}))
    (job,) = jobs_in(tmp_path)
    assert job["launched_here"] is is_here


@pytest.mark.usefixtures("rank")
def test_does_not_read_links_pipes_and_folders(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text('{"step": 9}\n')
    (tmp_path / "rank0.jsonl").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "rank1.jsonl")
    (tmp_path / "rank2.jsonl").mkdir()
    (tmp_path / "run.json").symlink_to(tmp_path / "secret")
    (job,) = jobs_in(tmp_path)
    assert (job["step"], job["launched_here"]) == (None, False)


@pytest.mark.usefixtures("rank")
def test_a_reused_pid_is_not_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    starts = iter(range(10**9))
    monkeypatch.setattr(supervisor, "start_ticks", lambda _pid: next(starts))
    assert jobs_in(tmp_path) == []


@pytest.mark.parametrize("name", ["an\todd\nname", "x" * 200, "\u00fc", "#{[("])
def test_a_job_with_an_odd_name_is_reported(tmp_path: Path, name: str) -> None:
    marks = {"DML_RECORDS": str(tmp_path / name)}
    with subprocess.Popen(["sleep", "600"], env={**os.environ, **marks}) as started:
        try:
            while not jobs_in(tmp_path / name):
                assert started.poll() is None
        finally:
            started.kill()


def test_an_unknown_user_is_reported_by_uid() -> None:
    assert node_jobs._user_name(2**31 - 7) == str(2**31 - 7)
    assert node_jobs._user_name(0) == "root"
