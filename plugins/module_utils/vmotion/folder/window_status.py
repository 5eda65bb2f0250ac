# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The state of a cluster's maintenance window in words, from the record of its lock and from its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..checks import move_lines
from ..evidence.facts import Facts
from . import facts_file, trial_folder

Record = Mapping[str, Any]


def unfinished(where: Path, cluster: str) -> Path | None:
    """Return the folder of the unfinished window on this controller; None if there is none."""
    found = [path for path in trial_folder.unfinished(where, cluster) if trial_folder.is_window(path)]
    return found[-1] if found else None


def lines(cluster: str, lock: Record, folder: Path | None) -> Iterator[str]:
    """Yield the owner of the lock, the progress of the window, the workers away from home, and remaining changes."""
    yield _holder(cluster, lock)
    if folder is None:
        return
    yield f"{cluster}: the unfinished window on this controller is in {folder}"
    if (folder / facts_file.NAME).exists():
        yield from _progress(facts_file.read(folder))
    if not lock["held"] or lock["over"]:
        yield f"{cluster}: no run continues it: run the playbook hosts again, or this one with window_action=end"


def _holder(cluster: str, lock: Record) -> str:
    if not lock["held"]:
        return f"{cluster}: no run holds the lock"
    note = f", {lock['note'].replace('of', ' of ')} hosts of a maintenance window" if lock.get("note") else ""
    request = f"; {lock['requester']} requested {lock['request']}" if lock.get("request") else ""
    over = f"; it can be taken over, because {lock['over']}" if lock["over"] else ""
    return f"{cluster}: {lock['owner']} (run {lock['run']}) holds the lock since {lock['since']}{note}{request}{over}"


def _progress(facts: Facts) -> Iterator[str]:
    at_hand = facts.at_hand or "none"
    done = [str(change["host"]) for change in facts.finished_changes]
    left = [host for host in facts.waiting_hosts if host != at_hand]
    yield f"{facts.cluster}: done {_listed(done)}; in progress {at_hand}; remaining {_listed(left)}"
    places = move_lines.hosts_after(facts.at, facts.every_move)
    away = [
        f"{worker} on {host} (home {facts.at[worker]})" for worker, host in places.items() if host != facts.at[worker]
    ]
    yield f"{facts.cluster}: workers away from home: {_listed(away)}"
    if facts.settings.get("drs_override"):
        yield f"{facts.cluster}: until the window is over, DRS does not move the workers"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
