# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The pace of a watched job, shown line by line and as a page until the job makes no more steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import runner
from ..training.curve import Curve
from ..training.live_pace import LivePace
from ..training.live_state import JobMove, LiveState, silence_text
from ..vmotion.watch import watcher
from ..vmotion.watch.growing_file import GrowingFile
from ..vmotion.watch.job_moves import JobMoves
from . import live_files

Show = Callable[[str, str], None]


@dataclass(frozen=True)
class PageOptions:
    """The content of the page of a job, and its folder; without a ``folder``, no page is written.

    ``steps`` is the last step of the job, 0 if it is unknown; a job that makes more is followed until its records end.
    ``metrics`` is another folder for the metrics, such as that of node_exporter. ``vmotion_tests`` is the folder of
    vMotion tests, of which the page shows the moves of the job in ``run_dir``.
    """

    steps: int = 0
    folder: str = ""
    metrics: str = ""
    vmotion_tests: str = ""
    run_dir: str = ""
    state: str = "running"
    why: str = ""
    run: str = ""


class _Shown:
    """The pace as lines and as files."""

    def __init__(self, records: Path, page: PageOptions, pace: LivePace, curve: Curve, show: Show) -> None:
        self._records, self._page, self._pace, self._curve, self._show = records, page, pace, curve, show
        self._moves = JobMoves(Path(page.vmotion_tests), page.run_dir) if page.vmotion_tests else None

    def show(self) -> None:
        """Show the pace."""
        troubles = watcher.troubles(self._records)
        self._show("training", self._pace.line())
        for node, why in troubles.items():
            self._show("training", f"{node} cannot be read: {why}")
        self.write(troubles)

    def moves(self, now: float) -> list[JobMove]:
        """Return the moves of the job's workers so far."""
        return self._moves.since(self._curve.began, now) if self._moves and self._curve.began else []

    def write(self, troubles: dict[str, str]) -> None:
        """Write the files; the job continues without them, for example on a full disk."""
        page, now = self._page, time.time()
        if not page.folder:
            return
        state = LiveState(
            *(page.run, now, page.state, page.why, page.steps),
            *(self._pace.summary(), self._pace.ranks(), self._curve.points(), troubles, self._curve.began),
        )
        state = live_files.with_views(state, self._records, Path(page.folder), self.moves(now))
        for files in live_files.live_files(state, Path(page.folder), page.metrics):
            done = runner.converge_one(runner.OfProgram(), files)
            if done.get("failed"):
                self._show("page", str(done["msg"]))


def follow_records(
    records: str,
    show: Show,
    *,
    warmup: int = 0,
    quiet: float = 15.0,
    every: float = 5.0,
    lines: bool = True,
    **page: Any,
) -> dict[str, Any]:
    """Show the pace every few seconds until all steps are made, or no record has arrived for ``quiet`` seconds.

    Without ``lines``, only the page shows it.

    ``ended`` is ``finished`` if every rank made all steps, ``unwatched`` if no watch collects records any longer, so
    that the state of the job is unknown, else ``quiet``: the job may have ended, or may not train yet.
    """
    file, curve, options = Path(records), Curve(warmup), PageOptions(**page)
    pace = LivePace(options.steps, curve)
    shown = _Shown(file, options, pace, curve, show if lines else _nothing)
    with GrowingFile(file) as growing:
        ended = _follow(growing, pace, quiet, every, shown.show)
    shown.write(watcher.troubles(file))
    ended = "unwatched" if ended == "quiet" and watcher.is_left(file) else ended
    drawn = {"images_per_sec": curve.rate(), "points": curve.points()}
    summary = {**pace.summary(), "first_silent": silence_text(pace.first_silence(), shown.moves(time.time()))}
    return {"ended": ended, "last_seen": pace.last_seen, "pace": summary, "curve": drawn}


def _nothing(_about: str, _what: str) -> None:
    """Show nothing."""


def _follow(growing: GrowingFile, pace: LivePace, quiet: float, every: float, show: Callable[[], None]) -> str:
    """Follow the records until all steps are made or no record arrives, show the pace, and return how it ended.

    The number of steps may be an estimate: if the job makes more, they are followed too.
    """
    received = shown = time.monotonic()
    while True:
        now = time.monotonic()
        if pace.feed(growing.new_records()):
            received = now
        is_finished = pace.is_done and time.time() - (pace.last_seen or 0.0) > min(quiet, pace.usual_silence)
        if is_finished or now - shown >= every:
            shown = now
            show()
        if is_finished:
            return "finished"
        if now - received > quiet:
            return "quiet"
        growing.wait()
