"""However a training on nodes ends, one sentence reports it in time, and no process is left on any node."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.lab.benchmark import NAMES, RUNS, SERVED, Cluster, await_

pytestmark = pytest.mark.slow
# From the harm to the end of the job, as the launcher noted it; a silence is noticed after it, and asked for once more.
SECONDS, SILENCE, SILENT_SECONDS = 30.0, 20, 90.0
# A node that comes back hears from its kernel that its peer is gone.
BACK_SECONDS = 180.0
PROGRAM = Path(__file__).parents[1] / "train.py"
TRAIN = ["/usr/bin/python3", "-u", f"{SERVED}/{PROGRAM.name}", "--seconds", "0.1"]


@pytest.fixture
def nodes(cluster: Cluster) -> Iterator[Cluster]:
    """The nodes; what a test has left is ended."""
    (cluster.served / PROGRAM.name).write_text(PROGRAM.read_text())
    yield cluster
    for name in NAMES:
        cluster.harm(name, "plug")
        cluster.inside(
            name, "sudo pkill -9 -x 'mpirun|orted'; sudo pkill -9 -f '[t]rain.py'; sudo rm -rf /dev/shm/*; true"
        )


def ends(nodes: Cluster, name: str, running: subprocess.Popen[str], harmed: float) -> str:
    """Return the message of a run that failed and left nothing, its job within the deadline of the harm."""
    code, result = nodes.end(running)
    assert code != 0, result
    assert nodes.ended(name) - harmed < SECONDS
    leaves_nothing(nodes, name)
    return result


def leaves_nothing(nodes: Cluster, name: str, seconds: float = SECONDS) -> None:
    """The end of a job is reported when none of its processes is left; who watched it finds that out by itself."""
    assert nodes.left() == []
    await_(lambda: nodes.watchers(name) == [], f"no process watches {name} any more", seconds)


def test_a_rank_that_is_killed(nodes: Cluster) -> None:
    running = nodes.begin("killed", training_command=TRAIN)
    nodes.trained("killed", running)
    victim = nodes.steps("killed", 1)[0]["pid"]
    harmed = time.time()
    nodes.inside("n2", f"sudo kill -9 {victim}")
    result = ends(nodes, "killed", running, harmed)
    why = f"rank 1 on n2 (process {victim}) was ended by signal 9 (Killed)"
    assert f"The training job {RUNS}/killed on n1 died: {why}." in result


def test_a_node_that_is_gone(nodes: Cluster) -> None:
    running = nodes.begin("gone", training_command=TRAIN, training_silence=SILENCE)
    nodes.trained("gone", running)
    harmed = time.time()
    nodes.harm("n2", "unplug")
    code, result = nodes.end(running)
    assert code != 0
    assert SILENCE <= nodes.ended("gone") - harmed < SILENT_SECONDS
    assert f"The training job {RUNS}/gone on n1 was stopped: it made no step for" in result, result
    assert "-e training_attempts=3 retries such a run" in result and "Node n2 did not answer: " in result, result
    assert "n2: " in result.partition("make sure that no process is left")[2]
    nodes.harm("n2", "plug")
    await_(lambda: nodes.left() == [], "what the lost node ran is gone too", BACK_SECONDS)
    leaves_nothing(nodes, "gone", BACK_SECONDS)


def test_a_disk_that_is_full(nodes: Cluster) -> None:
    running = nodes.begin("full", training_command=TRAIN, training_runs="/dev/shm/runs")
    nodes.trained("full", running)
    harmed = time.time()
    nodes.inside("n2", "dd if=/dev/zero of=/dev/shm/much bs=4k 2> /dev/null; true")
    result = ends(nodes, "full", running, harmed)
    assert "rank 1 on n2 found the disk full: OSError: [Errno 28] No space left on device" in result, result


def test_a_script_with_a_syntax_error(nodes: Cluster) -> None:
    (nodes.served / "wrong.py").write_text("def train(:\n")
    running = nodes.begin("wrong", training_command=["/usr/bin/python3", f"{SERVED}/wrong.py"])
    await_(lambda: nodes.started("wrong") > 0, "the job begins")
    result = ends(nodes, "wrong", running, nodes.started("wrong"))
    assert f"The training job {RUNS}/wrong on n1 died: rank" in result
    assert "ended: SyntaxError: invalid syntax (wrong.py, line 1)." in result


def test_launcher_that_returns_has_lost_no_step(nodes: Cluster) -> None:
    command = [*TRAIN, "--steps", "600"]
    options = {"training_command": command, "training_steps": 600, "training_ranks_per_node": 2}
    options["training_stun_seconds"] = 10
    running = nodes.begin("lost", **options)
    nodes.trained("lost", running)
    nodes.harm("n1", "unplug")
    code, report = nodes.end(running)
    assert code != 0
    assert f"The launcher n1 of the training job {RUNS}/lost did not report the state of the job" in report, report
    assert "with training_name=lost, which continues the job if it still runs" in report
    await_(lambda: nodes.watchers("lost") == [], "no process watches it any more", SECONDS)
    nodes.harm("n1", "plug")
    _result, result = nodes.train("lost", **options)
    assert (result["steps"], result["gpus"], result["job"]["state"]) == (600, 4, "finished")
    for rank in range(4):
        steps = nodes.steps("lost", rank)
        assert [one["step"] for one in steps] == list(range(1, 601))
        assert {one["host"] for one in steps} == {NAMES[rank // 2]}
        assert len({(one["pid"], one["start"]) for one in steps}) == 1
    leaves_nothing(nodes, "lost", BACK_SECONDS)


def test_a_launcher_that_cannot_be_reached_at_all(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Not by a connection that an earlier run has left open.
    monkeypatch.setitem(nodes.ansible.environment, "ANSIBLE_SSH_CONTROL_PATH_DIR", str(tmp_path))
    nodes.harm("n1", "unplug")
    code, result = nodes.end(nodes.begin("never", training_command=TRAIN))
    assert code != 0
    assert "n1]: UNREACHABLE!" in result or "n1 | UNREACHABLE" in result
    nodes.harm("n1", "plug")
    leaves_nothing(nodes, "never")
