"""The modules that write and list manifests."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

from plugins.module_utils.training.results.known_runs import list_runs
from plugins.module_utils.training.results.saved_manifests import write_manifest
from tests.fakes.calling import here

from .test_manifest import a_manifest


def test_completes_a_manifest_and_does_not_rewrite_it(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    assert here(write_manifest, folder=str(folder), manifest=a_manifest())["changed"]
    assert not here(write_manifest, folder=str(folder), manifest=a_manifest())["changed"]
    (folder / "outputs" / "deep").mkdir(parents=True)
    (folder / "outputs" / "deep" / "model").write_text("weights")
    (folder / "outputs" / "link").symlink_to("/etc/hostname")
    here(write_manifest, folder=str(folder), end={"state": "died", "cause": None})
    done = here(write_manifest, folder=str(folder), outputs=str(folder / "outputs"))
    written = json.loads((folder / "manifest.json").read_text())
    assert written == done["manifest"]
    assert written["end"]["state"] == "died"
    (output,) = written["end"]["outputs"]
    assert (output["path"], output["bytes"], output["sha256"]) == ("deep/model", 7, sha256(b"weights").hexdigest())
    assert (folder / "manifest.json").stat().st_mode & 0o777 == 0o600


def test_refuses_a_malformed_manifest(tmp_path: Path) -> None:
    assert "no such file" in here(write_manifest, folder=str(tmp_path), end={"state": "died"})["msg"]
    assert "are missing" in here(write_manifest, folder=str(tmp_path), manifest={"name": "one"})["msg"]


def test_runs_are_listed_and_compared(tmp_path: Path) -> None:
    for name in ("one", "two"):
        here(write_manifest, folder=str(tmp_path / name), manifest=a_manifest(name))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "manifest.json").write_text("{")
    listed = here(list_runs, nodes={}, results=str(tmp_path))
    assert [each["name"] for each in listed["entries"]] == ["one", "two"]
    assert len(listed["lines"]) == 3
    assert "training run bad: could not read its manifest" in listed["warnings"][0]
    compared = here(list_runs, nodes={}, results=str(tmp_path), compare=["one", "two"])
    assert compared["lines"][0].split() == ["one", "two"]
    alone = here(list_runs, nodes={}, results=str(tmp_path), compare=["one"])
    assert "-e training_compare=ONE,OTHER" in alone["msg"]
    gone = here(list_runs, nodes={}, results=str(tmp_path), compare=["one", "gone"])
    assert "gone/manifest.json: could not read" in gone["msg"]
