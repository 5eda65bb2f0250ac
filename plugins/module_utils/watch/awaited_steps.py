"""Wait until every rank of a watched job has made a number of steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.names import short_name
from ..errors import Failed, Refused, TimedOut
from . import watcher
from .growing_file import GrowingFile
from .live_pace import AwaitedSteps, StepsSince

Show = Callable[[str, str], None]
SHOW_SECONDS = 5.0
UNWATCHED_SECONDS = 15.0
WITHOUT_STEPS = "all its nodes were read, and no rank has reported a step"
RECORD_STEPS = "record the steps of the script with dml_records, as the page of the role training describes"
UNWATCHED = "no watch collects the records of its nodes any more"


def wait_for_steps(records: str, awaited: AwaitedSteps, show: Show) -> dict[str, Any]:
    """Wait until every rank has made some steps since a time, and return the ranks and their last steps."""
    counted, file = StepsSince(awaited.since), Path(records)
    with GrowingFile(file) as growing:
        is_late = _wait(growing, counted, awaited, show, file)
    nodes = {short_name(host) for host in counted.hosts.values()}
    return {
        "asked": _is_requested(awaited),
        "late": is_late,
        "ranks": counted.size,
        "fewest": counted.fewest(),
        "step": counted.step,
        "hosts": {node: counted.ranks_on(node) for node in sorted(nodes)},
    }


def _is_requested(awaited: AwaitedSteps) -> bool:
    """Return whether the file that ends the wait exists."""
    return bool(awaited.ended_by) and Path(awaited.ended_by).exists()


def _wait(growing: GrowingFile, counted: StepsSince, awaited: AwaitedSteps, show: Show, records: Path) -> bool:
    """Wait until every rank has advanced, and show the progress; return whether that is still to come."""
    steps, timeout, first, at_most = awaited.steps, awaited.timeout, awaited.first, awaited.at_most
    started = shown = watched = time.monotonic()
    while not at_most or time.monotonic() - started <= at_most:
        counted.feed(growing.new_records())
        if (counted.size and counted.fewest() >= steps) or _is_requested(awaited):
            return False
        now = time.monotonic()
        if now - started > timeout:
            raise _late(counted, steps, timeout, records)
        tried = f"make {steps} steps on every rank"
        if first and now - started > first and not counted.size and not watcher.troubles(records):
            raise Refused("the job", tried, WITHOUT_STEPS, RECORD_STEPS)
        watched = watched if watcher.is_left(records) else now
        if now - watched > UNWATCHED_SECONDS:
            raise Failed("the job", tried, UNWATCHED, "start the watch of its nodes again")
        if now - shown >= SHOW_SECONDS:
            shown = now
            show("job", f"step {counted.step}, {counted.fewest()} of {steps} steps on every rank")
            for node, why in watcher.troubles(records).items():
                show("job", f"{node} cannot be read: {why}")
        growing.wait()
    return True


def _late(counted: StepsSince, steps: int, timeout: float, records: Path) -> TimedOut:
    late = ", ".join(map(str, counted.behind(steps))) or "no step of any rank arrived"
    unread = [f"{node} cannot be read: {why}" for node, why in watcher.troubles(records).items()]
    cause = "; ".join([f"within {timeout:.0f} s these ranks did not: {late}", *unread])
    return TimedOut("the job", f"make {steps} steps on every rank", cause, "check the log of the job on the launcher")
