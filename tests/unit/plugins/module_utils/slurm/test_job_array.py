"""The runs of a sweep in Slurm are one job array: submitted once, started in order, stopped together or one by one."""

from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.durable.program import MemoryJournal, Program
from plugins.module_utils.slurm import job_states
from plugins.module_utils.slurm.own_job import OwnSlurmJob, cancel_runs, submit_array
from plugins.module_utils.training.programs.follow import TrainingSite
from plugins.module_utils.training.programs.stop import stop, stop_sweep
from plugins.module_utils.training.programs.vary import vary
from plugins.module_utils.training.results import manifest
from plugins.module_utils.training.runs import run_files
from plugins.module_utils.training.runs.restartable import WINDOW
from plugins.module_utils.training.runs.training_run import Prepared, TrainingFailed, TrainingRun
from plugins.module_utils.training.runs.variations import Variation, variations
from tests.fakes.deaths import MOST_CONTROLLERS, Killed, histories
from tests.unit.plugins.module_utils.slurm.test_own_job import SlurmWorld

# squeue --array of Slurm 22.05.8 with FORMAT: an array with --array=1,3,5%1, of which task 3 was cancelled.
SQUEUE = """21_1|dml-one|RUNNING|None|2026-11-29T14:55:58|dml|dml:aaaaaaaa,bbbbbbbb,cccccccc
21_3|dml-one|CANCELLED|None|2026-11-29T14:56:12|dml|dml:aaaaaaaa,bbbbbbbb,cccccccc
21_5|dml-one|PENDING|JobArrayTaskLimit|N/A|dml|dml:aaaaaaaa,bbbbbbbb,cccccccc
"""
MADE = ["s.1", "s.2", "s.3"]


class ArrayWorld(SlurmWorld):
    """Two nodes whose Slurm runs one task of each array after the other."""

    def __init__(self, deaths: Iterable[int] = (), **options: Any) -> None:
        super().__init__(deaths, **options)
        self.arrays, self.scancels, self.is_held = list[tuple[str, str, list[str]]](), list[list[str]](), False

    @property
    def site(self) -> TrainingSite:
        arrays = (partial(submit_array, self), partial(cancel_runs, self))
        return TrainingSite(self, partial(OwnSlurmJob, self), "/role/files", "", *arrays)

    def sweep(self, size: int = 2, values: int = 3) -> dict[str, Any]:
        command = ["python", "train.py", "{lr}"]
        groups = variations("s", {"lr": list(range(values))}, command, list(self.o["nodes"]), size)
        return vary(Program(MemoryJournal(), self), self.site, groups, self.run_of, self.known_of)

    def run_of(self, each: Variation) -> TrainingRun:
        nodes = {name: node for name, node in self.run().nodes.items() if name in each.nodes}
        o = {**self.o, "command": each.command, "nodes": each.nodes, "launcher": each.nodes[0], "array": True}
        return replace(self.run(), o=o, nodes=nodes, name=each.name, first=each.name)

    def known_of(self, name: str) -> dict[str, Any]:
        return dict(self.here_files.get(f"/results/{name}/{manifest.FILE}") or {})

    def member(self, number: int) -> TrainingRun:
        """A run of the sweep as another command finds it."""
        return replace(self.run(known=self.known_of(f"s.{number}")), name=f"s.{number}")

    def _read(self, run_dir: str) -> dict[str, Any]:
        if run_dir not in self.jobs:
            return {"state": "absent"}
        run_id = f"{self.starts[run_dir]}{zlib.crc32(run_dir.encode()):08x}-and-more"
        rows = [row for row in self._rows() if row.run == run_dir.rpartition("/")[2] and row.has(run_id)]
        has_run = rows and (rows[-1].state in ("RUNNING", "COMPLETED") or self.jobs[run_dir].looks)
        return {"run_id": run_id, **(self.jobs[run_dir].read() if has_run else {"state": "waiting"})}

    def _rows(self) -> list[job_states.SlurmJob]:
        rows, cancelled = [], {number for words in self.scancels for number in words}
        for number, (name, comment, tasks) in enumerate(self.arrays, 11):
            is_free = not self.is_held
            for task in tasks:
                key, job = f"{number}_{task}", self.jobs.get(f"/runs/{name[len('dml-') :]}.{task}")
                state, reason = "COMPLETED", "None"
                if key in cancelled:
                    state = "CANCELLED"
                elif not is_free:
                    state, reason = "PENDING", "JobArrayTaskLimit"
                elif job and job.is_running:
                    state, is_free = "RUNNING", False
                rows.append(job_states.SlurmJob(key, name, state, reason, "N/A", "dml", comment))
        return rows

    def _squeue(self, words: list[str], _options: Mapping[str, Any]) -> dict[str, Any]:
        assert "--array" in words
        names = next((word.partition("=")[2].split(",") for word in words if word.startswith("--name=")), [])
        rows = [row for row in self._rows() if row.name in names]
        keys = ("number", "name", "state", "reason", "start", "partition", "comment")
        return {"stdout": "".join("|".join(getattr(row, key) for key in keys) + "\n" for row in rows)}

    def _sbatch(self, words: list[str], options: Mapping[str, Any]) -> dict[str, Any]:
        given = dict(word.lstrip("-").partition("=")[::2] for word in words)
        tasks = given["array"].removesuffix("%1").split(",")
        if not self.refusal:
            self.submitted.append([*words, str(options["stdin"])])
            self.arrays.append((given["job-name"], given["comment"], tasks))
        return {"failed": True, "msg": self.refusal} if self.refusal else {"stdout": str(10 + len(self.arrays))}

    def _scancel(self, words: list[str], _options: Mapping[str, Any]) -> dict[str, Any]:
        self.scancels.append(words[1:])
        for row in self._rows():
            path = f"/runs/{row.run}"
            if row.number in words and path in self.jobs and self.jobs[path].looks:
                self.jobs[path].stop()
        return {}

    @property
    def tasks(self) -> list[str]:
        return [f"{name[len('dml-') :]}.{task}" for name, _comment, tasks in self.arrays for task in tasks]


