"""A window by restart in words: what it has stopped and shut down, and its result; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...core.findings import listed
from .facts import Facts

BROKEN = "broken"


def taken(facts: Facts) -> str:
    """Return which job is stopped and which workers are off, and the ways to bring them back; empty without any."""
    known = facts.restart
    found = []
    if known.get("stop") and known["stop"]["state"] == "stopped" and not known.get("started"):
        found.append(f"the job is stopped at {checkpoint_in_words(known['stop']['checkpoint'])}")
    elif known.get("touched") and not known.get("stop") and not known.get("started"):
        found.append("the job may be stopped")
    if known.get("off"):
        found.append(f"{listed([worker['name'] for worker in known['workers']])} may be off")
    if known.get("reservation"):
        found.append(f"Slurm keeps the reservation {known['reservation']} of its nodes")
    ways = "the playbook hosts, or dml.vsphere.window with window_action=end, powers on and starts the job again"
    return f"Cluster {facts.cluster}: {', '.join(found)}: {ways}." if found else ""


def checkpoint_in_words(checkpoint: Mapping[str, object] | None, whose: str = "the") -> str:
    if not checkpoint:
        return "no checkpoint"
    step = "" if checkpoint.get("step") is None else f" (step {checkpoint['step']})"
    return f"{whose} checkpoint {checkpoint['path']}{step}"


def reasons(facts: Facts) -> Iterator[str]:
    """Yield why a window by restart failed."""
    yield from facts.failures
    if facts.stopped:
        yield f"{facts.stopped.rstrip('.')}."
    verdict = facts.restart.get("verdict") or {}
    if verdict.get("verdict") == BROKEN:
        yield str(verdict["lines"][0])


def lines(facts: Facts) -> Iterator[str]:
    """Yield the result of a window by restart: where the job went on, and its cost by part."""
    known = facts.restart
    started = known.get("started") or {}
    if started.get("why"):
        yield f"no attempt was started: {started['why']}"
    if started.get("run"):
        yield f"the job goes on as {started['run']}"
    parts = [f"{name} {seconds:.0f} s" for name, seconds in known.get("parts") or []]
    if parts:
        yield f"without the job: {', '.join(parts)}"
    for worker, host in sorted((known.get("now_on") or {}).items()):
        if facts.at.get(worker) != host:
            yield f"{worker} was powered on on {host}, it was on {facts.at.get(worker)}"
    yield from (known.get("verdict") or {}).get("lines") or []
