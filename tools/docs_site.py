"""Writes the sources of the documentation site: ``python -m tools.docs_site FOLDER``; tools/docs renders them.

The pages keep their paths, so that links between them stay valid. A link to another file leads to the repository.
docs/docsite/site.yml has the structure of the sidebar.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tools import generated, troubleshooting

ROOT = Path(__file__).resolve().parent.parent
STRUCTURE = ROOT / "docs" / "docsite" / "site.yml"
SEARCH = ROOT / "docs" / "docsite" / "search.js"
# Pages that are written when the site is built.
TROUBLESHOOTING, PLUGINS = "troubleshooting", "collection/index"
PICTURES = {".svg", ".png"}
_LINK = re.compile(r"(?<=\]\()([^)#\s]+)(#[^)\s]*)?(?=\))")
_CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
CONF = """from glob import glob

project = "dml.vsphere"
copyright = "2026, dml.vsphere contributors"
extensions = ["myst_parser", "sphinx_antsibull_ext"]
html_theme = "furo"
html_title = "dml.vsphere"
html_theme_options = {"source_repository": "@REPOSITORY@", "source_branch": "main", "source_directory": ""}
html_show_sphinx = False
html_static_path = ["_search"]
html_js_files = [("search.js", {"defer": "defer"})]
html_extra_path = glob("docs/*.json")
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
# Two hyphens begin an option, such as --limit: they stay two hyphens.
smartquotes = False
# The lexer does not support escaped quotes inside Jinja, labels of other documentation cannot be resolved, and a page
# of the repository may start below the first level.
suppress_warnings = ["misc.highlighting_failure", "ref.ref", "myst.header"]


def _allow_contents(_app, doctree):
    # The pages of plugins have a table of contents, over which the theme writes an error in red.
    from docutils import nodes
    for topic in doctree.findall(nodes.topic):
        if "contents" in topic["classes"]:
            topic["classes"].append("this-will-duplicate-information-and-it-is-still-useful-here")


def _link_only_to_files(_app, pagename, _template, context, _doctree):
    # Pages that are written when the site is built have no file in the repository.
    if pagename in ("index", "@TROUBLESHOOTING@") or pagename.startswith("collection/"):
        context["page_source_suffix"] = ""


def setup(app):
    app.connect("doctree-read", _allow_contents)
    app.connect("html-page-context", _link_only_to_files)
    return {"parallel_read_safe": True}
"""


@cache
def structure() -> dict[str, dict[str, str]]:
    """Return the pages of each part of the sidebar, without suffixes, each with its title there, which may be empty."""
    parts: dict[str, list[Any]] = yaml.safe_load(STRUCTURE.read_text())["parts"]
    return {part: dict(map(_entry, listed)) for part, listed in parts.items()}


def _entry(entry: str | dict[str, str]) -> tuple[str, str]:
    if isinstance(entry, str):
        return entry, ""
    ((title, page),) = entry.items()
    return page, title


def pages() -> list[str]:
    """Return the pages of the repository that are part of the site."""
    every = [page for part in structure().values() for page in part]
    return [page for page in every if page not in (TROUBLESHOOTING, PLUGINS)]


def write(folder: Path) -> None:
    """Write the sources into a folder."""
    repository = str(yaml.safe_load((ROOT / "galaxy.yml").read_text())["repository"])
    for page in pages():
        source = ROOT / f"{page}.md"
        _write(folder / f"{page}.md", linked(generated.page(source.read_text()), source.parent, repository))
    for name, text in generated.FILES.items():
        _write(folder / name, text())
    for picture in _pictures():
        (folder / picture).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / picture, folder / picture)
    _write(folder / f"{TROUBLESHOOTING}.md", troubleshooting.page())
    _write(folder / "index.md", index())
    _write(folder / "_search" / "search.js", search())
    _write(folder / "conf.py", configuration(repository))


def configuration(repository: str) -> str:
    """Return the settings of Sphinx for a site that links to a repository."""
    return CONF.replace("@REPOSITORY@", repository).replace("@TROUBLESHOOTING@", TROUBLESHOOTING)


def index() -> str:
    """Return the first page; the parts of the site with their pages are in the sidebar."""
    lines = ["# dml.vsphere", "", *_introduction()]
    for title, listed in structure().items():
        entries = [f"{name} <{page}>" if name else page for page, name in listed.items()]
        lines += ["", "```{toctree}", f":caption: {title}", ":maxdepth: 1", ":hidden:", "", *entries, "```"]
    return "\n".join([*lines, ""])


def search() -> str:
    """Return the program of the search, with the titles of the sidebar."""
    titles = {page: title for part in structure().values() for page, title in part.items() if title}
    return SEARCH.read_text().replace("= TITLES;", f"= {json.dumps(titles)};")


def is_in_site(path: Path) -> bool:
    """Return whether a file of the repository is a page or a picture of the site."""
    return path in {ROOT / f"{page}.md" for page in pages()} or (path.suffix in PICTURES and path.is_file())


def linked(
    text: str, folder: Path, repository: str, root: Path = ROOT, is_there: Callable[[Path], bool] = is_in_site
) -> str:
    """Return a page of a folder whose links to files that are not there lead to the repository."""

    def replaced(match: re.Match[str]) -> str:
        link, anchor = match[1], match[2] or ""
        target = (root / folder / link).resolve()
        if "://" in link or is_there(target):
            return f"{link}{anchor}"
        kind = "tree" if (ROOT / target.relative_to(root)).is_dir() else "blob"
        return f"{repository}/{kind}/main/{target.relative_to(root).as_posix()}{anchor}"

    return "".join(part if number % 2 else _LINK.sub(replaced, part) for number, part in enumerate(_CODE.split(text)))


def _introduction() -> Iterator[str]:
    yield str(yaml.safe_load(STRUCTURE.read_text())["introduction"])


def _pictures() -> list[Path]:
    return [path.relative_to(ROOT) for path in sorted((ROOT / "docs").rglob("*")) if path.suffix in PICTURES]


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
