"""The inventories to copy, run as they are against data centres that fit them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from lab import world
from lab.simulator import DATACENTRES, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Outcome, Start

INVENTORIES = {"t4_vgpu": "hpc", "a100_passthrough": "hpc-a100", "mixed": "gpu-mixed"}
WAITS_FOR_A_BOOT = {
    "t4_vgpu": "AIE_ESXi_8.0.0_Driver",
    "a100_passthrough": "enters passthrough",
    "mixed": "AIE_ESXi_8.0.0_Driver",
}
DRIVERS = {
    "t4_vgpu": {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "535.129.03-1OEM.800.1.0.20613240"},
    "mixed": {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "580.65.05-1OEM.800.1.0.20613240"},
}
HOSTS = ("esx01.example.com", "esx02.example.com")
POLICIES = {"t4_vgpu": "performance", "mixed": "consolidation"}
# By inventory: each worker with its GPUs, on its own host but where its inventory says otherwise.
WORKERS = {
    "t4_vgpu": {f"sc2kubw0{number}": "grid_t4-16c" for number in range(1, 5)},
    "a100_passthrough": {f"a100-0{number}": "10de:20f1" for number in range(1, 5)},
    "mixed": {"half01": "grid_t4-8c", "half02": "grid_t4-8c", "pair01": "grid_t4-16c, grid_t4-16c"},
}


@pytest.fixture(params=INVENTORIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def quick(*names: str) -> pytest.MarkDecorator:
    """Run a test with these inventories, and with the slow tests on the others."""
    others = [pytest.param(one, marks=pytest.mark.slow) for one in INVENTORIES if one not in names]
    return pytest.mark.parametrize("name", [*names, *others], indirect=True)


@pytest.fixture
def vcenter(start: Start, name: str) -> Simulator:
    return start(f"{name}.yml")


@pytest.fixture
def prepared(start: Start, name: str) -> Simulator:
    """The same with hosts that share their GPUs, or give them away, already."""
    described = yaml.safe_load((DATACENTRES / f"{name}.yml").read_text())
    ready: dict[str, Any] = {"passthrough": ["all"]}
    if name in DRIVERS:
        ready = {
            "graphics": {"default": "sharedDirect", "policy": POLICIES[name]},
            "vibs": [{**DRIVERS[name], "vendor": "NVIDIA"}],
        }
    described["host_defaults"].update(ready)
    return start(text=yaml.safe_dump(described))


def run(ansible: Ansible, playbook: str, name: str, *options: str, **variables: Any) -> Outcome:
    ansible.environment["DML_EVIDENCE_DIR"] = str(ansible.folder / "evidence")
    given = json.dumps({"worker_address_timeout": 60, **variables})
    return ansible.playbook(f"playbooks/{playbook}.yml", "-i", f"inventories/{name}", *options, "-e", given)


def hosts(ansible: Ansible, name: str) -> list[dict[str, Any]]:
    """Return what the hosts are, but for boots and traffic."""
    found = ansible.module("esxi_info", cluster=INVENTORIES[name], gather=["gpu", "vib", "driver", "pvrdma"])
    assert found.rc == 0, found.msg
    return [{key: value for key, value in host.items() if key != "boot_time"} for host in found.result["hosts"]]


def ready(name: str, host: dict[str, Any]) -> bool:
    """Return whether a host is what its inventory promises."""
    roce = host["kernel_modules"]["nmlx5_core"]["active"]
    lossless = roce.get("pfctx") == roce.get("pfcrx") == "0x08"
    tagged = host["pvrdma"] == {"vmk": "vmk1", "firewall_open": True, "firewall_allowed": []}
    if name == "a100_passthrough":
        return all(gpu["passthrough"] == "on" for gpu in host["gpus"]) and lossless and tagged
    shared = all(gpu["active_type"] == "shared_direct" for gpu in host["gpus"])
    return shared and "grid_t4-16c" in host["graphics"]["profiles"] and lossless and tagged


def has_its_workers(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    """The workers run with what they want, those that share a GPU on one GPU."""
    found = ansible.module("worker_vm_info", cluster=INVENTORIES[name]).result["workers"]
    assert {one["name"]: ", ".join(one["vm_gpus"]) for one in found} == WORKERS[name]
    assert {(one["vm_power"], one["vm_rdma_protocol"], one["vm_built"]) for one in found} == {("on", "rocev2", True)}
    if name != "mixed":
        assert len({one["vm_host"] for one in found}) == len(found)
        return
    held = {host: [len(gpu["vgpus"]) for gpu in vcenter.ask("GET", f"/hosts/{host}")["gpus"]] for host in HOSTS}
    assert held == {"esx01.example.com": [1, 1], "esx02.example.com": [2, 0]}


@quick("a100_passthrough")
def test_plans_one_reboot_per_bare_host_without_writing(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    planned = run(ansible, "site", name, "--check", "--diff")
    assert planned.rc == 0, planned.out
    message = " ".join(planned.out.split())
    assert "changes out of service, 1 reboot" in message and WAITS_FOR_A_BOOT[name] in message
    for worker in WORKERS[name]:
        assert f"{worker}: changes" in message
    assert vcenter.writes() == []
    plans = vcenter.callers()["dml.vsphere (esxi_profile)"]
    assert plans["SessionManager.Login"] == 1, "preflight and hosts share the plan of the profile"


@quick("mixed")
def test_limited_hosts_run_prepares_only_the_first_host(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    first, *others = vcenter.ask("GET", "/hosts")
    assert run(ansible, "fabric", name).rc == 0
    assert run(ansible, "hosts", name, esxi_host_hosts=[first]).rc == 0
    assert [ready(name, host) for host in hosts(ansible, name)] == [True, *(False for _other in others)]
    assert [write["name"] for write in vcenter.writes() if write["method"] == "RebootHost_Task"] == [first]


@quick("mixed")
def test_builds_network_and_workers_only_once(prepared: Simulator, ansible_for: AnsibleFor, name: str) -> None:
    ansible = ansible_for(prepared)
    for playbook in ("fabric", "workers"):
        built = run(ansible, playbook, name)
        assert built.rc == 0, built.out
    has_its_workers(prepared, ansible, name)
    prepared.clear()
    for playbook in ("fabric", "workers"):
        again = run(ansible, playbook, name)
        assert again.rc == 0 and "changed=0" in again.out, again.out
    assert prepared.writes() == []


@pytest.mark.slow
def test_bare_hosts_run_workers_and_become_bare_again(vcenter: Simulator, ansible: Ansible, name: str) -> None:
    before = world.state(vcenter)
    built = run(ansible, "site", name)
    assert built.rc == 0, built.out
    assert all(ready(name, host) for host in hosts(ansible, name))
    has_its_workers(vcenter, ansible, name)
    vcenter.clear()
    again = run(ansible, "site", name)
    assert again.rc == 0 and vcenter.writes() == [], again.out
    (file,) = (ansible.folder / "evidence").glob("*Z.json")
    removed = {"confirm": True, "unreachable_is_idle": True, "rollback_evidence": str(file)}
    gone = run(ansible, "teardown", name, **removed)
    assert gone.rc == 0, gone.out
    assert world.differences(before, world.state(vcenter)) == {}
