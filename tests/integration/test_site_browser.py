"""The documentation site in a real browser: no page shows an error, and the search finds the right page first."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote_plus

import pytest

from lab.simulator import ROOT
from tests.integration.browser import Browser

pytestmark = pytest.mark.slow
BUILT = ROOT / "build" / "docs"
SEARCH_SECONDS = 60.0
# The errors that the theme and Sphinx show in red; a style may write them, so that no text of the page contains them.
ERRORS = """
[...document.querySelectorAll(".system-message, .problematic, .error, [class*=ERROR]")]
  .filter(one => one.offsetParent !== null).map(one => one.textContent.trim())
  .concat([...document.querySelectorAll("body *")].map(one => getComputedStyle(one, "::before").content)
    .filter(text => text.includes("ERROR")))
"""
FIRST = "(document.querySelector('#search-results ul.search li a') || {}).href || ''"
PAGES = {
    "first cluster": "docs/cluster.html",
    "train my script": "docs/train-your-script.html",
    "uninstall": "roles/teardown/README.html",
    "install without internet": "docs/cluster.html",
    "offline": "docs/cluster.html",
    "air-gapped": "docs/cluster.html",
    "undo": "roles/rollback/README.html",
    "maintenance window": "docs/maintenance-window.html",
    # Errors as a user pastes them, with names that no page has.
    "esx01.example.com: could not leave maintenance mode: the task did not end within 600 s": "troubleshooting.html",
    "10.0.0.5: could not find a cluster named gpu9: there is none; it has gpu, cpu": "troubleshooting.html",
    "vc.example.com: could not make the role ML: it has no privilege VirtualMachine.Config": "troubleshooting.html",
    "ML@VSPHERE.LOCAL on /dc/host/gpu: could not give it the role DML: it has another role": "troubleshooting.html",
    "/home/u/rec.tar.gz: could not replay it: its format is 9, not 1": "troubleshooting.html",
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


def test_detects_an_error_in_a_theme_table(site: str, browser: Browser) -> None:
    """The theme writes its error with a style, into pages of plugins that have a table of contents."""
    browser.open(BUILT / "collection" / "vmotion_module.html")
    browser.evaluate("document.querySelectorAll('.contents').forEach(one => one.className = 'contents topic')")

    assert any("ERROR" in text for text in browser.evaluate(ERRORS)), site


@pytest.mark.parametrize("words", PAGES)
def test_search_finds_the_right_page_first(site: str, browser: Browser, words: str) -> None:
    browser.ask("Page.navigate", url=f"{site}/search.html?q={quote_plus(words)}")
    deadline = time.monotonic() + SEARCH_SECONDS
    while not (found := str(browser.evaluate(FIRST))):
        assert time.monotonic() < deadline, f"the search finds no page for {words}"
        time.sleep(0.2)

    assert found.partition("#")[0] == f"{site}/{PAGES[words]}"
