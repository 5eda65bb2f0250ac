"""The page of a job while it trains: one file that reloads itself until the job ends."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone

from ..training.output.gpu_use import GpuUse, NodeGpus, mean_use
from ..training.output.live_state import JobMove, LiveState
from ..watch.curve import Point
from ..watch.live_pace import RankPace, Rates
from ..watch.shown_lines import short_paths
from .escaping import html as escape
from .scaling_plot import FIGURE_STYLE, STEPS, Extras, PlotBand, PlotLine, plot
from .style import STYLE

REFRESH_SECONDS = 5
MOST_RANKS = 64
# The widths of the loss and of the throughput, so that the scale of both is that of the page.
WIDE, NARROW = 680, 340
HEADS = ("Rank", "Node", "Step", "Rate", "Loss", "Last step", "Longest silence")
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


def page(state: LiveState) -> str:
    title = escape(state.name)
    refresh = f'<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' if state.is_running else ""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        refresh,
        f"<title>{title}</title><style>{STYLE}{FIGURE_STYLE}{SECTION_STYLE}</style></head><body><main>",
        f"<header><h1>{title}</h1><p>{escape(_status(state))}</p>{_links(state)}</header>",
        _calls(state),
        _tiles(state),
        _figures(state),
        moves(state),
        _ranks(state),
        gpus(state),
        output(state),
        "".join(f"<p>{escape(text)}</p>" for text in _notes(state)),
        "</main></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _status(state: LiveState) -> str:
    moment = datetime.fromtimestamp(state.now, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
    text = f"State: {state.state}. Written at {moment}"
    return f"{text}, every {REFRESH_SECONDS} s while the job runs." if state.is_running else f"{text}."


def _links(state: LiveState) -> str:
    """Return the links to the results of a job that has finished; another one has none."""
    if state.state != "finished":
        return ""
    result = f'<a href="../{_in_link(state.name)}.json">result of the run</a>'
    return f'<p>See the {result} and the <a href="../../training.html">report</a> of the playbook report.</p>'


def _in_link(name: str) -> str:
    plain = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~")
    return "".join(chr(byte) if chr(byte) in plain else f"%{byte:02X}" for byte in name.encode("utf-8", "replace"))


def _calls(state: LiveState) -> str:
    texts = [f"{node} cannot be read: {why}" for node, why in state.troubles.items()]
    texts += [short_paths(text) for text in (state.why, str(state.pace["first_silent"])) if text]
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return f'<div class="call"><ul>{items}</ul></div>' if texts else ""


def _tiles(state: LiveState) -> str:
    pace, total = state.pace, state.total_steps
    of = f"step of {total}" if total and pace["step"] <= total else "step of all ranks"
    left = UNKNOWN if pace["seconds_to_go"] is None else f"{pace['seconds_to_go']:.0f} s"
    rate, _blank, unit = _rate(pace).partition(" ")
    of_ranks = "of all ranks" if pace["images_per_sec"] else "of the slowest rank"
    tiles = [(str(pace["step"]), of), (rate, f"{unit} {of_ranks}" if unit else f"rate {of_ranks}")]
    tiles += [(_number(pace["loss"]), "loss"), *([(left, "remaining time")] if state.is_running else [])]
    busy = mean_use(state.gpus)
    tiles += [] if busy is None else [(f"{busy:.0f}%", "mean GPU use")]
    tiles += [(_seconds(state.age), "since the last step")] if state.is_running else []
    body = "".join(f"<div><b>{escape(value)}</b><span>{escape(text)}</span></div>" for value, text in tiles)
    return f'<div class="tiles">{body}</div>'


def _figures(state: LiveState) -> str:
    losses = tuple((point["step"], point["loss"]) for point in state.points if point["loss"] is not None)
    images = tuple((point["step"], point["images_per_sec"]) for point in state.points if point["images_per_sec"])
    steps = () if images else tuple(_step_rates(state.points))
    rate = Extras(bands=move_bands(state), width=NARROW)
    drawn = [
        plot(title, unit, [PlotLine(state.name, points)], STEPS, more)
        for title, unit, points, more in (
            ("Loss", "", losses, rate._replace(width=WIDE, from_zero=False)),
            ("Images per second", "images/s", images, rate),
            ("Steps per second", "steps/s", steps, rate),
        )
        if len(points) > 1
    ]
    return f'<section><div class="figures uneven">{"".join(drawn)}</div></section>' if drawn else ""


def _step_rates(points: Sequence[Point]) -> Iterator[tuple[float, float]]:
    for before, after in zip(points, points[1:]):
        seconds = after["seconds"] - before["seconds"]
        if seconds > 0:
            yield after["step"], (after["step"] - before["step"]) / seconds


def _ranks(state: LiveState) -> str:
    """Return the table of the ranks, those with the lowest step first."""
    ordered = sorted(state.ranks, key=lambda rank: (rank["step"], rank["rank"]))
    rows = "".join(_row(state, rank) for rank in ordered[:MOST_RANKS])
    head = "".join(f"<th{_kind(name)}>{name}</th>" for name in HEADS)
    table = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    more = len(ordered) - MOST_RANKS
    note = f"<p>{more} more ranks have made more steps.</p>" if more > 0 else ""
    return f"<section><h2>Ranks</h2>{table}{note}</section>" if ordered else ""


def _row(state: LiveState, rank: RankPace) -> str:
    age = f"{_seconds(state.now - rank['seen'])} ago"
    cells = (rank["rank"], rank["host"], rank["step"], _rate(rank), _number(rank["loss"]), age)
    named = zip(HEADS, (*cells, _seconds(rank["longest_s"])))
    return f"<tr>{''.join(f'<td{_kind(name)}>{escape(str(cell))}</td>' for name, cell in named)}</tr>"


def _kind(head: str) -> str:
    return "" if head in ("Rank", "Node") else ' class="number"'


def _notes(state: LiveState) -> Iterator[str]:
    if not state.ranks:
        yield "No rank has reported a step. A script whose steps are unknown trains without them."
    elif state.pace["steps_by"]:
        yield f"The steps are those of {state.pace['steps_by']}; the script does not record them itself."
    if state.ranks and state.pace["loss"] is None:
        yield "No rank reports a loss."


def _rate(pace: Rates) -> str:
    if pace["images_per_sec"]:
        return f"{pace['images_per_sec']:.1f} images/s"
    return UNKNOWN if pace["steps_per_sec"] is None else f"{pace['steps_per_sec']:.2f} steps/s"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.4g}" if math.isfinite(value) else str(value)


def _seconds(value: float | None) -> str:
    return UNKNOWN if value is None else f"{max(value, 0.0):.1f} s"


def move_bands(state: LiveState) -> list[PlotBand]:
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


def step_at(points: Sequence[Point], seconds: float) -> float:
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
    head = "".join(f"<th{_class_of(name)}>{name}</th>" for name in heads)
    body = "".join(_rows(heads, rows))
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for cells in rows:
        yield f"<tr>{''.join(f'<td{_class_of(name)}>{cell}</td>' for name, cell in zip(heads, cells))}</tr>"


def _class_of(head: str) -> str:
    return ' class="number"' if head in NUMBERS else ' class="short"' if head == "Start" else ""
