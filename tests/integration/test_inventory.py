"""The inventory of workers against simulated machines that carry the mark, another's mark, or none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml
from pyVmomi import vim

from lab.simulator import ROOT, Simulator
from plugins.module_utils.workers import worker_mark
from tests.integration.ansible import BIN, Ansible, AnsibleFor, Start
from tests.integration.fabrics import object_of, opened, with_switch
from tests.integration.workers import confirm

MACHINES = """
foreign: [stranger]
vms:
  - {name: "worker%02d", count: 3, host: "esx%02d.lab", powered_on: true, vgpu: grid_t4-16c, pvrdma: rdma-vm}
  - {name: off01, host: esx04.lab}
  - {name: copy01, host: esx04.lab}
  - {name: stranger, host: esx05.lab, powered_on: true}
"""
Listed = dict[str, Any]


def data_centre(start: Start) -> Simulator:
    vcenter = start(text=with_switch(more=MACHINES, count=5))
    marks = {f"worker0{number}": {"tenant": "team a" if number < 3 else "b"} for number in (1, 2, 3)}
    marks |= {"off01": {"cluster": "other"}, "copy01": {"name": "worker01", "uuid": "another"}}
    with opened(vcenter) as one:
        for name, more in marks.items():
            whole = worker_mark.desired_mark(name, {}, cluster="gpu", role="worker", tenant="") | more
            worker_mark.write(one, object_of(one, vim.VirtualMachine, name), name, whole)
    for name in ("worker01", "worker02", "worker03", "off01"):
        confirm(vcenter, name)
    for number in (1, 2):
        guest = {"hostname": f"worker0{number}", "address": f"10.88.0.{number}"}
        vcenter.ask("PUT", f"/vms/worker0{number}/guest", guest)
    vcenter.clear()
    return vcenter


def listed(ansible: Ansible, folder: Path, **config: Any) -> Listed:
    path = folder / "lab.workers.yml"
    path.write_text(yaml.safe_dump({"plugin": "dml.vsphere.workers", **config}))
    done = ask(ansible, path)
    assert done.returncode == 0, done.stdout
    return dict(json.loads(done.stdout[done.stdout.index("{\n") :], object_hook=plain))


def ask(ansible: Ansible, path: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Return the answer of ansible-inventory for a file, which it must not skip."""
    ansible.environment["ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED"] = "1"
    return ansible.run([str(BIN / "ansible-inventory"), "-i", str(path), "--list", *more])


def plain(value: dict[str, Any]) -> Any:
    """The text that ansible-inventory wraps because it comes from outside."""
    return value["__ansible_unsafe"] if set(value) == {"__ansible_unsafe"} else value


