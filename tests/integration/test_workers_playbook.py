"""playbooks/workers.yml with the lab's inventory."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import yaml

from lab.simulator import DATACENTRES, ROOT, Simulator
from tests.integration.ansible import Ansible
from tests.integration.releases import NEWEST
from tests.integration.workers import switch

pytestmark = pytest.mark.release(NEWEST)

INVENTORY = ROOT / "inventories" / "lab" / "hosts.yml"
PLAYBOOK = ROOT / "playbooks" / "workers.yml"
NAMES = {f"worker0{number}" for number in range(1, 5)}
RECONFIGURE = "ReconfigureComputeResource_Task"


@pytest.fixture
def prepared(start: Callable[..., Simulator]) -> Simulator:
    """The lab's data centre with hosts that share their GPUs already."""
    lab = yaml.safe_load((DATACENTRES / "ready.yml").read_text())
    driver = {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "550.90.05", "vendor": "NVIDIA"}
    lab["host_defaults"].update(graphics={"default": "sharedDirect"}, vibs=[driver])
    return start(text=yaml.safe_dump(lab))


def guest(number: int) -> dict[str, str]:
    """The addresses of a worker as the inventory has them."""
    return {"address": f"10.0.1.{10 + number}/24", "rdma_addresses": [f"10.216.1.{10 + number}/16"]}


def written(vcenter: Simulator) -> list[tuple[str, str]]:
    """The writes of the last run without those of the lock: method and the name of its object."""
    return [(write["method"], write["name"]) for write in vcenter.writes() if write["type"] != "Folder"]


@pytest.mark.every_release
def test_four_workers_come_once_and_are_repaired_while_a_fifth_comes(
    prepared: Simulator, ansible_for: Callable[[Simulator], Ansible]
) -> None:
    ansible = ansible_for(prepared)
    shown = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), "--check", "--diff")
    assert (shown.rc, prepared.writes()) == (0, []), shown.out
    assert "worker01: changes" in shown.out
    assert "+    one_per_host:" in shown.out
    built = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY))
    assert built.rc == 0, built.out
    assert "4 workers match their description" in built.out
    assert "  worker01: is cloned from debian-12 to esx01.lab [" in built.out
    assert "  worker04: its guest has the address 10.0.1.14 [" in built.out
    assert "worker04: runs on esx04.lab, grid_t4-16c, 10.0.1.14" in built.out
    assert [method for method, _name in written(prepared)].count(RECONFIGURE) == 1
    prepared.clear()
    again = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY))
    assert (again.rc, prepared.writes()) == (0, []), again.out
    assert "changed=0" in again.out
    switch(prepared, "worker03", on=False)
    prepared.clear()
    noticed = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), "--check", "--diff")
    assert "+    power: 'on'" in noticed.out, noticed.out
    assert "it differs in power" in noticed.out
    five = [{"name": f"worker0{number}", "guest": guest(number)} for number in range(1, 6)]
    repaired = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), "-e", json.dumps({"worker_vms": five}))
    assert repaired.rc == 0, repaired.out
    assert [method for method, name in written(prepared) if name == "worker03"] == ["PowerOnVM_Task"]
    assert {name for _method, name in written(prepared)} == {"debian-12", "worker03", "worker05", "gpu"}


def test_rules_and_overrides_come_after_the_workers_and_go_before_them(
    prepared: Simulator, ansible_for: Callable[[Simulator], Ansible]
) -> None:
    ansible = ansible_for(prepared)
    two = {"worker_vms": [{"name": "worker01"}, {"name": "worker02"}], "worker_wait_for_address": False}
    overrides = {"worker_drs_override": "manual", "worker_restart_priority": "high"}
    built = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), "-e", json.dumps({**two, **overrides}))
    assert built.rc == 0, built.out
    assert [method for method, _name in written(prepared)][-3:] == ["SetField", "SetField", RECONFIGURE]
    gone = {**two, "worker_state": "absent"}
    prepared.clear()
    refused = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), "-e", json.dumps(gone))
    assert refused.rc == 2 and "not now: it runs: set power_cycle: true" in refused.out, refused.out
    assert prepared.writes() == []
    done = ansible.playbook(
        PLAYBOOK, "-i", str(INVENTORY), "-e", json.dumps({**gone, "power_cycle": True, "unreachable_is_idle": True})
    )
    assert done.rc == 0, done.out
    methods = [method for method, _name in written(prepared)]
    assert methods[:3] == [RECONFIGURE, "SetField", "SetField"] and methods.count("Destroy_Task") == 2


def test_wrong_options_and_a_list_of_another_inventory_end_with_their_sentence(
    prepared: Simulator, ansible_for: Callable[[Simulator], Ansible]
) -> None:
    ansible = ansible_for(prepared)

    def run(names: list[str], *more: str, **options: object) -> tuple[int, str]:
        given = {"worker_vms": [{"name": name, **options} for name in names], "worker_wait_for_address": False}
        done = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), "-e", json.dumps(given), *more)
        return done.rc, " ".join(done.out.split())

    for option in ({"gpu": None}, {"cpus": "many"}):
        rc, out = run(["worker01"], **option)
        # ansible-core 2.21 shows the result of changed_when with each failure.
        assert rc == 2 and next(iter(option)) in out, out
        assert "changed_when" not in out.replace("changed_when_result", ""), out
    assert run(["worker01", "worker02"])[0] == 0
    prepared.clear()
    rc, out = run(["worker03", "worker04"])
    assert rc == 2 and prepared.writes() == [], out
    assert "could not remove the rules and overrides of worker01, worker02: the set 'workers' contains these" in out
    for state in ("present", "absent"):
        rc, out = run([], "-e", f"worker_state={state}")
        assert rc == 2 and "worker_vms has no worker" in out and prepared.writes() == [], out
    assert run(["worker03", "worker04"], "-e", "worker_rules_name=second")[0] == 0
