"""One move of a running worker, and the plan of many, against the simulated data centre."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import USERNAME, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.killing import beside, has_answered, has_waited, kill_all, wait_for
from tests.integration.workers import HOSTS, desired, do, host_of, machine, move, switch

WORKER, HOME, FREE = "worker01", "esx01.lab", "esx05.lab"
TAGGED = HOSTS.replace("  hardware: t4_cx5\n", "  hardware: t4_cx5\n  options: {Net.PVRDMAVmknic: vmk1}\n")


@pytest.fixture
def place(start: Start, request: pytest.FixtureRequest) -> Simulator:
    """The data centre; a test may ask for other words of its description by parametrizing this fixture."""
    return start(text=getattr(request, "param", "") + TAGGED)


@pytest.fixture
def ansible(place: Simulator, ansible_for: AnsibleFor) -> Ansible:
    made = ansible_for(place)
    done = made.module("worker_vm", **desired())
    assert done.rc == 0, done.out
    place.clear()
    return made


def go(ansible: Ansible, check: bool = False, **more: Any) -> Any:
    return ansible.module("vmotion", check=check, **{"cluster": "gpu", "worker": WORKER, "target": FREE, **more})


def encrypting(ansible: Ansible, how: str) -> Any:
    """Set the encryption of the workers' moves."""
    defaults = {**desired()["defaults"], "vmotion_encryption": how}
    return ansible.module("worker_vm", **{**desired(), "defaults": defaults})


def moves(place: Simulator) -> list[str]:
    return [write["name"] for write in place.writes() if write["method"] == "RelocateVM_Task"]


@pytest.mark.parametrize(
    ("place", "first"),
    [
        ("", "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent"),
        ("encrypted_vmotion: false\n", "VmBeingHotMigratedEvent"),
    ],
    indirect=["place"],
    ids=["encrypted", "plain"],
)
def test_plans_makes_and_observes_a_move_once(place: Simulator, ansible: Ansible, first: str) -> None:
    encryption = "opportunistic" if first == "VmBeingHotMigratedEvent" else "required"
    assert encrypting(ansible, encryption).changed and not encrypting(ansible, encryption).changed
    place.clear()
    planned = go(ansible, check=True)
    assert (planned.changed, planned.result["unmet"], moves(place)) == (True, [], []), planned.out
    before, done = time.time(), go(ansible)
    assert done.rc == 0, done.out
    move = done.result["move"]
    assert (move["worker"], move["source"], move["target"]) == (WORKER, HOME, FREE)
    assert (move["ok"], move["attached"]) == (True, False)
    assert before <= move["started"] <= move["completed"] <= time.time()
    assert abs(move["completed"] - move["started"] - move["seconds"]) < 1e-3
    assert move["vsphere"] == {
        "hot_migration": True,
        "encrypted": first != "VmBeingHotMigratedEvent",
        "power_cycled": False,
        "host": {"before": HOME, "after": FREE},
        "gpus": {"before": [f"{HOME}/0000:3b:00.0"], "after": [f"{FREE}/0000:3b:00.0"]},
        "encryption": encryption,
        "stun_expected_s": 21.0,  # a T4-16C at 10 Gbit/s, by the simulated server
    }
    assert [one["kind"] for one in move["events"]] == [first, "VmEmigratingEvent", "VmMigratedEvent"]
    assert moves(place) == [WORKER]
    again = go(ansible)
    assert (again.changed, again.result.get("move"), moves(place)) == (False, None, [WORKER]), again.out


def test_encrypted_worker_moves_only_with_its_key_provider(place: Simulator, ansible: Ansible) -> None:
    native = vim.encryption.KeyProviderId(id="native")
    with machine(place, WORKER) as vm:
        vm.session.content.cryptoManager.RegisterKmsCluster(native, "nativeProvider")
        key = vim.encryption.CryptoKeyId(keyId="1", providerId=native)
        do(vm, vm.ref.PowerOffVM_Task())
        do(vm, vm.ref.ReconfigVM_Task(vim.vm.ConfigSpec(crypto=vim.encryption.CryptoSpecEncrypt(cryptoKeyId=key))))
        do(vm, vm.ref.PowerOnVM_Task())
    refused = encrypting(ansible, "disabled")
    assert "is encrypted, and vSphere always encrypts its moves" in refused.msg, refused.out
    moved = go(ansible)
    assert moved.rc == 0 and moved.result["move"]["vsphere"]["encrypted"], moved.out

    with machine(place, WORKER) as vm:
        vm.session.content.cryptoManager.UnregisterKmsCluster(native)
    lost = go(ansible, target=HOME)

    assert lost.rc == 1 and "its keys are of the key provider native, which vCenter does not show" in lost.msg, lost.out


