# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The page of a running job in a real browser, wide and narrow, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.pages.live_page import page
from tests.integration.browser import Browser
from tests.integration.test_report_browser import COLOURS, LEAST_CONTRAST, contrast
from tests.unit.plugins.module_utils.pages.test_live_page import state_of


@pytest.mark.slow
def test_the_live_page_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "live.html"
    state = state_of(ranks=4)._replace(troubles={"worker03": "no route to host (for 9 s)"})
    path.write_text(page(state))
    with Browser(tmp_path / "profile") as browser:
        for width, dark in ((1200, False), (1200, True), (390, False)):
            browser.open(path, width, dark)
            assert browser.fetched() == [path.as_uri()]
            assert browser.complaints() == []
            assert browser.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            texts = browser.evaluate(COLOURS)
            assert len(texts) > 20
            assert [text for text in texts if contrast(text[1], text[2]) < LEAST_CONTRAST] == []
            browser.picture(tmp_path / f"live-{width}-{'dark' if dark else 'light'}.png")
