"""Parses virsh's report on a migration in progress."""

from __future__ import annotations

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MILLISECONDS = ("ms",)


def read(text: str) -> dict[str, float | str]:
    """Parse the output of `virsh domjobinfo`: sizes in bytes, times in seconds, everything else unchanged."""
    report: dict[str, float | str] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words:
            report[name.strip()] = _value(words)
    return report


def percent(report: dict[str, float | str]) -> int | None:
    """Return how much of a guest has been copied, or None if no migration is in progress."""
    total, left = report.get("Data total"), report.get("Data remaining")
    if not isinstance(total, float) or not isinstance(left, float) or total <= 0:
        return None
    return max(0, min(99, int(100 * (1 - left / total))))


def _value(words: list[str]) -> float | str:
    try:
        number = float(words[0])
    except ValueError:
        return " ".join(words)
    unit = words[1] if len(words) > 1 else ""
    if unit in MILLISECONDS:
        return number / 1000
    return number * UNITS.get(unit, 1)
