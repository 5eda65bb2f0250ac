"""training_job and training_info with real mpirun: start, stop, and ways to die that leave no process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.output.log import parse
from tests.integration import training
from tests.integration.ansible import Ansible
from tests.integration.killing import wait_for
from tests.integration.training import DEADLINE, Nodes

LONG = (10_000, 0.05)


def supervisor_of(job: dict[str, Any]) -> int:
    return int(Path(f"/proc/{job['launcher']['pid']}/stat").read_text().rsplit(")", 1)[1].split()[1])


def has_pending_termination(pid: int) -> bool:
    """Return whether a signal to end waits for a process that stands still."""
    (pending,) = re.findall(r"^ShdPnd:\s+(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(pending, 16) & 1 << (signal.SIGTERM - 1))


def state_of(pid: int) -> str:
    """Return the letter of the state of a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    """Four nodes; whatever a test leaves behind is ended."""
    four = Nodes(Ansible({}, tmp_path), tmp_path)
    yield four
    job = four.look()
    if job["state"] == "running":
        four.stop()
    for pid in four.processes(job) if "run_id" in job else []:
        os.kill(pid, signal.SIGKILL)


def test_finished_job_is_not_started_again(nodes: Nodes) -> None:
    assert nodes.check(5, 0.01).changed
    assert nodes.look() == {"state": "absent"}
    started = nodes.start(5, 0.01, transport="tcp", stack="lab-cpu")
    assert started.changed, started.out
    job = nodes.ended()
    assert (job["state"], job["exit_code"], job["left"], job["transport"]) == ("finished", 0, {}, "tcp")
    assert nodes.processes(job) == []
    assert not nodes.start(5, 0.01).changed
    refused = nodes.start(6, 0.01)
    assert refused.rc != 0
    assert "it contains a job with another command; give each job a separate run directory" in refused.msg


