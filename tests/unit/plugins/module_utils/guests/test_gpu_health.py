"""A sick GPU, or a failed test of DCGM 3 or 4, is a finding with its remedy; a healthy one stops no job."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.core.findings import NOTE, STOP, WARN, Finding
from plugins.module_utils.guests import gpu_health

from .test_gpu_report import DUMPS, dump

LINES = (DUMPS / "xids.txt").read_text().splitlines()


def found(name: str = "blackwell-v13", *changes: tuple[str, str], **more: Any) -> dict[str, Any]:
    text = dump(name)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return {"smi": text, "failure": None, "log": [], "pools": None, "nccl": None, **more}


def texts(findings: list[Finding], severity: str = STOP) -> list[str]:
    return [finding.text for finding in findings if finding.severity == severity]


@pytest.mark.parametrize("name", sorted(path.stem for path in DUMPS.glob("*.xml")))
def test_no_published_state_stops_a_running_job(name: str) -> None:
    assert texts(gpu_health.findings("w1", found(name), idle=False)) == []


def test_a_lost_gpu_stops_although_nvidia_smi_succeeds() -> None:
    """NVIDIA's program ends with 0 and writes the loss in the place of each value."""
    (text,) = texts(gpu_health.findings("w1", found("lost/h100")))

    assert "GPU 00000000:1a:00.0 (NVIDIA H100 80GB HBM3): nvidia-smi reports 'GPU is lost': drain the node" in text


def test_fatal_xid_stops_when_nonfatal_one_follows() -> None:
    """The same number is fatal for the link of one GPU, and harmless for that of another one."""
    line = "{} host kernel: NVRM: Xid (PCI:{}): 145, RLW_RXPIPE {} XC0 i0 Link 13 (0x0409a0c2 0x00000008)"
    fatal = line.format("1725017004.500000", "0018:01:00", "Fatal")
    harmless = line.format("1725017005.500000", "0019:01:00", "Nonfatal")
    for log in ([fatal, harmless], [harmless, fatal]):
        (text,) = texts(gpu_health.findings("w1", found(log=log)))
        assert "RLW_RXPIPE Fatal" in text and gpu_health.REPLACE in text


def test_missing_lanes_warn_but_idle_slow_links_pass() -> None:
    of_t4, of_a10g, of_blackwell = (
        texts(gpu_health.findings("w1", found(name), idle=False), WARN)
        for name in ("t4-passthrough", "a10g-passthrough", "blackwell-v13")
    )

    assert len(of_t4) == len(of_a10g) == 1
    assert "it has 8 of 16 PCIe lanes" in of_t4[0]
    assert of_blackwell == [], "generation 1 of 5 in state P8"


def test_the_link_of_a_busy_gpu_counts() -> None:
    busy = found("blackwell-v13", ("<performance_state>P8", "<performance_state>P0"))

    assert "its PCIe link has generation 1 of 5" in texts(gpu_health.findings("w1", busy, idle=False), WARN)[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ("<gpu_recovery_action>None", "<gpu_recovery_action>Reset"),
            "its driver asks for the recovery 'Reset': drain the node",
        ),
        (
            ("<remapped_row_pending>No", "<remapped_row_pending>Yes"),
            "wait to be remapped: drain the node, then reset the GPU",
        ),
        (
            ("<remapped_row_failure>No", "<remapped_row_failure>Yes"),
            "could not be remapped: take the GPU out of service",
        ),
        (("<dram_uncorrectable>N/A", "<dram_uncorrectable>32"), "32 memory errors were not corrected since its driver"),
        (
            ("power_brake_slowdown>Not Active", "power_brake_slowdown>Active"),
            "(hw_power_brake_slowdown): check the cooling",
        ),
    ],
)
def test_a_sick_gpu_stops_a_job_with_remedies(change: tuple[str, str], words: str) -> None:
    (text,) = texts(gpu_health.findings("w1", found("blackwell-v13", change), idle=False))

    assert text.startswith("GPU 00000000:61:00.0 (NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition): ")
    assert words in text


