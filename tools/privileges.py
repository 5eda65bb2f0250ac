# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes the tables of docs/privileges.md from the table of privileges: ``python tools/privileges.py``."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plugins.module_utils.logic.privileges import needs as privileges  # noqa: E402 - the checkout is no installed package

DOCUMENT = ROOT / "docs" / "privileges.md"
BEGIN, END = "<!-- written by tools/privileges.py -->\n", "<!-- end -->\n"


def tables() -> str:
    """Both tables: by privilege, and by module with the calls that are why."""
    known = privileges.rows()
    lines = ["| Privilege | On | Modules | Source |", "|---|---|---|---|"]
    for privilege, on in sorted({row[:2] for row in known}):
        mine = [row for row in known if row[:2] == (privilege, on)]
        names = ", ".join(f"`{one}`" for one in sorted({row[2] for row in mine}))
        lines.append(f"| `{privilege}` | {on} | {names} | {', '.join(sorted({row[4] for row in mine}))} |")
    lines += ["", "| Module | Call | Privilege | On |", "|---|---|---|---|"]
    for module in sorted(privileges.modules()):
        if not privileges.calls_of(module):
            lines.append(f"| `{module}` | reads only | none beyond those of every role | |")
        for call in privileges.calls_of(module):
            needs = privileges.needs_of(call, module)
            lines.append(
                f"| `{module}` | `{call}` | {', '.join(f'`{one.privilege}`' for one in needs)} "
                f"| {', '.join(dict.fromkeys(one.on for one in needs))} |"
            )
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The document with its tables as they should be."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
