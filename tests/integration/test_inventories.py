# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The inventories to copy, run as they are against data centres that fit them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, Outcome

INVENTORIES = {"t4_vgpu": "hpc", "a100_passthrough": "hpc-a100"}
WAITS_FOR_A_BOOT = {"t4_vgpu": "Host_Driver", "a100_passthrough": "enters passthrough"}


@pytest.fixture(params=INVENTORIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def vcenter(start: Callable[..., Simulator], name: str) -> Simulator:
    return start(f"{name}.yml")


def run(ansible: Ansible, playbook: str, name: str, *options: str, **variables: Any) -> Outcome:
    folder = str(ansible.folder / "evidence")
    given = json.dumps({"esxi_host_evidence_dir": folder, "evidence_dir": folder, **variables})
    return ansible.playbook(f"playbooks/{playbook}.yml", "-i", f"inventories/{name}", *options, "-e", given)


def hosts(ansible: Ansible, name: str) -> list[dict[str, Any]]:
    """What the hosts are, but for boots and traffic."""
    found = ansible.module("esxi_info", cluster=INVENTORIES[name], gather=["gpu", "vib", "driver", "pvrdma"])
    assert found.rc == 0, found.msg
    return [{key: value for key, value in host.items() if key != "boot_time"} for host in found.result["hosts"]]


def ready(name: str, host: dict[str, Any]) -> bool:
    """Whether a host is what its inventory promises."""
    (gpu,) = host["gpus"]
    roce = host["kernel_modules"]["nmlx5_core"]["active"]
    lossless = roce.get("pfctx") == roce.get("pfcrx") == "0x08"
    tagged = host["pvrdma"] == {"vmk": "vmk1", "firewall_open": True, "firewall_allowed": []}
    if name == "a100_passthrough":
        return gpu["passthrough"] == "on" and lossless and tagged
    shared = gpu["active_type"] == "shared_direct" and "grid_t4-16c" in host["graphics"]["profiles"]
    return shared and lossless and tagged


def test_the_plan_is_one_reboot_for_each_host_and_sends_no_write(
    vcenter: Simulator, ansible: Ansible, name: str
) -> None:
    looked = run(ansible, "preflight", name)
    assert looked.rc == 0, looked.out
    planned = run(ansible, "hosts", name, "--check")
    assert planned.rc == 0, planned.out
    told = " ".join(planned.out.split())
    assert "changes out of service, 1 reboot" in told and WAITS_FOR_A_BOOT[name] in told
    assert vcenter.writes() == []


def test_one_host_gets_what_the_inventory_promises(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    first, *_others = vcenter.ask("GET", "/hosts")
    assert run(ansible, "hosts", name, esxi_host_hosts=[first]).rc == 0
    assert [ready(name, host) for host in hosts(ansible, name)] == [True, False, False, False]
    assert [write["name"] for write in vcenter.writes() if write["method"] == "RebootHost_Task"] == [first]


@pytest.mark.slow
def test_the_whole_cluster_is_prepared_and_taken_back(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    before = hosts(ansible, name)
    assert run(ansible, "hosts", name).rc == 0
    assert [ready(name, host) for host in hosts(ansible, name)] == [True] * 4
    vcenter.clear()
    assert run(ansible, "hosts", name).rc == 0
    assert vcenter.writes() == []
    (file,) = (ansible.folder / "evidence").glob("*.json")
    assert run(ansible, "rollback", name, rollback_evidence=str(file)).rc == 0
    assert hosts(ansible, name) == before
