"""The facts of a vMotion test, a maintenance window or an observation, from which its verdict follows; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypedDict, cast

from ...continuity.judged_facts import Move, PowerEvent, Verdict, WorkerPlace
from ...continuity.limits import read_limits
from ...core.findings import FindingRecord
from ...core.names import short_name
from ...moves.plan.results import MovePlan
from . import move_lines
from .window_settings import WindowSettings

Value = Mapping[str, Any]
LONGEST_WAIT_S = 86_400.0
# Events whose times are wrong by less than this are still found.
CLOCK_SET_S = 5.0


class _Requested(TypedDict):
    move: Move
    place: WorkerPlace
    at: float


class MoveRequest(_Requested, total=False):
    """A move, and the state of its worker before the request; the other keys describe its attempts."""

    lost: int
    is_unknown: bool
    is_under_way: bool
    is_aged: bool


class CheckedRequest(TypedDict, total=False):
    """The moves of the next wave and the controller that requests them, or why they are not made.

    ``is_stale``: the job must be judged first; ``ends``: why the test ends; ``refused``: the move that findings stop.
    """

    moves: list[MoveRequest]
    controller: str
    findings: list[FindingRecord]
    accepted: list[str]
    refused: Move
    ends: str
    is_stale: bool


class FoundMove(TypedDict):
    """A move on the server, which replaces the known one at its ``place``."""

    place: int
    move: Move


class OthersMoves(TypedDict):
    """The moves and power events of others, and the moves of the test that it requested without an answer.

    ``found`` replaces a known move at its ``place``, and ``own`` adds one. ``elsewhere`` are the workers of the job in
    other clusters.
    """

    at: float
    found: list[FoundMove]
    own: list[Move]
    moves: list[Move]
    power: list[PowerEvent]
    clock_offset_s: float | None
    elsewhere: list[str]


def is_same_wave(move: Move, other: Move) -> bool:
    """Return whether two moves are the same move, or ran at the same time."""
    return move is other or (move.get("wave") is not None and move["wave"] == other.get("wave"))


def next_wave(left: Sequence[Move]) -> list[Move]:
    """Return the next moves, which run at the same time."""
    wave = left[0].get("wave") if left else None
    return list(left[:1]) if wave is None else list(takewhile(lambda move: move.get("wave") == wave, left))


def ranks_by_worker(hosts: Value, workers: Iterable[str]) -> dict[str, list[int]]:
    """Return the ranks by the name of the worker's VM, or by the name of the guest if no VM has that name."""
    names = {short_name(worker): worker for worker in workers}
    by_worker: dict[str, list[int]] = {}
    for host, ranks in hosts.items():
        by_worker.setdefault(names.get(short_name(host), host), []).extend(ranks)
    return by_worker