def test_ranks_do_not_receive_the_vcenter_account(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VMWARE_PASSWORD", "of vCenter")
    monkeypatch.setenv("NOT_VMWARE", "a word that they have")
    assert nodes.start(*LONG).changed
    job = nodes.training()
    held = [Path(f"/proc/{pid}/environ").read_bytes() for pid in [supervisor_of(job), *nodes.processes(job)]]
    assert all(b"a word that they have" in one for one in held[:2])
    assert not any(b"VMWARE_PASSWORD" in one for one in held)


def test_running_job_reports_its_identity(nodes: Nodes) -> None:
    started = nodes.start(*LONG)
    assert started.rc == 0, started.msg
    job = nodes.training()
    records = [nodes.steps(rank)[0] for rank in range(4)]
    assert [record["host"] for record in records] == job["nodes_of_ranks"] == [nodes.here, "n2", "n3", "n4"]
    assert {record["job"] for record in records} == {job["job"]}
    assert [record["size"] for record in records] == [4] * 4
    launcher = job["launcher"]
    stat = Path(f"/proc/{launcher['pid']}/stat").read_text().rsplit(")", 1)[1].split()
    assert int(stat[19]) == launcher["start"]
    assert int(stat[3]) == launcher["pid"], "mpirun does not lead its own session"
    assert job["script_sha256"]
    assert not nodes.start(*LONG).changed


def test_stop_ends_only_this_job(nodes: Nodes, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Nodes(Ansible({}, tmp_path), tmp_path / "other")
    nodes.start(*LONG)
    other.start(*LONG)
    try:
        job, others = nodes.training(), other.training()
        assert nodes.stop().changed
        assert nodes.look()["state"] == "stopped"
        alive = nodes.processes(others)
        assert not {record["pid"] for record in (nodes.steps(rank)[0] for rank in range(4))} & set(alive)
        assert {other.steps(rank)[0]["pid"] for rank in range(4)} <= set(alive)
        before = len(other.steps(3))
        other.until(lambda _job: len(other.steps(3)) > before)
        assert not nodes.stop().changed
        assert job["job"] != others["job"]
    finally:
        other.stop()
    assert nodes.processes(job) == []


def test_names_a_killed_rank(nodes: Nodes) -> None:
    nodes.start(*LONG)
    nodes.training()
    victim = nodes.steps(2)[0]["pid"]
    os.kill(victim, signal.SIGKILL)
    job = nodes.ended()
    assert (job["state"], job["rank"], job["node"]) == ("died", 2, "n3")
    assert job["why"] == f"rank 2 on n3 (process {victim}) was ended by signal 9 (Killed)"
    assert nodes.processes(job) == []


def test_names_a_lost_node(nodes: Nodes) -> None:
    nodes.start(*LONG)
    nodes.training()
    (nodes.folder / "down").write_text("n3\n")
    rank = nodes.steps(2)[0]["pid"]
    daemon = int(Path(f"/proc/{rank}/stat").read_text().rsplit(")", 1)[1].split()[1])
    os.kill(daemon, signal.SIGKILL)
    os.kill(rank, signal.SIGKILL)
    job = nodes.ended()
    assert (job["state"], job["node"]) == ("died", "n3")
    assert job["why"] == "the launcher lost the node n3"
    assert job["left"] == {"n3": "ssh: connect to host n3 port 22: No route to host"}
    assert nodes.processes(job) == []


def test_ends_leftover_processes_of_ranks_on_every_node(nodes: Nodes) -> None:
    nodes.start(3, 0.01, "leave")
    job = nodes.ended()
    assert (job["state"], job["left"]) == ("finished", {})
    assert nodes.processes(job) == []


@pytest.fixture
def small(nodes: Nodes) -> Iterator[Path]:
    """A disk with little room, on which the run directory lies."""
    path = nodes.folder / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192k", "tmpfs", str(path)], check=True)
    nodes.run_dir = path / "run"
    yield path
    subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with pytest.raises(OSError, match="No space left on device"):
        path.write_bytes(bytes(1 << 20))


def test_reports_a_full_disk_after_space_was_freed(nodes: Nodes, small: Path) -> None:
    nodes.start(100_000, 0)
    job = nodes.ended()
    assert job["state"] == "died"
    full = f"; no space left on {nodes.here}:{nodes.run_dir}, whose file system {small} has 0."
    assert full in job["why"] and job["why"].endswith(" MB"), job["why"]
    assert nodes.processes(job) == []
    for rank in range(4):
        (nodes.run_dir / f"rank{rank}.jsonl").unlink()
    assert nodes.look()["why"] == job["why"]


def test_job_starts_only_once_the_disk_has_room(nodes: Nodes, small: Path) -> None:
    fill(small / "much")
    failed = nodes.start(3, 0.01)
    assert failed.rc != 0
    assert re.search(r"could not .*: No space left on device", failed.msg), failed.msg
    assert str(nodes.run_dir) in failed.msg
    assert "None" not in failed.msg
    assert nodes.look() == {"state": "absent"}
    with (small / "much").open("r+b") as much:
        much.truncate(185 << 10)
    failed = nodes.start(3, 0.01)
    assert re.search(r"could not .*: No space left on device", failed.msg), failed.msg
    assert nodes.look() == {"state": "absent"}
    (small / "much").unlink()
    assert nodes.start(3, 0.01).changed
    assert nodes.ended()["state"] == "finished"


def test_job_outlives_its_controller_and_is_found_again(nodes: Nodes) -> None:
    program = (
        "from ansible.module_utils.testing import patch_module_args\nfrom plugins.modules import training_job\n"
        f"with patch_module_args({nodes.options(*LONG)!r}): training_job.main()"
    )
    controller = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        cwd=training.FILES.parents[2],
    )
    nodes.until(lambda job: job["state"] == "running")
    try:
        os.killpg(controller.pid, signal.SIGKILL)
    except ProcessLookupError:
        assert controller.poll() == 0
    controller.wait()
    job = nodes.training()
    assert not nodes.start(*LONG).changed
    assert nodes.look()["launcher"] == job["launcher"]
    nodes.stop()
    for rank in range(4):
        log = parse((nodes.run_dir / f"rank{rank}.jsonl").read_text())
        assert log.problems == []
        assert [record.step for record in log.steps] == list(range(1, len(log.steps) + 1))


def test_stops_a_job_whose_supervisor_dies_while_stopping(nodes: Nodes) -> None:
    nodes.start(*LONG)
    job = nodes.training()
    supervisor = supervisor_of(job)
    os.kill(supervisor, signal.SIGSTOP)
    # A process that writes to the disk halts later, and would receive the signal to end before that.
    wait_for(lambda: state_of(supervisor) == "T", DEADLINE)
    with ThreadPoolExecutor() as pool:
        stopping = pool.submit(nodes.stop)
        try:
            wait_for(lambda: stopping.done() or has_pending_termination(supervisor), DEADLINE)
        finally:
            os.kill(supervisor, signal.SIGKILL)
        stopped = stopping.result()
    assert (stopped.rc, stopped.changed) == (0, True)
    assert nodes.look()["state"] == "stopped"
    assert nodes.processes(job) == []


def test_stops_a_job_whose_supervisor_was_killed(nodes: Nodes) -> None:
    nodes.start(*LONG)
    job = nodes.training()
    os.kill(supervisor_of(job), signal.SIGKILL)
    assert nodes.look()["state"] == "running"
    assert nodes.stop().changed
    assert nodes.look()["state"] == "stopped"
    assert nodes.processes(job) == []
