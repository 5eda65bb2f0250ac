# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The help of make has each documented target once, in groups, and fits a terminal of 80 columns."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
GROUPS = ("Try it", "Check a change", "Long tests", "Build and set up")


def help_of(*files: Path) -> str:
    command = ["awk", "-f", str(ROOT / "tools" / "help.awk"), *map(str, files)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_each_documented_target_is_in_a_group() -> None:
    text = help_of(ROOT / "Makefile")
    documented = re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE)
    assert len(documented) > 25
    assert sorted(re.findall(r"^  make (\S+)", text, re.MULTILINE)) == sorted(documented)
    assert tuple(re.findall(r"^(\S.*)$", text, re.MULTILINE)) == GROUPS
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_only_slow_tests_need_the_browser_which_make_test_does_not_install() -> None:
    files = [
        path for path in (ROOT / "tests" / "integration").glob("test_*.py") if "import Browser" in path.read_text()
    ]
    tests = [(path, path.read_text().split("\ndef test_")) for path in files]

    assert len(files) > 3
    assert [
        path.name
        for path, parts in tests
        if "pytestmark = pytest.mark.slow" not in parts[0]
        and not all("@pytest.mark.slow" in part.rpartition("\n\n\n")[2] for part in parts[:-1])
    ] == []


def test_each_sentence_is_whole() -> None:
    text = " ".join(help_of(ROOT / "Makefile").split())
    for sentence in re.findall(r"^[a-z-]+:.*## [a-z]+: (.*)$", MAKEFILE, re.MULTILINE):
        assert " ".join(sentence.split()) in text


def test_a_target_without_a_group_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("one: two ## Do something\n")
    done = subprocess.run(
        ["awk", "-f", str(ROOT / "tools" / "help.awk"), str(tmp_path / "Makefile")], check=False, capture_output=True
    )
    assert done.returncode == 1 and b"The comment of one has no group" in done.stderr


def test_make_without_a_target_shows_the_help() -> None:
    assert ".DEFAULT_GOAL := help" in MAKEFILE
    assert re.search(r"^help: ## .*\n\t@awk -f tools/help.awk \$\(MAKEFILE_LIST\)$", MAKEFILE, re.MULTILINE)
