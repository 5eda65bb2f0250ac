# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The state of a vMotion test, as the entries of its journal give it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, TypedDict, cast

from ...continuity.limits import read_limits
from ...core.names import short_name

Entry = Mapping[str, Any]
LONGEST_WAIT_S = 86_400.0
# Events that are dated wrong by less are still found.
CLOCK_SET_S = 5.0


def is_same_wave(move: Entry, other: Entry) -> bool:
    """Return whether two moves are the same, or ran at once."""
    return move is other or (move.get("wave") is not None and move["wave"] == other.get("wave"))


class _LaterSettings(TypedDict, total=False):
    # Journals of tests that started before these settings existed lack them.
    kubernetes: dict[str, Any]
    # The seconds between two checkpoints of the job, 0 if not known.
    checkpoint_seconds: int
    # A maintenance window: the hosts, the profile and the options of their change.
    window: dict[str, Any]
    # An observation of moves that others make: the seconds between two judgements, the records that are kept, and the
    # user's command. Nothing is written to vCenter.
    observe: dict[str, Any]
    site: str
    max_moves: int


class Settings(_LaterSettings):
    """The options of a test, as its journal keeps them. The documentation of the module vmotion_test explains them."""

    cluster: str
    workers: list[str]
    launcher: str
    user: str
    run_dir: str
    records: str
    nodes: list[dict[str, Any]]
    rounds: int
    duration: int
    canary: str
    return_home: bool
    one_per_host: bool
    warmup_steps: int
    steps: int
    warm_timeout: int
    move_timeout: int
    look_timeout: int
    finish_timeout: int
    ends_job: bool
    stun_budget: float
    guest_checks: bool
    checkpoints: str
    checkpoint_minutes: int
    accept: list[str]
    limits: dict[str, Any]
    require: list[str]
    go_on: bool
    drs_override: str


REQUIRED = frozenset(Settings.__annotations__) - frozenset(_LaterSettings.__annotations__)


class Job(TypedDict, total=False):
    """A job as training_job_info or mpijob_info returns it; the keys that the test uses."""

    state: str
    launcher: dict[str, Any] | None
    why: str
    pods: dict[str, Any] | None
    silences: list[str] | None
    started: float | None
    ended: float | None


@dataclass
class HostChange:
    """The change of a host in a maintenance window.

    ``needs`` is None until the profile was applied since the last boot; ``out_at`` and ``back_at`` are the times of the
    end and of the return of its service.
    """

    host: str
    is_out: bool = False
    is_continued: bool = False
    needs: list[str] | None = None
    changed: bool = False
    rounds: int = 0
    reboots: int = 0
    out_at: float = 0.0
    back_at: float = 0.0


class Look(TypedDict):
    """One reading of the connections of the ranks, with the counters of the hosts that belong to it.

    ``hosts`` is None until the counters are read. ``moves`` is the number of earlier moves, ``others`` has the moves
    of others, and ``rdma`` the RDMA device of each worker, as known at that time.
    """

    nodes: dict[str, Any]
    hosts: list[dict[str, Any]] | None
    moves: int
    others: list[dict[str, Any]]
    rdma: dict[str, str]


