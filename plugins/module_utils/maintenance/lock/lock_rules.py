"""A lock with an owner and an expiry: its record, and the rules for taking, renewing and releasing it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Sequence

# vSphere allows 80 characters in a name; an escaped character takes three.
LONGEST_LINE = 76
LONGEST_VALUE = LONGEST_LINE - 16
DIGEST = 16
_UNSAFE = re.compile(r"[^A-Za-z0-9_.@:+-]")
# With more than this part of its time left, a holder renews nothing: two tasks in a row need only one renewal.
FRESH = 0.9


@dataclass(frozen=True)
class RunProcess:
    """The process that holds a lock, so that its machine can see whether the process still runs."""

    machine: str
    boot: str
    namespace: str
    pid: int
    started: int


@dataclass(frozen=True)
class LockRecord:
    """The record of a lock: its holder, if any."""

    owner: str
    run: str
    since: datetime
    until: datetime
    process: RunProcess | None = None
    free: bool = False
    # The seconds for which the lock is taken at a time; 0 in a record from an earlier version.
    seconds: int = field(default=0, compare=False)
    # The progress of the holder, and the request of another user: to pause or to end.
    note: str = ""
    request: str = ""
    requester: str = ""

    def __str__(self) -> str:
        return f"{self.owner} (run {self.run}) since {stamp(self.since)} until {stamp(self.until)}"


@dataclass(frozen=True)
class LockRequest:
    """The run that requests a lock, and the requested time."""

    owner: str
    run: str
    seconds: int
    process: RunProcess | None = None
    force: bool = False
    note: str = ""


@dataclass(frozen=True)
class LockDecision:
    """The record to write or the refusal, if any, and a warning for the user."""

    write: LockRecord | None = None
    refusal: str = ""
    warning: str = ""


def hold(
    current: LockRecord | None, desired: LockRequest, now: datetime, *, dead: bool, alive: bool = False
) -> LockDecision:
    """Take or renew the lock; ``current`` is its present record.

    ``dead`` says that the holder's process is known to have ended, ``alive`` that it is known to run. On another
    machine neither is known, and the time in the record decides.
    """
    mine = current is not None and not current.free and current.run == desired.run
    if current is not None and mine and now < current.until:
        note = desired.note or current.note
        if note == current.note and current.until >= now + timedelta(seconds=FRESH * desired.seconds):
            return LockDecision()
        renewed = _record(desired, current.since, now)
        return LockDecision(replace(renewed, note=note, request=current.request, requester=current.requester))
    taken = _record(desired, now, now)
    if current is None or (current.free and not desired.note):
        return LockDecision(taken)
    # A window that another controller continues obeys what users requested meanwhile.
    kept = LockDecision(replace(taken, request=current.request, requester=current.requester))
    return kept if current.free else _take_over(current, desired, now, kept, dead=dead, alive=alive and not mine)


def release(
    current: LockRecord | None, desired: LockRequest, now: datetime, *, dead: bool, alive: bool = False
) -> LockDecision:
    """Release the lock of this run; release that of another run only by force, or if that run has ended."""
    if current is None or current.free:
        return LockDecision()
    # A rollout, whose lock has no note, leaves a request to the window that the same run continues next.
    request, requester = ("", "") if current.note else (current.request, current.requester)
    record = LockRecord(desired.owner, desired.run, now, now, free=True, request=request, requester=requester)
    freed = LockDecision(record)
    if current.run == desired.run:
        return freed
    return _take_over(current, desired, now, freed, dead=dead, alive=alive)


def _take_over(
    current: LockRecord, desired: LockRequest, now: datetime, done: LockDecision, *, dead: bool, alive: bool
) -> LockDecision:
    if alive and current.process and not desired.force:
        return LockDecision(refusal=f"it is held by {current}, and process {current.process.pid} of that run is alive")
    why = why_expired(current, now, dead=dead, alive=False)
    if why:
        return LockDecision(done.write, warning=f"the lock of {current} was taken over: {why}")
    if desired.force:
        return LockDecision(done.write, warning=f"the lock of {current} was taken away by force")
    return LockDecision(refusal=f"it is held by {current}")


def why_expired(current: LockRecord, now: datetime, *, dead: bool, alive: bool) -> str:
    """Return why a lock that was not released no longer counts; empty while it counts."""
    if alive and current.process:
        return ""
    if now >= current.until:
        return "it has run out"
    return "its process is gone" if dead else ""


def _record(desired: LockRequest, since: datetime, now: datetime) -> LockRecord:
    until = now + timedelta(seconds=desired.seconds)
    seconds, note = desired.seconds, desired.note
    return LockRecord(desired.owner, desired.run, since, until, desired.process, seconds=seconds, note=note)


def encode(record: LockRecord) -> list[str]:
    """Return a record as lines short enough for object names; each contains their number."""
    words = [f"{key}={safe_text(value)}" for key, value in _fields(record).items()]
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= LONGEST_LINE - 6:
            lines[-1] += " " + word
        else:
            lines.append(word)
    return [f"{index + 1}of{len(lines)} {line}" for index, line in enumerate(lines)]


def decode(lines: Sequence[str]) -> LockRecord | None:
    """Return the record in the lines, in any order; None if lines are missing or foreign."""
    texts = sorted(lines)
    if not texts or any(not text.startswith(f"{index + 1}of{len(texts)} ") for index, text in enumerate(texts)):
        return None
    try:
        # Written as safe_text, so that any other character is of another writer, and may control a terminal.
        words = (word.split("=", 1) for text in texts for word in text.split(" ")[1:])
        return _of_fields({key: _UNSAFE.sub("_", value) for key, value in words})
    except (KeyError, ValueError):
        return None


def _fields(record: LockRecord) -> dict[str, str]:
    fields = {"state": "free" if record.free else "held", "owner": record.owner, "run": record.run}
    fields.update(since=stamp(record.since), until=stamp(record.until), ttl=str(record.seconds))
    if record.process:
        process = record.process
        fields.update(machine=process.machine, boot=process.boot, space=process.namespace)
        fields.update(pid=str(process.pid), started=str(process.started))
    notes = {"note": record.note, "request": record.request, "by": record.requester}
    return {**fields, **{key: value for key, value in notes.items() if value}}


def _of_fields(fields: dict[str, str]) -> LockRecord:
    process = None
    if "pid" in fields:
        pid, started = int(fields["pid"]), int(fields["started"])
        process = RunProcess(fields["machine"], fields["boot"], fields["space"], pid, started)
    since, until = parse_stamp(fields["since"]), parse_stamp(fields["until"])
    seconds = int(fields.get("ttl", 0))
    notes = {"note": fields.get("note", ""), "request": fields.get("request", ""), "requester": fields.get("by", "")}
    is_free = fields["state"] == "free"
    return LockRecord(fields["owner"], fields["run"], since, until, process, is_free, seconds, **notes)


def safe_text(text: str, most: int = LONGEST_VALUE) -> str:
    """Return a text in the form that a record can contain, for writing and for comparing.

    A text that is too long, or contains invalid characters, ends with a digest of the complete text, so that two runs
    whose names start alike remain distinct.
    """
    safe = _UNSAFE.sub("_", text)
    if safe == text and len(text) <= most:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST]
    return f"{safe[: most - DIGEST - 1]}.{digest}"


def stamp(when: datetime) -> str:
    """Return a time as ISO text in UTC, to the second."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_stamp(text: str) -> datetime:
    """Return the time that ``stamp`` wrote."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
