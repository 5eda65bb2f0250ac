"""The files of a folder that go to the nodes, and the refusals before anything is written."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.launch.folder import (
    FILE,
    LINK,
    OTHER,
    FolderFile,
    check,
    check_command,
    check_secrets,
    is_ignored,
    patterns_of,
    script_of,
)

TRAIN = FolderFile("train.py", FILE, 100)


def test_an_ignore_file_has_one_pattern_per_line() -> None:
    assert patterns_of("# data\n\n data/ \n*.csv\n") == ["data/", "*.csv"]


@pytest.mark.parametrize("pattern", ["!keep.csv", "**/x"])
def test_a_pattern_that_would_be_misread_is_refused(pattern: str) -> None:
    with pytest.raises(Refused, match=r"\.dmlignore: could not read its patterns: .* uses ! or \*\*; use names, paths"):
        patterns_of(pattern)


@pytest.mark.parametrize(
    ("path", "pattern", "ignored"),
    [
        ("data", "data/", True),
        ("a/data", "data", True),
        ("a/data", "/data", False),
        ("data", "/data", True),
        ("a/b.csv", "*.csv", True),
        ("a/b.csv", "a/*.csv", True),
        ("b/b.csv", "a/*.csv", False),
        ("Data", "data", False),
    ],
)
def test_a_pattern_matches_a_name_or_a_path(path: str, pattern: str, ignored: bool) -> None:
    assert is_ignored(path, [pattern]) is ignored


def test_a_good_folder_passes() -> None:
    link = FolderFile("mylib/same.py", LINK, link="../train.py")
    check("/f", [TRAIN, link], 1)
    check_secrets("/f", {})


@pytest.mark.parametrize(
    ("files", "cause"),
    [
        ([], "it contains no file to copy; "),
        ([TRAIN, FolderFile("pipe", OTHER)], "pipe is not a file, a folder or a link; "),
        ([FolderFile("a/me", LINK, link="me", loops=True)], "the link a/me leads back to itself; remove it"),
        ([FolderFile("a/up", LINK, link="../../x")], "the link a/up points outside the folder, to ../../x; "),
        ([FolderFile("abs", LINK, link="/etc/passwd")], "the link abs points outside the folder, to /etc/passwd; "),
        (
            [FolderFile("up/more", LINK, link="sub/../x", leads_out=True)],
            "the link up/more points outside the folder, to sub/../x; ",
        ),
        (
            [FolderFile(f"{size}.bin", FILE, size * 100_000) for size in range(1, 8)],
            "2.8 MB, more than 1 MB; the largest files are 7.bin .0.7 MB., 6.*, 5.*, 4.*, 3.bin .0.3 MB.; ",
        ),
    ],
)
def test_a_folder_is_refused_with_its_files(files: list[FolderFile], cause: str) -> None:
    with pytest.raises(Refused, match=rf"training_folder /f: could not copy the folder to the nodes: .*{cause}"):
        check("/f", files, 1)


def test_names_the_secrets_of_a_folder_with_reasons() -> None:
    secrets = {f"{number}.pem": "its name" for number in range(11)}
    cause = r"keys or passwords: 0.pem \(its name\), .*, 9.pem \(its name\) and 1 more; add .* training_include if the"

    with pytest.raises(Refused, match=cause):
        check_secrets("/f", secrets)


def test_accepts_a_folder_of_exactly_the_limit() -> None:
    check("/f", [FolderFile("a", FILE, 1_000_000)], 1)


def test_the_script_must_be_in_the_folder() -> None:
    check_command("/f", ["python", "./train.py"], [TRAIN])
    check_command("/f", ["python", "/opt/other.py"], [TRAIN])
    check_command("/f", ["python", "-m", "mylib.train"], [TRAIN])
    with pytest.raises(Refused, match=r"could not run tran\.py: the copied files do not contain it; training_command"):
        check_command("/f", ["python", "tran.py"], [TRAIN])
    with pytest.raises(Refused, match=r"could not train: training_command is empty; set training_command"):
        check_command("/f", [], [TRAIN])


def test_the_script_is_the_first_python_file() -> None:
    assert script_of(["python", "-u", "a.py", "b.py"]) == "a.py"
    assert script_of(["./run", "--file=-x"]) == ""