def test_sweep_is_one_array_whose_tasks_follow_each_other() -> None:
    world = ArrayWorld()

    result = world.sweep()

    (words,) = world.submitted
    assert {"--job-name=dml-s", "--array=1,2,3%1", "--output=/runs/s.%a/slurm.log", "--chdir=/runs"} <= set(words)
    assert [row["state"] for row in result["rows"]] == ["finished"] * 3 and world.watches == set()
    assert "submitted as Slurm job array 11_1,2,3" in " ".join(world.lines)
    assert "-e training_name=RUN -e training_backend=slurm" in " ".join(world.lines)
    world.sweep()
    assert world.tasks == MADE, "the same command submits nothing again"


def test_groups_of_nodes_have_an_array_each() -> None:
    world = ArrayWorld()

    world.sweep(size=1)

    assert [tasks for _name, _comment, tasks in world.arrays] == [["1", "3"], ["2"]]
    assert "--nodelist=w1" in world.submitted[0] and "--nodelist=w2" in world.submitted[1]


def test_each_death_of_the_controller_submits_each_run_once() -> None:
    def to_its_end(world: ArrayWorld) -> dict[str, Any]:
        for _controller in range(MOST_CONTROLLERS):
            world.is_dead = False
            world.watches.clear()
            try:
                return world.sweep()
            except Killed:
                continue
        raise AssertionError("the sweep never ended")

    for world, result in histories(ArrayWorld, to_its_end, pairs=40):
        assert (sorted(world.tasks), world.scancels) == (MADE, [])
        assert [row["state"] for row in result["rows"]] == ["finished"] * 3


def test_array_of_many_runs_is_split_for_its_comment() -> None:
    world = ArrayWorld()

    world.sweep(values=101)

    assert [len(tasks) for _name, _comment, tasks in world.arrays] == [100, 1]
    assert all(len(comment) <= 1024 for _name, comment, _tasks in world.arrays)


def test_refused_array_starts_no_run_and_is_submitted_later() -> None:
    world = ArrayWorld()
    world.refusal = "sbatch: error: Batch job submission failed: Invalid job array specification"
    with pytest.raises(TrainingFailed, match=r"3 of 3 runs did not finish\. Slurm did not accept .*job array spec"):
        world.sweep()
    world.refusal = ""

    world.sweep()

    assert world.tasks == MADE


def test_unprepared_run_is_not_in_the_array() -> None:
    world = ArrayWorld()
    world.full = {"w2"}

    with pytest.raises(TrainingFailed, match=r"1 of 3 runs did not finish\. w2: could not unpack the code"):
        world.sweep(size=1)

    assert world.tasks == ["s.1", "s.3"]


def waiting_sweep() -> ArrayWorld:
    """A sweep whose controller was killed; its first run trains."""
    world = ArrayWorld()
    world.ends = [{"state": "running"}, {"state": "finished", "ended": 9.0}]
    for each in variations("s", {"lr": [1, 2, 3]}, ["python", "train.py", "{lr}"], ["w1", "w2"], 2)[0]:
        run = world.run_of(each)
        world.site.job_of(run).begin(Prepared(python="python3", port=1))
        known = {"name": each.name, "launcher": "w1", "rank_0_on": "w1", "folder": ""}
        world.here_files[f"/results/{each.name}/{manifest.FILE}"] = known
    submit_array(world, [replace(world.member(number), o=world.o) for number in (1, 2, 3)])
    world.site.job_of(world.member(1)).look()
    return world


