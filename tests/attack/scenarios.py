"""The attacked calls in one process: calls of modules, one after another as a playbook makes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml

from lab.person import opened
from lab.simulator import Simulator
from plugins.module_utils.vsphere import rest
from tests.integration import fabrics, sites
from tests.integration.workers import HOSTS, desired

HOST = "esx01.lab"
DRIVER = "NVD-AIE_ESXi_8.0.0_Driver"
VERSION = "550.90.05-1OEM.800.1.0.20613240"
SOURCE = f"[shared] NVD-AIE-800_{VERSION}_24012345.zip"
HOT, DRS = "vgpu.hotmigrate.enabled", "VmotionStunTime"


@dataclass(frozen=True)
class Step:
    """One call of a module; ``always`` ones come also after a step that failed."""

    module: str
    options: dict[str, Any]
    always: bool = False
    # Whether a second call of only this step changes nothing.
    settles: bool = True


@dataclass(frozen=True)
class Scenario:
    """A data centre, what is done to it in peace, and the steps that are attacked."""

    name: str
    text: str
    steps: tuple[Step, ...]
    before: tuple[Step, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    # Requests to a person in the refusal of the next run, and how a person fulfils them.
    advice: str = ""
    follow: Callable[[Simulator], None] = Simulator.heal

    def place(self, vcenter: Simulator) -> None:
        """Bring a fresh data centre to where the scenario begins, as far as no module does that."""
        if self.state:
            vcenter.set_cluster("gpu", **self.state)


def bare(prepared: bool = False) -> str:
    """Two fast hosts with an RDMA network."""
    lab = yaml.safe_load(sites.datacentre(prepared=prepared))
    lab["host_defaults"].update(reboot_seconds=0.1, vmotion_seconds=0.1)
    lab["switches"] = [
        {"name": "rdma", "mtu": 9000, "uplinks": ["vmnic2"], "portgroups": [{"name": "rdma-vmk", "vlan": 216}]}
    ]
    adapter = {"device": "vmk1", "switch": "rdma", "portgroup": "rdma-vmk", "address": "10.216.0.{n}", "mtu": 9000}
    lab["host_defaults"]["vmkernel"] = [*lab["host_defaults"]["vmkernel"], adapter]
    return str(yaml.safe_dump(lab))


def _all(module: str, **options: Any) -> Step:
    return Step(module, {"cluster": "gpu", **options})


def _under_lock(*steps: Step) -> tuple[Step, ...]:
    free = Step("cluster_lock", {"cluster": "gpu", "state": "free"}, always=True, settles=False)
    return (Step("cluster_lock", {"cluster": "gpu"}, settles=False), *steps, free)


def _resting(*steps: Step) -> tuple[Step, ...]:
    """A host is taken out of service, changed, booted and returned to service, as the role esxi_host does it."""
    power = {"hosts": [HOST], "maintenance_timeout": 20, "reboot_timeout": 20}
    return _under_lock(
        Step("esxi_power", {**power, "state": "maintenance"}, settles=False),
        *steps,
        Step("esxi_power", {**power, "state": "rebooted"}, settles=False),
        Step("esxi_power", {**power, "state": "in_service"}),
    )


def _workers(count: int, **more: Any) -> Step:
    return Step("worker_vm", desired(count, **more))


PROFILE: dict[str, Any] = {
    "vibs": [{"name": DRIVER, "version": VERSION, "source": SOURCE}],
    "graphics": {"type": "shared_direct", "policy": "performance"},
    "roce": {"priority": 3, "trust": "dscp"},
    "pvrdma": {"vmk": "vmk1"},
    "kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}],
}
ADVANCED = {"UserVars.SuppressShellWarning": 1}
FABRIC = fabrics.desired(hosts=("esx01.lab", "esx02.lab"))
RULES = {"workers": ["worker01", "worker02"], "hosts": ["esx01.lab", "esx02.lab"], "drs_override": "manual"}
WITH_DRS = HOSTS.replace("{name: gpu, hosts", "{name: gpu, drs: {enabled: true}, ha: {enabled: true}, hosts")
THREE = HOSTS.replace("count: 5", "count: 3")
GONE = {
    "state": "absent",
    "power_cycle": True,
    "workers": [{"name": "worker01"}, {"name": "worker02"}],
    "power_timeout": 20,  # the wait for a guest that gets no order to shut down
}
READ = (
    *(_all(name) for name in ("cluster_info", "esxi_info", "gpu_usage", "worker_vm_info")),
    _all("cluster_info", switch="rdma", ping=True),
)


def discard_drafts(vcenter: Simulator) -> None:
    """A person discards the drafts of the image in the client: whose they are, no run of ours can know."""
    with opened(vcenter) as one, rest.opened(one) as api:
        cluster = vcenter.ask("GET", "/clusters/gpu")["moid"]
        drafts = f"/api/esx/settings/clusters/{cluster}/software/drafts"
        for draft in api.get(drafts, tried="list its drafts"):
            api.send("DELETE", f"{drafts}/{draft}", tried="discard a draft")


SCENARIOS = (
    Scenario("cluster_lock", bare(), _under_lock()),
    Scenario("esxi_kernel_module", bare(), (_all("esxi_kernel_module", name="nmlx5_core", options={"max_vfs": 8}),)),
    Scenario("esxi_advanced_option", bare(), (_all("esxi_advanced_option", options=ADVANCED),)),
    Scenario("esxi_graphics", bare(), (_all("esxi_graphics", type="shared_direct", policy="consolidation"),)),
    Scenario("esxi_passthrough", bare(), (_all("esxi_passthrough", enabled=True),)),
    Scenario("esxi_pvrdma", bare(), (_all("esxi_pvrdma", vmk="vmk1"),)),
    Scenario("esxi_roce", bare(), (_all("esxi_roce", priority=3, trust="dscp", dscp=26),)),
    Scenario("esxi_vib", bare(), _resting(Step("esxi_vib", {"hosts": [HOST], **PROFILE["vibs"][0]}))),
    Scenario("esxi_profile", bare(), _resting(Step("esxi_profile", {"hosts": [HOST], "profile": PROFILE}))),
    Scenario(
        "esxi_image",
        bare(),
        (_all("esxi_image", components={"NVD-AIE-800": VERSION}),),
        state={"image_managed": True},
        advice="finish or discard the draft that is open",
        follow=discard_drafts,
    ),
    Scenario("rdma_fabric", fabrics.datacentre(count=2), (Step("rdma_fabric", FABRIC),)),
    Scenario(
        "rdma_fabric absent",
        fabrics.datacentre(count=2),
        (Step("rdma_fabric", {"cluster": "gpu", "state": "absent"}),),
        before=(Step("rdma_fabric", FABRIC),),
    ),
    Scenario("worker_vm", THREE, (_workers(2),)),
    Scenario("worker_vm absent", THREE, (_all("worker_vm", **GONE),), before=(_workers(2),)),
    Scenario("worker_rules", WITH_DRS, (_all("worker_rules", **RULES),), before=(_workers(2),)),
    Scenario(
        "worker_rules absent",
        WITH_DRS,
        (_all("worker_rules", state="absent"),),
        before=(_workers(2), _all("worker_rules", **RULES)),
    ),
    Scenario(
        "vmotion",
        THREE.replace("  hardware: t4_cx5\n", "  hardware: t4_cx5\n  options: {Net.PVRDMAVmknic: vmk1}\n"),
        (Step("vmotion", {"cluster": "gpu", "worker": "worker01", "target": "esx03.lab", "move_timeout": 20}),),
        before=(_workers(1),),
    ),
    Scenario(
        "shared_settings",
        bare(),
        (_all("shared_settings", vcenter_options={HOT: True}, drs_options={DRS: "1"}, allow_shared_settings=True),),
    ),
    Scenario("vcenter_role", bare(), (Step("vcenter_role", {"grants": [{"principal": "LAB\\ml", "path": "/dc1"}]}),)),
    Scenario("custom_attributes", THREE, (_all("custom_attributes"),), before=(_workers(2), _all("worker_vm", **GONE))),
    Scenario("acceptance", THREE, (_all("site", gather="acceptance"),), before=(_workers(1),)),
    Scenario("discovery", THREE, (Step("site", {"gather": "discovery"}),), before=(_workers(1),)),
    Scenario("readers", THREE, READ, before=(_workers(1),)),
)
