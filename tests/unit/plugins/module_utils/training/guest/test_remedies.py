"""The cause of a job's end comes with what to do, if the copied folder shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.training.guest import job

MISSING = "rank 0 on n1 ended: ModuleNotFoundError: No module named 'net.data' (train.py, line 3)"


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        (
            "src/net/__init__.py",
            "; your folder has src/net: set PYTHONPATH=src in training_environment, or install it with",
        ),
        ("code/python/net.py", "; your folder has code/python/net: set PYTHONPATH=code/python in"),
        ("a/b/c/net.py", "; add the package that has the module net to requirements.txt in your folder"),
        (".git/net.py", "; add the package that has the module net to requirements.txt in your folder"),
    ],
)
def test_a_missing_module_is_found_in_the_folder(tmp_path: Path, path: str, remedy: str) -> None:
    (tmp_path / "work" / path).parent.mkdir(parents=True)
    (tmp_path / "work" / path).touch()

    assert job.of(MISSING, str(tmp_path)).startswith(remedy)


def test_suggests_no_remedy_without_folder_or_known_cause(tmp_path: Path) -> None:
    assert job.of(MISSING, str(tmp_path)) == ""
    (tmp_path / "work").mkdir()
    assert job.of("rank 0 on n1 ended: ValueError: no data", str(tmp_path)) == ""


def test_reports_file_system_and_size_of_full_disks() -> None:
    sentence = job.no_space("/dev/shm")
    assert ":/dev/shm, whose file system /dev/shm has " in sentence and sentence.endswith(" MB")
