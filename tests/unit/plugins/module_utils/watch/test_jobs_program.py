"""The jobs of a node, with real processes of this machine."""

from __future__ import annotations

import inspect
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

from plugins.module_utils.core import replies
from plugins.module_utils.guests import supervisor
from plugins.module_utils.training.results import manifest
from plugins.module_utils.training.running import busy
from plugins.module_utils.watch import jobs_program


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
    return [job for job in jobs_program.node_jobs() if job["run_dir"] == str(folder)]


def test_a_marked_process_is_a_job_while_alive(rank: subprocess.Popen[bytes], tmp_path: Path) -> None:
    (job,) = jobs_in(tmp_path)
    assert job["processes"] == [{"pid": rank.pid, "start": supervisor.start_ticks(rank.pid)}]
    assert (job["run_id"], job["asked_by"], job["step"], job["launched_here"]) == ("7", "anna@desk", None, False)
    assert abs(job["started"] - time.time()) < 600
    assert busy.title(job).startswith(f"{tmp_path.name} of anna@desk since ")
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
    assert found["nobody"]["asked_by"] == "" and "of nobody since" in busy.title(found["nobody"])
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
    before = os.listdir("/proc/self/fd")
    (job,) = jobs_in(tmp_path)
    assert (job["step"], job["launched_here"]) == (None, False)
    assert os.listdir("/proc/self/fd") == before


@pytest.mark.usefixtures("rank")
def test_a_reused_pid_is_not_a_job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    starts = iter(range(10**9))
    monkeypatch.setattr(jobs_program, "start_ticks", lambda _pid: next(starts))
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
    assert jobs_program._user_name(2**31 - 7) == str(2**31 - 7)
    assert jobs_program._user_name(0) == "root"


def process(pid: int, run_dir: str = "/runs/one", **more: Any) -> jobs_program.JobProcess:
    given = {"ticks": 10 * pid, "began": 1000.0 + pid, "user": "train", "run_id": "id", "requested_by": "", **more}
    return jobs_program.JobProcess(pid=pid, run_dir=run_dir, **given)


@pytest.mark.parametrize(
    ("environ", "marks"),
    [
        (b"", None),
        (b"DML_RECORDS=\0DML_RUN_ID=1", None),
        (b"XDML_RECORDS=/runs/one\0DML_RUN_ID=1", None),
        (b"A=1\0DML_RECORDS=/runs/one\0DML_RUN_ID=1\0DML_RUN_BY=anna@desk", ("/runs/one", "1", "anna@desk")),
        (b"DML_RECORDS=/runs/\xff=\n\0", ("/runs/\ufffd=\n", "", "")),
    ],
)
def test_the_environment_of_a_process_names_its_job(environ: bytes, marks: Any) -> None:
    assert jobs_program.marks(environ) == marks


def test_groups_processes_of_a_run_directory_into_jobs() -> None:
    processes = [process(7), process(5), process(6, "/runs/two/"), process(8, "/runs/one", run_id="other")]
    found = jobs_program.jobs(processes)
    assert [(each["run_dir"], [one["pid"] for one in each["processes"]]) for each in found] == [
        ("/runs/one", [5, 7]),
        ("/runs/one", [8]),
        ("/runs/two/", [6]),
    ]
    assert found[0]["started"] == 1000.0 + 5
    assert found[0]["processes"] == [{"pid": 5, "start": 50}, {"pid": 7, "start": 70}]


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (b"", None),
        (b'{"step": 7}', None),
        (b'{"step": 6}\n{"step": 7}\n{"st', 7),
        (b'{"step": 6}\n{"step": true}\nnull\n[]\n{"step": "9"}\n\xff\n', 6),
        (b"[" * 100000 + b"\n", None),
    ],
)
def test_the_last_whole_record_has_the_step(text: bytes, step: int | None) -> None:
    assert jobs_program.last_step(text) == step


def test_program_prints_its_form_with_standard_library_only(tmp_path: Path) -> None:
    path = tmp_path / manifest.FILE
    path.write_text('{"name": "one"}')
    command = [sys.executable, "-I", "-", str(path), "n1.lab"]

    ran = subprocess.run(command, input=inspect.getsource(jobs_program), capture_output=True, text=True, check=True)

    report = json.loads(ran.stdout)
    assert (report["manifest"], report["node"]) == ('{"name": "one"}', "n1.lab")
    assert replies.read(report, replies.OF_INFO)["jobs"] is not None
