# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The recorders of a run's collectives, and who waits for whom when the run is silent; pure."""

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
