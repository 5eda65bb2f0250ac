"""The unified memory of a worker's vGPUs: its settings, the plan with its consequence, and its refusal."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.plan import POWER_OFF
from plugins.module_utils.workers.unified_memory import CONSEQUENCE
from plugins.module_utils.workers.worker_spec import Gpu
from tests.fakes import hardware
from tests.fakes.worker_cluster import FakeWorkerCluster, machine

from .test_worker import T4, keys, ours, planned, settings, worker

FIRST, SECOND = "pciPassthru0.cfg.enable_uvm", "pciPassthru1.cfg.enable_uvm"
FLAG = {"pciPassthru0__cfg__enable_uvm": "1"}
TWO = T4 * 2


def written(cluster: FakeWorkerCluster, gpus: Any, **given: Any) -> dict[str, str]:
    """Return the settings of unified memory in the ConfigSpec of the plan."""
    one = worker(cluster, None, gpus, **given)
    spec = one._spec(cluster.machines["w1"], one.plan(one.read()).after)
    return {option.key: option.value for option in spec.extraConfig if "uvm" in option.key} if spec else {}


def test_enables_the_setting_and_warns_about_lost_vmotion() -> None:
    cluster = ours(hardware.vgpu(), hardware.vgpu(), **settings())

    plan = planned(cluster, None, TWO, vgpu_unified_memory=True, mmio_gb=32)

    assert "vgpu_unified_memory" in keys(plan)
    assert CONSEQUENCE in plan.warnings
    assert plan.needs == {POWER_OFF}
    assert written(cluster, TWO, vgpu_unified_memory=True) == {FIRST: "1", SECOND: "1"}


def test_warns_about_an_unchanged_worker_with_the_setting() -> None:
    plan = planned(ours(**settings(**FLAG)), vgpu_unified_memory=True)

    assert keys(plan) == set()
    assert CONSEQUENCE in plan.warnings


def test_detects_a_vgpu_that_lacks_the_setting() -> None:
    cluster = ours(hardware.vgpu(), hardware.vgpu(), **settings(**FLAG))

    plan = planned(cluster, None, TWO, vgpu_unified_memory=True, mmio_gb=32)

    assert keys(plan) == {"vgpu_unified_memory"}


def test_added_vgpu_gets_the_setting() -> None:
    assert written(ours(**settings(**FLAG)), TWO, vgpu_unified_memory=True)[SECOND] == "1"


def test_removes_the_setting_when_the_option_is_false() -> None:
    cluster = ours(**settings(**FLAG))

    plan = planned(cluster, vgpu_unified_memory=False)

    assert keys(plan) == {"vgpu_unified_memory"}
    assert CONSEQUENCE not in plan.warnings
    assert written(cluster, T4, vgpu_unified_memory=False) == {FIRST: ""}


def test_keeps_the_setting_without_the_option() -> None:
    assert keys(planned(ours(**settings(**FLAG)))) == set()
    assert written(ours(**settings(**FLAG)), T4) == {}


def test_new_worker_has_the_setting_only_if_requested() -> None:
    cluster = FakeWorkerCluster(machine("golden", on=False))

    assert planned(cluster).after["vgpu_unified_memory"] is None
    assert planned(cluster, vgpu_unified_memory=True).after["vgpu_unified_memory"] is True


def test_a_worker_without_a_vgpu_is_refused() -> None:
    gpus = (Gpu(device=hardware.request("10de:20f1"), memory_gb=40),)

    with pytest.raises(Refused, match="unified memory is a setting of vGPUs, and the worker has none"):
        planned(FakeWorkerCluster(machine("golden", on=False)), gpus=gpus, vgpu_unified_memory=True)
