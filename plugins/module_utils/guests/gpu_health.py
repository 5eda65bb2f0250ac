"""The health of a node's GPUs: findings with GPU and remedy, before a job starts, between moves, and in an audit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..core.findings import NOTE, STOP, WARN, Finding, listed
from ..core.json_values import JsonObject, mapping, objects, parse_json
from ..core.names import printable
from . import gpu_report, gpudirect, memory_pools
from .gpu_report import Gpu

# [1843.308145] NVRM: Xid (PCI:0000:b3:00): 79, pid=1234, name=python3, GPU has fallen off the bus.
# The number is in seconds of the kernel's clock with dmesg, and since 1970 with journalctl -o short-unix.
_LINE = re.compile(r"NVRM: Xid \((?:PCI:)?([0-9A-Fa-f:.]{4,20})\): (\d{1,4})(?:, )?(.*)", re.ASCII)
_SECONDS = re.compile(r"\[?\s*(\d{1,12}(?:\.\d{1,9})?)\]?\s", re.ASCII)
# Newer drivers report a lost GPU in several lines, without a number: https://github.com/NVIDIA/NVSentinel/issues/155
_GPU, _GONE, GONE = re.compile(r"NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]{4,20})"), "NVRM: fallen off the bus", 79
# https://docs.nvidia.com/deploy/xid-errors/: errors of the GPU, its memory, links and firmware, by their remedy.
RESET = "drain the node, then reset the GPU or restart the worker"
REPLACE = "take the GPU out of service, and have the host's vendor check it"
_REMEDIES = {
    **dict.fromkeys((46, 48, 61, 62, 63, 94, 95, 109, 110, 119, 120, 136, 140, 143, 154, 171, 172), RESET),
    **dict.fromkeys((64, 74, 79, 121, 144, 145, 146, 147, 148, 149, 150, 155, 156, 158), REPLACE),
}
# A program caused these: a wrong address, an illegal instruction, the end of a process.
_OF_PROGRAMS = (8, 13, 31, 43, 45, 68, 69)
ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
# dcgm_errors.h: the severities of errors for which a GPU must leave its jobs, be reset or be examined.
_SICK = (2, 4, 6)
_LONGEST = 300
_NUMBERS = ("entity_id", "gpu_id", "gpu_ids")


class Xid(NamedTuple):
    """One error: its time as the log has it, the PCI address of its GPU, its number and its text."""

    at: float
    address: str
    number: int
    text: str

    @property
    def remedy(self) -> str | None:
        """Return the remedy of an error of the GPU; None for one that a program caused or the link has repaired."""
        return None if "Nonfatal" in self.text else _REMEDIES.get(self.number)

    @property
    def is_of_program(self) -> bool:
        """Return whether a program causes such an error, and not the GPU."""
        return self.number in _OF_PROGRAMS


def xids(lines: Iterable[str], since: float = 0.0) -> Iterator[Xid]:
    """Yield the errors since a time in lines of the kernel log; a line without a time belongs to the one before."""
    at, gpu = 0.0, ""
    for line in lines:
        seconds = _SECONDS.match(line)
        at = float(seconds[1]) if seconds else at
        match, named = _LINE.search(line), _GPU.search(line)
        gpu = named[1] if named else gpu
        if at >= since and match:
            yield Xid(at, short(match[1]), int(match[2]), match[3].strip())
        elif at >= since and _GONE in line:
            yield Xid(at, short(gpu), GONE, "GPU has fallen off the bus")


def short(address: str) -> str:
    """Return a PCI address as DOMAIN:BUS:DEVICE, with four digits of the domain; the kernel names no function."""
    parts = address.lower().partition(".")[0].split(":")
    domain = parts[0] if len(parts) > 2 else "0"
    return ":".join([f"{int(domain or '0', 16):04x}", *parts[-2:]])


RULE = "gpu_health"
# A GPU that no process uses holds less memory than this, in MiB.
IDLE_MIB = 1024
LONGEST_ERROR = 300
_DRAIN, _REPLACE = RESET, REPLACE
_HARDWARE = ("hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
_MISMATCH = "Driver/library version mismatch"
_NO_REPORT = "nvidia-smi did not write the XML that it usually writes: the health of its GPUs is unknown"
_NO_GPU = "nvidia-smi lists no GPU: check the devices of the worker and its driver"
_NOT_PERSISTENT = "its persistence mode is off: start nvidia-persistenced"
_HOT = "its driver slows it down because it is hot: check the cooling of the host"
_NO_LOG = "this user may not read the kernel log: whether it contains GPU errors (Xid) is unknown"
# An idle GPU saves power with a slower link; a GPU in these states does not.
_BUSY = ("P0", "P1", "P2")

# The severity and text of each finding.
Rows = Iterator["tuple[str, str]"]


def findings(node: str, found: JsonObject, since: float = 0.0, *, idle: bool = True, gdr: str = "") -> list[Finding]:
    """Return the findings on one node.

    ``found`` is the answer of the program that reads the GPUs of a node, ``since`` the time from which errors in the
    log of the kernel count, and ``idle`` says that no process should use the GPUs yet. ``gdr`` is the level of NCCL at
    which a job uses GPUDirect RDMA; empty if it does not.
    """
    if "error" in found:
        return [Finding(WARN, RULE, node, f"its GPUs could not be read: {_message(found['error'])}")]
    if found.get("smi") is None and found.get("failure") is None:
        return []
    rows = [*_of_report(found, idle=idle), *_of_log(found, since), *_of_pools(found), *_of_gpudirect(found, gdr)]
    rows += _of_diagnostic(found)
    return [Finding(severity, RULE, node, text) for severity, text in rows]


def all_findings(
    nodes: Mapping[str, Mapping[str, object]], since: float = 0.0, *, idle: bool = True, gdr: str = ""
) -> list[Finding]:
    """Return the findings on all nodes, and on the differences between them."""
    each = [findings(node, found, since, idle=idle, gdr=gdr) for node, found in sorted(nodes.items())]
    return [*(finding for own in each for finding in own), *driver_differences(nodes)]


def versions(found: JsonObject) -> dict[str, object]:
    """Return the versions of driver and NCCL of a node, its memory pools and its GPUDirect RDMA; None is unknown."""
    report = _report(found)
    return {"driver": report.driver if report else None, **memory_pools.facts(found), **gpudirect.facts(found)}


def driver_differences(nodes: Mapping[str, Mapping[str, object]]) -> list[Finding]:
    """Return a finding if the drivers of nodes differ: NCCL between them may fail or use another protocol."""
    drivers: dict[str, list[str]] = {}
    for node, found in nodes.items():
        report = _report(found)
        if report and report.driver:
            drivers.setdefault(report.driver, []).append(node)
    if len(drivers) < 2:
        return []
    words = " and ".join(f"{version} on {listed(there)}" for version, there in drivers.items())
    return [
        Finding(WARN, RULE, listed(nodes), f"their NVIDIA drivers differ, {words}: install one stack on all of them")
    ]


def _report(found: JsonObject) -> gpu_report.GpuReport | None:
    try:
        return gpu_report.report(str(found.get("smi") or ""))
    except gpu_report.ReportError:
        return None


def _of_report(found: JsonObject, *, idle: bool) -> Rows:
    if found.get("smi") is None:
        yield STOP, _failed(_message(found["failure"]))
        return
    report = _report(found)
    if report is None:
        yield WARN, _NO_REPORT
        return
    if not report.gpus:
        yield STOP, _NO_GPU
    for gpu in report.gpus:
        for severity, text in _of_gpu(gpu, idle=idle):
            yield severity, f"GPU {gpu.address} ({gpu.name}): {text}"


def _failed(message: str) -> str:
    if _MISMATCH in message:
        return f"nvidia-smi fails ({message}): the driver was updated and not loaded again; restart the worker"
    return f"nvidia-smi fails ({message}): {_DRAIN}"


def _of_gpu(gpu: Gpu, *, idle: bool) -> Rows:
    now, ever = gpu.uncorrected
    if gpu.recovery:
        yield STOP, f"its driver asks for the recovery {gpu.recovery!r}: {_DRAIN}"
    for text in gpu.failed:
        yield STOP, f"{text}: {_REPLACE}"
    for text in gpu.waiting:
        yield STOP, f"{text}: {_DRAIN}"
    if now:
        yield STOP, f"{now} memory errors were not corrected since its driver was loaded: {_DRAIN}"
    elif ever:
        yield NOTE, f"{ever} memory errors were not corrected in its lifetime"
    yield from _clocks_and_link(gpu)
    if gpu.is_persistent is False:
        yield NOTE, _NOT_PERSISTENT
    if idle:
        yield from _held_memory(gpu)


def _clocks_and_link(gpu: Gpu) -> Rows:
    hardware = [reason for reason in gpu.slowed if reason in _HARDWARE]
    if hardware:
        words = ", ".join(hardware)
        yield STOP, f"its hardware slows it down ({words}): check the cooling and the power supply of the host"
    if "sw_thermal_slowdown" in gpu.slowed:
        yield WARN, _HOT
    width, widest = gpu.width
    if width and widest and width < widest:
        yield WARN, f"it has {width} of {widest} PCIe lanes: check its slot, unless this is by design"
    generation, newest = gpu.generation
    if gpu.state in _BUSY and generation and newest and generation < newest:
        yield (WARN, f"its PCIe link has generation {generation} of {newest}: check its slot, unless this is by design")


def _held_memory(gpu: Gpu) -> Rows:
    used, total = gpu.memory
    if gpu.processes:
        words = listed(f"{printable(process.name) or 'a process'} ({process.pid})" for process in gpu.processes)
        yield STOP, f"other processes hold its memory: {words}; end them, or train on another node"
    elif used and total and used >= IDLE_MIB:
        yield WARN, f"{used} of {total} MiB of its memory are in use by no process that nvidia-smi lists"


def _of_log(found: JsonObject, since: float) -> Rows:
    lines: Sequence[str] | None = found.get("log")
    if lines is None:
        yield NOTE, _NO_LOG
        return
    for number, events in _by_number(xids(map(str, lines), since)).items():
        # The link of one GPU may have repaired itself after the same error had ended that of another one.
        last = next((event for event in reversed(events) if event.remedy), events[-1])
        where = listed(dict.fromkeys(event.address for event in events))
        words = f"Xid {number} at GPU {where} in the log of the kernel, {len(events)} times ({printable(last.text)})"
        if last.remedy:
            yield STOP, f"{words}: {last.remedy}"
        elif last.is_of_program:
            yield NOTE, f"{words}: a program caused it"
        else:
            yield WARN, f"{words}: see https://docs.nvidia.com/deploy/xid-errors/"


def _by_number(events: Iterator[Xid]) -> dict[int, list[Xid]]:
    groups: dict[int, list[Xid]] = {}
    for event in events:
        groups.setdefault(event.number, []).append(event)
    return groups


def _of_gpudirect(found: JsonObject, gdr: str) -> Rows:
    sentence = gpudirect.misfit(found) if gdr in (gpudirect.AUTO, *gpudirect.LEVELS) else ""
    if sentence:
        yield NOTE if gdr == gpudirect.AUTO or gpudirect.is_possible(found) is None else STOP, sentence


def _of_diagnostic(found: JsonObject) -> Rows:
    """Yield the failed tests of DCGM's short diagnostic, which runs on complete GPUs if it is installed."""
    text = found.get("diagnostic")
    if text is None:
        return
    tests = failed_tests(str(text))
    if tests is None:
        yield NOTE, f"DCGM's diagnostic did not run ({_message(text) or 'no output'}): check the service nvidia-dcgm"
    for test in tests or []:
        words = f"GPU {test.gpu} of DCGM fails the test {test.name} ({test.text})"
        yield (STOP, f"{words}: {_DRAIN}") if test.is_sick else (WARN, f"{words}: see dcgmi diag -r 1")


