# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The files of a job that is followed: its page and its metrics."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

from ..training.live_state import LiveState, metrics
from ..training.reports.report_files import PRIVATE, FileModes, ReportFiles
from . import live_page

PAGE, METRICS = "live.html", "metrics.prom"
NEW_FOLDER, FOR_ALL = 0o755, 0o644


def live_files(state: LiveState, folder: Path, metrics_folder: str | None) -> Iterator[ReportFiles]:
    """Yield the files of the run, and those for a collector of metrics, which is another user."""
    yield ReportFiles(folder, {PAGE: live_page.page(state), METRICS: metrics(state)}, PRIVATE)
    if metrics_folder:
        other = Path(metrics_folder)
        mode = stat.S_IMODE(other.stat().st_mode) if other.is_dir() else NEW_FOLDER
        yield ReportFiles(other, {f"dml_{state.name}.prom": metrics(state)}, FileModes(mode, FOR_ALL))
