"""The runs that nodes report, those with a manifest on this machine, and the files in which two of them differ."""

from __future__ import annotations

import difflib
import hashlib
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Refused
from ..running import busy
from . import last_metrics, manifest, run_list, saved_manifests

Answers = Mapping[str, Mapping[str, Any]]
MOST_FILES, MOST_BYTES = 20, 1 << 20
BLOCK = 1 << 20


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
    entries = run_list.listed(runs, manifests, silent, queued)
    lines = _compared(compare, results) if compare else run_list.lines(entries)
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
