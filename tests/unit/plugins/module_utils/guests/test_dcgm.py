"""The failed tests of DCGM's short diagnostic, in the forms of DCGM 3 and 4, as findings on the GPUs of a node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.core.findings import NOTE, STOP, WARN
from plugins.module_utils.guests import gpu_health

from .test_gpu_health import found, texts

DUMPS = Path(__file__).parents[4] / "fixtures" / "dcgm"
V4 = (DUMPS / "persistence-v4.json").read_text()


def of_memory(**result: Any) -> str:
    """Return the result of a diagnostic of level 1 with one result of the test of memory."""
    tests = [{"name": "memory", "results": [{"status": "Fail", **result}]}]
    return json.dumps({"DCGM GPU Diagnostic": {"test_categories": [{"category": "Hardware", "tests": tests}]}})


def test_a_failed_setting_warns_without_stopping_a_job() -> None:
    findings = gpu_health.findings("w1", found(diagnostic=V4))

    assert texts(findings) == []
    words = "fails the test software (Persistence Mode: Persistence mode for GPU 1 is disabled.): see dcgmi diag -r 1"
    assert f"GPU 1 of DCGM {words}" in texts(findings, WARN)


def test_ignores_skipped_tests_and_an_introductory_sentence() -> None:
    text = "Successfully ran diagnostic for group.\n" + (DUMPS / "skipped-v3.json").read_text()

    assert gpu_health.failed_tests(text) == []


@pytest.mark.parametrize(
    ("severity", "is_sick"), [(1, False), (2, True), (4, True), (5, False), (6, True), (None, False)]
)
def test_only_severe_gpu_errors_stop_a_job(severity: int | None, *, is_sick: bool) -> None:
    warning = {"warning": "Pending page retirements", "error_severity": severity}

    findings = gpu_health.findings("w1", found(diagnostic=of_memory(entity_id=3, warnings=[warning])))

    stops = [text for text in texts(findings, STOP if is_sick else WARN) if "DCGM" in text]
    assert stops and stops[0].startswith("GPU 3 of DCGM fails the test memory (Pending page retirements): ")


def test_the_texts_of_dcgm_3_have_no_severity() -> None:
    (test,) = gpu_health.failed_tests(of_memory(gpu_ids="0,1", warnings=["ECC\nerror"])) or []

    assert test == gpu_health.FailedTest("0,1", "memory", "ECC error", is_sick=False)


def test_an_unresponsive_dcgm_service_is_a_note() -> None:
    refused = "Error: unable to establish a connection to the specified host: localhost"

    (note,) = [text for text in texts(gpu_health.findings("w1", found(diagnostic=refused)), NOTE) if "DCGM" in text]

    assert note == f"DCGM's diagnostic did not run ({refused}): check the service nvidia-dcgm"