@dataclass
class Facts:
    """Everything that was observed so far. A program fills it from the values of its journal, by the ``keep`` methods.

    The module vmotion_test documents the ``settings``.
    """

    settings: dict[str, Any]
    began: float = 0.0
    job: dict[str, Any] | None = None
    job_now: dict[str, Any] | None = None
    cluster_before: dict[str, Any] | None = None
    cluster_after: dict[str, Any] | None = None
    at: dict[str, str] = field(default_factory=dict)
    # The workers of the job in other clusters, whose moves are known too.
    elsewhere: list[str] = field(default_factory=list)
    rdma: dict[str, str] = field(default_factory=dict)
    warm: dict[str, Any] | None = None
    # The readings of the connections of the ranks: ``nodes``, the counters of the ``hosts``, and, as known then, the
    # number of earlier ``moves``, the moves of ``others`` and the RDMA device of each worker (``rdma``).
    looks: list[dict[str, Any]] = field(default_factory=list)
    round: int = 0
    # The planned moves of the round that were not made, and the requested moves without a result.
    left: list[Move] = field(default_factory=list)
    pending: list[MoveRequest] = field(default_factory=list)
    waves: int = 0
    moves: list[Move] = field(default_factory=list)
    others: list[Move] = field(default_factory=list)
    power: list[PowerEvent] | None = None
    # The offsets of the server's clock in this window, at the plans and whenever its events were read.
    clock_offsets: list[float] = field(default_factory=list)
    judged: Verdict | None = None
    # The workers that others removed or built again during the test.
    lost: list[str] = field(default_factory=list)
    # Which ranks of the silent job wait for which others.
    hangs: list[str] = field(default_factory=list)
    # The other runs that used the nodes, in sentences, and the times of the checkpoints in the outputs of the job.
    other_runs: list[str] = field(default_factory=list)
    saved: list[float] = field(default_factory=list)
    stopped: str = ""
    failures: list[str] = field(default_factory=list)
    is_over: bool = False
    is_unwatched: bool = False
    checksums: dict[str, str] = field(default_factory=dict)
    observed_until: float = 0.0
    # Fields of an observation: the events that the user's command got, and the windows that were judged before the
    # present one; those with events are in ``earlier``.
    hooked: list[str] = field(default_factory=list)
    windows: int = 0
    earlier: list[dict[str, Any]] = field(default_factory=list)
    rolled_at: float = 0.0
    listed_until: float = 0.0
    # Fields of a maintenance window: the hosts that left service, and the one whose change has started.
    host_changes: list[dict[str, Any]] = field(default_factory=list)
    at_hand: str = ""
    # The hosts that have their profile already, because others changed them meanwhile: they stay in service.
    settled: list[str] = field(default_factory=list)
    # The hosts of a window by restart that change before its job stops, because workers of other jobs move.
    first_hosts: list[str] = field(default_factory=list)
    prediction: dict[str, Any] | None = None
    # Facts of a window by restart: its ``workers``, whether they are ``off``, the ``stop``, the ``parts`` of the time
    # without the job, the attempt that was ``started``, and the verdict on it.
    restart: dict[str, Any] = field(default_factory=dict)
    # The other jobs on workers that move: their verdicts, or why they have none.
    other_jobs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def cluster(self) -> str:
        return str(self.settings["cluster"])

    @property
    def window(self) -> WindowSettings:
        """Return the settings of a maintenance window; empty without one."""
        return cast("WindowSettings", self.settings.get("window") or {})

    @property
    def spare_cluster(self) -> list[str]:
        """Return the cluster whose hosts take workers of a maintenance window for a time; empty without one."""
        return [str(self.window["spare"]["cluster"])] if self.window.get("spare") else []

    @property
    def waiting_hosts(self) -> list[str]:
        """Return the hosts that the maintenance window has not changed yet; empty without a window."""
        changed = {*self.settled, *(change["host"] for change in self.finished_changes)}
        return [host for host in self.window.get("hosts") or [] if host not in changed]

    @property
    def moving_hosts(self) -> list[str]:
        """Return the waiting hosts that workers leave by moves: all, unless the window restarts its job for others."""
        return [host for host in self.waiting_hosts if not self.first_hosts or host in self.first_hosts]

    def waiting_after(self, first: Sequence[str]) -> list[str]:
        """Return the waiting hosts without those that change first."""
        return [host for host in self.waiting_hosts if host not in first]

    @property
    def finished_changes(self) -> list[dict[str, Any]]:
        """Return the changes of the hosts that are back in service."""
        return [change for change in self.host_changes if change["back_at"]]

    @property
    def every_move(self) -> list[Move]:
        """Return the moves of the test, then those of others."""
        return [*self.moves, *self.others]

    @property
    def last_wave(self) -> list[Move]:
        return [move for move in self.moves if is_same_wave(move, self.moves[-1])]

    @property
    def outlives_job(self) -> bool:
        """Return whether a maintenance window continues although its job has finished."""
        return bool(self.window) and (self.job_now or {}).get("state") == "finished"

    @property
    def is_running(self) -> bool:
        """Return whether the job ran when it was last read."""
        return (self.job_now or {}).get("state") == "running"

    @property
    def may_end_well(self) -> bool:
        """Return whether the job was judged without a breach, so that its own end can be awaited."""
        return self.judged is not None and not self.judged["breaches"]

    @property
    def must_stop(self) -> bool:
        """Return whether the first breach or failed move ends the test."""
        return bool(self.stopped) and not self.settings["go_on"]

    @property
    def resume_deadline_s(self) -> float:
        """Return the deadline in seconds after a move for every rank to continue, at most a day."""
        return min(read_limits(self.settings["limits"]).resume_deadline_s, LONGEST_WAIT_S)

    @property
    def server_clock_set_s(self) -> float:
        """Return by how many seconds the server's clock was set during the test; 0 within the measurement error."""
        own = [move for move in self.moves if move.get("clock_offset_s") is not None]
        offsets = [*self.clock_offsets, *(float(move["clock_offset_s"]) for move in own)]
        offsets += [float(move["clock_offset_s"]) + float(move.get("clock_set_s") or 0.0) for move in own]
        spread = max(offsets) - min(offsets) if offsets else 0.0
        return spread if spread > CLOCK_SET_S else 0.0

    @property
    def judged_moves(self) -> list[Move]:
        """Return the moves of the test, without those of a maintenance window after the end of its job."""
        ended = (self.job_now or {}).get("ended")
        if not self.outlives_job or ended is None:
            return self.moves
        return [move for move in self.moves if _is_of_job(move, float(ended))]

    @property
    def ranks(self) -> dict[str, list[int]]:
        return ranks_by_worker((self.warm or {}).get("hosts") or {}, self.at)

    def keep_job(self, job: Value) -> None:
        """Keep the job: at first all its values, later only those that can change."""
        self.job_now = dict(job)
        self.job = self.job or self.job_now

    def keep_cluster(self, cluster: Value) -> None:
        """Keep the cluster before and after the test."""
        self.cluster_after = dict(cluster)
        self.cluster_before = self.cluster_before or self.cluster_after

    def keep_places(self, plan: MovePlan) -> None:
        """Keep the host of each worker at the start of the test, from its first plan."""
        self.at, self.rdma, self.began = dict(plan["places"]), dict(plan["rdma"]), float(plan["at"])
        self.keep_offset(plan)

    def keep_round(self, plan: Value, moves: Sequence[Move]) -> None:
        self.round += 1
        self.rdma, self.left = dict(plan["rdma"]), [move.copy() for move in moves]
        self.keep_offset(plan)

    def keep_look(self, look: Value) -> None:
        """Keep a reading of the connections, with the moves that were known at that time."""
        known = {"moves": len(self.moves), "others": list(self.others), "rdma": self.rdma}
        self.looks.append({"nodes": look["nodes"], "hosts": look["hosts"], **known})

    def keep_request(self, requested: CheckedRequest) -> None:
        """Keep the moves of a wave that are requested next."""
        self.pending = [request.copy() for request in requested["moves"]]

    def keep_moves(self, moves: Sequence[Move], is_canary: bool = False) -> None:
        """Keep moves that have ended, or that were refused before they started."""
        self.waves += bool(moves)
        for made in moves:
            requested = [one["move"] for one in self.pending if one["move"]["worker"] == made["worker"]]
            move: Move = {**made, "looks": len(self.looks), "canary": is_canary}
            move.pop("wave", None)
            if requested and "wave" in requested[0]:
                move["wave"] = self.waves
            self.moves.append(move)
            self.pending = [one for one in self.pending if one["move"]["worker"] != made["worker"]]
            self.left = _without(self.left, str(made["worker"]))
        if is_canary and not all(move["ok"] for move in moves):
            self.stopped = next(str(move.get("said") or "the first worker did not move") for move in moves)

    def keep_others(self, reading: OthersMoves) -> None:
        """Keep moves and power events of others, and own moves that the server has although they had no answer."""
        for found in reading["found"]:
            before, move = self.moves[found["place"]], found["move"].copy()
            move.update({"looks": before["looks"], "canary": before["canary"]})
            if "wave" in before:
                move["wave"] = before["wave"]
            self.moves[found["place"]] = move
        self.keep_moves(reading["own"])
        self.others, self.power = list(reading["moves"]), list(reading["power"])
        self.elsewhere = list(reading.get("elsewhere") or [])
        self.keep_offset(reading)
        if not self.is_unwatched:
            self.observed_until = float(reading["at"])

    def keep_end_of_watch(self, at: float) -> None:
        """Keep the time after which no record arrives."""
        self.is_unwatched, self.observed_until = True, at

    def keep_runs(self, reading: Value) -> None:
        """Keep the other runs since the test began, and add the checkpoints: a job may overwrite its own."""
        self.other_runs = list(reading["sentences"])
        self.saved = sorted({*self.saved, *reading["saved"]})

    def keep_verdict(self, verdict: Verdict, of_wave: bool) -> None:
        """Keep the verdict; the first breach, or the first move of its wave that failed, stops the test."""
        self.judged = {**verdict}
        if not self.is_over:
            breach = next((str(found["detail"]) for found in self.judged["breaches"]), "")
            bad = [move for move in self.last_wave if not move["ok"]] if of_wave else []
            self.stopped = self.stopped or breach or next((str(move["said"]) for move in bad if move.get("said")), "")

    def keep_window(self, window: Value) -> None:
        """Keep the verdict on the records so far. The records of the present window become the earlier ones."""
        self.rolled_at = float(window["at"])
        if not window["rolled"]:
            return
        judged = self.judged or {}
        if window["moves"] or window["power"] or judged.get("verdict") != "continuous":
            kept = {key: judged.get(key) for key in ("verdict", "unproven", "notes")}
            self.earlier.append({**window, **kept, "moves": list(window["moves"])})
        self.windows += 1
        self.clock_offsets = self.clock_offsets[-1:]
        self.at = move_lines.hosts_after(self.at, window["moves"])
        self.listed_until, self.others, self.power = float(window["until"]), [], []

    def keep_other_job(self, number: int, known: Value) -> None:
        """Keep what became known about the other job with a number, from 1 on."""
        self.other_jobs[number - 1] = {**self.other_jobs[number - 1], **known}

    def keep_offset(self, reading: Value) -> None:
        """Keep the offset of the server's clock in a reading."""
        if reading.get("clock_offset_s") is not None:
            self.clock_offsets.append(float(reading["clock_offset_s"]))


def _is_of_job(move: Move, ended: float) -> bool:
    """Return whether a move ended before its job did, or never began: it has no time, and its worker did not move."""
    completed = move.get("completed")
    return move.get("started") is None if completed is None else completed < ended


def _without(left: Sequence[Move], worker: str) -> list[Move]:
    """Return the remaining moves after the next one of a worker."""
    index = next((number for number, move in enumerate(left) if move["worker"] == worker), len(left))
    return [*left[:index], *left[index + 1 :]]
