"""Which ranks keep a job from continuing, from the Flight Recorders of PyTorch; pure.

The recorder of each rank has its latest operations in order. A rank waits in its first operation that is not completed:
for the ranks that have not called it, or for those that are still in an earlier one, in any of its groups. Only the
ranks at which all this waiting ends are reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ..core.findings import listed
from ..core.json_values import mapping
from ..core.names import printable

COMPLETED = "completed"
MOST_RANKS = 8
# The longest list of ranks in a dump that is read, and the latest time.
MOST_TEXT, LATEST_NS = 1 << 17, 10**20
# The name of an operation between two ranks, with their places in the group:
# https://github.com/pytorch/pytorch/blob/main/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp (send, recv).
_PAIR = re.compile(r"(send|recv) (\d{1,6})(?:->|<-)(\d{1,6})$")
Dumps = Mapping[int, Mapping[str, Any]]


class Group(NamedTuple):
    """A process group: its title, and its ranks in their order; groups of different ranks may have the same title."""

    name: str
    title: str
    ranks: tuple[int, ...]


class Call(NamedTuple):
    """An operation that a rank called: its number in the group, or the other rank of an operation of two ranks."""

    group: Group
    name: str
    number: int
    is_completed: bool
    since: float | None
    peer: int | None = None
    is_pair: bool = False

    def __str__(self) -> str:
        number = "" if self.is_pair else f" number {self.number}"
        return f"{self.name}{number} of the group {self.group.title}"


@dataclass
class Rank:
    """The calls of one rank in their order, and the number of its latest one in each group."""

    number: int
    calls: list[Call]
    latest: dict[Group, int]

    @property
    def head(self) -> Call | None:
        """Return the first operation that is not completed; of one between unknown ranks only without another one."""
        pending = [call for call in self.calls if not call.is_completed]
        return next((call for call in pending if not call.is_pair or call.peer is not None), next(iter(pending), None))

    def has_called(self, call: Call) -> bool:
        """Return whether this rank has called an operation of another rank too."""
        return self.latest.get(call.group, -1) >= call.number

    def of(self, call: Call) -> Call | None:
        """Return the call of this rank that belongs to the call of another one."""
        same = (each for each in self.calls if each.group == call.group and each.is_pair == call.is_pair)
        return next((each for each in same if each.number == call.number), None)


@dataclass
class Waits:
    """The ranks for which each rank waits, those that have not completed what others have, and mixed-up operations.

    ``silent`` are the ranks of the groups that wrote no dump.
    """

    ranks: dict[int, Rank]
    silent: set[int]
    edges: dict[int, set[int]] = field(default_factory=dict)
    stuck: dict[int, list[int]] = field(default_factory=dict)
    mixed: dict[Any, dict[int, str]] = field(default_factory=dict)

    def head(self, number: int) -> Call | None:
        return self.ranks[number].head if number in self.ranks else None


def sentences(dumps: Dumps) -> Iterator[str]:
    """Yield a sentence for each cause that keeps the ranks from continuing."""
    waits = _waits({rank: dump for rank, dump in dumps.items() if dump})
    waited = {each for others in waits.edges.values() for each in others}
    named = {rank for names in waits.mixed.values() for rank in names} | set(waits.stuck)
    ends = {rank for rank in waited | set(waits.ranks) if not waits.edges.get(rank)}
    together = {rank for rank in ends - named if waits.head(rank) is not None}
    behind = (ends & waited) - named - together
    is_evident = bool(named or together or behind - waits.silent)
    yield from (_of_mixed(*each) for each in waits.mixed.items())
    yield from (_of_stuck(waits, rank) for rank in sorted(waits.stuck))
    yield from _of_behind(waits, sorted(behind - waits.silent if is_evident else behind))
    yield from _of_together(waits, together)
    yield from _of_circle(waits, ends)
    if is_evident and waits.silent:
        # They may only wait like the others.
        yield f"{words(sorted(waits.silent)).capitalize()} wrote no dump."


def _waits(dumps: Dumps) -> Waits:
    ranks = _ranks_of(dumps)
    members = {member for rank in ranks.values() for call in rank.calls for member in call.group.ranks}
    waits = Waits(ranks, members - set(ranks))
    heads = {number: head for number, rank in ranks.items() if (head := rank.head) is not None}
    for number, head in heads.items():
        if head.is_pair:
            waits.edges[number] = _for_peer(waits, number, head)
            continue
        names = {each: call.name for each in head.group.ranks if each in ranks and (call := ranks[each].of(head))}
        if len(set(names.values())) > 1:
            waits.mixed[head.group, head.number] = names
        else:
            waits.edges[number] = _for_members(waits, number, head)
    _add_silent(waits, heads)
    return waits


def _for_peer(waits: Waits, number: int, head: Call) -> set[int]:
    """Return the other rank of a pair, unless it is in the same operation."""
    other = waits.head(head.peer) if head.peer is not None else None
    is_same = other is not None and other.is_pair and other.group == head.group and other.peer == number
    return set() if is_same or head.peer is None else {head.peer}


def _for_members(waits: Waits, number: int, head: Call) -> set[int]:
    """Return the ranks of the group that have not called an operation, or that are still in an earlier one."""
    others = [each for each in head.group.ranks if each != number]
    known = [each for each in others if each in waits.ranks]
    behind = {each for each in known if not waits.ranks[each].has_called(head)}
    if behind:
        return behind
    done = [each for each in known if _has_completed(waits.ranks[each], head)]
    if done:
        waits.stuck[number] = done
        return set()
    if len(known) < len(others):
        return set(others) - set(known)
    return {
        each
        for each in known
        if (other := waits.head(each)) and (other.group, other.number) != (head.group, head.number)
    }


def _has_completed(rank: Rank, head: Call) -> bool:
    own = rank.of(head)
    return own is None or own.is_completed


def _add_silent(waits: Waits, heads: Mapping[int, Call]) -> None:
    """Let a rank without a dump wait with the others of its groups, unless those whom they wait for wait for it."""
    for each in sorted(waits.silent):
        others = [number for number, head in heads.items() if each in head.group.ranks and not head.is_pair]
        known = {other for number in others for other in waits.edges.get(number, ())} - waits.silent
        if not any(each in _reached(waits, other) for other in known):
            waits.edges[each] = known


def _reached(waits: Waits, rank: int) -> set[int]:
    """Return all ranks for which a rank waits, also by way of others."""
    found: set[int] = set()
    more = {rank}
    while more:
        found |= more
        more = {other for each in more for other in waits.edges.get(each, ())} - found
    return found


def _of_mixed(operation: tuple[Group, int], names: Mapping[int, str]) -> str:
    group, number = operation
    by_name: dict[str, list[int]] = {}
    for rank, name in names.items():
        by_name.setdefault(name, []).append(rank)
    each = " and ".join(f"{words(ranks)} {name}" for name, ranks in sorted(by_name.items()))
    return f"In the group {group.title}, the ranks call different operations as number {number}: {each}."


def _of_stuck(waits: Waits, rank: int) -> str:
    head, done = waits.ranks[rank].head, waits.stuck[rank]
    have = f"{words(done)} ha{'s' if len(done) == 1 else 've'}"
    return f"rank {rank} has not completed {head}, which {have}: check its GPU and its output."


def _of_behind(waits: Waits, behind: Sequence[int]) -> Iterator[str]:
    """Yield a sentence for each operation in which others wait for these ranks; each rank is named once."""
    by_operation: dict[Any, tuple[list[int], list[int]]] = {}
    for rank in behind:
        waiting: dict[Any, list[int]] = {}
        for number in sorted(waits.ranks):
            if rank in waits.edges.get(number, ()) and (head := waits.head(number)):
                waiting.setdefault((head.group, "pair" if head.is_pair else head.number, head.name), []).append(number)
        most = max(waiting, key=lambda each: len(waiting[each]), default=None)
        if most is not None:
            by_operation.setdefault(most, (waiting[most], []))[1].append(rank)
    for waiters, roots in by_operation.values():
        call = waits.head(waiters[0])
        reasons = " and ".join(f"for {_why(waits, rank, call)}" for rank in roots[:MOST_RANKS])
        yield f"{_wait(waits, waiters)} {reasons}."


def _why(waits: Waits, rank: int, call: Call | None) -> str:
    who = words([rank])
    if rank not in waits.ranks:
        return f"{who}, which wrote no dump"
    latest = waits.ranks[rank].latest.get(call.group) if call and not call.is_pair else None
    number = "" if latest is None else f"whose latest is number {latest}"
    if not waits.ranks[rank].calls:
        return f"{who}, which is in no operation{f' and {number}' if number else ''}"
    return f"{who}, {number or 'which has not called it'}"


def _of_together(waits: Waits, ranks: Iterable[int]) -> Iterator[str]:
    by_operation: dict[Any, list[int]] = {}
    for rank in sorted(ranks):
        head = waits.head(rank)
        if head is not None:
            by_operation.setdefault((head.group, "pair" if head.is_pair else head.number), []).append(rank)
    for each in by_operation.values():
        yield f"{_wait(waits, each)}, and no rank is behind: check the network between the nodes, and the GPUs."


def _of_circle(waits: Waits, ends: set[int]) -> Iterator[str]:
    """Yield a sentence about ranks that wait for each other: they call their operations in different orders."""
    leads = set(ends)
    while more := {rank for rank, others in waits.edges.items() if rank not in leads and others & leads}:
        leads |= more
    left = {rank for rank in waits.edges if rank not in leads and rank in waits.ranks}
    if left:
        each = " and ".join(f"rank {rank} in {waits.head(rank)}" for rank in sorted(left)[:MOST_RANKS])
        yield f"{words(sorted(left))} wait for each other, {each}: they call their operations in different orders."


def _wait(waits: Waits, ranks: Sequence[int]) -> str:
    heads = [head for rank in ranks if (head := waits.head(rank)) is not None]
    times = [head.since for head in heads if head.since]
    since = f" since {datetime.fromtimestamp(min(times), timezone.utc):%H:%M:%S} UTC" if times else ""
    return f"{words(ranks)} wait{'s' if len(ranks) == 1 else ''} in {heads[0]}{since}"


def words(ranks: Sequence[int]) -> str:
    """Return ranks as text, at most a few of them."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(map(str, sorted(ranks)), MOST_RANKS)}"


