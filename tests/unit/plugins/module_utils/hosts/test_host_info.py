"""The data that is read from hosts: form, groups, calls, and hosts that cannot be read."""

from __future__ import annotations

from typing import Any

import jmespath
import yaml
from pyVmomi import vim

from plugins.module_utils.errors import Failed, Unreachable
from plugins.module_utils.hosts import host_info
from plugins.module_utils.hosts.management import HostManagers
from plugins.modules import esxi_info
from tests.fakes.calling import FakeFleet
from tests.fakes.esxi import FakeEsxcli, FakeFirewall, FakeHost, FakeKernelModules, FakeOptions, no_dcb
from tests.fakes.network import FakeNetwork

GPU = "0000:3b:00.0"
NO_MANAGERS = tuple(host_info.GROUPS)
DCB = {"Nic": "vmnic2", "PFCEnabled": "true", "PFCConfiguration": "0 0 0 1 0 0 0 0"}
TRAFFIC = {"PacketsReceived": "7", "BytesSent": "4096", "NICName": "vmnic2"}
VIBS = [
    {"Name": "nmlx5-core", "Version": "4.23", "Vendor": "VMW", "AcceptanceLevel": "VMwareCertified"},
    {"Name": "esx-base", "Version": "8.0.3", "Vendor": "VMW", "AcceptanceLevel": "VMwareCertified"},
]


def host(name: str = "esx01.lab") -> FakeHost:
    made = FakeHost(name)
    made.network = FakeNetwork().on(made)
    made.modules = FakeKernelModules(made, nmlx5_core="pfctx=8", nmlx5_rdma="", i40en="", vmw_ahci="", lpfc="debug=1")
    made.options = FakeOptions(made, Net__PVRDMAVmknic="vmk1")
    made.firewall = FakeFirewall(made, pvrdma=True)
    made.esxcli_ = FakeEsxcli(
        made,
        {
            "network nic dcb status get": [DCB],
            "network nic stats get": [TRAFFIC],
            "rdma device stats get": [{**TRAFFIC, "BytesSent": "1048576"}],
            "software vib list": lambda rebootingimage=False: [] if rebootingimage else VIBS,
        },
    )
    made.has(summary__hardware__vendor="Dell Inc.", summary__hardware__model="R740", config__product__build="24022510")
    made.properties_of(_gpu())
    return made


def _gpu() -> dict[str, Any]:
    device = vim.host.PciDevice(
        id=GPU, classId=0x302, vendorId=0x10DE, deviceId=0x1EB8, vendorName="NVIDIA", deviceName="Tesla T4"
    )
    shown = vim.host.GraphicsInfo(pciId=GPU, graphicsType="shared", memorySizeInKB=16 << 20)
    desired = vim.host.GraphicsConfig.DeviceType(deviceId=GPU, graphicsType="sharedDirect")
    config = vim.host.GraphicsConfig(
        hostDefaultGraphicsType="sharedDirect", sharedPassthruAssignmentPolicy="performance", deviceType=[desired]
    )
    return {
        "hardware.pciDevice": [device],
        "config.graphicsInfo": [shown],
        "config.graphicsConfig": config,
        "config.sharedPassthruGpuTypes": ["grid_t4-16c"],
        "hardware.numaInfo.numaNode": [vim.host.NumaNode(typeId=1, pciId=["3b:00.0", "0000:28:00.0"])],
    }


def gather(*hosts: FakeHost, names: Any = NO_MANAGERS) -> list[dict[str, Any]]:
    return host_info.gather(FakeFleet(hosts), names)


def test_reads_one_host_in_full() -> None:
    (entry,) = gather(host())
    assert {key: entry[key] for key in ("host", "connection", "version", "build", "vendor", "in_maintenance")} == {
        "host": "esx01.lab", "connection": "connected", "version": "8.0.3", "build": "24022510",
        "vendor": "Dell Inc.", "in_maintenance": False,
    }  # fmt: skip
    assert entry["boot_time"] == "2026-01-01T00:00:00+00:00"
    (gpu,) = entry["gpus"]
    assert (gpu["address"], gpu["name"], gpu["memory_mb"]) == (GPU, "Tesla T4", 16384)
    assert (gpu["type"], gpu["active_type"], gpu["passthrough"]) == ("shared_direct", "shared", "off")
    assert gpu["numa_node"] == 1, "the NUMA node names the device without its domain"
    assert entry["graphics"]["profiles"] == ["grid_t4-16c"] and entry["graphics"]["gpus"][GPU]["name"] == "Tesla T4"
    (rdma,) = entry["rdma_devices"]
    assert (rdma["device"], rdma["uplink"], rdma["pfc"], rdma["numa_node"]) == ("vmrdma0", "vmnic2", [3], 1)
    assert rdma["counters"] == {"bytes_sent": 1048576, "packets_received": 7}
    assert rdma["uplink_counters"] == {"bytes_sent": 4096, "packets_received": 7}
    assert [(card["device"], card["rdma"], card["switch"]) for card in entry["uplinks"]] == [
        ("vmnic0", None, "vSwitch0"), ("vmnic1", None, None), ("vmnic2", "vmrdma0", "rdma"),
    ]  # fmt: skip
    assert [(adapter["device"], adapter["mtu"], adapter["services"]) for adapter in entry["vmkernel"]] == [
        ("vmk0", 1500, ["management"]), ("vmk1", 9000, []),
    ]  # fmt: skip
    uplinks = {switch["name"]: switch["uplinks"] for switch in entry["switches"]}
    assert uplinks == {"vSwitch0": ["vmnic0"], "rdma": ["vmnic2"]}
    assert entry["pvrdma"] == {"vmk": "vmk1", "firewall_open": True, "firewall_allowed": []}
    assert [vib["name"] for vib in entry["vibs"]["running"]] == ["nmlx5-core"]


