"""Published output of nvidia-smi is read as it is: passed-through GPUs, MIG, a vGPU, and formats from 10 to 13."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugins.module_utils.guests.gpu_report import GpuReport, ReportError, plain, report

DUMPS = Path(__file__).parents[4] / "fixtures" / "nvidia_smi"


def dump(name: str) -> str:
    return (DUMPS / f"{name}.xml").read_text()


def read(name: str) -> GpuReport:
    return report(dump(name))


def test_a_passthrough_t4_reports_link_memory_and_processes() -> None:
    (gpu,) = read("t4-passthrough").gpus

    assert (gpu.address, gpu.name, gpu.mode, gpu.state) == ("00000000:00:1e.0", "Tesla T4", "Pass-Through", "P0")
    assert (gpu.width, gpu.generation, gpu.memory) == ((8, 16), (3, 3), (1032, 15360))
    assert (gpu.uncorrected, gpu.waiting, gpu.failed, gpu.recovery) == ((0, 0), (), (), "")
    assert [(process.name, process.used) for process in gpu.processes] == [("/usr/lib/xorg/Xorg", 22), ("python", 1005)]
    assert gpu.is_persistent is False


@pytest.mark.parametrize("name", ["a100-mig", "a100-mig-passthrough"])
def test_a_mig_gpu_counts_the_errors_of_devices(name: str) -> None:
    text = dump(name).replace("<sram_uncorrectable>0<", "<sram_uncorrectable>2<", 1)

    (gpu,) = report(text).gpus

    assert gpu.uncorrected == (2, 0)


def test_a_vgpu_reports_neither_link_nor_errors() -> None:
    (gpu,) = read("vgpu-l40s").gpus

    assert (gpu.name, gpu.width, gpu.generation, gpu.uncorrected) == (
        "NVIDIA L40S-2Q",
        (None, None),
        (None, None),
        (None, None),
    )
    assert gpu.is_persistent is None


def test_a_blackwell_reports_its_generation_without_placeholder_text() -> None:
    found = read("blackwell-v13")

    assert (found.driver, found.cuda) == ("590.44.01", "13.1")
    assert found.gpus[0].generation == (1, 5)
    assert "deprecated" not in str(plain(found))
    assert found.gpus[0].recovery == ""


def test_formats_without_a_field_are_read() -> None:
    assert read("turing-v10").gpus[0].name == "Graphics Device"
    assert {process.name for process in read("ada-v13").gpus[0].processes} >= {"python"}


@pytest.mark.parametrize(
    ("old", "new", "key", "value"),
    [
        (
            "<remapped_row_pending>No",
            "<remapped_row_pending>Yes",
            "waiting",
            ("rows of its memory wait to be remapped",),
        ),
        (
            "<channel_repair_pending>No",
            "<channel_repair_pending>Yes",
            "waiting",
            ("a memory channel waits for its repair",),
        ),
        (
            "<remapped_row_failure>No",
            "<remapped_row_failure>Yes",
            "failed",
            ("a row of its memory could not be remapped",),
        ),
        ("<gpu_recovery_action>None", "<gpu_recovery_action>Drain and Reset", "recovery", "Drain and Reset"),
        ("slowdown>Not Active", "slowdown>Active", "slowed", ("hw_slowdown",)),
        ("<sram_uncorrectable_parity>N/A", "<sram_uncorrectable_parity>1", "uncorrected", (1, None)),
    ],
)
def test_a_sick_state_is_read(old: str, new: str, key: str, value: object) -> None:
    (gpu,) = report(dump("blackwell-v13").replace(old, new, 1)).gpus

    assert getattr(gpu, key) == value


@pytest.mark.parametrize(
    "text", ["", "No devices were found", "<a/>", "<!DOCTYPE a [<!ENTITY x 'y'>]><nvidia_smi_log>&x;</nvidia_smi_log>"]
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(ReportError):
        report(text)


def test_reports_a_process_whose_name_has_invalid_bytes() -> None:
    """Ansible passes on an invalid byte in the output of a program as half of a surrogate pair."""
    text = dump("t4-passthrough").replace(">python<", ">pyth\udcffn<")

    (gpu,) = report(text).gpus

    assert [process.name for process in gpu.processes] == ["/usr/lib/xorg/Xorg", "pyth?n"]
