"""Writes the files that git does not contain: ``python -m tools.generated FOLDER``.

These are the JSON schema of inventories and pages with tables that come from code. `make
build` adds them to the tarball, `make docs` to the documentation site.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

from tools import inventory_schema, simulator, subjects, unproven, versions

ROOT = Path(__file__).resolve().parent.parent
FILES: dict[str, Callable[[], str]] = {"docs/inventory.schema.json": inventory_schema.document}
# A page in git has only the place of a table: <!-- table: NAME -->, a sentence about it, <!-- end -->.
TABLES: dict[str, Callable[[], str]] = {
    "assumptions": unproven.table,
    "features": versions.features,
    "privileges": subjects.privileges,
    "restored": subjects.restored,
    "simulator": simulator.tables,
}
PLACE = re.compile(r"<!-- table: (\w+) -->\n.*?<!-- end -->\n", re.DOTALL)


def page(text: str) -> str:
    """Return a page with its tables."""
    return PLACE.sub(lambda place: f"{TABLES[place[1]]().strip()}\n", text)


def pages() -> dict[str, str]:
    """Return each page that has a table, with its tables, by its path."""
    found = [*ROOT.glob("docs/*.md"), *ROOT.glob("roles/*/README.md")]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(found)}
    return {name: page(text) for name, text in texts.items() if PLACE.search(text)}


def files() -> dict[str, str]:
    """Return all files by their paths."""
    return {**{name: text() for name, text in FILES.items()}, **pages()}


def main(folder: Path) -> None:
    """Write all files below a folder."""
    for name, text in files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
