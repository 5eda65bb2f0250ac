"""Waiting for several vSphere tasks at once; the server pushes their progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Failed, StillDiffers, TimedOut
from .faults import note_account, remedy_of, words
from .properties import ENDED, Values, read_many, watch
from .sdk import ApiObject
from .session import Session

Progress = Callable[[str, int], None]
QUARTER = 25
STILL_RUNS = "it may still run: see Recent Tasks in the vSphere Client, and run again when it has ended"


@dataclass(frozen=True)
class Started:
    """A running task, with its object and its purpose for errors and progress."""

    task: Any
    target: str
    tried: str
    remedy: str = ""


def wait(session: Session, started: Started, seconds: float, progress: Progress | None = None) -> ApiObject:
    """Wait for a task; return its final info, which contains the server's times."""
    (outcome,) = wait_all(session, [started], seconds, progress)
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def created_object(session: Session, started: Started, seconds: float, progress: Progress | None = None) -> ApiObject:
    """Wait for a task; return the object that it created. A task that succeeds without an object has created none."""
    found = wait(session, started, seconds, progress).result
    if found is None:
        reason = "the server reports success, yet names no object that it created"
        raise StillDiffers(started.target, started.tried, reason, "look at vCenter's log (vpxd.log) and run again")
    return found


def wait_all(
    session: Session, started: Sequence[Started], seconds: float, progress: Progress | None = None
) -> list[ApiObject]:
    """Wait for all tasks; return the final info of each, or the error with which it ended."""
    if not started:
        return []
    deadline = time.monotonic() + seconds
    infos: dict[str, Values] = {}
    waiting = [one.task for one in started]
    for values in watch(session, waiting, ["info.state", "info.progress"], deadline):
        _show(started, values, progress)
        ended = [task for task in waiting if values[task._moId].get("info.state") in ENDED]
        # At once: a busy server forgets a task that has ended, maybe before the last one ends.
        infos.update(read_many(session, ended, ["info"]))
        waiting = [task for task in waiting if task._moId not in infos]
        if not waiting:
            break
    infos.update(read_many(session, waiting, ["info"]))
    for one_info in infos.values():
        note_account(one_info["info"].error, session.params["username"])
    return [_outcome(infos[one.task._moId]["info"], one, seconds) for one in started]


def _show(started: Sequence[Started], values: Mapping[str, Values], progress: Progress | None) -> None:
    for one in started:
        percent = values[one.task._moId].get("info.progress")
        if progress and percent is not None:
            progress(one.target, percent)


def _outcome(info: ApiObject, one: Started, seconds: float) -> ApiObject:
    if info.state == "success":
        return info
    if info.state == "error":
        failed = Failed(one.target, one.tried, words(info.error), remedy_of(info.error, one.remedy))
        failed.__cause__ = info.error
        return failed
    return TimedOut(one.target, one.tried, f"the task did not end within {seconds:.0f} s", one.remedy or STILL_RUNS)


def by_quarters(show: Callable[[int], None]) -> Progress:
    """Return a progress callback that shows the first percentage of each quarter, except for start and end."""
    shown = 0

    def progress(_target: str, percent: int) -> None:
        nonlocal shown
        if shown < percent // QUARTER < 100 // QUARTER:
            shown = percent // QUARTER
            show(percent)

    return progress
