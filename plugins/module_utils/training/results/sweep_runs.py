"""The runs of a scaling measurement: their order, and the remaining ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..transport.job_settings import TRANSPORTS

FINISHED = "finished"


class SweepError(ValueError):
    """The options of a measurement are invalid."""


def runs(nodes: Sequence[int], transports: Sequence[str], repeats: int, measurement: str = "") -> list[dict[str, Any]]:
    """Return ``repeats`` runs for each number of nodes and transport, named after the measurement and these three.

    Each round measures every point once, with the transports of one size in sequence, and every second round runs in
    reverse order: a linear drift then has the same effect on all points of two rounds.
    """
    _check(nodes, transports, repeats)
    points = [(size, transport) for size in nodes for transport in transports]
    start, planned = f"{measurement}-" if measurement else "", []
    for repeat in range(1, repeats + 1):
        for size, transport in points if repeat % 2 else points[::-1]:
            name = f"{start}{size}-nodes-{transport}-{repeat}"
            planned.append({"name": name, "nodes": size, "transport": transport, "repeat": repeat})
    return planned


def with_nodes(planned: Sequence[Mapping[str, Any]], nodes: Sequence[str]) -> list[dict[str, object]]:
    """Return the runs, each with the names of its nodes as ``on``."""
    most = max(int(run["nodes"]) for run in planned)
    if most > len(nodes):
        raise SweepError(f"{most} nodes are requested, but there are {len(nodes)}: {', '.join(nodes)}.")
    return [{**run, "on": list(nodes[: int(run["nodes"])])} for run in planned]


def summary(planned: Sequence[Mapping[str, object]], rest: Sequence[Mapping[str, object]]) -> str:
    """Return a sentence with the number and the names of the remaining runs."""
    names = ", ".join(str(run["name"]) for run in rest) or "none"
    return f"{len(rest)} of {len(planned)} runs remain:  {names}"


def remaining(
    planned: Sequence[Mapping[str, object]],
    results: Sequence[Mapping[str, object]],
    requested: Mapping[str, object],
    *,
    prove: bool = True,
) -> list[dict[str, Any]]:
    """Return the runs that have no good result yet; ``again`` is true if a result exists that does not count."""
    by_name = {str(result["name"]): result for result in results}
    missing = []
    for run in planned:
        result = by_name.get(str(run["name"]))
        if result is not None:
            _must_be_same(result, requested)
        if result is None or not is_good(result, prove):
            missing.append({**run, "again": result is not None})
    return missing


def is_good(result: Mapping[str, Any], prove: bool) -> bool:
    """Return whether a run succeeded with the requested transport; a run on one node has no transport to check."""
    is_checked = bool(result["proof"]["ok"]) or int(result["nodes"]) == 1
    return str(result["job"]["state"]) == FINISHED and (is_checked or not prove)


def _check(nodes: Sequence[int], transports: Sequence[str], repeats: int) -> None:
    for name, values in (("numbers of nodes", nodes), ("transports", transports)):
        if not values or len(set(values)) < len(values):
            raise SweepError(f"the {name} are {list(values)!r}: specify one or more, each once.")
    if min(nodes) < 1:
        raise SweepError(f"the numbers of nodes are {list(nodes)!r}: specify numbers of 1 or more.")
    strange = [name for name in transports if name not in TRANSPORTS]
    if strange:
        raise SweepError(f"the transport {strange[0]!r} is not one of {', '.join(TRANSPORTS)}.")
    if repeats < 1:
        raise SweepError(f"the number of repeats is {repeats}: specify a number of 1 or more.")


def _must_be_same(result: Mapping[str, Any], requested: Mapping[str, Any]) -> None:
    """Refuse a result of a run with other options, because such rates cannot be compared."""
    before = result.get("asked") or {}
    other = sorted(key for key in requested if before.get(key) != requested[key])
    if other:
        raise SweepError(
            f"the run {result['name']} used another {' and '.join(other)} than requested now: "
            "give the measurement another name, or remove its results."
        )
