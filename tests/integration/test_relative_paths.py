"""Each playbook that writes files, from a tarball in a read-only folder, with relative paths of its user."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from lab.simulator import DATACENTRES
from tests.integration.ansible import Start
from tests.integration.installed import PLACES, run
from tests.integration.training import Playbook

# A mount that only this command sees; root can write into a folder without the permission.
READ_ONLY = (
    *("unshare", "--mount", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "sh", "-c"),
    'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"',
)
# Each playbook with relative paths of its user, and the pattern of the files that it writes.
WRITES = {
    "discover": (("discover_file=new/hosts.yml",), "new/hosts.yml"),
    "evidence": (("evidence_dir=new/evidence",), "new/evidence/gpu-*.json"),
    "preflight": (("preflight_report=new/preflight/found.json",), "new/preflight/found.json"),
    "audit": (("audit_dir=new/audit",), "new/audit/*"),
    "record": (("record_dir=new/recording", "record_keep=true"), "new/recording/gpu/*"),
    "hosts": (("esxi_host_evidence_dir=new/hosts", "unreachable_is_idle=true"), "new/hosts/gpu-*.json"),
    "report": (("report_results=runs", "report_dir=new/report"), "new/report/training.md"),
}
RUN = {"name": "tcp-1", "nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 10.0}
LOGIN = {"ansible_host": "10.0.0.1", "ansible_user": "ubuntu", "ansible_ssh_private_key_file": "~/.ssh/gpu"}
PROFILE = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
GROUPS = {
    "clusters": {"hosts": {"gpu": {"ansible_connection": "local", "esxi_host_profile": PROFILE}}},
    "workers": {"hosts": {"w1": LOGIN}},
}


@pytest.fixture
def stood(elsewhere: Path, start: Start, tmp_path: Path) -> Callable[..., str]:
    """Run a playbook of the installed collection, which is read-only, in a user's folder."""
    lab = (DATACENTRES / "ready.yml").read_text()
    vcenter = start(text=lab.replace("count: 5", "count: 2"))
    folder = tmp_path / "user"
    (folder / "runs").mkdir(parents=True)
    (folder / "runs" / "tcp-1.json").write_text(json.dumps({**RUN, "proof": {"ok": True, "transport": "tcp"}}))
    (folder / "inventory.yml").write_text(yaml.safe_dump(GROUPS))
    (folder / "ca.pem").write_bytes(Path(vcenter.environment["VMWARE_CA_PATH"]).read_bytes())
    # PWD is that of another folder, as for a program that was started by a service.
    given = {**vcenter.environment, "VMWARE_CA_PATH": "ca.pem", "PWD": str(tmp_path), "HOME": str(tmp_path)}
    given |= {name: str(elsewhere / path) for name, path in PLACES.items()}

    def playbook(name: str, *words: str) -> str:
        options = [word for each in words for word in (("-e", each) if "=" in each else (each,))]
        command = (*READ_ONLY, str(elsewhere / "collections"), "ansible-playbook", "-i", "inventory.yml")
        done = run(folder, *command, f"dml.vsphere.{name}", *options, **given)
        assert done.returncode == 0, f"{name} {words}: {done.stdout}"
        return done.stdout

    return playbook


@pytest.mark.slow
def test_relative_paths_start_in_the_users_directory(stood: Callable[..., str], tmp_path: Path) -> None:
    folder = tmp_path / "user"

    for name, (words, pattern) in WRITES.items():
        stood(name, *words)
        assert list(folder.glob(pattern)), f"{name} {words}"
    next(folder.glob("new/evidence/gpu-*.json")).rename(folder / "new" / "gpu.json")
    stood("teardown", "rollback_evidence=new/gpu.json", "fabric_record_dir=new/evidence", "--check")
    before = next(folder.glob("new/hosts/gpu-*.json")).relative_to(folder)
    stood("rollback", f"rollback_evidence={before}", "unreachable_is_idle=true", "--check")


@pytest.mark.slow
def test_discovery_replaces_the_users_inventory_and_no_other(stood: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "user" / "hosts.yml").write_text("old\n")

    stood("discover", "discover_file=hosts.yml", "discover_replace=true")
    stood("evidence", "vsphere_ca_path=../user/ca.pem")

    assert "clusters:" in (tmp_path / "user" / "hosts.yml").read_text()
    assert list(tmp_path.glob("user/evidence/gpu-*.json"))


@pytest.mark.slow
def test_training_writes_into_the_users_directory(elsewhere: Path, tmp_path: Path) -> None:
    made, folder = Playbook(tmp_path), tmp_path / "user"
    folder.mkdir()
    relative = {"training_results": "new/runs", "training_vmotion_tests": "new/tests"}
    ansible, *words = made.command(20, 0.05, training_name="one", training_steps=20, **relative)
    given = {name: str(elsewhere / path) for name, path in PLACES.items()}
    for name in ("train", "runs"):
        command = [ansible, *(f"dml.vsphere.{name}" if word == "playbooks/train.yml" else word for word in words)]
        done = run(folder, *READ_ONLY, str(elsewhere / "collections"), *command, HOME=str(tmp_path), **given)
        assert done.returncode == 0, done.stdout

    assert (folder / "new" / "runs" / "one.json").is_file() and (folder / "new" / "runs" / "one").is_dir()
