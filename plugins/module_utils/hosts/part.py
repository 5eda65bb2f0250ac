"""The contract of a subject of a host: profile, evidence, rollback, esxi_info and privileges are derived from PART."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..plan import Plan, State
from ..vsphere.inventory import Host
from .privileges.privilege_table import Need
from .reading import Group
from .rollback.rollback import Before


@dataclass(frozen=True)
class ProfileContext:
    """The context that the parts of a host's profile use in addition to their own options.

    ``to_come`` are vmkernel adapters that are created before the profile is applied; ``images`` returns the clusters
    that vLCM manages with an image, and only the parts that need these clusters call it.
    """

    profile: Mapping[str, Any]
    to_come: Sequence[str] = ()
    images: Callable[[], Mapping[str, str]] = dict

    @property
    def passthrough_ends(self) -> bool:
        """Return whether the profile ends the passthrough of GPUs; parts that need the GPUs wait for the next boot."""
        desired = self.profile.get("passthrough")
        return bool(desired and not desired["enabled"])


@dataclass(frozen=True)
class PlannedSubject:
    """One subject on one host: its name in plans and diffs, and the function that plans it.

    ``plan_for_boot`` plans it for a host that is rebooted anyway, if that makes a difference.
    """

    key: str
    subject: Any
    make_plan: Callable[[Mapping[str, Any]], Plan]
    plan_for_boot: Callable[[Mapping[str, Any]], Plan] | None = None

    @property
    def host(self) -> Host:
        host: Host = self.subject.host
        return host

    @property
    def name(self) -> str:
        return str(self.subject.name)

    @property
    def target(self) -> str:
        return str(self.subject.target)

    def read(self) -> State:
        state: dict[str, Any] = self.subject.read()
        return state

    def plan(self, current: State) -> Plan:
        return self.make_plan(current)

    def apply(self, plan: Plan) -> None:
        self.subject.apply(plan)


@dataclass(frozen=True)
class Part:
    """One subject of a host's profile, described once.

    The profile: ``key`` and ``spec`` are its option. The module has the options of ``spec``, or, if there are none, one
    named "options". ``members`` returns the subjects of a host for a value of the option; ``paths`` are the properties
    that they read from every host, ``paths_of`` those that depend on the value; ``after`` names the parts that are
    applied earlier.
    Evidence and esxi_info: ``groups`` are its settings; ``kept`` are the keys of a host's entry that a rollback needs.
    Rollback: ``restore`` returns the parts of a profile that restore the host; ``restores`` describes them in words.
    Its ``module``: ``result`` checks the value before a session is opened, and returns further keys of the result.
    Privileges: ``calls`` are the API calls of its ``module``; ``needs`` has those that the table of privileges lacks.
    """

    key: str
    module: str
    spec: Mapping[str, Any]
    members: Callable[[Host, Any, ProfileContext], Iterable[PlannedSubject]]
    groups: tuple[Group, ...]
    kept: tuple[str, ...]
    restore: Callable[[Before], Mapping[str, Any]]
    restores: str
    calls: tuple[str, ...]
    paths: tuple[str, ...] = ()
    paths_of: Callable[[Any], tuple[str, ...]] = lambda _requested: ()
    needs: Mapping[str, tuple[Need, ...]] = field(default_factory=dict)
    after: tuple[str, ...] = ()
    result: Callable[[Any], Mapping[str, Any]] = lambda _requested: {}


def one_subject(
    make: Callable[[Host, Any, ProfileContext], Any],
) -> Callable[[Host, object, ProfileContext], Iterable[PlannedSubject]]:
    """Return the function for ``members`` of a part that is one subject with a method ``plan`` on each host."""

    def members(host: Host, requested: object, context: ProfileContext) -> Iterable[PlannedSubject]:
        subject = make(host, requested, context)
        return (PlannedSubject(subject.name, subject, subject.plan),)

    return members


def list_of(options: Mapping[str, Any], **rules: Any) -> dict[str, object]:
    """Return the argument specification of a list of dictionaries with these options."""
    return {"type": "list", "elements": "dict", "default": [], "options": options, **rules}


def in_order(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts in the order of application: each part after those that it names, otherwise by key."""
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
