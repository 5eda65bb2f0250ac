"""Small clusters from bare network to workers: their data centre and inventory, and runs of the playbooks on them."""

from __future__ import annotations

import json
from typing import Any

import yaml

from lab.simulator import DATACENTRES, ROOT, Simulator
from tests.integration.ansible import Ansible, Outcome
from tests.integration.fabrics import addresses
from tests.integration.rolling import LAB, recap

DRIVER = {"name": "NVD-AIE_ESXi_8.0.0_Driver", "version": "550.90.05-1OEM.800.1.0.20613240", "vendor": "NVIDIA"}


def datacentre(hosts: int = 2, *, prepared: bool = True) -> str:
    """The lab's data centre with fewer hosts that boot at once; ``prepared`` ones share their GPUs already."""
    lab = yaml.safe_load((DATACENTRES / "lab.yml").read_text())
    lab["clusters"][0]["hosts"] = [{"name": "esx%02d.lab", "count": hosts}]
    lab["clusters"][0]["ha"] = {"enabled": False}
    lab["host_defaults"].update(reboot_seconds=0.2, vmotion_seconds=0.2)
    if prepared:
        lab["host_defaults"].update(graphics={"default": "sharedDirect", "policy": "performance"}, vibs=[DRIVER])
    return yaml.safe_dump(lab)


def worker(number: int, **more: Any) -> dict[str, Any]:
    """One worker as the lab's inventory describes it."""
    guest = {"address": f"10.0.1.{10 + number}/24", "rdma_addresses": [f"10.216.1.{10 + number}/16"]}
    return {"name": f"worker{number:02}", "guest": guest, **more}


class Site:
    """Runs of the playbooks on a cluster with that many hosts and workers."""

    def __init__(self, vcenter: Simulator, ansible: Ansible, hosts: int = 2, workers: int = 2) -> None:
        self.vcenter, self.ansible = vcenter, ansible
        self.evidence = ansible.folder / "evidence"
        ansible.environment["DML_EVIDENCE_DIR"] = str(self.evidence)
        names = [f"esx{number:02}.lab" for number in range(1, hosts + 1)]
        adapter = {"port_group": "rdma-vmk", "device": "vmk1", "network": "10.216.0.0/24", "services": []}
        self.variables: dict[str, Any] = {
            "fabric_adapters": [{**adapter, "addresses": addresses(names)}],
            "worker_vms": [worker(number) for number in range(1, workers + 1)],
            "worker_address_timeout": 30,
        }

    def build(self, workers: int) -> None:
        """Network and workers without the time that a playbook takes."""
        inventory = yaml.safe_load((ROOT / "inventories" / "lab" / "group_vars" / "clusters.yml").read_text())
        adapters = self.variables["fabric_adapters"]
        desired = self.variables["worker_vms"][:workers]
        for done in (
            self.ansible.module(
                "rdma_fabric", cluster="gpu", port_groups=inventory["fabric_port_groups"], adapters=adapters
            ),
            self.ansible.module("worker_vm", cluster="gpu", defaults=inventory["worker_defaults"], workers=desired),
        ):
            assert done.rc == 0, done.msg

    def run(self, playbook: str, *options: str, **variables: Any) -> Outcome:
        """Run a playbook; afterwards the server's log holds only the writes of this run."""
        self.vcenter.clear()
        given = json.dumps({**self.variables, **variables})
        return self.ansible.playbook(f"playbooks/{playbook}.yml", *LAB, *options, "-e", given)

    def good(self, playbook: str, *options: str, **variables: Any) -> Outcome:
        """The same, where it must succeed."""
        outcome = self.run(playbook, *options, **variables)
        assert outcome.rc == 0, outcome.out
        return outcome

    def quiet(self, playbook: str, *options: str, **variables: Any) -> Outcome:
        """The same, where it must send no write and, unless it only checks, say that nothing was changed."""
        outcome = self.good(playbook, *options, **variables)
        assert self.vcenter.writes() == [], outcome.out
        assert "--check" in options or recap(outcome)["changed"] == 0, outcome.out
        return outcome

    def written(self) -> list[tuple[str, str]]:
        """The writes of the last run: method and the name of its object."""
        return [(write["method"], write["name"]) for write in self.vcenter.writes()]
