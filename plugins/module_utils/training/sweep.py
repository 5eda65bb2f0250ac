# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The runs of a scaling measurement: their order, and those that are left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .transport.job_settings import TRANSPORTS

FINISHED = "finished"


class SweepError(ValueError):
    """A measurement that cannot be made as it is described."""


def runs(nodes: Sequence[int], transports: Sequence[str], repeats: int, measurement: str = "") -> list[dict[str, Any]]:
    """Every number of nodes by every transport, ``repeats`` times each, named by the measurement and the three.

    Each round makes every point once, the transports of one size after one another, and every second round goes
    backwards: what drifts evenly while it lasts changes all points of two rounds alike.
    """
    _check(nodes, transports, repeats)
    points = [(size, transport) for size in nodes for transport in transports]
    start, found = f"{measurement}-" if measurement else "", []
    for repeat in range(1, repeats + 1):
        for size, transport in points if repeat % 2 else points[::-1]:
            name = f"{start}{size}-nodes-{transport}-{repeat}"
            found.append({"name": name, "nodes": size, "transport": transport, "repeat": repeat})
    return found


def placed(wanted: Sequence[Mapping[str, Any]], nodes: Sequence[str]) -> list[dict[str, Any]]:
    """The runs, each with the names of its nodes as ``on``."""
    most = max(int(run["nodes"]) for run in wanted)
    if most > len(nodes):
        raise SweepError(f"{most} nodes are to be measured, and there are {len(nodes)}: {', '.join(nodes)}.")
    return [{**run, "on": list(nodes[: int(run["nodes"])])} for run in wanted]


def summary(wanted: Sequence[Mapping[str, Any]], rest: Sequence[Mapping[str, Any]]) -> str:
    """The number and the names of the runs that are left."""
    names = ", ".join(str(run["name"]) for run in rest) or "none"
    return f"{len(rest)} of {len(wanted)} runs are to be made: {names}"


def left(
    wanted: Sequence[Mapping[str, Any]],
    results: Sequence[Mapping[str, Any]],
    asked: Mapping[str, Any],
    *,
    prove: bool = True,
) -> list[dict[str, Any]]:
    """The runs that have no good result yet; ``again`` says that one is there which is none to keep."""
    by_name = {str(result["name"]): result for result in results}
    found = []
    for run in wanted:
        result = by_name.get(str(run["name"]))
        if result is not None:
            _must_be_same(result, asked)
        if result is None or not is_good(result, prove):
            found.append({**run, "again": result is not None})
    return found


def is_good(result: Mapping[str, Any], prove: bool) -> bool:
    """Whether a run ended well, by the transport that it was set to; one node has none to prove."""
    is_proven = bool(result["proof"]["ok"]) or int(result["nodes"]) == 1
    return str(result["job"]["state"]) == FINISHED and (is_proven or not prove)


def _check(nodes: Sequence[int], transports: Sequence[str], repeats: int) -> None:
    for name, values in (("numbers of nodes", nodes), ("transports", transports)):
        if not values or len(set(values)) < len(values):
            raise SweepError(f"the {name} are {list(values)!r}: give one or more, each once.")
    if min(nodes) < 1:
        raise SweepError(f"the numbers of nodes are {list(nodes)!r}: give numbers from 1 up.")
    strange = [name for name in transports if name not in TRANSPORTS]
    if strange:
        raise SweepError(f"the transport {strange[0]!r} is none of {', '.join(TRANSPORTS)}.")
    if repeats < 1:
        raise SweepError(f"the number of repeats is {repeats}: give a number from 1 up.")


def _must_be_same(result: Mapping[str, Any], asked: Mapping[str, Any]) -> None:
    """Refuse a result of other work, because rates of different work cannot be compared."""
    before = result.get("asked") or {}
    other = sorted(key for key in asked if before.get(key) != asked[key])
    if other:
        raise SweepError(
            f"the run {result['name']} was made with another {' and '.join(other)} than is asked for now: "
            "give the measurement another name, or remove its results."
        )
