# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Lists the dead links between the HTML pages of a folder, and the pages over which the theme writes an error.

Run it as ``python -m tools.site_links FOLDER``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The theme writes "ERROR: Adding a table of contents" over each element of the first class without the second.
CONTENTS, ALLOWED = "contents", "this-will-duplicate-information-and-it-is-still-useful-here"


class _Page(HTMLParser):
    """The links of a page, the names to which links can lead, and whether the theme writes an error over it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.has_error = False
        self.feed(text)

    def handle_starttag(self, _tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value for key, value in attrs if value}
        self.names.update(values[key] for key in ("id", "name") if key in values)
        self.links += [values[key] for key in ("href", "src") if key in values]
        classes = values.get("class", "").split()
        self.has_error = self.has_error or (CONTENTS in classes and ALLOWED not in classes)


def dead_links(folder: Path) -> list[str]:
    """Return each dead link with its page; links to other sites are left out."""
    found = _pages(folder)
    return [
        f"{path.relative_to(folder)}: {link}"
        for path, page in found.items()
        for link in dict.fromkeys(page.links)
        if not _leads_somewhere(path, link, found)
    ]


def pages_with_errors(folder: Path) -> list[str]:
    """Return the pages over which the theme writes an error."""
    return [str(path.relative_to(folder)) for path, page in _pages(folder).items() if page.has_error]


def _pages(folder: Path) -> dict[Path, _Page]:
    return {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}


def _leads_somewhere(path: Path, link: str, found: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return False
    page = found.get(target)
    return not parts.fragment or page is None or unquote(parts.fragment) in page.names


def _lines(folder: Path) -> Iterator[str]:
    yield from (f"Dead link in {line}" for line in dead_links(folder.resolve()))
    yield from (f"The theme writes an error over {page}" for page in pages_with_errors(folder.resolve()))


if __name__ == "__main__":
    dead = list(_lines(Path(sys.argv[1])))
    print("\n".join(dead), end="\n" if dead else "")
    sys.exit(1 if dead else 0)
