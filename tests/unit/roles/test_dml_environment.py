# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""dml_environment.py: which pods share an environment, and how they find it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from roles.training.files import dml_environment

STACK = {"torch": "2.15.0", "numpy": "2.4.6"}


@pytest.mark.parametrize(
    ("text", "given", "stack"),
    [
        ("tqdm==2\n", ["image:1"], STACK),
        ("tqdm\n", ["image:2"], STACK),
        ("tqdm\n", ["image:1"], {**STACK, "numpy": "2.4.7"}),
    ],
)
def test_another_text_image_or_package_is_another_environment(
    text: str, given: list[str], stack: dict[str, str]
) -> None:
    key = dml_environment.key_of("tqdm\n", ["image:1"], dict(reversed(STACK.items())))
    assert key == dml_environment.key_of("tqdm\n", ["image:1"], STACK) != dml_environment.key_of(text, given, stack)


def test_the_link_leads_to_the_newest_environment(tmp_path: Path) -> None:
    for name in ("one", "two"):
        dml_environment.link(str(tmp_path / name), str(tmp_path / "environment"))
    assert [path.name for path in tmp_path.iterdir()] == ["environment"]
    assert (tmp_path / "environment").readlink() == tmp_path / "two"


def test_a_failure_is_one_sentence_with_the_errors_of_pip() -> None:
    program = "import sys; sys.exit('noise\\nERROR: No matching distribution found for tqdm==99')"
    with pytest.raises(SystemExit) as ended:
        dml_environment.run("install the requirements", sys.executable, "-c", program)
    assert str(ended.value) == "could not install the requirements: ERROR: No matching distribution found for tqdm==99"
