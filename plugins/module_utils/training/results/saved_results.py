"""The results that the controller keeps: of runs, of measurements with their remaining runs, and of pairs of nodes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import runner
from ...errors import Refused
from ..pairs import pair_result
from ..transport.job_settings import TRANSPORTS
from .report_files import PRIVATE, ReportFiles

TIMELINE = "timeline.json"
# The keys that a run needs for a row in a table.
NEEDED = ("name", "nodes", "gpus", "transport", "images_per_sec")
NEEDED_OF_A_CHECK = ("name", "nodes", "transport", "tool", "ended", "pairs", "cards", "findings")
REMEDY = "remove the file or restore the one that role training wrote"
FINISHED = "finished"


def runs(folder: Path, names: str) -> list[dict[str, Any]]:
    """Return the results in a folder whose names match a pattern, in the order of their names."""
    return [
        _complete(path, "read the result of a training run", NEEDED) for path in _files(folder.glob(f"{names}.json"))
    ]


def fabric_checks(folder: Path) -> list[dict[str, object]]:
    """Return the results of bandwidth measurements below a folder, in the order of their ends."""
    tried = "read the result of a bandwidth measurement"
    checks = [_complete(path, tried, NEEDED_OF_A_CHECK) for path in _files(folder.glob("*/result.json"))]
    return sorted(checks, key=lambda check: float(check["ended"] or 0))


def write_pairs(folder: str, records: str, job: Mapping[str, Any], **check: Any) -> dict[str, object]:
    """Write the result of a bandwidth measurement into the folder of its name, and return it with lines to show.

    ``check`` has the ``name``, ``nodes``, ``transport``, ``nccl``, ``devices``, ``least`` and ``expected`` of the
    measurement.
    """
    if not 0 < check["least"] <= 1 or check["expected"] < 0:
        cause = f"least is {check['least']} and expected is {check['expected']}"
        remedy = "specify a share above 0 and at most 1, and an expected bandwidth of 0 or more"
        raise Refused(check["name"], "compare the pairs", cause, remedy)
    result = pair_result.result({**check, "asked": check["devices"], "goal": check["expected"]}, records, job)
    texts = {"result.json": json.dumps(result, indent=4, sort_keys=True) + "\n"}
    files = ReportFiles(Path(folder, check["name"]), texts, PRIVATE)
    error = " ".join(each["text"] for each in result["findings"])
    shown = {"result": result, "lines": pair_result.lines(result), "files": files.paths, "error": error}
    return {**runner.converge_one(runner.OfProgram(), files), **shown}


def network_findings(folder: str, nodes: Sequence[str], recent: int) -> list[str]:
    """Return the findings of recent bandwidth measurements about nodes."""
    return pair_result.stops(fabric_checks(Path(folder)), nodes, time.time(), recent)


def remaining_runs(
    measured: Mapping[str, Any], results: str, requested: Mapping[str, Any], prove: bool
) -> dict[str, object]:
    """Return the runs of a scaling measurement that have no good result yet, and a sentence about them.

    ``measured`` has the ``name``, ``nodes``, ``sizes``, ``transports`` and ``repeats`` of the measurement. Results with
    options other than ``requested`` are refused. With ``prove``, a result is good only if its transport was verified.
    """
    name, nodes = measured["name"], measured["nodes"]
    earlier = runs(Path(results), f"{name}-*")
    sizes = measured["sizes"] or range(1, len(nodes) + 1)
    try:
        planned = runs_of_sizes(sizes, measured["transports"], measured["repeats"], name)
        left = remaining(with_nodes(planned, nodes), earlier, requested, prove=prove)
    except SweepError as error:
        raise Refused(f"the measurement {name}", "plan its runs", str(error)) from error
    return {"runs": planned, "left": left, "summary": summary(planned, left)}


def timelines(folder: Path) -> list[dict[str, object]]:
    """Return the timelines of all tests below a folder, in the order of their paths."""
    return [_read(path, "read the timeline of a vMotion test") for path in _files(folder.rglob(TIMELINE))]


def _files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file() and not path.name.startswith("."))


def _complete(path: Path, tried: str, needed: Sequence[str]) -> dict[str, Any]:
    found = _read(path, tried)
    lacking = [key for key in needed if key not in found]
    if lacking:
        raise Refused(str(path), tried, f"it has no {', '.join(lacking)}", REMEDY)
    return found


def _read(path: Path, tried: str) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise Refused(str(path), tried, str(error), REMEDY) from error
    if not isinstance(content, Mapping):
        raise Refused(str(path), tried, "it does not contain a JSON object", REMEDY)
    return dict(content)


class SweepError(ValueError):
    """The options of a measurement are invalid."""


def runs_of_sizes(
    nodes: Sequence[int], transports: Sequence[str], repeats: int, measurement: str = ""
) -> list[dict[str, Any]]:
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
