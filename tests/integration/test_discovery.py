"""From a vCenter to an inventory, and from the inventory to a preflight, for each data centre of the lab."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import DATACENTRES, Simulator
from tests.integration.ansible import BIN, Ansible, AnsibleFor, Start
from tests.integration.sites import DRIVER

# The values that only a user can know, in place of discover's placeholders.
DECISIONS = {
    "profile: PROFILE": "profile: grid_t4-16c",
    "version: VERSION": f"version: {DRIVER['version']}",
    "[DATASTORE] FOLDER/FILE.vib": "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip",
    "{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}": "ssh-ed25519 AAAA somebody",
}
CLUSTERS = {"lab": "gpu", "ready": "gpu", "mixed": "gpu-mixed", "t4_vgpu": "hpc", "a100_passthrough": "hpc-a100"}
# A line of a proposal, and the start of its variable; a decision has its own lines before.
VARIABLE = re.compile(r"^( *)# ([a-z_]+:(?: .*)?)$")


def discover(ansible: Ansible, *options: str, **variables: Any) -> Path:
    path = ansible.folder / "hosts.yml"
    given = json.dumps({"discover_file": str(path), **variables})
    done = ansible.playbook("playbooks/discover.yml", *options, "-e", given)
    assert done.rc == 0, done.out
    assert "names and addresses of the workers" in " ".join(done.out.split()), done.out
    return path


def listed(ansible: Ansible, path: Path) -> dict[str, Any]:
    done = ansible.run([str(BIN / "ansible-inventory"), "-i", str(path), "--list"])
    assert done.returncode == 0 and "WARNING" not in done.stdout, done.stdout
    return dict(json.loads(done.stdout))


def accept_all(text: str) -> str:
    """The inventory after the user has removed the signs of every proposal."""
    lines, block = [], False
    for line in text.splitlines():
        found = VARIABLE.match(line)
        block = bool(found and not found[2].startswith("decide:")) or (block and "#   " in line)
        lines.append(re.sub(r"# ", "", line, count=1) if block else line)
    return "\n".join(lines) + "\n"


def decide_all(path: Path) -> None:
    """Accept all proposals, with the values that only a user can know."""
    text = accept_all(path.read_text())
    for placeholder, value in DECISIONS.items():
        assert placeholder in text, placeholder
        text = text.replace(placeholder, value)
    path.write_text(text)


@pytest.mark.parametrize(
    "name", [one if one == "mixed" else pytest.param(one, marks=pytest.mark.slow) for one in CLUSTERS]
)
def test_discovered_inventory_passes_preflight(start: Start, ansible_for: AnsibleFor, name: str) -> None:
    vcenter = start(f"{name}.yml")
    ansible = ansible_for(vcenter)
    path = discover(ansible)
    clusters = listed(ansible, path)["clusters"]["hosts"]
    assert clusters == [CLUSTERS[name]]
    checked = ansible.playbook("playbooks/preflight.yml", "-i", str(path))
    assert checked.rc == 0, checked.out
    assert vcenter.writes() == []
    text = path.read_text()
    assert vcenter.environment["VMWARE_PASSWORD"] not in text and "decide:" in text


def test_writes_no_inventory_that_would_contain_the_password(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start("lab.yml", "--password=lab")
    vcenter.password = "lab"
    ansible = ansible_for(vcenter)
    path = ansible.folder / "hosts.yml"

    refused = ansible.playbook("playbooks/discover.yml", "-e", json.dumps({"discover_file": str(path)}))

    assert refused.rc != 0 and not path.exists(), refused.out
    assert "the inventory of this vCenter: could not write it: its text contains the password, of" in refused.out


def test_keeps_an_existing_file_by_default(vcenter: Simulator, ansible: Ansible) -> None:
    path = ansible.folder / "hosts.yml"
    path.write_text("mine")
    given = json.dumps({"discover_file": str(path)})
    refused = ansible.playbook("playbooks/discover.yml", "-e", given)
    assert refused.rc != 0 and "discover_replace=true" in refused.out and path.read_text() == "mine"
    discover(ansible, "--check", discover_replace=True)
    assert path.read_text() == "mine"
    assert discover(ansible, discover_replace=True).read_text().startswith("---\n# Inventory of ")
    assert ansible.playbook(
        "playbooks/discover.yml", "-e", json.dumps({"discover_file": str(path), "discover_replace": True})
    ).changes == {"localhost": 0}


def test_prepared_hosts_need_no_change(start: Start, ansible_for: AnsibleFor) -> None:
    described = yaml.safe_load((DATACENTRES / "lab.yml").read_text())
    described["host_defaults"].update(graphics={"default": "sharedDirect", "policy": "performance"}, vibs=[DRIVER])
    vcenter = start(text=yaml.safe_dump(described))
    ansible = ansible_for(vcenter)
    inventory = yaml.safe_load(ansible.module("site", gather="discovery").result["inventory"])
    profile = inventory["clusters"]["hosts"]["gpu"]["esxi_host_profile"]
    assert profile == {"graphics": {"type": "shared_direct", "policy": "performance"}}
    planned = ansible.module("esxi_profile", check=True, cluster="gpu", profile=profile)
    assert planned.rc == 0 and not planned.changed and vcenter.writes() == [], planned.out


def test_accepted_proposals_become_a_plan(vcenter: Simulator, ansible: Ansible, start: Start) -> None:
    path = discover(ansible)
    decide_all(path)
    planned = ansible.playbook("playbooks/site.yml", "-i", str(path), "--check", "--diff")
    assert planned.rc == 0, planned.out
    assert "worker04: changes" in " ".join(planned.out.split()) and vcenter.writes() == []


def test_discovers_only_the_named_clusters(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("site", gather="discovery", clusters=["gpus"])
    assert refused.rc != 0 and "find a cluster named gpus" in refused.msg and "it has gpu" in refused.msg
    assert ansible.module("site", gather="discovery", clusters=["gpu"]).result["clusters"] == ["gpu"]


def test_refuses_to_run_with_ansible_debug_output(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.environment["ANSIBLE_DEBUG"] = "1"
    path = json.dumps({"discover_file": str(ansible.folder / "hosts.yml")})

    refused = ansible.playbook("playbooks/discover.yml", "-e", path)

    assert refused.rc != 0 and "ANSIBLE_DEBUG is set, with which ansible-core writes the password" in refused.out
    assert vcenter.connection["password"] not in refused.out and vcenter.calls() == {}
