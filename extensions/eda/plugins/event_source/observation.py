# SPDX-License-Identifier: GPL-3.0-or-later
"""Event source of Event-Driven Ansible: what an observation of a training job finds.

It follows the journals that the playbook dml.vsphere.observe writes on this machine, and connects to nothing. Each
event has ``observation`` with its ``kind``:

- ``move``: a worker moved. ``move`` has its worker, source, target, user and times.
- ``power``: a worker was switched on or off. ``power`` has its worker, time, user and the vCenter events.
- ``stalled``: a move stalled the job for at least ``stall_seconds``. ``move`` as above, ``gap_s`` is the silence.
- ``broken``: the job is broken. ``detail`` is the reason.
- ``ended``: the observation ended. ``passed`` is its result, ``detail`` the reason if it failed.

``cluster`` and ``folder`` are those of the observation. Events of observations that ended before are not sent. A
journal that another user may have written is not read, and a line that no playbook writes is skipped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCUMENTATION = r"""
---
short_description: Follow the observation of a training job
description:
  - Follows the journals that the playbook dml.vsphere.observe writes, and sends each move, power event, stall and
    breach as an event.
options:
  dir:
    description: The folder of the observations on this machine, as vmotion_test_dir names it.
    type: str
    required: true
  interval:
    description: Seconds between two looks at the journals.
    type: float
    default: 2
  stall_seconds:
    description: The shortest silence of the job after a move that is sent as stalled.
    type: float
    default: 10
"""

EXAMPLES = r"""
- dml.vsphere.observation:
    dir: /var/lib/dml/reports/vmotion_test
"""

JOURNAL = "journal.jsonl"
# The keys of the journal with events of the server and with verdicts; those of intervals end in a number.
OTHERS, LAST_OTHERS = "others ", "last events of others"
VERDICT, LAST_VERDICT = "judged ", "last verdict"
# A journal is read in blocks. No playbook writes a longer line, and one look reads a part of a large journal.
BLOCK, LONGEST_LINE, MOST_OF_ONE_LOOK = 1 << 18, 4 << 20, 16 << 20
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
OF_MOVE = ("worker", "source", "target", "by", "started", "completed", "ok")
Event = dict[str, Any]
LOG = logging.getLogger(__name__)


class Observed:
    """One journal: its new lines as events, each event once."""

    def __init__(self, path: Path, stall_seconds: float) -> None:
        self.path, self._stall_seconds = path, stall_seconds
        self._offset, self._cluster, self._is_observation = 0, "", False
        self._rest, self._is_skipping = b"", False
        self._moves: list[Event] = []
        self._sent: set[str] = set()

    def new_events(self) -> Iterator[Event]:
        """Yield the events of the complete lines that were appended since the last call."""
        with open(_opened(self.path), "rb") as file:
            file.seek(self._offset)
            left = MOST_OF_ONE_LOOK
            while left > 0 and (block := file.read(BLOCK)):
                left -= len(block)
                self._offset += len(block)
                for line in self._complete(block):
                    yield from self._events(_entry(line))

    def _complete(self, block: bytes) -> list[bytes]:
        """Return the lines that a block completes; of a line that is too long, nothing is kept."""
        *lines, rest = block.split(b"\n")
        if lines:
            first = b"" if self._is_skipping else self._rest + lines[0]
            lines, self._rest, self._is_skipping = [first, *lines[1:]], b"", False
        self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._is_skipping = b"", True
        return lines

    def _events(self, entry: Event) -> list[Event]:
        key, value = str(entry.get("key")), _object(entry.get("value"))
        if key == "start":
            self._cluster, self._is_observation = str(value.get("cluster")), bool(value.get("observe"))
        if not self._is_observation:
            return []
        return [self._event(content) for name, content in self._found(key, value) if self._is_new(name)]

    def _found(self, key: str, value: Event) -> list[tuple[str, Event]]:
        """Return the findings in a value; the readings of events and the verdicts of the intervals have numbers."""
        if key == LAST_OTHERS or key.startswith(OTHERS):
            return self._others(value)
        if key == LAST_VERDICT:
            return self._judged(_object(value.get("verdict")))
        if key.startswith(VERDICT):
            return self._judged(value)
        return self._ended(value) if key == "end" else []

    def _others(self, reading: Event) -> list[tuple[str, Event]]:
        self._moves = _objects(reading.get("moves"))
        moves = [(f"move {_name(move)}", {"kind": "move", "move": _shown(move)}) for move in self._moves]
        power = [
            (f"power {one.get('worker')} {one.get('what')} {_number(one.get('at')):.0f}", one)
            for one in _objects(reading.get("power"))
        ]
        return [*moves, *((key, {"kind": "power", "power": one}) for key, one in power)]

    def _judged(self, verdict: Event) -> list[tuple[str, Event]]:
        found = []
        for move, row in zip(self._moves, _objects(verdict.get("moves"))):
            silence = _number(row.get("gap_s"))
            if silence >= self._stall_seconds:
                stall = {"kind": "stalled", "move": _shown(move), "gap_s": silence}
                found.append((f"stalled {_name(move)}", stall))
        details = [str(breach.get("detail")) for breach in _objects(verdict.get("breaches"))]
        return [*found, *((f"broken {detail}", {"kind": "broken", "detail": detail}) for detail in details)]

    def _ended(self, end: Event) -> list[tuple[str, Event]]:
        return [("ended", {"kind": "ended", "passed": bool(end.get("passed")), "detail": str(end.get("said"))})]

    def _is_new(self, key: str) -> bool:
        is_new = key not in self._sent
        self._sent.add(key)
        return is_new

    def _event(self, content: Event) -> Event:
        return {"observation": {**content, "cluster": self._cluster, "folder": str(self.path.parent)}}


def _opened(path: Path) -> int:
    """Return the handle of a journal that only its owner, this user or root, can write; a FIFO would block."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    status = os.fstat(handle)
    is_own = status.st_uid in (0, os.geteuid()) and not status.st_mode & OTHERS_WRITE
    if stat.S_ISREG(status.st_mode) and is_own:
        return handle
    os.close(handle)
    raise PermissionError(f"{path} is not read: it is not a file that only this user or root can write")


