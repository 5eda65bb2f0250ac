"""The state of a cluster's maintenance window in words, from its lock, its folder and its hosts out of service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..evidence import move_lines, restart_lines
from ..evidence.facts import Facts
from . import trial_folder

Record = Mapping[str, Any]
LEFT_OUT = (
    ", and no run continues it: the playbook hosts finishes its change and returns it, esxi_power with "
    "state=in_service returns it as it is"
)


def unfinished(where: Path, cluster: trial_folder.Cluster) -> Path | None:
    """Return the folder of the unfinished window on this controller; None if there is none."""
    found = [path for path in trial_folder.unfinished(where, cluster) if trial_folder.is_window(path)]
    return found[-1] if found else None


def lines(cluster: str, lock: Record, folder: Path | None, out: Sequence[Record] = ()) -> Iterator[str]:
    """Yield the owner of the lock, the hosts of runs out of service, and the progress of the unfinished window."""
    yield _holder(cluster, lock)
    is_attended = lock["held"] and not lock["over"]
    for host in out:
        if host["ours"]:
            yield f"{cluster}: {host['host']} is out of service ({host['why']}){'' if is_attended else LEFT_OUT}"
    if folder is None:
        return
    yield f"{cluster}: the unfinished window on this controller is in {folder}"
    if (folder / trial_folder.FACTS).exists():
        yield from _progress(trial_folder.read_facts(folder))
    if not is_attended:
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
    yield from filter(None, [restart_lines.taken(facts)])
    if facts.settings.get("drs_override"):
        yield f"{facts.cluster}: until the window is over, DRS does not move the workers"


def _listed(names: list[str]) -> str:
    return ", ".join(names) or "none"
