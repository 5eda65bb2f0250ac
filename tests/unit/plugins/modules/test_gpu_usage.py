"""The report of gpu_usage, on readings of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

from plugins.modules import gpu_usage
from tests.fakes import calling
from tests.page import Page
from tests.unit.plugins.module_utils.usage.reports import facts, gpu, user

USAGE = facts(gpu("e1", user("a", "red", 0.5), mean=1.0), gpu("e2"), cluster="gpu/1")


def call(**options: Any) -> dict[str, Any]:
    with mock.patch.object(gpu_usage, "usage_of", return_value=USAGE):
        return calling.call("gpu_usage", [], cluster="gpu/1", **options)


def test_writes_page_and_json_once_for_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    given = {"price": "2.5", "currency": "EUR", "folder": str(folder)}
    first = call(**given)
    assert first["changed"] and first["report"]["idle"][0].startswith("e1 ")
    assert first["report"]["totals"]["cost_per_hour"] == 1.25
    assert first["files"] == [str(folder / "gpu%2f1.html"), str(folder / "gpu%2f1.json")]
    assert json.loads((folder / "gpu%2f1.json").read_text()) == first["report"]
    assert Page((folder / "gpu%2f1.html").read_text()).tables[0][0][0] == "red"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700
    assert not call(**given)["changed"]
    assert call(**{**given, "idle_below": 0.5})["changed"]


def test_metrics_name_no_tenant_and_no_machine(tmp_path: Path) -> None:
    given = {"folder": str(tmp_path / "audit"), "metrics": str(tmp_path / "metrics")}
    first = call(**given)
    file = tmp_path / "metrics" / "dml_audit_gpu%2f1.prom"
    assert first["files"][-1] == str(file) and file.stat().st_mode & 0o777 == 0o644
    lines = file.read_text().splitlines()
    first_gpu = '{cluster="gpu/1",host="e1",gpu="0000:3b:00.0"'
    assert f'dml_audit_gpu_state{first_gpu},state="idle"}} 1' in lines
    assert f"dml_audit_gpu_utilization_ratio{first_gpu}}} 0.01" in lines and '"e2"' in " ".join(lines)
    assert "red" not in " ".join(lines).split() and '"a"' not in " ".join(lines)
    assert not call(**given)["changed"]


def test_writes_nothing_without_folder_or_in_check_mode(tmp_path: Path) -> None:
    result = call()
    assert (result["changed"], result["files"]) == (False, []) and result["lines"][0].startswith("gpu/1: 2 GPUs")
    planned = call(folder=str(tmp_path / "audit"), metrics=str(tmp_path / "metrics"), check=True)
    assert planned["changed"] and list(tmp_path.iterdir()) == []
