"""Findings about a cluster: errors that stop the work, warnings and notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypedDict

STOP, WARN, NOTE = "stop", "warn", "note"
ORDER = (STOP, WARN, NOTE)
ACCEPTED = "accepted"


class FindingRecord(TypedDict):
    """A finding as plain data; the text starts with its object."""

    severity: str
    rule: str
    object: str
    text: str


@dataclass(frozen=True)
class Finding:
    """One sentence about one object; ``rule`` is the name with which a user can accept it."""

    severity: str
    rule: str
    object: str
    text: str

    @property
    def plain(self) -> FindingRecord:
        """The finding as plain data; the text starts with its object."""
        text = f"{self.object}: {self.text.rstrip('.')}."
        return {"severity": self.severity, "rule": self.rule, "object": self.object, "text": text}


def as_dicts(findings: Iterable[Finding]) -> list[FindingRecord]:
    """Return the unique findings as plain data: stops first, then by object."""
    unique = list(dict.fromkeys(findings))
    return [
        finding.plain
        for finding in sorted(unique, key=lambda finding: (ORDER.index(finding.severity), finding.object, finding.rule))
    ]


def stops(findings: Iterable[FindingRecord], accepted: Sequence[str] = ()) -> list[FindingRecord]:
    """Return the findings that stop the work; ``accepted`` contains rules, or RULE:OBJECT for one object."""
    return [finding for finding in findings if finding["severity"] == STOP and not _accepted(finding, accepted)]


def lines(findings: Sequence[FindingRecord], accepted: Sequence[str] = ()) -> list[str]:
    """Return the findings as lines, with one line for the same finding at many objects, and a line of counts."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for finding in findings:
        text = without_object(finding["object"], finding["text"])
        groups.setdefault((_word(finding, accepted), finding["rule"], text), []).append(finding["object"])
    rows = [f"{word:<8} {listed(objects)}: {text}  ({rule})" for (word, rule, text), objects in groups.items()]
    words = [word for word, _rule, _text in groups]
    counts = [f"{words.count(word)} {word}" for word in (*ORDER, ACCEPTED) if word in words or word != ACCEPTED]
    return [*rows, ", ".join(counts)]


def _word(finding: FindingRecord, accepted: Sequence[str]) -> str:
    return ACCEPTED if finding["severity"] == STOP and _accepted(finding, accepted) else finding["severity"]


def _accepted(finding: FindingRecord, accepted: Sequence[str]) -> bool:
    return finding["rule"] in accepted or f"{finding['rule']}:{finding['object']}" in accepted


def without_object(name: str, text: object) -> str:
    """Return a sentence without the object at its start."""
    start, sentence = f"{name}: ", str(text)
    # Workers may run Python 3.8, which has no removeprefix.
    return sentence[len(start) :] if sentence.startswith(start) else sentence


def listed(names: Iterable[str], most: int = 5) -> str:
    """Return the names for a sentence; if there are many, only the first ones and a count."""
    every = list(names)
    rest = len(every) - most
    return ", ".join(every[:most]) + (f" and {rest} more" if rest > 0 else "")
