# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes docs/unproven.md from the assumptions of the collection: ``python tools/unproven.py``.

The assumptions are data in ``site/acceptance/assumptions.py``. esxcli commands that no dump of a real host
has are added from tests/unproven_esxcli.yml where that file exists.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plugins.module_utils.site.acceptance.assumptions import ASSUMPTIONS  # noqa: E402
from plugins.module_utils.site.acceptance.proofs import by_hand  # noqa: E402

DOCUMENT = ROOT / "docs" / "unproven.md"
COMMANDS = ROOT / "tests" / "unproven_esxcli.yml"
HEAD = """# What is not proven

The collection was written without a vSphere of its own. What follows rests on documents, on recordings of others, or on
nothing better than a reading of both. Each line says where the code rests on it, and what would prove it.

The playbook `dml.vsphere.acceptance` looks at your site, changes nothing, and says which of these lines are proven
there, refuted, or still open. A refuted line is an error: please report it with a recording (`dml.vsphere.record`).

This page is written by `python tools/unproven.py`.

| Assumption | Where the code rests on it | What would prove it | Told by `acceptance` |
|---|---|---|---|
"""
ESXCLI = """
## esxcli

Commands that are used and that no dump of a real host has. `acceptance` proves those that read.

| Command | Why it is not proven |
|---|---|
"""


def document() -> str:
    """The whole page."""
    rows = [
        f"| {one.text} | [`{Path(one.where[0]).name}`](../{one.where[0]}) | {one.proof} | "
        f"{'no' if one.check is by_hand else 'yes'} |\n"
        for one in ASSUMPTIONS
    ]
    return HEAD + "".join(rows) + _commands()


def _commands() -> str:
    """The commands that no dump has; nothing where nobody has listed them."""
    if not COMMANDS.exists():
        return ""
    listed = yaml.safe_load(COMMANDS.read_text())
    return ESXCLI + "".join(f"| `{command}` | {why} |\n" for command, why in sorted(listed.items()))


def main() -> None:
    """Write the page."""
    DOCUMENT.write_text(document())


if __name__ == "__main__":
    main()
