"""Results are read in the order of their names; an invalid file is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results import saved_results

RUN = {"nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 1.0}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"name": ', "Expecting value"),
        ("[1]", "it does not contain a JSON object"),
        (json.dumps({"name": "x", **RUN, "nodes": 1}).replace('"gpus"', '"cards"'), "it has no gpus"),
        ('{"nodes": 1}', "it has no name, gpus, transport, images_per_sec"),
    ],
)
def test_names_a_file_that_is_not_a_result(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(Refused, match=f"odd.json: could not read the result of a training run: {words}"):
        saved_results.runs(tmp_path, "*")


def test_timelines_are_found_at_any_depth(tmp_path: Path) -> None:
    for name in ("b", "a/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "timeline.json").write_text(json.dumps({"name": name}))
    (tmp_path / "a" / "other.json").write_text("no timeline")
    assert [one["name"] for one in saved_results.timelines(tmp_path)] == ["a/c", "b"]
