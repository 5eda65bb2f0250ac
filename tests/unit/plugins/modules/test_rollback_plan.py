# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module rollback_plan as Ansible calls it, over files of evidence."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from plugins.modules import rollback_plan
from tests.module_arguments import patch_module_args

HOST = {"host": "esx01.lab", "pvrdma": {"vmk": "", "firewall_open": False}}
EVIDENCE: dict[str, Any] = {
    "format": 1,
    "cluster": {"name": "gpu", "options": {"vgpu.hotmigrate.enabled": False}, "drs": {"options": {}}},
    "wanted": {"profile": {"pvrdma": {"vmk": "vmk1"}}, "host_profiles": {}},
    "hosts": [HOST, {**HOST, "host": "esx02.lab"}],
}
NEWER = "use the version of dml.vsphere that took the evidence"
OTHER = "take the evidence of gpu, or run with --limit prod"


def call(folder: Path, text: str, /, **options: Any) -> tuple[dict[str, Any], str]:
    """The result of the module over a file with this text, and the file's name."""
    file = folder / "before.json"
    file.write_text(text)
    answer = io.StringIO()
    arguments = {"evidence": str(file), "cluster": "gpu", **options}
    with patch_module_args(arguments), contextlib.redirect_stdout(answer), contextlib.suppress(SystemExit):
        rollback_plan.main()
    return dict(json.loads(answer.getvalue())), str(file)


def test_the_profiles_of_all_hosts_or_of_some(tmp_path: Path) -> None:
    result, _file = call(tmp_path, json.dumps(EVIDENCE))
    restored = {"pvrdma": {"state": "absent", "close_firewall": True}}
    assert result["profiles"] == {"esx01.lab": restored, "esx02.lab": restored} and not result["changed"]
    assert result["shared_settings"]["vcenter_options"] == {"vgpu.hotmigrate.enabled": False}
    result, _file = call(tmp_path, json.dumps(EVIDENCE), hosts=["esx02.lab"])
    assert list(result["profiles"]) == ["esx02.lab"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"wanted": {"profile": {"nosuch": {"a": 1}}, "host_profiles": {}}},
         f"the change touched nosuch, which this version of dml.vsphere cannot restore; {NEWER}"),
        ({"format": 2}, f"it has format 2, and this version of dml.vsphere reads format 1; {NEWER}"),
        ({"cluster": {"name": "prod"}},
         f"that is evidence of prod; {OTHER}"),
        ({"hosts": [{"host": "esx01.lab"}]},
         "esx01.lab: the evidence holds no pvrdma, which restoring pvrdma needs"),
    ],
)  # fmt: skip
def test_evidence_that_cannot_be_restored_is_one_sentence_with_its_file(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    result, file = call(tmp_path, json.dumps({**EVIDENCE, **changed}))
    assert result["failed"] and result["msg"] == f"{file}: could not restore cluster gpu from it: {said}"


@pytest.mark.parametrize("text", ["no JSON", "[1]"])
def test_what_is_no_evidence_is_refused(tmp_path: Path, text: str) -> None:
    result, file = call(tmp_path, text)
    assert result["failed"] and result["msg"].startswith(f"{file}: could not ")
