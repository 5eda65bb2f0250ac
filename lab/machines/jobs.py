# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What virsh says of a migration that is under way."""

from __future__ import annotations

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
MILLISECONDS = ("ms",)


def read(text: str) -> dict[str, float | str]:
    """The lines of `virsh domjobinfo`: sizes in bytes, times in seconds, all else as it stands."""
    told: dict[str, float | str] = {}
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words:
            told[name.strip()] = _value(words)
    return told


def percent(told: dict[str, float | str]) -> int | None:
    """How much of a guest has been copied; None where no migration is under way."""
    total, left = told.get("Data total"), told.get("Data remaining")
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
