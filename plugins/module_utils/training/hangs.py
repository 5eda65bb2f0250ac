# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Which rank the others wait for, from the Flight Recorders of PyTorch and from NCCL's RAS service; pure.

The recorder of each rank has its latest collectives in order. The ranks that are in a later one than others wait for
them. A rank that is stopped writes no dump. RAS knows the counts of all ranks, also without PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

from ..core.findings import listed
from ..core.json_values import mapping
from ..core.names import printable

COMPLETED = "completed"
MOST_RANKS = 8
# The lines of `verbose status`: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
_COUNTS = re.compile(r"Communicator ranks have different (?:collective|(\w+)) operation counts")
_LAUNCHED = re.compile(r"(\d+) ranks? ha(?:ve|s) launched up to operation (\d+)")
_RANK = re.compile(r"Rank (\d+) -- GPU (\S+) managed by process (\d+) on node (\S+)")
_MISSING = re.compile(r"The missing ranks?: ([\d, ]+)")
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPU (\S+)")
_DEAD = "considered dead"


class Call(NamedTuple):
    """The latest collective of a rank in a group: its name, its number, whether it completed, and its time."""

    name: str
    number: int
    is_completed: bool
    since: float | None


def of_nodes(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return who waits for whom, from the answers of nodes."""
    dumps = {
        int(rank): dump
        for node in found.values()
        for rank, dump in mapping(node.get("dumps")).items()
        if str(rank).isdecimal() and isinstance(dump, Mapping)
    }
    return sentences(dumps, [str(node["ras"]) for node in found.values() if node.get("ras")])


def sentences(dumps: Mapping[int, Mapping[str, Any]], ras: Sequence[str]) -> list[str]:
    """Return who waits for whom: ``dumps`` are the recorders by rank, ``ras`` the answers of NCCL on nodes."""
    found = [*of_recorders(dumps), *(sentence for text in ras for sentence in of_ras(text))]
    return list(dict.fromkeys(found))


def of_recorders(dumps: Mapping[int, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each group of ranks in which a collective has not completed."""
    for name, ranks in _groups(dumps).items():
        calls = {rank: call for rank in ranks if (call := _latest(dumps.get(rank) or {}, name)) is not None}
        if calls and not all(call.is_completed for call in calls.values()):
            yield _of_group(name, ranks, calls)


def _of_group(name: str, ranks: Sequence[int], calls: Mapping[int, Call]) -> str:
    latest = max(call.number for call in calls.values())
    waiting = {rank: call for rank, call in calls.items() if call.number == latest and not call.is_completed}
    behind = [rank for rank, call in calls.items() if call.number < latest]
    silent = [rank for rank in ranks if rank not in calls]
    names = {call.name for call in waiting.values()}
    if len(names) > 1:
        each = " and ".join(f"{_ranks(_with(waiting, one))} {one}" for one in sorted(names))
        return f"In the group {name}, the ranks call different operations as number {latest}: {each}."
    if not waiting:
        return f"In the group {name}, {_ranks(silent)} wrote no dump after number {latest}."
    operation = f"{next(iter(names))} number {latest} of the group {name}"
    who = f"{_ranks(list(waiting))} wait{'s' if len(waiting) == 1 else ''} in {operation}{_since(waiting.values())}"
    reasons = [f"for {_ranks([rank])}, whose latest is number {calls[rank].number}" for rank in behind[:MOST_RANKS]]
    reasons += [f"for {_ranks(silent)}, which wrote no dump"] if silent else []
    if not reasons:
        return f"{who}, and no rank is behind: check the network between the nodes, and the GPUs."
    return f"{who} {' and '.join(reasons)}."


def _with(calls: Mapping[int, Call], name: str) -> list[int]:
    return [rank for rank, call in calls.items() if call.name == name]


def _since(calls: Any) -> str:
    times = [call.since for call in calls if call.since]
    return f" since {datetime.fromtimestamp(min(times), timezone.utc):%H:%M:%S} UTC" if times else ""


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed(map(str, sorted(ranks)), MOST_RANKS)}"


