"""Subject: advanced options of a host by key, each with the type that the host defines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.option_types import checked
from ..errors import Refused
from ..maintenance import boot
from ..plan import REBOOT, Plan, State
from ..vsphere.faults import translating_faults
from ..vsphere.inventory import Host
from ..vsphere.option_definitions import definition_of, option_value, paths, types_of, value_in, value_path
from . import pvrdma
from .part import Part, one_subject
from .privileges.privilege_table import NOTE
from .reading import by_name
from .rollback import restoring

BOOT_OPTIONS = "VMkernel.Boot."  # the kernel reads these options when it boots


def paths_of(desired: State) -> tuple[str, ...]:
    """Return the properties for these options, which are read from all hosts together."""
    return ("configManager.advancedOption", *boot.PATHS, *paths(desired))


class AdvancedOptions:
    """The advanced options of one host that the user names."""

    name = "advanced options"

    def __init__(self, host: Host, desired: State) -> None:
        self.host, self.target, self.desired = host, host.name, dict(desired)
        self.types: dict[str, Any] = {}

    def read(self) -> State:
        """Return values (None if the host does not have the option), active values, and allowed values, each by key."""
        self.host.must_answer(f"read its {self.name}")
        self.types, similar = types_of(self.host, self.desired)
        allowed = {key: definition_of(kind) if kind else None for key, kind in self.types.items()}
        values = {key: self._value(key, definition) for key, definition in allowed.items()}
        return {
            "values": values,
            "active": {**values, **boot.pending(self.host)},
            "allowed": allowed,
            "similar": similar,
        }

    def plan(self, current: State) -> Plan:
        """Return the plan that sets the options to their desired values."""
        return plan_options(current, self.desired)

    def apply(self, plan: Plan) -> None:
        """Write the options that differ with one call; record the active values of boot options first."""
        for change in plan.due:
            if change.key.startswith(BOOT_OPTIONS):
                boot.remember(self.host, change.key, change.before)
        changed = [option_value(change.key, change.after, self.types[change.key]) for change in plan.due]
        with translating_faults(self.target, f"set its {self.name} {', '.join(option.key for option in changed)}"):
            self.host["configManager.advancedOption"].UpdateOptions(changed)
        watched = tuple(dict.fromkeys(value_path(option.key) for option in changed))
        self.host.settle(watched, lambda read: all(value_in(read, option.key) == option.value for option in changed))

    def _value(self, key: str, definition: Mapping[str, Any] | None) -> object:
        """Return the value of an option; a host may omit an option that has its default value."""
        value = value_in(self.host.properties, key)
        return definition["default"] if value is None and definition else value


def plan_options(current: State, desired: State) -> Plan:
    """Return the plan for the options that differ; a refusal contains all reasons.

    The host needs a reboot while the active value of a boot option is not the desired one.
    """
    reasons: list[str] = []
    after = {key: _checked(key, value, current, reasons) for key, value in desired.items()}
    if reasons:
        raise Refused("advanced options", "set them", "; ".join(reasons), "correct that")
    waiting = [key for key in after if key.startswith(BOOT_OPTIONS) and current["active"][key] != after[key]]
    why = tuple(f"{key} takes effect only when the host boots" for key in waiting)
    return Plan(current["values"], after, frozenset({REBOOT} if waiting else ()), why)


def _checked(key: str, value: object, current: State, reasons: list[str]) -> object:
    definition, before = current["allowed"][key], current["values"][key]
    try:
        if definition is None:
            raise ValueError(
                f"the host has no such option; similar options: {', '.join(current['similar'][key]) or 'none'}"
            )
        if key == pvrdma.OPTION:
            raise ValueError(f"use {pvrdma.PART.module}, which also checks the other requirements of PVRDMA")
        after = checked(value, definition)
        if definition["read_only"] and after != before:
            raise ValueError(f"the host does not allow a change from {before!r}")
    except ValueError as error:
        reasons.append(f"{key}: {error}")
        return before
    return after


def facts(host: Host, desired: State) -> dict[str, Any]:
    """Return the values of these options; None for an option that the host does not have."""
    values: dict[str, Any] = AdvancedOptions(host, desired).read()["values"]
    return values


PART = Part(
    key="advanced_options",
    module="esxi_advanced_option",
    spec={"type": "dict"},
    members=one_subject(lambda host, requested, _context: AdvancedOptions(host, requested)),
    groups=(by_name("advanced_options", "advanced options", facts, paths_of),),
    kept=("advanced_options",),
    restore=restoring.values("advanced_options"),
    restores="the value of each named option",
    calls=(*NOTE, "HostSystem.UpdateOptions"),
    paths_of=paths_of,
    after=("vibs",),
)