def _of_pools(found: JsonObject) -> Rows:
    for sentence in memory_pools.misfits(found):
        yield STOP, sentence


def _message(text: object) -> str:
    return printable(" ".join(str(text).split())[:LONGEST_ERROR])


class FailedTest(NamedTuple):
    """A test that a GPU did not pass; ``gpu`` is its number for DCGM, and ``is_sick`` says that no job may use it."""

    gpu: str
    name: str
    text: str
    is_sick: bool


def failed_tests(text: str) -> list[FailedTest] | None:
    """Return the failed tests of all GPUs; None if the text is not the result of a diagnostic."""
    try:
        found = parse_json(text[text.find("{") :])
    except (ValueError, RecursionError):
        return None
    roots = (mapping(mapping(found).get(name)) for name in ROOTS)
    root = next(filter(None, roots), {})
    if not root:
        return None
    return list(_failed_in(root))


def _failed_in(root: Mapping[str, object]) -> Iterator[FailedTest]:
    for category in objects(root.get("test_categories")):
        for test in objects(category.get("tests")):
            for result in objects(test.get("results")):
                if str(result.get("status")).lower() == "fail":
                    yield _of_result(str(test.get("name")), result)


def _of_result(name: str, result: JsonObject) -> FailedTest:
    # DCGM 3 has texts in this list.
    given = result.get("warnings")
    warnings = [mapping(each) or {"warning": each} for each in given] if isinstance(given, list) else []
    words = "; ".join(" ".join(str(each.get("warning")).split()) for each in warnings) or "without a reason"
    number = next((result[key] for key in _NUMBERS if result.get(key) is not None), "unknown")
    is_sick = any(each.get("error_severity") in _SICK for each in warnings)
    return FailedTest(printable(str(number)), printable(name), printable(words[:_LONGEST]), is_sick)
