"""Runs the job of a training run in Slurm: mpirun starts the ranks inside the allocation of a batch job; pure.

The first node of the allocation is the launcher. Its run directory has everything that the job needs before the job is
submitted, so that the job starts without the controller, and its state is read as that of a job without Slurm. The runs
of a sweep on the same nodes are one job array, of which Slurm starts one task after the other.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..durable.calls import ModuleFailed, NodeCalls, Result, required
from ..errors import Refused
from ..guests.slurm_timers import CLOCK, SET_CLOCK, is_unauthenticated
from ..training.ending.job_state import STOP_REQUEST
from ..training.runs.any_job import JOB, Launched, OwnMpirun
from ..training.runs.run_files import COPY
from ..training.runs.training_options import Options
from ..training.runs.training_run import Prepared, TrainingFailed, TrainingRun
from . import job_states
from .commands import COMMAND, run
from .job_states import MARK, TASK, SlurmJob, name_of, task_of

MESSAGES = "slurm.log"
# A comment in Slurm has at most 1024 characters: an array has the start of the identifier of each run.
MOST_OF_ARRAY, OF_IDENTIFIER = 100, 8
# Slurm waits 30 s between SIGTERM and SIGKILL, unless its site set KillWait.
STOP_SECONDS = 180.0
OPTIONS = ("partition", "account", "qos", "time")
ARRAY = ("-a", "--array")
# The waiting jobs, each task of an array in its own line, in the order in which Slurm considers them.
WAITING = ("--array", "--noheader", "--states=PENDING", "--sort=P,-p,i")
# The supervisor of the job ends it when it gets SIGTERM. The run directory is on the expected first node only.
SCRIPT = """#!/bin/sh
# With --export=NONE, Slurm sets this variable, and srun would start the daemons of mpirun without an environment.
unset SLURM_EXPORT_ENV
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | tr '\\n' ' ')
if [ "$nodes" != {nodes} ]; then
  echo "Slurm allocated the nodes $nodes, and the run is prepared for "{nodes} >&2
  exit 78
fi
folder={folder}
if [ -e "$folder/end.json" ]; then
  echo "the run in $folder was started before, by another job: this one ends" >&2
  exit 78