def test_documentation_contains_each_key_of_a_host() -> None:
    (entry,) = gather(host())
    documented = set(yaml.safe_load(esxi_info.RETURN)["hosts"]["contains"])
    returned = {*entry, *HostManagers.__annotations__, "failed", "msg"}
    lacking = sorted(returned - documented)
    assert [f"plugins/modules/esxi_info.py: add {key} to hosts in RETURN" for key in lacking] == []
    assert sorted(documented - returned) == []


def test_reads_a_host_whose_driver_lacks_dcb() -> None:
    esx = host()
    esx.esxcli_.answers["network nic dcb status get"] = lambda nicname: no_dcb(esx, nicname)
    (entry,) = gather(esx)
    (rdma,) = entry["rdma_devices"]
    assert "failed" not in entry and rdma["pfc"] is None and rdma["dcbx"] == {"mode": None, "willing": None}
    assert rdma["pfc_unknown"] == "esxcli said DCB not supported for vmnic2"
    esx.esxcli_.answers["network nic dcb status get"] = lambda nicname: _broken(esx)
    assert "the connection broke" in gather(esx)[0]["msg"], "a broken connection does not mean a card without DCB"


def _broken(esx: FakeHost) -> list[dict[str, str]]:
    raise Unreachable(esx.name, "run esxcli", "the connection broke")


def test_shows_an_unreadable_option_string_and_continues() -> None:
    esx = host()
    esx.modules.strings["lpfc"] = "debug debug"
    modules = gather(esx, names=["driver"])[0]["kernel_modules"]
    assert modules["lpfc"] == {"options": None, "active": None, "text": "debug debug", "loaded": True}


def test_every_reason_for_a_reboot_is_named() -> None:
    esx = host()
    esx.fields.AddCustomFieldDef("dml.vsphere.pending", vim.HostSystem)
    esx.fields.values[100] = '{"boot": "2026-01-01T00:00:00+00:00", "was": {"nmlx5_core": ""}}'
    esx.properties_of(
        {
            "summary.rebootRequired": True,
            "config.pciPassthruInfo": [vim.host.PciPassthruInfo(id=GPU, passthruEnabled=True, passthruActive=False)],
        }
    )
    newer = {**VIBS[0], "Version": "4.24"}
    esx.esxcli_.answers["software vib list"] = lambda rebootingimage=False: [newer] if rebootingimage else VIBS
    assert gather(esx)[0]["reboot_why"] == [
        "the host requests it",
        f"the passthrough of Tesla T4 at {GPU} waits for it",
        "VIB nmlx5-core 4.24 waits for it",
        "kernel module nmlx5_core waits for it",
    ]


def test_failing_host_does_not_hide_the_others() -> None:
    good, lost, sick = host("esx01.lab"), host("esx02.lab"), host("esx03.lab")
    lost.has(runtime__connectionState="notResponding")
    sick.esxcli_.answers["software vib list"] = _sick
    entries = gather(good, lost, sick)
    assert [entry.get("failed", False) for entry in entries] == [False, True, True]
    assert entries[1]["connection"] == "notResponding" and "gpus" not in entries[1]
    strict = host_info.result(entries, fail_unreachable=True)
    assert strict["failed"] and strict["unreachable_hosts"] == ["esx02.lab"] and len(strict["hosts"]) == 3
    assert "esx02.lab: could not read it: vCenter shows it as notResponding" in strict["msg"]
    lenient = host_info.result(entries, fail_unreachable=False)
    assert lenient["msg"] == "esx03.lab: could not list VIBs: the host is sick", "it applies to unreachable hosts only"
    assert "failed" not in host_info.result(entries[:2], fail_unreachable=False)


def _sick(**_options: Any) -> Any:
    raise Failed("esx03.lab", "list VIBs", "the host is sick")


def test_reads_only_the_requested_properties() -> None:
    assert not {"hardware.pciDevice", "config.network"} & set(host_info.paths(["pvrdma"]))
    everything = host_info.paths(["all"])
    assert "hardware.pciDevice" in everything and "config.network" in everything
    assert len(everything) == len(set(everything))


def test_every_documented_query_finds_an_answer() -> None:
    answer = host_info.result(gather(host()), fail_unreachable=True)
    query = "hosts[].{host: host, gpus: gpus[?type != active_type].[address, type, active_type]}"
    assert jmespath.search(query, answer) == [{"host": "esx01.lab", "gpus": [[GPU, "shared_direct", "shared"]]}]
    assert jmespath.search("hosts[].rdma_devices[].[device, counters.bytes_sent]", answer) == [["vmrdma0", 1048576]]
    assert jmespath.search("hosts[?reboot_owed].{host: host, why: reboot_why}", answer)[0]["host"] == "esx01.lab"
