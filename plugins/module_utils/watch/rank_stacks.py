"""Where the ranks of a silent job are in their program, and which of them are outside a collective; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..core.names import printable

_FRAME = re.compile(r'^\s*File "([^"]{1,500})", line (\d{1,9}) in (.{1,200})$')
_LIBRARY = re.compile(r"/(?:site|dist)-packages/|/lib/python\d|^<|/dml_\w+\.py$")
# DistributedDataParallel waits in the backward pass, whose frames are those of autograd.
_COLLECTIVE = re.compile(r"/torch/distributed/|/torch/autograd/|/horovod/|/mpi4py/")
NAMED = 8
LONGEST = 200


class RankPlace(NamedTuple):
    """The latest line of the user's program in which a rank is, and whether it is in a collective."""

    rank: int
    host: str
    place: str
    is_in_collective: bool


def sentences(answers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return which nodes did not answer, and where the ranks of the others are; empty if no rank has a stack."""
    return " ".join(filter(None, [*_silent_nodes(answers), _where_ranks_are(answers.values())]))


def _silent_nodes(answers: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for node, answer in answers.items():
        if "error" in answer:
            # The answer is a text of the node or of ssh.
            yield printable(f"Node {node} did not answer: {str(answer['error'])[:LONGEST].rstrip('.')}.")


def _where_ranks_are(answers: Iterable[Mapping[str, Any]]) -> str:
    places = {place.rank: place for answer in answers for place in _places(answer)}
    ranks = [places[rank] for rank in sorted(places)]
    inside, outside = [each for each in ranks if each.is_in_collective], [e for e in ranks if not e.is_in_collective]
    if not ranks:
        return ""
    if inside and outside:
        return f"{_named(outside)}, outside the collective in which {_named(inside)}."
    return f"{'In a collective' if inside else 'Outside collectives'}: {_named(ranks)}."


def _places(answer: Mapping[str, Any]) -> list[RankPlace]:
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
