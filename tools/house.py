# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Draws docs/house.svg, the rooms of the collection by floor, for docs/architecture.md: ``python tools/house.py``."""

from __future__ import annotations

from html import escape
from pathlib import Path
from textwrap import wrap

ROOT = Path(__file__).resolve().parent.parent
DRAWING = ROOT / "docs" / "house.svg"
# One line for each room; a room of the table without a line is an error.
WORDS = {
    "errors": "one family of errors, one sentence each",
    "plan": "before, after, what the change needs",
    "progress": "lines for whoever waits",
    "runner": "read, plan, one gate, apply, read back",
    "single": "the same for one subject",
    "vsphere": "session, batched reads, tasks, esxcli",
    "capacity": "what a host offers, what a VM holds",
    "esxi": "subjects of a host; emptying it, rebooting it",
    "cluster": "lock, shared settings, usage, trouble",
    "fabric": "the RDMA network of a cluster",
    "vm": "worker VMs and their rules",
    "vmotion": "one move: checked, made, observed",
    "recording": "answers of a site kept, without its names",
    "acceptance": "which readers understand a site",
    "guest": "the training job on its launcher",
    "kubernetes": "one job as its API tells it",
    "watch": "step records collected from all nodes",
    "trial": "the folder and the journal of a vMotion test",
    "reports": "results read, files of a report written",
    "pages": "reports as HTML, SVG, Markdown, JUnit",
    "logic": "pure functions on plain data",
    "logic/continuity": "the verdict on a job under vMotion",
    "logic/hosts": "the plan of a cluster, preflight, evidence",
    "logic/kubernetes": "a job as an MPIJob, its state, its pods",
    "logic/migration": "what a move needs, events, stun",
    "logic/moves": "the order of the moves of all workers",
    "logic/nodes": "packages, drivers, RDMA of a guest",
    "logic/placement": "which worker fits on which host",
    "logic/privileges": "the privilege behind each call",
    "logic/recording": "pseudonyms for names and addresses",
    "logic/stack": "versions that fit together",
    "logic/training": "logs, scaling, how a job ended",
    "logic/transport": "TCP or RDMA: settings, counters, proof",
    "logic/trial": "the next step of a vMotion test",
    "logic/usage": "how GPUs are used, and by whom",
    "modules": "documentation, arguments, a short body",
    "action": "live progress of a module",
    "plugin_utils": "how a module's progress is followed",
    "inventory": "workers found in vCenter",
    "filter": "logic for a user's own playbooks",
    "lookup": "a stack's variables for each role",
    "doc_fragments": "options that modules share",
}
# From top to bottom; a room that the table gains must be given a place here.
FLOORS = {
    "What Ansible and its users see": (
        *("modules", "action", "plugin_utils", "inventory", "filter", "lookup", "doc_fragments"),
    ),
    "The life of a call": ("runner", "single", "progress"),
    "Subjects: read, plan, apply": (
        *(
            "acceptance",
            "recording",
            "vmotion",
            "cluster",
            "fabric",
            "vm",
            "esxi",
            "capacity",
            "guest",
            "kubernetes",
            "watch",
            "reports",
            "trial",
        ),
    ),
    "What talks to vCenter, what draws": ("vsphere", "pages"),
    "Logic: no input, no output, no Ansible": (
        *("logic", "logic/continuity", "logic/migration", "logic/moves", "logic/placement", "logic/hosts"),
        *(
            "logic/training",
            "logic/transport",
            "logic/trial",
            "logic/usage",
            "logic/nodes",
            "logic/stack",
            "logic/kubernetes",
            "logic/privileges",
            "logic/recording",
        ),
    ),
    "Ground": ("plan", "errors"),
}
ACROSS, HIGH, WIDTH, GAP, LEFT, TITLE = 210, 62, 1120, 10, 20, 30
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


def floor(title: str, rooms: tuple[str, ...], y: int) -> tuple[list[str], int]:
    """One floor as SVG, and how high it is."""
    each_row = (WIDTH - LEFT) // (ACROSS + GAP)
    high = TITLE + -(-len(rooms) // each_row) * (HIGH + GAP)
    parts = [
        f'<rect class="floor" x="0" y="{y}" width="{WIDTH}" height="{high}" rx="8"/>',
        f'<text class="note" x="{LEFT}" y="{y + 20}">{escape(title)}</text>',
    ]
    for number, room in enumerate(rooms):
        row, column = divmod(number, each_row)
        parts += box(room, LEFT + column * (ACROSS + GAP), y + TITLE + row * (HIGH + GAP))
    return parts, high


def drawing() -> str:
    """The whole house as SVG, its highest floor on top."""
    parts, y = list[str](), GAP
    for title, rooms in FLOORS.items():
        drawn, high = floor(title, rooms, y)
        parts += drawn
        y += high + GAP
    frame = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}">'
    return "\n".join([frame, f"<style>{STYLE}</style>", *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    DRAWING.write_text(drawing())
