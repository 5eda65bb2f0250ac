"""Watches a training job on all its nodes at once, and stamps every record with the local clock as it arrives."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import runner
from ..core import observer_clock
from ..errors import Failed
from ..guests import supervisor
from . import beside_records
from .link import Link
from .records_file import LOCK_SECONDS, RecordsFile, acquire, lock
from .watched_output import PrintedOutput

WAIT_SECONDS = 0.5
TROUBLE_SECONDS = 1.0
# The two clocks of a controller that is awake drift apart by less.
SLEPT_SECONDS = 1.0
END = "end"
STOPPED, SILENT, OUT_OF_TIME, ABANDONED = "stopped", "silent", "out of time", "abandoned"
WATCHED = "watched already"


class Attended:
    """True while a process has the file locked, and for some seconds after, so that another process can lock it.

    The kernel releases the lock when its process ends, however that ends.
    """

    def __init__(self, file: Path, alone: float) -> None:
        self._file, self._alone = file, alone
        self._checked_at = self._locked_at = time.monotonic()

    def __call__(self) -> bool:
        now = time.monotonic()
        if now - self._checked_at >= LOCK_SECONDS:
            self._checked_at = now
            self._locked_at = now if is_locked(self._file) else self._locked_at
        return now - self._locked_at <= self._alone


def is_locked(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDONLY)
    except OSError:  # no process can hold a file that does not exist
        return False
    try:
        return not lock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)  # releases the lock too


@dataclass(frozen=True)
class WatchOptions:
    """The file of the records, and the ends of the watch: a stop file, a silent job, a time-out, no client left."""

    records: Path
    stop: Path
    silence: float
    timeout: float
    is_needed: Callable[[], bool] = lambda: True
    # A file whose appearance begins a new file of records.
    roll: Path | None = None
    # The file for the output of the job.
    output: Path | None = None


@dataclass
class WatchState:
    """The result of a watch so far."""

    ended: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    last: float = field(default_factory=time.monotonic)
    # The content of the files next to the records.
    beside: dict[str, dict[str, Any]] = field(default_factory=dict)
    troubles_at: float = 0.0
    # Stamped records for which the disk has no room yet.
    pending: bytes = b""


def watch(links: Sequence[Link], options: WatchOptions) -> WatchState:
    """Write the records that arrive until there is a reason to end; one process at a time writes a file of records."""
    with RecordsFile(options.records) as records:
        if not records.is_ours:
            return WatchState(ended=WATCHED)
        if records.cut_incomplete_line():
            # An earlier watch ended: records since then have no time of arrival, only the time on the rank's clock.
            read = beside_records.read(options.records, beside_records.OFFSETS)
            for link in links:
                link.is_resumed = True
                if link.tail:
                    link.go_on_from(read.get(link.name))
        state = WatchState()
        _follow(links, options, records, state)
        return state


def is_watched(records: Path) -> bool:
    """Return whether a process on this machine writes the file of records at present."""
    try:
        handle = os.open(records, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not acquire(handle)
    finally:
        os.close(handle)


def is_left(records: Path) -> bool:
    """Return whether a watch wrote the file of records and has ended."""
    return records.exists() and not is_watched(records)


def troubles(records: Path) -> dict[str, str]:
    """Return, for each node that the watch cannot read at present, the reason."""
    return {str(name): str(why) for name, why in beside_records.read(records, beside_records.TROUBLES).items()}


def _update_files(links: Sequence[Link], records: Path, state: WatchState) -> None:
    """Write the nodes that cannot be read and their views to files next to the records, once a second or at an end."""
    now = time.monotonic()
    ends = {link.name: link.view[END][0] for link in links if END in link.view}
    is_same = not state.ended and ends == state.beside.get(beside_records.ENDS, {})
    if is_same and now - state.troubles_at < TROUBLE_SECONDS:
        return
    state.troubles_at = now
    current: dict[str, dict[str, Any]] = {
        beside_records.TROUBLES: {link.name: why for link in links if (why := link.trouble(now))},
        beside_records.VIEWS: {link.name: dict(link.view) for link in links if link.view},
        beside_records.ENDS: ends,
    }
    # Another watch continues there, so it reads pending records again. One that reads all records needs no such place.
    if not state.pending:
        current[beside_records.OFFSETS] = {link.name: dict(link.offsets) for link in links if link.tail}
    for kind, content in current.items():
        if content != state.beside.get(kind, {}):
            with contextlib.suppress(OSError):  # a full disk must not end the watch; the next call tries again
                beside_records.write(records, kind, content)
                state.beside[kind] = content


def _follow(links: Sequence[Link], options: WatchOptions, records: RecordsFile, state: WatchState) -> None:
    """Write records until there is a reason to end. Their times increase evenly, even if the local clock is set."""
    anchor, began = observer_clock.now() - observer_clock.elapsed(), time.monotonic()
    slept = observer_clock.slept()
    arrivals, printed = _Arrivals(links), PrintedOutput(options.output)
    try:
        while not state.ended:
            for link in arrivals.wait():
                _take(link, state, anchor, slept)
                if not _write_pending(records, state):
                    state.ended = _wait_for_room(links, options, records, state, began)
                    break
            if _has_slept_since(slept):
                _resume(links)
                slept = observer_clock.slept()
            printed.take(links)
            if options.roll is not None:
                records.roll(options.roll)
            state.ended = state.ended or _reason(options, state, began)
            _update_files(links, options.records, state)
    finally:
        arrivals.close()
        for link in links:
            link.close()
        beside_records.remove(options.records)


def _take(link: Link, state: WatchState, anchor: float, slept: float) -> None:
    """Stamp the records that arrived on a link; those that may have waited there during a sleep get no time."""
    lines, arrived = link.read(), anchor + observer_clock.elapsed()
    late, link.late = link.late, []
    _stamp(link, late, state, None)
    # Asked last: the controller may have slept until a moment ago.
    _stamp(link, lines, state, None if _has_slept_since(slept) else arrived)
    state.last = time.monotonic() if lines or late else state.last


def _has_slept_since(slept: float) -> bool:
    """Return whether the controller, such as a laptop, has slept since it had slept for these seconds."""
    return observer_clock.slept() - slept > SLEPT_SECONDS


def _resume(links: Sequence[Link]) -> None:
    """Connect again after a time in which this process did not read the links.

    Records that ranks wrote in the meantime come without a time of arrival, as after a watch that was killed: the
    verdict reports that it had to rely on the clocks of the ranks.
    """
    for link in links:
        link.resume()


def _reason(options: WatchOptions, state: WatchState, began: float) -> str:
    """Return why the watch ends; empty if it goes on."""
    now = time.monotonic()
    if options.stop.exists():
        return STOPPED
    if now - state.last > options.silence:
        return SILENT
    if now - began > options.timeout:
        return OUT_OF_TIME
    return "" if options.is_needed() else ABANDONED


class _Arrivals:
    """Waits for data on the links, and reopens the broken ones."""

    def __init__(self, links: Sequence[Link]) -> None:
        self._links, self._known = links, dict.fromkeys(links, (-1, -1))
        self._selector = selectors.DefaultSelector()

    def wait(self) -> list[Link]:
        for link in self._links:
            link.open()
        # A reopened link often has the descriptor that it, or another link, had before for another file.
        present = {link: (-1 if link.stream is None else link.stream, link.breaks) for link in self._links}
        changed = [link for link in self._links if present[link] != self._known[link]]
        for descriptor in [self._known[link][0] for link in changed if self._known[link][0] >= 0]:
            self._selector.unregister(descriptor)
        for link in [link for link in changed if link.stream is not None]:
            self._selector.register(present[link][0], selectors.EVENT_READ, link)
        self._known = present
        if not self._selector.get_map():
            time.sleep(WAIT_SECONDS)  # every link is broken and waits for its next attempt
            return []
        return [key.data for key, _events in self._selector.select(WAIT_SECONDS)]

    def close(self) -> None:
        self._selector.close()


def _stamp(link: Link, lines: Sequence[str], state: WatchState, now: float | None) -> None:
    """Add the stamped records of some lines to the pending ones."""
    state.lines[link.name] = state.lines.get(link.name, 0) + len(lines)
    stamped = [_stamped(line, now) for line in lines]
    state.unreadable += stamped.count("")
    state.pending += "".join(stamped).encode("utf-8", "replace")


def _write_pending(records: RecordsFile, state: WatchState) -> bool:
    """Append the pending records; return whether the disk has room for them."""
    if not records.append(state.pending):
        return False
    state.pending = b""
    return True


def _wait_for_room(
    links: Sequence[Link], options: WatchOptions, records: RecordsFile, state: WatchState, began: float
) -> str:
    """Wait until the disk has room for the pending records; return why the watch ends, empty if it goes on."""
    while not _write_pending(records, state):
        time.sleep(WAIT_SECONDS)
        state.last = time.monotonic()  # a job that is not read is not silent
        reason = _reason(options, state, began)
        if reason:
            return reason
    _resume(links)
    return ""


def _stamped(line: str, now: float | None) -> str:
    """Return the record with its time of arrival, if there is one, before the last brace (cheaper than a rewrite)."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(record, dict) or "\n" in line:
        return ""
    if now is None:
        return f"{line.rstrip()}\n"
    return f'{line.rstrip()[:-1]}{", " if record else ""}"seen": {now!r}}}\n'


