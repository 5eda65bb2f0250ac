# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a guest came through a move whole: under emulation a guest can lose writes while all report success."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.nodes.programs import LabError

BOOT_ID = "/proc/sys/kernel/random/boot_id"
# A guest's clock stands while the guest does, and time sync is not the lab's.
TOLERANCE_SECONDS = 5.0
BROKEN = re.compile(
    r"list_(?:add|del) corruption|kernel BUG at|BUG: |Oops|Kernel panic|general protection fault|Call Trace:"
    r"|soft lockup|blocked for more than|bad page|EXT4-fs error|I/O error"
)


class LabFailure(LabError):
    """The lab itself broke a guest: whatever became of a job on it proves nothing."""


@dataclass(frozen=True)
class Condition:
    """A guest at a moment: which boot, how far its clock is ahead of this machine's, how much its kernel has said."""

    boot_id: str
    ahead_seconds: float
    said_bytes: int


def read(ask: Callable[[dict[str, Any]], Any], console: Path) -> Condition:
    """Ask the guest's agent, by ``ask`` for one command of it."""
    before = time.time()
    guest = int(ask({"execute": "guest-get-time"})) / 1e9
    ahead = guest - (before + time.time()) / 2
    return Condition(_text_of(ask, BOOT_ID), ahead, console.stat().st_size if console.exists() else 0)


def doubt(before: Condition, after: Condition, stun_seconds: float, said: str) -> str:
    """The reason why a guest did not come through whole; empty if it did. ``said`` is its kernel's log meanwhile."""
    if after.boot_id != before.boot_id:
        return f"it booted anew: its boot id was {before.boot_id} and is {after.boot_id}"
    drift = after.ahead_seconds - before.ahead_seconds
    if not -stun_seconds - TOLERANCE_SECONDS <= drift <= TOLERANCE_SECONDS:
        return f"its clock went by {drift:+.1f} s against this machine's, in a stun of {stun_seconds:.1f} s"
    if found := BROKEN.search(said):
        line = next(line for line in said.splitlines() if found[0] in line)
        return f"its kernel said: {line.strip()}"
    return ""


def _text_of(ask: Callable[[dict[str, Any]], Any], path: str) -> str:
    handle = ask({"execute": "guest-file-open", "arguments": {"path": path, "mode": "r"}})
    try:
        read_of = ask({"execute": "guest-file-read", "arguments": {"handle": handle, "count": 4096}})
    finally:
        ask({"execute": "guest-file-close", "arguments": {"handle": handle}})
    return base64.b64decode(read_of["buf-b64"]).decode().strip()


def answer(text: str) -> Any:
    """What an agent returned, of the output of `virsh qemu-agent-command`."""
    told = json.loads(text)
    if "return" not in told:
        raise LabError(f"The guest's agent answered {text.strip()}.")
    return told["return"]
