# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Where the ranks of a silent run are in their program, and who waits for whom; pure."""

from __future__ import annotations

from ...durable.calls import NodeCalls
from .launching import watched_nodes
from .training_run import KUBERNETES, TrainingRun


def who_waits(calls: NodeCalls, run: TrainingRun) -> str:
    """Return the sentences about ranks that wait for others; empty if no rank recorded its collectives."""
    if run.o["backend"] == KUBERNETES or not run.o["nccl"]:
        return ""
    options = {"nodes": watched_nodes(run), "folder": run.dir, "recorders": run.recorders}
    return " ".join(calls.here("read_hang", options).get("sentences") or [])


def where_ranks_are(calls: NodeCalls, run: TrainingRun) -> str:
    """Return the lines of the program in which the ranks are; empty if unknown, as in pods."""
    if run.o["backend"] == KUBERNETES:
        return ""
    return str(calls.here("read_stacks", {"nodes": watched_nodes(run), "folder": run.dir}).get("sentence") or "")
