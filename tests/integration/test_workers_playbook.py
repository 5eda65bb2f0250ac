"""playbooks/workers.yml with the lab's inventory."""

from __future__ import annotations

import json
from functools import partial

import pytest
import yaml

from lab.simulator import DATACENTRES, ROOT, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Outcome, Start
from tests.integration.releases import NEWEST
from tests.integration.workers import switch

pytestmark = pytest.mark.release(NEWEST)

INVENTORY = ROOT / "inventories" / "lab" / "hosts.yml"
PLAYBOOK = ROOT / "playbooks" / "workers.yml"
NAMES = {f"worker0{number}" for number in range(1, 5)}
RECONFIGURE = "ReconfigureComputeResource_Task"


@pytest.fixture
def prepared(start: Start) -> Simulator:
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


def ran(prepared: Simulator, ansible: Ansible, *options: str, **variables: object) -> Outcome:
    """Run the playbook, which must succeed; afterwards the server's log holds only the writes of this run."""
    prepared.clear()
    given = json.dumps({"worker_drs_override": "manual", "worker_restart_priority": "high", **variables})
    done = ansible.playbook(PLAYBOOK, "-i", str(INVENTORY), *options, "-e", given)
    assert done.rc == 0, done.out
    return done


@pytest.mark.every_release
def test_builds_repairs_and_removes_four_workers(prepared: Simulator, ansible_for: AnsibleFor) -> None:
    run = partial(ran, prepared, ansible_for(prepared))
    shown = run("--check", "--diff")
    assert prepared.writes() == [], shown.out
    assert "worker01: changes" in shown.out
    assert "+    one_per_host:" in shown.out
    built = run()
    assert "4 workers match their description" in built.out
    assert "  worker01: is cloned from debian-12 to esx01.lab [" in built.out
    assert "  worker04: its guest has the address 10.0.1.14 [" in built.out
    assert "worker04: runs on esx04.lab, grid_t4-16c, 10.0.1.14" in built.out
    methods = [method for method, _name in written(prepared)]
    assert methods.count(RECONFIGURE) == 1 and methods[-2:] == ["SetField", RECONFIGURE], "rules come last"
    again = run()
    assert prepared.writes() == [] and "changed=0" in again.out, again.out
    switch(prepared, "worker03", on=False)
    noticed = run("--check", "--diff")
    assert "+    power: 'on'" in noticed.out and "it differs in power" in noticed.out, noticed.out
    five = [{"name": f"worker0{number}", "guest": guest(number)} for number in range(1, 6)]
    run(worker_vms=five)
    assert [method for method, name in written(prepared) if name == "worker03"] == ["PowerOnVM_Task"]
    assert {name for _method, name in written(prepared)} == {"debian-12", "worker03", "worker05", "gpu"}
    run(worker_vms=five, worker_state="absent", power_cycle=True, unreachable_is_idle=True)
    methods = [method for method, _name in written(prepared)]
    assert methods[0] == RECONFIGURE and methods.count("Destroy_Task") == 5, "rules go first"


@pytest.mark.parametrize(
    ("workers", "sentence"), [([{"name": "worker01", "cpus": "many"}], "cpus"), ([], "worker_vms has no worker")]
)
def test_refuses_workers_that_cannot_be_built(
    prepared: Simulator, ansible_for: AnsibleFor, workers: list[dict[str, str]], sentence: str
) -> None:
    given = ("-i", str(INVENTORY), "-e", json.dumps({"worker_vms": workers}))

    refused = ansible_for(prepared).playbook(PLAYBOOK, *given)

    assert refused.rc == 2 and prepared.writes() == [] and sentence in " ".join(refused.out.split()), refused.out
    # ansible-core 2.21 shows the result of changed_when with each failure.
    assert "changed_when" not in refused.out.replace("changed_when_result", "")