def _ranks_of(dumps: Dumps) -> dict[int, Rank]:
    """Return the calls of each rank; a group that no configuration describes has the ranks that called in it."""
    own = {rank: _groups(dump) for rank, dump in dumps.items()}
    callers: dict[tuple[str, str], set[int]] = {}
    for rank, dump in dumps.items():
        for entry in _entries(dump):
            callers.setdefault(_names(entry), set()).add(rank)
    with_pairs = {_names(entry) for dump in dumps.values() for entry in _entries(dump) if entry.get("is_p2p")}
    called = {names: Group(names[0], _title(names), tuple(sorted(ranks))) for names, ranks in callers.items()}
    return {rank: _rank(rank, dump, {**called, **own[rank]}, with_pairs) for rank, dump in dumps.items()}


def _rank(rank: int, dump: Mapping[str, Any], groups: Mapping[tuple[str, str], Group], with_pairs: set[Any]) -> Rank:
    status = {str(number): mapping(each) for number, each in mapping(dump.get("pg_status")).items()}
    calls = []
    latest: dict[Group, int] = {}
    by_id = _groups_by_id(dump, groups)
    for entry in _entries(dump):
        names = _names(entry)
        by_id[str(entry.get("pg_id"))] = groups[names]
        # The status of a group counts operations of all ranks and of two ranks as if they were of one kind.
        counted = {} if names in with_pairs else status.get(str(entry.get("pg_id"))) or {}
        call = _call(entry, groups[names], rank, counted)
        calls.append(call)
        if not call.is_pair:
            latest[call.group] = max(call.number, latest.get(call.group, -1))
    titles = {(name, _title((name, desc))) for name, desc in with_pairs}
    for number, group in by_id.items():
        last = status.get(number, {}).get("last_enqueued_collective")
        if isinstance(last, int) and (group.name, group.title) not in titles:
            latest[group] = max(last, latest.get(group, -1))
    return Rank(rank, calls, latest)


