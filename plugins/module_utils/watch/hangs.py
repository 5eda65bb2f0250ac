"""Which rank the others wait for, from the Flight Recorders of PyTorch, NCCL's RAS service and their stacks; pure.

RAS knows the counts of all ranks, also without PyTorch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..core.findings import listed
from ..core.json_values import mapping
from ..core.names import printable
from . import recorders
from .recorders import MOST_RANKS

# The lines of `verbose status`: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
_COUNTS = re.compile(r"Communicator ranks have different (?:collective|(\w+)) operation counts")
_LAUNCHED = re.compile(r"(\d+) ranks? ha(?:ve|s) launched up to operation (\d+)")
_RANK = re.compile(r"Rank (\d+) -- GPU (\S+) managed by process (\d+) on node (\S+)")
_MISSING = re.compile(r"The missing ranks?: ([\d, ]+)")
_PROCESS = re.compile(r"Process (\d+) on node (\S+) managing GPU (\S+)")
_DEAD = "considered dead"
_FRAME = re.compile(r'^\s*File "([^"]{1,500})", line (\d{1,9}) in (.{1,200})$')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<|/dml_\w+\.py$")
# DistributedDataParallel waits in the backward pass, whose frames are those of autograd.
_COLLECTIVE = re.compile(r"/torch/distributed/|/torch/autograd/|/horovod/|/mpi4py/")
NAMED = 8
LONGEST = 200


def of_nodes(found: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Return who waits for whom, from the answers of nodes."""
    dumps = {
        int(rank): dump
        for node in found.values()
        for rank, dump in mapping(node.get("dumps")).items()
        if str(rank).isdecimal() and isinstance(dump, Mapping)
    }
    return sentences(dumps, [str(node["ras"]) for node in found.values() if node.get("ras")])


def sentences(dumps: Mapping[int, Mapping[str, object]], ras: Sequence[str]) -> list[str]:
    """Return who waits for whom: ``dumps`` are the recorders by rank, ``ras`` the answers of NCCL on nodes."""
    found = [*recorders.sentences(dumps), *(sentence for text in ras for sentence in of_ras(text))]
    return list(dict.fromkeys(found))


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


class RankPlace(NamedTuple):
    """The latest line of the user's program in which a rank is, and whether it is in a collective."""

    rank: int
    host: str
    place: str
    is_in_collective: bool


def stack_sentences(answers: Mapping[str, Mapping[str, object]]) -> str:
    """Return which nodes did not answer, and where the ranks of the others are; empty if no rank has a stack."""
    return " ".join(filter(None, [*_silent_nodes(answers), _where_ranks_are(answers.values())]))


def _silent_nodes(answers: Mapping[str, Mapping[str, object]]) -> Iterator[str]:
    for node, answer in answers.items():
        if "error" in answer:
            # The answer is a text of the node or of ssh.
            yield printable(f"Node {node} did not answer: {str(answer['error'])[:LONGEST].rstrip('.')}.")


def _where_ranks_are(answers: Iterable[Mapping[str, object]]) -> str:
    places = {place.rank: place for answer in answers for place in _places(answer)}
    ranks = [places[rank] for rank in sorted(places)]
    inside, outside = [each for each in ranks if each.is_in_collective], [e for e in ranks if not e.is_in_collective]
    if not ranks:
        return ""
    if inside and outside:
        return f"{_named(outside)}, outside the collective in which {_named(inside)}."
    return f"{'In a collective' if inside else 'Outside collectives'}: {_named(ranks)}."


def _places(answer: Mapping[str, object]) -> list[RankPlace]:
    found = []
    ranks = answer.get("ranks")
    for rank, content in (ranks if isinstance(ranks, Mapping) else {}).items():
        if not (str(rank).isdigit() and isinstance(content, Mapping) and isinstance(content.get("stack"), str)):
            continue
        frames = [match for line in content["stack"].splitlines() if (match := _FRAME.match(line))]
        own = next((frame for frame in frames if not _LIBRARY.search(frame[1])), None)
        if own:
            place = printable(f"{own[1].rpartition('/')[2]}, line {own[2]} ({own[3]})")
            # To import such a module is not a collective.
            is_inside = any(_COLLECTIVE.search(frame[1]) and frame[3] != "<module>" for frame in frames)
            found.append(RankPlace(int(rank), printable(str(content.get("host"))), place, is_inside))
    return found


def _named(ranks: list[RankPlace]) -> str:
    """Return the ranks, grouped by their places."""
    groups: dict[str, list[RankPlace]] = {}
    for each in ranks:
        groups.setdefault(each.place, []).append(each)
    texts = []
    for place, group in groups.items():
        numbers = ", ".join(str(each.rank) for each in group[:NAMED]) + (" and others" if len(group) > NAMED else "")
        who = f"rank {numbers} on {group[0].host} is" if len(group) == 1 else f"ranks {numbers} are"
        texts.append(f"{who} at {place}")
    return ", ".join(texts)
