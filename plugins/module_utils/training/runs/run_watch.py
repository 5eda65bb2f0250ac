"""Collects the step records of a run in the background, shows its pace, and reports how its watch ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...errors import CollectionError
from ...watch.live_pace import ENDLESS_SECONDS, longest_silence
from .any_job import Launched, watched_nodes
from .controller_site import Followed, FollowOptions, TrainingCalls
from .training_run import GROUP, KUBERNETES, TrainingFailed, TrainingRun

# The seconds for which a run of a sweep is awaited.
WEEK_SECONDS = 604_800
# The seconds without a record after which the launcher is asked for the state of the job.
QUIET_SECONDS = 15.0
# The seconds between two copies of the outputs, at least: nothing is shown while they are copied.
LEAST_OUTPUT_SECONDS = 20
# The watch has read the records of the job's last steps by then; a node that reports the end of the job may be slow.
LAST_SECONDS, LATE_SECONDS = 3.0, 60.0


class RunWatch:
    """The records of one attempt in a new folder: a watch whose controller was killed may still write to another."""

    def __init__(self, calls: TrainingCalls, run: TrainingRun, started: Launched, rank_0: str) -> None:
        self._calls, self._run, self._launched, self._rank_0 = calls, run, started, rank_0
        self._folder, self._looked_at = "", 0.0

    @property
    def records(self) -> str:
        """Return the file of the records on the controller."""
        return f"{self._folder}/records.jsonl"

    def start(self) -> None:
        """Open a connection to each watched node, in the background of the controller."""
        calls, run = self._calls, self._run
        self._folder = calls.records.new_folder(run.results)
        options = {
            "nodes": self._launched["watched"],
            "folder": run.dir,
            "records": self.records,
            "stop": f"{self._folder}/stop",
            "view": True,
            "output": f"{run.results}/output.log",
            # A script may report no steps at all.
            "silence": ENDLESS_SECONDS
            if run.o["command"]
            else 2 * longest_silence(int(run.o["silence"]), "checkpoint"),
            "timeout": ENDLESS_SECONDS,
            # The watch ends itself if the playbook is killed.
            "started_by": calls.controller(),
        }
        started = calls.watch(options)
        if started.get("failed"):
            raise TrainingFailed(
                f"The step records of the training job {run.dir} on {run.launcher} are not collected: the watch on the "
                f"controller did not start ({started.get('msg') or 'without a message'}). The job continues."
            )

    def has_reported_end(self) -> bool:
        """Return whether a node reported the end of the job."""
        return self._calls.records.reported_end(self.records)

    def is_due(self, now: float, every: float) -> bool:
        """Return whether the launcher is to be asked for the state of the job again."""
        if now - self._looked_at < every:
            return False
        self._looked_at = now
        return True

    def stop(self) -> None:
        self._calls.files.write_private(self._folder, {"stop": ""})

    def show_pace(self) -> Followed:
        """Show the pace until all steps are made or no record arrives for a moment, and return it."""
        run = self._run
        every = int(run.o["outputs_every"]) if run.o["folder"] else 0
        options = replace(
            self._page(),
            shows=run.o["show"],
            at_most=max(every, LEAST_OUTPUT_SECONDS) if every else 0,
            # A moment later than the limit, so that the program finds it exceeded.
            silence=int(run.o["silence"]) + 0.5 if run.o["steps_by"] != "none" else 0.0,
            awaits_end=self._awaits_end,
            ends_apart=GROUP not in run.o["accept"],
        )
        return self._calls.records.follow(self.records, options)

    def copy_outputs(self) -> None:
        """Copy the outputs so far; a failure is only shown, because the copy at the end repeats it."""
        run = self._run
        reach, dest, limit = run.nodes[self._rank_0]["reach"], f"{run.results}/outputs", int(run.o["outputs_limit"])
        try:
            self._calls.outputs.copy_growing(node=self._rank_0, reach=reach, folder=run.outputs, dest=dest, limit=limit)
        except CollectionError as error:
            self._calls.show(str(error))

    def read_again(self, state: str) -> Followed:
        """Return the pace with the last steps of a job that has ended; of one that died, they may never arrive."""
        quiet = LATE_SECONDS if self._awaits_end and state == "finished" else LAST_SECONDS
        options = replace(self._options(), quiet=quiet, shows="page")
        return self._calls.records.follow(self.records, options)

    def write_last_page(self, job: Mapping[str, Any]) -> None:
        """Write the live page of a job that has ended."""
        why = str(job.get("why") or "")
        self._calls.records.follow(
            self.records, replace(self._page(), quiet=0, state=job["state"], why=why, shows="page")
        )

    def why_it_ended(self) -> str:
        """Return the message of a watch that did not start."""
        return self._calls.records.why_ended(self.records).strip() or "without a message"

    @property
    def _awaits_end(self) -> bool:
        """Return whether a node reports the end of the job."""
        return self._run.o["backend"] != KUBERNETES and self._run.launcher in self._run.o["watched"]

    def _options(self) -> FollowOptions:
        run, o = self._run, self._run.o
        return FollowOptions(
            steps=int(o["steps"]),
            warmup=int(o["warmup"]),
            output=f"{run.results}/output.log",
            run_dir=run.dir,
            vmotion_tests=o["vmotion_tests"] or "",
        )

    def _page(self) -> FollowOptions:
        """Return the options with which the live page of the run is written too."""
        run = self._run
        return replace(self._options(), folder=run.results, run=run.name, metrics=run.o["metrics"] or "")


def who_waits(calls: TrainingCalls, run: TrainingRun) -> str:
    """Return the sentences about ranks that wait for others; empty if no rank recorded its collectives."""
    if run.o["backend"] == KUBERNETES or not run.o["nccl"]:
        return ""
    return " ".join(calls.nodes.read_hang(watched_nodes(run), run.dir, run.recorders))


def where_ranks_are(calls: TrainingCalls, run: TrainingRun) -> str:
    """Return the lines of the program in which the ranks are; empty if unknown, as in pods."""
    if run.o["backend"] == KUBERNETES:
        return ""
    return calls.nodes.read_stacks(watched_nodes(run), run.dir)
