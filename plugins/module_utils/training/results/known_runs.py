"""The runs that nodes report and those with a manifest here: their table, and the files in which two of them differ."""

from __future__ import annotations

import difflib
import hashlib
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Refused
from ..running import busy
from . import last_metrics, manifest, saved_manifests
from .manifest import Manifest

Answers = Mapping[str, Mapping[str, Any]]
MOST_FILES, MOST_BYTES = 20, 1 << 20
BLOCK = 1 << 20
RUNNING, WAITING, UNKNOWN = "running", "waiting", "unknown"
NOTHING = "There is no training run on the nodes or among the results."
COLUMNS = ("RUN", "BY", "STARTED", "SECONDS", "STATE", "STEP", "LOSS", "NODES", "RATE", "END")


def list_runs(
    nodes: Answers,
    results: str,
    compare: Sequence[str] = (),
    places: busy.Nodes | None = None,
    queued: Sequence[Mapping[str, str]] = (),
) -> dict[str, object]:
    """Return the runs on nodes and those in the folder of results as a table, or the differences of two of them.

    ``nodes`` has what training_info reported of the jobs on each node, ``places`` how the controller reaches them,
    ``queued`` the jobs in the queue of a scheduler.
    """
    runs = busy.running(nodes, places)
    manifests, errors = saved_manifests.read_all(Path(results))
    silent = [name for name, answer in nodes.items() if "jobs" not in answer]
    entries = listed(runs, manifests, silent, queued)
    lines = _compared(compare, results) if compare else table_lines(entries)
    return {"runs": runs, "entries": entries, "lines": lines, "warnings": errors}


def _compared(names: Sequence[str], results: str) -> list[str]:
    """Return the differences between two runs."""
    if len(names) != 2:
        remedy = "name two: -e training_compare=ONE,OTHER"
        raise Refused(", ".join(names), "compare training runs", f"{len(names)} runs are named", remedy)
    one, other = (saved_manifests.read(Path(results, name)) for name in names)
    code = differences(*(Path(results, name, "code.tar") for name in names))
    left, right = (last_metrics.of_outputs(Path(results, name, "outputs")) for name in names)
    metrics = [(f"{key} in outputs", left.get(key), right.get(key)) for key in dict.fromkeys((*left, *right))]
    return manifest.compared(one, other, code, metrics)


def differences(one: Path, other: Path) -> list[tuple[str, str, str]]:
    """Return a row for each file that differs, with the lines that each program has in its place."""
    try:
        with tarfile.open(one) as first, tarfile.open(other) as second:
            left, right = _sums(first), _sums(second)
            names = sorted(name for name in {*left, *right} if left.get(name) != right.get(name))
            rows = [
                _row(name, first if name in left else None, second if name in right else None)
                for name in names[:MOST_FILES]
            ]
    except (OSError, tarfile.TarError):
        return []
    more = len(names) - MOST_FILES
    return [*rows, ("code", f"and {more} more files", "")] if more > 0 else rows


def _sums(archive: tarfile.TarFile) -> dict[str, str]:
    """Return the checksum of each file, and the target of each link."""
    found = {}
    for member in archive:
        content = archive.extractfile(member) if member.isfile() else None
        sha256 = hashlib.sha256(member.linkname.encode(errors="surrogateescape"))
        while content and (block := content.read(BLOCK)):
            sha256.update(block)
        found[member.name] = sha256.hexdigest()
    return found


def _row(name: str, one: tarfile.TarFile | None, other: tarfile.TarFile | None) -> tuple[str, str, str]:
    title = f"code {name}"
    if one is None or other is None:
        return title, "no such file" if one is None else "a file", "no such file" if other is None else "a file"
    left, right = _lines(one, name), _lines(other, name)
    if left is None or right is None:
        return title, "differs", "differs"
    removed = added = 0
    for kind, begin, end, first, last in difflib.SequenceMatcher(None, left, right, autojunk=True).get_opcodes():
        removed, added = removed + (end - begin) * (kind != "equal"), added + (last - first) * (kind != "equal")
    return title, f"{removed} other lines", f"{added} other lines"


def _lines(archive: tarfile.TarFile, name: str) -> list[str] | None:
    """Return the lines of a text file; None for another one."""
    member = archive.getmember(name)
    content: Any = archive.extractfile(member) if member.isfile() and member.size <= MOST_BYTES else None
    try:
        return str(content.read().decode("utf-8")).splitlines() if content else None
    except UnicodeDecodeError:
        return None


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


def table_lines(entries: Iterable[Mapping[str, object]]) -> list[str]:
    rows = [_cells(entry) for entry in entries]
    return manifest.table([COLUMNS, *rows]) if rows else [NOTHING]


def _cells(entry: Mapping[str, Any]) -> list[str]:
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
