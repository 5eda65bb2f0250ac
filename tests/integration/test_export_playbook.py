# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""playbooks/export.yml: check mode writes nothing, a second run changes nothing, and no secret is written."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import yaml

from tests.integration.ansible import BIN, Ansible

SECRET = "a secret of the inventory"
WORKERS = {
    "vars": {"ansible_user": "ubuntu", "ansible_ssh_private_key_file": "~/.ssh/gpu", "ansible_password": SECRET},
    "hosts": {"w1": {"ansible_host": "10.0.0.1"}, "w2": {"ansible_host": "10.0.0.2"}},
}


def export(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    inventory = folder / "hosts.yml"
    inventory.write_text(yaml.safe_dump({"workers": WORKERS}))
    place = f"export_folder={folder / 'export'}"
    command = [str(BIN / "ansible-playbook"), "-i", str(inventory), "playbooks/export.yml", "-e", place, *more]
    return Ansible({}, folder).run(command, timeout=300)


def read(folder: Path, name: str) -> Any:
    return yaml.safe_load((folder / "export" / name).read_text())


def test_the_workers_are_written_for_both_tools(tmp_path: Path) -> None:
    assert export(tmp_path, "--check").returncode == 0
    assert not (tmp_path / "export").exists()
    ran = export(tmp_path, "-e", "export_name=gpus")
    assert ran.returncode == 0, ran.stdout
    assert [host["ip"] for host in read(tmp_path, "ssh_node_pools.yaml")["gpus"]["hosts"]] == ["10.0.0.1", "10.0.0.2"]
    assert read(tmp_path, "fleet.dstack.yml")["ssh_config"]["hosts"][1]["hostname"] == "10.0.0.2"
    assert not [path for path in (tmp_path / "export").iterdir() if SECRET in path.read_text()]
    assert "changed=0" in export(tmp_path, "-e", "export_name=gpus").stdout


def test_a_wrong_name_is_refused(tmp_path: Path) -> None:
    ran = export(tmp_path, "-e", "export_name=My_Pool")
    assert ran.returncode != 0
    assert "expected 2 to 40 small letters" in ran.stdout