@pytest.mark.parametrize("place", ["encrypted_vmotion: false\n"], indirect=True)
def test_worker_with_a_vtpm_moves_only_encrypted(place: Simulator, ansible: Ansible) -> None:
    with machine(place, WORKER) as vm:
        do(vm, vm.ref.PowerOffVM_Task())
        tpm = vim.vm.device.VirtualDeviceSpec(operation="add", device=vim.vm.device.VirtualTPM(key=-1))
        do(vm, vm.ref.ReconfigVM_Task(vim.vm.ConfigSpec(deviceChange=[tpm])))
        do(vm, vm.ref.PowerOnVM_Task())
    place.clear()

    refused = go(ansible)

    assert refused.rc == 1 and moves(place) == [], refused.out
    assert f"{HOME}, {FREE} do not support encrypted vMotion, and it is encrypted" in refused.msg, refused.out


def snapshot(place: Simulator) -> None:
    with machine(place, WORKER) as vm:
        do(vm, vm.ref.CreateSnapshot_Task(name="clean", memory=False, quiesce=False))


def test_names_blocking_problems_before_the_first_write(place: Simulator, ansible: Ansible) -> None:
    """One after another on one data centre; each is mended before the next."""
    refused(place, ansible, "(slots)", "esx02.lab", "worker02", target="esx02.lab")
    refused(place, ansible, "(stun)", "over 5 s", "the server's estimate", stun_budget=5)
    place.set_host(FREE, alarm="red")
    refused(place, ansible, "(alarm)", FREE)
    place.set_host(FREE, alarm="none")
    snapshot(place)
    refused(place, ansible, "(snapshot)", "remove it")
    accepted = go(ansible, check=True, accept=["snapshot"])
    assert accepted.result["unmet"] == [], accepted.out
    assert "accepted: it has a snapshot" in str(accepted.result["warnings"]), accepted.out
    switch(place, WORKER, on=False)
    refused(place, ansible, "it is powered off", "power it on")


def refused(place: Simulator, ansible: Ansible, *expected: str, **more: Any) -> None:
    outcome = go(ansible, **more)
    assert outcome.rc != 0, outcome.out
    for words in expected:
        assert words in outcome.msg, outcome.msg
    assert moves(place) == []


def test_reports_and_records_a_failed_move(place: Simulator, ansible: Ansible) -> None:
    place.fault("RelocateVM_Task", "task_fails", fault="HostConnectFault", message="The stun took too long.")
    failed = go(ansible)
    assert failed.rc != 0
    assert (
        f"{WORKER}: could not move it to {FREE}: the server said HostConnectFault: The stun took too long" in failed.msg
    )
    move = failed.result["move"]
    assert (move["ok"], move["vsphere"]["host"]) == (False, {"before": HOME, "after": HOME})
    assert "The stun took too long" in move["said"]
    assert move["completed"] >= move["started"]


def test_failed_call_reports_whether_the_move_started(place: Simulator, ansible: Ansible) -> None:
    place.fault("RelocateVM_Task", fault="NoPermission", properties={"PrivilegeId": "Resource.HotMigrate"})
    refused = go(ansible)
    assert refused.rc != 0 and refused.result["begun"] is False and "move" not in refused.result
    place.fault("RelocateVM_Task", "drop")
    lost = go(ansible)
    assert lost.rc != 0 and "the connection broke" in lost.msg
    assert lost.result["begun"] is True and "move" not in lost.result


def test_cancels_a_move_that_never_arrives(place: Simulator, ansible: Ansible) -> None:
    place.set_host(HOME, vmotion_seconds=40)
    late = go(ansible, move_timeout=2)
    assert late.rc != 0
    assert "it did not arrive within 2 s" in late.msg
    assert late.result["move"]["vsphere"]["host"] == {"before": HOME, "after": HOME}
    place.set_host(HOME, vmotion_seconds=0.1)
    # A cancelled task of the simulator ends at once; the slot at the target is free when the move noticed it.
    wait_for(lambda: go(ansible, check=True).result["unmet"] == [])
    again = go(ansible)
    assert again.rc == 0, again.out
    assert again.result["move"]["ok"]