def watch_records(
    nodes: Sequence[Mapping[str, Any]], folder: str, *, tail: int = 0, view: bool = False, **options: Any
) -> dict[str, object]:
    """Keep a connection to each node, and append its records to one file, each with its time of arrival (``seen``).

    A broken connection is opened again; no record is lost or written twice. A watch that continues an earlier one reads
    all records again; those that were written between the two have no ``seen``. ``folder`` is that of the records on
    the nodes. ``tail`` are the bytes at the end of each file with which the first watch begins, 0 for all of it; one
    that continues it begins where that one ended. With
    ``view``, it also reads the utilization of the GPUs, the end of the job, and its output, which it writes to the file
    of the option ``output``.
    """
    links = [Link(node["name"], node["reach"], folder, tail=tail, has_view=view) for node in nodes]
    try:
        state = watch(links, watch_options(**options))
    except OSError as error:
        raise Failed(options["records"], "collect the records of the job", str(error.strerror or error)) from error
    unreadable = state.unreadable + sum(node.noise for node in links)
    return {"ended": state.ended, "nodes": {node.name: _of(node, state) for node in links}, "unreadable": unreadable}


def watch_options(
    records: str,
    stop: str,
    silence: float = 600.0,
    timeout: float = 86400.0,
    roll: str = "",
    output: str = "",
    **clients: Any,
) -> WatchOptions:
    """Return the options of a watch: its files, and the seconds without a record and in all after which it ends."""
    files = (Path(records), Path(stop))
    more = [Path(path) if path else None for path in (roll, output)]
    return WatchOptions(*files, silence, timeout, _has_client(**clients), *more)


