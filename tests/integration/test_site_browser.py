# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation site in a real browser: no page shows an error, and the search finds the right page first."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from lab.simulator import ROOT
from tests.integration.browser import Browser

pytestmark = pytest.mark.slow
BUILT = ROOT / "build" / "docs"
SEARCH_SECONDS = 60.0
# What the theme and Sphinx show in red; both are styles, which no text of a page contains.
ERRORS = """
[...document.querySelectorAll(".system-message, .problematic, .error, [class*=ERROR]")]
  .filter(one => one.offsetParent !== null).map(one => one.textContent.trim())
  .concat([...document.querySelectorAll("main *")].map(one => getComputedStyle(one, "::before").content)
    .filter(text => text.includes("ERROR")))
"""
FIRST = "(document.querySelector('#search-results ul.search li a') || {}).href || ''"
PAGES = {
    "first cluster": "docs/cluster.html",
    "train script": "docs/train-your-script.html",
    "uninstall": "roles/teardown/README.html",
}


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each request."""

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """Build the site, and return its address."""
    subprocess.run([ROOT / "tools" / "docs"], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(BUILT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    with Browser(tmp_path / "profile") as opened:
        yield opened


def test_no_page_shows_an_error(site: str, browser: Browser) -> None:
    pages = [path for path in sorted(BUILT.rglob("*.html")) if "_modules" not in path.parts]
    shown = {}
    for page in pages:
        browser.open(page)
        shown[page.name] = browser.evaluate(ERRORS)
    assert len(pages) > 150 and {name: texts for name, texts in shown.items() if texts} == {}, site


@pytest.mark.parametrize("words", PAGES)
def test_the_search_finds_the_right_page_first(site: str, browser: Browser, words: str) -> None:
    browser.ask("Page.navigate", url=f"{site}/search.html?q={words.replace(' ', '+')}")
    deadline = time.monotonic() + SEARCH_SECONDS
    while not (found := str(browser.evaluate(FIRST))):
        assert time.monotonic() < deadline, f"the search finds no page for {words}"
        time.sleep(0.2)

    assert found.partition("#")[0] == f"{site}/{PAGES[words]}"
