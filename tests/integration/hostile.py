"""A data centre whose names, marks and guests hold templates; each that is ever evaluated leaves a file behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from lab.simulator import DATACENTRES, Simulator
from plugins.module_utils.workers import worker_mark
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.sites import DRIVER

VARIABLE = "DML_CANARY"
# Addresses that a guest reports: that of a host that is not there or of this machine's neighbour.
ADDRESS = "10.88.0.9"


def template(place: str) -> str:
    """A text that leaves the file of its place behind when someone evaluates it as a template."""
    return "{{ lookup('pipe', 'touch $" + VARIABLE + "." + place + "') }}"


class Hostile:
    """The data centre, Ansible against it, and the templates that were evaluated so far."""

    def __init__(self, vcenter: Simulator, ansible: Ansible) -> None:
        self.vcenter, self.ansible = vcenter, ansible
        self._canary = ansible.folder / "canary"
        ansible.environment[VARIABLE] = str(self._canary)

    def evaluated(self) -> list[str]:
        """The places whose template was evaluated."""
        return sorted(path.name for path in self._canary.parent.glob(f"{self._canary.name}.*"))

    def report(self, machine: str, **reported: str) -> None:
        """Have a guest report an address."""
        self.vcenter.ask("PUT", f"/vms/{quote(machine)}/guest", reported)


def marked(name: str, **more: Any) -> dict[str, Any]:
    """The mark of a worker with this name, which its machine confirms."""
    whole = worker_mark.desired_mark(name, {"built": True}, cluster="gpu", role="worker", tenant="lab") | more
    return {"attributes": {worker_mark.ATTRIBUTE: json.dumps(whole)}, "extra_config": {worker_mark.BUILDING: name}}


def _machines() -> list[dict[str, Any]]:
    """Workers of ours whose name, mark or guest is hostile, and machines of others."""
    on = {"host": "esx01.lab", "powered_on": True, "vgpu": "grid_t4-4c"}
    named = template("name")
    return [
        {"name": "worker01", **on, **marked("worker01", role=template("role"), tenant=template("tenant"))},
        {"name": "worker02", **on, **marked("worker02", cluster="gpu")},
        {"name": named, "host": "esx02.lab", "powered_on": True, **marked(named)},
        {"name": template("stranger"), "host": "esx02.lab", "powered_on": True, "passthrough": "gpu"},
        {"name": "later", "host": "esx02.lab", "folder": template("folder"), "owner": template("owner")},
    ]


def datacentre() -> str:
    """The lab's data centre with two hosts, one of them with a hostile name, and hostile machines."""
    lab = yaml.safe_load((DATACENTRES / "ready.yml").read_text())
    lab["host_defaults"].update(graphics={"default": "sharedDirect"}, vibs=[DRIVER])
    lab["clusters"][0]["hosts"] = [{"name": "esx01.lab"}, {"name": "esx02.lab"}, {"name": template("host")}]
    lab["vms"] = [one for one in lab.get("vms") or [] if one.get("template")] + _machines()
    return yaml.safe_dump(lab)


def begin(start: Start, ansible_for: AnsibleFor) -> Hostile:
    """The data centre with its guests, which have reported their texts."""
    vcenter = start(text=datacentre())
    hostile = Hostile(vcenter, ansible_for(vcenter))
    hostile.report("worker01", hostname=template("guest"), address=ADDRESS)
    hostile.report("worker02", hostname="worker02", address=template("address"))
    vcenter.clear()
    return hostile


def play(folder: Path) -> Path:
    """A playbook that shows all that the inventory says of the workers, as anybody may write one."""
    shown = "{{ inventory_hostname }} {{ ansible_host | default('') }} {{ hostvars[inventory_hostname] }} {{ groups }}"
    tasks = [
        {"ansible.builtin.debug": {"msg": shown}},
        {"ansible.builtin.set_fact": {"again": "{{ vm_role }}-{{ hostvars[inventory_hostname].vm_tenant }}"}},
        {"ansible.builtin.debug": {"msg": "{{ hostvars[inventory_hostname].again }} {{ group_names }}"}},
    ]
    path = folder / "show.yml"
    plays = [{"hosts": "workers", "gather_facts": False, "vars": {"ansible_connection": "local"}, "tasks": tasks}]
    path.write_text(json.dumps(plays))
    return path
