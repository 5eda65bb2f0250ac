# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: the whole profile of a host, as one plan that is made of the plans of its members."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Abandoned
from ..plan import REBOOT, Plan
from ..vsphere.inventory import Host
from .part import PlannedSubject


@dataclass(frozen=True)
class ProfilePlan(Plan):
    """A plan with the plans that it is made of."""

    parts: tuple[tuple[PlannedSubject, Plan], ...] = ()


class Profile:
    """The members of one host's profile, in the order in which they are applied."""

    name = "host profile"

    def __init__(
        self, host: Host, members: Sequence[PlannedSubject], wanted: Callable[[], bool] = lambda: True
    ) -> None:
        self.host, self.members, self.target = host, tuple(members), host.name
        self.wanted = wanted

    def read(self) -> dict[str, Any]:
        """The state of every member, by its key."""
        return {member.key: member.subject.read() for member in self.members}

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """The plans of all members as one."""
        plans = [(member, member.make_plan(current[member.key])) for member in self.members]
        if any(REBOOT in plan.needs for _member, plan in plans):
            plans = [
                (member, member.plan_for_boot(current[member.key]) if member.plan_for_boot else plan)
                for member, plan in plans
            ]
        return combine(plans)

    def apply(self, plan: Plan) -> None:
        """Apply what can be applied before the next boot, member by member."""
        parts: Sequence[tuple[PlannedSubject, Plan]] = getattr(plan, "parts", ())
        for member, its_plan in parts:
            if its_plan.due:
                self._go_on(member)
                member.subject.apply(its_plan)

    def _go_on(self, member: PlannedSubject) -> None:
        if not self.wanted():
            said = "the ansible run that asked for it is gone"
            raise Abandoned(self.target, f"change {member.key}", said, "run again")


def combine(parts: Sequence[tuple[PlannedSubject, Plan]]) -> ProfilePlan:
    """Several plans as one; each key names the member that it belongs to."""
    return ProfilePlan(
        before=_prefixed((part.key, plan.before) for part, plan in parts),
        after=_prefixed((part.key, plan.after) for part, plan in parts),
        needs=frozenset(need for _part, plan in parts for need in plan.needs),
        why=_sentences((part.key, plan.why) for part, plan in parts),
        warnings=_sentences((part.key, plan.warnings) for part, plan in parts),
        unmet=tuple(dict.fromkeys(reason for _part, plan in parts for reason in plan.unmet)),
        later=frozenset(f"{part.key}: {key}" for part, plan in parts for key in plan.later),
        parts=tuple(parts),
    )


def _prefixed(states: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Any]:
    return {f"{part}: {key}": value for part, state in states for key, value in state.items()}


def _sentences(spoken: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    return tuple(f"{part}: {text}" for part, texts in spoken for text in texts)
