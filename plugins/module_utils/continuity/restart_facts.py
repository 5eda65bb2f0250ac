"""The facts about a run that was stopped and resumed, and the verdict on them.

A program that stops and resumes a job itself builds the same facts and calls ``restart_verdict.judge``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .limits import Breach
from .restart_steps import RankSteps

RESUMED, BROKEN, INCONCLUSIVE = "resumed", "broken", "inconclusive"
FINISHED, STOPPED, DIED, RUNNING = "finished", "stopped", "died", "running"
LOSS_TOLERANCE = 1e-3


class Part(NamedTuple):
    """A part of the time between two attempts, such as the boot of the workers."""

    name: str
    seconds: float


@dataclass(frozen=True)
class GivenCheckpoint:
    """The checkpoint with which an attempt started; without a ``path``, there was none.

    ``step`` is None if neither the checkpoint nor the records show it. ``fault`` is why its content is not that of the
    end of the earlier attempt. ``newer`` are later complete checkpoints of that attempt, ``torn`` later ones with their
    faults.
    """

    path: str
    step: int | None = None
    fault: str = ""
    has_optimizer: bool | None = None
    newer: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """One attempt of a run; ``program`` has a text for each thing that all attempts must have in common.

    ``state`` is empty if the end of the attempt is unknown. ``checkpoint`` is None if it was not recorded, and
    ``parameters`` are the checksums that the ranks reported at the end. ``down`` divides the time from the end of this
    attempt to the start of the next one, and ``waited_s`` is how long a stop waited for a checkpoint while the job
    trained. ``chosen`` are keys of programs that its user changed with the restart. ``steps`` are those that the job
    reported at its end, also if no controller collected its records.
    """

    name: str
    program: Mapping[str, str]
    ranks: Mapping[int, RankSteps]
    size: int
    state: str
    cause: str = ""
    started: float | None = None
    ended: float | None = None
    checkpoint: GivenCheckpoint | None = None
    parameters: tuple[str, ...] = ()
    down: tuple[Part, ...] = ()
    waited_s: float | None = None
    chosen: frozenset[str] = frozenset()
    steps: float = 0


@dataclass(frozen=True)
class RestartLimits:
    """The limits of a verdict; ``accepted`` are keys of programs that may differ.

    With ``is_planned``, each attempt before the last one must have been stopped by a command.
    """

    loss_tolerance: float = LOSS_TOLERANCE
    accepted: frozenset[str] = frozenset()
    is_planned: bool = False


@dataclass(frozen=True)
class Restart:
    """One restart: the attempts, the steps around it, and how the losses of repeated steps compare."""

    before: str
    after: str
    checkpoint: str
    checkpoint_step: int | None
    last_step: int | None
    first_step: int | None
    repeated_steps: int
    losses: str
    parts: tuple[Part, ...]
    save_s: float | None
    repeated_s: float | None
    waited_s: float | None


@dataclass(frozen=True)
class RestartCost:
    """The cost of all restarts of a run, in seconds of the run and of its ranks; None if a time is unknown."""

    lifetime_s: float
    productive_s: float
    goodput: float
    repeated_steps: int
    repeated_s: float
    down_s: float
    save_s: float | None
    rank_s: float


@dataclass(frozen=True)
class RestartVerdict:
    """The verdict with all reasons."""

    verdict: str
    breaches: tuple[Breach, ...]
    unproven: tuple[str, ...]
    notes: tuple[str, ...]
    restarts: tuple[Restart, ...]
    cost: RestartCost | None
