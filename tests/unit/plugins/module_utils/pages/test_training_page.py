"""The report on training runs, parsed like a browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.pages.scaling_plot import PlotLine, nice, plot
from plugins.module_utils.pages.training_page import comma_separated, markdown, page, report
from tests.page import Page

ROOT = Path(__file__).parents[5]
PUBLISHED = yaml.safe_load((ROOT / "roles" / "report" / "vars" / "main.yml").read_text())["__report_published"]


def run(nodes: int, rate: float, transport: str = "tcp", **more: Any) -> dict[str, Any]:
    name = f"{transport}-{nodes}-{rate:.0f}"
    proof = {"ok": True, "transport": transport, "why": f"it was {transport}"}
    fields = {
        "name": name,
        "nodes": nodes,
        "gpus": nodes,
        "transport": transport,
        "images_per_sec": rate,
        "proof": proof,
    }
    return {**fields, "loss": 0.5, "steps": 100, **more}


RUNS = [run(1, 100.0), run(2, 150.0), run(2, 170.0), run(1, 100.0, "rdma"), run(2, 190.0, "rdma")]


def test_the_published_table_is_the_whitepaper_s() -> None:
    rows = list(csv.DictReader((ROOT / "tests" / "fixtures" / "paper-table-2.csv").open()))
    (paper,) = [one for one in PUBLISHED if "whitepaper" in one["name"]]
    given = [(str(one["nodes"]), one["transport"], float(one["images_per_sec"])) for one in paper["runs"]]
    assert given == [(row["nodes"], row["transport"], float(row["images_per_sec"])) for row in rows]
    shown = {(row["nodes"], row["transport"]): row["speedup"] for row in report([], PUBLISHED)["published"][0]["rows"]}
    for row in rows:
        assert round(shown[int(row["nodes"]), row["transport"]], 2) == float(row["speedup"])


def test_the_page_is_self_contained_and_has_numbers() -> None:
    read = Page(page(report(RUNS, PUBLISHED, images_per_epoch=3400)))
    assert read.external == []
    assert read.elements.count("svg") == 3
    # A rate that was measured once has no spread, and an epoch that was not measured is calculated from the rate.
    assert ["2", "2", "tcp", "160.0", "20.0", "1.60", "80%", "1.00", "about 21.2 s"] in read.tables[0]
    assert ["2", "2", "rdma", "190.0", "-", "1.90", "95%", "1.19", "about 17.9 s"] in read.tables[0]
    assert any(title == "rdma, measured: 1.90 times on 2 GPUs" for title in read.titles)
    assert any(title.startswith("pvrdma, ") and "1021.00 images/s on 4 GPUs" in title for title in read.titles)


def test_markdown_and_csv_have_the_same_content() -> None:
    content = report(RUNS, PUBLISHED)
    assert "| 2 | 2 | rdma | 190.0 | - | 1.90 | 95% | 1.19 | - |" in markdown(content)
    rows = list(csv.DictReader(io.StringIO(comma_separated(content))))
    (row,) = [row for row in rows if (row["source"], row["nodes"], row["transport"]) == ("measured", "2", "rdma")]
    assert float(row["speedup"]) == 1.9
    assert {row["source"] for row in rows} == {"measured", PUBLISHED[0]["name"]}


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([], "No training run was measured."),
        ([run(2, 100.0)], "There is no scaling table: The transport 'tcp' has no run on 1 GPU"),
        ([run(1, 100.0)], "Nothing was measured with rdma."),
        (
            [run(1, 9.0), run(2, 9.0, "rdma", proof={"ok": False, "transport": "tcp", "why": "it fell back to TCP"})],
            "rdma-2-9 does not count as rdma: it fell back to TCP.",
        ),
    ],
)
def test_missing_measurements_are_reported(runs: list[dict[str, Any]], words: str) -> None:
    content = report(runs, PUBLISHED)
    assert any(text.startswith(words) for text in content["not_measured"])
    assert words.replace("'", "&#x27;") in page(content)
    assert words in markdown(content)


def test_published_lines_alone_are_not_drawn() -> None:
    content = report([run(2, 100.0)], PUBLISHED)
    read = Page(page(content))
    assert content["rows"] == []
    assert "svg" not in read.elements
    assert any("533.0" in row for table in read.tables for row in table), "the published table stands"


def test_names_cannot_inject_markup_into_the_page() -> None:
    read = Page(page(report([run(1, 1.0, name="<script>alert(1)</script>")], title="<b>")))
    assert "script" not in read.elements
    assert "b" not in read.elements


def test_a_figure_contains_all_its_points() -> None:
    drawn = plot("T", "u", [PlotLine("a", ((1, 0.0), (8, 13.0)))])
    assert 'cx="496.0"' in drawn
    assert nice(13.0) == 16.0


@pytest.mark.parametrize("value", [0.07, 1, 1.01, 9.9, 99, 1021, 5e6])
def test_an_axis_ends_slightly_above_its_values(value: float) -> None:
    assert value <= nice(value) * 1.0001 <= value * 1.7
