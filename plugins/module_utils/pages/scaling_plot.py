"""Plots as SVG: figures over the number of GPUs or the steps of a run, with one line for each transport or run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .escaping import html as escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 520, 300, 58, 24, 14, 44
# The minimum width of a band, and the width of a letter in its label.
NARROW, LETTER = 3.0, 10.0
COLOURS = 4
GPUS, STEPS = "GPUs", "step"
# More points than this are drawn as a curve, without marks and with ticks at round numbers.
MOST_MARKS = 12
# The limits of an axis: a rate of 1e308 from a broken script must not overflow a plot.
LOWEST, HIGHEST = 1e-9, 1e15
FIGURE_STYLE = """
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(420px, 100%), 1fr)); gap: 18px; }
.figures.uneven { grid-template-columns: minmax(0, 2fr) minmax(0, 1fr); }
@media screen and (max-width: 800px) {
  .figures.uneven { grid-template-columns: minmax(0, 1fr); }
  .figures.uneven figure { overflow-x: auto; }
  .figures.uneven svg[viewBox^="0 0 6"] { min-width: 520px; }
}
.figures .legend { gap: 2px 18px; margin-top: 4px; }
figure svg text { font-size: 15px; }
figure svg .tick { font-size: 15px; }
figcaption { font-weight: 600; margin-bottom: 4px; }
figure svg { min-width: 0; }
:root { --c0: #2f6fb7; --c1: #d9822b; --c2: #3a8a4d; --c3: #8a4fae; }
@media (prefers-color-scheme: dark) { :root { --c0: #5b9be0; --c1: #f0a24e; --c2: #6cc083; --c3: #bd8be0; } }
@media print { :root { --c0: #2f6fb7; --c1: #d9822b; --c2: #3a8a4d; --c3: #8a4fae; } }
.caution { font-weight: 600; color: var(--warn); }
.wide + p { margin-top: 10px; }
figure .caution { margin: 0 0 4px; font-size: 13px; }
.c0 { --tone: var(--c0); } .c1 { --tone: var(--c1); } .c2 { --tone: var(--c2); } .c3 { --tone: var(--c3); }
svg .series polyline { fill: none; stroke: var(--tone); stroke-width: 2.5; }
svg .series circle { fill: var(--tone); }
svg .published polyline { stroke-dasharray: 5 4; stroke-width: 1.5; }
svg .published circle { fill: var(--card); stroke: var(--tone); stroke-width: 1.5; }
.legend .series i { height: 0; border-radius: 0; border-top: 3px solid var(--tone); background: none;
  vertical-align: middle; }
.legend .published i { border-top: 2px dashed var(--tone); }
figure .band { fill: var(--c1); opacity: 0.28; }
figure .band.running { fill: var(--c0); }
figure .band.failed { fill: var(--bad); }
figure .band.external { fill: var(--c3); }
"""


@dataclass(frozen=True)
class PlotLine:
    """A line: its name in the legend, its points, its colour, and whether its results were published by others."""

    name: str
    points: tuple[tuple[float, float], ...]
    colour: int = 0
    is_dashed: bool = False


@dataclass(frozen=True)
class PlotBand:
    """A part of the axis, with a label above it and a tooltip; its kind is a class of its style."""

    begin: float
    end: float
    label: str
    title: str
    kind: str


class Extras(NamedTuple):
    """A caution for the reader of a figure, the bands over parts of its axis, its width, and where its values begin.

    The axis of a loss, which may be negative or hardly change, begins near its lowest value, and that of a rate at 0.
    """

    note: str = ""
    bands: Sequence[PlotBand] = ()
    width: int = WIDTH
    from_zero: bool = True


NO_EXTRAS = Extras()


def plot(title: str, unit: str, lines: Sequence[PlotLine], axis: str = GPUS, more: Extras = NO_EXTRAS) -> str:
    """Return one figure with its legend; its text has the size of the page's if it is shown as wide as it is drawn."""
    width = more.width
    points = [point for line in lines for point in line.points]
    across = sorted({point[0] for point in points})
    is_curve = len(across) > MOST_MARKS
    most = max([*map(bounded, across), 2])
    values = [bounded(point[1]) for point in points] or [LOWEST]
    bottom, top = (0.0, nice(max(values))) if more.from_zero else around(values)
    frame = _Frame(nice(most) if is_curve else most, bottom, top, axis, is_curve, width)
    ticks = [frame.most * part / 4 for part in range(0, 5, 1 if width >= WIDTH else 2)] if is_curve else across
    parts = [
        f"<figure><figcaption>{escape(title)}</figcaption>",
        f'<svg viewBox="0 0 {width} {HEIGHT}" role="img" aria-label="{escape(title)}">',
        *frame.axes(ticks, unit),
        *frame.bands(more.bands),
        *(piece for line in lines for piece in frame.line(line, unit)),
        "</svg>",
        f'<p class="caution">{escape(more.note)}</p>' if more.note else "",
        f'<p class="legend">{"".join(_key(line) for line in lines)}</p></figure>',
    ]
    return "\n".join(parts)


def bounded(value: float) -> float:
    """Return a value that can be drawn: 0 for NaN, and the limit for a value beyond it."""
    return 0.0 if math.isnan(value) else min(max(value, -HIGHEST), HIGHEST)


def nice(value: float) -> float:
    """Return the next higher round number that is easy to divide into four."""
    value = max(bounded(value), LOWEST)
    size = 10.0 ** math.floor(math.log10(value))
    return next(size * factor for factor in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 6, 8, 10) if size * factor >= value * 0.9999)


def around(values: Sequence[float]) -> tuple[float, float]:
    """Return round numbers below and above all values, which lie close to them unless 0 is as close."""
    low, high = min(values), max(values)
    if 0 <= low <= high / 2:
        return 0.0, nice(high)
    range_ = max(high - low, abs(high) / 100)
    # The axis has four steps, of which the part below the lowest value may take nearly one.
    ends = [(math.floor(low / step) * step, step) for step in (nice(range_ / 4), nice(range_ / 3))]
    bottom, step = next((one for one in ends if one[0] + 4 * one[1] >= high), ends[-1])
    return bottom, bottom + 4 * step


@dataclass(frozen=True)
class _Frame:
    most: float
    bottom: float
    top: float
    axis: str
    is_curve: bool
    width: int

    def across(self, place: float) -> float:
        """Return the position of a number of GPUs, or of a step."""
        return LEFT + (self.width - LEFT - RIGHT) * bounded(place) / self.most

    def up(self, value: float) -> float:
        part = (bounded(value) - self.bottom) / (self.top - self.bottom)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * part

    def axes(self, ticks: Sequence[float], unit: str) -> Iterator[str]:
        """Yield the grid, its ticks and the name of the axis."""
        for part in range(5):
            value = self.bottom + (self.top - self.bottom) * part / 4
            up = self.up(value)
            yield f'<line class="grid" x1="{LEFT}" y1="{up:.1f}" x2="{self.width - RIGHT}" y2="{up:.1f}"/>'
            yield f'<text class="name" x="{LEFT - 8}" y="{up + 4:.1f}">{value:g}</text>'
        for count in ticks:
            yield f'<text class="tick" x="{self.across(count):.1f}" y="{HEIGHT - BOTTOM + 18}">{count:g}</text>'
        yield f'<text class="tick" x="{(LEFT + self.width - RIGHT) / 2:.0f}" y="{HEIGHT - 6}">{self.axis}</text>'
        yield f"<desc>{escape(unit)}</desc>"

    def bands(self, bands: Sequence[PlotBand]) -> Iterator[str]:
        """Yield the bands, and those of their labels that do not overlap."""
        free = 0.0
        for band in bands:
            begin, end = self.across(band.begin), self.across(band.end)
            left, width = max(LEFT, begin - NARROW / 2), max(end - begin, NARROW)
            place = f'x="{left:.1f}" y="{TOP}" width="{width:.1f}" height="{HEIGHT - TOP - BOTTOM}"'
            yield f'<rect class="band {band.kind}" {place}><title>{escape(band.title)}</title></rect>'
            middle, half = left + width / 2, LETTER * len(band.label) / 2
            if middle - half >= free:
                yield f'<text class="tick" x="{middle:.1f}" y="{TOP - 3}">{escape(band.label)}</text>'
                free = middle + half

    def line(self, line: PlotLine, unit: str) -> Iterator[str]:
        kind = f"c{line.colour % COLOURS}" + (" published" if line.is_dashed else "")
        places = " ".join(f"{self.across(gpus):.1f},{self.up(value):.1f}" for gpus, value in line.points)
        yield f'<g class="series {kind}"><polyline points="{places}"/>'
        for gpus, value in () if self.is_curve else line.points:
            where = f"at {STEPS} {gpus:g}" if self.axis == STEPS else f"on {gpus:g} {self.axis}"
            title = escape(f"{line.name}: {value:.2f} {unit} {where}")
            place = f'cx="{self.across(gpus):.1f}" cy="{self.up(value):.1f}"'
            yield f'<circle {place} r="4"><title>{title}</title></circle>'
        yield "</g>"


def _key(line: PlotLine) -> str:
    kind = f"c{line.colour % COLOURS}" + (" published" if line.is_dashed else "")
    return f'<span class="series {kind}"><i></i>{escape(line.name)}</span>'
