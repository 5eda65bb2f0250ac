"""Manifests are written and listed; two runs are compared by their programs and their metrics."""

from __future__ import annotations

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

from plugins.module_utils.training.results.known_runs import differences, list_runs
from plugins.module_utils.training.results.saved_manifests import write_manifest
from tests.fakes.calling import here

from .test_manifest import a_manifest


def archive(path: Path, files: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return path


def test_counts_the_differing_lines_of_each_file(tmp_path: Path) -> None:
    one = archive(tmp_path / "one.tar", {"train.py": b"a\nb\nc\n", "same.py": b"x", "old.py": b"", "data.bin": b"\xff"})
    other = archive(tmp_path / "two.tar", {"train.py": b"a\nB\nB\nc\n", "same.py": b"x", "data.bin": b"\xfe"})

    assert differences(one, other) == [
        ("code data.bin", "differs", "differs"),
        ("code old.py", "a file", "no such file"),
        ("code train.py", "1 other lines", "2 other lines"),
    ]
    assert differences(one, one) == [] and differences(one, tmp_path / "none.tar") == []


def test_compares_versions_once_for_all_nodes(tmp_path: Path) -> None:
    nodes = [f"w{number}" for number in range(50)]
    for name, loss, cuda in (("one", 0.5, "13.1"), ("two", 0.25, "13.2")):
        built = {node: {"dml_cuda": {"version": cuda, "time": f"{name} {node}"}} for node in nodes}
        fixed = {"run_dir": f"/runs/{name}", "nodes": nodes, "command": ["python"], "transport": "tcp"}
        archive(tmp_path / name / "code.tar", {"train.py": name.encode()})
        (tmp_path / name / "manifest.json").write_text(json.dumps({"name": name, **fixed, "built": built}))
        (tmp_path / name / "outputs").mkdir()
        (tmp_path / name / "outputs" / "m.csv").write_text(f"loss\n{loss}\n")

    lines = here(list_runs, nodes={}, results=str(tmp_path), compare=["one", "two"])["lines"]

    rows = [line.split("  ") for line in lines]
    assert ["built.dml_cuda.version", "13.1", "13.2"] in [[cell.strip() for cell in row if cell] for row in rows]
    assert len(lines) < 15 and "code train.py" in "\n".join(lines)
    assert [cell.strip() for cell in rows[-1] if cell] == ["loss in outputs", "0.5", "0.25"]


def test_compares_a_link_with_an_invalid_target_name(tmp_path: Path) -> None:
    for name, target in (("one", "data\udcff"), ("two", "data")):
        with tarfile.open(tmp_path / f"{name}.tar", "w") as made:
            link = tarfile.TarInfo("link")
            link.type, link.linkname = tarfile.SYMTYPE, target
            made.addfile(link)

    rows = differences(tmp_path / "one.tar", tmp_path / "two.tar")

    assert [row[0] for row in rows] == ["code link"]


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
