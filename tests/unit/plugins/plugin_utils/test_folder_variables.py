"""The variables in dml.yml of a folder: no error shows them, and no node chooses whose they are."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.results.manifest import REPORTED
from plugins.plugin_utils import folder_file
from plugins.plugin_utils.training_site import with_variables


def test_a_reported_run_reads_no_folder(tmp_path: Path) -> None:
    (tmp_path / folder_file.FILE).write_text("environment: {SEED: 7}\ncommand: python train.py\n")
    known = {"folder": str(tmp_path)}

    assert with_variables({"environment": {}}, known)["environment"] == {"SEED": "7"}
    assert with_variables({"environment": {}}, {**known, REPORTED: True})["environment"] == {}


@pytest.mark.parametrize("text", ["environment: {TOKEN: s3cret", "environment: {TOKEN: [s3cret]}", "- s3cret: [\n"])
def test_no_error_shows_a_value(tmp_path: Path, text: str) -> None:
    (tmp_path / folder_file.FILE).write_text(text)

    with pytest.raises(Refused) as raised:
        folder_file.read(str(tmp_path))

    assert "s3cret" not in "".join(traceback.format_exception(raised.value))
