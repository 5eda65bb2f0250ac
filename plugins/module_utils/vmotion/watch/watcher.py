# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Watches a training job on all its nodes at once, and stamps every record with this machine's clock as it arrives."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import selectors
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .link import Link

WAIT_SECONDS = 0.5
LONGEST_LINE = 1 << 16
TROUBLE_SECONDS = 1.0
OWN_SECONDS = 1.0
STOPPED, SILENT, OUT_OF_TIME, ALONE = "stopped", "silent", "out of time", "nobody asks any more"
WATCHED = "watched already"


@dataclass(frozen=True)
class Desired:
    """Where records go, and when to end: a file that appears, a job that is silent, a time, nobody who wants it."""

    records: Path
    stop: Path
    silence: float
    timeout: float
    is_wanted: Callable[[], bool] = lambda: True


@dataclass
class Seen:
    """What was seen in all."""

    ended: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    last: float = field(default_factory=time.monotonic)
    troubles: dict[str, str] = field(default_factory=dict)
    told: float = 0.0
    # Stamped records for which the disk has no room yet.
    pending: bytes = b""


def watch(links: Sequence[Link], desired: Desired) -> Seen:
    """Write what arrives until there is a reason to end; only one process at a time writes a file of records."""
    handle = os.open(desired.records, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        if not _owned(handle, patience=OWN_SECONDS):
            return Seen(ended=WATCHED)
        if _cut(handle):
            # An earlier watch ended: what was written since then nobody saw, and only the ranks' own clocks tell when.
            for link in links:
                link.is_resumed = True
        seen = Seen()
        _follow(links, desired, handle, seen)
        return seen
    finally:
        os.close(handle)


def is_watched(records: Path) -> bool:
    """Whether a process of this machine writes the file of records just now."""
    try:
        handle = os.open(records, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _owned(handle)
    finally:
        os.close(handle)


def is_left(records: Path) -> bool:
    """Whether a watch wrote the file of records, and none does any more."""
    return records.exists() and not is_watched(records)


def troubles(records: Path) -> dict[str, str]:
    """By node why the watch knows nothing of it just now."""
    try:
        found = json.loads(_beside(records).read_text())
    except (OSError, ValueError):
        return {}
    return {str(name): str(why) for name, why in found.items()} if isinstance(found, dict) else {}


def _beside(records: Path) -> Path:
    return records.with_name(f"{records.name}.troubles")


def _tell_troubles(links: Sequence[Link], records: Path, seen: Seen) -> None:
    """Write the troubles beside the records, for whoever waits for records."""
    now = time.monotonic()
    if now - seen.told < TROUBLE_SECONDS:
        return
    found = {link.name: why for link in links if (why := link.trouble(now))}
    seen.told = now
    if found != seen.troubles:
        with contextlib.suppress(OSError):  # a full disk must not end the watch; the next look tries again
            _write_troubles(records, found)
            seen.troubles = found


def _write_troubles(records: Path, found: dict[str, str]) -> None:
    new = records.with_name(f"{records.name}.troubles.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(found, file)
    new.replace(_beside(records))


def _follow(links: Sequence[Link], desired: Desired, handle: int, seen: Seen) -> None:
    """Until there is a reason to end; ``seen`` goes on evenly, also when this clock is set."""
    anchor, began = time.time() - time.monotonic(), time.monotonic()
    arrivals = _Arrivals(links)
    try:
        while not seen.ended:
            for link in arrivals.wait():
                lines = link.read()
                now = time.monotonic()
                late, link.late = link.late, []
                _take(link, late, seen, None)
                _take(link, lines, seen, anchor + now)
                seen.last = now if lines or late else seen.last
                if not _put(handle, seen):
                    seen.ended = _wait_for_room(links, desired, handle, seen, began)
                    break
            _tell_troubles(links, desired.records, seen)
            seen.ended = seen.ended or _reason(desired, seen, began)
    finally:
        arrivals.close()
        for link in links:
            link.close()
        with contextlib.suppress(FileNotFoundError):
            _beside(desired.records).unlink()


def _owned(handle: int, patience: float = 0.0) -> bool:
    """Take the file for this process alone; the kernel gives it back when the process ends, however that happens.

    Whoever asks whether it is watched holds it for a moment too: that moment is waited for.
    """
    deadline = time.monotonic() + patience
    while not _taken(handle):
        if time.monotonic() >= deadline:
            return False
        time.sleep(OWN_SECONDS / 20)
    return True


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _cut(handle: int) -> int:
    """The bytes of whole lines in the file; a last line that a killed process left half written is dropped."""
    size = os.fstat(handle).st_size
    start = max(0, size - LONGEST_LINE)
    end = start + os.pread(handle, LONGEST_LINE, start).rfind(b"\n") + 1 if size else 0
    os.ftruncate(handle, end)
    return end


def _reason(desired: Desired, seen: Seen, began: float) -> str:
    """Why to end, empty while there is no reason."""
    now = time.monotonic()
    if desired.stop.exists():
        return STOPPED
    if now - seen.last > desired.silence:
        return SILENT
    if now - began > desired.timeout:
        return OUT_OF_TIME
    return "" if desired.is_wanted() else ALONE


class _Arrivals:
    """Waits for the links on which something arrives, and opens those that broke."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links, self._known = links, dict.fromkeys(links, (-1, -1))
        self._selector = selectors.DefaultSelector()

    def wait(self) -> list[Link]:
        """The links on which something arrived."""
        for link in self._links:
            descriptor, (known, breaks) = link.open(), self._known[link]
            # A link that was opened again has the same number often, and is another file for all that.
            if (descriptor, link.breaks) == (known, breaks):
                continue
            if known >= 0:
                self._selector.unregister(known)
            if descriptor is not None:
                self._selector.register(descriptor, selectors.EVENT_READ, link)
            self._known[link] = (-1 if descriptor is None else descriptor, link.breaks)
        if not self._selector.get_map():
            time.sleep(WAIT_SECONDS)  # every link is broken and waits for its next try
            return []
        return [key.data for key, _events in self._selector.select(WAIT_SECONDS)]

    def close(self) -> None:
        """Wait no more."""
        self._selector.close()


def _take(link: Link, lines: Sequence[str], seen: Seen, now: float | None) -> None:
    """Add the stamped records of some lines to those that are to be written."""
    seen.lines[link.name] = seen.lines.get(link.name, 0) + len(lines)
    stamped = [_stamped(line, now) for line in lines]
    seen.unreadable += stamped.count("")
    seen.pending += "".join(stamped).encode("utf-8", "replace")


def _put(handle: int, seen: Seen) -> bool:
    """Append the pending records, all or none of them; return whether the disk has room for them."""
    size, left = os.fstat(handle).st_size, seen.pending
    try:
        while left:
            left = left[os.write(handle, left) :]
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        os.ftruncate(handle, size)
        return False
    seen.pending = b""
    return True


def _wait_for_room(links: Sequence[Link], desired: Desired, handle: int, seen: Seen, began: float) -> str:
    """Wait until the disk has room for the pending records; return why the watch ends, empty if it goes on.

    Records that ranks wrote in the meantime come without the time at which they were seen, as after a watch that was
    killed: the verdict reports that it had to rely on the clocks of the ranks.
    """
    while not _put(handle, seen):
        time.sleep(WAIT_SECONDS)
        seen.last = time.monotonic()  # a job that is not read is not silent
        reason = _reason(desired, seen, began)
        if reason:
            return reason
    for link in links:
        link.resume()
    return ""


def _stamped(line: str, now: float | None) -> str:
    """The record with the time at which it was seen, where there is one, before its last brace: cheaper than anew."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(record, dict) or "\n" in line:
        return ""
    if now is None:
        return f"{line.rstrip()}\n"
    return f'{line.rstrip()[:-1]}{", " if record else ""}"seen": {now!r}}}\n'
