"""The types of the moves and facts that a verdict judges, and of the verdict. Readers check the values of users."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, TypedDict


class BeforeAndAfter(TypedDict, total=False):
    """Two readings of one value: text, a list, or text by worker."""

    before: object
    after: object


class MoveEvidence(TypedDict, total=False):
    """The vSphere facts of a move; ``gpus`` are the PCI IDs on the hosts, ``encryption`` the setting of the worker."""

    hot_migration: bool | None
    encrypted: bool | None
    power_cycled: bool | None
    host: BeforeAndAfter
    gpus: BeforeAndAfter
    encryption: str
    stun_expected_s: float | None


class WorkerPlace(TypedDict):
    """The host of a worker, its GPUs, its power state, its last boot, and whether its moves are encrypted."""

    host: str
    gpus: list[str]
    power: str
    powered_on: str | None
    encryption: str


class EarlierRequest(TypedDict):
    """The time of a request, and the state of its worker then."""

    at: float
    place: WorkerPlace


# Keys of results and journals: the error of the server, and the request of a move whose call had no answer.
class _Words(TypedDict, total=False):
    said: str
    asked: EarlierRequest


class PlannedMove(TypedDict):
    """A move as it is planned."""

    worker: str
    source: str
    target: str


class Move(PlannedMove, _Words, total=False):
    """One move, with times on the clock of the records' ``seen``.

    A move that never started has ``started: None``, one in progress ``completed: None``. One that another user started
    is ``external``: it is judged like any other, named in ``notes``, and ignored by ``moved``.
    """

    # The plan: the number of moves that start together, and the expected stun.
    wave: int
    stun_s: float | None
    # The server's task.
    started: float | None
    completed: float | None
    seconds: float | None
    ok: bool
    by: str
    chain: int
    attached: bool
    task: Mapping[str, str]
    events: Sequence[Mapping[str, Any]]
    vsphere: MoveEvidence | None
    clock_offset_s: float
    clock_error_s: float
    clock_set_s: float
    # The job: the ranks on the worker, the earlier readings of its connections, and whether no rank can be on it.
    ranks: Sequence[int]
    looks: int
    canary: bool
    external: bool


class PowerEvent(TypedDict):
    """A power event of a virtual machine, during a move or not, on the clock of ``seen``."""

    worker: str
    at: float
    by: str
    what: str


class HostChange(TypedDict, total=False):
    """A host that was out of service; ``back_at`` is None while it still is."""

    host: str
    began: float
    out_at: float
    back_at: float | None
    reboots: int
    attended: bool


class JobFacts(TypedDict, total=False):
    """Observations other than the records. Lists are in the order of the moves; None: nothing was observed."""

    launcher: BeforeAndAfter
    # "unproven" or None for a transport that could not be verified.
    transport: Sequence[BeforeAndAfter | None]
    vsphere: Sequence[MoveEvidence | None]
    power: Sequence[PowerEvent] | None
    # The ranks on each worker, as far as known; an empty list means that no rank runs there.
    ranks: Mapping[str, Sequence[int]]
    # The final parameters of ranks, by file or rank.
    checksums: Mapping[str, str]
    # The changes of the pods of a job on Kubernetes, and the nodes that Kubernetes reported as not ready, as sentences.
    pods: Sequence[str] | None
    silences: Sequence[str] | None
    # The cause of death if the job died.
    died: str
    # Only the cost needs these: hosts out of service, the seconds between two checkpoints, the times of those in the
    # outputs, and a caution about the site, such as that it is simulated.
    hosts: Sequence[HostChange]
    checkpoint_s: float | None
    saved: Sequence[float]
    site: str | None
    # The time by which vCenter's clock was set: its events cannot be dated then.
    server_clock_set_s: float | None
    # The time until which the observer listened, with which a currently silent job is judged.
    observed_until: float | None


class RestartCost(TypedDict):
    """The work that a job would repeat if it restarted from its last checkpoint each time."""

    source: str
    interval_s: float | None
    restarts: int
    repeated_s: float
    wasted_s: float


class Lost(TypedDict):
    """The images that the silences cost, and those that a slower pace cost; steps if the images are unknown."""

    lost: float
    slower: float
    lost_unit: str


class HostCost(Lost):
    """The cost of a host that was out of service, and the numbers of the moves that emptied it."""

    host: str
    out_at: float
    back_at: float | None
    reboots: int
    moves: list[int]
    longest_stall_s: float | None


class Cost(TypedDict):
    """The cost in the seconds since the first disturbance; the rate is that of the undisturbed job."""

    since: float
    seconds: float
    ranks: int
    steps_per_s: float
    goodput: float | None
    stalled_s: float
    stall_from_s: float
    wasted_s: float
    wasted_unit: str
    slow_s: float
    restart: RestartCost | None
    hosts: list[HostCost]


class ShownGap(TypedDict):
    """A time without a step of a rank."""

    rank: int
    step: int
    at: float
    seconds: float
    phase: str


class MoveVerdict(TypedDict, total=False):
    """A move, and what the job did around it, together with the moves that overlap it."""

    worker: str | None
    ranks: Sequence[int] | None
    ok: bool | None
    started: float | None
    completed: float | None
    moved: bool
    judged_with: list[int]
    gap_s: float | None
    gap: ShownGap | None
    source: str
    throughput: Mapping[str, object]
    steps: Mapping[str, int]
    resumed_s: float | None


class Verdict(TypedDict, total=False):
    """A verdict with its reasons. That of a trial also has the moves that it did not make, and its earlier windows."""

    verdict: str
    moved: str
    breaches: list[dict[str, Any]]
    unproven: list[str]
    notes: list[str]
    longest_gap_s: float | None
    longest_gap: ShownGap | None
    longest_gap_by_phase_s: Mapping[str, float]
    source: str
    moves: list[MoveVerdict]
    unattributed: Sequence[ShownGap | None]
    clock_steps: Sequence[Mapping[str, object]]
    cost: Cost | None
    not_made: list[str]
    other_runs: list[str]
    windows: int
    earlier: list[dict[str, Any]]
