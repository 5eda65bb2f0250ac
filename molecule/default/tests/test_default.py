"""The data centre after two runs of the playbooks, read from the server with another client than the modules'."""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv4Interface
from typing import Any

import pytest
import yaml

from lab.running import Lab
from lab.simulator import ROOT
from tests.govc import govc, objects, vibs

LAB = Lab("molecule-default")
CENTRE = LAB.control
INVENTORY: dict[str, Any] = yaml.safe_load((ROOT / "inventories" / "mixed" / "group_vars" / "clusters.yml").read_text())
PROFILE = INVENTORY["esxi_host_profile"]
WORKERS = {worker["name"]: worker for worker in INVENTORY["worker_vms"]}
ADDRESSES = INVENTORY["fabric_adapters"][0]["addresses"]
MODULES = {"nmlx5_core": "pfctx=0x08 pfcrx=0x08 trust_state=2", "nmlx5_rdma": "dscp_force=26"}


@pytest.fixture(params=ADDRESSES)
def host(request: pytest.FixtureRequest) -> str:
    """Return the name of every host in turn."""
    return str(request.param)


@pytest.fixture(params=WORKERS)
def worker(request: pytest.FixtureRequest) -> str:
    """Return the name of every worker in turn."""
    return str(request.param)


def listed(value: Any) -> list[dict[str, Any]]:
    """Return the entries of an array of a property."""
    return list(value["_value"])


def test_port_groups_have_their_vlan() -> None:
    for group in INVENTORY["fabric_port_groups"]:
        (change,) = govc(CENTRE, "collect", "-json", f"network/{group['name']}", "config.defaultPortConfig")
        assert change["val"]["vlan"]["vlanId"] == group["vlan"]


def test_host_has_an_address_in_the_rdma_network(host: str) -> None:
    adapters = listed(objects(CENTRE, "h", "config.network.vnic")[host]["config.network.vnic"])
    assert {one["device"]: one["spec"]["ip"]["ipAddress"] for one in adapters}["vmk1"] == ADDRESSES[host]


def test_a_host_shares_its_gpus(host: str) -> None:
    graphics = objects(CENTRE, "h", "config.graphicsConfig")[host]["config.graphicsConfig"]
    assert graphics["hostDefaultGraphicsType"] == "sharedDirect"
    assert graphics["sharedPassthruAssignmentPolicy"] == PROFILE["graphics"]["policy"]
    assert {one["graphicsType"] for one in graphics["deviceType"]} == {"sharedDirect"}


def test_a_host_runs_the_vgpu_driver(host: str) -> None:
    (vib,) = PROFILE["vibs"]
    assert vibs(CENTRE, host)[vib["name"]].startswith(vib["version"])


def test_a_host_names_the_adapter_of_pvrdma(host: str) -> None:
    (option,) = govc(CENTRE, "host.option.ls", "-json", "-host", host, "Net.PVRDMAVmknic")
    assert option["value"] == PROFILE["pvrdma"]["vmk"]


def test_lossless_roce_is_in_force_since_the_boot(host: str) -> None:
    state = CENTRE.ask("GET", f"/hosts/{host}")
    assert {name: state["modules_active"][name] for name in MODULES} == MODULES
    assert not state["maintenance"] and not state["reboot_required"]


def test_a_worker_runs_with_its_address(worker: str) -> None:
    found = objects(CENTRE, "m", "runtime.powerState", "guest.ipAddress")[worker]
    address = str(IPv4Interface(WORKERS[worker]["guest"]["address"]).ip)
    assert (found["runtime.powerState"], found["guest.ipAddress"]) == ("poweredOn", address)


def test_worker_has_its_vgpus_and_rdma_adapter(worker: str) -> None:
    devices = listed(objects(CENTRE, "m", "config.hardware.device")[worker]["config.hardware.device"])
    profiles = [one["backing"]["vgpu"] for one in devices if one.get("backing", {}).get("vgpu")]
    desired = [gpu["profile"] for gpu in WORKERS[worker]["gpus"] for _number in range(gpu.get("count", 1))]
    protocols = [one["deviceProtocol"] for one in devices if "deviceProtocol" in one]
    assert (profiles, protocols) == (desired, [INVENTORY["worker_defaults"]["rdma_nics"][0]["protocol"]])


def test_two_small_workers_share_a_gpu() -> None:
    gpus = CENTRE.ask("GET", "/hosts/esx02.example.com")["gpus"]
    assert sorted(len(gpu["vgpus"]) for gpu in gpus) == [0, 2]


def test_the_second_run_repeated_no_write() -> None:
    counts = Counter((write["method"], write["name"]) for write in CENTRE.writes())
    methods = Counter(method for method, _name in counts.elements())
    assert (methods["CloneVM_Task"], methods["CreateDVS_Task"]) == (len(WORKERS), 1)
    once = ("RebootHost_Task", "EnterMaintenanceMode_Task", "UpdateGraphicsConfig", "AddVirtualNic")
    assert {counts[method, host] for method in once for host in ADDRESSES} == {1}
    assert {counts["PowerOnVM_Task", name] for name in WORKERS} == {1}


def test_the_state_before_the_change_is_kept() -> None:
    assert len(list((LAB.folder / "evidence").glob("gpu-mixed-*.json"))) == 1
