"""The module esxi_graphics as Ansible calls it."""

from __future__ import annotations

from tests.fakes.calling import call
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import T4, FakeGpus, Gpu


def test_sets_graphics_and_shows_the_mig_steps() -> None:
    host = FakeHost()
    gpus = FakeGpus(host, Gpu())
    done = call("esxi_graphics", [host], type="shared_direct", policy="consolidation", vgpu_mode="mixed_size")
    assert done["changed"], done
    assert (gpus.default, gpus.policy) == ("sharedDirect", "consolidation")
    assert (gpus.gpus[T4].configured, gpus.gpus[T4].mode) == ("sharedDirect", "mixedSize")
    assert any("nvidia-smi" in step for step in done["mig_procedure"])


def test_refuses_an_empty_request() -> None:
    refused = call("esxi_graphics", [FakeHost()], restart_xorg=True)
    assert "one of the following is required: type, policy, vgpu_mode" in refused["msg"]
