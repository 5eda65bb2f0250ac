"""Where the ranks of a silent run are in their program, and who waits for whom; pure."""

from __future__ import annotations

from .controller_site import TrainingCalls
from .launching import watched_nodes
from .training_run import KUBERNETES, TrainingRun


def who_waits(calls: TrainingCalls, run: TrainingRun) -> str:
    """Return the sentences about ranks that wait for others; empty if no rank recorded its collectives."""
    if run.o["backend"] == KUBERNETES or not run.o["nccl"]:
        return ""
    return " ".join(calls.nodes.read_hang(watched_nodes(run), run.dir, run.recorders))


def where_ranks_are(calls: TrainingCalls, run: TrainingRun) -> str:
    """Return the lines of the program in which the ranks are; empty if unknown, as in pods."""
    if run.o["backend"] == KUBERNETES:
        return ""
    return calls.nodes.read_stacks(watched_nodes(run), run.dir)