@dataclass
class TrialState:
    """The state of a test; ``lately`` has the kinds of the entries since the last plan, move, verdict or the end.

    ``tried`` has the steps that failed for the present controller, ``kept`` those of them that restore or free
    something.
    """

    settings: Settings = field(default_factory=lambda: cast(Settings, {}))
    last_at: float = 0.0
    # Fields of the present controller.
    run: str = ""
    is_watched: bool = False
    is_overridden: bool = False
    tried: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)
    # Fields of the test.
    began: float = 0.0
    job: Job | None = None
    job_now: Job | None = None
    cluster_before: dict[str, Any] | None = None
    cluster_after: dict[str, Any] | None = None
    at: dict[str, str] = field(default_factory=dict)
    rdma: dict[str, str] = field(default_factory=dict)
    warm: dict[str, Any] | None = None
    is_measured: bool = False
    looks: list[Look] = field(default_factory=list)
    canary: dict[str, Any] | None = None
    round: int = 0
    left: list[dict[str, Any]] = field(default_factory=list)
    managers: list[dict[str, Any]] | None = None
    # The started moves of the wave at hand, and the number of waves so far.
    pending: list[dict[str, Any]] = field(default_factory=list)
    waves: int = 0
    moves: list[dict[str, Any]] = field(default_factory=list)
    others: list[dict[str, Any]] = field(default_factory=list)
    power: list[dict[str, Any]] | None = None
    # The offsets of the server's clock in this window, at the plans and whenever its events were read.
    clock_offsets: list[float] = field(default_factory=list)
    judged: dict[str, Any] | None = None
    stopped: str = ""
    failures: list[dict[str, Any]] = field(default_factory=list)
    lately: list[str] = field(default_factory=list)
    is_owed: bool = False
    is_reviewed: bool = True
    is_over: bool = False
    is_freed: bool = False
    may_outlast: bool = False
    checksums: dict[str, str] = field(default_factory=dict)
    heard_until: float = 0.0
    hosts: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] | None = None
    # Fields of an observation: whether its end was requested, the events that the user's command got, and the windows
    # that were judged before the present one; those with events are in ``earlier``.
    is_asked_to_end: bool = False
    hooked: set[str] = field(default_factory=set)
    windows: int = 0
    earlier: list[dict[str, Any]] = field(default_factory=list)
    rolled_at: float = 0.0
    told_until: float = 0.0
    saved: list[str] = field(default_factory=list)
    # Fields of a maintenance window: the host at hand, and the hosts that are back in service.
    host: HostChange | None = None
    host_changes: list[HostChange] = field(default_factory=list)

    @property
    def waiting_hosts(self) -> list[str]:
        """Return the hosts of the maintenance window that are not changed yet; empty without one."""
        changed = {change.host for change in self.host_changes}
        return [host for host in (self.settings.get("window") or {}).get("hosts") or [] if host not in changed]

    @property
    def cluster(self) -> str:
        """Return the name of the cluster in vCenter."""
        return str(self.settings["cluster"])

    @property
    def next_wave(self) -> list[dict[str, Any]]:
        """Return the moves that come next and run at once."""
        wave = self.left[0].get("wave") if self.left else None
        return self.left[:1] if wave is None else list(takewhile(lambda move: move.get("wave") == wave, self.left))

    @property
    def last_wave(self) -> list[dict[str, Any]]:
        """Return the last moves that ran at once."""
        return [move for move in self.moves if is_same_wave(move, self.moves[-1])]

    @property
    def every_move(self) -> list[dict[str, Any]]:
        """Return the moves of the test, then those of others."""
        return [*self.moves, *self.others]

    @property
    def outlives_job(self) -> bool:
        """Return whether a maintenance window goes on after the end of its job, which has finished."""
        return bool(self.settings.get("window")) and (self.job_now or {}).get("state") == "finished"

    @property
    def resume_deadline_s(self) -> float:
        """Return the seconds after a move by which every rank must have continued, at most a day."""
        return min(read_limits(self.settings["limits"]).resume_deadline_s, LONGEST_WAIT_S)

    def keep_offset(self, entry: Entry) -> None:
        """Keep the offset of the server's clock in an entry; journals of earlier versions have none."""
        if entry.get("clock_offset_s") is not None:
            self.clock_offsets.append(float(entry["clock_offset_s"]))

    @property
    def server_clock_set_s(self) -> float:
        """Return the seconds by which the server's clock was set during the test; 0 for errors of measurement."""
        own = [move for move in self.moves if move.get("clock_offset_s") is not None]
        offsets = [*self.clock_offsets, *(float(move["clock_offset_s"]) for move in own)]
        offsets += [float(move["clock_offset_s"]) + float(move.get("clock_set_s") or 0.0) for move in own]
        spread = max(offsets) - min(offsets) if offsets else 0.0
        return spread if spread > CLOCK_SET_S else 0.0

    @property
    def judged_moves(self) -> list[dict[str, Any]]:
        """Return the moves of the test without those of a maintenance window that its job did not live to see."""
        ended = (self.job_now or {}).get("ended")
        if not self.outlives_job or ended is None:
            return self.moves
        return [move for move in self.moves if (move.get("completed") or ended) < ended]

    @property
    def ranks(self) -> dict[str, list[int]]:
        """Return the ranks by the name of the worker's VM, or by the name of the guest if no VM has that name."""
        names = {short_name(worker): worker for worker in self.at}
        by_worker: dict[str, list[int]] = {}
        for host, ranks in ((self.warm or {}).get("hosts") or {}).items():
            by_worker.setdefault(names.get(short_name(host), host), []).extend(ranks)
        return by_worker

    def since_last(self, kind: str) -> list[str]:
        """Return the kinds of the entries from the last one of a kind on; all of ``lately`` if there is none."""
        start = max((index for index, name in enumerate(self.lately) if name == kind), default=0)
        return self.lately[start:]