def test_reports_a_server_that_ignores_the_move(place: Simulator, ansible: Ansible) -> None:
    place.fault("RelocateVM_Task", "deaf")
    deaf = go(ansible)
    assert deaf.rc != 0
    assert "the server accepted the change, yet host is 'esx01.lab', not 'esx05.lab'" in deaf.msg
    assert deaf.result["move"]["ok"] is False


def test_next_run_follows_a_killed_runs_move(place: Simulator, ansible: Ansible) -> None:
    place.set_host(HOME, vmotion_seconds=1200)
    arguments = {"cluster": "gpu", "worker": WORKER, "target": FREE}
    first = ansible.start_module("vmotion", **arguments)
    wait_for(has_answered(place, "RelocateVM_Task"))
    kill_all(first)
    place.ask("DELETE", "/calls")
    with beside(place, go, ansible) as following:
        wait_for(lambda: has_waited(place)() or following.done())
        assert not following.done(), "it waits for the end of the move"
        place.let_pass(1200)
        again = following.result()
    assert again.rc == 0, again.out
    assert (again.result["move"]["attached"], again.result["move"]["ok"]) == (True, True)
    assert moves(place) == [WORKER]


def test_waits_for_another_users_move_to_another_host(start: Start, ansible_for: AnsibleFor) -> None:
    place = start(text=TAGGED)
    ansible = ansible_for(place)
    assert ansible.module("worker_vm", **desired(1)).rc == 0
    place.clear()
    place.set_host(HOME, vmotion_seconds=30)
    with machine(place, WORKER) as vm:
        task = vm.ref.RelocateVM_Task(vim.vm.RelocateSpec(host=host_of(vm, "esx03.lab")))
        elsewhere = go(ansible)
        followed = go(ansible, check=True, target="esx03.lab")
        task.CancelTask()
    assert f"the task relocate of {USERNAME} is running on it: wait for its end. (task)" in elsewhere.msg
    assert followed.result["unmet"] == [], followed.out
    assert moves(place) == [WORKER]


def test_plan_moves_each_worker_once_into_free_slots(place: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("vmotion_plan", cluster="gpu")
    assert planned.rc == 0, planned.out
    free, seen = {FREE}, []
    for one in planned.result["moves"]:
        assert one["target"] in free
        free = free - {one["target"]} | {one["source"]}
        seen.append(one["worker"])
    assert sorted(seen) == [f"worker{number:02}" for number in range(1, 5)]
    assert (planned.result["profile"], planned.result["slots"][FREE]) == ("grid_t4-16c", 1)
    assert planned.result["rdma"] == planned.result["at"], "each has a paravirtual RDMA card on its host"
    home = ansible.module("vmotion_plan", cluster="gpu", workers=[WORKER], return_home=True)
    assert [(one["source"], one["target"]) for one in home.result["moves"]] == [(HOME, FREE), (FREE, HOME)]
    place.set_host(FREE, maintenance=True)
    full = ansible.module("vmotion_plan", cluster="gpu")
    assert full.rc != 0
    assert "free a slot or add a host" in full.msg
    unknown = ansible.module("vmotion_plan", cluster="gpu", workers=["worker9"])
    assert "its workers are worker01, worker02" in unknown.msg
    assert moves(place) == []


def test_finds_moves_and_power_changes_by_others(place: Simulator, ansible: Ansible) -> None:
    requested = {"cluster": "gpu", "since": time.time()}
    assert go(ansible).rc == 0
    move(place, WORKER, HOME)
    switch(place, "worker02", on=False)
    result = ansible.module("vmotion_info", **requested)
    assert result.rc == 0, result.out
    ours, theirs = result.result["moves"]
    assert [(one["source"], one["target"], one["ok"]) for one in (ours, theirs)] == [
        (HOME, FREE, True),
        (FREE, HOME, True),
    ]
    assert theirs["by"] == USERNAME
    assert ours["completed"] <= theirs["started"] <= theirs["completed"] <= time.time()
    assert ours["chain"] != theirs["chain"]
    assert [(one["worker"], one["what"]) for one in result.result["power"]] == [("worker02", "VmPoweredOffEvent")]
    later = ansible.module("vmotion_info", **{**requested, "since": time.time() + 5})
    assert (later.result["moves"], later.result["power"]) == ([], [])
    unknown = ansible.module("vmotion_info", workers=["worker9"], **requested)
    assert "its workers are worker01, worker02" in unknown.msg
