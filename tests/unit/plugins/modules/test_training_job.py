"""training_job as a module: no value of its secret environment is reported, whatever else it reports."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from plugins.modules import training_job

SECRET = "hush-hush-token"
registered: set[str] = set()


def result_of(**options: Any) -> dict[str, Any]:
    answer = io.StringIO()
    with (
        patch_module_args({"_ansible_check_mode": True, **options}),
        redirect_stdout(answer),
        pytest.raises(SystemExit),
    ):
        training_job.main()
    ended = dict(json.loads(answer.getvalue()))
    # From ansible-core 2.22, results keep the values. The controller masks those that were registered.
    registered.update(ended.pop("_ansible_new_secrets", []))
    assert SECRET in registered or SECRET not in answer.getvalue()
    assert registered <= {SECRET}, "short values hide nothing else"
    return ended


def test_results_and_errors_contain_no_secret_value(tmp_path: Path) -> None:
    environment = {"TOKEN": SECRET, "NCCL_DEBUG": "INFO", "ONE": 1}
    hosts = [{"name": "n1", "slots": 1}]
    given = {"run_dir": str(tmp_path / "run"), "command": ["train", "INFO"], "secret_environment": environment}
    good = result_of(hosts=hosts, **given)
    assert (good["changed"], good["state"]) == (True, {"state": "running"})
    # Before ansible-core 2.21, results contain the options.
    if requested := good.get("invocation", {}).get("module_args"):
        assert requested["secret_environment"] == dict.fromkeys(environment, "HIDDEN")
        assert (requested["command"], requested["hosts"]) == (["train", "INFO"], hosts), (
            "short values hide nothing else"
        )
    bad = result_of(hosts=[{"name": SECRET}, {"name": SECRET}], **given)
    assert bad["failed"] and ("********" in bad["msg"] or SECRET in registered)
