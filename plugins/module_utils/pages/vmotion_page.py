# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The report on a vMotion test: its verdict, its timeline and its moves, as a page and as a section of another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from . import foreign
from .style import STYLE
from .timeline_plot import STYLE as PLOT_STYLE
from .timeline_plot import plot

TITLE = "Training under vMotion"
HEADS = (
    *("", "Worker", "From", "To", "GPU", "Encrypted", "Seconds", "Stun expected", "Job stood still"),
    *("Before", "During", "After", "Back after"),
)
NUMBERS = ("Seconds", "Stun expected", "Job stood still", "Before", "During", "After", "Back after")
ENCRYPTED = {True: "yes", False: "no", None: "-"}
KEY = """Each move is a band, numbered as below; silences of the job are marked on the bottom line, and under it is the
host of each worker."""
NOTE = """Before, during and after: images a second of a rank by the observer's clock over the whole time, so that a
silence counts; a dash where the script tells no images. Stun expected: by the server's estimate or VMware's tables,
before the move; no server tells how long it was. Encrypted: by vCenter's events. GPU: as the server names it, before
and after the move. A dash stands for what nobody told."""
SECTION_STYLE = (
    PLOT_STYLE
    + """
.verdict b { font-size: 20px; }
.verdict.continuous b { color: var(--busy); }
.verdict.broken b { color: var(--bad); }
.verdict.inconclusive b { color: var(--warn); }
tr.failed td { color: var(--bad); }
"""
)
# "Distributed Machine Learning on vSphere leveraging NVIDIA vGPU and Mellanox PVRDMA", VMware: its one move.
WHITEPAPER = {
    "seconds": 189,
    "text": "The T4 whitepaper moved one worker under load (12:04:46 to 12:07:55, encrypted, T4-16C with 13.9 GB of "
    "memory in use). It tells neither how long the job stood still nor what became of the job.",
}


def page(told: Mapping[str, Any], title: str = TITLE) -> str:
    """One HTML page that needs nothing else."""
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title><style>{STYLE}{SECTION_STYLE}</style></head><body><main>",
        f"<header><h1>{escape(title)}</h1></header>",
        section(told, "Verdict and timeline"),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def section(told: Mapping[str, Any], title: str) -> str:
    """One test as a section; a page that holds it needs SECTION_STYLE."""
    moves = list(told["moves"])
    body = [
        _verdict(told),
        f'<div class="wide">{plot(told)}</div>' if told["rates"] else "",
        f"<p>{KEY}</p>",
        _table(moves) if moves else "",
        _beside(moves),
        _list("Breaches", [f"{one['kind']}: {one['detail']}" for one in told.get("breaches") or []]),
        _list("Not proven", told.get("unproven") or []),
        _list("To know", told.get("notes") or []),
    ]
    return f"<section><h2>{escape(title)}</h2>{''.join(body)}</section>"


def markdown(told: Mapping[str, Any], title: str) -> str:
    """The same as Markdown, without the plot."""
    rows = [_cells(index, one) for index, one in enumerate(told["moves"], 1)]
    lines = [f"## {foreign.line(title)}", "", foreign.line(_sentence(told)), ""]
    lines += ["| " + " | ".join(HEADS) + " |", "|" + " --- |" * len(HEADS)]
    lines += ["| " + " | ".join(map(foreign.markdown, row)) + " |" for row in rows]
    for one in told.get("breaches") or []:
        lines += ["", f"- {foreign.line(one['kind'])}: {foreign.markdown(one['detail'])}"]
    return "\n".join(lines) + "\n"


def _sentence(told: Mapping[str, Any]) -> str:
    gap = told.get("longest_gap_s")
    longest = "no silence was measured" if gap is None else f"longest silence {gap:.1f} s"
    return f"{told['verdict']}, moved: {told['moved']}, {longest}"


def _verdict(told: Mapping[str, Any]) -> str:
    return f'<p class="verdict {escape(str(told["verdict"]))}"><b>{escape(_sentence(told))}</b></p>'


def _table(moves: Sequence[Mapping[str, Any]]) -> str:
    top = "".join(f"<th{_kind(head)}>{escape(head)}</th>" for head in HEADS)
    body = "".join(_row(index, one) for index, one in enumerate(moves, 1))
    note = f"<p>{escape(NOTE)}</p>"
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>{note}'


def _row(index: int, move: Mapping[str, Any]) -> str:
    kind = "" if move["moved"] else ' class="failed"'
    cells = zip(HEADS, _cells(index, move))
    return f"<tr{kind}>{''.join(f'<td{_kind(head)}>{escape(cell)}</td>' for head, cell in cells)}</tr>"


def _kind(head: str) -> str:
    return ' class="number"' if head in NUMBERS else ""


def _cells(index: int, move: Mapping[str, Any]) -> list[str]:
    rates = move.get("throughput") or {}
    took = None if move["from"] is None else move["until"] - move["from"]
    worker = f"{move['worker']} (by {move['by'] or 'others'})" if move["external"] else str(move["worker"])
    target = str(move["target"]) if move["moved"] else f"{move['target']} (not moved: {move['said'] or 'it stayed'})"
    return [
        str(index),
        worker,
        str(move["source"]),
        target,
        _gpus(move.get("gpus")),
        ENCRYPTED[move.get("encrypted")],
        *(_number(one) for one in (took, move.get("stun_expected_s"), move["gap_s"])),
        *(_number(rates.get(when)) for when in ("before", "during", "after")),
        _number(move["resumed_s"]),
    ]


def _gpus(told: Any) -> str:
    """The GPUs before and after a move."""
    before, after = ((told or {}).get(when) for when in ("before", "after"))
    if not isinstance(before, (list, tuple)) or not isinstance(after, (list, tuple)):
        return "-"
    return f"{', '.join(map(str, before)) or 'none'} \u2192 {', '.join(map(str, after)) or 'none'}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _beside(moves: Sequence[Mapping[str, Any]]) -> str:
    """The whitepaper's test was one move: what it measured is shown beside a test of one worker."""
    own = [one for one in moves if one["moved"] and one["from"] is not None]
    if not own or len({one["worker"] for one in moves}) != 1:
        return ""
    longest = max(own, key=lambda one: one["until"] - one["from"])
    how = ["hot"] if longest.get("hot_migration") else []
    how += [] if longest.get("encrypted") is None else ["encrypted" if longest["encrypted"] else "not encrypted"]
    took = f"{longest['until'] - longest['from']:.1f} s" + (f" ({', '.join(how)})" if how else "")
    text = f"This worker moved in {took}, the whitepaper's in {WHITEPAPER['seconds']} s. {WHITEPAPER['text']}"
    return f"<p>{escape(text)}</p>"


def _list(title: str, texts: Sequence[str]) -> str:
    return f"<h3>{escape(title)}</h3><ul>{''.join(_items(texts))}</ul>" if texts else ""


def _items(texts: Sequence[str]) -> Iterator[str]:
    yield from (f"<li>{escape(text)}</li>" for text in texts)
