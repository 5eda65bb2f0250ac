# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The plot of a report on GPUs as SVG: one row for each GPU, with its utilisation and its assigned share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..usage.usage_report import UNASSIGNED, UNREACHABLE
from ..usage.usage_text import busy, percent, plain
from .escaping import html as escape

WIDTH, ROW, BAR, TOP, BOTTOM = 960, 26, 14, 34, 8
LABEL, TRACK, TEXT = 250, 420, 106
SHARE_AT, SHARE = LABEL + TRACK + TEXT + 20, 110
HATCH = (
    '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern>'
)
TICKS = (0, 25, 50, 75, 100)


def plot(gpus: Sequence[Mapping[str, Any]]) -> str:
    """Return the drawing."""
    height = TOP + ROW * len(gpus) + BOTTOM
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="Utilisation and assigned share of each GPU">',
        f"<defs>{HATCH}</defs>",
        *_axes(height),
    ]
    for place, gpu in enumerate(gpus):
        parts += _row(gpu, TOP + ROW * place)
    return "\n".join([*parts, "</svg>"])


def _axes(height: int) -> Iterator[str]:
    yield f'<text class="head" x="{LABEL}" y="12">Utilisation: bar mean, line peak</text>'
    yield f'<text class="head" x="{SHARE_AT}" y="12">Assigned</text>'
    for tick in TICKS:
        across = _x(tick)
        yield f'<line class="grid" x1="{across}" y1="{TOP - 4}" x2="{across}" y2="{height - BOTTOM}"/>'
        yield f'<text class="tick" x="{across}" y="{TOP - 8}">{tick}%</text>'


def _row(gpu: Mapping[str, Any], top: int) -> Iterator[str]:
    """Yield one GPU: its name, its bar or the state that replaces the bar, and its share."""
    state = gpu["state"].replace(" ", "-")
    bar_top, base = top + (ROW - BAR) // 2, top + ROW // 2 + 4
    name = escape(f"{plain(gpu['host'])}  {plain(gpu['address'])}")
    utilisation = busy(gpu["utilisation"])
    yield f'<g class="gpu {state}"><title>{name}: {escape(gpu["state"])}, {escape(utilisation)}</title>'
    yield f'<text class="name" x="{LABEL - 12}" y="{base}">{name}</text>'
    yield f'<rect class="track" x="{LABEL}" y="{bar_top}" width="{TRACK}" height="{BAR}" rx="3"/>'
    yield from _bar(gpu, bar_top)
    text = gpu["state"] if gpu["state"] in (UNASSIGNED, UNREACHABLE) else utilisation
    yield f'<text class="value" x="{LABEL + TRACK + 10}" y="{base}">{escape(text)}</text>'
    yield from _share(gpu["assigned_share"], bar_top, base)
    yield "</g>"


def _bar(gpu: Mapping[str, Any], top: int) -> Iterator[str]:
    utilisation = gpu["utilisation"]
    if utilisation is None or gpu["state"] == UNASSIGNED:
        yield f'<rect class="hollow" x="{LABEL}" y="{top}" width="{TRACK}" height="{BAR}" rx="3"/>'
        return
    width = max(TRACK * min(utilisation["mean"], 100) / 100, 2)
    yield f'<rect class="bar" x="{LABEL}" y="{top}" width="{width:.1f}" height="{BAR}" rx="3"/>'
    peak = _x(min(utilisation["peak"], 100))
    yield f'<line class="peak" x1="{peak}" y1="{top - 2}" x2="{peak}" y2="{top + BAR + 2}"/>'


def _share(share: float, top: int, base: int) -> Iterator[str]:
    """Yield the assigned share of the GPU."""
    yield f'<rect class="track" x="{SHARE_AT}" y="{top}" width="{SHARE}" height="{BAR}" rx="3"/>'
    if share:
        yield f'<rect class="share" x="{SHARE_AT}" y="{top}" width="{SHARE * share:.1f}" height="{BAR}" rx="3"/>'
    yield f'<text class="value" x="{SHARE_AT + SHARE + 8}" y="{base}">{percent(100 * share)}</text>'


def _x(value: float) -> str:
    """Return the position of a percentage."""
    return f"{LABEL + TRACK * value / 100:.1f}".rstrip("0").rstrip(".")
