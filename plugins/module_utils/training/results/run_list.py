"""The list of training runs: those that run on the nodes, and those whose manifests are on the controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..running import busy
from . import manifest
from .manifest import Manifest

RUNNING, WAITING, UNKNOWN = "running", "waiting", "unknown"
NOTHING = "There is no training run on the nodes or among the results."
COLUMNS = ("RUN", "BY", "STARTED", "SECONDS", "STATE", "STEP", "LOSS", "NODES", "RATE", "END")


def listed(
    running: Iterable[Mapping[str, object]],
    manifests: Iterable[Manifest],
    unreachable: Iterable[str],
    queued: Iterable[Mapping[str, str]] = (),
) -> list[dict[str, Any]]:
    """Return one entry for each run, the oldest first; a run without end on nodes that answered is unknown.

    Two users may have runs of one name. ``queued`` has the jobs in the queue of a scheduler.
    """
    ended = [_ended(each, set(unreachable)) for each in manifests]
    entries = {(str(each["name"]), str(each["by"])): each for each in ended}
    for job in queued:
        _queue(job, entries)
    for run in running:
        own = [key for key in entries if key[0] == run["name"] and not run["asked_by"]]
        key = own[0] if own else (str(run["name"]), str(run["asked_by"] or run["user"]))
        entries[key] = _running(run, entries.get(key, {}))
    return sorted(entries.values(), key=lambda entry: (entry["started"] or 0, entry["name"]))


def _queue(job: Mapping[str, str], entries: dict[tuple[str, str], dict[str, object]]) -> None:
    """Take the state of a job for the run that has no end on this controller; others are listed if they wait."""
    own = [entry for (name, _by), entry in entries.items() if name == job["name"] and entry["state"] == UNKNOWN]
    for entry in own:
        is_alive = job["state"] in (RUNNING, WAITING)
        cause = job["cause"] if is_alive else f"{job['cause']}; {entry['cause']}"
        entry.update(state=job["state"], cause=cause)
    if not own and job["state"] == WAITING:
        absent = dict.fromkeys(("started", "step", "rate", "steps_per_sec", "loss", "seconds"))
        key = (job["name"], job["user"])
        entries.setdefault(
            key, {**absent, "name": key[0], "by": key[1], "state": WAITING, "nodes": [], "cause": job["cause"]}
        )


def _running(run: Mapping[str, object], known: Mapping[str, object]) -> dict[str, object]:
    return {
        "name": run["name"],
        "by": run["asked_by"] or run["user"],
        "started": manifest.number(run["started"]),
        "state": RUNNING,
        "step": run["step"],
        "nodes": known.get("nodes") or run["nodes"],
        "rate": None,
        "steps_per_sec": None,
        "loss": None,
        "seconds": None,
        "cause": "",
    }


def _ended(each: Manifest, unreachable: set[str]) -> dict[str, Any]:
    end = each.get("end", {})
    silent = sorted(unreachable.intersection(each["nodes"]))
    cause = f"unreachable: {', '.join(silent)}" if silent else f"follow it with training_name={each['name']}"
    return {
        "name": each["name"],
        "by": each.get("asked_by") or "",
        "started": manifest.number(each.get("started")),
        "state": end.get("state") or UNKNOWN,
        "step": end.get("steps"),
        "nodes": list(each["nodes"]),
        "rate": manifest.number(end.get("images_per_sec")),
        "steps_per_sec": manifest.number(end.get("steps_per_sec")),
        "loss": end.get("loss"),
        "seconds": manifest.seconds(each),
        "cause": str(end.get("cause") or "") if end else cause,
    }


def lines(entries: Iterable[Mapping[str, object]]) -> list[str]:
    rows = [_row(entry) for entry in entries]
    return manifest.table([COLUMNS, *rows]) if rows else [NOTHING]


def _row(entry: Mapping[str, Any]) -> list[str]:
    loss = entry["loss"]
    return [
        str(entry["name"]),
        str(entry["by"] or manifest.ABSENT),
        busy.moment(entry["started"]) if entry["started"] else manifest.ABSENT,
        manifest.ABSENT if entry["seconds"] is None else f"{entry['seconds']:.0f}",
        str(entry["state"]),
        manifest.ABSENT if entry["step"] is None else str(entry["step"]),
        manifest.ABSENT if loss is None else f"{loss:.4g}" if isinstance(loss, float) else str(loss),
        ",".join(map(str, entry["nodes"])) or manifest.ABSENT,
        _rate(entry),
        str(entry["cause"] or manifest.ABSENT),
    ]


def _rate(entry: Mapping[str, object]) -> str:
    """Return the rate in images, or in steps if the script reports no images."""
    if entry["rate"] is not None:
        return f"{entry['rate']:.1f} images/s"
    return manifest.ABSENT if entry["steps_per_sec"] is None else f"{entry['steps_per_sec']:.2f} steps/s"