def _has_client(started_by: int = 0, attended: str = "", alone: float = 600.0) -> Callable[[], bool]:
    """Return whether a client of the watch is left.

    ``started_by`` is the number of the process that started the watch, and ``attended`` a file that its user keeps
    locked; ``alone`` are the seconds after which the watch ends without a lock.
    """
    starter = supervisor.identity(started_by) if started_by else None
    is_attended = Attended(Path(attended), alone) if attended else None
    return lambda: (starter is None or supervisor.is_alive(starter)) and (is_attended is None or is_attended())


def _of(node: Link, state: WatchState) -> dict[str, object]:
    lines = state.lines.get(node.name, 0)
    return {"lines": lines, "breaks": node.breaks, "said": node.last_error, "noise": node.noise}


def new_folder(results: str) -> str:
    """Make a new folder for the files of a watch; the watch of a killed controller may still write to the old one."""
    try:
        os.makedirs(results, mode=0o700, exist_ok=True)
        return tempfile.mkdtemp(prefix="watch-", dir=results)
    except OSError as error:
        raise Failed(results, "make a folder for the records", str(error.strerror or error)) from error


def reported_end(records: str) -> bool:
    """Return whether a node has reported the end of the job of a file of records."""
    return bool(beside_records.read(Path(records), beside_records.ENDS))


def output_of(records: Path) -> Path:
    """Return the file with the output of the watch of a file of records."""
    return records.with_name(f"{records.name}.watch")


def why_ended(records: str) -> str:
    """Return the last line that the watch of a file of records printed: its result, or the error of Python."""
    try:
        lines = output_of(Path(records)).read_text(encoding="utf-8", errors="replace").splitlines()
        printed = json.loads(lines[-1])
        return str(printed.get("msg") or printed["ended"])
    except (OSError, IndexError):
        return ""
    except (ValueError, KeyError, AttributeError):
        return lines[-1]


def main() -> None:
    """Watch until the watch ends, and print why.

    The watch has no parent among the processes of its playbook: it survives if all of these are killed.
    """
    if os.fork():
        os._exit(0)
    options = json.load(sys.stdin)
    sys.stdout.write(json.dumps(runner.outcome(lambda: watch_records(**options))) + "\n")
    sys.stdout.flush()
