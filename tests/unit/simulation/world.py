"""One test, window or observation on the site: a test arranges it, runs it, kills its controllers, and looks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from plugins.module_utils.durable.program import Program
from plugins.module_utils.jobs.running_job import job_from
from plugins.module_utils.trials.evidence.facts import Facts
from plugins.module_utils.trials.programs.observe import observe
from plugins.module_utils.trials.programs.test import test as test_program
from plugins.module_utils.trials.steps.trial import Trial
from plugins.plugin_utils.trial import options_of, window_by
from tests.fakes.deaths import Killed, MortalJournal

from .host import Host, Profile
from .job import Job
from .modules import Result, SimulatedCalls, failed
from .site import Site
from .trial_calls import Folder, TrialCalls

SETTINGS: dict[str, Any] = {
    **{name: option["default"] for name, option in options_of().items() if "default" in option and name != "folder"},
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
# The job makes a step in eight seconds.
PACE: dict[str, Any] = {"steps": 8, "warm_timeout": 600, "limits": {"max_gap_s": 120.0}}
PROFILE = Profile(level=1, boots=1)
# How a rollout reads the jobs again before hosts leave service.
JOB_CHECK = {"cluster": "gpu", "remedies": ["under_training", "interrupt"]}
HOSTS = ["esx1", "esx2", "esx3"]
WINDOW = {"hosts": HOSTS, "profile": PROFILE.option, "maintenance_timeout": 900, "reboot_timeout": 1200}
CONTINUOUS: dict[str, Any] = {
    "verdict": "continuous",
    "moved": "all",
    "longest_gap_s": 1.0,
    "breaches": [],
    "unproven": [],
    "notes": [],
    "lines": [],
}
BROKEN = {"verdict": "broken", "breaches": [{"detail": "rank 1 lost 3 steps"}]}


def dies(calls: SimulatedCalls) -> None:
    calls.is_dead = True
    raise Killed


class Arranged(SimulatedCalls):
    """Calls that a test arranges: ``fails`` has modules, or states of a module, that fail, with the reason; ``answers``
    keys of other answers by module; ``before`` what happens before an effect, by its name, once.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.fails: dict[str, str] = {}
        self.answers: dict[str, Any] = {}
        self.before: dict[str, Callable[[], Any]] = {}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.controllers, self.most_out = 0, 0

    def now(self) -> float:
        return self.site.clock

    def next_controller(self) -> None:
        self.controllers += 1
        self.is_dead, self.run = False, f"run {self.controllers} here"

    def _called(self, module: str, options: Mapping[str, Any], *, is_planned: bool) -> Result:
        self.must_be_attended()
        name, state = module.rpartition(".")[2], str(options.get("state") or "")
        self.requests.append((name, dict(options)))
        if name in self.fails or state in self.fails:
            return failed(self.fails.get(name) or self.fails[state])
        answer: Any = super()._called(module, options, is_planned=is_planned)
        given: Any = self.answers.get(name)
        merged: Any = given if isinstance(given, list) else {**answer, **given} if given else answer
        return cast(Result, merged)

    def effect(self, name: str, act: Callable[[], Any]) -> Any:
        def done() -> Any:
            self.before.pop(name, lambda: None)()
            value = act()
            self.most_out = max(self.most_out, len(self.site.out()))
            return value

        return super().effect(name, done)

    @property
    def calls(self) -> Counter[str]:
        return Counter(name for name, _options in self.requests)

    @property
    def boots(self) -> dict[str, int]:
        return {name: host.boots for name, host in self.site.hosts.items() if host.boots}

    @property
    def writes_to_hosts(self) -> list[str]:
        """Return the effects that change hosts."""
        verbs = ("change", "reboot", "apply the image")
        return [name for name in self.log if name.startswith(verbs)]

    @property
    def is_in_service(self) -> bool:
        return not any(host.is_out or host.by for host in self.site.hosts.values())


class Cluster(Arranged):
    """Hosts whose settings differ, and that need the given numbers of boots, for a program that changes them."""

    def __init__(self, *boots: int, deaths: Iterable[int] = (), leaves: bool = True, **more: Any) -> None:
        hosts = {
            f"esx{number}": Host(PROFILE.level, boots_left=needed, is_applied=False, **more)
            for number, needed in enumerate(boots, start=1)
        }
        self.profile = Profile(PROFILE.level, 0, leaves)
        super().__init__(Site(hosts, {}, requested=self.profile), "", dict.fromkeys(deaths, dies))
        self.site.most = len(hosts)
        super().next_controller()

    def can_spare(self, most: int) -> None:
        """The cluster has so much spare capacity."""
        cluster = {**self._cluster(), "max_out_of_service": {"allowed": most, "why": "so"}}
        self.answers["cluster_info"] = {"cluster": cluster}

    def next_controller(self) -> None:
        """Let the time pass until the playbook runs again."""
        super().next_controller()
        self.site.go_on()


