# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The contract of a host's subject: profile, evidence, rollback, esxi_info and privileges follow from PART."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plan import Plan
from ..vsphere.inventory import Host
from .privileges.privilege_table import Need
from .reading import Group
from .rollback.rollback import Before


@dataclass(frozen=True)
class Around:
    """The context that the parts of a host's profile use beside their own options.

    ``to_come`` are vmkernel adapters that are built before the profile is applied; ``images`` returns the clusters that
    vLCM manages by an image, and is called by the parts that need them alone.
    """

    profile: Mapping[str, Any]
    to_come: Sequence[str] = ()
    images: Callable[[], Mapping[str, str]] = dict

    @property
    def passthrough_ends(self) -> bool:
        """Whether the profile takes GPUs out of passthrough: what needs them waits for the boot after that."""
        desired = self.profile.get("passthrough")
        return bool(desired and not desired["enabled"])


@dataclass(frozen=True)
class Member:
    """One subject on one host: its name in plans and diffs, and the function that plans it.

    ``plan_for_boot`` plans it where the host is rebooted anyway, if that makes a difference.
    """

    key: str
    subject: Any
    make_plan: Callable[[Mapping[str, Any]], Plan]
    plan_for_boot: Callable[[Mapping[str, Any]], Plan] | None = None


def _no_paths(_asked: Any) -> tuple[str, ...]:
    return ()


@dataclass(frozen=True)
class Part:
    """One subject of a host's profile, described once.

    The profile: ``key`` and ``spec`` are its option; ``members`` returns the subjects that the option's value means on
    a host; ``paths`` are the properties that they read of every host, ``paths_of`` those that follow from the value;
    ``after`` names the parts that are applied earlier.
    Evidence and esxi_info: ``groups`` show it; ``kept`` are the keys of a host's entry that a rollback needs.
    Rollback: ``restore`` returns what restores the host, as parts of a profile; ``restores`` says that in words.
    Privileges: ``calls`` are the API calls of its ``module``; ``needs`` has those that the table of privileges lacks.
    """

    key: str
    module: str
    spec: Mapping[str, Any]
    members: Callable[[Host, Any, Around], Iterable[Member]]
    groups: tuple[Group, ...]
    kept: tuple[str, ...]
    restore: Callable[[Before], Mapping[str, Any]]
    restores: str
    calls: tuple[str, ...]
    paths: tuple[str, ...] = ()
    paths_of: Callable[[Any], tuple[str, ...]] = _no_paths
    needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    after: tuple[str, ...] = ()


def one(make: Callable[[Host, Any, Around], Any]) -> Callable[[Host, Any, Around], Iterable[Member]]:
    """The members of a part that is one subject on each host, which has a method ``plan``."""

    def members(host: Host, asked: Any, around: Around) -> Iterable[Member]:
        subject = make(host, asked, around)
        return (Member(subject.name, subject, subject.plan),)

    return members


def list_of(options: Mapping[str, Any], **rules: Any) -> dict[str, Any]:
    """The argument specification of a list of dictionaries with these options."""
    return {"type": "list", "elements": "dict", "default": [], "options": options, **rules}


def in_order(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts in the order in which they are applied: each after those that it names, else by key."""
    waiting = sorted(parts, key=lambda part: part.key)
    ordered: list[Part] = []
    while waiting:
        done = {part.key for part in ordered}
        ready = next((part for part in waiting if set(part.after) <= done), None)
        if ready is None:
            raise ValueError(f"no order of parts satisfies 'after' of {', '.join(part.key for part in waiting)}")
        waiting.remove(ready)
        ordered.append(ready)
    return tuple(ordered)
