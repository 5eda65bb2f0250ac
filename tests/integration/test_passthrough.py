"""esxi_passthrough against the simulated data centre."""

from __future__ import annotations

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

ON = {"cluster": "gpu", "enabled": True}


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
