"""The files of a report are written once, atomically, with their modes; another kind of file is never replaced."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import CollectionError, Failed, Refused
from plugins.module_utils.training.results.report_files import FileModes, ReportFiles, write_output

PUBLIC = FileModes(0o755, 0o644)
TEXTS = {"a.html": "<p>Größe</p>\n", "a.json": "{}\n"}


class Module:
    """The part of a module that the runner uses."""

    def __init__(self, check: bool = False) -> None:
        self.check_mode = check


def write(folder: Path, texts: dict[str, str], modes: FileModes = PUBLIC, check: bool = False) -> dict[str, Any]:
    return runner.converge_one(Module(check), ReportFiles(folder, texts, modes))  # type: ignore[arg-type]


def test_check_mode_reports_files_without_writing_them(tmp_path: Path) -> None:
    result = write(tmp_path / "report", TEXTS, check=True)
    assert result["changed"] and list(tmp_path.iterdir()) == []
    assert set(result["diff"][0]["after"]) == {".", *TEXTS}
    write(tmp_path / "report", TEXTS)
    assert not write(tmp_path / "report", TEXTS, check=True)["changed"]


def test_only_the_file_that_differs_is_written(tmp_path: Path) -> None:
    write(tmp_path, TEXTS)
    kept = (tmp_path / "a.html").stat().st_ino
    (tmp_path / "a.json").write_text("other")
    (tmp_path / "a.html").chmod(0o600)
    result = write(tmp_path, {**TEXTS, "a.html": TEXTS["a.html"]}, FileModes(tmp_path.stat().st_mode & 0o777, 0o600))
    assert set(result["diff"][0]["after"]) == {"a.json"}
    assert ((tmp_path / "a.html").stat().st_ino, (tmp_path / "a.json").read_text()) == (kept, TEXTS["a.json"])


@pytest.mark.parametrize("taken", ["folder", "file"])
def test_another_kind_of_file_is_refused_and_stays(tmp_path: Path, taken: str) -> None:
    folder = tmp_path / "report"
    if taken == "folder":
        folder.write_text("mine")
    else:
        (folder / "a.json").mkdir(parents=True)
    with pytest.raises(Refused, match="could not write the report: another kind of file has this path"):
        ReportFiles(folder, TEXTS, PUBLIC).plan(ReportFiles(folder, TEXTS, PUBLIC).read())
    assert reports_failure(folder) and not (folder / "a.html").exists()


def test_reports_a_folder_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    files = ReportFiles(tmp_path / "file" / "report", TEXTS, PUBLIC)
    with pytest.raises(Failed, match=r"could not write the report: .*Not a directory.*; check the folder's owner"):
        files.apply(files.plan(files.read()))


def test_a_failed_write_keeps_only_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.json": "old"})

    def full(*_arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    files = ReportFiles(tmp_path, {"a.json": "new"}, PUBLIC)
    with pytest.raises(CollectionError, match="No space left"):
        files.apply(files.plan(files.read()))
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    assert (tmp_path / "a.json").read_text() == "old"


def reports_failure(folder: Path) -> bool:
    return bool(write(folder, TEXTS)["failed"])


def test_output_of_an_ended_job_has_no_tags(tmp_path: Path) -> None:
    printed = "".join(f"[1,{rank}]<stdout>:step {rank}\n" for rank in (0, 1)) + "mpirun ends\n[1,0]<stdout>:1%\r2%\n"
    plain = "rank 0: step 0\nrank 1: step 1\nmpirun ends\nrank 0: 2%\n"
    path = tmp_path / "output.log"
    path.write_text("[1,0]<stdout>:earlier\n" + printed)
    path.chmod(0o600)

    for _run in range(2):
        write_output(str(tmp_path), printed)
        assert path.read_text() == f"rank 0: earlier\n{plain}"

    write_output(str(tmp_path), printed + "[1,1]<stdout>:later\n")
    assert path.read_text() == f"{plain}rank 1: later\n"
    assert (path.stat().st_mode & 0o777, [each.name for each in tmp_path.iterdir()]) == (0o600, ["output.log"])
