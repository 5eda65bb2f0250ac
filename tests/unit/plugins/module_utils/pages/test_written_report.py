"""The program report, on results as role training keeps them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.programs import run as carry_out


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    results = tmp_path / "runs"
    results.mkdir()
    for nodes, rate in ((1, 100.0), (2, 150.0)):
        proof = {"ok": True, "transport": "tcp", "why": "NCCL's log says NET/Socket"}
        run = {"name": f"tcp-{nodes}", "nodes": nodes, "gpus": nodes, "transport": "tcp", "images_per_sec": rate}
        (results / f"tcp-{nodes}.json").write_text(json.dumps({**run, "proof": proof}))
    figure = {"nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 50.0}
    published = {"name": "Elsewhere", "source": "A paper", "runs": [figure]}
    return {"results": str(results), "folder": str(tmp_path / "report"), "published": [published]}


def files(folder: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in Path(folder).iterdir()}


def test_four_files_are_written_once(given: dict[str, Any]) -> None:
    first = carry_out("report", **given, title="Runs of the week", images_per_epoch=300)
    assert first["changed"] and set(first["files"]) == {
        f"{given['folder']}/training.{kind}" for kind in ("html", "md", "csv", "json")
    }
    assert [row["speedup"] for row in first["rows"]] == [1.0, 1.5]
    assert "Nothing was measured with rdma." in first["not_measured"]
    assert any("Elsewhere" in line for line in first["lines"])
    written = files(given["folder"])
    assert "Runs of the week" in written["training.html"] and "about 2.00 s" in written["training.md"]
    assert json.loads(written["training.json"])["rows"] == first["rows"]
    assert not carry_out("report", **given, title="Runs of the week", images_per_epoch=300)["changed"]
    assert carry_out("report", **given, title="Another")["changed"]


@pytest.mark.parametrize("title", ["esx01.********", "Runs with High avai********ility", "Runs on esx01.********: two"])
def test_refuses_a_report_that_contains_a_masked_word(given: dict[str, Any], title: str) -> None:
    result = carry_out("report", **given, title=title)

    assert result["failed"] and "is a masked name: it contains a secret, such as the password" in result["msg"]
    assert not Path(given["folder"]).exists()


@pytest.mark.parametrize("title", ["******** Runs ********", "Runs ****************", "**Runs** of *one* week"])
def test_writes_asterisks_that_mask_nothing(given: dict[str, Any], title: str) -> None:
    assert carry_out("report", **given, title=title)["changed"]


def test_check_mode_writes_nothing(given: dict[str, Any]) -> None:
    result = carry_out("report", check=True, **given)
    assert result["changed"] and result["rows"] and not Path(given["folder"]).exists()


def test_shows_a_run_without_a_rate(given: dict[str, Any]) -> None:
    run = {"name": "tcp-3", "nodes": 3, "gpus": 3, "transport": "tcp", "images_per_sec": None}
    (Path(given["results"]) / "tcp-3.json").write_text(json.dumps(run))
    result = carry_out("report", **given)
    assert "| tcp-3 | 3 | 3 | tcp | - | - | - | - |" in files(given["folder"])["training.md"], result


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"published": [{"name": "x", "source": "y", "runs": [{"nodes": 1}]}]}, "published runs: .* lacks 'gpus'"),
        ({"vmotion_tests": "HERE"}, "timeline.json: could not read the timeline of a vMotion test"),
    ],
)
def test_odd_input_is_refused_before_anything_is_written(
    given: dict[str, Any], more: dict[str, Any], words: str
) -> None:
    (Path(given["results"]) / "timeline.json").write_text(json.dumps({"torn": 1})[:-3])
    place = {key: given["results"] if value == "HERE" else value for key, value in more.items()}
    result = carry_out("report", **{**given, "runs": "tcp-*", **place})
    assert result["failed"] and not Path(given["folder"]).exists()
    assert re.search(words, result["msg"]), result["msg"]
