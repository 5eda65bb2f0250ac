"""The report on training runs, parsed like a browser: its table, curves and software."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.pages.scaling_plot import PlotLine, nice, plot
from plugins.module_utils.pages.training_page import built, comma_separated, figures, markdown, missing, page, report
from plugins.module_utils.pages.written_report import HEAD, lines
from tests.page import Page

from .test_plots import is_inside

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


OPENMPI = {"proven": True, "why": "", "version": "4.1.4", "nodes": ["n1", "n2"]}
PAPER = [
    {"nodes": 1, "gpus": 1, "transport": "pvrdma", "images_per_sec": 340},
    {"nodes": 2, "gpus": 2, "transport": "pvrdma", "images_per_sec": 533},
]
PAPER_RUNS = [{"name": "paper", "source": "a paper", "runs": PAPER}]


def repeated(nodes: int, repeat: int = 1, **more: Any) -> dict[str, Any]:
    rate = 100.0 * nodes * 0.9 ** (nodes - 1)
    curve = [{"step": step, "seconds": step / 10, "images_per_sec": rate, "loss": 2.0 / step} for step in range(1, 21)]
    proof = {"ok": True, "transport": "rdma", "why": "it was rdma"}
    fields = {"name": f"rdma-{nodes}-{repeat}", "nodes": nodes, "gpus": nodes, "transport": "rdma", "curve": curve}
    built_of = {f"n{number}": {"dml_openmpi": OPENMPI} for number in range(1, nodes + 1)}
    return {**fields, "images_per_sec": rate, "loss": 0.1, "steps": 20, "proof": proof, "built": built_of, **more}


REPEATED = [repeated(1), repeated(2), repeated(2, 2)]
ONCE = "No point was measured twice: the spread is unknown."


def test_each_point_draws_a_curve_per_repeat() -> None:
    drawn = figures(REPEATED)
    assert len(drawn) == 4
    throughput, loss = drawn[2:]
    assert "2 GPUs, rdma: images per second" in throughput
    assert "2 GPUs, rdma: loss" in loss
    assert throughput.count("<polyline") == loss.count("<polyline") == 2
    assert "rdma-2-1" in loss
    assert "rdma-2-2" in loss


def test_negative_losses_of_runs_are_drawn() -> None:
    curve = [{"step": step, "seconds": step / 10, "images_per_sec": 10.0, "loss": -step} for step in range(1, 21)]

    assert is_inside("".join(figures([repeated(1, curve=curve)])), "loss")


def test_missing_losses_are_not_drawn_but_reported() -> None:
    silent = repeated(1, curve=[{"step": 1, "seconds": 0.0, "images_per_sec": 10.0, "loss": None}])
    (only,) = figures([silent])
    assert "images per second" in only
    assert list(missing([silent])) == ["No loss was recorded in rdma-1-1.", ONCE]
    assert figures([repeated(1, curve=[])]) == []


def test_shows_which_software_of_nodes_is_proven() -> None:
    broken = {"proven": False, "why": "two nodes differ"}
    later = repeated(1, 2, built={"n1": {"dml_horovod": broken}}, job={"started": 9.0})
    assert built([later, repeated(1)]) == [
        ["n1", "horovod", "-", "no: two nodes differ"],
        ["n1", "openmpi", "nodes n1 n2, version 4.1.4", "yes"],
    ]
    assert "The software of the nodes is unknown: no role stored a proof on them." in missing([repeated(1, built={})])


def test_a_comparison_of_other_workloads_is_reported() -> None:
    mixed = [repeated(1, asked={"options": ["--fp16"]}), repeated(2, asked={"options": []})]
    assert "The runs did different work: their rates cannot be compared." in report(mixed)["not_measured"]
    assert not any("same work" in text for text in report(REPEATED)["not_measured"])


def test_single_runs_are_reported_as_having_no_spread() -> None:
    assert ONCE in report(REPEATED[:2])["not_measured"]
    assert ONCE not in report(REPEATED)["not_measured"]


def test_the_report_shows_tables_and_all_figures() -> None:
    content = report(REPEATED, PAPER_RUNS)
    read = Page(page(content))
    assert read.external == []
    assert read.elements.count("svg") == 3 + 4
    assert ["n2", "openmpi", "nodes n1 n2, version 4.1.4", "yes"] in read.tables[-1]
    assert "| n2 | openmpi | nodes n1 n2, version 4.1.4 | yes |" in markdown(content)


def test_shows_the_last_loss_rounded_or_a_dash() -> None:
    content = report([repeated(1, loss=2.2112989425), repeated(2, loss="nan"), repeated(2, 2, loss=None)])
    (runs,) = [table for table in Page(page(content)).tables if table and table[0][0] == "rdma-1-1"]
    assert [row[-1] for row in runs] == ["2.211", "nan", "-"]


def test_shows_published_figures_next_to_measured_ones() -> None:
    whole = lines(report(REPEATED, PAPER_RUNS))
    assert whole[0].startswith("The trained network is unknown")
    head = HEAD.replace("GPUs ", "Ranks")
    shown = whole[whole.index(head) :]
    assert shown[:3] == [
        head,
        "1     1     rdma         100.0       -     1.00   100% |      340     1.00",
        "2     2     rdma         180.0     0.0     1.80    90% |      533     1.57",
    ]
    assert shown[3] == "Right of the bar: published results of paper"
    assert all(len(line) <= 79 for line in whole[: whole.index(head) + 3])
    own = lines(report(REPEATED))
    assert own[own.index(head) + 1].endswith("|        -        -")


def test_the_terminal_explains_a_missing_table() -> None:
    assert lines(report([])) == ["Not measured: No training run was measured."]


def test_ranks_without_gpus_are_not_called_gpus() -> None:
    without = report(REPEATED, PAPER_RUNS)
    assert without["unit"] == "ranks"
    assert "2 ranks, rdma: loss" in page(without) and "2 GPUs, rdma" not in page(without)
    assert "| Ranks |" in markdown(without)
    with_gpu = report([repeated(1, built={"n1": {"dml_gpu_driver": {"proven": True}}})])
    unknown = report([repeated(1, built={})])
    assert with_gpu["unit"] == unknown["unit"] == "GPUs"
    assert "| GPUs |" in markdown(with_gpu)


def test_a_caution_about_the_site_comes_first_everywhere() -> None:
    simulated = report(REPEATED, PAPER_RUNS, site="SIMULATED: <lab>")
    shown = page(simulated)
    assert shown.partition("<header>")[2].startswith('<p class="site">SIMULATED: &lt;lab&gt;</p>')
    assert markdown(simulated).startswith("**SIMULATED: ")
    assert lines(simulated)[0] == "SIMULATED: <lab>"
    assert 'class="site"' not in page(report(REPEATED))
