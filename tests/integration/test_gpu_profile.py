"""A fresh host and one in passthrough become vGPU hosts by one profile: with one boot, and with two."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.booting import boot

DRIVER, VERSION = "NVD-AIE_ESXi_8.0.0_Driver", "550.90.05-1OEM.800.1.0.20613240"
FRESH, PASSED = "esx01.lab", "esx02.lab"
CENTRE = f"""
depots:
  - paths: [/vmfs/volumes/shared/X.zip]
    vibs: [{{name: {DRIVER}, version: {VERSION}, vendor: NVIDIA, acceptance_level: VMwareAccepted}}]
clusters:
  - name: gpu
    hosts:
      - {{name: {FRESH}, hardware: t4_cx5}}
      - {{name: {PASSED}, hardware: t4_cx5, passthrough: [all]}}
"""
PROFILE: dict[str, Any] = {
    "passthrough": {"enabled": False},
    "vibs": [{"name": DRIVER, "version": VERSION, "source": "/vmfs/volumes/shared/X.zip"}],
    "graphics": {"type": "shared_direct"},
}


def apply_and_boot(vcenter: Simulator, ansible: Ansible, host: str) -> dict[str, Any]:
    """Plan a host, apply the profile, boot it; the plan."""
    planned = ansible.module("esxi_profile", check=True, hosts=[host], profile=PROFILE)
    assert planned.rc == 0, planned.out
    vcenter.set_host(host, maintenance=True)
    applied = ansible.module("esxi_profile", hosts=[host], profile=PROFILE)
    assert applied.rc == 0, applied.out
    boot(vcenter, host)
    return planned.host(host)


@pytest.mark.datacentre(text=CENTRE)
def test_plans_only_the_needed_boots(vcenter: Simulator, ansible: Ansible) -> None:
    assert apply_and_boot(vcenter, ansible, FRESH)["reboots"] == 1
    first = apply_and_boot(vcenter, ansible, PASSED)
    assert first["reboots"] == 2
    assert "after the boot that ends the passthrough" in " ".join(first["why"])
    assert apply_and_boot(vcenter, ansible, PASSED)["reboots"] == 1
    vcenter.clear()
    done = ansible.module("esxi_profile", cluster="gpu", profile=PROFILE)
    assert (done.changed, done.result["needs"], vcenter.writes()) == (False, [], [])
    states = [entry["state"] for entry in done.result["hosts"]]
    assert {state["graphics: active_types"]["0000:3b:00.0"] for state in states} == {"shared_direct"}
