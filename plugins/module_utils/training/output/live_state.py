# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The state of a job that is followed, for its page, and as metrics in the text format of Prometheus."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.names import short_name
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
        """Return whether the move has no end yet."""
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

    ``state`` is that of the job, ``why`` the cause of its end, ``began`` the arrival of its first record, and
    ``output`` the last lines of its output.
    """

    name: str
    now: float
    state: str
    why: str
    total_steps: int
    pace: Mapping[str, Any]
    ranks: Sequence[Mapping[str, Any]]
    points: Sequence[Mapping[str, Any]]
    troubles: Mapping[str, str]
    began: float = 0.0
    gpus: Sequence[NodeGpus] = ()
    moves: Sequence[JobMove] = ()
    output: Sequence[str] = ()

    @property
    def is_running(self) -> bool:
        """Return whether the job continues."""
        return self.state in (RUNNING, "waiting")

    @property
    def age(self) -> float | None:
        """Return the seconds since the last step of the rank that has been silent longest."""
        return max((self.now - rank["seen"] for rank in self.ranks), default=None)


# Each metric: its name, its help and the key of a rank.
METRICS = (
    ("dml_training_step", "The last step of the rank.", "step"),
    ("dml_training_steps_per_second", "The steps per second of the rank.", "steps_per_sec"),
    ("dml_training_images_per_second", "The images per second of the rank.", "images_per_sec"),
    ("dml_training_loss", "The loss of the last step of the rank.", "loss"),
    ("dml_training_last_step_timestamp_seconds", "The arrival of the last step of the rank.", "seen"),
    ("dml_training_longest_silence_seconds", "The longest time between two steps of the rank.", "longest_s"),
)


def metrics(state: LiveState) -> str:
    """Return the metrics of all ranks; a value that is unknown is left out."""
    return "".join(f"{line}\n" for line in _lines(state))


def _lines(state: LiveState) -> Iterator[str]:
    run = _quoted(state.name)
    yield from _head("dml_training_running", "Whether the job runs.")
    yield f"dml_training_running{{run={run}}} {int(state.is_running)}"
    for name, text, key in METRICS:
        known = [rank for rank in state.ranks if rank[key] is not None]
        if known:
            yield from _head(name, text)
        for rank in known:
            labels = f'run={run},rank="{rank["rank"]}",node={_quoted(rank["host"])}'
            yield f"{name}{{{labels}}} {_number(rank[key])}"
    yield from _gpu_lines(run, state.gpus)


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


def _gpu_lines(run: str, nodes: Sequence[NodeGpus]) -> Iterator[str]:
    for name, text, value_of in GPU_METRICS:
        values = [(node.node, gpu.number, value_of(gpu)) for node in nodes for gpu in node.gpus]
        known = [(node, index, value) for node, index, value in values if value is not None]
        if known:
            yield from _head(name, text)
        for node, index, value in known:
            yield f'{name}{{run={run},node={_quoted(node)},gpu="{index}"}} {_number(value)}'


def _head(name: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} gauge"


def _quoted(text: str) -> str:
    """Return the value of a label."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)
