"""The report on a vMotion test: its verdict, its timeline and its moves, as a page or as a section of another page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject
from . import cost_section, escaping
from .escaping import html as escape
from .style import STYLE, site_banner
from .timeline_plot import STYLE as PLOT_STYLE
from .timeline_plot import plot

TITLE = "Training under vMotion"
HEADS = (
    *("", "Worker", "From", "To", "GPU", "Encrypted", "Seconds", "Stun expected", "Job stood still"),
    *("Before", "During", "After", "Back after"),
)
NUMBERS = ("Seconds", "Stun expected", "Job stood still", "Before", "During", "After", "Back after")
ENCRYPTED = {True: "yes", False: "no", None: "-"}
KEY = """Each move is a band with its number in the table below. The bottom line marks the silences of the job, and the
rows below it show the host of each worker, and the times at which hosts were out of service."""
NOTE = """Before, during and after: steps or images of a rank per second, on the observer's clock over the whole time,
including silences. Stun expected: the server's estimate or the value from VMware's
tables, before the move; no server reports the actual time. Encrypted: from vCenter's events. GPU: the server's name,
before and after the move. A dash means that the value is unknown."""
SECTION_STYLE = (
    PLOT_STYLE
    + """
.verdict b { font-size: 20px; }
.verdict.continuous b { color: var(--busy); }
.verdict.broken b { color: var(--bad); }
.verdict.inconclusive b { color: var(--warn); }
.moves th { white-space: normal; vertical-align: bottom; }
.moves td { white-space: normal; }
.moves td:first-child { min-width: 0; }
tr.failed td { color: var(--bad); }
"""
)
# The only move in "Distributed Machine Learning on vSphere leveraging NVIDIA vGPU and Mellanox PVRDMA", VMware.
WHITEPAPER = {
    "seconds": 189,
    "text": "The T4 whitepaper moved one worker under load (12:04:46 to 12:07:55, encrypted, T4-16C with 13.9 GB of "
    "memory in use). It does not report how long the job stood still, nor whether the job continued.",
}


def page(timeline: JsonObject, title: str = TITLE) -> str:
    """Return one HTML page that needs no other file."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{STYLE}{SECTION_STYLE}</style></head><body><main>",
        f"<header>{site_banner(str(timeline.get('site') or ''))}<h1>{escape(title)}</h1></header>",
        section(timeline, "Verdict and timeline"),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def section(timeline: JsonObject, title: str) -> str:
    """Return one test as a section; its page must contain SECTION_STYLE."""
    moves = list(timeline["moves"])
    body = [
        _verdict(timeline),
        _list("Other runs on its nodes", timeline.get("other_runs") or []),
        f'<div class="wide">{plot(timeline)}</div>' if timeline["rates"] else "",
        f"<p>{KEY}</p>",
        _table(moves) if moves else "",
        _beside(moves),
        cost_section.section(timeline),
        _list("Breaches", [f"{breach['kind']}: {breach['detail']}" for breach in timeline.get("breaches") or []]),
        _list("Not verified", timeline.get("unproven") or []),
        _list("Notes", timeline.get("notes") or []),
        _list("Earlier in this observation", list(_earlier(timeline))),
    ]
    return f"<section><h2>{escape(title)}</h2>{''.join(body)}</section>"


def markdown(timeline: JsonObject, title: str) -> str:
    """Return one test as Markdown, without the plot."""
    rows = [_cells(index, move) for index, move in enumerate(timeline["moves"], 1)]
    lines = [f"## {escaping.line(title)}", "", escaping.line(_sentence(timeline)), ""]
    for text in timeline.get("other_runs") or []:
        lines += [f"- another run on its nodes: {escaping.markdown(text)}", ""]
    lines += ["| " + " | ".join(HEADS) + " |", "|" + " --- |" * len(HEADS)]
    lines += ["| " + " | ".join(map(escaping.markdown, row)) + " |" for row in rows]
    lines += cost_section.markdown(timeline)
    for breach in timeline.get("breaches") or []:
        lines += ["", f"- {escaping.line(breach['kind'])}: {escaping.markdown(breach['detail'])}"]
    return "\n".join(lines) + "\n"


def _sentence(timeline: JsonObject) -> str:
    gap = timeline.get("longest_gap_s")
    longest = "no silence was measured" if gap is None else f"longest silence {gap:.1f} s"
    return f"{timeline['verdict']}, moved: {timeline['moved']}, {longest}"


