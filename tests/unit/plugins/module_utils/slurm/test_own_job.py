"""A run in Slurm is submitted once, waits in the queue, and ends as Slurm and its ranks say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.errors import CollectionError, Refused
from plugins.module_utils.guests import supervisor
from plugins.module_utils.slurm import job_states
from plugins.module_utils.slurm.own_job import OwnSlurmJob
from plugins.module_utils.training.programs.follow import TrainingSite
from plugins.module_utils.training.programs.restart import RestartableRun
from plugins.module_utils.training.programs.stop import stop
from plugins.module_utils.training.programs.train import train
from plugins.module_utils.training.runs import run_source
from plugins.module_utils.training.runs.restartable import SeenCheckpoint
from plugins.module_utils.training.runs.training_run import Prepared, TrainingFailed
from tests.fakes.deaths import MOST_CONTROLLERS, Killed, histories
from tests.fakes.training_world import SAVED, TrainingWorld

WAITING, RUNNING, COMPLETED = "PENDING|Resources|2026-11-29T03:00:00", "RUNNING|None|N/A", "COMPLETED|None|N/A"
WAIT = "--states=PENDING"
ZERO_BYTES = "Zero Bytes were transmitted or received"
NODES = "NodeName=w0 Arch=x\nNodeName=w1 Arch=x\nNodeName=w2 Arch=x\n"


class SlurmWorld(TrainingWorld):
    """Two nodes of a Slurm that holds a job for some questions, runs it, and then reports ``last``."""

    def __init__(self, deaths: Iterable[int] = (), **options: Any) -> None:
        super().__init__(deaths, backend="slurm", **options)
        self.submitted, self.cancelled = list[list[str]](), list[str]()
        self.waits_for, self.last, self.refusal, self.is_down = 2, COMPLETED, "", False
        self.refused_on = set[str]()
        self.nodes_text, self.queue = NODES, "7|dml\n1|dml\n"

    @property
    def site(self) -> TrainingSite:
        return TrainingSite(self, partial(OwnSlurmJob, self), "/role/files")

    def _training_job(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        assert options["queued"] is True
        answer = super()._training_job(host, options)
        return {**answer, "job": {"run_id": "r1", **self._read(str(options["run_dir"]))}}

    def _job(self, options: Mapping[str, Any]) -> dict[str, Any]:
        there = self._read(str(options["run_dir"]))
        return {"job": there if there["state"] == "absent" else {"run_id": "r1", "output": "its output", **there}}

    def _read(self, run_dir: str) -> dict[str, Any]:
        if run_dir not in self.jobs:
            return {"state": "absent"}
        title = f"--job-name=dml-{run_dir.rpartition('/')[2]}"
        has_run = self.waits_for < 0 and not self.cancelled and any(title in each for each in self.submitted)
        return self.jobs[run_dir].read() if has_run else {"state": "waiting"}

    def _command(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        words = list(options["argv"])
        if words[0] not in ("squeue", "sbatch", "scancel", "scontrol"):
            return super()._command(host, options)
        self.log.append(f"{words[0]} on {host}")
        if self.is_down or host in self.refused_on:
            error = ZERO_BYTES if host in self.refused_on else "Unable to contact slurm controller (connect failure)"
            return {"failed": True, "msg": f"slurm_load_jobs error: {error}"}
        return dict(getattr(self, f"_{words[0]}")(words, options))

    def _scontrol(self, _words: list[str], _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"stdout": self.nodes_text}

    def _sbatch(self, words: list[str], options: Mapping[str, Any]) -> dict[str, Any]:
        if self.refusal:
            return {"failed": True, "msg": self.refusal}
        if self.submitted:
            self.last, self.waits_for = COMPLETED, 2
        self.submitted.append([*words, str(options["stdin"])])
        return {"stdout": f"{len(self.submitted)};cluster"}

    def _scancel(self, words: list[str], _options: Mapping[str, Any]) -> dict[str, Any]:
        self.cancelled.append(words[1])
        self.last, self.waits_for = "CANCELLED|None|N/A", -9
        return {}

    def _squeue(self, words: list[str], _options: Mapping[str, Any]) -> dict[str, Any]:
        if WAIT in words:
            return {"stdout": self.queue}
        title = next(word for word in words if word.startswith("--name=")).replace("--", "--job-")
        if not any(title in each for each in self.submitted):
            return {"stdout": ""}
        self.waits_for -= 1
        state = WAITING if self.waits_for >= 0 else RUNNING if self.waits_for >= -2 else self.last
        return {"stdout": f"1|{title.partition('=')[2].partition(',')[0]}|{state}|dml|dml:r1\n"}


def once(world: SlurmWorld) -> dict[str, Any]:
    return train(Program(MemoryJournal(), world), world.site, world.run())


def to_its_end(world: SlurmWorld) -> dict[str, Any]:
    for _controller in range(MOST_CONTROLLERS):
        world.is_dead = False
        world.watches.clear()
        try:
            return once(world)
        except Killed:
            continue
    raise AssertionError("the run never ended")


def test_each_death_of_the_controller_leads_to_one_submission() -> None:
    for world, result in histories(SlurmWorld, to_its_end, pairs=40):
        assert (result["run"], len(world.submitted), world.cancelled) == ("one", 1, [])
        assert world.kept("one")["end"]["state"] == "finished"
        assert "/results/one/outputs" in world.outputs_at


def test_waiting_run_shows_its_place_and_is_not_silent() -> None:
    world = SlurmWorld(silence=1, command=[], framework="pytorch_ddp", folder="")
    world.waits_for = 40

    once(world)

    line = "Slurm job 1 in partition dml: place 2 of 2, Resources, expected start 2026-11-29T03:00:00"
    assert sum(line in text for text in world.lines) == 1 and "submitted as Slurm job 1" in " ".join(world.lines)
    assert "-e training_name=one -e training_backend=slurm" in " ".join(world.lines)


def test_submission_has_the_options_of_the_user_before_ours() -> None:
    given = {"partition": "gpu", "account": "ml", "qos": "high", "time": "1:00", "options": ["--requeue", "--mem=0"]}
    world = SlurmWorld(slurm={**given, "login": "login1"}, nccl="2.20", ranks_per_node=2)

    job = OwnSlurmJob(world, world.run())
    words = job.words("dml:r1")

    assert words[:8] == [
        *(
            "sbatch",
            "--parsable",
            "--partition=gpu",
            "--account=ml",
            "--qos=high",
            "--time=1:00",
            "--requeue",
            "--mem=0",
        )
    ]
    assert words.index("--no-requeue") > words.index("--requeue")
    assert {"--gres=gpu:2", "--exclusive", "--nodelist=w1,w2", "--ntasks-per-node=2", "--export=NONE"} <= set(words)
    job.begin(Prepared(python="python3", port=1))
    assert "sbatch on login1" in world.log and "sbatch on w1" not in world.log
    assert "plm_rsh_agent" not in str(world.submitted) and "--exclusive" not in _words_of(world, share_nodes=True)


def _words_of(world: SlurmWorld, **options: Any) -> list[str]:
    return OwnSlurmJob(world, replace(world.run(), o={**world.o, **options})).words("")


@pytest.mark.parametrize(
    ("allocated", "is_started", "words"),
    [
        ("w1 w2", False, ""),
        ("w2 w1", False, "Slurm allocated the nodes w2 w1 , and the run is prepared for w1 w2"),
        ("w1", False, "Slurm allocated the nodes w1 , and the run is prepared for w1 w2"),
        ("w1 w2", True, "was started before, by another job: this one ends"),
    ],
)
def test_script_starts_a_run_once_on_its_nodes(tmp_path: Path, allocated: str, is_started: bool, words: str) -> None:
    world = SlurmWorld(runs=str(tmp_path / "r x"), remote_python="true")
    Path(world.run().dir).mkdir(parents=True)
    if is_started:
        Path(world.run().dir, supervisor.END).touch()
    scontrol = tmp_path / "scontrol"
    scontrol.write_text(f"#!/bin/sh\nprintf '%s\\n' {allocated}\n")
    scontrol.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "w[1-2]", "SLURM_EXPORT_ENV": "NONE"}

    script = OwnSlurmJob(world, world.run()).script()
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, env=environment, check=False)

    assert done.returncode == (78 if words else 0), done.stderr
    assert words in done.stderr and bool(done.stderr) == bool(words)


def test_shows_a_refusal_of_slurm_then_submits_again() -> None:
    world = SlurmWorld()
    world.refusal = "sbatch: error: invalid partition specified: gpux"
    with pytest.raises(TrainingFailed, match=r"did not accept the training run one .sbatch: error: invalid partition"):
        once(world)
    world.refusal = ""
    once(world)
    assert len(world.submitted) == 1


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("NodeName=w1 A=x\n", "Slurm has no node w2; leave these nodes out of training_nodes"),
        ("NodeName=w2 A=x\nNodeName=w1 A=x\n", "in the order w2, w1; set training_nodes to w2, w1"),
        (NODES, ""),
    ],
)
def test_nodes_that_slurm_does_not_have_so_are_refused(nodes: str, words: str) -> None:
    world = SlurmWorld()
    world.nodes_text = nodes
    job = OwnSlurmJob(world, world.run())
    if not words:
        job.require_usable()
        return
    with pytest.raises(Refused, match=words):
        job.require_usable()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"image": "train:1"}, "training_image is train:1"),
        ({"slurm": {"options": ["--mem=0", "--array=1-3"]}}, "have --array=1-3, .*; set training_sweep instead"),
    ],
)
def test_refuses_what_a_run_in_slurm_cannot_have(options: dict[str, Any], words: str) -> None:
    world = SlurmWorld(**options)
    with pytest.raises(Refused, match=words):
        OwnSlurmJob(world, world.run()).require_usable()


def test_node_whose_clock_munge_refuses_is_not_submitted() -> None:
    """The answer of squeue 22.05.8 on a node whose clock is 10 minutes ahead."""
    world = SlurmWorld()
    world.refused_on = {"w2"}

    with pytest.raises(Refused) as refused:
        OwnSlurmJob(world, world.run()).require_usable()

    assert str(refused.value) == (
        "the training run one: could not submit it to Slurm: Slurm takes no message of w2, because the clock of the "
        "node is minutes ahead or behind, or its munge key is another one; correct the clock, as with timedatectl, "
        "compare /etc/munge/munge.key, and restart munge"
    )
    world.refused_on, world.refusal = set(), f"sbatch: error: Batch job submission failed: {ZERO_BYTES}"
    with pytest.raises(TrainingFailed, match=r"did not accept .* received; the clock of the node is minutes ahead"):
        once(world)


def test_slurm_that_is_down_is_named_with_its_answer() -> None:
    world = SlurmWorld()
    world.is_down = True

    with pytest.raises(CollectionError, match=r"^slurm_load_jobs error: Unable to contact .*; .*: start slurmctld on"):
        OwnSlurmJob(world, world.run()).require_usable()


def test_stop_without_a_folder_spares_other_users_jobs() -> None:
    world = SlurmWorld()
    world.submitted, world.waits_for = [["--job-name=dml-one"]], 99
    assert world.site.job_of(world.run()).look()["job"]["state"] == "absent"

    world.site.job_of(world.run()).stop()

    assert world.cancelled == []


def test_lost_node_in_slurm_is_tried_again() -> None:
    world = SlurmWorld(attempts=2)
    world.last = "NODE_FAIL|None|N/A"
    world.ends = [{"state": "running"}, {"state": "finished", "ended": 9.0}]

    assert once(world)["run"] == "one-2"

    assert len(world.submitted) == 2 and "(NODE_FAIL)" in world.kept("one")["end"]["cause"]


def test_slurm_that_does_not_answer_ends_no_run() -> None:
    world = SlurmWorld()
    job = OwnSlurmJob(world, world.run())
    job.begin(Prepared(python="python3", port=1))
    world.is_down = True

    waiting = job.look()["job"]
    world.waits_for = -1

    assert waiting["state"] == "waiting" and "Unable to contact slurm controller" in waiting["why"]
    assert job.look()["job"]["state"] == "running"


def test_run_has_its_place_for_a_vmotion_test() -> None:
    world = SlurmWorld()
    job = OwnSlurmJob(world, world.run())
    assert job.place() == {}

    job.begin(Prepared(python="python3", port=1))

    assert job.place() == {"job": "1", "login": "w1", "names": {"w1": "w1", "w2": "w2"}, "nodes": ["w1", "w2"]}


def test_stop_cancels_the_job_and_keeps_its_end() -> None:
    world = SlurmWorld()
    world.waits_for = 99
    site, run = world.site, world.run()
    site.job_of(run).begin(Prepared(python="python3", port=1))
    world.here_files["/results/one/manifest.json"] = known = {"name": "one", "launcher": "w1", "rank_0_on": "w1"}

    stopped = stop(Program(MemoryJournal(), world), site, replace(run, known=known))

    assert (stopped["changed"], world.cancelled) == (True, ["1"])
    assert world.kept("one")["end"]["state"] == "stopped"
    assert site.job_of(run).look()["job"]["state"] == "stopped"
    assert not world.node_files, "a job that waits has no end that others could follow"
    assert stop(Program(MemoryJournal(), world), site, replace(run, known=known))["changed"] is False


def test_stop_also_cancels_a_job_that_was_submitted_late(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SlurmWorld()
    job = world.site.job_of(world.run())
    job.begin(Prepared(python="python3", port=1))
    states = {"1": "RUNNING", "2": "PENDING"}

    def squeue(words: list[str], _options: Any) -> dict[str, Any]:
        rows = [f"{number}|dml-one|{state}|None|N/A|dml|dml:r1\n" for number, state in states.items()]
        return {"stdout": "" if WAIT in words else "".join(rows)}

    monkeypatch.setattr(world, "_squeue", squeue)
    monkeypatch.setattr(world, "_scancel", lambda words, _o: states.update({words[1]: "CANCELLED"}) or {})
    assert isinstance(job, OwnSlurmJob)
    assert job.place()["job"] == "1", "the job that runs is that of the run"

    job.stop()

    assert states == {"1": "CANCELLED", "2": "CANCELLED"}


def test_stop_of_a_running_job_names_its_user() -> None:
    world = SlurmWorld()
    world.ends = [{"state": "running"}]
    run = world.run()
    world.site.job_of(run).begin(Prepared(python="python3", port=1))
    world.waits_for, world.last = -1, RUNNING

    world.site.job_of(run).stop()

    assert json.loads(world.node_files["w1", "/runs/one/stop-request.json"]) == {"by": "me@here"}


def test_window_cancels_the_job_and_submits_its_next_attempt() -> None:
    world = SlurmWorld(follow=False)
    world.ends = [{"state": "running"}]
    once(world)
    world.waits_for, world.last = -1, RUNNING
    known = world.kept("one")
    run = run_source.taken_up(replace(world.run(), o=run_source.with_followed(world.o, known)), known)
    job = RestartableRun(world.site, run, "the window of me@here")
    assert job.refusal() == ""

    stopped = job.stop()
    world.cancelled.clear()
    started = job.start_again(cast("SeenCheckpoint", {**SAVED, "since": 0.0}))

    assert stopped["state"] == "stopped" and world.kept("one")["end"]["state"] == "stopped"
    assert started["run"] == "one-2" and [each[0] for each in world.submitted] == ["sbatch", "sbatch"]
    assert "--job-name=dml-one-2" in world.submitted[1]


def test_window_keeps_a_job_that_slurm_ends_slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    world = SlurmWorld(follow=False)
    world.ends = [{"state": "running"}]
    once(world)
    world.waits_for, world.last = -1, RUNNING
    known = world.kept("one")
    run = run_source.taken_up(replace(world.run(), o=run_source.with_followed(world.o, known)), known)
    job = RestartableRun(world.site, run, "the maintenance window of me@here")
    monkeypatch.setattr(world, "_scancel", lambda _words, _o: setattr(world, "last", "COMPLETING|None|N/A") or {})

    with pytest.raises(TrainingFailed, match="was cancelled, and is still COMPLETING after 180 s"):
        job.stop()

    assert (job.state()["state"], job.stopped_by_owner()) == ("stopped", "")
    world.last = "CANCELLED|None|N/A"
    assert job.stop()["state"] == "stopped"


def test_cancelled_job_keeps_the_requester_of_its_end() -> None:
    cancelled = job_states.jobs_of("7|dml-one|CANCELLED|None|N/A|dml|dml:r1")[0]

    requested = job_states.combined({"state": "stopped", "why": "stopped by the window of me@here"}, cancelled, "")
    cancelled_by_hand = job_states.combined({"state": "died", "why": "signal 15"}, cancelled, "")

    assert requested["why"] == "stopped by the window of me@here"
    assert (cancelled_by_hand["state"], cancelled_by_hand["why"]) == ("stopped", "stopped: Slurm job 7 was cancelled")
