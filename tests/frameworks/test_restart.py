"""A window by restart around scripts of Trainer and Lightning for torchrun: it stops them at a checkpoint of theirs."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.simulator import Simulator
from plugins.module_utils.trials.steps.stopping import FRESH_SECONDS
from tests.integration.killing import wait_for
from tests.integration.releases import NEWEST
from tests.integration.test_vmotion_test import LONG, WORKERS
from tests.integration.test_window_restart import FULL, HOSTS, NAME, ONCE, FullCluster, full_cluster

from .test_frameworks import FILES, FRAMEWORKS, SCRIPTS

COMMAND = "torchrun --nproc-per-node 1 train.py {resume}"
# The last file of the first checkpoint of each script.
SAVED = {"trainer_saves": "checkpoint-10/trainer_state.json", "lightning_saves": "step=10.ckpt"}
# Replacements in a script.
ONCE_ONLY = ("step % 10 == 0", "step == 10")
WITHOUT = {
    "trainer_saves": ("jit_checkpoint=True", "jit_checkpoint=False"),
    "lightning_saves": (", save_on_exception=True", ""),
}
# At each step, because both frameworks set their own handlers.
DEAF = ("time.sleep(0.2)", "__import__('signal').signal(15, 1)\n        time.sleep(0.2)")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[FullCluster]:
    """Two ranks of a run on a cluster without a spare host."""
    (tmp_path / "datacentre.yml").write_text(FULL)
    options = (f"--release={NEWEST}", "--hosts-out=2")
    vcenter = Simulator(tmp_path / "datacentre.yml", *options, folder=tmp_path / "vcenter")
    try:
        with full_cluster(vcenter, tmp_path) as made:
            python, nodes = str(FRAMEWORKS / "pytorch" / "bin" / "python"), ",".join(WORKERS[:2])
            made.training |= {"training_python": python, "training_nodes": nodes, "training_prove": False}
            yield made
    finally:
        vcenter.stop()


def train(full: FullCluster, script: str, *changes: tuple[str, str]) -> None:
    """Start a script with changes; if it saves only once, wait until that counts as the past."""
    text = (SCRIPTS / f"{script}.py").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    full.train(program=text, saved=SAVED[script], command=COMMAND)
    saved = full.outputs / SAVED[script]
    if ONCE_ONLY in changes:
        wait_for(lambda: time.time() - saved.stat().st_mtime > FRESH_SECONDS, LONG)


@pytest.mark.parametrize("sent", ["", "TERM"])
@pytest.mark.parametrize("script", sorted(SAVED))
def test_script_for_torchrun_resumes_at_its_checkpoint(full: FullCluster, script: str, sent: str) -> None:
    # Without a signal, only its regular checkpoints count: it saves none when it is stopped.
    train(full, script, ONCE_ONLY if sent else WITHOUT[script])

    done = full.change(window_by="restart", window_checkpoint_signal=sent, vmotion_test_steps=30)

    assert done.rc == 0 and f"{NAME}-2: resumed" in " ".join(done.out.split()), done.out
    assert full.booted() == dict.fromkeys(HOSTS, 1) and full.powered() == ONCE
    stop = full.kept("restart.json")["stop"]
    checkpoint = stop["checkpoint"]
    assert stop["stopped"]["state"] == "stopped" and checkpoint["optimizer"] and checkpoint["step"] > 10, stop
    assert bool(sent) or checkpoint["step"] % 10 == 0, "it saved as always"


IGNORED = "no new checkpoint was complete after the signal TERM within 10 s, and its checkpoint {} (step 10) is"
ENDED = "it ended after the signal TERM without a new checkpoint"


@pytest.mark.parametrize(
    ("script", "change", "reported", "attempts"),
    [
        ("trainer_saves", WITHOUT["trainer_saves"], ENDED, 2),
        ("lightning_saves", WITHOUT["lightning_saves"], ENDED, 2),
        ("trainer_saves", DEAF, IGNORED.format("checkpoint-10"), 1),
        ("lightning_saves", DEAF, IGNORED.format("step=10.ckpt"), 1),
    ],
)
def test_script_that_saves_nothing_changes_no_host(
    full: FullCluster, script: str, change: tuple[str, str], reported: str, attempts: int
) -> None:
    train(full, script, ONCE_ONLY, change)

    seconds = 10 if change is DEAF else 120
    done = full.change(window_by="restart", window_checkpoint_signal="TERM", window_checkpoint_wait=seconds)

    assert done.rc != 0 and reported in " ".join(done.out.split()), done.out
    assert full.booted() == {} and full.powered() == dict.fromkeys(ONCE, 0) and len(full.attempts()) == attempts, (
        done.out
    )


def drop_optimizer(full: FullCluster) -> None:
    (full.outputs / "checkpoint-10" / "optimizer.pt").unlink()


def change_data(full: FullCluster) -> None:
    Path(full.training["training_data"]).write_text("2\n")


@pytest.mark.parametrize(
    ("spoil", "reported"),
    [
        (drop_optimizer, "its checkpoint checkpoint-10 has no state of the optimizer"),
        (change_data, "rows.csv: could not copy it to the nodes: its checksum is"),
    ],
)
def test_run_that_would_be_another_is_not_stopped(
    full: FullCluster, spoil: Callable[[FullCluster], None], reported: str
) -> None:
    data = full.folder / "rows.csv"
    data.write_text("1\n")
    full.training["training_data"] = str(data)
    train(full, "trainer_saves", ONCE_ONLY)
    spoil(full)

    done = full.change(window_by="restart", window_checkpoint_wait=5)

    assert done.rc != 0 and reported in " ".join(done.out.split()), done.out
    assert full.booted() == {} and full.powered() == dict.fromkeys(ONCE, 0) and full.attempts() == [NAME], done.out


TORN = {
    # Trainer leaves the last file in a folder that it could not complete.
    "trainer_saves": [f"checkpoint-4000/{name}" for name in ("trainer_state.json", "checkpoint-is-incomplete.txt")],
    "lightning_saves": ["step=4000.ckpt"],
}


@pytest.mark.parametrize("script", sorted(TORN))
def test_torn_checkpoint_stops_no_job(full: FullCluster, script: str) -> None:
    train(full, script, ONCE_ONLY)
    for name in TORN[script]:
        (full.outputs / name).parent.mkdir(exist_ok=True)
        (full.outputs / name).write_bytes((full.outputs / SAVED[script]).read_bytes()[:1000])

    done = full.change(window_by="restart", window_checkpoint_wait=5)

    shown, torn = " ".join(done.out.split()), TORN[script][0].partition("/")[0]
    assert done.rc != 0 and f"no new checkpoint was complete within 5 s; {torn} is not complete:" in shown, done.out
    assert "(step 10) is" in shown and full.attempts() == [NAME] and full.booted() == {}, done.out


AGENT = """
cd {folder}
export DML_RECORDS={folder}/records DML_STEPS_BY=auto PYTHONPATH={files}
setsid {python} -m torch.distributed.run --nproc-per-node 2 {files}/dml_torchrun.py train.py "$@" >>{folder}/log 2>&1 &
echo $! >{folder}/agent
"""


def steps(records: Path) -> list[list[int]]:
    """Return the steps of each process of a rank."""
    found: dict[int, list[int]] = {}
    for record in map(json.loads, records.read_text().splitlines()):
        if "mark" not in record:
            found.setdefault(record["pid"], []).append(record["step"])
    return list(found.values())


def test_signal_reaches_ranks_and_not_their_agent(full: FullCluster) -> None:
    """Another tool starts torchrun itself, which would end its run at a signal."""
    folder = full.folder
    (folder / "train.py").write_text((SCRIPTS / "trainer_saves.py").read_text().replace(*ONCE_ONLY))
    (folder / "start").write_text(AGENT.format(folder=folder, files=FILES, python=full.training["training_python"]))
    subprocess.run(["/bin/sh", str(folder / "start")], check=True)
    saved = folder / "outputs" / SAVED["trainer_saves"]
    wait_for(lambda: saved.exists() and time.time() - saved.stat().st_mtime > FRESH_SECONDS, LONG)
    job = {
        "run_dir": str(folder / "records"),
        "launcher": WORKERS[0],
        "nodes": [{"name": WORKERS[0], "reach": [str(full.nodes.shell), WORKERS[0]]}],
        "stop": ["/bin/sh", "-c", f"kill $(cat {folder}/agent)"],
        "start": ["/bin/sh", str(folder / "start"), "{resume}"],
        "checkpoints": str(folder / "outputs"),
    }

    done = full.change(window_by="restart", window_checkpoint_signal="TERM", maintenance_job=job)

    # The ranks have separate sessions: only a signal that the agent forwards ends them.
    subprocess.run(job["stop"], check=True)
    signals = (folder / "log").read_text().count("SignalException")
    assert done.rc == 0 and full.booted() == dict.fromkeys(HOSTS, 1), done.out
    step = full.kept("restart.json")["stop"]["checkpoint"]["step"]
    first, second = steps(folder / "records" / "rank1.jsonl")
    # Trainer saves before the optimizer of a step in progress, which it still finishes.
    assert step > 10 and first[-1] in (step, step + 1) and second[0] == step + 1, (step, first[-1], second[0])
    assert signals == 0, "the agent ended because its ranks did"
