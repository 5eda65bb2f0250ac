# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A cluster, a job and their clock, which answer the calls of a vMotion test as the modules do, and count them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from plugins.module_utils.vmotion.test.next_step import next_step, state_of
from plugins.module_utils.vmotion.test.step import (
    BACKGROUND,
    Controller,
    Entries,
    ModuleCall,
    RollRecords,
    RunCommand,
    Step,
    StopWatch,
)
from plugins.module_utils.vmotion.test.trial_state import TrialState

SETTINGS: dict[str, Any] = {
    "cluster": "gpu",
    "workers": [],
    "launcher": "w1",
    "user": "",
    "run_dir": "/run/one",
    "records": "/run/one",
    "nodes": [{"name": "w1", "reach": ["sh", "-c"]}, {"name": "w2", "reach": ["sh", "-c"]}],
    "rounds": 1,
    "duration": 0,
    "canary": "",
    "return_home": False,
    "one_per_host": True,
    "warmup_steps": 2,
    "steps": 20,
    "warm_timeout": 60,
    "move_timeout": 60,
    "look_timeout": 30,
    "finish_timeout": 0,
    "ends_job": False,
    "stun_budget": 100.0,
    "guest_checks": True,
    "checkpoints": "",
    "checkpoint_minutes": 60,
    "accept": [],
    "limits": {},
    "require": ["launcher", "transport", "vsphere"],
    "go_on": False,
    "drs_override": "manual",
}
LAUNCHER = {"host": "w1", "pid": 7, "start": 1, "boot_id": "b"}
SYSCTLS = {"net.ipv4.tcp_retries2": 15}
CONTINUOUS: dict[str, Any] = {
    "verdict": "continuous",
    "moved": "all",
    "breaches": [],
    "unproven": [],
    "notes": [],
    "longest_gap_s": 1.0,
}


class Killed(Exception):
    """The controller ended just here."""


