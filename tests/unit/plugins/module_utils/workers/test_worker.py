"""The plan of one worker from its cluster, its options and its assignment."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Refused
from plugins.module_utils.plan import POWER_OFF, Plan
from plugins.module_utils.workers import clone, worker_mark
from plugins.module_utils.workers.absent_worker import AbsentWorker
from plugins.module_utils.workers.context import Assignment, Context
from plugins.module_utils.workers.machine import Machine
from plugins.module_utils.workers.worker import Worker
from plugins.module_utils.workers.worker_identity import WorkerIdentities
from plugins.module_utils.workers.worker_spec import Gpu, WorkerSetOptions, WorkerSpec
from plugins.module_utils.workers.worker_state import KEYS
from tests.fakes import hardware
from tests.fakes.worker_cluster import RDMA_GROUP, FakeWorkerCluster, machine, plain_card, rdma_card, with_values

T4 = (Gpu("grid_t4-16c"),)
OURS = {"built": True, "name": "w1", "cluster": "gpu", "role": "worker", "tenant": ""}
GIVEN = {"template": "golden", "clone": "full", "reserve_memory": True, "role": "worker", "tenant": "", "power": "on"}
WINDOW = {"pciPassthru__use64bitMMIO": "1", "pciPassthru__64bitMMIOSizeGB": "32"}


def settings(**more: str) -> dict[str, Any]:
    return {"config__extraConfig": hardware.settings(**WINDOW, **more)}


def worker(
    cluster: FakeWorkerCluster,
    assigned: Assignment | None = None,
    gpus: Any = T4,
    call: dict[str, Any] | None = None,
    **given: Any,
) -> Worker:
    context = Context(cluster, WorkerSetOptions("gpu", **(call or {})), clone.CloneLocations(cluster))
    return Worker(context, WorkerSpec("w1", {**GIVEN, **given}, gpus), assigned or Assignment("esx1"))


def planned(cluster: FakeWorkerCluster, *args: Any, **more: Any) -> Plan:
    one = worker(cluster, *args, **more)
    return one.plan(one.read())


def ours(*devices: Any, **more: Any) -> FakeWorkerCluster:
    cluster = FakeWorkerCluster(machine("w1", *(devices or (hardware.vgpu(),)), **{**settings(), **more}))
    cluster.marks["w1"] = OURS
    return cluster


def renamed(*, shown: str = "gpu-7", **call: Any) -> Worker:
    """Return the worker w1 with another name in vCenter, and in another folder than in its options."""
    cluster = ours(config__instanceUuid="50-1")
    cluster.machines["w1"] = replace(with_values(cluster.machines["w1"], {"name": shown}), worker="w1")
    cluster.marks["w1"] = {**OURS, "uuid": "50-1"}
    subject = worker(cluster, folder="gpu workers", call=call)
    folders = {"folder-1": "archive", "folder-2": "gpu workers"}
    known = [(vim.Folder(key), {"name": name, "childType": ["VirtualMachine"]}) for key, name in folders.items()]
    subject.context.locations._known[vim.Folder] = known
    return subject


def test_warns_about_renamed_or_moved_workers_without_changes() -> None:
    subject = renamed()
    current = subject.read()
    assert (current["name"], current["folder"]) == ("gpu-7", "archive")
    plan = subject.plan(current)
    assert keys(plan) == set()
    assert plan.warnings[:2] == (
        "it was renamed: vCenter shows it as gpu-7; put_back: true renames it back",
        "it was moved: it is in archive, not in gpu workers; put_back: true moves it back",
    )


def test_put_back_restores_a_renamed_worker() -> None:
    subject = renamed(put_back=True)
    plan = subject.plan(subject.read())
    assert {one.key: (one.before, one.after) for one in plan.changes} == {
        "name": ("gpu-7", "w1"),
        "folder": ("archive", "gpu workers"),
    }
    assert (plan.needs, "somebody" in str(plan.warnings)) == (frozenset(), False)
    subject.cluster._light = [(vim.VirtualMachine("vm-9"), {"name": "w1"})]
    with pytest.raises(Refused, match="w1: could not rename gpu-7 back: another virtual machine has that name"):
        subject.plan(subject.read())


def test_refuses_a_machine_of_another_renamed_worker() -> None:
    cluster = ours()
    cluster.marks["w1"] = {**OURS, "name": "w2"}
    with pytest.raises(Refused, match="is the worker w2, renamed in vCenter; name it w2 again"):
        planned(cluster)


def test_adds_the_uuid_to_an_older_mark() -> None:
    cluster = ours(config__instanceUuid="50-1")
    plan = planned(cluster)
    assert keys(plan) == {"mark"} and plan.after["mark"] == {**OURS, "uuid": "50-1"}


def keys(plan: Plan) -> set[str]:
    return {change.key for change in plan.changes}


def test_missing_worker_has_every_key() -> None:
    assert worker(FakeWorkerCluster()).read() == {**dict.fromkeys(KEYS), "exists": False}


def test_clones_a_new_worker_with_its_options() -> None:
    plan = planned(FakeWorkerCluster(machine("golden", on=False)), Assignment("esx2"), cpus=8, memory_mb=16384)
    assert plan.after["host"] == "esx2"
    assert (plan.after["cpus"], plan.after["memory_mb"], plan.after["memory_reserved"]) == (8, 16384, True)
    assert (plan.after["gpus"], plan.after["mmio_gb"], plan.after["power"]) == (["grid_t4-16c"], 32, "on")
    assert plan.after["mark"] == OURS
    assert plan.why == ("it is cloned from golden to esx2",)
    assert plan.needs == frozenset()


def test_ignores_another_spelling_of_the_memory_window() -> None:
    assert keys(planned(ours())) == set()


def test_refuses_a_new_worker_without_a_template() -> None:
    with pytest.raises(Refused, match="it does not exist, and no template is set"):
        planned(FakeWorkerCluster(), template=None)
    with pytest.raises(Refused, match="find the template 'golden'"):
        planned(FakeWorkerCluster())


@pytest.mark.parametrize(
    ("devices", "more", "hot", "why"),
    [
        ((hardware.vgpu(),), {}, True, ""),
        ((hardware.vgpu(),), {}, False, "its vGPU, because this vCenter does not migrate running machines with vGPUs"),
        ((hardware.vgpu("grid_t4-8c", 1), hardware.vgpu("grid_t4-8c", 1)), {}, False, "its vGPU"),
        ((hardware.vgpu(), hardware.sriov_card()), {}, True, "an SR-IOV network card"),
        ((hardware.vgpu(), hardware.passed(hardware.NIC, hardware.MELLANOX)), {}, True, "PCI device 0000:5e:00.0"),
        ((hardware.vgpu(),), settings(pciPassthru0__cfg__enable_uvm="TRUE"), True, "pciPassthru0.cfg.enable_uvm"),
        ((), {}, False, ""),
    ],
)
def test_running_worker_moves_hot_unless_devices_prevent_it(
    devices: tuple[Any, ...], more: dict[str, Any], hot: bool, why: str
) -> None:
    cluster = FakeWorkerCluster(machine("w1", *devices, **{**settings(), **more}))
    cluster.marks["w1"] = OURS
    cluster.__dict__["hot_migrate"] = hot
    plan = planned(cluster, Assignment("esx2"), None)
    assert keys(plan) == {"host"}
    assert (POWER_OFF in plan.needs, why in str(plan.unmet)) == (bool(why), True)


def test_bios_with_a_large_bar_is_warned_of() -> None:
    cluster = FakeWorkerCluster(machine("golden", on=False, config__firmware="bios"))
    gpus = (Gpu(device=hardware.request("10de:20f1"), memory_gb=40),)
    assert "its firmware is BIOS" in planned(cluster, gpus=gpus).warnings[0]
    assert planned(FakeWorkerCluster(machine("golden", on=False)), gpus=gpus).warnings == ()


def test_another_firmware_is_refused() -> None:
    with pytest.raises(Refused, match="an installed system does not boot with another firmware"):
        planned(FakeWorkerCluster(machine("golden", on=False)), firmware="bios")


CARD, V1 = {"portgroup": RDMA_GROUP}, {"portgroup": RDMA_GROUP, "protocol": "rocev1"}
PASSED = (Gpu(device=hardware.request("10de:20f1"), memory_gb=40),)


@pytest.mark.parametrize(
    ("version", "cards", "gpus", "refused"),
    [
        ("vmx-12", [V1], T4, "golden has virtual hardware 12, which supports no PVRDMA cards"),
        ("vmx-13", [V1], T4, ""),
        ("vmx-13", [CARD], T4, "supports PVRDMA cards with rocev1, not with rocev2; request what it supports"),
        ("vmx-14", [CARD], T4, ""),
        ("vmx-18", [CARD, CARD], T4, "supports at most 1 PVRDMA cards, not 2"),
        ("vmx-19", [CARD, CARD], T4 * 4, ""),
        ("vmx-20", [V1], T4, "supports PVRDMA cards with rocev2, not with rocev1"),
        ("vmx-19", [], T4 * 5, "supports at most 4 vGPUs, not 5"),
        ("vmx-21", [], T4 * 16, ""),
        ("vmx-19", [], (*T4, *PASSED * 16), "supports at most 16 devices in passthrough, not 17"),
        (None, [CARD], T4 * 20, ""),
    ],
)
def test_worker_refuses_devices_beyond_its_virtual_hardware(
    version: str | None, cards: list[dict[str, str]], gpus: tuple[Gpu, ...], refused: str
) -> None:
    cluster = FakeWorkerCluster(machine("golden", on=False, config__version=version))
    if not refused:
        assert len(planned(cluster, gpus=gpus, rdma_nics=cards).after["rdma_nics"]) == len(cards)
        return
    with pytest.raises(Refused, match=refused):
        planned(cluster, gpus=gpus, rdma_nics=cards)
    assert planned(cluster).changes, "with less the same template will do"


def test_worker_with_its_devices_asks_for_no_limits() -> None:
    cluster = ours(rdma_card(), hardware.vgpu(), config__version="vmx-13")

    assert keys(planned(cluster, rdma_nics=[CARD])) == set()


def test_puts_assigned_addresses_into_cards_and_cloud_init() -> None:
    macs = {"rdma_nics 0": "00:50:56:3f:00:01", "management_nic": "00:50:56:3f:00:02"}
    cluster, guest = FakeWorkerCluster(machine("golden", on=False)), {"guest": {"user": "me"}}
    given = {"rdma_nics": [{"portgroup": RDMA_GROUP}], "management_nic": {"portgroup": "VM Network"}}
    plan = planned(cluster, Assignment("esx1", macs=macs), **given, **guest)
    assert plan.after["rdma_nics"][0]["mac"] == macs["rdma_nics 0"]
    assert macs["management_nic"] in str(plan.after["guest"])
    untold = planned(cluster, Assignment("esx1", macs=macs), **given)
    assert (untold.after["rdma_nics"][0]["mac"], untold.after["guest"]) == (None, None)


def test_interrupted_clone_gets_the_assigned_addresses() -> None:
    macs = {"rdma_nics 0": "00:50:56:3f:00:01", "management_nic": "00:50:56:3f:00:02"}
    left = hardware.settings(**{worker_mark.BUILDING: "w1"})
    cluster = FakeWorkerCluster(
        machine("golden", on=False),
        machine("w1", plain_card(mac="00:50:56:9a:00:07"), on=False, config__extraConfig=left),
    )
    given = {"management_nic": {"portgroup": "VM Network"}, "guest": {"user": "me"}}
    started = Assignment("esx1", macs=macs, cloned=True)
    assert planned(cluster, started, **given).after["management_nic"]["mac"] == macs["management_nic"]
    kept = planned(ours(hardware.vgpu(), plain_card()), Assignment("esx1", macs=macs), **given)
    assert kept.after["management_nic"]["mac"] == "00:50:56:01:02:03", "a finished worker keeps its address"


def test_a_second_rdma_card_is_a_difference() -> None:
    cluster = ours(hardware.vgpu(), rdma_card(), rdma_card(4002, "00:50:56:01:02:05"))
    plan = planned(cluster, rdma_nics=[{"portgroup": RDMA_GROUP}])
    (change,) = plan.changes
    assert (change.key, len(change.before), change.after) == ("rdma_nics", 2, change.before[:1])


def absent(cluster: FakeWorkerCluster, **call: Any) -> Plan:
    one = AbsentWorker(
        Context(cluster, WorkerSetOptions("gpu", state="absent", **call), clone.CloneLocations(cluster)),
        WorkerSpec("w1", {}),
    )
    return one.plan(one.read())


def test_deletes_a_running_worker_only_with_power_cycle() -> None:
    plan = absent(ours())
    assert (plan.after["exists"], plan.needs) == (False, {POWER_OFF})
    assert plan.unmet == ("it runs: set power_cycle: true to shut it down first",)
    assert absent(ours(), power_cycle=True).unmet == ()
    assert absent(ours(on=False)).needs == frozenset()


def test_running_worker_stops_only_with_power_cycle() -> None:
    (reason,) = planned(ours(), power="off").unmet
    assert reason.startswith("it runs, and its power is to be off: set power_cycle: true")
    for plan in (planned(ours(), power="off", call={"power_cycle": True}), planned(ours(on=False), power="off")):
        assert plan.unmet == ()


def test_deletes_a_suspended_worker_only_with_power_cycle() -> None:
    suspended = {"runtime__powerState": "suspended"}
    (reason,) = absent(ours(**suspended)).unmet
    assert reason.startswith("it is suspended, with its processes in memory")
    assert absent(ours(**suspended), power_cycle=True).unmet == ()


def test_inaccessible_worker_keeps_its_mark() -> None:
    cluster = ours()
    one = cluster.machines["w1"]
    shown = {key: value for key, value in one.values.items() if not key.startswith("config.")}
    cluster.machines["w1"] = Machine(one.session, one.ref, {**shown, "runtime.powerState": "poweredOff"}, "w1")
    cluster.unconfirmed.add("w1")
    for make in (absent, planned):
        with pytest.raises(Refused, match=r"w1: could not .*: vCenter does not show its configuration"):
            make(cluster)
    with pytest.raises(Refused, match="does not show its configuration"):
        planned(cluster, call={"adopt": True})


@pytest.mark.parametrize("make", [absent, planned])
def test_inaccessible_renamed_worker_is_neither_built_nor_forgotten(make: Any) -> None:
    cluster = ours()
    one = cluster.machines.pop("w1")
    text = json.dumps({"name": "w1", "cluster": "gpu", "uuid": "50-1"})
    values = {"name": "w1-old", "customValue": [vim.CustomFieldsManager.StringValue(key=101, value=text)]}
    field = vim.CustomFieldsManager.FieldDef(key=101, name=worker_mark.ATTRIBUTE)
    cluster.identities = WorkerIdentities([field], [(one.ref, values)])

    with pytest.raises(Refused, match=r"w1-old carries its mark, and vCenter does not show its configuration"):
        make(cluster)


def test_absent_only_removes_an_adopted_workers_mark() -> None:
    cluster = ours()
    cluster.marks["w1"] = {**OURS, "built": False}
    assert keys(absent(cluster)) == {"mark", "confirmed"}


def test_refuses_to_change_or_delete_an_unconfirmed_worker() -> None:
    cluster = ours()
    cluster.unconfirmed.add("w1")

    with pytest.raises(Refused, match=r"does not confirm its mark.*set adopt: true once"):
        planned(cluster, cpus=8)
    adopted = planned(cluster, call={"adopt": True})
    gone = absent(cluster, power_cycle=True)

    assert (adopted.after["mark"]["built"], keys(adopted)) == (False, {"mark", "confirmed"})
    assert (gone.after["exists"], gone.after["mark"], gone.needs) == (True, None, frozenset())
    assert "it stays, and only its mark is removed" in gone.warnings[0]


@pytest.mark.parametrize(
    ("extra", "is_confirmed"),
    [
        ({}, False),
        ({worker_mark.CONFIRMATION: "built 50-1 w1"}, True),
        ({worker_mark.CONFIRMATION: "adopted 50-1 w1"}, False),
        ({worker_mark.CONFIRMATION: "built 50-2 w1"}, False),  # a clone of the worker
        ({worker_mark.CONFIRMATION: "built 50-1 w2"}, False),
        ({worker_mark.BUILDING: "w1"}, True),
        ({worker_mark.BUILDING: "w2"}, False),
    ],
)
def test_a_machine_confirms_its_name_uuid_and_origin(extra: dict[str, str], is_confirmed: bool) -> None:
    there = machine("w1", config__instanceUuid="50-1", config__extraConfig=hardware.settings(**extra))
    assert worker_mark.is_confirmed(OURS, there) is is_confirmed


@pytest.mark.parametrize(
    ("marked", "words"),
    [
        (None, "carries no mark of this collection"),
        ({**OURS, "cluster": "other"}, "names cluster other"),
        ({**OURS, "name": "w2"}, "it is the worker w2, renamed in vCenter"),
    ],
)
def test_foreign_machines_are_left_alone(marked: Any, words: str) -> None:
    cluster = ours()
    cluster.marks = {"w1": marked} if marked else {}
    plan = absent(cluster)
    assert (keys(plan), words in plan.warnings[0]) == (set(), True)


def test_removed_objects_are_gone() -> None:
    assert keys(absent(FakeWorkerCluster())) == set()
