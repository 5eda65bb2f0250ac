"""esxi_passthrough against the simulated data centre."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

GPU = "0000:3b:00.0"
ON = {"cluster": "gpu", "enabled": True}


def test_on_and_off_each_take_a_boot(vcenter: Simulator, ansible: Ansible) -> None:
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
def test_the_mode_of_a_gpu_is_that_of_the_host_where_it_reports_one(
    vcenter: Simulator, ansible: Ansible, mode: dict[str, object] | None
) -> None:
    (gpu,) = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["gpu"]).host("esx01.lab")["gpus"]
    assert gpu["direct_path"] == mode
    if mode:
        ansible.module("esxi_passthrough", **ON)
        boot(vcenter, "esx01.lab")
        (gpu,) = ansible.module("esxi_info", hosts=["esx01.lab"], gather=["gpu"]).host("esx01.lab")["gpus"]
        assert (gpu["passthrough"], gpu["direct_path"]["mode"]) == ("on", "directPath")
