"""One case for each subject of a host: a fake host, a change, and what the contract of all subjects expects of it.

The integration tests run the same cases on hosts of the simulated data centre.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.esxi import FakeEsxcli, FakeHost
from tests.fakes.gpus import FakeGpus, Gpu
from tests.fakes.vibs import DEPOT, DRIVER, NEW
from tests.unit.plugins.module_utils.hosts import (
    test_advanced_option,
    test_kernel_module,
    test_pvrdma,
    test_roce,
    test_vib,
)


@dataclass(frozen=True)
class Case:
    """A change of one subject.

    ``requested`` is the change in the words of a profile; ``writes`` are its calls on each host, the settings apart;
    ``needs`` remain until the host boots. ``unknown`` asks for a name that no host has, which ``refusal`` names.
    """

    host: Callable[[str], FakeHost]
    requested: Any
    writes: tuple[str, ...]
    needs: tuple[str, ...]
    unknown: Any
    refusal: str


def _with_gpu(name: str) -> FakeHost:
    host = FakeHost(name)
    FakeGpus(host, Gpu(configured="shared"))
    return host


def _with_vibs(name: str) -> FakeHost:
    host, _vibs = test_vib.host_with(name=name)
    return host


def _with_modules(name: str) -> FakeHost:
    host = test_kernel_module.host(name)
    FakeEsxcli(host, {test_kernel_module.LIST: test_kernel_module.NAMES})
    return host


def _with_roce(name: str) -> FakeHost:
    host = test_roce.host(name)
    host.esxcli_.answers |= {
        "rdma device stats get": [],
        "network nic stats get": [],
        test_kernel_module.LIST: test_kernel_module.NAMES,
    }
    return host


REBOOT = ("reboot",)
GRAPHICS = {"type": "shared_direct", "policy": None, "vgpu_mode": None, "restart_xorg": False}
ROCE = {"priority": 3, "trust": "dscp", "dscp": None, "state": "present", "acknowledge_shared_nic": False}
PVRDMA = {"vmk": "vmk1", "state": "present", "close_firewall": True}
MODULE = {"name": "nmlx5_core", "options": {"pfctx": "0x08", "pfcrx": 8}, "exact": False}
VIB = {"name": DRIVER, "version": NEW, "source": DEPOT, "state": "present", "install_timeout": 1800}
CASES = {
    "advanced_options": Case(
        test_advanced_option.host,
        {test_advanced_option.FAILURES: "3", test_advanced_option.MOB: True, test_advanced_option.THREADS: "0"},
        ("UpdateOptions",),
        REBOOT,
        {"Security.AccountLockFailure": 3},
        "the host has no such option",
    ),
    "graphics": Case(_with_gpu, GRAPHICS, ("UpdateGraphicsConfig",), REBOOT, None, ""),
    "kernel_modules": Case(
        _with_modules,
        [MODULE],
        ("UpdateModuleOptionString",),
        REBOOT,
        [{**MODULE, "name": "nosuch"}],
        "the host has no such module",
    ),
    "passthrough": Case(
        _with_gpu,
        {"devices": ["gpus"], "enabled": True},
        ("UpdatePassthruConfig",),
        REBOOT,
        {"devices": ["0000:99:00.0"], "enabled": True},
        "it has no PCI device 0000:99:00.0",
    ),
    "pvrdma": Case(
        test_pvrdma.host,
        PVRDMA,
        ("EnableRuleset", "UpdateOptions"),
        (),
        {**PVRDMA, "vmk": "vmk7"},
        "there is no vmkernel adapter vmk7",
    ),
    "roce": Case(_with_roce, ROCE, ("UpdateModuleOptionString", "UpdateModuleOptionString"), REBOOT, None, ""),
    "vibs": Case(
        _with_vibs,
        [VIB],
        ("software vib install",),
        REBOOT,
        [{**VIB, "source": "/vmfs/volumes/shared/none.zip"}],
        "none.zip",
    ),
}