fi
cd "$folder" && exec {python} "$folder/supervisor.py" run "$folder"
"""


class OwnSlurmJob(OwnMpirun):
    """The Slurm job of a run, which it can submit."""

    is_scheduled = may_wait = True

    def __init__(self, calls: NodeCalls, run: TrainingRun) -> None:
        known = str(run.known.get("launcher") or "")
        super().__init__(calls, replace(run, o={**run.o, "launcher": known}) if known in run.nodes else run)
        self._login = str(run.o["slurm"].get("login") or self._run.launcher)

    def require_usable(self) -> None:
        """Refuse nodes that Slurm does not have, and another order of nodes than that in which Slurm allocates them."""
        run, names = self._run, self._names()
        if run.o["image"]:
            cause = f"training_image is {run.o['image']}, which the daemons that Slurm starts do not use"
            raise Refused(
                f"the training run {run.name}", "submit it to Slurm", cause, "set training_image to an empty string"
            )
        arrays = [each for each in map(str, run.o["slurm"].get("options") or []) if each.startswith(ARRAY)]
        if arrays:
            cause = f"the options in training_slurm have {arrays[0]}, and all its tasks would use one run directory"
            raise Refused(f"the training run {run.name}", "submit it to Slurm", cause, "set training_sweep instead")
        self._require_clocks()
        listed = required(self._ask("scontrol", "--oneliner", "show", "nodes"))["stdout"].splitlines()
        there = [line.split()[0].partition("=")[2] for line in listed if line.startswith("NodeName=")]
        unknown = [name for name in names if name not in there]
        if unknown:
            cause = f"Slurm has no node {', '.join(unknown)}"
            remedy = "leave these nodes out of training_nodes, or set training_slurm.node of each to its name in Slurm"
            raise Refused(f"the training run {run.name}", "submit it to Slurm", cause, remedy)
        ordered = sorted(names, key=there.index)
        if names != ordered:
            of_name = dict(zip(names, run.nodes))
            cause = f"Slurm allocates nodes in the order {', '.join(ordered)}"
            right = ", ".join(of_name[name] for name in ordered)
            raise Refused(f"the training run {run.name}", "submit it to Slurm", cause, f"set training_nodes to {right}")

    def _require_clocks(self) -> None:
        """Refuse nodes of which Slurm takes no message: their ranks would not start."""
        words = ["squeue", "--noheader", f"--name={name_of(self._run.name)}"]
        answers = self._calls.on_each(COMMAND, {node: {"argv": words} for node in self._run.nodes})
        refused = [
            node for node, answer in answers.items() if answer.get("failed") and is_unauthenticated(str(answer["msg"]))
        ]
        if refused:
            cause = f"Slurm takes no message of {', '.join(refused)}, because {CLOCK}"
            raise Refused(f"the training run {self._run.name}", "submit it to Slurm", cause, SET_CLOCK)

    def begin(self, prepared: Prepared) -> Launched:
        """Submit the job, unless it was submitted before; that of a sweep waits for ``submit_array``."""
        claimed = required(self._on_launcher(JOB, {**self.options(prepared), "queued": True}))["job"]
        run_id = str(claimed["run_id"])
        if claimed["state"] == "waiting" and not self._run.o.get("array") and self._find(run_id) is None:
            self.submit(run_id)
        return self.found()

    def submit(self, ids: str, tasks: str = "") -> None:
        """Submit the job with these identifiers in its comment, or a job array with these tasks."""
        submitted = self._ask(*self.words(f"{MARK}{ids}", tasks), stdin=self.script(tasks))
        if submitted.get("failed"):
            raise TrainingFailed(
                f"Slurm did not accept the training run {self._run.name} ({submitted['msg']}): correct that, as with "
                "training_slurm, and run the same command again."
            )
        number, what = str(submitted["stdout"]).partition(";")[0].strip(), "array " if tasks else ""
        self._calls.show(f"submitted as Slurm job {what}{number}{TASK + tasks if tasks else ''}")

    def words(self, comment: str, tasks: str = "") -> list[str]:
        """Return the command that submits the job; options of the user come first, so that they change none of ours."""
        run, o = self._run, self._run.o
        ranks, sweep = int(o["ranks_per_node"]), task_of(run.name)[0]
        named = [f"--{key}={o['slurm'][key]}" for key in OPTIONS if o["slurm"].get(key)]
        name, folder = (sweep, f"{o['runs']}/{sweep}.%a") if tasks else (run.name, run.dir)
        return [
            *("sbatch", "--parsable", *named, *map(str, o["slurm"].get("options") or [])),
            *([f"--gres=gpu:{ranks}"] if o["nccl"] else []),
            *([] if o["share_nodes"] else ["--exclusive"]),
            *(f"--job-name={name_of(name)}", f"--comment={comment}", "--no-requeue", "--export=NONE"),
            *(f"--nodes={len(run.nodes)}", f"--nodelist={','.join(self._names())}", f"--ntasks-per-node={ranks}"),
            *(f"--chdir={o['runs']}", f"--output={folder}/{MESSAGES}", "--open-mode=append"),
            *([f"--array={tasks}%1"] if tasks else []),
        ]

    def script(self, tasks: str = "") -> str:
        """Return the batch script."""
        run, task = self._run, '"$SLURM_ARRAY_TASK_ID"'
        nodes = shlex.quote("".join(f"{name} " for name in self._names()))
        folder = shlex.quote(f"{run.o['runs']}/{task_of(run.name)[0]}.") + task if tasks else shlex.quote(run.dir)
        return SCRIPT.format(nodes=nodes, python=shlex.quote(run.o["remote_python"]), folder=folder)

    def look(self) -> Result:
        """Return the state of the job from its run directory and from Slurm, each of which may be unreachable."""
        looked = super().look()
        there: Mapping[str, Any] = looked.get("job") or {}
        try:
            job = self._of(there)
        except ModuleFailed as error:
            # Slurm may be down for a while; the run directory shows whether the ranks run.
            is_waiting = there.get("state") == "waiting"
            return {**looked, "job": {**there, "why": f"Slurm does not answer: {error}"}} if is_waiting else looked
        if "job" not in looked and (job is None or job.state not in job_states.ENDED_BY_SLURM):
            return looked
        waits = job_states.why_waiting(job, _waiting(self._ask)) if job and job.state in job_states.WAITING else ""
        messages = f"{self._run.dir}/{MESSAGES} on {self._run.launcher}"
        state = job_states.combined(there, job, messages, waits)
        if job and job.state == job_states.ENDING and state.get("state") == "running":
            state = {**state, "ending": True}
        return {**looked, "failed": False, "job": state}

    def stop(self) -> Result:
        """Cancel the job, and wait for its end."""
        there, found = self._read()
        if found is None or not found.is_alive:
            return {"changed": False, "job": self.look().get("job") or {}}
        if there.get("state") == "running":
            self._write_request()
        cancelled, until = set[str](), self._calls.now() + STOP_SECONDS
        again: SlurmJob | None = found
        while again is not None and again.is_alive:
            if again.number not in cancelled:
                required(self._ask("scancel", again.number))
                cancelled.add(again.number)
            elif self._calls.now() > until:
                raise TrainingFailed(
                    f"Slurm job {again.number} of {self._run.name} was cancelled, and is still {again.state} after "
                    f"{STOP_SECONDS:.0f} s: scontrol show job {again.number} says on which node."
                )
            else:
                self._calls.pause()
            again = self._of(there)
        return {"changed": True, "job": self.look().get("job") or {}}

    def _write_request(self) -> None:
        """Write who asks for the end, for those who follow the run, unless a window has done so."""
        content, dest = json.dumps({"by": self._run.requested_by}), f"{self._run.dir}/{STOP_REQUEST}"
        self._calls.on(self._run.launcher, COPY, {"content": content, "dest": dest, "mode": "0600", "force": False})

    def end_leftovers(self) -> None:
        """Cancel a job that Slurm still has; Slurm itself ends the processes of a job that has ended."""
        self.stop()

    def report(self, looked: Result) -> Result:
        """Return the job with the end of its output; Slurm knows more about its end than the run directory."""
        answer = super().report(looked)
        return {**answer, "job": {**(answer.get("job") or {}), **(looked.get("job") or {})}}

    def forget(self) -> None:
        """Cancel the job and remove the run directory on each node."""
        self.stop()
        super().forget()

    def place(self) -> dict[str, Any]:
        """Return the number of the job and its nodes, as a vMotion test reads it; empty if Slurm does not have it."""
        there, found = self._read()
        names = dict(zip(self._names(), self._run.nodes))
        place = {"login": self._login, "names": names, "nodes": list(names)}
        return {"job": found.number, **place} if found and there else {}

    def _names(self) -> list[str]:
        return [str(node["slurm"]) for node in self._run.nodes.values()]

    def unsubmitted(self) -> str:
        """Return the identifier of a run that is prepared, and that Slurm does not have; empty for any other."""
        there, found = self._read()
        return str(there["run_id"]) if there.get("state") == "waiting" and found is None else ""

    def alive(self) -> str:
        """Return the number of its job that waits or runs; empty without one."""
        found = self._read()[1]
        return found.number if found and found.is_alive else ""

    def cancel(self, numbers: Sequence[str]) -> None:
        """Cancel jobs together, so that none starts because another one ends."""
        required(self._ask("scancel", *numbers))

    def _read(self) -> tuple[Mapping[str, Any], SlurmJob | None]:
        """Return the job as its run directory has it, and as Slurm has it."""
        there: Mapping[str, Any] = super().look().get("job") or {}
        return there, self._of(there)

    def _of(self, there: Mapping[str, object]) -> SlurmJob | None:
        """Return the job of a run directory; its name decides only if the launcher does not answer.

        Another user may have a run of this name on other nodes.
        """
        run_id = str(there.get("run_id") or "")
        return None if there and not run_id else self._find(run_id)

    def _find(self, run_id: str) -> SlurmJob | None:
        run = self._run.name
        names = ",".join(name_of(each) for each in (run, task_of(run)[0]) if each)
        listed = self._ask(
            "squeue", "--array", "--noheader", "--states=all", f"--name={names}", f"--format={job_states.FORMAT}"
        )
        return job_states.own_job(job_states.jobs_of(required(listed)["stdout"]), run, run_id)

    def _ask(self, *words: str, stdin: str = "") -> Result:
        return run(partial(self._calls.on, self._login), *words, stdin=stdin)


def submit_array(calls: NodeCalls, runs: Sequence[TrainingRun]) -> None:
    """Submit runs on the same nodes as one job array; those that Slurm has already are not submitted again."""
    found = [(job, job.unsubmitted()) for job in (OwnSlurmJob(calls, run) for run in runs)]
    left = [(run, job, run_id) for run, (job, run_id) in zip(runs, found) if run_id]
    for start in range(0, len(left), MOST_OF_ARRAY):
        part = left[start : start + MOST_OF_ARRAY]
        tasks = ",".join(task_of(run.name)[1] for run, _job, _id in part)
        part[0][1].submit(",".join(run_id[:OF_IDENTIFIER] for _run, _job, run_id in part), tasks)


def cancel_runs(calls: NodeCalls, runs: Sequence[TrainingRun]) -> None:
    """Cancel the jobs of runs together, so that Slurm does not start the next task of an array as one ends."""
    jobs = [OwnSlurmJob(calls, run) for run in runs]
    numbers = [number for number in (job.alive() for job in jobs) if number]
    if numbers:
        jobs[0].cancel(numbers)


def queued_runs(calls: NodeCalls, o: Options) -> list[dict[str, str]]:
    """Return the newest job of each run that Slurm has, also of other users, as far as this user may see them."""
    ask = partial(run, partial(calls.on, str(o["slurm"].get("login") or o["nodes"][0])))
    listed = ask("squeue", "--array", "--noheader", "--states=all", f"--format=%u|{job_states.FORMAT}")
    if listed.get("failed"):
        calls.show(f"the queue of Slurm is unknown: {listed.get('msg')}")
        return []
    rows = (line.strip().partition("|") for line in str(listed["stdout"]).splitlines())
    jobs = [(user, job) for user, _bar, rest in rows for job in job_states.jobs_of(rest)]
    users, queue = [each for each in jobs if each[1].is_of_run], _waiting(ask)
    newest = {(user, job.run): job for user, job in sorted(users, key=lambda each: each[1].array)}
    return [job_states.in_table(job, user, queue) for (user, _run), job in newest.items()]


def _waiting(ask: Callable[..., Result]) -> str:
    """Return the waiting jobs that this user may see, in the order in which Slurm considers them."""
    return str(ask("squeue", *WAITING, "--format=%i|%P").get("stdout") or "")
