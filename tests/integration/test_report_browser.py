"""The report on training runs in a real browser: it fetches nothing, complains of nothing, and can be read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import ROOT
from plugins.module_utils.pages import vmotion_page
from plugins.module_utils.pages.training_page import page, report
from tests.integration.browser import Browser
from tests.unit.plugins.module_utils.continuity.runs import move, records
from tests.unit.plugins.module_utils.training.results.test_timeline import timeline_of

pytestmark = pytest.mark.slow
LEAST_CONTRAST = 4.5
PUBLISHED = yaml.safe_load((ROOT / "roles" / "report" / "vars" / "main.yml").read_text())["__report_published"]
# By tag the colours of all text on the page, with what is behind it.
COLOURS = """
[...document.querySelectorAll("h1, h2, p, li, th, td, figcaption, svg text, .legend span")].map(one => {
  let behind = one;
  while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
  const style = getComputedStyle(one);
  return [one.tagName, one instanceof SVGElement ? style.fill : style.color,
    behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)"];
})
"""
# The tables that scroll sideways.
WIDER = (
    "[...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth).map(one => one.innerText)"
)
FIGURES = """
[...document.querySelectorAll("figure svg")].map(one => {
  const box = one.getBoundingClientRect();
  const lines = [...one.querySelectorAll("polyline")].map(line => {
    const drawn = line.getBoundingClientRect();
    return {width: drawn.width, inside: drawn.left >= box.left - 1 && drawn.right <= box.right + 1 &&
      drawn.top >= box.top - 1 && drawn.bottom <= box.bottom + 1, stroke: getComputedStyle(line).stroke};
  });
  return {width: box.width, height: box.height, lines: lines};
})
"""


def run(nodes: int, transport: str, repeat: int, ok: bool = True) -> dict[str, Any]:
    """A run of the lab's length, with curves that waver."""
    rate = 340.0 * nodes ** (0.9 if transport == "rdma" else 0.4) + repeat
    curve = [
        {
            "step": step,
            "seconds": step / 10,
            "images_per_sec": rate * (1 + math.sin(step * repeat) / 30),
            "loss": 6.9 * math.exp(-step / 60) + 0.3,
        }
        for step in range(1, 101)
    ]
    why = "NCCL's log says NET/IB, and the RDMA counters grew with the work" if ok else "it fell back to TCP"
    facts = {"proven": True, "version": "4.1.4", "nodes": nodes}
    return {
        "name": f"scaling-{nodes}-nodes-{transport}-{repeat}",
        "nodes": nodes,
        "gpus": nodes,
        "transport": transport,
        "images_per_sec": rate,
        "steps": 100,
        "loss": 1.6,
        "proof": {"ok": ok, "transport": transport if ok else "tcp", "why": why},
        "curve": curve,
        "built": {f"worker-{number}": {"dml_openmpi": facts} for number in range(1, nodes + 1)},
    }


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Browser, Path]]:
    """A browser, and the report as a file."""
    folder = tmp_path_factory.mktemp("browser")
    runs = [run(nodes, name, repeat) for nodes in (1, 2, 4) for name in ("tcp", "rdma") for repeat in (1, 2)]
    path = folder / "training.html"
    path.write_text(page(report([*runs, run(4, "rdma", 3, ok=False)], PUBLISHED, 1281167)))
    with Browser(folder / "profile") as browser:
        yield browser, path


def contrast(one: str, other: str) -> float:
    """How well one colour can be distinguished from another, as WCAG 2 has it."""
    bright, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(
    ("width", "dark", "media"), [(1200, False, ""), (1200, True, ""), (390, False, ""), (1100, True, "print")]
)
def test_report_is_readable_on_every_medium(shown: tuple[Browser, Path], width: int, dark: bool, media: str) -> None:
    browser, path = shown
    browser.open(path, width, dark, media)
    assert browser.fetched() == [path.as_uri()]
    assert browser.complaints() == []
    figures = browser.evaluate(FIGURES)
    assert len(figures) == 3 + 2 * 6
    for figure in figures:
        assert figure["width"] > 200 and figure["height"] > 100
        assert figure["lines"] and all(line["inside"] and line["width"] > 0 for line in figure["lines"])
        assert all(line["stroke"].startswith("rgb") for line in figure["lines"])
    texts = browser.evaluate(COLOURS)
    assert len(texts) > 200
    assert [text for text in texts if contrast(text[1], text[2]) < LEAST_CONTRAST] == []
    assert (luminance(browser.evaluate("getComputedStyle(document.body).backgroundColor")) < 0.2) == (
        dark and not media
    )
    assert browser.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    browser.picture(path.with_name(f"{width}-{'dark' if dark else 'light'}{media}.png"))


def test_report_is_printable(shown: tuple[Browser, Path]) -> None:
    browser, path = shown
    browser.open(path, dark=True)
    paper = browser.paper()
    path.with_name("training.pdf").write_bytes(paper)
    assert paper.startswith(b"%PDF")
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", paper)) <= 6


def test_printed_report_splits_no_table_figure_or_heading(shown: tuple[Browser, Path]) -> None:
    browser, path = shown
    browser.open(path, media="print")
    styles = "[...document.querySelectorAll('%s')].map(one => getComputedStyle(one).%s)"
    assert set(browser.evaluate(styles % ("table, figure", "breakInside"))) == {"avoid"}
    assert set(browser.evaluate(styles % ("h1, h2, h3, h2 + p", "breakAfter"))) == {"avoid"}
    assert browser.evaluate(WIDER) == []


def test_table_of_moves_fits_a_screen_and_paper(shown: tuple[Browser, Path]) -> None:
    browser, path = shown
    moves = path.with_name("moves.html")
    hosts = {"source": "esx01.example.com", "target": "esx02.example.com"}
    gpus = {when: [f"{name}/0000:3b:00.0"] for when, name in zip(("before", "after"), hosts.values())}
    made = {**move(40, 60), **hosts, "vsphere": {"gpus": gpus, "encrypted": True, "stun_expected_s": 22.0}}
    moves.write_text(vmotion_page.page(timeline_of(records(200), [made])))

    for media in ("", "print"):
        browser.open(moves, 1300, media=media)
        assert browser.evaluate(WIDER) == []
    assert "0000:3b:00.0 \u2192 0000:3b:00.0" in browser.evaluate("document.querySelector('.moves').textContent")
