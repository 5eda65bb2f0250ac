"""Checks that a move left a guest intact: an emulated guest can lose writes although every step reports success."""

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
# A guest's clock stops during a stun, and the lab does not synchronize time.
TOLERANCE_SECONDS = 5.0
BROKEN = re.compile(
    r"list_(?:add|del) corruption|kernel BUG at|BUG: |Oops|Kernel panic|general protection fault|Call Trace:"
    r"|soft lockup|blocked for more than|bad page|EXT4-fs error|I/O error"
)


class LabFailure(LabError):
    """The lab itself broke a guest: the result of a job on it is meaningless."""


@dataclass(frozen=True)
class Condition:
    """The state of a guest: its boot id, its clock's lead over this machine's, and the size of its kernel log."""

    boot_id: str
    ahead_seconds: float
    log_bytes: int


def read(ask: Callable[[dict[str, Any]], Any], console: Path) -> Condition:
    """Read a guest's condition from its agent; ``ask`` runs one agent command."""
    before = time.time()
    guest = int(ask({"execute": "guest-get-time"})) / 1e9
    ahead = guest - (before + time.time()) / 2
    return Condition(_text_of(ask, BOOT_ID), ahead, console.stat().st_size if console.exists() else 0)


def doubt(before: Condition, after: Condition, stun_seconds: float, log: str) -> str:
    """Return why a guest is damaged, or an empty string if it is intact; ``log`` is its kernel log during the move."""
    if after.boot_id != before.boot_id:
        return f"it rebooted: its boot id was {before.boot_id} and is {after.boot_id}"
    drift = after.ahead_seconds - before.ahead_seconds
    if not -stun_seconds - TOLERANCE_SECONDS <= drift <= TOLERANCE_SECONDS:
        return f"its clock drifted by {drift:+.1f} s from this machine's, in a stun of {stun_seconds:.1f} s"
    if found := BROKEN.search(log):
        line = next(line for line in log.splitlines() if found[0] in line)
        return f"its kernel logged: {line.strip()}"
    return ""


def _text_of(ask: Callable[[dict[str, Any]], Any], path: str) -> str:
    handle = ask({"execute": "guest-file-open", "arguments": {"path": path, "mode": "r"}})
    try:
        content = ask({"execute": "guest-file-read", "arguments": {"handle": handle, "count": 4096}})
    finally:
        ask({"execute": "guest-file-close", "arguments": {"handle": handle}})
    return base64.b64decode(content["buf-b64"]).decode().strip()


def answer(text: str) -> Any:
    """Return an agent's result from the output of `virsh qemu-agent-command`."""
    message = json.loads(text)
    if "return" not in message:
        raise LabError(f"The guest's agent answered {text.strip()}.")
    return message["return"]