def test_occupied_gpu_memory_stops_a_job_beforehand() -> None:
    before = texts(gpu_health.findings("w1", found("t4-passthrough")))

    assert len(before) == 1
    assert "(Tesla T4): other processes hold its memory: /usr/lib/xorg/Xorg (" in before[0]
    assert before[0].endswith("); end them, or train on another node")
    assert "65720 of 97887 MiB" in texts(gpu_health.findings("w1", found("blackwell-v13")), WARN)[0]


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "Failed to initialize NVML: Driver/library version mismatch NVML library version: 550.54",
            "restart the worker",
        ),
        (
            "Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error",
            "reset the GPU or restart the worker",
        ),
        ("No devices were found", "reset the GPU or restart the worker"),
    ],
)
def test_a_failing_nvidia_smi_stops_a_job(message: str, words: str) -> None:
    (text,) = texts(gpu_health.findings("w1", {"smi": None, "failure": message, "log": []}))

    assert text.startswith(f"nvidia-smi fails ({message})") and words in text


def test_errors_in_the_kernel_log_have_remedies() -> None:
    events = list(gpu_health.xids(LINES))

    assert [(event.number, event.address) for event in events] == [
        *((32, "0000:01:00"), (31, "0000:01:00"), (13, "0000:cb:00"), (109, "0000:cb:00"), (45, "0000:dc:00")),
        *((149, "0019:01:00"), (145, "0018:01:00"), (79, "0000:44:00"), (79, "0000:b3:00")),
    ]
    findings = gpu_health.findings("w1", found(log=LINES), idle=False)
    assert [text.split(" in the log")[0] for text in texts(findings)] == [
        "Xid 109 at GPU 0000:cb:00",
        "Xid 149 at GPU 0019:01:00",
        "Xid 79 at GPU 0000:44:00, 0000:b3:00",
    ]
    assert [text[:6] for text in texts(findings, NOTE)] == ["Xid 31", "Xid 13", "Xid 45"]
    assert [text[:7] for text in texts(findings, WARN)] == ["Xid 32 ", "Xid 145"]


def test_drivers_that_differ_between_nodes_are_named() -> None:
    (finding,) = gpu_health.driver_differences({"w1": found(), "w2": found("ada-v13"), "w3": {"error": "gone"}})

    assert "590.44.01 on w1 and 595.84 on w2" in finding.text
    assert gpu_health.driver_differences({"w1": found(), "w2": found()}) == []


def test_output_without_a_report_is_a_warning() -> None:
    (text,) = texts(gpu_health.findings("w1", {**found(), "smi": "<html/>"}), WARN)

    assert text == "nvidia-smi did not write the XML that it usually writes: the health of its GPUs is unknown"


def test_a_driver_without_a_gpu_stops_a_job() -> None:
    none = {**found(), "smi": "<nvidia_smi_log><driver_version>580</driver_version></nvidia_smi_log>"}

    assert texts(gpu_health.findings("w1", none)) == [
        "nvidia-smi lists no GPU: check the devices of the worker and its driver"
    ]


def test_persistence_and_heat_are_reported_with_their_remedy() -> None:
    (note,) = texts(gpu_health.findings("w1", found("a100-mig"), idle=False), NOTE)
    hot = found("a10g-passthrough", ("sw_thermal_slowdown>Not Active", "sw_thermal_slowdown>Active"))

    assert note.endswith("its persistence mode is off: start nvidia-persistenced")
    assert any(
        text.endswith("its driver slows it down because it is hot: check the cooling of the host")
        for text in texts(gpu_health.findings("w1", hot, idle=False), WARN)
    )


def test_reports_a_kernel_log_the_user_cannot_read() -> None:
    assert texts(gpu_health.findings("w1", found(log=None), idle=False), NOTE) == [
        "this user may not read the kernel log: whether it contains GPU errors (Xid) is unknown"
    ]


DCGM_DUMPS = Path(__file__).parents[4] / "fixtures" / "dcgm"
V4 = (DCGM_DUMPS / "persistence-v4.json").read_text()


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
    text = "Successfully ran diagnostic for group.\n" + (DCGM_DUMPS / "skipped-v3.json").read_text()

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
