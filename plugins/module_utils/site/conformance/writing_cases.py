"""The writing cases that a spare cluster and the simulated data centre answer alike; pure.

A name in braces stands for an object of the site. Each case restores what it changed; none needs a GPU or an RDMA card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Step(NamedTuple):
    """One call of a module, and the answers of the simulated data centre by their path in the result."""

    text: str
    module: str
    options: Mapping[str, Any]
    answers: Mapping[str, Any]


class Case(NamedTuple):
    """Steps, the calls that restore the site after them, and the name without whose value they are left out."""

    name: str
    steps: tuple[Step, ...]
    undo: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    needs: str = ""


OPTION, MODULE, DRS_OPTION = "UserVars.SuppressShellWarning", "nmlx5_core", "VgpuMMAutomationTimeoutSecs"
LOCK, WORKERS = {"cluster": "{cluster}"}, {"cluster": "{cluster}", "workers": [{"name": "{worker}"}]}
BUILT = {"name": "{worker}", "template": "{template}", "host": "{host}", "reserve_memory": False}
CHANGED, SAME, REFUSED = {"changed": True}, {"changed": False}, {"failed": True}


def _option(value: int, name: str = OPTION) -> dict[str, object]:
    return {"hosts": ["{host}"], "options": {name: value}}


def _kernel(options: Mapping[str, object], name: str = MODULE) -> dict[str, object]:
    return {"hosts": ["{host}"], "name": name, "options": options, "exact": True}


def _power(state: str, host: str = "{host}") -> dict[str, Any]:
    return {"hosts": [host], "state": state, "moved_by": "module", "rollout": True}


def _drs(value: int | None) -> dict[str, object]:
    return {"cluster": "{cluster}", "drs_options": {DRS_OPTION: value}, "allow_shared_settings": True}


def _moved(target: str) -> dict[str, object]:
    return {"cluster": "{cluster}", "worker": "{worker}", "target": target}


_RULES = {"cluster": "{cluster}", "name": "conformance", "workers": ["{worker}"], "hosts": ["{other}"]}
_OUT = {"cluster.out_of_service.0.host": "{host}", "cluster.out_of_service.0.ours": True}
_GONE = {**WORKERS, "state": "absent", "power_cycle": True}
_STRANGER = {**LOCK, "password": "no-such-password"}  # the server is to refuse it # nosec B105
_VIB = {"hosts": ["{host}"], "name": "{vib}"}
_INSTALLED, _REMOVED = {**_VIB, "version": "{vib_version}", "source": "{vib_source}"}, {**_VIB, "state": "absent"}
_UNREADABLE = {**_VIB, "name": "dml-conformance", "version": "1", "source": "/vmfs/volumes/dml-conformance/none.vib"}
_TAGGED, _UNTAGGED = {"hosts": ["{host}"], "vmk": "{vmk}"}, {"hosts": ["{host}"], "state": "absent"}
_SWITCH = {"cluster": "{cluster}", "switch": "dml-conformance"}
_BUILT_SWITCH = {**_SWITCH, "mtu": 1500, "uplink": "{uplink}", "port_groups": [{"name": "dml-conformance-1"}]}
_ADAPTED = {**_BUILT_SWITCH, "adapters": [{"port_group": "dml-conformance-1", "services": []}]}
_AFTER_A_MOVE = ("boot time after a move", "target of an encrypted move", "chain of a move")
CASES = (
    Case(
        "lock",
        (
            Step("a second run is refused", "cluster_lock", {**LOCK, "run": "second"}, REFUSED),
            Step("a second run cannot free it", "cluster_lock", {**LOCK, "run": "second", "state": "free"}, REFUSED),
            Step("its holder keeps it", "cluster_lock", LOCK, {**SAME, "state.held": True}),
        ),
    ),
    Case(
        "sessions",
        (
            Step("a wrong password", "cluster_info", _STRANGER, {**REFUSED, "fault": "InvalidLogin"}),
            Step("the right password", "cluster_info", LOCK, {**SAME, "cluster.name": "{cluster}"}),
        ),
    ),
    Case(
        "faults",
        (Step("a VIB that does not exist", "esxi_vib", _UNREADABLE, {**REFUSED, "fault": "VibDownloadError"}),),
        needs="packages",
    ),
    Case(
        "advanced option",
        (
            Step("set", "esxi_advanced_option", _option(1), {**CHANGED, "needs": [], f"hosts.0.state.{OPTION}": 1}),
            Step("set again", "esxi_advanced_option", _option(1), SAME),
            Step("a value out of its range", "esxi_advanced_option", _option(7), REFUSED),
            Step("an unknown option", "esxi_advanced_option", _option(1, "UserVars.NoSuchOption"), REFUSED),
        ),
        (("esxi_advanced_option", _option(0)),),
    ),
    Case(
        "options of a kernel module",
        (
            Step("set", "esxi_kernel_module", _kernel({"max_vfs": [0]}), {**CHANGED, "needs": ["reboot"]}),
            Step("set again", "esxi_kernel_module", _kernel({"max_vfs": [0]}), {**SAME, "needs": ["reboot"]}),
            Step("an unknown module", "esxi_kernel_module", _kernel({"max_vfs": [0]}, "no_such_module"), REFUSED),
            Step("removed", "esxi_kernel_module", _kernel({}), {**CHANGED, "needs": []}),
        ),
        (("esxi_kernel_module", _kernel({})),),
    ),
    Case(
        "option of DRS",
        (
            Step("set", "shared_settings", _drs(600), {**CHANGED, f"settings.0.state.{DRS_OPTION}": "600"}),
            Step("set again", "shared_settings", _drs(600), SAME),
            Step("removed", "shared_settings", _drs(None), {**CHANGED, f"settings.0.state.{DRS_OPTION}": None}),
        ),
        (("shared_settings", _drs(None)),),
    ),
    Case(
        "maintenance and reboot",
        (
            Step("a boot in service", "esxi_power", _power("rebooted"), REFUSED),
            Step("enter", "esxi_power", _power("maintenance"), {**CHANGED, "hosts.0.state.ours": True}),
            Step("enter again", "esxi_power", _power("maintenance"), SAME),
            Step("the cluster shows it", "cluster_info", {"cluster": "{cluster}"}, _OUT),
            Step(
                "another host may not leave",
                "cluster_info",
                {**LOCK, "leaving": ["{other}"]},
                {"stops": ["max_out_of_service"]},
            ),
            Step("boot", "esxi_power", _power("rebooted"), {**CHANGED, "hosts.0.state.reboot": "done"}),
            Step("return", "esxi_power", _power("in_service"), {**CHANGED, "hosts.0.state.maintenance": False}),
            Step("return again", "esxi_power", _power("in_service"), SAME),
        ),
        (("esxi_power", _power("in_service")),),
    ),
    Case(
        "VIB",
        (
            Step("a host in service", "esxi_vib", _INSTALLED, REFUSED),
            Step("empty the host", "esxi_power", _power("maintenance"), CHANGED),
            Step("install", "esxi_vib", _INSTALLED, {**CHANGED, "hosts.0.state.next_boot": "{vib_version}"}),
            Step("install again", "esxi_vib", _INSTALLED, SAME),
            Step("remove", "esxi_vib", _REMOVED, {**CHANGED, "hosts.0.state.next_boot": None}),
            Step("remove again", "esxi_vib", _REMOVED, SAME),
            Step("return the host", "esxi_power", _power("in_service"), CHANGED),
        ),
        (("esxi_vib", _REMOVED), ("esxi_power", _power("in_service"))),
        needs="vib",
    ),
    Case(
        "switch",
        (
            Step("build", "rdma_fabric", _BUILT_SWITCH, CHANGED),
            Step("build again", "rdma_fabric", _BUILT_SWITCH, SAME),
            Step("adapters", "rdma_fabric", _ADAPTED, CHANGED),
            Step("tag", "esxi_pvrdma", _TAGGED, {**CHANGED, "hosts.0.state.vmk": "{vmk}"}),
            Step("tag again", "esxi_pvrdma", _TAGGED, SAME),
            Step("remove the tag", "esxi_pvrdma", _UNTAGGED, {**CHANGED, "hosts.0.state.vmk": ""}),
            Step("remove", "rdma_fabric", {**_SWITCH, "state": "absent"}, CHANGED),
        ),
        (("esxi_pvrdma", _UNTAGGED), ("rdma_fabric", {**_SWITCH, "state": "absent"})),
        needs="uplink",
    ),
    Case(
        "worker",
        (
            Step("clone and start", "worker_vm", {**WORKERS, "workers": [BUILT], "wait_for_address": False}, CHANGED),
            Step(
                "move", "vmotion", _moved("{other}"), {**CHANGED, "move.ok": True, "move.vsphere.power_cycled": False}
            ),
            Step("move again", "vmotion", _moved("{other}"), SAME),
            Step("a host that does not exist", "vmotion", _moved("no-such-host"), REFUSED),
            Step("rule", "worker_rules", _RULES, {**CHANGED, "state.affinity.rule": "preferred"}),
            Step("rule again", "worker_rules", _RULES, SAME),
            Step("empty its host", "esxi_power", _power("maintenance", "{other}"), CHANGED),
            Step("return the host", "esxi_power", _power("in_service", "{other}"), CHANGED),
            Step(
                "events of its moves",
                "site",
                {"gather": "acceptance", "hosts": ["{host}"], "vms": ["{worker}"]},
                {f"assumptions.{name}.status": "proven" for name in _AFTER_A_MOVE},
            ),
            Step("delete", "worker_vm", _GONE, CHANGED),
        ),
        (
            ("esxi_power", _power("in_service", "{other}")),
            ("worker_rules", {"cluster": "{cluster}", "name": "conformance", "state": "absent"}),
            ("worker_vm", _GONE),
        ),
        needs="template",
    ),
)
