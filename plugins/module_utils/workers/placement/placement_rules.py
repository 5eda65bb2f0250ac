"""The rules of a set of workers: one that keeps them apart, one for their hosts, and overrides for each worker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from ...plan import State
from . import rule_conflicts
from .rule_set import RuleSetSpec

DRS, RESTART = "drs", "restart_priority"
ASPECTS = (DRS, RESTART)
# A rule for a single virtual machine has no effect.
FEWEST = 2


@dataclass(frozen=True)
class ClusterRules:
    """The hosts, settings and foreign rules of a cluster that concern a set of workers."""

    cluster: str
    hosts: tuple[str, ...]
    homes: Mapping[str, str] = field(default_factory=dict)  # the hosts of the running workers
    missing: Mapping[str, str] = field(default_factory=dict)  # why a worker cannot have rules
    members: frozenset[str] = frozenset()  # the marked workers that have rules or overrides of this set
    foreign: tuple[rule_conflicts.ForeignRule, ...] = ()
    users: tuple[str, ...] = ()  # foreign rules that use the groups of the set
    drs: bool = True
    drs_overrides: bool = True
    ha: bool = True


def conflict_of(desired: RuleSetSpec, facts: ClusterRules) -> rule_conflicts.Conflict | None:
    """Return the conflict that makes the desired rules impossible; None without one."""
    return rule_conflicts.first(facts.cluster, facts.hosts, facts.foreign, desired)


def dropped(desired: RuleSetSpec, facts: ClusterRules) -> list[str]:
    """Return the workers that would lose the rules of the set although the call does not name them."""
    return [] if desired.drop is None else sorted(facts.members.difference(desired.workers, desired.drop))


def after(current: State, desired: RuleSetSpec) -> dict[str, Any]:
    """Return the desired state, with the keys of the current state."""
    apart = desired.one_per_host and len(desired.workers) >= FEWEST and not desired.gone
    pinned = bool(desired.hosts and desired.workers) and not desired.gone
    rule = "required" if desired.required else "preferred"
    affinity = {"workers": sorted(desired.workers), "hosts": sorted(desired.hosts), "rule": rule}
    return {
        "one_per_host": {"workers": sorted(desired.workers), "enabled": True} if apart else None,
        "affinity": affinity if pinned else None,
        **_overrides(current, desired.overrides),
    }


def _overrides(current: State, desired: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    """Return the desired overrides, and the overrides that they replace, to restore them on removal."""
    made: dict[str, Any] = {aspect: dict(current[aspect]) for aspect in ASPECTS}
    previous = {worker: dict(notes) for worker, notes in current["previous"].items()}
    for worker, aspect in product(dict.fromkeys([*current["previous"], *desired]), ASPECTS):
        notes, now = previous.setdefault(worker, {}), current[aspect].get(worker)
        requested = desired.get(worker, {}).get(aspect)
        if requested is None and aspect in notes:
            made[aspect][worker] = notes.pop(aspect)
        elif requested is not None:
            made[aspect][worker] = requested
            if now != requested:
                notes.setdefault(aspect, now)
    return {**made, "previous": {worker: notes for worker, notes in previous.items() if notes}}


def unmet(current: State, after: State, facts: ClusterRules) -> tuple[str, ...]:
    """Return the reasons why the change cannot be made now."""
    reasons = [f"{worker} {why}" for worker, why in facts.missing.items()]
    if after["affinity"] is None and current["affinity"] is not None and facts.users:
        reasons.append(f"the groups of this set are in use by another user's {_quoted(facts.users)}: change it first")
    return tuple(reasons)


def warnings(after: State, desired: RuleSetSpec, facts: ClusterRules) -> Iterator[str]:
    """Yield a warning for each rule without effect, and for each foreign preference that contradicts the rules."""
    rules = [key for key in ("one_per_host", "affinity") if after[key] is not None]
    requested = {aspect for given in desired.overrides.values() for aspect in given}
    if not facts.drs and (rules or DRS in requested):
        yield "DRS is off: its rules and overrides are stored but have no effect until it is on"
    elif not facts.drs_overrides and DRS in requested:
        yield "the cluster does not allow DRS overrides of single virtual machines: they are stored but have no effect"
    if not facts.ha and RESTART in requested:
        yield "HA is off: restart priorities are stored but have no effect until it is on"
    if desired.one_per_host and facts.drs:
        for host, crowd in _crowds(desired.workers, facts.homes).items():
            moves = "if DRS is fully automated, it moves all but one and stuns a guest with a vGPU"
            yield f"{', '.join(crowd)} run on {host}: {moves}"
    yield from rule_conflicts.preferences(facts.hosts, facts.foreign, desired)


def _crowds(workers: Sequence[str], homes: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the workers by host, for each host with several of them."""
    crowds: dict[str, list[str]] = {}
    for worker in workers:
        if worker in homes:
            crowds.setdefault(homes[worker], []).append(worker)
    return {host: crowd for host, crowd in sorted(crowds.items()) if len(crowd) >= FEWEST}


def _quoted(rules: Sequence[str]) -> str:
    return f"rule{'s' if len(rules) > 1 else ''} {', '.join(repr(name) for name in rules)}"
