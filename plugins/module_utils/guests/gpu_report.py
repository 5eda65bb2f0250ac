"""The state of the GPUs of a node, from the XML of ``nvidia-smi -q -x``; a value that it does not report is None.

A driver writes "N/A", "Requested functionality has been deprecated" or "[Unknown Error]" in the place of a value. The
names of elements differ between versions of the format: clocks_throttle_reasons became clocks_event_reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple
from xml.etree import ElementTree

# The longest text that is read: five times the report of eight GPUs with all their supported clocks.
MOST_CHARACTERS = 1 << 23
_NUMBER = re.compile(r"(\d{1,12})(?: ?(?:MiB|x|%|W|C))?", re.ASCII)
# Sums of the memory errors that the GPU could not correct. Drivers from 550 on divide those of the SRAM in two.
_UNCORRECTED = (
    "sram_uncorrectable",
    "sram_uncorrectable_parity",
    "sram_uncorrectable_secded",
    "dram_uncorrectable",
    "double_bit/total",
)
# Memory repairs that wait for a reset of the GPU, and failed ones.
_WAITING = (
    ("remapped_rows/remapped_row_pending", "rows of its memory wait to be remapped"),
    ("retired_pages/pending_retirement", "pages of its memory wait to be retired"),
    ("ecc_errors/channel_repair_pending", "a memory channel waits for its repair"),
    ("ecc_errors/tpc_repair_pending", "a processing cluster waits for its repair"),
)
_FAILED = (
    ("remapped_rows/remapped_row_failure", "a row of its memory could not be remapped"),
    ("ecc_errors/unrepairable_memory", "its memory cannot be repaired"),
    ("ecc_errors/aggregate/sram_threshold_exceeded", "the errors of its SRAM exceed NVIDIA's threshold"),
)
_REASONS = ("clocks_event_reasons", "clocks_throttle_reasons")
# The texts in the place of each value of a GPU that does not answer; nvidia-smi still ends with exit code 0.
GONE = ("GPU is lost", "GPU requires reset")


class ReportError(ValueError):
    """A text is not the XML of nvidia-smi."""


class GpuProcess(NamedTuple):
    """A process that holds memory of a GPU; the memory is in MiB."""

    pid: int
    name: str
    used: int | None


class Gpu(NamedTuple):
    """One GPU. Pairs are the current and the largest value, or errors since the driver was loaded and in total."""

    address: str
    name: str
    uuid: str
    mode: str
    is_persistent: bool | None
    state: str
    uncorrected: tuple[int | None, int | None]
    waiting: tuple[str, ...]
    failed: tuple[str, ...]
    recovery: str
    width: tuple[int | None, int | None]
    generation: tuple[int | None, int | None]
    slowed: tuple[str, ...]
    memory: tuple[int | None, int | None]
    processes: tuple[GpuProcess, ...]


class GpuReport(NamedTuple):
    """The driver of a node and its GPUs."""

    driver: str
    cuda: str
    gpus: tuple[Gpu, ...]


def report(text: str) -> GpuReport:
    """Return the driver and the GPUs; raise ReportError for another text."""
    # An entity could expand without end; nvidia-smi defines none.
    if len(text) > MOST_CHARACTERS or "<!ENTITY" in text:
        raise ReportError("the text is too long, or defines entities")
    try:
        # The name of a process can have invalid bytes, which Ansible passes on as halves of surrogate pairs.
        root = ElementTree.fromstring(text.strip().encode("utf-8", "replace").decode())
    except ElementTree.ParseError as error:
        raise ReportError(f"nvidia-smi did not write XML: {error}") from error
    if root.tag != "nvidia_smi_log":
        raise ReportError(f"the XML is a {root.tag[:40]}, not an nvidia_smi_log")
    gpus = tuple(_gpu(node) for node in root.findall("gpu"))
    return GpuReport(_value(root, "driver_version"), _value(root, "cuda_version"), gpus)


def plain(found: GpuReport) -> dict[str, Any]:
    gpus = [{**gpu._asdict(), "processes": [process._asdict() for process in gpu.processes]} for gpu in found.gpus]
    return {"driver": found.driver, "cuda": found.cuda, "gpus": gpus}


def _gpu(node: ElementTree.Element) -> Gpu:
    link = "pci/pci_gpu_link_info"
    generation = "max_device_link_gen" if _number(node, f"{link}/pcie_gen/max_device_link_gen") else "max_link_gen"
    persistence = _value(node, "persistence_mode")
    return Gpu(
        address=str(node.get("id") or "").lower(),
        name=_value(node, "product_name"),
        uuid=_value(node, "uuid"),
        mode=_value(node, "gpu_virtualization_mode/virtualization_mode"),
        is_persistent=persistence == "Enabled" if persistence in ("Enabled", "Disabled") else None,
        state=_value(node, "performance_state"),
        uncorrected=(_errors(node, "volatile"), _errors(node, "aggregate")),
        waiting=(*_yes(node, _WAITING), *_gone(node)),
        failed=_yes(node, _FAILED),
        recovery=_value(node, "gpu_recovery_action") or _old_recovery(node),
        width=(
            _number(node, f"{link}/link_widths/current_link_width"),
            _number(node, f"{link}/link_widths/max_link_width"),
        ),
        generation=(_number(node, f"{link}/pcie_gen/current_link_gen"), _number(node, f"{link}/pcie_gen/{generation}")),
        slowed=tuple(_slowed(node)),
        memory=(_number(node, "fb_memory_usage/used"), _number(node, "fb_memory_usage/total")),
        processes=tuple(_processes(node)),
    )


def _errors(node: ElementTree.Element, since: str) -> int | None:
    """Return the number of uncorrected errors of a GPU and of its MIG devices; None if it counts none."""
    numbers = [_number(node, f"ecc_errors/{since}/{name}") for name in _UNCORRECTED]
    if since == "volatile":
        path = "ecc_error_count/volatile_count/sram_uncorrectable"
        numbers += [_number(device, path) for device in node.findall("mig_devices/mig_device")]
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


def _old_recovery(node: ElementTree.Element) -> str:
    """Return the recovery action as drivers before 555 report it."""
    for name, action in (("reset_required", "Reset"), ("drain_and_reset_recommended", "Drain and Reset")):
        if _value(node, f"gpu_reset_status/{name}") == "Yes":
            return action
    return ""


def _gone(node: ElementTree.Element) -> Iterator[str]:
    """Yield what nvidia-smi writes in the place of the values of a GPU that no longer answers."""
    texts = {(element.text or "").strip() for element in node.iter()}
    return (f"nvidia-smi reports {text!r}" for text in GONE if text in texts)


def _yes(node: ElementTree.Element, rows: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(words for path, words in rows if _value(node, path) == "Yes")


def _slowed(node: ElementTree.Element) -> Iterator[str]:
    """Yield the reasons for slower clocks, without the start of their names, which differs between versions."""
    for group in _REASONS:
        for reason in node.findall(f"{group}/*"):
            if (reason.text or "").strip() == "Active":
                yield reason.tag.partition("_reason_")[2]


def _processes(node: ElementTree.Element) -> Iterator[GpuProcess]:
    for process in node.findall("processes/process_info"):
        pid = _number(process, "pid")
        if pid is not None:
            yield GpuProcess(pid, _value(process, "process_name"), _number(process, "used_memory"))


def _number(node: ElementTree.Element, path: str) -> int | None:
    match = _NUMBER.fullmatch(_value(node, path))
    return int(match[1]) if match else None


def _value(node: ElementTree.Element, path: str) -> str:
    """Return the text of an element; empty without it, and without a value."""
    text = (node.findtext(path) or "").strip()
    return "" if text in ("N/A", "None", "[N/A]") or text.startswith(("Requested functionality", "[Unknown")) else text
