# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Where the ranks of a silent run are in their program; pure."""

from __future__ import annotations

from ...durable.calls import NodeCalls
from .launching import watched_nodes
from .training_run import KUBERNETES, TrainingRun


def where_ranks_are(calls: NodeCalls, run: TrainingRun) -> str:
    """Return the lines of the program in which the ranks are; empty if unknown, as in pods."""
    if run.o["backend"] == KUBERNETES:
        return ""
    return str(calls.here("read_stacks", {"nodes": watched_nodes(run), "folder": run.dir}).get("sentence") or "")
