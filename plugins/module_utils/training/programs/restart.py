"""A run that a maintenance window stops at a checkpoint and starts again as its next attempt; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from ...durable.calls import ReachedNode, Result, required
from ...durable.program import MemoryJournal, Program
from ...errors import CollectionError, Refused, TimedOut
from ..ending.job_state import SIGNAL_REQUEST, STOP_REQUEST, JobState
from ..results.manifest import REPORTED
from ..running import busy
from ..runs import any_job, job_search, node_setup, run_files
from ..runs.any_job import Place, RunPlace
from ..runs.restartable import WINDOW, Checkpoints, Ranks, SeenCheckpoint, checkpoints_of
from ..runs.run_watch import RunWatch
from ..runs.training_options import Options
from ..runs.training_run import KUBERNETES, SLURM, TrainingRun
from .follow import ALIVE, TrainingSite, unreachable
from .train import require_same_environment, start

FILE = "ansible.builtin.file"
MEGABYTE = 1_000_000
# Kubernetes gives pods 30 s to end.
POD_SECONDS = 120.0


class RestartableRun:
    """One attempt of a run with its manifest; ``by`` is the window that stops it."""

    def __init__(self, site: TrainingSite, run: TrainingRun, by: str) -> None:
        self._site, self._calls, self._run, self._by = site, site.calls, run, by
        self.name = f"the training run {run.name}"

    def refusal(self) -> str:
        """Return why the run cannot be restarted from here; empty if it can."""
        try:
            self._require_restartable()
        except CollectionError as error:
            return str(error)
        return ""

    def _require_restartable(self) -> None:
        run, o = self._run, self._run.o
        if not run.known or run.known.get(REPORTED):
            remedy = f"open the window on the controller that started it, with its {run.results}"
            raise self._refused("this controller has no manifest of it", remedy)
        if not o["folder"]:
            raise self._refused("only a run with training_folder resumes", "stop it, and start it again afterwards")
        pending = self._place.pending()
        if pending:
            cause = f"{pending} jobs wait in its queue, and would get its nodes before its next attempt"
            raise self._refused(cause, "open the window when the queue is empty")
        by_owner = self.by_owner()
        if by_owner:
            raise self._refused(f"{by_owner} continues it already", "open the window around that run")
        require_same_environment(run)
        # The manifest does not contain the interpreter.
        node_setup.require_stack(run)
        # Changed data would be another training.
        node_setup.data_of(self._calls, run)
        found = self._read_checkpoints()
        self._require_optimizer(found)
        size, limit = found["bytes"], int(o["outputs_limit"])
        if size > limit * MEGABYTE:
            cause = f"its outputs have {size / MEGABYTE:.0f} MB, more than {limit} MB, so they would stay on the node"
            raise self._refused(cause, "set training_outputs_limit")

    def _require_optimizer(self, read: Mapping[str, object]) -> None:
        """Refuse a program whose checkpoints lack the optimizer: its run would resume as another training."""
        newest = checkpoints_of(read, "", 0.0)["newest"]
        if newest and newest["optimizer"] is False:
            cause = f"its checkpoint {newest['path']} has no state of the optimizer"
            raise self._refused(cause, "let the program save it, as with save_only_model=False in Trainer")

    def by_owner(self) -> str:
        """Return the runs with which others continue this one; empty if only this window does."""
        mine = (self._next().name, self._by)
        return ", ".join(name for name, by in self._followers().items() if (name, by) != mine)

    def state(self) -> JobState:
        """Return the state of the job; one that Slurm ends after a request has stopped."""
        state: JobState = required(self._site.job_of(self._run).look())["job"]
        by = run_files.stop_request(self._calls, self._run) if state.get("ending") else ""
        return {**state, "state": "stopped", "why": f"stopped by {by}"} if by else state

    def stopped_by_owner(self) -> str:
        """Return who has stopped the run, unless it was only a window."""
        job = self.state()
        # Only the manifest shows a stop after that of the window.
        causes = [(self._run.known.get("end") or {}).get("cause"), job.get("why") if job["state"] == "stopped" else ""]
        # Other sentences do not name a person, as that of a job which Slurm has cancelled.
        found = [str(cause) for cause in causes if str(cause).startswith("stopped by ") and WINDOW not in str(cause)]
        return found[0] if found else ""

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints on the node of rank 0, whose outputs the next attempt gets."""
        return checkpoints_of(self._read_checkpoints(), f"{self._run.rank_0}:{self._run.outputs}", self._calls.now())

    def _read_checkpoints(self) -> Mapping[str, Any]:
        run = self._run
        options = {
            "gather": ["checkpoints"],
            "checkpoints": run.outputs,
            "patterns": node_setup.checkpoint_patterns(run),
            "ranks": self._size,
        }
        found: Mapping[str, Any] = required(self._calls.on(self._run.rank_0, any_job.INFO, options))["checkpoints"]
        return found

    def ask_for_checkpoint(self, signal: str, seconds: float) -> None:
        """Send a signal to the processes of all ranks, which their records identify, and never to the launcher."""
        if self._run.o["backend"] == KUBERNETES:
            raise self._refused("its ranks run in pods, which get no signal", "wait for its next regular checkpoint")
        Ranks(self._calls, self._nodes, self._run.dir, self.name).ask(
            signal, self._size, partial(self._write_request, SIGNAL_REQUEST, seconds=seconds)
        )

    def _write_request(self, name: str, **more: object) -> None:
        """Write to the folder of the run who asks for its end, which is then not one of the program.

        Its time counts, so that a stop does not overwrite a signal: the ranks may end between them.
        """
        content = json.dumps({"by": self._by, **more}, sort_keys=True)
        copied = {"content": content, "dest": f"{self._run.dir}/{name}", "mode": "0600"}
        required(self._calls.on(self._run.launcher, run_files.COPY, copied))

    def withdraw(self) -> None:
        """Remove the requests: the run continues, and its later end is not that of the window."""
        self.free_nodes()
        for name in (SIGNAL_REQUEST, STOP_REQUEST):
            required(self._calls.on(self._run.launcher, FILE, {"path": f"{self._run.dir}/{name}", "state": "absent"}))

    def free_nodes(self) -> None:
        """Let other jobs have its nodes."""
        self._place.free()

    def stop(self) -> JobState:
        """Stop the job on all its nodes, and bring its outputs here; one that has ended by itself is left as it is."""
        run, job = self._run, self.state()
        if job["state"] in ALIVE:
            self._place.keep()
            self._write_request(STOP_REQUEST)
        if job["state"] in (*ALIVE, "stopped") and not self.stopped_by_owner():
            # Also makes sure that no process is left if the ranks ended themselves.
            self._site.job_of(run).stop()
            self._require_no_process()
            job = self.state()
        if job["state"] == "stopped":
            # Kubernetes has no end of a job that was deleted.
            known = (run.known.get("end") or {}).get("ended")
            ended, why = job.get("ended") or known or self._calls.now(), job.get("why") or f"stopped by {self._by}"
            run_files.write_end(self._calls, run, {**job, "ended": ended, "why": why}, {})
            run_files.bring_outputs(self._calls, run, run.rank_0)
        return job

    def _require_no_process(self) -> None:
        """Wait until no node has a process of the job: a deleted pod may end later than its job."""
        if self._run.o["backend"] != KUBERNETES:
            return
        left: dict[str, str] = {}

        def are_gone() -> bool:
            answers = job_search.jobs_on(self._calls.as_user("root"), self._run.nodes)
            left.clear()
            for node, answer in answers.items():
                if "jobs" not in answer:
                    left[node] = f"it did not answer: {busy.short_error(answer)}"
                elif any(job["run_dir"] == self._run.dir for job in answer["jobs"]):
                    left[node] = "processes of the job run there"
            return not left

        if not Program(MemoryJournal(), self._calls).wait(are_gone, POD_SECONDS):
            cause = "; ".join(f"{node}: {why}" for node, why in left.items())
            raise TimedOut(self.name, "make sure that no pod is left", cause, "check these nodes, and stop it again")

    def start_again(self, checkpoint: SeenCheckpoint, down: Mapping[str, object] | None = None) -> RunPlace:
        """Start the next attempt from this checkpoint; the job of an attempt that was started before is found.

        Nodes that boot are waited for. Nothing is started beside a run with which its owner continues.
        """
        p, new = Program(MemoryJournal(), self._calls), self._next()
        by_owner = self.by_owner()
        if by_owner:
            self.free_nodes()
            return {"by_owner": by_owner}
        seconds = float(new.o["attempt_wait"])
        p.wait(lambda: not unreachable(self._calls, new.nodes), seconds)
        if not p.wait(lambda: not self._place.why_not_ready(), seconds):
            raise TimedOut(
                self.name, "start it again", self._place.why_not_ready(), "repair them, and continue the window"
            )
        self._require_free(new)
        if new.name not in self._followers():
            self._require_newest(checkpoint)
        self._place.free()
        started = start(p, self._site, new)
        if down:
            restart = {**started.manifest["restart"], **down}
            self._calls.files.write_manifest(new.results, manifest={**started.manifest, "restart": restart})
        return {**job_search.run_of_job(new, started.launched), "run": new.name}

    def judged(self) -> Result:
        """Return the verdict on the restart with which this attempt began."""
        return run_files.judge_restart(self._calls, self._run)

    def _require_newest(self, checkpoint: SeenCheckpoint) -> None:
        """Refuse to start from another checkpoint than the one that was seen, as if the copy were incomplete."""
        run, kept = self._run, f"{self._run.results}/outputs"
        patterns = node_setup.checkpoint_patterns(run)
        found = str(self._calls.runs.newest_checkpoint(run.name, kept, patterns, required=True)["path"])
        if found != checkpoint["path"]:
            cause = f"the newest complete checkpoint in {kept} is {found}, and that on the node {checkpoint['path']}"
            raise self._refused(cause, f"copy the outputs of {run.outputs} there, and continue the window")

    def _require_free(self, new: TrainingRun) -> None:
        """Refuse nodes on which another job trains, such as an attempt that another user started meanwhile.

        In Slurm, the new attempt waits for the end of another job.
        """
        if self._run.o["share_nodes"] or self._run.o["backend"] == SLURM:
            return
        answers = job_search.jobs_on(self._calls, self._run.nodes)
        silent = {node: busy.short_error(answer) for node, answer in answers.items() if "jobs" not in answer}
        if silent:
            cause = "; ".join(f"{node} did not answer: {error}" for node, error in silent.items())
            raise self._refused(cause, "restore these nodes, and continue the window")
        running = [job for answer in answers.values() for job in answer["jobs"]]
        others = {busy.title(job) for job in running if (job["run_dir"], job["asked_by"]) != (new.dir, self._by)}
        if others:
            raise self._refused(f"{', '.join(sorted(others))} runs on its nodes", "wait for its end, or stop it")

    def watch(self) -> RunWatch:
        """Return the watch of its records, from which the verdict on the restart is made."""
        return RunWatch(self._calls, self._run, self._site.job_of(self._run).found(), self._run.rank_0)

    def _next(self) -> TrainingRun:
        """Return the next attempt, which does not count as one of those for failures of machines."""
        run = self._run
        o: Options = {**run.o, "attempts": run.o["attempts"] + 1}
        return replace(run.attempt(run.number + 1), o=o, requested_by=self._by)

    def _followers(self) -> Mapping[str, str]:
        """Return the runs that continue this one, and who started each."""
        return self._calls.runs.followers(self._run.o["results"], self._run.name)

    def machines(self) -> list[ReachedNode]:
        """Return how the controller reaches the nodes, also while no pod runs there."""
        return self._nodes

    @property
    def _place(self) -> Place:
        return self._site.job_of(self._run).kept_nodes()

    @property
    def _nodes(self) -> list[ReachedNode]:
        """Return how the controller reaches each node; nodes that it reaches in the same way are one machine."""
        found = {tuple(node["reach"]): name for name, node in reversed(list(self._run.nodes.items()))}
        return [{"name": name, "reach": list(reach)} for reach, name in reversed(list(found.items()))]

    @property
    def _size(self) -> int:
        return len(self._run.nodes) * int(self._run.o["ranks_per_node"])

    def _refused(self, cause: str, remedy: str) -> Refused:
        return Refused(self.name, "restart it", cause, remedy)