def _groups(dumps: Mapping[int, Mapping[str, Any]]) -> dict[str, list[int]]:
    """Return the ranks of each group, from the configuration in the dumps and the ranks that wrote one."""
    groups: dict[str, set[int]] = {}
    for rank, dump in dumps.items():
        for one in mapping(dump.get("pg_config")).values():
            config = mapping(one)
            numbers = re.findall(r"\d+", str(config.get("ranks")))
            groups.setdefault(_title(config.get("name"), config.get("desc")), set()).update(map(int, numbers), [rank])
        for entry in _entries(dump):
            groups.setdefault(_of_entry(entry), set()).add(rank)
    return {name: sorted(ranks) for name, ranks in groups.items()}


def _latest(dump: Mapping[str, Any], group: str) -> Call | None:
    """Return the latest collective of a rank in a group; None if it made none."""
    done = {str(number): mapping(status) for number, status in mapping(dump.get("pg_status")).items()}
    own = [entry for entry in _entries(dump) if _of_entry(entry) == group and not entry.get("is_p2p")]
    calls = [_call(entry, done.get(str(entry.get("pg_id"))) or {}) for entry in own]
    return max(calls, key=lambda call: (call.number, not call.is_completed), default=None)


def _call(entry: Mapping[str, Any], status: Mapping[str, Any]) -> Call:
    """Return one collective. Gloo leaves its state at "scheduled"; the status of its group counts it as completed."""
    created = entry.get("time_created_ns")
    since = created / 1e9 if isinstance(created, int) and not isinstance(created, bool) else None
    number = entry.get("collective_seq_id")
    name = printable(str(entry.get("profiling_name") or "a collective").rpartition(":")[2])
    number = number if isinstance(number, int) and not isinstance(number, bool) else 0
    last = status.get("last_completed_collective")
    is_counted = isinstance(last, int) and 0 < number <= last
    return Call(name, number, is_counted or bool(entry.get("retired")) or entry.get("state") == COMPLETED, since)


def _entries(dump: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    entries = dump.get("entries")
    return [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, (list, tuple)) else []


def _of_entry(entry: Mapping[str, Any]) -> str:
    group = entry.get("process_group")
    names = list(group) if isinstance(group, (list, tuple)) else []
    return _title(*[*names, None, None][:2])


def _title(name: object, desc: object) -> str:
    """Return the readable name of a group: its description if it has one, else PyTorch's name."""
    return printable(str(desc if desc and desc != "undefined" else name or "default_pg"))


def of_ras(text: str) -> Iterator[str]:
    """Yield a sentence for each error and each difference that NCCL's RAS service reports."""
    lines = [printable(line.strip()) for line in text.splitlines()]
    for number, line in enumerate(lines):
        counts = _COUNTS.search(line)
        if counts:
            yield _of_counts(counts[1] or "collective", lines[number + 1 :])
        elif _DEAD in line:
            yield f"NCCL considers {_processes(lines[number + 1 :])} dead."
        elif line == "INCOMPLETE":
            yield f"{_processes(lines[number + 2 :])} does not answer NCCL."
        elif match := _MISSING.search(line):
            yield f"NCCL has no data of rank {match[1].strip()}."


def _processes(lines: Sequence[str]) -> str:
    found = []
    for line in lines:
        match = _PROCESS.search(line)
        if not match:
            break
        found.append(f"process {match[1]} on {match[2]} (GPU {match[3]})")
    return listed(found) or "a process"


def _of_counts(operation: str, lines: Sequence[str]) -> str:
    """Return who is behind: RAS names the ranks of the smaller group, after their line."""
    counts: list[tuple[int, int]] = []
    named: dict[int, list[str]] = {}
    for line in lines:
        launched, rank = _LAUNCHED.search(line), _RANK.search(line)
        if launched:
            counts.append((int(launched[2]), int(launched[1])))
        elif rank and counts:
            named.setdefault(counts[-1][0], []).append(f"rank {rank[1]} on {rank[4]}")
        else:
            break
    if not counts:
        return "The ranks have launched different numbers of operations."
    last = max(number for number, _ranks_there in counts)
    behind = [f"{_of_count(named.get(number), many)} at number {number}" for number, many in counts if number < last]
    ahead = "".join(_of_count(named.get(number), many) for number, many in counts if number == last)
    return f"{ahead} launched {operation} operation {last}, and wait for {' and '.join(behind)}."


def _of_count(names: Sequence[str] | None, many: int) -> str:
    return listed(names, MOST_RANKS) if names else f"{many} other ranks" if many > 1 else "one other rank"
