"""The changes to one object and their needs: data that planners, subjects and the runner share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Mapping

# The state of one object, in the words and units of the user, as its subject reads it.
State = Mapping[str, Any]
MAINTENANCE = "maintenance"
POWER_OFF = "power_off"
REBOOT = "reboot"


@dataclass(frozen=True)
class Change:
    """One key that differs."""

    key: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Plan:
    """The state of one subject on one object before and after its changes, and their needs.

    ``needs`` are the steps until the settings are in force (a reboot may be due without any change left);
    ``why`` has the reasons in words; ``unmet`` are reasons why the plan cannot be applied now;
    ``later`` are the keys of ``after`` that can be written only after the next boot.
    """

    before: State
    after: State
    needs: frozenset[str] = frozenset()
    why: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unmet: tuple[str, ...] = ()
    later: frozenset[str] = field(default_factory=frozenset)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return the keys that differ, in the order of ``after``."""
        return tuple(
            Change(key, self.before.get(key), value)
            for key, value in self.after.items()
            if self.before.get(key) != value
        )

    @property
    def due(self) -> tuple[Change, ...]:
        """Return the changes that can be made before the next boot."""
        return tuple(change for change in self.changes if change.key not in self.later)

    @property
    def reboots(self) -> int:
        """Return the number of boots until the whole plan is in effect."""
        return (1 if REBOOT in self.needs else 0) + (1 if self.later else 0)


def diff(header: str, changes: Sequence[Change]) -> dict[str, object]:
    """Return the changed keys in the form of Ansible's diff."""
    return {
        "before_header": header,
        "after_header": header,
        "before": {change.key: change.before for change in changes},
        "after": {change.key: change.after for change in changes},
    }
