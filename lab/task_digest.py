"""The short form of what Ansible prints about one task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import yaml

RESULT = re.compile(r"(ok|changed|skipping|included): \[?([^\]\s]*)\]?")
FAILURE = re.compile(r"(fatal|failed): \[|\[ERROR\]: ")
DIFF = re.compile(r"--- before(?:: ([^:\n]*))?")
PROGRESS = re.compile(r"  \S")
# Numbers, addresses and digests, in which objects that are otherwise alike differ.
VARYING = re.compile(r"-[0-9a-f]{12}\b|\b[0-9a-f]{2}(:[0-9a-f]{2})+\b|\d+")
TIME = re.compile(r" \[[\d.]+ s\]$")
IGNORED = "...ignoring"
DIFF_LINES = 14


class TaskDigest:
    """Collects the results of a task and shows each once, with the hosts that it is about."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._is_named = self._has_progress = False
        self._failures: list[str] = []
        self._shown: set[str] = set()
        self._changed: list[str] = []
        self._bodies: list[tuple[str, list[str]]] = []
        self._diffs: list[tuple[str, list[str]]] = []
        self._into: list[str] | None = None

    def take(self, line: str) -> Iterator[str]:
        """Yield the lines to show at once: the progress of a task."""
        if line == IGNORED:
            self._failures = []
        elif FAILURE.match(line) or self._failures:
            self._failures.append(line)
        elif found := RESULT.match(line):
            self._changed += [found[2]] if found[1] == "changed" else []
            self._bodies.append((found[2], []))
            self._into = self._bodies[-1][1]
        elif found := DIFF.match(line):
            self._diffs.append((found[1] or "", []))
            self._into = self._diffs[-1][1]
        elif PROGRESS.match(line) and not (self._diffs and self._into is self._diffs[-1][1]):
            self._has_progress = True
            yield from self._progress(line)
        elif self._into is not None:
            self._into.append(line)

    def _progress(self, line: str) -> Iterator[str]:
        """Yield a line of progress; a step that is repeated for each host is shown once."""
        text = TIME.sub("", line)
        if text not in self._shown:
            self._shown.add(text)
            yield f"  {line}\n"

    def pause(self) -> Iterator[str]:
        """Yield the name of a task that takes long."""
        if self.name and not self._is_named and not self._has_progress:
            self._is_named = True
            yield f"  {self.name} ...\n"

    def end(self) -> Iterator[str]:
        """Yield what the task changed and reported."""
        yield from self._diff_lines()
        if self._changed and not self._has_progress and not self._diffs:
            yield f"  changed: {self.name}{_on(self._changed)}\n"
        yield from self._message_lines()
        yield from (f"  {line}\n" for line in self._failures if line)
        self._changed, self._bodies, self._diffs, self._failures = [], [], [], []

    def _diff_lines(self) -> Iterator[str]:
        """Yield the first lines of each difference, those of objects that are alike once."""
        alike: dict[str, list[tuple[str, list[str]]]] = {}
        for name, printed in self._diffs:
            changes = _changes(printed)
            alike.setdefault(VARYING.sub("#", "\n".join(changes)), []).append((name, changes))
        for (name, lines), *more in alike.values():
            yield f"  {self.name}: {name}{_and_alike([other for other, _lines in more])}\n"
            yield from (f"    {line}\n" for line in lines[:DIFF_LINES])
            if len(lines) > DIFF_LINES:
                yield f"    ... and {len(lines) - DIFF_LINES} more lines\n"

    def _message_lines(self) -> Iterator[str]:
        alike: dict[str, list[str]] = {}
        for name, lines in self._bodies:
            if lines:
                alike.setdefault(_message(lines).replace(name, "NAME"), []).append(name)
        for text, names in alike.items():
            if text:
                lines = text.replace("NAME", names[0]).splitlines()
                yield from (f"    {line}\n" for line in lines)
                if names[1:]:
                    yield f"    {_and_alike(names[1:]).strip(' ,')}\n"


def _changes(lines: Sequence[str]) -> list[str]:
    """Return the changed lines of a difference, without those that only state that an object did not exist."""
    return [
        line for line in lines if line[:1] in ("+", "-") and line[:3] != "+++" and not line.endswith((": null", ": ''"))
    ]


def _message(lines: Sequence[str]) -> str:
    """Return the message in the result of a task."""
    try:
        result = yaml.safe_load("\n".join(lines))
    except yaml.YAMLError:
        return "\n".join(lines)
    message = result.get("msg", "") if isinstance(result, dict) else ""
    return "\n".join(map(str, message)) if isinstance(message, list) else str(message)


def _on(hosts: Sequence[str]) -> str:
    return f" ({', '.join(sorted(set(hosts)))})"


def _and_alike(names: Sequence[str]) -> str:
    return f", and {len(names)} more alike: {', '.join(sorted(names))}" if names else ""
