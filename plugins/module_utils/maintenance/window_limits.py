"""The limits of a maintenance window around a training job; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class WindowLimits:
    """The limits that end a window before its next host, each the option ``window_`` and its name; empty: no limit.

    A later run of the window may have others, which take effect at once.
    """

    not_after: str = ""
    max_minutes: float = 0.0
    max_stall_s: float = 0.0


LIMITS = tuple(asdict(WindowLimits()))


def limits_of(window: Mapping[str, object]) -> WindowLimits:
    """Return the limits among the settings of a window; values of the command line may be text."""
    none = asdict(WindowLimits())
    return WindowLimits(**{name: type(value)(window.get(name) or value) for name, value in none.items()})
