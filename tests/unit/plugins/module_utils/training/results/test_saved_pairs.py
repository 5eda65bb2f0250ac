"""The result of a bandwidth measurement is written once, and its findings are returned."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results.saved_results import network_findings, write_pairs
from tests.fakes.calling import here
from tests.fakes.programs import run
from tests.unit.plugins.module_utils.training.pairs.test_pair_result import NODES, output

SLOW = output(("n1", "n2", 9.0), ("n1", "n3", 1.0), ("n2", "n3", 1.0))


@pytest.fixture
def given(tmp_path: Path) -> dict[str, Any]:
    job = {"state": "finished", "started": time.time() - 60, "ended": time.time()}
    place = {"name": "fabric-1", "folder": str(tmp_path / "fabric")}
    limits = {"devices": {}, "least": 0.8, "expected": 0.0}
    return {**place, **limits, "nodes": NODES, "transport": "tcp", "nccl": "", "records": SLOW, "job": job}


def findings(given: dict[str, Any], *nodes: str) -> list[str]:
    return network_findings(folder=given["folder"], nodes=nodes or NODES, recent=86400)


def test_a_result_is_written_once_and_blocks_runs(given: dict[str, Any]) -> None:
    first = here(write_pairs, **given)
    assert first["changed"] and not here(write_pairs, **given)["changed"]
    assert json.loads(Path(first["files"][0]).read_text()) == first["result"]
    assert first["error"].startswith("n3 is slow with every other node")
    found = findings(given)
    assert [text.partition(" is")[0] for text in found] == ["fabric-1: n3"]
    assert findings(given, "n1", "n2") == []


@pytest.mark.parametrize("more", [{"least": 0.0}, {"least": 1.5}, {"expected": -1.0}])
def test_impossible_limits_are_refused(given: dict[str, Any], more: dict[str, Any]) -> None:
    refused = here(write_pairs, **{**given, **more})
    assert refused["failed"]
    assert refused["msg"].startswith("fabric-1: could not compare the pairs: least is")
    assert not Path(given["folder"]).exists()


def test_an_incomplete_result_is_refused(given: dict[str, Any]) -> None:
    path = Path(given["folder"], "broken", "result.json")
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    with pytest.raises(Refused, match="could not read the result of a bandwidth measurement: it has no name"):
        findings(given)


def test_the_report_shows_the_check(given: dict[str, Any], tmp_path: Path) -> None:
    here(write_pairs, **given)
    folder = str(tmp_path / "report")
    run("report", results=str(tmp_path / "runs"), folder=folder, fabric=given["folder"])
    assert "n3 is slow with every other node" in Path(folder, "training.md").read_text()
    assert json.loads(Path(folder, "training.json").read_text())["fabric"][0]["name"] == "fabric-1"
