"""Subject: the profile of a host, with one plan that consists of the plans of its members, and its options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Abandoned
from ..plan import REBOOT, Plan, State
from ..vsphere.inventory import Host
from .part import PlannedSubject, ProfileContext
from .profile_parts import PARTS

OPTIONS: dict[str, Any] = {part.key: part.spec for part in PARTS}
ARGUMENTS: dict[str, Any] = {
    "profile": {"type": "dict", "default": {}, "options": OPTIONS, "apply_defaults": True},
    "host_profiles": {"type": "dict", "default": {}},
}


def paths(profiles: Iterable[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the properties that these profiles read from every host, each once."""
    fixed = [path for part in PARTS for path in part.paths]
    values = [(part, profile[part.key]) for profile in profiles for part in PARTS if profile.get(part.key)]
    return tuple(dict.fromkeys((*fixed, *(path for part, value in values for path in part.paths_of(value)))))


def members_of(host: Host, context: ProfileContext) -> list[PlannedSubject]:
    """Return the members of one host's profile, in the order of their application."""
    profile = context.profile
    return [
        member for part in PARTS if profile.get(part.key) for member in part.members(host, profile[part.key], context)
    ]


@dataclass(frozen=True)
class ProfilePlan(Plan):
    """A plan with the plans of its members."""

    parts: tuple[tuple[PlannedSubject, Plan], ...] = ()


class Profile:
    """The members of one host's profile, in the order of their application; ``run_lives`` is asked before each."""

    name = "host profile"

    def __init__(
        self, host: Host, members: Sequence[PlannedSubject], run_lives: Callable[[], bool] = lambda: True
    ) -> None:
        self.host, self.members, self.target = host, tuple(members), host.name
        self.run_lives = run_lives

    def read(self) -> State:
        """Return the state of every member by key."""
        return {member.key: member.subject.read() for member in self.members}

    def plan(self, current: State) -> Plan:
        plans = [(member, member.make_plan(current[member.key])) for member in self.members]
        if any(REBOOT in plan.needs for _member, plan in plans):
            plans = [
                (member, member.plan_for_boot(current[member.key]) if member.plan_for_boot else plan)
                for member, plan in plans
            ]
        return combine(plans)

    def apply(self, plan: Plan) -> None:
        """Apply the changes that are due before the next boot, member by member."""
        parts: Sequence[tuple[PlannedSubject, Plan]] = getattr(plan, "parts", ())
        for member, member_plan in parts:
            if member_plan.due:
                self._require_run(member)
                member.subject.apply(member_plan)

    def _require_run(self, member: PlannedSubject) -> None:
        if not self.run_lives():
            reason = "the ansible run that requested it has ended"
            raise Abandoned(self.target, f"change {member.key}", reason, "run again")


def combine(parts: Sequence[tuple[PlannedSubject, Plan]]) -> ProfilePlan:
    """Return one plan for several; each of its keys names the member to which it belongs."""
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


def _prefixed(states: Iterable[tuple[str, Mapping[str, object]]]) -> dict[str, object]:
    return {f"{part}: {key}": value for part, state in states for key, value in state.items()}


def _sentences(texts_by_part: Iterable[tuple[str, Sequence[str]]]) -> tuple[str, ...]:
    return tuple(f"{part}: {text}" for part, texts in texts_by_part for text in texts)
