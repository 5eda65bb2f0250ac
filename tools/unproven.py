"""Returns the tables of docs/unproven.md, from the collection's assumptions.

The assumptions are data in plugins/module_utils/site/acceptance/assumptions.py. If tests/unproven_esxcli.yml exists,
there is also a table of its esxcli commands, which are in no dump of a real host.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from plugins.module_utils.site.acceptance.assumption_checks import not_readable  # noqa: E402
from plugins.module_utils.site.acceptance.assumptions import ASSUMPTIONS  # noqa: E402

COMMANDS = ROOT / "tests" / "unproven_esxcli.yml"
HEAD = """\
| Assumption | Dependent code | Confirmed by | Checked by `acceptance` |
|---|---|---|---|
"""
ESXCLI = """
## esxcli

The collection uses these commands, but no dump of a real host contains them. `acceptance` checks the read-only ones.

| Command | Reason |
|---|---|
"""


def table() -> str:
    """Return the tables of the page."""
    rows = [
        f"| {entry.text} | [`{Path(entry.where[0]).name}`](../{entry.where[0]}) | {entry.proof} | "
        f"{'no' if entry.check is not_readable else 'yes'} |\n"
        for entry in ASSUMPTIONS
    ]
    return HEAD + "".join(rows) + _commands()


def _commands() -> str:
    """Return the section on commands that no dump contains, or nothing if the list does not exist."""
    if not COMMANDS.exists():
        return ""
    listed = yaml.safe_load(COMMANDS.read_text())
    return ESXCLI + "".join(f"| `{command}` | {why} |\n" for command, why in sorted(listed.items()))