class World:
    """Two workers on three hosts, and a job with one rank on each."""

    def __init__(self, **settings: Any) -> None:
        self.settings = {**SETTINGS, **settings}
        self.now = 1000.0
        self.at = {"w1": "esx1", "w2": "esx2"}
        self.chains: list[dict[str, Any]] = []
        self.calls: Counter[str] = Counter()
        self.job, self.steps_by = "running", "auto"
        self.ended: float | None = None
        self.fails: dict[str, str] = {}
        self.rdma = False
        self.verdict = dict(CONTINUOUS)
        self.dies_in_move = ""
        self.loses: list[str] = []
        self.journal: list[dict[str, Any]] = []
        self.overridden = False
        self.watched = False
        self.lock = ""
        self.controllers = 0
        self.write("open", settings=self.settings)

    def write(self, entry: str, **what: Any) -> None:
        self.now += 1.0
        self.journal.append({"at": self.now, "entry": entry, **what})

    def carry_out(self, entries: int = 1000) -> TrialState:
        """Do the steps as one controller until none is left, or until the journal has this number of entries."""
        self.controllers += 1
        self.write("controller")
        while True:
            state = state_of(self.journal)
            step = next_step(state)
            if step is None:
                return state
            for kind, content in self.do(step, state):
                self.write(kind, **content)
                if len(self.journal) >= entries:
                    raise Killed(kind)

    def do(self, step: Step, state: TrialState) -> Entries:
        """Return the entries of a step, answered by the method with the name of its module."""
        if step.name in self.fails:
            return step.entries_of({"failed": True, "msg": self.fails[step.name]}, state, self.controller)
        action = step.action(state, self.controller) if step.action else None
        answer: dict[str, Any] = {}
        if isinstance(action, StopWatch):
            self.watched = False
        if isinstance(action, RollRecords):
            answer = self.roll()
        if isinstance(action, RunCommand):
            answer = self.run_command(action)
        if isinstance(action, ModuleCall):
            if action.where == BACKGROUND and self.watched:
                return step.entries_of({"begun": False}, state, self.controller)
            self.calls[action.module] += 1
            answer = getattr(self, action.module.rpartition(".")[2])(action.options)
        may_fail = isinstance(action, ModuleCall) and action.may_fail
        return step.entries_of(answer, state, self.controller, may_fail=may_fail)

    @property
    def controller(self) -> Controller:
        return Controller("/test", self.now)

    def roll(self) -> dict[str, Any]:
        raise AssertionError("only an observation drops records")

    def run_command(self, _command: RunCommand) -> dict[str, Any]:
        raise AssertionError("only an observation runs a command")

    @property
    def own(self) -> str:
        """The run of the controller that is at work now; a lock of the one before it is of no use to it."""
        return f"run {self.controllers}"

    def cluster_lock(self, options: dict[str, Any]) -> dict[str, Any]:
        self.lock = "" if options.get("state") == "free" else self.own
        return {"state": {"run": self.lock}}

    def training_job_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {
            "job": {
                "state": self.job,
                "launcher": LAUNCHER,
                "run_id": "r",
                "steps_by": self.steps_by,
                "ended": self.ended,
            }
        }

    def training_job(self, _options: dict[str, Any]) -> dict[str, Any]:
        self.job = "stopped"
        return {}

    def file(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {}

    def cluster_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {"cluster": {"ha": {"enabled": True}, "vcenter": {"version": "8.0.3"}}, "stops": []}

    def vmotion_plan(self, options: dict[str, Any]) -> dict[str, Any]:
        free = next(host for host in ("esx1", "esx2", "esx3") if host not in self.at.values())
        moves = []
        for worker in options.get("workers") or sorted(self.at):
            moves.append({"worker": worker, "source": self.at[worker], "target": free})
            free = self.at[worker]
        told = {"not_applicable": {}, "rdma": {}, "profile": "", "slots": {}}
        if options.get("max_moves", 1) > 1:
            return {**self._one_wave(), "at": dict(self.at), **told}
        return {"moves": moves, "at": dict(self.at), **told}

    def _one_wave(self) -> dict[str, Any]:
        """Every worker moves at once, to the host that is two further on."""
        targets = {"esx1": "esx3", "esx2": "esx4", "esx3": "esx1", "esx4": "esx2"}
        moves = [{"worker": w, "source": host, "target": targets[host], "wave": 1} for w, host in self.at.items()]
        return {"moves": moves, "waves": [{"wave": 1, "moves": len(moves), "waits": "", "reason": ""}]}

    def training_watch(self, _options: dict[str, Any]) -> dict[str, Any]:
        assert not self.watched, "two watches of one file"
        self.watched = True
        return {}

    def worker_rules(self, options: dict[str, Any]) -> dict[str, Any]:
        assert self.lock == self.own, "DRS was changed without the lock"
        self.overridden = options.get("state") != "absent"
        return {}

    def training_wait(self, _options: dict[str, Any]) -> dict[str, Any]:
        self.now += 5.0
        return {"ranks": 2, "hosts": {"w1": [0], "w2": [1]}, "step": 40}

    def training_transport_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        step = int(self.now)
        pairs = {"w1": [["10.0.0.1", "10.0.0.2"]], "w2": [["10.0.0.2", "10.0.0.1"]]}
        return {
            "nodes": {
                name: {
                    "ranks": [{"rank": 0, "pid": 1, "step": step, "connections": pair, "rdma_open": self.rdma}],
                    "devices": [],
                    "checksums": {},
                }
                for name, pair in pairs.items()
            }
        }

    def training_guest_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        seen = {"sysctls": SYSCTLS, "ssh": None, "sshd": "", "mca": {}, "mpirun": [], "environment": {}, "nvidia": None}
        return {"nodes": {name: {**seen, "checkpoint": None} for name in ("w1", "w2")}}

    def esxi_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {"hosts": [{"host": host, "vibs": {"running": []}} for host in ("esx1", "esx2", "esx3")]}

    def continuity_verdict(self, _options: dict[str, Any]) -> dict[str, Any]:
        return dict(self.verdict)

    def vmotion(self, options: dict[str, Any]) -> dict[str, Any]:
        """Move it; if the controller is to die in a move, it ends as configured: started, done, or not even started."""
        assert self.lock == self.own, "a worker moves without the lock"
        if options.get("moves"):
            rows = [{"worker": move["worker"], **self.vmotion(move)} for move in options["moves"]]
            return {"moved": rows, "failed": any(row.get("failed") for row in rows)}
        worker, target = options["worker"], options["target"]
        under_way = (one for one in self.chains if one["completed"] is None and one["worker"] == worker)
        running = next(under_way, None)
        if self.at[worker] == target and not running:
            return {"state": {"host": target}}
        lost = self.loses.pop(0) if self.loses else ""
        if lost:
            return self._lost(lost, running, worker, target)
        end, self.dies_in_move = self.dies_in_move, ""
        if end == "before":
            raise Killed(end)
        chain = running or self._begin(worker, target)
        if end == "under way":
            raise Killed(end)
        self._arrive(chain)
        if end == "after":
            raise Killed(end)
        hosts = {"before": chain["source"], "after": target}
        seen = {**chain["vsphere"], "host": hosts, "gpus": {"before": [], "after": []}}
        return {"move": {**chain, "vsphere": seen, "attached": running is not None, "task": {"key": "task-1"}}}

    def _lost(self, when: str, running: dict[str, Any] | None, worker: str, target: str) -> dict[str, Any]:
        """A call that has no answer: nothing was started, or the move goes on, or it is at its end."""
        if when != "before":
            chain = running or self._begin(worker, target)
            if when == "after":
                self._arrive(chain)
        return {"failed": True, "msg": f"{worker}: could not move it: the connection broke"}

    def vmotion_info(self, options: dict[str, Any]) -> dict[str, Any]:
        names = options.get("workers") or sorted(self.at)
        moves = [one for one in self.chains if one["started"] >= options["since"] and one["worker"] in names]
        place = {"power": "on", "powered_on": "then", "encryption": "", "gpus": []}
        return {
            "moves": [dict(one) for one in moves],
            "power": [],
            "places": {name: {"host": self.at[name], **place} for name in names},
        }

    def _begin(self, worker: str, target: str) -> dict[str, Any]:
        chain = {
            "worker": worker,
            "source": self.at[worker],
            "target": target,
            "started": self.now,
            "completed": None,
            "ok": False,
            "said": "",
            "chain": len(self.chains) + 1,
            "events": [],
            "vsphere": {"hot_migration": True, "power_cycled": False},
        }
        self.chains.append(chain)
        return chain

    def _arrive(self, chain: dict[str, Any]) -> None:
        self.now += 3.0
        chain.update(completed=self.now, ok=True)
        self.at[chain["worker"]] = chain["target"]