def test_stop_of_one_run_leaves_the_others() -> None:
    world = waiting_sweep()

    stopped = stop(Program(MemoryJournal(), world), world.site, world.member(2))

    assert (stopped["changed"], world.scancels) == (True, [["11_2"]])
    states = [world.site.job_of(world.member(number)).look()["job"]["state"] for number in (1, 2, 3)]
    assert states == ["running", "stopped", "waiting"]
    assert world.kept("s.2")["end"]["state"] == "stopped" and "end" not in world.kept("s.1")


def test_stopped_sweep_cancels_all_runs_together() -> None:
    world = waiting_sweep()
    members = [world.member(number) for number in (1, 2, 3)]

    stopped = stop_sweep(Program(MemoryJournal(), world), world.site, members)

    assert (stopped["changed"], world.scancels[0]) == (True, ["11_1", "11_2", "11_3"])
    assert [world.kept(name)["end"]["state"] for name in MADE] == ["stopped"] * 3
    again = [world.member(number) for number in (1, 2, 3)]
    assert stop_sweep(Program(MemoryJournal(), world), world.site, again) == {"changed": False}
    assert "all 3 runs of the sweep have ended already" in world.lines


def test_stopped_sweep_includes_a_run_that_a_window_stopped() -> None:
    world = waiting_sweep()
    end = {"state": "stopped", "cause": f"stopped by {WINDOW} one", "ended": 2.0, "steps": 3}
    run_files.write_end(world, world.member(1), {**end, "why": end["cause"]}, {})
    run_files.bring_outputs(world, world.member(1), "w1")
    members = [world.member(number) for number in (1, 2, 3)]

    assert stop_sweep(Program(MemoryJournal(), world), world.site, members) == {"changed": True}

    assert world.kept("s.1")["end"]["cause"] == "stopped by me@here" and world.scancels[0] == ["11_2", "11_3"]


def test_submits_again_only_runs_cancelled_while_waiting() -> None:
    world = waiting_sweep()
    world.is_held = True
    stop(Program(MemoryJournal(), world), world.site, world.member(3))
    world.is_held, world.ends = False, [{"state": "finished", "ended": 9.0}]
    world.jobs["/runs/s.1"].end = dict(world.ends[0])

    result = world.sweep()

    assert [tasks for _name, _comment, tasks in world.arrays] == [["1", "2", "3"], ["3"]]
    assert [row["state"] for row in result["rows"]] == ["finished"] * 3


def test_finished_run_keeps_its_end_when_it_is_stopped() -> None:
    world = ArrayWorld()
    world.sweep()

    stopped = stop(Program(MemoryJournal(), world), world.site, world.member(1))

    assert stopped == {"changed": False} and world.kept("s.1")["end"]["state"] == "finished"
    assert "the training run s.1 has ended already: finished" in world.lines


def test_array_task_is_the_job_of_its_run() -> None:
    jobs = job_states.jobs_of(
        SQUEUE + "22|dml-one.5|RUNNING|None|N/A|dml|dml:dddddddd0\n21_[6-9%1]|dml-one|a|b|c|d|e\n"
    )

    found = [
        job_states.own_job(jobs, f"one.{number}", run_id) for number, run_id in ((3, "bbbbbbbb1"), (5, "cccccccc2"))
    ]

    assert [job and (job.number, job.run) for job in found] == [("21_3", "one.3"), ("21_5", "one.5")]
    assert job_states.own_job(jobs, "one.5", "dddddddd0") == jobs[3] and job_states.own_job(jobs, "one", "") is None
    assert job_states.own_job(jobs, "one.1", "bbbbbbbb1") == jobs[0], "identifiers of one array name all its tasks"


def test_script_runs_the_folder_of_its_task(tmp_path: Path) -> None:
    world = SlurmWorld(runs=str(tmp_path / "r x"), remote_python="sh")
    (tmp_path / "r x" / "s.3").mkdir(parents=True)
    (tmp_path / "r x" / "s.3" / "supervisor.py").write_text('echo "$PWD $2"')
    scontrol = tmp_path / "scontrol"
    scontrol.write_text("#!/bin/sh\nprintf '%s\\n' w1 w2\n")
    scontrol.chmod(0o755)
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_NODELIST": "w[1-2]", "SLURM_ARRAY_TASK_ID": "3"}

    script = OwnSlurmJob(world, replace(world.run(), name="s.2")).script("2,3")
    done = subprocess.run(["sh"], input=script, capture_output=True, text=True, env=variables, check=False)

    assert done.stdout == f"{tmp_path}/r x/s.3 {tmp_path}/r x/s.3\n", done.stderr