def _groups_by_id(dump: Mapping[str, object], groups: Mapping[tuple[str, str], Group]) -> dict[str, Group]:
    """Return the group of each number in the status: both are in the order in which the rank created its groups."""
    own = [names for names in groups if names[0] in mapping(dump.get("pg_config"))]
    status = list(mapping(dump.get("pg_status")))
    numbers = [str(each) for each in (*status, *(name for name, _desc in own))]
    if len(own) != len(status) or not all(each.isdecimal() and len(each) < 10 for each in numbers):
        return {}
    ordered = sorted(own, key=lambda names: int(names[0]))
    return {str(number): groups[names] for number, names in zip(sorted(status, key=int), ordered)}


def _groups(dump: Mapping[str, object]) -> dict[tuple[str, str], Group]:
    found = {}
    for key, one in mapping(dump.get("pg_config")).items():
        config = mapping(one)
        names = str(config.get("name", key)), str(config.get("desc") or "")
        ranks = tuple(int(number) for number in re.findall(r"\d{1,9}", str(config.get("ranks"))[:MOST_TEXT]))
        if ranks:
            found[names] = Group(names[0], _title(names), ranks)
    return found


def _call(entry: Mapping[str, object], group: Group, rank: int, status: Mapping[str, object]) -> Call:
    """Return one operation. Gloo leaves its state at "scheduled"; the status of its group counts it as completed."""
    created = entry.get("time_created_ns")
    since = created / 1e9 if isinstance(created, int) and 0 < created < LATEST_NS else None
    number = entry.get("collective_seq_id")
    number = number if isinstance(number, int) and not isinstance(number, bool) else 0
    name = printable(str(entry.get("profiling_name") or "a collective").rpartition(":")[2])
    last, is_pair = status.get("last_completed_collective"), bool(entry.get("is_p2p"))
    is_counted = not is_pair and isinstance(last, int) and 0 < number <= last
    is_completed = is_counted or bool(entry.get("retired")) or entry.get("state") == COMPLETED
    pair = _PAIR.search(name) if is_pair else None
    peer = int(pair[3]) if pair else None
    peer = group.ranks[peer] if peer is not None and peer < len(group.ranks) else None
    if pair and peer is not None:
        name = f"{pair[1]} {'to' if pair[1] == 'send' else 'from'} rank {peer}"
    return Call(group, name, number, is_completed, since, None if peer == rank else peer, is_pair)


def _entries(dump: Mapping[str, object]) -> list[Mapping[str, object]]:
    entries = dump.get("entries")
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, (list, tuple)) else []


def _names(entry: Mapping[str, object]) -> tuple[str, str]:
    """Return PyTorch's name of the group of an operation, and its description."""
    group = entry.get("process_group")
    name, desc = [*(group if isinstance(group, (list, tuple)) else ()), "", ""][:2]
    return str(name), str(desc or "")


def _title(names: tuple[str, str]) -> str:
    """Return the readable name of a group: its description if it has one, else PyTorch's name."""
    name, desc = names
    return printable(desc if desc and desc != "undefined" else name or "default_pg")
