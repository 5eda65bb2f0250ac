# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The files of a job that is followed: its page and its metrics."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..training.gpu_use import gpus_of
from ..training.live_state import JobMove, LiveState, metrics
from ..training.reports.report_files import PRIVATE, FileModes, ReportFiles
from ..training.shown_lines import last_lines
from ..vmotion.watch import beside_records
from . import live_page

PAGE, METRICS, OUTPUT = "live.html", "metrics.prom", "output.log"
OUTPUT_BYTES = 1 << 16
NEW_FOLDER, FOR_ALL = 0o755, 0o644


def with_views(state: LiveState, records: Path, folder: Path, moves: Sequence[JobMove]) -> LiveState:
    """Return the state with the moves, and with the GPUs and the output that the watch reads in addition to records."""
    views = beside_records.read(records, beside_records.VIEWS) if state.is_running else {}
    return state._replace(moves=moves, gpus=gpus_of(views, state.now), output=last_lines(_end_of(folder / OUTPUT)))


def _end_of(path: Path) -> str:
    """Return the end of the output of a job; empty without an output."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - OUTPUT_BYTES))
            return file.read(OUTPUT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def live_files(state: LiveState, folder: Path, metrics_folder: str | None) -> Iterator[ReportFiles]:
    """Yield the files of the run, and those for a collector of metrics, which is another user."""
    yield ReportFiles(folder, {PAGE: live_page.page(state), METRICS: metrics(state)}, PRIVATE)
    if metrics_folder:
        other = Path(metrics_folder)
        mode = stat.S_IMODE(other.stat().st_mode) if other.is_dir() else NEW_FOLDER
        yield ReportFiles(other, {f"dml_{state.name}.prom": metrics(state)}, FileModes(mode, FOR_ALL))
