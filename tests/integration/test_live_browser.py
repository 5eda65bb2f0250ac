"""The page of a running job in a real browser, wide and narrow, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.pages.live_page import RESULTS, page
from plugins.module_utils.training.output.gpu_use import GpuUse, NodeGpus
from plugins.module_utils.training.output.live_state import JobMove
from tests.integration.browser import Browser
from tests.integration.test_report_browser import COLOURS, LEAST_CONTRAST, contrast
from tests.unit.plugins.module_utils.pages.test_live_page import state_of

# The sizes of the texts of figures in pixels of the screen.
TEXT_SIZES = """[...document.querySelectorAll("figure svg text")].map(
  (text) => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""


@pytest.mark.slow
def test_live_page_is_readable(tmp_path: Path) -> None:
    path = tmp_path / "live.html"
    moves = [JobMove("w1", "esx1", "esx2", 5.0 * at, 5.0 * at + 2, kind) for at, kind in enumerate(RESULTS, 1)]
    gpus = [NodeGpus("n1", (GpuUse(0, "NVIDIA A100 80GB PCIe", 93.0, 5 << 30, 80 << 30),), "GPU 1 is lost")]
    state = state_of(ranks=4)._replace(troubles={"worker03": "no route to host (for 9 s)"})
    state = state._replace(began=0.5, moves=moves, gpus=gpus, output=["rank 0: loss 0.5 " + "x" * 200] * 20)
    path.write_text(page(state))
    with Browser(tmp_path / "profile") as browser:
        for width, dark in ((1200, False), (1200, True), (390, False)):
            browser.open(path, width, dark)
            assert browser.fetched() == [path.as_uri()]
            assert browser.complaints() == []
            assert browser.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
            sizes = browser.evaluate(TEXT_SIZES)
            assert len(sizes) > 10 and min(sizes) >= (14 if width > 800 else 11), sizes
            texts = browser.evaluate(COLOURS)
            assert len(texts) > 20
            assert [text for text in texts if contrast(text[1], text[2]) < LEAST_CONTRAST] == []
            browser.picture(tmp_path / f"live-{width}-{'dark' if dark else 'light'}.png")
