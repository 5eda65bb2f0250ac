"""Random sequences of what happens to a site, and the promises that hold after each of them.

Hypothesis shrinks a sequence that breaks a promise, and prints it as Python to paste into a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import currently_in_test_context, event
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from .faults import ACTS, finishes
from .host import Host, Profile
from .job import Job
from .modules import SimulatedCalls
from .operations import End, Outcome, Team
from .rollbacks import Evidence
from .site import Site

HOSTS = ["esx1", "esx2", "esx3", "esx4"]
MOST_RUNS = 8
# The worker of each rank.
RANKS = [{0: "w1", 1: "w2"}, {0: "w1", 1: "w1", 2: "w2", 3: "w2"}, {0: "w1", 1: "w2", 2: "w3", 3: "w1"}]
STUNS = st.lists(st.sampled_from([1.0, 30.0, 60.0, 90.0, 200.0]), max_size=4)


# Faults between two effects. Controllers die more often than all else.
ONLY_IN_RESTARTS = {"stops", "hangs"}
PEOPLE = ["kill", "kill", "kill", *sorted({*ACTS} - ONLY_IN_RESTARTS)]
# A rollout has some 60 points without a job, and 250 around one.
# The clock is set an hour forward, or back, soon after the first run begins.
SOON_SET = 2400.0
ZONES = ["", "", "STD0DST-1,J1/0:50,J300", "STD0DST-1,J300,J1/1:50"]
ENDS = st.tuples(st.sampled_from([0.0, 2400.0, 3600.0, 14400.0]), st.booleans())
POINTS = st.one_of(st.integers(0, 60), st.integers(0, 250))
SOME_FAULTS = st.dictionaries(
    POINTS, st.tuples(st.sampled_from(PEOPLE), st.sampled_from(HOSTS)), min_size=1, max_size=3
)
FAULTS: st.SearchStrategy[dict[int, tuple[str, str]]] = st.one_of(st.just({}), SOME_FAULTS)


# The hosts that a run chooses; and what changes while no controller runs.
CHOICES = st.sampled_from([[], [], [], HOSTS[:2]])
RARELY = st.sampled_from([False, False, True])
MEANWHILE = ["", "starts_beside", "asks_to_end", "asks_to_pause", "ages", "alarm", "another job", "another profile"]
MEANWHILE += ["another image", "fewer hosts"]


def acts(faults: dict[int, tuple[str, str]]) -> dict[int, Any]:
    """Return the faults as functions."""
    return {point: partial(_act, ACTS[name], host) for point, (name, host) in faults.items()}


def _act(act: Callable[[SimulatedCalls, str], None], host: str, calls: SimulatedCalls) -> None:
    act(calls, host)


def locks(machine: SiteMachine, _host: str) -> None:
    """Another controller holds the lock of the cluster for a while."""
    if not machine.site.holder:
        machine.site.holder, machine.site.expires = "alice", machine.site.clock + 900.0


def replaces(machine: SiteMachine, name: str) -> None:
    """Another machine gets the name of a host in service, on which no worker runs."""
    site, host = machine.site, machine.site.hosts[name]
    is_used = bool(site.on(name)) or name in site.out() or any(folder.is_open for folder in machine.team.folders)
    if not is_used and host.responds:
        site.hosts[name], site.earlier = Host(uuid=f"built at {site.clock}"), {}


def between_runs(act: Callable[[SimulatedCalls, str], None]) -> Callable[[SiteMachine, str], None]:
    """Return something that others do while no playbook runs."""
    return lambda machine, host: act(SimulatedCalls(machine.site, "nobody", {}), host)


BETWEEN_RUNS = ["alarm", "takes", "remediates", "loses", "moves", "arrives", "finishes", "dies", "sets_clock"]
BETWEEN_RUNS += ["sets_guest_clock", "starts_beside", "ends_beside", "acknowledges", "ages"]
BETWEEN_RUNS += ["asks_to_pause", "asks_to_end"]


def waits(machine: SiteMachine, _host: str) -> None:
    """Let two hours pass without a playbook."""
    for _minutes in range(4):
        machine.site.pass_time(1800.0)
        machine.site.act_alone()


CHANGES: dict[str, Callable[[SiteMachine, str], None]] = {
    "locks": locks,
    "waits": waits,
    "replaces": replaces,
    **{name: between_runs(ACTS[name]) for name in (*BETWEEN_RUNS, *ONLY_IN_RESTARTS)},
}


class SiteMachine(RuleBasedStateMachine):
    """Administrators and data scientists who share a cluster of four hosts with three workers."""

    def __init__(self) -> None:
        super().__init__()
        self.site = Site({name: Host() for name in HOSTS}, {"w1": "esx1", "w2": "esx2", "w3": "esx3"})
        self.folder = TemporaryDirectory()
        self.team = Team(self.site, where=Path(self.folder.name))

    @initialize(
        boots=st.integers(0, 2),
        is_training=st.booleans(),
        drs_seconds=st.sampled_from([0.0, 0.0, 40.0, 200.0]),
        zone=st.sampled_from(ZONES),
    )
    def begin(self, boots: int, is_training: bool, drs_seconds: float, zone: str = "") -> None:
        self.site.drs_seconds, self.site.zone = drs_seconds, zone
        self.request_profile(boots, leaves=True)
        if is_training:
            self.start_job()

    @rule(boots=st.integers(0, 2), leaves=st.booleans())
    def request_profile(self, boots: int, leaves: bool) -> None:
        self.site.requested = Profile(self.site.requested.level + 1, boots, leaves or boots > 0)

    @rule(is_dropped=st.booleans())
    def request_image(self, is_dropped: bool) -> None:
        """A new image is requested, or users leave the image of the cluster as it is from now on."""
        self.site.requested_image = 0 if is_dropped else self.site.image + 1

    @rule(ranks=st.sampled_from(RANKS))
    @precondition(lambda self: not self.site.stopped and (self.site.job is None or not self.site.job.is_running))
    def start_job(self, ranks: dict[int, str] = RANKS[0]) -> None:
        if all(self.site.hosts[place].responds for place in self.site.workers.values()):
            self.site.job = Job(ranks, self.site.clock)
            self.site.jobs_so_far[self.site.job.run_dir] = self.site.job
            self.site.pass_time(60.0)

    @rule(act=st.sampled_from(sorted({*CHANGES} - ONLY_IN_RESTARTS)), host=st.sampled_from(HOSTS))
    def another_user(self, act: str, host: str) -> None:
        CHANGES[act](self, host)

    @rule()
    def calm(self) -> None:
        """Everything that others did is over."""
        self.site.alarms.clear()
        self.site.resync = 0
        self.site.holder = "" if self.site.holder == "alice" else self.site.holder
        for host in self.site.hosts.values():
            if host.is_lost and not host.is_up:
                host.boot()
            host.is_lost = False
            if host.by == "bob":
                host.is_out, host.by, host.remediated_at = False, "", 0.0

    @rule(
        under_training=st.booleans(),
        most=st.integers(1, 2),
        stuns=STUNS,
        faults=FAULTS,
        only=CHOICES,
        ack=RARELY,
        end=ENDS,
    )
    def run_hosts(
        self,
        *,
        under_training: bool,
        most: int,
        stuns: list[float],
        faults: dict[int, tuple[str, str]],
        only: Sequence[str] = (),
        ack: bool = False,
        end: tuple[float, bool] = (0.0, True),
    ) -> None:
        seconds, is_date = end
        ends = End.after(self.site, seconds, is_date=is_date) if seconds else End()
        given: dict[str, Any] = {"most": most, "only": only, "window": {"requires_ack": ack}}
        self.change_hosts(faults, ends, stuns, under_training=under_training, **given)

    def change_hosts(
        self, faults: dict[int, tuple[str, str]], end: End, stuns: Sequence[float] = (), **given: Any
    ) -> None:
        self.site.stuns, left = list(stuns), self.left_out()
        outcome = self.team.hosts(faults=acts(faults), end=end, **given)
        self.check(outcome, left)
        if outcome.is_success:
            self.check_profile(given.get("only", ()))

    @rule(number=st.integers(0, 3), replaced=st.sampled_from(["", "", "esx4"]), faults=FAULTS)
    @precondition(lambda self: self.team.evidence)
    def roll_back(self, number: int, replaced: str, faults: dict[int, tuple[str, str]]) -> None:
        """Restore the hosts from evidence, the oldest first."""
        if replaced:
            replaces(self, replaced)
        taken, left, writes = self.team.evidence[number % len(self.team.evidence)], self.left_out(), self.site.writes
        outcome = self.team.rollback(taken, acts(faults))
        self.check(outcome, left)
        if outcome.is_success:
            self.check_restored(taken)
        assert (taken.is_complete and taken.is_of(self.site)) or self.site.writes == writes, "other hosts were restored"

    def check_restored(self, taken: Evidence) -> None:
        """Each host has the profile that it had when the evidence was taken."""
        for name, level in taken.levels.items():
            host = self.site.hosts[name]
            if host.by != "bob" and not host.is_lost:
                assert host.has(Profile(level)), f"success, but {name} has {host.level}, not {level} as before"
                assert not host.is_out and not host.by, f"success, but {name} is out of service"

    @rule(stuns=STUNS, faults=FAULTS)
    def run_vmotion_test(self, stuns: list[float], faults: dict[int, tuple[str, str]]) -> None:
        self.site.stuns, left = list(stuns), self.left_out()
        self.check(self.team.vmotion_test(acts(faults)), left)

    @rule(faults=FAULTS, stuns=STUNS)
    def observe(self, stuns: list[float], faults: dict[int, tuple[str, str]]) -> None:
        self.site.stuns, left = list(stuns), self.left_out()
        self.check(self.team.observation(acts(faults)), left)

    @rule(point=st.integers(20, 250), change=st.sampled_from(MEANWHILE), host=st.sampled_from(HOSTS), ack=st.booleans())
    def kill_a_window_and_go_on(self, point: int, change: str, host: str, ack: bool) -> None:
        """A window is killed, its settings or the site may change, and it runs again."""
        self.start_job_if_none()
        CHANGES["acknowledges"](self, "")
        first: dict[str, Any] = {"under_training": True, "most": 1, "stuns": [], "only": [], "ack": ack}
        self.run_hosts(**first, faults={point: ("kill", "")})
        if change in CHANGES:
            CHANGES[change](self, host)
        if change == "another job":
            finishes(SimulatedCalls(self.site, "nobody", {}), "")
            self.start_job_if_none()
        if change == "another profile":
            self.request_profile(boots=1, leaves=True)
        if change == "another image":
            self.request_image(is_dropped=False)
        self.run_hosts(**{**first, "only": [host] if change == "fewer hosts" else []}, faults={})

    @rule(
        point=st.integers(20, 250),
        seconds=st.sampled_from([0.0, 3600.0, 14400.0]),
        events=st.lists(st.sampled_from(["waits", "waits", "alarm", "dies"]), max_size=2),
        host=st.sampled_from(HOSTS),
    )
    def kill_a_window_and_go_on_later(self, point: int, seconds: float, events: list[str], host: str) -> None:
        """A window with an end is killed, much happens, and it runs again with the same end."""
        self.start_job_if_none()
        self.request_profile(1, leaves=True)
        end = End.after(self.site, seconds, is_date=True) if seconds else End()
        self.change_hosts({point: ("kill", "")}, end, under_training=True)
        for act in events:
            self.another_user(act, host)
        self.change_hosts({}, end, under_training=True)

    @rule(seconds=st.sampled_from([2400.0, 4500.0]))
    @precondition(lambda self: self.site.zone and self.site.clock < SOON_SET)
    def open_a_window_in_the_night_of_a_time_change(self, seconds: float) -> None:
        """A window has the time of day as its end that clocks show after they were set."""
        self.start_job_if_none()
        self.request_profile(1, leaves=True)
        self.site.pass_time(SOON_SET - self.site.clock)
        self.change_hosts({}, End.after(self.site, seconds, is_date=False), under_training=True)

    @rule(point=st.integers(20, 250), act=st.sampled_from(["alarm", "dies"]), host=st.sampled_from(HOSTS))
    def fail_a_window_and_its_release(self, point: int, act: str, host: str) -> None:
        """A window fails, and so does the release of something that it holds: it runs again."""
        self.start_job_if_none()
        self.request_profile(1, leaves=True)
        self.change_hosts({point: (act, host), point + 1: ("lost_release", "")}, End(), under_training=True)
        self.change_hosts({}, End(), under_training=True)

    @rule(point=st.integers(15, 30), is_dropped=st.booleans())
    def kill_a_rollout_of_an_image_and_go_on(self, point: int, is_dropped: bool) -> None:
        """A rollout is killed, which may leave a remediation under way, and the users may change their mind."""
        self.request_image(is_dropped=False)
        self.roll_out({point: ("kill", "")})
        if is_dropped:
            self.request_image(is_dropped=True)
            self.request_profile(boots=1, leaves=True)
        self.roll_out({})

    @rule(
        act=st.sampled_from(["loses", "takes", "starts_beside"]), host=st.sampled_from(HOSTS), point=st.integers(5, 60)
    )
    def change_hosts_while_others_act(self, act: str, host: str, point: int) -> None:
        """A host is lost, another user takes it, or starts a job on it, in the middle of a rollout."""
        self.request_profile(boots=1, leaves=True)
        self.roll_out({point: (act, host)})

    def roll_out(self, faults: dict[int, tuple[str, str]]) -> None:
        self.run_hosts(under_training=False, most=1, stuns=[], faults=faults, only=[], ack=False)

    def start_job_if_none(self) -> None:
        if not self.site.stopped and (self.site.job is None or not self.site.job.is_running):
            self.start_job()

    def left_out(self) -> set[str]:
        """Return the hosts that earlier runs left out of service, the workers that they left off, and a stopped job."""
        hosts = {name for name, host in self.site.hosts.items() if host.by == "us"}
        return {*hosts, *self.site.off, *filter(None, [self.site.stopped])}

    def check(self, outcome: Outcome, left: set[str]) -> None:
        """A run names each thing that it leaves behind, unless it was killed; those of ``left`` were out before."""
        site, message = self.site, outcome.message
        # A history that was pasted into a test runs without Hypothesis.
        if currently_in_test_context():
            event(f"{outcome.play} ended: {outcome.kind}")
        if outcome.is_killed or outcome.is_interrupted:
            self.next_controller()
            return
        for name in self.left_out() - left:
            named = "the job (is|may be) stopped" if name == site.stopped else name
            assert re.search(named, message), f"{name} was left out of service without a word: {message}"
        is_open = any(folder.is_open for folder in self.team.folders)
        is_held = site.holder.startswith(f"run {self.team.runs} ")
        shown = " ".join([message, *self.team.shown])
        assert not is_held or is_open or "lock" in shown, f"the lock was left: {message}"
        assert not site.overridden or is_open, f"an override was left: {message}"
        assert not site.is_watched or is_open, f"the watch was left: {message}"
        assert not site.reserved or is_open, f"a reservation in Slurm was left: {message}"
        assert message or outcome.verdict in ("", "continuous"), "a run around a broken job succeeded"

    def next_controller(self) -> None:
        """Let the time pass until a user runs a playbook again: a host that boots is back."""
        self.site.pass_time(400.0)
        self.site.act_alone()
        self.site.go_on()

    def check_profile(self, chosen: Sequence[str] = ()) -> None:
        """The requested profile is in force on each chosen host, and none of this collection is out of service."""
        for name, host in self.site.hosts.items():
            if name in (chosen or HOSTS) and host.by != "bob" and not host.is_lost:
                assert host.has(self.site.requested), (
                    f"success, but {name} has {host.level}, not {self.site.requested.level}"
                )
                assert self.site.requested_image in (0, host.image), f"success, but {name} has image {host.image}"
                assert not host.is_out and not host.by, f"success, but {name} is out of service"

    @invariant()
    def no_rank_is_out_of_service(self) -> None:
        for name in self.site.ranks_on:
            host = self.site.hosts[name]
            assert not host.is_out and host.is_up, f"{name} is out of service with a rank"

    def teardown(self) -> None:
        """When others have left, running again converges, and one more run writes nothing."""
        self.next_controller()
        self.calm()
        self.site.stuns = []
        self.finish_open_folders()
        left = {*self.site.off, *self.site.reserved, *filter(None, [self.site.stopped])}
        assert not left, f"left: {left}"
        finishes(SimulatedCalls(self.site, "nobody", {}), "")
        ACTS["ends_beside"](SimulatedCalls(self.site, "nobody", {}), "")
        outcomes = []
        for _run in range(MOST_RUNS):
            outcomes.append(self.team.hosts())
            if outcomes[-1].is_success:
                break
        assert outcomes[-1].is_success, f"running again does not converge: {[one.message for one in outcomes]}"
        self.check_profile()
        writes = self.site.writes
        assert self.team.hosts().is_success and self.site.writes == writes, "a second run writes"
        self.folder.cleanup()

    def finish_open_folders(self) -> None:
        """Continue what was killed with the settings with which it began."""
        for _run in range(MOST_RUNS):
            folder = next((folder for folder in self.team.folders if folder.is_open), None)
            if folder is None:
                return
            settings = folder.values["start"]
            if settings["window"]:
                site, image = self.site, settings["window"]["image"]
                present = site.requested, site.requested_image
                site.requested = Profile.of(settings["window"]["profile"])
                site.requested_image = int(image["components"]["manager"]) if image else 0
                only, old = settings["window"]["only_hosts"], {"settings": "old"}
                self.check(self.team.hosts(under_training=True, only=only, window=old), set(HOSTS))
                site.requested, site.requested_image = present
            else:
                continued = self.team.observation if settings["observe"] else self.team.vmotion_test
                self.check(continued(), set(HOSTS))
        raise AssertionError("an unfinished test or window never ends")
