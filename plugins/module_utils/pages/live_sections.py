# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Sections of the page of a running job: the moves of its workers, its GPUs, and the end of its output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

from ..training.output.gpu_use import GpuUse, NodeGpus
from ..training.output.live_state import JobMove, LiveState
from .escaping import html as escape
from .scaling_plot import PlotBand

MOST_MOVES, MOST_GPUS = 20, 64
UNKNOWN = "unknown"
MOVE_HEADS = ("Move", "Worker", "From", "To", "Start", "Duration", "Result")
GPU_HEADS = ("Node", "GPU", "Model", "Utilization", "Memory")
NUMBERS = {"Duration", "Utilization", "Memory"}
RESULTS = {"running": "in progress", "moved": "moved", "failed": "not moved", "external": "moved by others"}
GIB = 1 << 30
SECTION_STYLE = """
.output { margin: 0; font: 12.5px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.use { display: inline-block; width: 64px; height: 8px; margin-right: 8px; border-radius: 3px; overflow: hidden;
  background: var(--track); vertical-align: middle; }
.use i { display: block; height: 100%; background: var(--busy); }
section > table + p, section > .wide + p { margin: 10px 0 0; }
"""


def bands(state: LiveState) -> list[PlotBand]:
    """Return a band for each move, over the steps that the job made during it."""
    return [
        PlotBand(
            step_at(state.points, move.begin - state.began),
            step_at(state.points, move.until - state.began),
            str(number),
            f"{number}: {move.worker} from {move.source} to {move.target}, {RESULTS[move.kind]}",
            move.kind,
        )
        for number, move in enumerate(state.moves, start=1)
    ]


def step_at(points: Sequence[Mapping[str, Any]], seconds: float) -> float:
    """Return the step of the job at a time, interpolated between two points of its curve."""
    for before, after in zip(points, points[1:]):
        if before["seconds"] < seconds <= after["seconds"]:
            share = (seconds - before["seconds"]) / (after["seconds"] - before["seconds"])
            return float(before["step"] + share * (after["step"] - before["step"]))
    ends = (points[0], points[-1]) if points else ({"step": 0, "seconds": 0.0},) * 2
    return float(ends[0 if seconds <= ends[0]["seconds"] else 1]["step"])


def moves(state: LiveState) -> str:
    """Return the table of the moves, starting with the latest; empty without moves."""
    numbered = list(enumerate(state.moves, start=1))[::-1]
    rows = [_move_cells(number, move) for number, move in numbered[:MOST_MOVES]]
    more = len(numbered) - MOST_MOVES
    note = f"<p>{more} earlier moves are only in the charts.</p>" if more > 0 else ""
    return f"<section><h2>Moves of workers</h2>{_table(MOVE_HEADS, rows)}{note}</section>" if rows else ""


def _move_cells(number: int, move: JobMove) -> Sequence[str]:
    start = datetime.fromtimestamp(move.begin, timezone.utc).strftime("%H:%M:%S UTC")
    words = (str(number), move.worker, move.source, move.target, start, f"{move.until - move.begin:.1f} s")
    return [escape(word) for word in (*words, RESULTS[move.kind])]


def gpus(state: LiveState) -> str:
    """Return the table of the GPUs, starting with the least used if there are many; empty without GPUs."""
    each = [(node.node, gpu) for node in state.gpus for gpu in node.gpus]
    if len(each) > MOST_GPUS:
        each.sort(key=lambda pair: -1.0 if pair[1].busy is None else pair[1].busy)
    rows = [_gpu_cells(node, gpu) for node, gpu in each[:MOST_GPUS]]
    more = len(each) - MOST_GPUS
    notes = [f"{more} more GPUs have a higher utilization."] if more > 0 else []
    notes += [f"{node.node}: {_unread(node)}" for node in state.gpus if node.why]
    table = _table(GPU_HEADS, rows) if rows else ""
    text = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"<section><h2>GPUs</h2>{table}{text}</section>" if state.gpus else ""


def _unread(node: NodeGpus) -> str:
    who = "the use of further GPUs" if node.gpus else "the use of the GPUs"
    return f"{who} is unknown ({node.why})."


def _gpu_cells(node: str, gpu: GpuUse) -> Sequence[str]:
    width = 0.0 if gpu.busy is None else gpu.busy
    meter = f'<span class="use"><i style="width: {width:.0f}%"></i></span>'
    busy = UNKNOWN if gpu.busy is None else f"{meter}{gpu.busy:.0f}%"
    return [escape(node), str(gpu.number), escape(gpu.name), busy, f"{_gib(gpu.used)} of {_gib(gpu.total)}"]


def _gib(count: int | None) -> str:
    return UNKNOWN if count is None else f"{count / GIB:.1f} GiB"


def output(state: LiveState) -> str:
    """Return the last lines of the output; empty without an output."""
    lines = "\n".join(escape(line) for line in state.output)
    all_lines = '<p><a href="output.log">All lines</a></p>'
    return f'<section><h2>Output</h2><pre class="output">{lines}</pre>{all_lines}</section>' if lines else ""


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th{_kind(name)}>{name}</th>" for name in heads)
    body = "".join(_rows(heads, rows))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in rows:
        yield f"<tr>{''.join(f'<td{_kind(name)}>{cell}</td>' for name, cell in zip(heads, cells))}</tr>"


def _kind(head: str) -> str:
    return ' class="number"' if head in NUMBERS else ' class="short"' if head == "Start" else ""
