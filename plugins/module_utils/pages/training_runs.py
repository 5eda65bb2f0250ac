# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The parts of a report about single runs: rate and loss over the steps, and the software of the nodes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from .scaling_plot import STEPS, PlotLine, plot

BUILT_HEADS = ("Node", "Part", "Found", "Proven")
_PREFIX = "dml_"
_GPU_PARTS = {"dml_cuda", "dml_gpu_driver"}
Run = Mapping[str, Any]


def unit(runs: Sequence[Run]) -> str:
    """Return what trains: ranks if the software of the nodes is known and contains no GPU driver, otherwise GPUs."""
    parts = {str(part) for run in runs for node in (run.get("built") or {}).values() for part in node}
    return "ranks" if parts and not parts & _GPU_PARTS else "GPUs"


def figures(runs: Iterable[Run], unit_: str = "GPUs") -> list[str]:
    """Return figures of throughput and loss over the steps, for each number of GPUs and transport."""
    points: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        if run.get("curve"):
            points.setdefault((int(run["gpus"]), str(run["transport"])), []).append(run)
    drawn = []
    for (gpus, transport), group in sorted(points.items()):
        for quantity, unit, key in (("images per second", "images/s", "images_per_sec"), ("loss", "", "loss")):
            lines = list(_lines(group, key))
            if lines:
                title = f"{gpus} {unit_ if gpus > 1 else unit_[:-1]}, {transport}: {quantity}"
                drawn.append(plot(title, unit, lines, STEPS))
    return drawn


def built(runs: Sequence[Run]) -> list[list[str]]:
    """Return rows about the software of the nodes; if runs differ for a node, the latest run counts."""
    parts: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run in sorted(runs, key=lambda run: float((run.get("job") or {}).get("started") or 0)):
        for node, built_parts in (run.get("built") or {}).items():
            parts.update({(str(node), str(part).removeprefix(_PREFIX)): facts for part, facts in built_parts.items()})
    return [
        [
            node,
            part,
            _words(facts),
            "yes" if facts.get("proven") else f"no: {facts.get('why') or 'no reason is known'}",
        ]
        for (node, part), facts in sorted(parts.items())
    ]


def missing(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence for each value that the runs lack."""
    if not runs:
        return
    if not built(runs):
        yield "The software of the nodes is unknown: no role stored a proof on them."
    without = [
        str(run["name"]) for run in runs if not any(point["loss"] is not None for point in run.get("curve") or ())
    ]
    if without:
        yield f"No loss was recorded in {', '.join(without)}."
    for run in runs:
        if ", the first of" in str(run.get("steps_by")):
            yield f"The steps of {run['name']} are those of {run['steps_by']}; steps of the others were not counted."
    if len({str(sorted((run.get("asked") or {}).items())) for run in runs}) > 1:
        yield "The runs did different work: their rates cannot be compared."
    if len({(run["nodes"], run["gpus"], run["transport"]) for run in runs}) == len(runs):
        yield "No point was measured twice: the spread is unknown."


def _lines(group: Sequence[Run], key: str) -> Iterator[PlotLine]:
    for number, run in enumerate(group):
        points = tuple((point["step"], point[key]) for point in run["curve"] if point[key] is not None)
        if points:
            yield PlotLine(str(run["name"]), points, number)


def _words(facts: Mapping[str, Any]) -> str:
    """Return facts as text, such as ``version 4.1.4, nodes 4``; lists are written out."""
    words = [
        f"{key.replace('_', ' ')} {_value(value)}"
        for key, value in sorted(facts.items())
        if key not in ("proven", "why") and value not in (None, "", [], {})
    ]
    return ", ".join(words) or "-"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_value(part)}" for key, part in sorted(value.items()))
    return " ".join(map(_value, value)) if isinstance(value, (list, tuple)) else str(value)
