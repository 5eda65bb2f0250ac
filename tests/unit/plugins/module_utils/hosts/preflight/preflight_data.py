"""The data that preflight reads from a cluster and a host without any finding, which tests change."""

from __future__ import annotations

from typing import Any

GPU = "0000:3b:00.0"
PROFILE: dict[str, Any] = {
    "vibs": [{"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "550.90.05", "source": "/x.zip"}],
    "graphics": {"type": "shared_direct"},
    "roce": {"priority": 3, "trust": "dscp"},
    "pvrdma": {"vmk": "vmk1"},
}


def gpu(**changed: Any) -> dict[str, Any]:
    made = {"address": GPU, "name": "NVIDIA Tesla T4", "passthrough": "off", "mig": False, "vms": []}
    return {**made, **changed}


def device(**changed: Any) -> dict[str, Any]:
    return {"device": "vmrdma0", "uplink": "vmnic2", "state": "active", **changed}


def host(name: str = "esx1", **changed: Any) -> dict[str, Any]:
    """Return an entry of esxi_info."""
    made = {
        "host": name,
        "connection": "connected",
        "reachable": True,
        "in_maintenance": False,
        "model": "PowerEdge R740",
        "version": "8.0.3",
        "gpus": [gpu()],
        "rdma_devices": [device()],
        "rdma_users": [],
        "uplinks": [{"device": "vmnic2", "link": True}],
        "vibs": {"running": [], "pending": []},
        "reboot_owed": False,
        "reboot_why": [],
        "image_managed": False,
        "configuration_profile": False,
        "host_profile": None,
    }
    return {**made, **changed}


def cluster(**changed: Any) -> dict[str, Any]:
    """Return the cluster of a result of cluster_info; a key such as ha__enabled changes a nested value."""
    made: dict[str, Any] = {
        "name": "gpu",
        "vcenter": {"version": "8.0.3", "build": "1", "time": "2026-01-02T03:04:05Z"},
        "options": {"vgpu.hotmigrate.enabled": True},
        "image_managed": False,
        "configuration_profile": False,
        "hosts": [{"host": "esx1", "version": "8.0.3", "device_classes": {}}],
        "ha": {"enabled": True, "admission_control": True, "failover_hosts_now": 1},
        "drs": {"enabled": True, "behaviour": "fullyAutomated", "options": {}},
        "evc": None,
        "vsan": {"enabled": False, "resync_bytes": 0},
        "alarms": [],
        "tasks": [],
        "remediations": [],
        "out_of_service": [],
        "lock": {"held": False, "owner": None, "run": None, "since": None, "until": None, "over": None},
        "licences": [licence()],
        "clocks": [clock()],
        "gpu_slots": [],
        "max_out_of_service": {"allowed": 1, "why": "HA admission control keeps 1 host free for failures"},
    }
    for path, value in changed.items():
        *parts, last = path.split("__")
        place = made
        for part in parts:
            place = place[part]
        place[last] = value
    return made


def licence(**changed: Any) -> dict[str, Any]:
    made = {"object": "esx1", "name": "vSphere", "edition": "esx.enterprisePlus.cpuPackage", "evaluation": False}
    return {**made, "expires": None, "expired": False, **changed}


def clock(**changed: Any) -> dict[str, Any]:
    return {"host": "esx1", "running": ["ntpd"], "servers": ["ntp.lab"], "offset_seconds": 0.1, **changed}


def alarm(**changed: Any) -> dict[str, Any]:
    made = {"object": "esx1", "alarm": "Host memory", "status": "yellow", "since": "2026-01-02T03:04:05Z"}
    return {**made, "acknowledged": False, **changed}


def planned(name: str = "esx1", **changed: Any) -> dict[str, Any]:
    """Return an entry of esxi_profile in check mode."""
    made = {"host": name, "changed": True, "needs": ["reboot"], "reboots": 1, "why": [], "warnings": []}
    return {**made, **changed}


def read(**changed: Any) -> dict[str, Any]:
    """Return all data that preflight reads, for one good host."""
    made = {
        "cluster": {"cluster": cluster(), "stops": []},
        "hosts": {"hosts": [host()]},
        "plan": {"hosts": [planned(changed=False, needs=[], reboots=0)]},
        "emptying": [],
        "profile": PROFILE,
        "host_profiles": {},
        "gpu": "",
        "vgpu": "",
        "rdma_protocol": "",
        "rdma_classes": [],
        "device_classes": [],
    }
    return {**made, **changed}