def _entry(line: bytes) -> Event:
    """Return the entry in a line; an empty one for any other line."""
    try:
        return _object(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _object(value: Any) -> Event:
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[Event]:
    """Return a list of objects; an empty object for each other entry, because verdicts and moves have one order."""
    return [_object(one) for one in value] if isinstance(value, list) else []


def _number(value: Any) -> float:
    """Return a finite number; 0 for any other value."""
    is_number = isinstance(value, (int, float)) and abs(value) < 1e15 and math.isfinite(value)
    return float(value) if is_number else 0.0


def _name(move: Event) -> str:
    """Return a key of a move; its times differ by milliseconds each time they are read."""
    return f"{move.get('chain')} {move.get('worker')}"


def _shown(move: Event) -> Event:
    return {key: move.get(key) for key in OF_MOVE}


def _is_ended(path: Path) -> bool:
    try:
        with open(_opened(path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST_LINE))
            lines = file.read(LONGEST_LINE).splitlines()
    except OSError:
        return False
    return bool(lines) and _entry(lines[-1]).get("key") == "end"


class Folder:
    """The journals of a folder."""

    def __init__(self, folder: Path, stall_seconds: float) -> None:
        self._folder, self._stall_seconds = folder, stall_seconds
        self._followed: dict[Path, Observed | None] = {path: None for path in self._journals() if _is_ended(path)}
        self._reported: set[Path] = set()

    def new_events(self) -> Iterator[Event]:
        """Yield the new events of all journals; one that cannot be read is reported once."""
        for path in self._journals():
            observed = self._followed.setdefault(path, Observed(path, self._stall_seconds))
            try:
                yield from observed.new_events() if observed else ()
            except FileNotFoundError:  # the folder was removed
                continue
            except OSError as error:
                if path not in self._reported:
                    self._reported.add(path)
                    LOG.warning("%s", error)

    def _journals(self) -> list[Path]:
        return sorted(self._folder.glob(f"*/{JOURNAL}"))


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Send the events of all observations in a folder until the rulebook ends."""
    interval = float(args.get("interval", 2))
    folder = Folder(Path(str(args["dir"])), float(args.get("stall_seconds", 10)))
    while True:
        for event in folder.new_events():
            await queue.put(event)
        await asyncio.sleep(interval)
