"""The specification of the rules of a set of workers, and the names of these rules in vCenter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PREFIX = "dml.vsphere "


@dataclass(frozen=True)
class RuleNames:
    """The names of the rules and groups of one set of workers, which identify them in vCenter."""

    rule: str
    host_rule: str
    vm_group: str
    host_group: str


def names_of(name: str) -> RuleNames:
    """Return the names of the rules and groups of a set."""
    start = f"{PREFIX}{name}"
    return RuleNames(f"{start}: one per host", f"{start}: on hosts", f"{start}: workers", f"{start}: hosts")


@dataclass(frozen=True)
class RuleSetSpec:
    """The desired rules of a set of workers.

    ``gone`` removes the rules of the set. ``drop`` names the workers that may lose their rules without being in
    ``workers``; with None, the whole set may be removed.
    """

    name: str
    workers: tuple[str, ...] = ()
    gone: bool = False
    drop: tuple[str, ...] | None = ()
    one_per_host: bool = False
    hosts: tuple[str, ...] = ()
    required: bool = False
    overrides: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
