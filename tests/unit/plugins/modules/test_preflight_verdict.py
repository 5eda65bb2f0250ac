# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module that judges what was read before hosts are prepared: its findings, its lines and its one error."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from typing import Any

import pytest

from plugins.modules import preflight_verdict
from tests.module_arguments import patch_module_args
from tests.unit.plugins.module_utils.hosts.preflight.preflight_data import gpu, host, read

OTHER = {"hosts": {"hosts": [host(gpus=[gpu(name="NVIDIA A100")])]}, "gpu": "T4"}


def judge(**changed: Any) -> dict[str, Any]:
    answer = io.StringIO()
    with patch_module_args(read(**changed)), redirect_stdout(answer), pytest.raises(SystemExit):
        preflight_verdict.main()
    result: dict[str, Any] = json.loads(answer.getvalue())
    return result


def test_a_cluster_without_stops_is_not_refused() -> None:
    judged = judge()
    assert (judged["changed"], judged["stops"], judged["refused"]) == (False, [], "")
    assert judged["lines"][-1].endswith("0 in the way")


def test_a_stop_is_refused_in_one_error_with_the_way_to_accept_it() -> None:
    judged = judge(**OTHER)
    assert [one["rule"] for one in judged["stops"]] == ["gpu"]
    assert judged["refused"].startswith("gpu: 1 finding stops the preparation of its hosts: esx1: it has NVIDIA A100")
    assert judged["refused"].endswith("Correct that, or accept it by its rule in preflight_accept.")


def test_an_accepted_stop_stays_a_finding_and_is_not_refused() -> None:
    judged = judge(**OTHER, accepted=["gpu:esx1"])
    assert (judged["stops"], judged["refused"]) == ([], "")
    assert [one["severity"] for one in judged["findings"] if one["rule"] == "gpu"] == ["stop"]
    assert any(line.startswith("accepted") for line in judged["lines"])
