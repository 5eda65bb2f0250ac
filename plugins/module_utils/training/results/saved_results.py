"""Read the results of training runs and the timelines of vMotion tests from their folders."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import runner
from ...errors import Refused
from ..pairs import pair_result
from . import sweep_runs
from .report_files import PRIVATE, ReportFiles

TIMELINE = "timeline.json"
# The keys that a run needs for a row in a table.
NEEDED = ("name", "nodes", "gpus", "transport", "images_per_sec")
NEEDED_OF_A_CHECK = ("name", "nodes", "transport", "tool", "ended", "pairs", "cards", "findings")
REMEDY = "remove the file or restore the one that role training wrote"


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
        planned = sweep_runs.runs(sizes, measured["transports"], measured["repeats"], name)
        left = sweep_runs.remaining(sweep_runs.with_nodes(planned, nodes), earlier, requested, prove=prove)
    except sweep_runs.SweepError as error:
        raise Refused(f"the measurement {name}", "plan its runs", str(error)) from error
    return {"runs": planned, "left": left, "summary": sweep_runs.summary(planned, left)}


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
