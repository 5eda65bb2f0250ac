"""Conflicts between the desired hosts of workers and foreign rules."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .matching import shift
from .rule_set import RuleSetSpec

ANOTHER_WAY = "change or remove that rule, or change the options of this call"


@dataclass(frozen=True)
class ForeignRule:
    """The part of an active foreign rule that concerns the workers of the set.

    ``hosts`` are the hosts that it allows; None for a rule that keeps the workers together on any host.
    """

    name: str
    workers: frozenset[str]
    hosts: frozenset[str] | None = None
    mandatory: bool = False


class Conflict(NamedTuple):
    """A conflict: the object, the attempt, its obstacle and the remedy."""

    target: str
    tried: str
    reason: str
    remedy: str = ANOTHER_WAY


def first(cluster: str, hosts: Sequence[str], foreign: Sequence[ForeignRule], desired: RuleSetSpec) -> Conflict | None:
    """Return the first conflict with unknown hosts or with foreign rules; None without a conflict."""
    left = {worker: _left(worker, hosts, foreign, desired) for worker in desired.workers}
    conflicts = itertools.chain(
        _unknown(cluster, hosts, desired),
        _together(cluster, foreign, desired),
        _nowhere(cluster, hosts, foreign, desired, left),
        _too_few(cluster, left, foreign) if desired.one_per_host and len(desired.workers) > 1 else (),
    )
    return next(conflicts, None)


def _unknown(cluster: str, hosts: Sequence[str], desired: RuleSetSpec) -> Iterator[Conflict]:
    strangers = sorted(set(desired.hosts) - set(hosts))
    if strangers:
        reason = f"it has no {', '.join(strangers)}; it has {', '.join(sorted(hosts)) or 'none'}"
        yield Conflict(cluster, "keep workers on hosts", reason, "correct the names of the hosts")


def _together(cluster: str, foreign: Sequence[ForeignRule], desired: RuleSetSpec) -> Iterator[Conflict]:
    for rule in foreign:
        crowd = sorted(rule.workers & set(desired.workers))
        if rule.hosts is None and desired.one_per_host and len(crowd) > 1:
            reason = f"another user's rule {rule.name!r} keeps them on one host"
            yield Conflict(cluster, f"keep {', '.join(crowd)} apart", reason)


def preferences(hosts: Sequence[str], foreign: Sequence[ForeignRule], desired: RuleSetSpec) -> Iterator[str]:
    """Yield a warning for foreign rules that forbid the preferred hosts, or that prefer other hosts."""
    forbidden: dict[str, list[str]] = {}
    for worker in desired.workers if not desired.required else ():
        if desired.hosts and not _free(worker, hosts, foreign) & set(desired.hosts):
            names = ", ".join(repr(rule.name) for rule in _binding(worker, foreign))
            forbidden.setdefault(names, []).append(worker)
    for names, workers in forbidden.items():
        where = ", ".join(sorted(desired.hosts))
        yield f"another user's rule {names} forbids {', '.join(workers)} on {where}: the preference has no effect"
    for rule in foreign:
        concerned = sorted(rule.workers & set(desired.workers))
        if desired.hosts and concerned and rule.hosts is not None and not rule.mandatory and _apart(rule, desired):
            yield f"another user's rule {rule.name!r} prefers other hosts for {', '.join(concerned)}"


def _apart(rule: ForeignRule, desired: RuleSetSpec) -> bool:
    return not (rule.hosts or frozenset()) & set(desired.hosts)


def _binding(worker: str, foreign: Sequence[ForeignRule]) -> list[ForeignRule]:
    return [rule for rule in foreign if rule.hosts is not None and rule.mandatory and worker in rule.workers]


def _free(worker: str, hosts: Sequence[str], foreign: Sequence[ForeignRule]) -> frozenset[str]:
    """Return the hosts that foreign rules allow for a worker."""
    return frozenset(hosts).intersection(*(rule.hosts or () for rule in _binding(worker, foreign)))


def _left(worker: str, hosts: Sequence[str], foreign: Sequence[ForeignRule], desired: RuleSetSpec) -> frozenset[str]:
    free = _free(worker, hosts, foreign)
    return free & set(desired.hosts) if desired.hosts and desired.required else free


def _nowhere(
    cluster: str,
    hosts: Sequence[str],
    foreign: Sequence[ForeignRule],
    desired: RuleSetSpec,
    left: Mapping[str, frozenset[str]],
) -> Iterator[Conflict]:
    """Yield a conflict for each worker whose required hosts are all forbidden by foreign rules."""
    for worker in desired.workers:
        binding = _binding(worker, foreign)
        if binding and not left[worker]:
            rules = ", ".join(repr(rule.name) for rule in binding)
            where = ", ".join(sorted((desired.required and desired.hosts) or hosts))
            yield Conflict(cluster, f"keep {worker} on {where}", f"another user's rule {rules} forbids it")


def _too_few(cluster: str, left: Mapping[str, frozenset[str]], foreign: Sequence[ForeignRule]) -> Iterator[Conflict]:
    """Yield a conflict if there are too few hosts to keep the workers apart."""
    competitors = _without_host(left)
    if competitors is None:
        return
    hosts = sorted({host for worker in competitors for host in left[worker]})
    binding = sorted({repr(rule.name) for worker in competitors for rule in _binding(worker, foreign)})
    because = f" by foreign rules ({', '.join(binding)})" if binding else ""
    reason = f"only {', '.join(hosts) or 'none'} {'are' if len(hosts) > 1 else 'is'} left for them{because}"
    remedy = ANOTHER_WAY if binding else "take fewer workers or more hosts, or one_per_host: false"
    yield Conflict(cluster, f"give each of {', '.join(sorted(competitors))} a separate host", reason, remedy)


def _without_host(left: Mapping[str, frozenset[str]]) -> set[str] | None:
    """Return the workers that compete for too few hosts; None if each can have a separate host."""
    there: dict[str, str] = {}
    for worker in sorted(left):
        tried = _assign(worker, left, there)
        if tried is not None:
            return {worker, *(there[host] for host in tried)}
    return None


def _assign(start: str, left: Mapping[str, frozenset[str]], there: dict[str, str]) -> Collection[str] | None:
    """Assign a host to a worker and move others if necessary; return None, or the hosts that were tried in vain."""
    came_from: dict[str, str] = {}  # by host: the worker that reaches for it
    waiting = deque([start])
    while waiting:
        worker = waiting.popleft()
        for host in sorted(left[worker].difference(came_from)):
            came_from[host] = worker
            if host not in there:
                shift(host, start, came_from, there)
                return None
            waiting.append(there[host])
    return came_from
