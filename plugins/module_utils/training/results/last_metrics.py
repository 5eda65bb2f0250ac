"""The last metrics that a program wrote to its outputs: JSON lines, CSV with a header, TensorBoard's event files."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..output import event_file

MOST_FILES, MOST_METRICS = 20, 6
HEAD_BYTES, TAIL_BYTES = 4096, 16384
# The event files of TensorBoard have this in their names.
EVENTS, EVENT_BYTES = "tfevents", 1 << 19


def last_metrics(results: str, runs: Sequence[str]) -> dict[str, dict[str, float]]:
    """Return the last numbers in the outputs of runs, by the names of runs and metrics."""
    return {run: of_outputs(Path(results, run, "outputs")) for run in runs}


def of_outputs(folder: Path) -> dict[str, float]:
    """Return the last value of each metric; of several files with a metric, the newest one counts."""
    found: dict[str, float] = {}
    for path in sorted(_files(folder), key=lambda path: path.stat().st_mtime):
        found.update(_last(path))
    return dict(list(found.items())[:MOST_METRICS])


def _files(folder: Path) -> Iterable[Path]:
    paths = [Path(above, name) for above, _folders, names in os.walk(folder) for name in names]
    kinds = [path for path in paths if path.suffix in (".csv", ".jsonl") or EVENTS in path.name]
    return [path for path in kinds if path.is_file() and not path.is_symlink()][:MOST_FILES]


def _last(path: Path) -> dict[str, float]:
    try:
        if EVENTS in path.name:
            return _numbers(event_file.numbers(_end(path)).items())
        head, tail = _ends(path)
    except OSError:
        return {}
    lines = [line for line in tail.splitlines() if line.strip()]
    if not lines:
        return {}
    return _of_csv(head.splitlines()[:1], lines[-1]) if path.suffix == ".csv" else _of_json(lines[-1])


def _ends(path: Path) -> tuple[str, str]:
    """Return the beginning and the end of a file."""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
        return head.decode("utf-8", "replace"), file.read(TAIL_BYTES).decode("utf-8", "replace")


def _end(path: Path) -> bytes:
    """Return the end of an event file, which may be large."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - EVENT_BYTES))
        return file.read(EVENT_BYTES)


def _of_csv(header: list[str], line: str) -> dict[str, float]:
    names = next(csv.reader(io.StringIO("".join(header))), [])
    values = next(csv.reader(io.StringIO(line)), [])
    return _numbers(zip(names, values)) if len(names) == len(values) else {}


def _of_json(line: str) -> dict[str, float]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return _numbers(record.items()) if isinstance(record, dict) else {}


def _numbers(pairs: Iterable[tuple[object, object]]) -> dict[str, float]:
    found = {}
    for name, value in pairs:
        try:
            number = float(value) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else math.nan
        except ValueError:
            continue
        if math.isfinite(number):
            found[str(name)[:40]] = number
    return found
