"""A cluster, a job and their clock, which answer the calls of a vMotion test as the modules do, and count them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, cast

from plugins.action.vmotion_test import OPTIONS
from plugins.module_utils.durable.program import Program
from plugins.module_utils.jobs.running_job import job_from
from plugins.module_utils.training.runs.controller_site import NodeReads, Records
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.programs.maintenance_window import window
from plugins.module_utils.trials.programs.observe import observe
from plugins.module_utils.trials.programs.test import test as test_program
from plugins.module_utils.trials.steps.trial import Trial
from tests.fakes.deaths import Killed, MortalJournal, MortalWorld
from tests.fakes.options_check import SitePart, check_options

__all__ = ["LAUNCHER", "SETTINGS", "Killed", "World"]

SETTINGS: dict[str, Any] = {
    **{name: option["default"] for name, option in OPTIONS.items() if "default" in option and name != "folder"},
    "cluster": "gpu",
    "launcher": "w1",
    "run_dir": "/run/one",
    "records": "/run/one",
    "nodes": [{"name": "w1", "reach": ["sh", "-c"]}, {"name": "w2", "reach": ["sh", "-c"]}],
    "canary": "",
    "warmup_steps": 2,
    "warm_timeout": 60,
    "move_timeout": 60,
    "stun_budget": 100.0,
}
LAUNCHER = {"host": "w1", "pid": 7, "start": 1, "boot_id": "b"}
SYSCTLS = {"net.ipv4.tcp_retries2": 15}
NOTHING: dict[str, Any] = {"breaches": [], "unproven": [], "notes": [], "lines": []}
CONTINUOUS: dict[str, Any] = {"verdict": "continuous", "moved": "all", "longest_gap_s": 1.0, **NOTHING}


class World(MortalWorld):
    """Two workers on three hosts, and a job with one rank on each; ``fails`` has modules that fail, with the reason."""

    def __init__(self, deaths: Iterable[int] = (), **settings: Any) -> None:
        super().__init__(deaths)
        self.settings = json.loads(json.dumps({**SETTINGS, **settings}))
        self.folder, self.drivers, self.versions = "/test", dict[str, Any](), {"ansible": "2.20"}
        self.at = {"w1": "esx1", "w2": "esx2"}
        self.machines = {worker: f"uuid of {worker}" for worker in self.at}
        self.chains: list[dict[str, Any]] = []
        self.calls: Counter[str] = Counter()
        self.job, self.steps_by = "running", "auto"
        self.ended: float | None = None
        self.fails: dict[str, str] = {}
        self.rdma = False
        self.verdict = dict(CONTINUOUS)
        self.loses: list[str] = []
        self.sick: list[dict[str, Any]] = []
        self.waits: list[str] = []
        self.jobs_beside: list[dict[str, Any]] = list(self.settings["window"].get("other_jobs") or [])
        self.unread = ""
        self.runs_beside: list[str] = []
        self.values: dict[str, Any] = {}
        self.files: dict[str, Any] = {}
        self.overridden = self.watched = False
        self.lock = ""
        self.controllers = 0
        self.left: dict[str, str] = {}
        self.requested: dict[str, Any] = {}
        self.ending, self.is_replaced = "", False
        self.records: Any = SitePart(Records, self._answered)
        self.nodes: Any = SitePart(NodeReads, self._answered)

    def carry_out(self) -> Facts:
        """Run the program with one controller; ``outcome`` has its value."""
        self.controllers += 1
        self.is_dead, self.controller = False, f"controller {self.controllers}"
        facts = Facts(self.settings)
        job = job_from(self.here, self.there, self.settings)
        self.trial = Trial(self, job, facts, self.requested)  # type: ignore[arg-type]
        self.trial.started, self.trial.is_replaced = self.clock, self.is_replaced
        program = Program(MortalJournal(self, self.values), self, self.ending)
        run = observe if self.settings["observe"] else window if self.settings["window"] else test_program
        self.outcome = run(program, self.trial)
        self.left = program.left
        return self.trial.facts

    def to_the_end(self) -> Facts:
        """Run the program with as many controllers as it takes."""
        while True:
            try:
                return self.carry_out()
            except Killed:
                continue

    @property
    def keys(self) -> list[str]:
        """The keys of the journal."""
        return list(self.values)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left behind."""
        return not self.overridden and not self.watched and not self.lock and not self.left

    @property
    def facts(self) -> Facts:
        """The facts that were written last."""
        return Facts(**json.loads(json.dumps(self.files["facts"])))

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Answer with the method with the name of the module."""
        name = module.rpartition(".")[2]
        if name in self.fails:
            self.must_be_attended()
            return {"failed": True, "msg": self.fails[name]}
        return cast("dict[str, Any]", self.effect(name, lambda: self._answer(name, options)))

    there = here

    def _answered(self, name: str, options: Mapping[str, Any]) -> Any:
        return self.here(name, options)

    def _answer(self, name: str, options: Mapping[str, Any]) -> Any:
        self.calls[name] += 1
        check_options(name, options)
        return json.loads(json.dumps(getattr(self, name)(dict(options))))

    @property
    def own(self) -> str:
        """The run of the controller that is at work now; a lock of the one before it is of no use to it."""
        return f"run {self.controllers}"

    def join(self, run: str) -> None:
        assert run == self.own

    def start_watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        if "watch_records" in self.fails:
            return {"failed": True, "msg": self.fails["watch_records"]}
        assert options["folder"] == self.settings["records"]
        self.effect("start watch", lambda: setattr(self, "watched", True))
        return {}

    def stop_watch(self, _options: Mapping[str, Any]) -> dict[str, Any]:
        self.effect("stop watch", lambda: setattr(self, "watched", False))
        return {}

    def on_node(self, node: str, _user: str, _module: str, _options: Mapping[str, Any], /) -> dict[str, Any]:
        raise AssertionError(f"only the launcher of another job is asked, not {node}")

    def jobs_on_workers(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        self.must_be_attended()
        return {"jobs": [dict(job) for job in self.jobs_beside], "unread": self.unread}

    def roll_records(self) -> bool:
        raise AssertionError("only an observation drops records")

    def run_command(self, _words: tuple[str, ...], _text: str, _seconds: float) -> dict[str, Any]:
        raise AssertionError("only an observation runs a command")

    def write(self, name: str, content: Any) -> None:
        self.must_be_attended()
        self.files[name] = json.loads(json.dumps(content))

    def write_facts(self, facts: Facts) -> None:
        self.write("facts", asdict(facts))

    def cluster_lock(self, options: dict[str, Any]) -> dict[str, Any]:
        self.lock = "" if options.get("state") == "free" else self.own
        return {"state": {"run": self.lock}}

    def training_info(self, _options: dict[str, Any]) -> dict[str, Any]:
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
        cluster = {"ha": {"enabled": True}, "vcenter": {"version": "8.0.3"}, "out_of_service": [], "remediations": []}
        return {"cluster": cluster}

    def vmotion_plan(self, options: dict[str, Any]) -> dict[str, Any]:
        free = next(host for host in ("esx1", "esx2", "esx3") if host not in self.at.values())
        moves = []
        for worker in options.get("workers") or sorted(self.at):
            moves.append({"worker": worker, "source": self.at[worker], "target": free})
            free = self.at[worker]
        more: dict[str, Any] = {"not_applicable": {}, "rdma": {}, "profile": "", "slots": {}}
        if options.get("max_moves", 1) > 1:
            return {**self._one_wave(), "at": dict(self.at), **more}
        return {"moves": moves, "at": dict(self.at), **more}

    def _one_wave(self) -> dict[str, Any]:
        """Every worker moves at once, to the host that is two further on."""
        targets = {"esx1": "esx3", "esx2": "esx4", "esx3": "esx1", "esx4": "esx2"}
        moves = [{"worker": w, "source": host, "target": targets[host], "wave": 1} for w, host in self.at.items()]
        return {"moves": moves, "waves": [{"wave": 1, "moves": len(moves), "waits": "", "reason": ""}]}

    def worker_rules(self, options: dict[str, Any]) -> dict[str, Any]:
        assert self.lock == self.own, "DRS was changed without the lock"
        self.overridden = options.get("state") != "absent"
        return {}

    def wait_for_steps(self, _options: dict[str, Any]) -> dict[str, Any]:
        self.clock += 5.0
        return {"ranks": 2, "hosts": {"w1": [0], "w2": [1]}, "step": 40}

    def read_connections(self, _options: dict[str, Any]) -> dict[str, Any]:
        step = int(self.clock)
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

    def read_gpus(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {"findings": list(self.sick)}

    def read_hang(self, _options: dict[str, Any]) -> list[str]:
        return list(self.waits)

    def read_runs(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {"sentences": list(self.runs_beside), "saved": [self.clock]}

    def read_guests(self, _options: dict[str, Any]) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "sysctls": SYSCTLS,
            "ssh": None,
            "sshd": "",
            "mca": {},
            "mpirun": [],
            "environment": {},
            "nvidia": None,
        }
        return {"nodes": {name: {**facts, "nvidia": None, "checkpoint": None} for name in ("w1", "w2")}}

    def worker_vm_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {"workers": [{"name": worker, "vm_uuid": uuid} for worker, uuid in self.machines.items()]}

    def esxi_info(self, _options: dict[str, Any]) -> dict[str, Any]:
        return {"hosts": [{"host": host, "vibs": {"running": []}} for host in ("esx1", "esx2", "esx3")]}

    def continuity_verdict(self, _options: dict[str, Any]) -> dict[str, Any]:
        return dict(self.verdict)

    def vmotion(self, options: dict[str, Any]) -> dict[str, Any]:
        """Move workers; the controller may die while a move is under way, and answers may be lost."""
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
        chain = running or self._begin(worker, target)
        self.point()
        self._arrive(chain)
        # A move that is followed from its last second on was at its target all the time.
        source = target if running else chain["source"]
        vsphere = {**chain["vsphere"], "host": {"before": source, "after": target}, "gpus": {"before": [], "after": []}}
        made = {**chain, "source": source, "attached": running is not None, "task": {"key": "task-1"}}
        return {"move": {**made, "vsphere": vsphere}}

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
        self.clock += 1.0
        chain = {
            "worker": worker,
            "source": self.at[worker],
            "target": target,
            "started": self.clock,
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
        self.clock += 3.0
        chain.update(completed=self.clock, ok=True)
        self.at[chain["worker"]] = chain["target"]


def changed(world: World, **methods: Callable[..., Any]) -> World:
    """Return a world with other answers of some modules."""
    for name, method in methods.items():
        setattr(world, name, method)
    return world
