"""The state of a job that is followed, for its page, and as metrics in the text format of Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...core import prometheus
from ...core.names import short_name
from ...core.prometheus import Gauge
from ...watch.curve import Point
from ...watch.live_pace import Pace, RankPace
from .gpu_use import GpuUse, NodeGpus

RUNNING = "running"


class JobMove(NamedTuple):
    """A move of a worker of the job: its begin and end, and its kind.

    The kind is "running", "moved", "failed", or "external" for a move that the vMotion test did not make.
    """

    worker: str
    source: str
    target: str
    begin: float
    until: float
    kind: str

    @property
    def is_running(self) -> bool:
        return self.kind == "running"


# A stun ends a connection a little before or after the move to which it belongs.
NEAR_SECONDS = 2.0


def silence_text(silent: tuple[str, float, str] | None, moves: Sequence[JobMove]) -> str:
    """Return the sentence about the first silence of a job, its time and its host, with the move at that time."""
    if silent is None:
        return ""
    sentence, at, host = silent
    near = [move for move in moves if move.begin - NEAR_SECONDS <= at <= move.until + NEAR_SECONDS]
    near.sort(key=lambda move: (short_name(move.worker) != short_name(host), -move.begin))
    if not near:
        return sentence
    move = near[0]
    does = f"{move.worker} {'failed to move' if move.kind == 'failed' else 'moved'} from {move.source} to {move.target}"
    return f"{sentence or 'the ranks fell silent together'}, while {does}"


class LiveState(NamedTuple):
    """One job at the time ``now``: its pace, its ranks, its curve, and the nodes that cannot be read.

    ``state`` is that of the job, ``why`` the cause of its end, ``began`` the arrival of its first record,
    ``output`` the last lines of its output, and ``silence_limit`` the longest time without a step, 0 for any.
    """

    name: str
    now: float
    state: str
    why: str
    total_steps: int
    pace: Pace
    ranks: Sequence[RankPace]
    points: Sequence[Point]
    troubles: Mapping[str, str]
    began: float = 0.0
    gpus: Sequence[NodeGpus] = ()
    moves: Sequence[JobMove] = ()
    output: Sequence[str] = ()
    silence_limit: float = 0.0

    @property
    def is_running(self) -> bool:
        return self.state in (RUNNING, "waiting")

    @property
    def age(self) -> float | None:
        """Return the seconds since the last step of the rank that has been silent longest."""
        return max((self.now - rank["seen"] for rank in self.ranks), default=None)


# Each metric of a rank: its name, its help and its value.
RANK_METRICS: Sequence[tuple[str, str, Callable[[RankPace], float | None]]] = (
    ("dml_training_step", "The last step of the rank.", lambda rank: rank["step"]),
    ("dml_training_steps_per_second", "The steps per second of the rank.", lambda rank: rank["steps_per_sec"]),
    ("dml_training_images_per_second", "The images per second of the rank.", lambda rank: rank["images_per_sec"]),
    ("dml_training_loss", "The loss of the last step of the rank.", lambda rank: rank["loss"]),
    (
        "dml_training_last_step_timestamp_seconds",
        "The arrival of the last step of the rank.",
        lambda rank: rank["seen"],
    ),
    (
        "dml_training_longest_silence_seconds",
        "The longest time between two steps of the rank.",
        lambda rank: rank["longest_s"],
    ),
)
# Each metric of a GPU: its name, its help, and its value.
GPU_METRICS: Sequence[tuple[str, str, Callable[[GpuUse], float | None]]] = (
    (
        "dml_training_gpu_utilization_ratio",
        "The utilization of the GPU between two readings.",
        lambda gpu: None if gpu.busy is None else gpu.busy / 100,
    ),
    ("dml_training_gpu_memory_used_bytes", "The used memory of the GPU.", lambda gpu: gpu.used),
    ("dml_training_gpu_memory_total_bytes", "The memory of the GPU.", lambda gpu: gpu.total),
)
# Each state has a series, so that an earlier one ends.
STATES = (RUNNING, "waiting", "finished", "died", "stopped")


def metrics(state: LiveState) -> str:
    """Return the metrics of a job, of its ranks and of its GPUs; a value that is unknown is left out."""
    return prometheus.text(_gauges(state))


def _gauges(state: LiveState) -> Iterator[Gauge]:
    run = {"run": state.name}
    states = [({**run, "state": each}, int(each == state.state)) for each in sorted({*STATES, state.state})]
    yield Gauge("dml_training_running", "Whether the job runs.", [(run, int(state.is_running))])
    yield Gauge("dml_training_state", "Whether the job is in this state.", states)
    yield Gauge("dml_training_read_timestamp_seconds", "When the values of the run were read.", [(run, state.now)])
    limit = state.silence_limit or None
    about = "The age of the last step from which the job is silent."
    yield Gauge("dml_training_silence_limit_seconds", about, [(run, limit)])
    for name, text, value_in in RANK_METRICS:
        ranks = [({**run, "rank": rank["rank"], "node": rank["host"]}, value_in(rank)) for rank in state.ranks]
        yield Gauge(name, text, ranks)
    gpus = [({**run, "node": node.node, "gpu": gpu.number}, gpu) for node in state.gpus for gpu in node.gpus]
    for name, text, value_of in GPU_METRICS:
        yield Gauge(name, text, [(labels, value_of(gpu)) for labels, gpu in gpus])
    yield from move_gauges("dml_training", run, state.moves)


def move_gauges(prefix: str, labels: Mapping[str, str], moves: Sequence[JobMove]) -> Iterator[Gauge]:
    """Yield the number of moves by their kind, and the last move of each worker: its series are those of its hosts."""
    kinds = sorted({move.kind for move in moves})
    counts = [({**labels, "result": kind}, sum(move.kind == kind for move in moves)) for kind in kinds]
    yield Gauge(f"{prefix}_moves", "The moves of workers so far, by result.", counts)
    last = {move.worker: move for move in sorted(moves, key=lambda move: move.begin)}
    shown = [
        ({**labels, "worker": one.worker, "source": one.source, "target": one.target, "result": one.kind}, one)
        for one in last.values()
    ]
    begins = [(each, move.begin) for each, move in shown]
    yield Gauge(f"{prefix}_last_move_begin_timestamp_seconds", "The begin of the last move of the worker.", begins)
    durations = [(each, move.until - move.begin) for each, move in shown]
    yield Gauge(f"{prefix}_last_move_duration_seconds", "The time that the last move of the worker took.", durations)
