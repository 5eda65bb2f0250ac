# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The state of a job that is followed, for its page, and as metrics in the text format of Prometheus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

RUNNING = "running"


class LiveState(NamedTuple):
    """One job at the time ``now``: its pace, its ranks, its curve, and the nodes that cannot be read.

    ``state`` is that of the job, ``why`` the cause of its end.
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

    @property
    def is_running(self) -> bool:
        """Return whether the job continues."""
        return self.state in (RUNNING, "waiting")

    @property
    def age(self) -> float | None:
        """Return the seconds since the last step of the rank that is silent for the longest time."""
        return max((self.now - rank["seen"] for rank in self.ranks), default=None)


# Each metric: its name, its help and the key of a rank.
METRICS = (
    ("dml_training_step", "The last step of the rank.", "step"),
    ("dml_training_steps_per_second", "The steps of the rank in a second.", "steps_per_sec"),
    ("dml_training_images_per_second", "The images of the rank in a second.", "images_per_sec"),
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
