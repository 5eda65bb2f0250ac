# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Event source of Event-Driven Ansible: what an observation of a training job finds.

It follows the journals that the playbook dml.vsphere.observe writes on this machine, and connects to nothing. Each
event has ``observation`` with its ``kind``:

- ``move``: a worker moved. ``move`` has its worker, source, target, user and times.
- ``power``: a worker was switched on or off. ``power`` has its worker, time, user and the vCenter events.
- ``stalled``: a move stalled the job for at least ``stall_seconds``. ``move`` as above, ``gap_s`` is the silence.
- ``broken``: the job is broken. ``detail`` is the reason.
- ``ended``: the observation ended. ``passed`` is its result, ``detail`` the reason if it failed.

``cluster`` and ``folder`` are those of the observation. Events of observations that ended before are not sent.
"""

from __future__ import annotations

import asyncio
import json
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
OF_MOVE = ("worker", "source", "target", "by", "started", "completed", "ok")
Event = dict[str, Any]


class Observed:
    """One journal: its new lines as events, each event once."""

    def __init__(self, path: Path, stall_seconds: float) -> None:
        self.path, self._stall_seconds = path, stall_seconds
        self._offset, self._cluster, self._is_observation = 0, "", False
        self._moves: list[Event] = []
        self._sent: set[str] = set()

    def new_events(self) -> list[Event]:
        """Return the events of the complete lines that were appended since the last call."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            text = file.read()
        complete = text[: text.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [event for line in complete.splitlines() for event in self._events(_entry(line))]

    def _events(self, entry: Event) -> list[Event]:
        key, value = str(entry.get("key")), entry.get("value")
        value = value if isinstance(value, dict) else {}
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
            return self._judged(value.get("verdict") or {})
        if key.startswith(VERDICT):
            return self._judged(value)
        return self._ended(value) if key == "end" else []

    def _others(self, reading: Event) -> list[tuple[str, Event]]:
        self._moves = [dict(move) for move in reading.get("moves") or []]
        moves = [(f"move {_name(move)}", {"kind": "move", "move": _shown(move)}) for move in self._moves]
        power = [
            (f"power {one.get('worker')} {one.get('what')} {float(one.get('at') or 0.0):.0f}", dict(one))
            for one in reading.get("power") or []
        ]
        return [*moves, *((key, {"kind": "power", "power": one}) for key, one in power)]

    def _judged(self, verdict: Event) -> list[tuple[str, Event]]:
        found = []
        for move, row in zip(self._moves, verdict.get("moves") or []):
            if (row.get("gap_s") or 0.0) >= self._stall_seconds:
                stall = {"kind": "stalled", "move": _shown(move), "gap_s": row["gap_s"]}
                found.append((f"stalled {_name(move)}", stall))
        details = [str(breach.get("detail")) for breach in verdict.get("breaches") or []]
        return [*found, *((f"broken {detail}", {"kind": "broken", "detail": detail}) for detail in details)]

    def _ended(self, end: Event) -> list[tuple[str, Event]]:
        return [("ended", {"kind": "ended", "passed": bool(end.get("passed")), "detail": str(end.get("said"))})]

    def _is_new(self, key: str) -> bool:
        is_new = key not in self._sent
        self._sent.add(key)
        return is_new

    def _event(self, content: Event) -> Event:
        return {"observation": {**content, "cluster": self._cluster, "folder": str(self.path.parent)}}


def _entry(line: bytes) -> Event:
    """Return the entry in a line; an empty one for any other line."""
    try:
        entry = json.loads(line)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _name(move: Event) -> str:
    """Return a key of a move; its times differ by milliseconds each time they are read."""
    return f"{move.get('chain')} {move.get('worker')}"


def _shown(move: Event) -> Event:
    return {key: move.get(key) for key in OF_MOVE}


def _is_ended(path: Path) -> bool:
    lines = path.read_bytes().splitlines()
    return bool(lines) and _entry(lines[-1]).get("key") == "end"


async def main(queue: asyncio.Queue[Any], args: dict[str, Any]) -> None:
    """Send the events of all observations in a folder until the rulebook ends."""
    folder, interval = Path(str(args["dir"])), float(args.get("interval", 2))
    stall_seconds = float(args.get("stall_seconds", 10))
    followed: dict[Path, Observed | None] = {path: None for path in folder.glob(f"*/{JOURNAL}") if _is_ended(path)}
    while True:
        for path in sorted(folder.glob(f"*/{JOURNAL}")):
            observed = followed.setdefault(path, Observed(path, stall_seconds))
            try:
                events = observed.new_events() if observed else []
            except OSError:  # the folder was removed
                continue
            for event in events:
                await queue.put(event)
        await asyncio.sleep(interval)
