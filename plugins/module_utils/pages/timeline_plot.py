"""The timeline of a vMotion test as SVG: the throughput with each move as a band, and the host of each worker below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject
from .escaping import html as escape
from .scaling_plot import LOWEST, bounded, nice

WIDTH, LEFT, RIGHT, TOP, PLOT, ROW, BAR = 960, 96, 16, 34, 210, 24, 16
HOSTS_AT = TOP + PLOT + 42
COLOURS = 8
LETTER = 6.6  # approximate width of a letter in a label

STYLE = """
.timeline { --m0: #2f6fb7; --m1: #d9822b; --m2: #3a8a4d; --m3: #8a4fae; --m4: #b3382c; --m5: #2b8f9c; --m6: #7a6a20;
  --m7: #6b7688; --band: #2f6fb7; }
@media (prefers-color-scheme: dark) { .timeline { --m0: #5b9be0; --m1: #f0a24e; --m2: #6cc083; --m3: #bd8be0;
  --m4: #f07f73; --m5: #5cc3d0; --m6: #c9b458; --m7: #9aa6b5; --band: #5b9be0; } }
@media print { .timeline { --m0: #2f6fb7; --m1: #d9822b; --m2: #3a8a4d; --m3: #8a4fae; --m4: #b3382c; --m5: #2b8f9c;
  --m6: #7a6a20; --m7: #6b7688; --band: #2f6fb7; } }
svg.timeline .rate { fill: none; stroke: var(--ink); stroke-width: 1.6; stroke-linejoin: round; }
svg.timeline .band { fill: var(--band); opacity: 0.16; }
svg.timeline .band.failed { fill: var(--bad); }
svg.timeline .band.external { fill: var(--warn); }
svg.timeline .out { fill: var(--soft); opacity: 0.6; }
svg.timeline .phase { fill: var(--track); }
svg.timeline .mark { fill: var(--soft); text-anchor: middle; font-size: 11px; paint-order: stroke;
  stroke: var(--card); stroke-width: 4px; }
svg.timeline .gap { stroke: var(--warn); stroke-width: 4; }
svg.timeline .gap.bad { stroke: var(--bad); }
svg.timeline .on { fill: #ffffff; font-size: 11px; text-anchor: middle; }
@media (prefers-color-scheme: dark) { svg.timeline .on { fill: #12161c; } }
@media print { svg.timeline .on { fill: #ffffff; } }
svg.timeline .h0 { fill: var(--m0); } svg.timeline .h1 { fill: var(--m1); } svg.timeline .h2 { fill: var(--m2); }
svg.timeline .h3 { fill: var(--m3); } svg.timeline .h4 { fill: var(--m4); } svg.timeline .h5 { fill: var(--m5); }
svg.timeline .h6 { fill: var(--m6); } svg.timeline .h7 { fill: var(--m7); }
"""


def plot(timeline: JsonObject) -> str:
    """Return the drawing of a timeline from ``training.timeline``."""
    frame = _Frame(timeline)
    changes, workers = timeline.get("changes") or [], len(timeline["hosts"])
    height = HOSTS_AT + ROW * (workers + len(changes)) + 8
    label = "Throughput over time with the moves of workers, and the host of each worker"
    parts = [
        f'<svg class="timeline" viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{label}">',
        *frame.axes(),
        *(piece for phase in timeline["phases"] for piece in frame.phase(phase)),
        *(piece for number, move in enumerate(timeline["moves"], 1) for piece in frame.band(number, move, height)),
        frame.rates(),
        *(piece for gap in timeline["gaps"] for piece in frame.gap(gap)),
        *(piece for place, worker in enumerate(timeline["hosts"]) for piece in frame.stays(place, worker)),
        *(piece for place, change in enumerate(changes, workers) for piece in frame.out_of_service(place, change)),
        "</svg>",
    ]
    return "\n".join(parts)


class _Frame:
    """The positions of times and rates."""

    def __init__(self, timeline: JsonObject) -> None:
        self.timeline = timeline
        self.seconds = max(bounded(float(timeline["seconds"])), LOWEST)
        self.top = nice(_highest([bounded(rate) for rate in timeline["rates"]]))
        names = sorted({stay["host"] for worker in timeline["hosts"] for stay in worker["stays"]})
        self.colours = {name: index % COLOURS for index, name in enumerate(names)}

    def across(self, moment: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * min(max(moment, 0.0), self.seconds) / self.seconds

    def up(self, rate: float) -> float:
        return TOP + PLOT * (1 - min(bounded(rate) / self.top, 1.0))

    def axes(self) -> Iterator[str]:
        """Yield the grid, the ticks and their unit."""
        for part in range(5):
            rate = self.top * part / 4
            up = self.up(rate)
            yield f'<line class="grid" x1="{LEFT}" y1="{up:.1f}" x2="{WIDTH - RIGHT}" y2="{up:.1f}"/>'
            yield f'<text class="name" x="{LEFT - 8}" y="{up + 4:.1f}">{rate:g}</text>'
        yield f'<text class="head" x="8" y="14">{escape(self.timeline["unit"])}</text>'
        for moment in _ticks(self.seconds):
            place = self.across(moment)
            yield f'<text class="tick" x="{place:.1f}" y="{TOP + PLOT + 16}">{moment:g} s</text>'

    def phase(self, phase: Mapping[str, Any]) -> Iterator[str]:
        yield _box(
            "phase",
            self.across(phase["from"]),
            self.across(phase["until"]),
            (TOP, PLOT),
            f"{phase['phase']}, {phase['until'] - phase['from']:.1f} s",
        )

    def band(self, number: int, move: JsonObject, height: int) -> Iterator[str]:
        """Yield one move as a band from the throughput down to the hosts, with its number above."""
        if move["from"] is None:
            return
        kind = "band" + ("" if move["moved"] else " failed") + (" external" if move["external"] else "")
        begin, end = self.across(move["from"]), self.across(move["until"])
        yield _box(kind, begin, end, (TOP, height - TOP - 6), band_title(number, move))
        yield f'<text class="mark" x="{(begin + end) / 2:.1f}" y="{TOP - 6}">{number}</text>'

    def rates(self) -> str:
        """Return the line of the throughput, which is constant within a bin."""
        width = float(self.timeline["bin_s"])
        points = [
            f"{self.across(edge * width):.1f},{self.up(rate):.1f}"
            for index, rate in enumerate(self.timeline["rates"])
            for edge in (index, index + 1)
        ]
        return f'<polyline class="rate" points="{" ".join(points)}"/>'

    def gap(self, gap: Mapping[str, Any]) -> Iterator[str]:
        """Yield one silence, at the bottom of the plot."""
        kind = "gap" if gap["kind"] == "in a move" else "gap bad"
        begin, end, base = self.across(gap["from"]), self.across(gap["from"] + gap["seconds"]), TOP + PLOT
        title = f"silent for {gap['seconds']:.1f} s before step {gap['step']} of rank {gap['rank']}: {gap['kind']}"
        line = f'<line class="{kind}" x1="{begin:.1f}" y1="{base}" x2="{max(end, begin + 1):.1f}" y2="{base}">'
        yield f"{line}<title>{escape(title)}</title></line>"
        yield f'<text class="mark" x="{(begin + end) / 2:.1f}" y="{base - 6}">{gap["seconds"]:.1f} s</text>'

    def stays(self, place: int, worker: Mapping[str, Any]) -> Iterator[str]:
        top = HOSTS_AT + ROW * place
        yield f'<text class="name" x="{LEFT - 8}" y="{top + BAR - 4}">{escape(str(worker["worker"]))}</text>'
        for stay in worker["stays"]:
            begin, end = self.across(stay["from"]), self.across(stay["until"])
            name = str(stay["host"])
            yield _box(f"h{self.colours[name]}", begin, end - 1, (top, BAR), f"{worker['worker']} on {name}")
            text = next((each for each in (name, name.partition(".")[0]) if len(each) * LETTER < end - begin), "")
            if text:
                yield f'<text class="on" x="{(begin + end) / 2:.1f}" y="{top + BAR - 4}">{escape(text)}</text>'

    def out_of_service(self, place: int, change: Mapping[str, Any]) -> Iterator[str]:
        """Yield the time of one host out of service, in a row below the workers."""
        top, host = HOSTS_AT + ROW * place, str(change["host"])
        yield f'<text class="name" x="{LEFT - 8}" y="{top + BAR - 4}">{escape(host.partition(".")[0])}</text>'
        begin, end = self.across(change["from"]), self.across(change["until"])
        boots = f"{change['reboots']} reboot{'' if change['reboots'] == 1 else 's'}"
        seconds = change["until"] - change["from"]
        yield _box("out", begin, end, (top, BAR), f"{host}: out of service for {seconds:.0f} s, {boots}")


def _highest(rates: Sequence[float]) -> float:
    """Return the highest rate, ignoring a few much higher bins, such as a burst at the start."""
    ordered = sorted(rates)
    usual = ordered[len(ordered) * 95 // 100] if ordered else LOWEST
    return max(usual if ordered and ordered[-1] > 3 * usual else max(ordered, default=LOWEST), LOWEST)


def band_title(number: int, move: JsonObject) -> str:
    whose = f", by {move['by']}" if move["external"] and move["by"] else ""
    title = f"{number}: {move['worker']} from {move['source']} to {move['target']}{whose}"
    if not move["moved"]:
        return f"{title}: not moved"
    return f"{title}, {move['until'] - move['from']:.1f} s"


def _box(kind: str, begin: float, end: float, down: tuple[int, int], title: str) -> str:
    top, height = down
    place = f'x="{begin:.1f}" y="{top}" width="{max(end - begin, 1):.1f}" height="{height}"'
    return f'<rect class="{kind}" {place}><title>{escape(title)}</title></rect>'


def _ticks(seconds: float) -> Sequence[float]:
    width = nice(seconds / 8)
    return [width * index for index in range(int(seconds / width) + 1)]
