"""The curves of runs and the software of the nodes in the report, and the table for a terminal."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.pages.training_page import built, figures, markdown, missing, page, report
from plugins.module_utils.pages.written_report import HEAD, lines
from tests.page import Page

OPENMPI = {"proven": True, "why": "", "version": "4.1.4", "nodes": ["n1", "n2"]}
PAPER = [
    {"nodes": 1, "gpus": 1, "transport": "pvrdma", "images_per_sec": 340},
    {"nodes": 2, "gpus": 2, "transport": "pvrdma", "images_per_sec": 533},
]
PUBLISHED = [{"name": "paper", "source": "a paper", "runs": PAPER}]


def run(nodes: int, repeat: int = 1, **more: Any) -> dict[str, Any]:
    rate = 100.0 * nodes * 0.9 ** (nodes - 1)
    curve = [{"step": step, "seconds": step / 10, "images_per_sec": rate, "loss": 2.0 / step} for step in range(1, 21)]
    proof = {"ok": True, "transport": "rdma", "why": "it was rdma"}
    fields = {"name": f"rdma-{nodes}-{repeat}", "nodes": nodes, "gpus": nodes, "transport": "rdma", "curve": curve}
    built_of = {f"n{number}": {"dml_openmpi": OPENMPI} for number in range(1, nodes + 1)}
    return {**fields, "images_per_sec": rate, "loss": 0.1, "steps": 20, "proof": proof, "built": built_of, **more}


RUNS = [run(1), run(2), run(2, 2)]
ONCE = "No point was measured twice: the spread is unknown."


def test_each_point_draws_a_curve_per_repeat() -> None:
    drawn = figures(RUNS)
    assert len(drawn) == 4
    throughput, loss = drawn[2:]
    assert "2 GPUs, rdma: images per second" in throughput
    assert "2 GPUs, rdma: loss" in loss
    assert throughput.count("<polyline") == loss.count("<polyline") == 2
    assert "rdma-2-1" in loss
    assert "rdma-2-2" in loss


def test_missing_losses_are_not_drawn_but_reported() -> None:
    silent = run(1, curve=[{"step": 1, "seconds": 0.0, "images_per_sec": 10.0, "loss": None}])
    (only,) = figures([silent])
    assert "images per second" in only
    assert list(missing([silent])) == ["No loss was recorded in rdma-1-1.", ONCE]
    assert figures([run(1, curve=[])]) == []


def test_shows_which_software_of_nodes_is_proven() -> None:
    broken = {"proven": False, "why": "two nodes differ"}
    later = run(1, 2, built={"n1": {"dml_horovod": broken}}, job={"started": 9.0})
    assert built([later, run(1)]) == [
        ["n1", "horovod", "-", "no: two nodes differ"],
        ["n1", "openmpi", "nodes n1 n2, version 4.1.4", "yes"],
    ]
    assert "The software of the nodes is unknown: no role stored a proof on them." in missing([run(1, built={})])


def test_a_comparison_of_other_workloads_is_reported() -> None:
    mixed = [run(1, asked={"options": ["--fp16"]}), run(2, asked={"options": []})]
    assert "The runs did different work: their rates cannot be compared." in report(mixed)["not_measured"]
    assert not any("same work" in text for text in report(RUNS)["not_measured"])


def test_single_runs_are_reported_as_having_no_spread() -> None:
    assert ONCE in report(RUNS[:2])["not_measured"]
    assert ONCE not in report(RUNS)["not_measured"]


def test_the_report_shows_tables_and_all_figures() -> None:
    content = report(RUNS, PUBLISHED)
    read = Page(page(content))
    assert read.external == []
    assert read.elements.count("svg") == 3 + 4
    assert ["n2", "openmpi", "nodes n1 n2, version 4.1.4", "yes"] in read.tables[-1]
    assert "| n2 | openmpi | nodes n1 n2, version 4.1.4 | yes |" in markdown(content)


def test_shows_the_last_loss_rounded_or_a_dash() -> None:
    content = report([run(1, loss=2.2112989425), run(2, loss="nan"), run(2, 2, loss=None)])
    (runs,) = [table for table in Page(page(content)).tables if table and table[0][0] == "rdma-1-1"]
    assert [row[-1] for row in runs] == ["2.211", "nan", "-"]


def test_shows_published_figures_next_to_measured_ones() -> None:
    whole = lines(report(RUNS, PUBLISHED))
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
    own = lines(report(RUNS))
    assert own[own.index(head) + 1].endswith("|        -        -")


def test_the_terminal_explains_a_missing_table() -> None:
    assert lines(report([])) == ["Not measured: No training run was measured."]


def test_ranks_without_gpus_are_not_called_gpus() -> None:
    without = report(RUNS, PUBLISHED)
    assert without["unit"] == "ranks"
    assert "2 ranks, rdma: loss" in page(without) and "2 GPUs, rdma" not in page(without)
    assert "| Ranks |" in markdown(without)
    with_gpu = report([run(1, built={"n1": {"dml_gpu_driver": {"proven": True}}})])
    unknown = report([run(1, built={})])
    assert with_gpu["unit"] == unknown["unit"] == "GPUs"
    assert "| GPUs |" in markdown(with_gpu)


def test_a_caution_about_the_site_comes_first_everywhere() -> None:
    simulated = report(RUNS, PUBLISHED, site="SIMULATED: <lab>")
    shown = page(simulated)
    assert shown.partition("<header>")[2].startswith('<p class="site">SIMULATED: &lt;lab&gt;</p>')
    assert markdown(simulated).startswith("**SIMULATED: ")
    assert lines(simulated)[0] == "SIMULATED: <lab>"
    assert 'class="site"' not in page(report(RUNS))
