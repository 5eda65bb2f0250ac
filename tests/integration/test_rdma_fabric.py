"""rdma_fabric and the RDMA network of cluster_info against simulated hosts without an RDMA switch."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.fabrics import addresses, connect, datacentre, desired, forget, with_switch

WORKER = """
foreign: [worker01]
vms:
  - {name: worker01, host: esx01.lab, powered_on: true, pvrdma: rdma-vm}
"""
HOSTS = ("esx01.lab", "esx02.lab", "esx03.lab")


pytestmark = pytest.mark.datacentre(text=datacentre())


def info(ansible: Ansible, **options: Any) -> dict[str, Any]:
    outcome = ansible.module("cluster_info", **{"cluster": "gpu", "switch": "rdma", **options})
    assert outcome.rc == 0, outcome.msg
    return {name: outcome.result[name] for name in ("fabric", "pings", "ping_error")}


def test_builds_in_few_calls_and_removes_without_trace(vcenter: Simulator, ansible: Ansible) -> None:
    before = info(ansible)
    planned = ansible.module("rdma_fabric", check=True, **desired())
    assert planned.rc == 0, planned.msg
    assert planned.changed and vcenter.writes() == []
    built = ansible.module("rdma_fabric", **desired())
    assert built.rc == 0, built.msg
    assert built.result["diff"] == planned.result["diff"] and built.result["fabric"] == planned.result["fabric"]
    methods = [write["method"] for write in vcenter.writes() if write["method"] != "AddCustomFieldDef"]
    assert methods[:2] == ["CreateDVS_Task", "AddDVPortgroup_Task"]
    assert sorted(methods[2:]) == ["AddVirtualNic"] * 3 + ["ReconfigureDvs_Task"] + ["SetField"] * 3
    vcenter.clear()
    assert not ansible.module("rdma_fabric", **desired()).changed and vcenter.writes() == []
    assert ansible.module("rdma_fabric", check=True, cluster="gpu", state="absent").changed and vcenter.writes() == []
    gone = ansible.module("rdma_fabric", cluster="gpu", state="absent")
    assert gone.changed, gone.msg
    vcenter.clear()
    assert not ansible.module("rdma_fabric", cluster="gpu", state="absent").changed and vcenter.writes() == []
    assert info(ansible) == before and before["fabric"]["switch"] is None


def test_number_of_calls_does_not_grow_with_hosts(start: Start, ansible_for: AnsibleFor) -> None:
    calls = []
    for count in (2, 6):
        vcenter = start(text=datacentre(count=count))
        hosts = [f"esx{number:02d}.lab" for number in range(1, count + 1)]
        assert ansible_for(vcenter).module("rdma_fabric", check=True, **desired(hosts)).changed
        calls.append(sum(vcenter.calls().values()))
    assert calls[0] == calls[1] <= 25


def test_hosts_and_adapters_show_the_requested_settings(ansible: Ansible) -> None:
    ansible.module("rdma_fabric", **desired())
    (host,) = ansible.module("esxi_info", hosts=["esx02.lab"], gather=["network"]).result["hosts"]
    (switch,) = [one for one in host["switches"] if one["name"] == "rdma"]
    assert (switch["kind"], switch["mtu"], switch["uplinks"]) == ("distributed", 9000, ["vmnic2"])
    (adapter,) = [one for one in host["vmkernel"] if one["device"] == "vmk1"]
    assert (adapter["address"], adapter["mtu"], adapter["services"]) == ("10.216.0.2", 9000, [])
    assert ansible.module("esxi_pvrdma", cluster="gpu", vmk="vmk1").changed
    pings = info(ansible, ping=True)["pings"]
    assert [(one["host"], one["peer"], one["reached"], one["size"]) for one in pings] == [
        ("esx01.lab", "esx02.lab", True, 8972),
        ("esx01.lab", "esx03.lab", True, 8972),
        ("esx02.lab", "esx03.lab", True, 8972),
    ]


def test_reports_a_lost_ping(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("rdma_fabric", **desired())
    vcenter.fault("esxcli network diag ping", "fault", name="esx01.lab", fault="HostConnectFault", message="no route")
    vcenter.set_host("esx03.lab", connection="notResponding")
    outcome = ansible.module("cluster_info", cluster="gpu", switch="rdma", ping=True)
    assert outcome.rc == 1 and "does not reach esx03.lab" in outcome.msg
    vcenter.set_host("esx03.lab", connection="connected")
    first = info(ansible, ping=True)["pings"][0]
    assert not first["reached"] and "no route" in first["said"]


def test_repairs_drift_and_leaves_the_rest_alone(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("rdma_fabric", **desired())
    vcenter.clear()
    other = desired(mtu=8500, port_groups=[{"name": "rdma-vmk", "vlan": 300}, {"name": "rdma-vm"}])
    other["adapters"][0] |= {"services": ["vmotion"], "mtu": 8000}
    changed = ansible.module("rdma_fabric", **other)
    assert changed.rc == 0, changed.msg
    assert changed.result["fabric"]["port_groups"] == {"rdma-vmk": {"vlan": 300}, "rdma-vm": {"vlan": 216}}
    methods = {write["method"] for write in vcenter.writes()}
    assert methods == {"ReconfigureDVPortgroup_Task", "ReconfigureDvs_Task", "UpdateVirtualNic", "SelectVnicForNicType"}
    assert info(ansible, ping=True)["pings"][0]["size"] == 7972
    shown = ansible.module("rdma_fabric", check=True, **desired()).result["diff"]
    drifted = {"switch", "port_groups.rdma-vmk", *(f"hosts.{host}" for host in HOSTS)}
    assert [set(one["before"]) for one in shown] == [drifted]
    repaired = ansible.module("rdma_fabric", **desired())
    assert repaired.rc == 0 and repaired.result["diff"] == shown, repaired.msg
    vcenter.clear()
    assert not ansible.module("rdma_fabric", **desired()).changed and vcenter.writes() == []


@pytest.mark.datacentre(text=with_switch())
def test_adding_a_host_changes_only_that_host(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("rdma_fabric", adopt=True, **desired()).changed
    vcenter.clear()
    again = desired()
    again["adapters"][0]["addresses"]["esx03.lab"] = "10.216.0.33"
    assert ansible.module("rdma_fabric", adopt=True, **again).changed
    assert {write["name"] for write in vcenter.writes()} == {"esx03.lab"}


@pytest.mark.datacentre(text=with_switch())
def test_changes_a_foreign_switch_only_on_request(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("rdma_fabric", **desired())
    assert refused.rc == 1 and "was not built by this collection" in refused.msg and vcenter.writes() == []
    assert ansible.module("rdma_fabric", adopt=True, **desired()).rc == 0
    gone = ansible.module("rdma_fabric", cluster="gpu", state="absent")
    assert gone.rc == 0, gone.msg
    left = info(ansible)["fabric"]
    assert left["switch"] == {"mtu": 9000, "ours": False} and set(left["port_groups"]) == {"rdma-vm"}
    assert left["hosts"]["esx01.lab"]["uplinks"] == ["vmnic2"] and left["hosts"]["esx01.lab"]["adapters"] == {}


@pytest.mark.datacentre(text=with_switch(more=WORKER))
def test_does_not_change_what_running_workers_use(vcenter: Simulator, ansible: Ansible) -> None:
    more = desired(port_groups=[{"name": "rdma-vmk", "vlan": 216}])
    assert ansible.module("rdma_fabric", adopt=True, **more).rc == 0
    rewired = ansible.module(
        "rdma_fabric", check=True, adopt=True, **desired(port_groups=[{"name": "rdma-vm", "vlan": 5}])
    )
    assert "worker01 runs and uses the VLAN of rdma-vm" in rewired.msg + str(rewired.result.get("unmet"))
    vcenter.clear()
    smaller = desired(mtu=4200, adopt=True)
    smaller["adapters"][0]["mtu"] = 4200
    assert "worker01 runs and uses the MTU of rdma" in ansible.module("rdma_fabric", **smaller).msg
    assert vcenter.writes() == []


@pytest.mark.datacentre(text=datacentre(more="vms:\n  - {name: worker01, host: esx01.lab}\n"))
def test_refuses_absent_while_others_use_the_switch(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("rdma_fabric", **desired())
    connect(vcenter, "worker01", "rdma-vm")
    foreign = desired(adapters=[{"port_group": "rdma-vm"}])
    ansible.module("rdma_fabric", **foreign)
    forget(vcenter, "esx02.lab")
    vcenter.clear()
    refused = ansible.module("rdma_fabric", cluster="gpu", state="absent")
    assert refused.rc == 1 and vcenter.writes() == []
    assert "VM worker01 is connected to rdma-vm" in refused.msg
    assert "vmk2 of esx02.lab is on rdma-vm and was not built by this collection" in refused.msg
    assert "host esx02.lab is on the switch and was not put there by this collection" in refused.msg


def test_next_run_continues_and_owns_an_interrupted_build(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.fault("AddVirtualNic", "fault", name="esx02.lab", fault="PlatformConfigFault", message="Out of ports")
    broken = ansible.module("rdma_fabric", **desired())
    assert (
        broken.rc == 1 and "esx02.lab: could not add a vmkernel adapter" in broken.msg and "Out of ports" in broken.msg
    )
    vcenter.clear()
    assert ansible.module("rdma_fabric", **desired()).changed
    assert [(write["method"], write["name"]) for write in vcenter.writes()] == [("AddVirtualNic", "esx02.lab")]
    vcenter.fault("Destroy_Task", "fault", fault="PlatformConfigFault", message="Not now")
    assert "Not now" in ansible.module("rdma_fabric", cluster="gpu", state="absent").msg
    assert ansible.module("rdma_fabric", cluster="gpu", state="absent").rc == 0
    assert info(ansible)["fabric"]["switch"] is None
    assert all(host["built"] is None for host in info(ansible)["fabric"]["hosts"].values())


def test_refuses_addresses_of_foreign_hosts_and_accepts_dhcp(ansible: Ansible) -> None:
    stranger = desired([*HOSTS, "esx99.lab"])
    refused = ansible.module("rdma_fabric", **stranger)
    assert "esx99.lab, which has an address on rdma-vmk, is not a host of cluster gpu" in refused.msg
    assert addresses(HOSTS)["esx03.lab"] == "10.216.0.3"
    dynamic = desired(adapters=[{"port_group": "rdma-vmk"}])
    assert ansible.module("rdma_fabric", **dynamic).rc == 0
    assert not ansible.module("rdma_fabric", **dynamic).changed
