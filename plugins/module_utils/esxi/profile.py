# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: everything a host should be, as one plan made of the other subjects' plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import Abandoned
from ..plan import Plan
from ..vsphere.fleet import Host


@dataclass(frozen=True)
class Part:
    """One subject of a profile, under a name of its own, and how to plan it."""

    key: str
    subject: Any
    make_plan: Callable[[Mapping[str, Any]], Plan]


@dataclass(frozen=True)
class ProfilePlan(Plan):
    """A plan that remembers the plans it is made of."""

    parts: tuple[tuple[Part, Plan], ...] = ()


class Profile:
    """All wanted subjects of one host, in the order in which they are applied."""

    name = "host profile"

    def __init__(self, host: Host, parts: Sequence[Part], wanted: Callable[[], bool] = lambda: True) -> None:
        self.host, self.parts, self.target = host, tuple(parts), host.name
        self.wanted = wanted

    def read(self) -> dict[str, Any]:
        """The state of every part."""
        return {part.key: part.subject.read() for part in self.parts}

    def plan(self, current: Mapping[str, Any]) -> Plan:
        """The plans of all parts as one."""
        return combine([(part, part.make_plan(current[part.key])) for part in self.parts])

    def apply(self, plan: Plan) -> None:
        """Apply what can be applied before the next boot, part by part."""
        parts: Sequence[tuple[Part, Plan]] = getattr(plan, "parts", ())
        for part, its_plan in parts:
            if its_plan.due:
                self._go_on(part)
                part.subject.apply(its_plan)

    def _go_on(self, part: Part) -> None:
        if not self.wanted():
            said = "the ansible run that asked for it is gone"
            raise Abandoned(self.target, f"change {part.key}", said, "run again")


def combine(parts: Sequence[tuple[Part, Plan]]) -> ProfilePlan:
    """Several plans as one; each key says which part it belongs to."""
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
