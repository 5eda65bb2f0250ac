"""The README's inventory, with the README's commands: one driver option on every host, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.simulator import ROOT, Simulator
from tests.integration.ansible import Ansible
from tests.integration.rolling import datacentre

INVENTORY = (ROOT / "README.md").read_text().split("```yaml\n")[1].split("```")[0]
HOSTS = [f"esx0{number}.lab" for number in (1, 2)]
# The lock of the cluster is a folder, and a note of the host keeps the option that was active before.
LOCK = {"CreateFolder", "Rename_Task", "Destroy_Task", "MoveIntoFolder_Task"}
NOTES = {"AddCustomFieldDef", "SetField", "RemoveCustomFieldDef"}
CHANGE = {"UpdateModuleOptionString", "EnterMaintenanceMode_Task", "RebootHost_Task", "ExitMaintenanceMode_Task"}


@pytest.mark.datacentre(text=datacentre(*(f"name: {name}" for name in HOSTS)))
def test_smallest_inventory_changes_only_one_option_per_host(
    vcenter: Simulator, ansible: Ansible, tmp_path: Path
) -> None:
    inventory = tmp_path / "hosts.yml"
    inventory.write_text(INVENTORY)
    evidence = ["-e", f"esxi_host_evidence_dir={tmp_path / 'evidence'}"]

    def run(playbook: str, *arguments: str) -> str:
        done = ansible.playbook(f"playbooks/{playbook}.yml", "-i", str(inventory), *arguments)
        assert done.rc == 0, done.out
        return done.out

    run("site", "--check", "--diff")
    assert vcenter.writes() == []
    run("site", *evidence)
    writes = [(write["method"], write["name"]) for write in vcenter.writes() if write["method"] not in LOCK | NOTES]
    assert sorted(writes) == sorted((method, host) for method in CHANGE for host in HOSTS)
    vcenter.clear()
    assert "changed=0" in run("site", *evidence)
    assert vcenter.writes() == []