def test_lists_workers_in_groups_with_their_facts(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    vcenter = data_centre(start)
    found = listed(
        ansible_for(vcenter),
        tmp_path,
        groups={"running": "vm_power == 'on'"},
        keyed_groups=[{"key": "vm_rdma_protocol", "prefix": "rdma"}],
        compose={"ansible_user": "'ubuntu'"},
    )
    workers = ["worker01", "worker02", "worker03"]
    members = {group: one["hosts"] for group, one in found.items() if "hosts" in one}
    assert sorted(members["workers"]) == ["off01", *workers]
    assert sorted(members["cluster_gpu"]) == workers and members["cluster_other"] == ["off01"]
    assert sorted(members["profile_grid_t4_16c"]) == sorted(members["running"]) == workers
    assert sorted(members["tenant_team_a"]) == workers[:2] and members["tenant_b"] == ["worker03"]
    assert members["host_esx02_lab"] == ["worker02"] and sorted(members["rdma_rocev2"]) == workers
    facts = found["_meta"]["hostvars"]["worker02"]
    assert facts["ansible_host"] == "10.88.0.2" and facts["ansible_user"] == "ubuntu"
    assert (facts["vm_host"], facts["vm_power"], facts["vm_gpus"]) == ("esx02.lab", "on", ["grid_t4-16c"])
    assert facts["vm_rdma_macs"] and facts["vm_rdma_protocol"] == "rocev2"
    assert "ansible_host" not in found["_meta"]["hostvars"]["off01"]
    assert found["_meta"]["hostvars"]["off01"]["vm_power"] == "off"
    assert vcenter.writes() == [] and sum(vcenter.calls().values()) <= 15


def test_takes_the_connection_from_the_command_line(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    """Variables of -e, such as those of a vault, come before the environment."""
    vcenter = data_centre(start)
    ansible = ansible_for(vcenter)
    password = ansible.environment.pop("VMWARE_PASSWORD")
    path, given = tmp_path / "lab.workers.yml", tmp_path / "vault.yml"
    path.write_text("plugin: dml.vsphere.workers\n")
    without = ask(ansible, path)
    assert without.returncode == 4 and "password is not set" in without.stdout
    ansible.environment["VMWARE_HOST"] = "127.0.0.1:1"
    given.write_text(json.dumps({"vsphere_password": password, "vsphere_hostname": vcenter.connection["hostname"]}))
    done = ask(ansible, path, "-e", f"@{given}")
    assert done.returncode == 0 and "worker01" in done.stdout, done.stdout


def test_lists_only_the_named_clusters(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    found = listed(ansible_for(data_centre(start)), tmp_path, clusters=["other"])
    assert found["workers"]["hosts"] == ["off01"]


def test_cache_saves_calls_to_the_server(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    vcenter = data_centre(start)
    ansible = ansible_for(vcenter)
    cache = {"cache": True, "cache_plugin": "ansible.builtin.jsonfile", "cache_connection": str(tmp_path / "cache")}
    first = listed(ansible, tmp_path, **cache)
    requested = vcenter.calls()
    assert requested["Login"] == 1 and listed(ansible, tmp_path, **cache) == first
    assert vcenter.calls() == requested
    kept = "".join(path.read_text() for path in (tmp_path / "cache").iterdir())
    assert "worker01" in kept and vcenter.connection["password"] not in kept
    vcenter.ask("PUT", "/vms/worker03/guest", {"hostname": "worker03", "address": "10.88.0.3"})
    # Only this command can do so in every version of Ansible.
    flush = ("-i", str(tmp_path / "lab.workers.yml"), "--flush-cache", "--list-hosts")
    assert ansible.playbook(ROOT / "playbooks" / "guests.yml", *flush).rc == 0
    flushed = listed(ansible, tmp_path, **cache)
    assert flushed["_meta"]["hostvars"]["worker03"]["ansible_host"] == "10.88.0.3"


def test_reports_a_refused_login_once_without_password(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    vcenter = data_centre(start)
    path = tmp_path / "lab.workers.yml"
    path.write_text("plugin: dml.vsphere.workers\nusername: nobody\n")
    ansible = ansible_for(vcenter)
    for command in (
        ["ansible-inventory", "-i", str(path), "--list"],
        ["ansible", "-i", str(path), "all", "-m", "ping"],
    ):
        done = ansible.run([str(BIN / command[0]), *command[1:]])
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        assert done.returncode == 4, done.stdout
        assert [line for line in lines if "could not log in as nobody" in line] == lines[:1], done.stdout
        assert not any(word in done.stdout for word in ("WARNING", "Traceback", vcenter.connection["password"]))


def test_strict_turns_a_mistake_into_an_error(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    ansible, path = ansible_for(data_centre(start)), tmp_path / "lab.workers.yml"
    config = {"plugin": "dml.vsphere.workers", "compose": {"wrong": "vm_nothing"}}
    path.write_text(yaml.safe_dump({**config, "strict": True}))
    assert ask(ansible, path).returncode != 0
    path.write_text(yaml.safe_dump({**config, "strict": False}))
    assert ask(ansible, path).returncode == 0
