# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The names of labs: a lab that ends removes its folder, which must be nobody else's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lab import __main__ as command
from lab import running
from lab.nodes.programs import LabError
from lab.running import Lab


@pytest.mark.parametrize("name", ["machines", "podman", "shared", "", ".", "..", "../shared", "/tmp/x", "a/b"])
def test_a_lab_cannot_have_the_folder_of_anything_else(name: str) -> None:
    with pytest.raises(LabError, match="No lab can be called"):
        Lab(name)


@pytest.mark.parametrize("name", ["default", "membersgw0", "machines-traces", "a.b"])
def test_a_lab_has_a_folder_of_its_own(name: str, tmp_path: Path) -> None:
    assert Lab(name, tmp_path).folder == tmp_path / name


def test_all_that_labs_have_in_common_is_guarded() -> None:
    inside = {path.name for path in vars(running).values() if isinstance(path, Path) and path.parent == running.FOLDER}
    assert inside == {"machines", "podman", "shared"}


def test_such_a_name_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["lab", "--name", "machines", "down"])
    assert command.main() == 1
    assert capsys.readouterr().err.startswith("No lab can be called 'machines'")
