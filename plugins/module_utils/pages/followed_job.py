"""The pace of a watched job, shown as lines and as a page until the job makes no more steps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import runner
from ..core import observer_clock
from ..training.output.gpu_use import gpus_of
from ..training.output.live_state import JobMove, LiveState, metrics, silence_text
from ..training.results.report_files import PRIVATE, ReportFiles, for_collector
from ..training.runs.controller_site import PROGRESS, Followed, FollowOptions, JobCurve
from ..trials.folder.job_moves import JobMoves
from ..watch import beside_records, watcher
from ..watch.curve import Curve
from ..watch.growing_file import GrowingFile
from ..watch.live_pace import LivePace, Pace, longest_silence
from ..watch.shown_lines import last_lines
from ..watch.watched_output import ShownOutput
from . import live_page

Show = Callable[[str, str], None]
# The kinds of lines of a job on the screen, and the reasons why following it ends.
LOG, BOTH = "log", "both"
ENDED, FINISHED, QUIET, DUE, APART = "ended", "finished", "quiet", "due", "apart"
# Nodes send their records at least this often.
SETTLE_SECONDS = 0.8
PAGE, METRICS, OUTPUT = "live.html", "metrics.prom", "output.log"
OUTPUT_BYTES = 1 << 16


class _Shown:
    """The pace as lines and as files."""

    def __init__(self, records: Path, page: FollowOptions, pace: LivePace, curve: Curve, show: Show) -> None:
        self._records, self._page, self._pace, self._curve, self._show = records, page, pace, curve, show
        self._moves = JobMoves(Path(page.vmotion_tests), page.run_dir) if page.vmotion_tests else None

    def show(self) -> None:
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
        page, now = self._page, observer_clock.now()
        if not page.folder:
            return
        state = LiveState(
            *(page.run, now, page.state, page.why, page.steps),
            *(self._pace.summary(), self._pace.ranks(), self._curve.points(), troubles, self._curve.began),
        )
        if page.silence:
            state = state._replace(silence_limit=longest_silence(page.silence, self._pace.phase))
        state = with_views(state, self._records, Path(page.folder), self.moves(now))
        for files in live_files(state, Path(page.folder), page.metrics):
            done = runner.converge_one(runner.OfProgram(), files)
            if done.get("failed"):
                self._show("page", str(done["msg"]))


def follow(records: str, options: FollowOptions, show: Show) -> Followed:
    """Show the pace every few seconds until the job ends, or it is quiet.

    ``ended`` is ``ended`` if a node reported the end of the job, ``finished`` if every rank made all steps,
    ``unwatched`` if no watch collects records any longer, so that the state of the job is unknown, ``apart`` if ranks
    train separate models, otherwise ``quiet``: the job may have ended, or may not be training yet.
    """
    file, curve = Path(records), Curve(options.warmup)
    pace = LivePace(options.steps, curve)
    shown = _Shown(file, options, pace, curve, show if options.shows in (PROGRESS, BOTH) else _nothing)
    log = ShownOutput(Path(options.output), show if options.shows in (LOG, BOTH) else None)
    with GrowingFile(file) as growing:
        ended = _Following(file, growing, pace, shown, log, options).until_end(options.quiet, options.every)
    shown.write(watcher.troubles(file))
    ended = "unwatched" if ended == QUIET and watcher.is_left(file) else ended
    drawn: JobCurve = {"images_per_sec": curve.rate(), "points": curve.points()}
    summary: Pace = {
        **pace.summary(),
        "first_silent": silence_text(pace.first_silence(), shown.moves(observer_clock.now())),
    }
    has_records = pace.last_seen is not None or file.exists()
    return {"ended": ended, "last_seen": pace.last_seen, "has_records": has_records, "pace": summary, "curve": drawn}


def _nothing(_about: str, _what: str) -> None:
    """Show nothing."""


@dataclass
class _Following:
    """The records and the output of a job while they arrive."""

    records: Path
    growing: GrowingFile
    pace: LivePace
    shown: _Shown
    log: ShownOutput
    options: FollowOptions

    def until_end(self, quiet: float, every: float) -> str:
        """Show the pace from the first step until the job ends, all steps are made or no record arrives.

        Return how following ended. The number of steps may be an estimate: further steps are followed too.
        """
        began = received = shown = time.monotonic()
        has_started = False
        while True:
            now = time.monotonic()
            if self.pace.feed(self.growing.new_records()):
                received = now
            self.log.show()
            is_due = bool(self.options.at_most) and now - began > self.options.at_most
            why = self._ended(now - received, quiet) or (DUE if is_due else "")
            starts, has_started = self.pace.has_started and not has_started, self.pace.has_started
            if starts or why in (ENDED, FINISHED, APART) or now - shown >= every:
                shown = now
                self.shown.show()
            if why:
                return why
            self.growing.wait()

    def _ended(self, silence: float, quiet: float) -> str:
        """Return why following ends; empty if it goes on."""
        if beside_records.read(self.records, beside_records.ENDS):
            # The last records of other nodes arrive later.
            return ENDED if silence > SETTLE_SECONDS else ""
        if self.options.ends_apart and self.pace.apart:
            return APART
        pace, since = self.pace, observer_clock.now() - (self.pace.last_seen or 0.0)
        if pace.is_done and not self.options.awaits_end and since > min(quiet, pace.usual_silence):
            return FINISHED
        longest = longest_silence(self.options.silence, pace.phase)
        is_silent = bool(pace.last_seen and longest) and since > longest
        return QUIET if is_silent or silence > quiet else ""


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
        yield for_collector(metrics_folder, state.name, metrics(state))
