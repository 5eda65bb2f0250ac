"""Names and log lines that are markup, in every page, parsed by a real browser: they stay text and run nothing."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.pages import training_page, usage_page, vmotion_page
from plugins.module_utils.training.results.report_files import PRIVATE, ReportFiles
from plugins.module_utils.usage.usage_report import report as usage_report
from tests.integration.browser import Browser
from tests.unit.plugins.module_utils.pages.test_escaping import report, timeline_of
from tests.unit.plugins.module_utils.pages.test_usage_page import full

pytestmark = pytest.mark.slow
HOSTILE = (
    "</script><script>document.title='run'</script>",
    "</title></style><img src=x onerror=\"document.title='run'\">",
    "'\" onmouseover=alert(1) autofocus onfocus=\"document.title='run'\"",
    "]]></svg><svg onload=\"document.title='run'\"/>",
    "<!--", "-->", "<![CDATA[", "&lt;b&gt;", "| a | `b` |", "\0\x1b[2J\x07", "\ud800", "\u202egnp.exe\u2066",
)  # fmt: skip


def timeline(text: str) -> dict[str, Any]:
    """A timeline with everything that is drawn."""
    when = {"from": 1.0, "until": 4.0}
    drawn = {
        "seconds": 10.0,
        "unit": text,
        "bin_s": 1.0,
        "rates": [1.0, 2.0, 3.0],
        "phases": [{"phase": text, **when}],
        "gaps": [{"rank": text, "step": 7, "kind": text, "seconds": 3.0, **when}],
        "hosts": [{"worker": text, "stays": [{"host": text, "from": 1.0, "until": 1.001}]}],
        "changes": [{"host": text, "reboots": 1, **when}],
        "unproven": [text],
        "notes": [text],
    }
    return {**timeline_of(text), **drawn}


def training(text: str) -> str:
    """A report on training runs and a vMotion test."""
    return training_page.page({**report(text), "vmotion_tests": [timeline(text)]})


PAGES: dict[str, Callable[[str], str]] = {
    "training": training,
    "vmotion": lambda text: vmotion_page.page(timeline(text), text),
    "usage": lambda text: usage_page.page(usage_report(full(text), 1.0, text)),
}
TAGS = "[...document.querySelectorAll('*')].map(one => [one.tagName, one.getAttributeNames().sort().join(' ')])"
ODD_SIGNS = r"/[\u0000\u202a-\u202e\u2066-\u2069]/.test(document.documentElement.textContent)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser(tmp_path_factory.mktemp("browser")) as shown:
        yield shown


def shown(browser: Browser, folder: Path, text: str) -> list[Any]:
    """The elements of a page that was written as every report is."""
    files = ReportFiles(Path(tempfile.mkdtemp(dir=folder)), {"page.html": text}, PRIVATE)
    files.apply(files.plan(files.read()))
    path = Path(files.paths[0])
    browser.open(path)
    assert browser.fetched() == [path.as_uri()]
    assert browser.complaints() == []
    assert browser.evaluate("document.title") != "run"
    assert not browser.evaluate(ODD_SIGNS)
    return list(browser.evaluate(TAGS))


@pytest.mark.parametrize("page", PAGES)
def test_page_escapes_hostile_text_and_keeps_its_direction(browser: Browser, tmp_path: Path, page: str) -> None:
    usual = shown(browser, tmp_path, PAGES[page]("word"))
    assert len(usual) > 20
    for text in HOSTILE:
        assert shown(browser, tmp_path, PAGES[page](text)) == usual, text[:80]


def test_page_shows_a_line_of_a_megabyte(browser: Browser, tmp_path: Path) -> None:
    usual, text = shown(browser, tmp_path, PAGES["vmotion"]("word")), "<b>" * (1 << 18)
    assert shown(browser, tmp_path, PAGES["vmotion"](text)) == usual