class World(Arranged, TrialCalls):
    """Two workers on three hosts, and a job with one rank on each. Its controllers die at the points of ``deaths``.

    ``verdict`` replaces keys of the verdict, or all of it, which takes less time than a real one.
    """

    def __init__(self, deaths: Iterable[int] = (), **settings: Any) -> None:
        self.settings = json.loads(json.dumps({**SETTINGS, **PACE, **settings}))
        # Workers that move at once need a free host each.
        hosts = [*HOSTS, "esx4"] if self.settings["max_moves"] > 1 else HOSTS
        site = Site({name: Host() for name in hosts}, {"w2": "esx2", "w1": "esx1"}, requested=PROFILE)
        site.job = Job({0: "w1", 1: "w2"}, site.clock, place=self.settings["run_dir"])
        site.is_window, site.around = bool(self.settings["window"]), self.settings["run_dir"]
        site.accepted = frozenset(self.settings["window"].get("accepted", ()))
        self.place = Folder(Path("/test"), site.job, dict(site.machines))
        super().__init__(site, "", dict.fromkeys(deaths, dies), self.place)
        self.values, self.left = self.place.values, dict[str, str]()
        self.verdict: dict[str, Any] = dict(CONTINUOUS)
        self.requested: dict[str, Any] = dict(self.settings["window"])
        self.ending, self.is_replaced = "", False

    def carry_out(self) -> Facts:
        """Run the program with one controller; ``outcome`` has its value."""
        self.next_controller()
        self.controller, self.site.run_began = self.run, self.site.clock
        job = job_from(self.here, self.here, self.settings)
        how = {"started": self.site.clock, "is_replaced": self.is_replaced}
        self.trial = Trial(self, job, Facts(self.settings), self.requested, **how)  # type: ignore[arg-type]
        program = Program(MortalJournal(self, self.values), self, self.ending)
        run = observe if self.settings["observe"] else window_by if self.settings["window"] else test_program
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

    def start_watch(self, options: Mapping[str, Any]) -> Result:
        assert options["folder"] == self.settings["records"]
        reason = self.fails.get("watch_records")
        return failed(reason) if reason else super().start_watch(options)

    def continuity_verdict(self, options: Result) -> Result:
        return (
            dict(self.verdict) if "verdict" in self.verdict else {**super().continuity_verdict(options), **self.verdict}
        )

    def training_job(self, _options: Result) -> Result:
        self.ends("stopped")
        return {}

    def file(self, _options: Result) -> Result:
        return {}

    def ends(self, state: str) -> None:
        """The job ends now."""
        assert self.job
        self.job.end(state, self.site.clock)

    def add_idle_worker(self, worker: str, place: str) -> None:
        """Add a worker without a rank, and a free host."""
        self.site.build(worker, place)
        self.site.hosts["esx4"] = Host()
        self.place.machines[worker] = self.site.machines[worker]

    def start_at(self, clock: float) -> None:
        """Let the job start a minute before a time, at which the test begins."""
        assert self.job
        self.site.clock, self.job.started, self.job.next_step = clock, clock - 60.0, clock

    def build_again(self, worker: str) -> None:
        """Another machine gets the name of a worker."""
        self.site.build(worker, self.site.workers[worker])

    @property
    def moved(self) -> list[str]:
        return [move["worker"] for move in self.site.moves]

    @property
    def keys(self) -> list[str]:
        """The keys of the journal."""
        return list(self.values)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left behind."""
        return not (self.site.overridden or self.site.is_watched or self.site.holder or self.left)

    @property
    def facts(self) -> Facts:
        """The facts that were written last."""
        return Facts(**json.loads(json.dumps(self.files["facts"])))


class Window(World):
    """A maintenance window of all hosts, whose profile is in force after a reboot; one host has no worker."""

    def __init__(self, deaths: Iterable[int] = (), **settings: Any) -> None:
        super().__init__(deaths, **{"window": WINDOW, **settings})
        self.earlier_windows: list[dict[str, Any]] = []
        self.pauses, self.notices, self.waiting_requests = False, list[dict[str, Any]](), list[str]()

    def must_pause(self) -> bool:
        return self.pauses

    def earlier_changes(self) -> list[dict[str, Any]]:
        return self.earlier_windows

    def cluster_lock(self, options: Result) -> Result:
        is_renewed = bool(self.site.holder)
        result = super().cluster_lock(options)
        request = self.waiting_requests.pop(0) if self.waiting_requests and is_renewed and "note" in options else ""
        return {"state": {**result["state"], "request": request, "requester": "bob@ops"}} if request else result

    def notify(self, hook: Mapping[str, Any], text: str) -> Result:
        self.effect("notify", lambda: self.notices.append(json.loads(text)))
        return failed("the hook hangs") if hook.get("command") == ["hang"] else {}


def changed(world: World, **methods: Callable[..., Any]) -> World:
    """Return a world with other answers of some modules."""
    for name, method in methods.items():
        setattr(world, name, method)
    return world
