"""The runs that nodes report, and those with a manifest on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import Refused
from ..running import busy
from . import code_differences, last_metrics, manifest, run_list, saved_manifests

Answers = Mapping[str, Mapping[str, Any]]


def list_runs(
    nodes: Answers, results: str, compare: Sequence[str] = (), places: Answers | None = None
) -> dict[str, Any]:
    """Return the runs on nodes and those in the folder of results as a table, or the differences of two of them.

    ``nodes`` has what training_info reported of the jobs on each node, ``places`` how the controller reaches them.
    """
    runs = busy.running(nodes, places)
    manifests, errors = saved_manifests.read_all(Path(results))
    silent = [name for name, answer in nodes.items() if "jobs" not in answer]
    entries = run_list.listed(runs, manifests, silent)
    lines = _compared(compare, results) if compare else run_list.lines(entries)
    return {"runs": runs, "entries": entries, "lines": lines, "warnings": errors}


def _compared(names: Sequence[str], results: str) -> list[str]:
    """Return the differences between two runs."""
    if len(names) != 2:
        remedy = "name two: -e training_compare=ONE,OTHER"
        raise Refused(", ".join(names), "compare training runs", f"{len(names)} runs are named", remedy)
    one, other = (saved_manifests.read(Path(results, name)) for name in names)
    code = code_differences.differences(*(Path(results, name, "code.tar") for name in names))
    left, right = (last_metrics.of_outputs(Path(results, name, "outputs")) for name in names)
    metrics = [(f"{key} in outputs", left.get(key), right.get(key)) for key in dict.fromkeys((*left, *right))]
    return manifest.compared(one, other, code, metrics)
