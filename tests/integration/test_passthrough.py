"""esxi_passthrough against the simulated data centre."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

GPU = "0000:3b:00.0"
ON = {"cluster": "gpu", "enabled": True}


def test_enabling_and_disabling_take_one_boot_each(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("esxi_passthrough", **ON).result["needs"] == ["reboot"]
    boot(vcenter, "esx01.lab")
    booted = ansible.module("esxi_passthrough", **ON).host("esx01.lab")
    assert (booted["needs"], booted["state"]["active"]) == ([], {GPU: True})
    off = ansible.module("esxi_passthrough", hosts=["esx01.lab"], enabled=False).host("esx01.lab")
    assert (off["state"]["enabled"], off["state"]["active"], off["needs"]) == ({GPU: False}, {GPU: True}, ["reboot"])


MODES = ["host", "directPath"]


@pytest.mark.parametrize(
    ("release", "mode"), [("9.0", None), ("9.1", {"mode": "host", "modes": MODES})], indirect=["release"]
)
def test_reports_the_gpu_mode_that_its_host_reports(
    vcenter: Simulator, ansible: Ansible, mode: dict[str, object] | None
) -> None:
    (gpu,) = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["gpu"]).host("esx01.lab")["gpus"]
    assert gpu["direct_path"] == mode
    if mode:
        ansible.module("esxi_passthrough", **ON)
        boot(vcenter, "esx01.lab")
        (gpu,) = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["gpu"]).host("esx01.lab")["gpus"]
        assert (gpu["passthrough"], gpu["direct_path"]["mode"]) == ("on", "directPath")