def _verdict(timeline: JsonObject) -> str:
    return f'<p class="verdict {escape(str(timeline["verdict"]))}"><b>{escape(_sentence(timeline))}</b></p>'


def _table(moves: Sequence[Mapping[str, object]]) -> str:
    top = "".join(f"<th{_kind(head)}>{escape(head)}</th>" for head in HEADS)
    body = "".join(_row(index, move) for index, move in enumerate(moves, 1))
    note = f"<p>{escape(NOTE)}</p>"
    return f'<div class="wide moves"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>{note}'


def _row(index: int, move: JsonObject) -> str:
    kind = "" if move["moved"] else ' class="failed"'
    cells = zip(HEADS, _cells(index, move))
    return f"<tr{kind}>{''.join(f'<td{_kind(head)}>{escape(cell)}</td>' for head, cell in cells)}</tr>"


def _kind(head: str) -> str:
    return ' class="number"' if head in NUMBERS else ""


def _cells(index: int, move: JsonObject) -> list[str]:
    rates = move.get("throughput") or {}
    took = None if move["from"] is None else move["until"] - move["from"]
    worker = f"{move['worker']} (by {move['by'] or 'others'})" if move["external"] else str(move["worker"])
    target = str(move["target"]) if move["moved"] else f"{move['target']} (not moved: {move['said'] or 'it stayed'})"
    return [
        str(index),
        worker,
        str(move["source"]),
        target,
        _gpus(move),
        ENCRYPTED[move.get("encrypted")],
        *(_number(seconds) for seconds in (took, move.get("stun_expected_s"), move["gap_s"])),
        *(_rate(rates, when) for when in ("before", "during", "after")),
        _number(move["resumed_s"]),
    ]


def _gpus(move: JsonObject) -> str:
    """Return the GPUs before and after a move, without the names of the hosts, which are in the cells before them."""
    before, after = ((move.get("gpus") or {}).get(when) for when in ("before", "after"))
    if not isinstance(before, (list, tuple)) or not isinstance(after, (list, tuple)):
        return "-"
    return f"{_names(before, move['source'])} \u2192 {_names(after, move['target'])}"


def _names(gpus: Sequence[object], host: object) -> str:
    prefix = f"{host}/"
    return ", ".join(name[len(prefix) :] if name.startswith(prefix) else name for name in map(str, gpus)) or "none"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _rate(rates: Mapping[str, Any], when: str) -> str:
    value = rates.get(when)
    return "-" if value is None else f"{value:.1f} {rates['unit']}" if value >= 10 else f"{value:.2f} {rates['unit']}"


def _beside(moves: Sequence[Mapping[str, Any]]) -> str:
    """Return a comparison with the whitepaper's test, which was a single move, if the test moved only one worker."""
    succeeded = [move for move in moves if move["moved"] and move["from"] is not None]
    if not succeeded or len({move["worker"] for move in moves}) != 1:
        return ""
    longest = max(succeeded, key=lambda move: move["until"] - move["from"])
    how = ["hot"] if longest.get("hot_migration") else []
    how += [] if longest.get("encrypted") is None else ["encrypted" if longest["encrypted"] else "not encrypted"]
    took = f"{longest['until'] - longest['from']:.1f} s" + (f" ({', '.join(how)})" if how else "")
    text = f"This worker moved in {took}, the whitepaper's in {WHITEPAPER['seconds']} s. {WHITEPAPER['text']}"
    return f"<p>{escape(text)}</p>"


def _earlier(timeline: JsonObject) -> Iterator[str]:
    """Yield the moves of the earlier windows of an observation."""
    for window in timeline.get("earlier") or []:
        files = ", ".join(window["files"])
        for move, row in zip(window["moves"], window["rows"]):
            where = f"{move['worker']} from {move['source']} to {move['target']}, by {move.get('by') or 'others'}"
            yield f"{where}: silent for {_number(row.get('gap_s'))} s; the job was {window['verdict']} ({files})"


def _list(title: str, texts: Sequence[str]) -> str:
    return f"<h3>{escape(title)}</h3><ul>{''.join(_items(texts))}</ul>" if texts else ""


def _items(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"<li>{escape(text)}</li>" for text in texts)
