"""The calls of a vMotion test, a window or an observation: its job, its nodes, and the folder that outlives it."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from plugins.module_utils.continuity.judged_facts import Verdict
from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.durable.program import END, START
from plugins.module_utils.training.runs.controller_site import NodeReads, Records
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.evidence.verdict_input import verdict_input, with_earlier, with_left
from tests.fakes.options_check import SitePart

from . import slurm_queue
from .attempts import RestartableJob, power
from .job import LAUNCHER, STEP_SECONDS, Job
from .modules import Options, Result, SimulatedCalls, failed
from .site import Site, Violation

# The time after which worker_vm gives up a guest.
HANG_SECONDS = 300.0
# The verdicts on a job, by all that they depend on; a verdict takes most of the time of a history.
VERDICTS: dict[str, Verdict] = {}
MOST_VERDICTS = 1000


@dataclass
class Folder:
    """The folder of a test or a window, which outlives its controllers; the job and the machines when it began."""

    path: Path
    job: Job | None
    machines: dict[str, str]
    values: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    # The hosts that the window has changed, as its facts and its notices say.
    done: set[str] = field(default_factory=set)

    def keep_done(self, hosts: Iterable[str], source: str) -> None:
        """Keep the changed hosts; none is forgotten."""
        lacking = self.done - set(hosts)
        assert not lacking, f"{source} has forgotten the changes of {', '.join(sorted(lacking))}"
        self.done |= set(hosts)

    @property
    def is_open(self) -> bool:
        return START in self.values and END not in self.values


class TrialCalls(SimulatedCalls):
    """The calls of a vMotion test or a window, with the files in its folder."""

    def __init__(
        self, site: Site, run: str, faults: Mapping[int, Callable[[SimulatedCalls], None]], folder: Folder
    ) -> None:
        super().__init__(site, run, faults)
        self.folder, self.files, self.controller = str(folder.path), folder.files, run
        self.job, self._machines, self._place = folder.job, folder.machines, folder
        self.drivers: Mapping[str, Any] = {}
        self.versions: Mapping[str, str] = {"ansible": "2.20"}
        self.records: Any = SitePart(Records, self.here)
        self.nodes: Any = SitePart(NodeReads, self.here)

    def now(self) -> float:
        """Return the time of the test, as observer_clock keeps it."""
        return self.site.clock

    def start_watch(self, _options: Options) -> Result:
        self.effect("start the watch", lambda: self._watch(True))
        return {}

    def stop_watch(self, _options: Options) -> Result:
        self.effect("stop the watch", lambda: self._watch(False))
        return {}

    def _watch(self, is_on: bool) -> None:
        """Begin or end the watch; one that begins again also reads what the job wrote in between."""
        self.site.is_watched = is_on
        if is_on:
            self.files.pop("watched_until", None)
        else:
            self.files.setdefault("watched_until", self.site.clock)

    def on_node(self, node: str, _user: str, _module: str, options: Options, /) -> Result:
        assert self.site.has_slurm, f"no other job runs, but {node} is asked for it"
        return slurm_queue.answer(self, options["argv"])

    def command(self, options: Options) -> Result:
        """Return what a command of Slurm answers, with which the job is read."""
        return slurm_queue.answer(self, options["argv"])

    def roll_records(self) -> bool:
        self.effect("roll the records", lambda: self.files.update(rolled_at=self.site.clock))
        return True

    def run_command(self, words: tuple[str, ...], _text: str, _seconds: float) -> Result:
        raise AssertionError(f"no command is given, but {words}")

    def jobs_on_workers(self, settings: Options) -> Result:
        """Return the running jobs besides that of the window."""
        self.must_be_attended()
        self.point()
        found = {place: job for place, job in self.site.jobs().items() if place != settings["run_dir"]}
        jobs = [
            {"title": f"the job in {place}", "nodes": sorted(job.ranks_by_worker), "launcher": "", "run_dir": place}
            for place, job in found.items()
        ]
        return {"jobs": jobs, "unread": "", "unread_workers": {}}

    def stat(self, _options: Result) -> Result:
        """Return the file with which the owner of the job acknowledges a window."""
        return {"stat": {"exists": self.site.acknowledged > 0.0, "mtime": self.site.acknowledged}}

    def must_pause(self) -> bool:
        return False

    def earlier_changes(self) -> list[dict[str, Any]]:
        return []

    def last_change(self) -> float:
        return max((float(change["began"]) for change in self.earlier_changes()), default=0.0)

    def restartable(self, known: Options) -> Any:
        """Return an attempt of the job."""
        assert self.job is not None
        return RestartableJob(self, str(known.get("run") or self.job.run_dir))

    def notify(self, _hook: Options, text: str) -> Result:
        content = json.loads(text)
        self.effect("notify", lambda: self._place.keep_done(content["done"], f"the notice {content['event']}"))
        return {}

    def write(self, name: str, content: Any) -> None:
        self.must_be_attended()
        self.files[name] = json.loads(json.dumps(content))

    def write_facts(self, facts: Facts) -> None:
        self.write("facts", vars(facts))

    def continuity_verdict(self, _options: Result) -> Result:
        facts = Facts(**self.files["facts"])
        case = verdict_input(facts)
        assert self.job is not None
        # An observation removes the records that it has judged.
        since, until = float(self.files.get("rolled_at", 0.0)), float(self.files.get("watched_until", math.inf))
        # Histories that end at different points begin alike, so that many of their verdicts are the same.
        key = repr((self.job, since, until, case))
        if key not in VERDICTS:
            if len(VERDICTS) >= MOST_VERDICTS:
                VERDICTS.clear()
            records: Iterable[dict[str, Any]] = self.job.records(since, until)
            VERDICTS[key] = judged(verdict(records, case.pop("moves"), case.pop("limits"), **case))
        result = copy.deepcopy(VERDICTS[key])
        return {**with_left(with_earlier(result, facts), facts), "lines": [], "files": []}

    def is_same(self, worker: str) -> bool:
        """Return whether a worker is the machine that it was when the test began."""
        return self.site.machines.get(worker) == self._machines.get(worker)

    def vmotion(self, options: Result) -> Result:
        worker = options.get("worker")
        if worker in self.site.machines and worker in self._machines and not self.is_same(worker):
            raise Violation(f"{worker} moves, and is another machine than that of the test")
        return super().vmotion(options)

    def worker_rules(self, options: Result) -> Result:
        others = [
            name for name in options.get("workers") or [] if name in self.site.machines and not self.is_same(name)
        ]
        if others:
            raise Violation(f"{others[0]} gets an override, and is another machine than that of the test")
        return super().worker_rules(options)

    def worker_vm(self, options: Result) -> Result:
        """Power workers off or on, as their options request, and nothing else."""
        for given in options["workers"]:
            name, state = given["name"], given["power"]
            if state == "on" and self.site.workers[name] not in self.site.serving():
                return failed(f"{name}: could not power it on: {self.site.workers[name]} does not respond")
            if state == "off" and self.site.hangs and not options["force_off"]:
                self.site.hangs -= 1
                self.site.pass_time(HANG_SECONDS)
                return failed(f"{name}: could not shut down its guest: it is still on after {HANG_SECONDS:.0f} s")
            if (name in self.site.off) is (state == "on"):
                self.effect(f"power {state} {name}", partial(power, self.site, name, state, self.run))
        return {"workers": []}

    def training_info(self, options: Result) -> Result:
        job = self.site.attempts.get(options.get("run_dir") or "", self.job)
        if LAUNCHER["host"] not in self.site.machines:
            return failed(f"{LAUNCHER['host']}: could not be reached")
        if job is None or not self.is_same(str(LAUNCHER["host"])):
            return {"job": {"state": "absent", "launcher": None, "run_id": "", "steps_by": "auto", "ended": None}}
        read = {"state": job.state, "launcher": LAUNCHER, "run_id": "r", "steps_by": "auto", "ended": job.ended}
        return {"job": {**read, "started": job.started}}

    def wait_for_steps(self, options: Result) -> Result:
        """Wait until every rank has made a number of steps since a time."""
        # A window by restart waits for steps of the attempt that it has started.
        job, deadline = self.site.job if self.site.attempts else self.job, self.site.clock + float(options["timeout"])
        while job is not None and self.site.clock < deadline:
            made = sum(at > options["since"] for at in job.step_times)
            if made >= options["steps"]:
                return {"ranks": len(job.ranks), "hosts": job.ranks_by_worker, "step": job.step}
            if not job.is_running:
                break
            self.site.pass_time(STEP_SECONDS)
        return failed("the job made too few steps")

    def read_connections(self, _options: Result) -> Result:
        gone = [worker for worker in self._machines if worker not in self.site.machines]
        if gone:
            return failed(f"{gone[0]}: could not be reached")
        pairs = [["10.0.0.1", "10.0.0.2"]]
        job = self.job if self.job and all(map(self.is_same, self.job.ranks.values())) else None
        ranks, step = (job.ranks, job.step) if job else ({}, 0)
        rank = {"pid": 1, "step": step, "connections": pairs, "rdma_open": False}
        nodes: dict[str, Any] = {}
        for number, worker in ranks.items():
            node = nodes.setdefault(worker, {"ranks": [], "devices": [], "checksums": {}})
            node["ranks"].append({"rank": number, **rank})
        return {"nodes": nodes}

    def read_runs(self, _options: Result) -> Result:
        return {"sentences": [], "saved": []}

    def read_gpus(self, _options: Result) -> Result:
        return {"findings": []}

    def read_hang(self, _options: Result) -> list[str]:
        return []

    def read_guests(self, _options: Result) -> Result:
        facts: Result = {"sysctls": {"net.ipv4.tcp_retries2": 15}, "ssh": None, "sshd": "", "mca": {}, "mpirun": []}
        node = {**facts, "environment": {}, "nvidia": None, "checkpoint": None}
        return {"nodes": dict.fromkeys(self.site.workers, node)}


def judged(result: Verdict) -> Verdict:
    """Return a verdict; a test replaces this to see that a wrong one is noticed."""
    return result
