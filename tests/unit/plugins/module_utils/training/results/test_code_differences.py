"""Two runs are compared by the files and lines of their programs, and by the metrics in their outputs."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path

from plugins.module_utils.training.results.known_runs import differences, list_runs
from tests.fakes.calling import here


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
