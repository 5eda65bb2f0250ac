# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Watches a training job on all its nodes at once, and stamps every record with this machine's clock as it arrives."""

from __future__ import annotations

import json
import os
import selectors
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .link import Link

WAIT_SECONDS = 0.5
STOPPED, SILENT, OUT_OF_TIME = "stopped", "silent", "out of time"


@dataclass(frozen=True)
class Wish:
    """Where records go, and when to end: a file that appears, a job that is silent, a time."""

    records: Path
    stop: Path
    silence: float
    timeout: float


@dataclass
class Seen:
    """What was seen in all."""

    ended: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    unreadable: int = 0
    last: float = field(default_factory=time.monotonic)


def watch(links: Sequence[Link], wish: Wish) -> Seen:
    """Write what arrives until there is a reason to end; ``seen`` goes on evenly, also when this clock is set."""
    seen, anchor, began = Seen(), time.time() - time.monotonic(), time.monotonic()
    handle = os.open(wish.records, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        while not seen.ended:
            for link in _ready(links):
                lines = link.read()
                now = time.monotonic()
                _write(handle, link, lines, seen, anchor + now)
                seen.last = now if lines else seen.last
            seen.ended = _reason(wish, seen, began)
    finally:
        for link in links:
            link.close()
        os.close(handle)
    return seen


def _reason(wish: Wish, seen: Seen, began: float) -> str:
    """Why to end, empty while there is no reason."""
    now = time.monotonic()
    if wish.stop.exists():
        return STOPPED
    if now - seen.last > wish.silence:
        return SILENT
    return OUT_OF_TIME if now - began > wish.timeout else ""


def _ready(links: Sequence[Link]) -> list[Link]:
    """The links on which something arrived."""
    with selectors.DefaultSelector() as selector:
        for link in links:
            descriptor = link.open()
            if descriptor is not None:
                selector.register(descriptor, selectors.EVENT_READ, link)
        if not selector.get_map():
            time.sleep(WAIT_SECONDS)  # every link is broken and waits for its next try
            return []
        return [key.data for key, _events in selector.select(WAIT_SECONDS)]


def _write(handle: int, link: Link, lines: Sequence[str], seen: Seen, now: float) -> None:
    seen.lines[link.name] = seen.lines.get(link.name, 0) + len(lines)
    stamped = [_stamped(line, now) for line in lines]
    seen.unreadable += stamped.count(None)
    text = "".join(json.dumps(one) + "\n" for one in stamped if one)
    if text:
        os.write(handle, text.encode())


def _stamped(line: str, now: float) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return {**record, "seen": now} if isinstance(record, dict) else None
