"""Draws docs/house.svg, the rooms of the collection by floor, for docs/architecture.md: ``python -m tools.house``."""

from __future__ import annotations

from html import escape
from pathlib import Path
from textwrap import wrap

from tests.rules.rooms import floors

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs" / "house.svg"
# One line for each room; a room without a line is an error.
WORDS = {
    "errors": "one family of errors, one sentence each",
    "plan": "before, after, what the change needs",
    "core": "names, findings, versions, the record format",
    "continuity": "the verdict on a job under vMotion",
    "durable": "programs that survive their controller",
    "guests": "packages, drivers and checks of nodes; stacks",
    "vsphere": "session, batched reads, tasks, esxcli",
    "runner": "read, plan, one gate, apply, read back",
    "progress": "lines for whoever waits",
    "training": "the job, its log, transport and results",
    "workers": "worker VMs, capacity, placement, rules",
    "kubernetes": "an MPIJob and what its objects report",
    "slurm": "a batch job in the queue of Slurm",
    "jobs": "a running job, wherever it runs",
    "maintenance": "lock, evacuation, host out of service",
    "hosts": "settings of ESXi hosts, profile, rollback",
    "fabric": "the RDMA network of a cluster",
    "cluster": "shared settings, vGPU slots, inventory",
    "watch": "collects the records of a job while it runs",
    "moves": "plans, checks and makes vMotions",
    "trials": "test, window, observation around a job; proof",
    "usage": "how GPUs are used, and by whom",
    "site": "acceptance and recording of a site",
    "pages": "reports as HTML, SVG, Markdown, JUnit",
    "modules": "documentation, arguments, a short body",
    "action": "live progress of a module",
    "plugin_utils": "how a module's progress is followed",
    "inventory": "workers found in vCenter",
    "filter": "pure functions for playbooks",
    "lookup": "a stack's variables for each role",
    "doc_fragments": "options that modules share",
}
PLUGINS = ("modules", "action", "plugin_utils", "inventory", "filter", "lookup", "doc_fragments")
ACROSS, HIGH, WIDTH, GAP, LEFT = 210, 62, 1120, 10, 20
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1d2733 } .room { font-weight: 600; font-size: 13px }
.box { fill: #ffffff; stroke: #8aa0b8 } .floor { fill: #eef3f8; stroke: none } .note { fill: #51616f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .box { fill: #1b2430; stroke: #53677d }
.floor { fill: #11171f } .note { fill: #9fb0c0 } }
"""


def box(room: str, x: int, y: int) -> list[str]:
    """One room as SVG."""
    words = wrap(WORDS[room], 29)
    lines = [
        f'<rect class="box" x="{x}" y="{y}" width="{ACROSS}" height="{HIGH}" rx="6"/>',
        f'<text class="room" x="{x + 10}" y="{y + 19}">{escape(room)}</text>',
    ]
    notes = [(y + 36 + 15 * row, escape(text)) for row, text in enumerate(words)]
    return lines + [f'<text class="note" x="{x + 10}" y="{down}">{text}</text>' for down, text in notes]


def floor(rooms: tuple[str, ...], y: int) -> tuple[list[str], int]:
    """One floor as SVG, and how high it is."""
    each_row = (WIDTH - LEFT) // (ACROSS + GAP)
    high = GAP + -(-len(rooms) // each_row) * (HIGH + GAP)
    parts = [f'<rect class="floor" x="0" y="{y}" width="{WIDTH}" height="{high}" rx="8"/>']
    for number, room in enumerate(rooms):
        row, column = divmod(number, each_row)
        parts += box(room, LEFT + column * (ACROSS + GAP), y + GAP + row * (HIGH + GAP))
    return parts, high


def drawing() -> str:
    """The whole house as SVG, its highest floor on top."""
    parts, y = list[str](), GAP
    for rooms in (PLUGINS, *floors()):
        drawn, high = floor(rooms, y)
        parts += drawn
        y += high + GAP
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
    return "\n".join([frame, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    DRAWING.write_text(drawing())
