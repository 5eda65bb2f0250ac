"""The report starts with the workload, and marks results that cannot be compared with the whitepaper's."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.pages.training_page import RUN_HEADS, markdown, page, report
from plugins.module_utils.pages.workload import caution, sentences, workload
from plugins.module_utils.pages.written_report import lines
from tests.page import Page

LAB = ["--cpu", "--model", "small", "--image-size", "32", "--batch-size", "16", "--step-seconds", "0.5"]
PAPER = [{"name": "paper", "source": "s", "runs": [{"nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 340}]}]


def run(name: str = "one", **requested: Any) -> dict[str, Any]:
    fields = {"name": name, "nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 32.0, "proof": {"ok": True}}
    requested = {"framework": "tensorflow", "options": [], "command": [], "stack": "lab-cpu", **requested}
    return {**fields, "asked": requested, "seconds_per_epoch": 6.25, "card": "ens192", "speed": 25.0}


def runs_of(read: Page) -> dict[str, str]:
    """Return the first run in the table of runs, by the heads of its columns."""
    (table,) = [one for one in read.tables if len(one[0]) == len(RUN_HEADS)]
    return dict(zip(RUN_HEADS, table[0]))


@pytest.mark.parametrize(
    ("requested", "words"),
    [
        (
            {"options": LAB},
            ["small, images of 32 pixels, batch 16", "fp32, tensorflow, stack lab-cpu, no container image;"],
        ),
        ({"options": LAB}, ["paced: no step is shorter than 0.5 s."]),
        ({"options": ["--fp16", "--batch-size=64"]}, ["resnet50, images of 224 pixels, batch 64 for each rank, fp16"]),
        ({"options": LAB, "stack": ""}, ["tensorflow, unknown stack, no container image;"]),
        (
            {"stack": {"name": "vgpu-ubuntu24"}, "image": "site@sha256:1"},
            ["stack vgpu-ubuntu24, container image site@sha256:1."],
        ),
        (
            {"framework": "tf_cnn_benchmarks", "options": ["--model=resnet50", "--batch_size=32", "--use_fp16"]},
            ["resnet50, images of 224 pixels, batch 32 for each rank, fp16, tf_cnn_benchmarks, stack lab-cpu"],
        ),
        ({"command": ["python", "mine.py"]}, ["The trained network is unknown; stack lab-cpu"]),
    ],
)
def test_describes_the_workload_with_all_requested_values(requested: dict[str, Any], words: list[str]) -> None:
    (sentence,) = sentences([run(**requested)])
    assert all(one in sentence for one in words)


def test_the_program_of_a_user_reports_its_network() -> None:
    own = {**run(command=["python", "mine.py"]), "network": "a regression"}
    assert sentences([own]) == ["Trained: a regression, stack lab-cpu, no container image."]
    assert caution([own]).startswith("Measured with the network a regression: not comparable")
    other = {**run(), "network": "something else"}
    assert workload(other)["network"] == "resnet50", "the options of the collection's benchmarks contain it"


def test_different_workloads_have_the_names_of_their_runs() -> None:
    first, second = sentences([run("a"), run("b", options=LAB), run("c")])
    assert first.startswith("a, c: Trained: resnet50")
    assert second.startswith("b: Trained: small")


def test_results_without_these_facts_show_dashes() -> None:
    (old,) = [
        {key: value for key, value in run().items() if key not in ("asked", "card", "speed", "seconds_per_epoch")}
    ]
    assert set(workload(old).values()) == {"-"}
    read = Page(page(report([old], PAPER)))
    row = runs_of(read)
    assert (row["Card"], row["Gbit/s"], row["Epoch"]) == ("-", "-", "-")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], ""),
        (["--model=resnet50", "--step-seconds", "0"], ""),
        (["--model", "small"], "Measured with the network small: not comparable with published results of ResNet-50."),
        (["--step-seconds=0.5"], "Measured with steps paced to 0.5 s: not comparable"),
        (LAB, "Measured with the network small and steps paced to 0.5 s: not comparable"),
    ],
)
def test_each_figure_has_the_caution_for_other_networks(options: list[str], words: str) -> None:
    content = report([run(options=options)], PAPER)
    assert caution(content["runs"]).startswith(words)
    assert bool(caution(content["runs"])) == bool(words)
    html = page(content)
    figures = html.split("<figure>")[1:4]
    assert all(words in figure for figure in figures)
    assert html.count('class="caution"') == (4 if words else 0)
    assert words in markdown(content)
    assert words in " ".join(lines(content))


def test_gives_no_caution_without_published_results() -> None:
    assert report([run(options=LAB)])["caution"] == ""


def test_the_first_line_describes_the_workload() -> None:
    content = report([run(options=LAB)], PAPER)
    html = page(content)
    assert html.index("Trained: small") < html.index("Not measured")
    assert lines(content)[0].startswith("Trained: small")
    assert markdown(content).splitlines()[2].startswith("Trained: small")
    read = Page(html)
    row = runs_of(read)
    assert (row["Card"], row["Gbit/s"], row["Epoch"]) == ("ens192", "25", "6.25 s")
    assert read.tables[0][0][-1] == "6.25 s"
    assert read.tables[0][0][4] == "-"
    assert "The A100 whitepaper measured" in html
