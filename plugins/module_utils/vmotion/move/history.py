# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Moves and power changes of workers since a time, from the events of vCenter, whoever caused them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from ...vsphere.session import Session
from ...workers import existing_workers
from ..checks import move_events
from . import clock_offset, move_watch, roll


def since(session: Session, cluster: str, wanted: Sequence[str] | None, moment: float) -> dict[str, Any]:
    """Moves and power changes of workers since a time; all times are on the controller's clock."""
    refs = existing_workers.worker_refs(session, cluster)
    names = roll.chosen(cluster, list(refs), wanted)
    theirs = clock_offset.offset(session)
    begin = datetime.fromtimestamp(moment + theirs.seconds, timezone.utc)
    moves, power = [], []
    for name in names:
        events = [
            {**one, "time": theirs.ours(datetime.fromisoformat(one["at"]))}
            for one in move_watch.events(session, refs[name], name, begin)
        ]
        moves += move_events.moves(name, events)
        power += move_events.power(name, events)
    return {
        "moves": sorted(moves, key=lambda one: float(one["started"])),
        "power": power,
        "places": {name: move_watch.place(session, refs[name]).plain for name in names},
    }
