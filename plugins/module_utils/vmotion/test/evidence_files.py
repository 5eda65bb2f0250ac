# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The files of evidence of a vMotion test, made of its journal; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..checks import move_lines
from . import judging
from .trial_state import TrialState


def files(state: TrialState, versions: Mapping[str, str]) -> dict[str, Any]:
    """By name what each file holds; ``versions`` are those of Ansible and of this collection."""
    every = state.every_move
    return {
        "moves": [move_lines.without_events(move) for move in every],
        "events": [event for move in every for event in move.get("events") or []],
        "tasks": [move["task"] for move in every if "task" in move],
        "transport": judging.transports(state),
        "versions": {
            **versions,
            "vcenter": (state.cluster_after or {}).get("vcenter"),
            "hosts": state.hosts,
            "job": state.job,
        },
    }
