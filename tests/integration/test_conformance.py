"""The simulated data centre answers each writing case as the table expects; VMware's simulator does not."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import Simulator
from plugins.module_utils.site.conformance import conformance
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tools import suites

START_SECONDS = 30
SITE = """
version: {version}
datacenter: dc1
datastores: [shared]
depots:
  - paths: [/vmfs/volumes/shared/tool.vib]
    vibs: [{{name: tool, version: 1.0-1, vendor: OTHER, acceptance_level: PartnerSupported, live_install: true}}]
host_defaults: {{reboot_seconds: 0.2, vmotion_seconds: 0.1, hardware: t4_cx5}}
clusters:
  - name: spare
    drs: {{enabled: true, behaviour: fullyAutomated}}
    hosts: [{{name: "esx%02d.lab", count: 2}}]
vms:
  - {{name: template, host: esx01.lab, template: true, memory_mb: 1024}}
"""
INVENTORY = "clusters:\n  hosts:\n    spare: {ansible_connection: local}\n"


class Called:
    """Modules in this process, as the program of the playbook calls them; all of them are one run."""

    def __init__(self, ansible: Ansible) -> None:
        self.ansible = ansible

    def here(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        run = {"run": "first"} if name == "cluster_lock" else {}
        return self.ansible.module(name, **{**run, **options}).result

    def planned(self, name: str, options: dict[str, Any]) -> dict[str, Any]:
        return self.ansible.module(name, check=True, **options).result


VIB = {"name": "tool", "version": "1.0-1", "source": "/vmfs/volumes/shared/tool.vib"}


def options(cluster: str, **more: Any) -> dict[str, Any]:
    return {"cluster": cluster, "confirm": cluster, "template": "", "uplink": "", "vib": {}, **more}


def unequal(result: dict[str, Any]) -> list[str]:
    return [line for line in result["lines"] if not line.startswith("equal")]


@pytest.mark.parametrize("version", ["8.0.3", pytest.param("9.1.0", marks=pytest.mark.slow)])
def test_simulated_data_centre_answers_as_the_table_expects(
    start: Start, ansible_for: AnsibleFor, version: str
) -> None:
    vcenter = start(text=SITE.format(version=version))
    given = options("spare", template="template", uplink="vmnic2", vib=VIB)
    result = conformance.run(Called(ansible_for(vcenter)), given)
    assert (unequal(result), result["error"]) == ([], "")
    assert "esx0" not in json.dumps(result["document"])


@pytest.fixture
def stock() -> Iterator[dict[str, str]]:
    """Start VMware's simulator, and return the variables with which modules reach it."""
    suites.HOME.mkdir(parents=True, exist_ok=True)
    suites.prepare()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [str(suites.HOME / "vcsim"), "-l", f"127.0.0.1:{port}", "-cluster", "1", "-host", "2", "-vm", "0"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + START_SECONDS
        while socket.socket().connect_ex(("127.0.0.1", port)) and time.monotonic() < deadline:
            assert process.poll() is None, "VMware's simulator has ended"
        account = {"VMWARE_USER": "user@vsphere.local", "VMWARE_PASSWORD": "Zq7vKx4mTw9hRb2n"}
        yield {"VMWARE_HOST": "127.0.0.1", "VMWARE_PORT": str(port), "VMWARE_VALIDATE_CERTS": "false", **account}
        process.kill()


@pytest.mark.slow
def test_table_shows_where_another_server_differs(stock: dict[str, str], tmp_path: Path) -> None:
    result = conformance.run(Called(Ansible(stock, tmp_path)), options("DC0_C0"))
    assert any(line.startswith("DIFFERENT advanced option, set: simulator") for line in result["lines"])
    assert any(line.startswith("DIFFERENT sessions, a wrong password: simulator") for line in result["lines"])
    assert "Report the file as a bug." in result["error"] and "DC0" not in json.dumps(result["document"])


def play(ansible: Ansible, folder: Path, *arguments: str) -> Any:
    """Run the playbook with a file for its table."""
    inventory = folder / "hosts.yml"
    inventory.write_text(INVENTORY)
    where = ("-e", f"conformance_file={folder}/table.json")
    return ansible.playbook("playbooks/conformance.yml", "-i", str(inventory), *where, *arguments)


@pytest.mark.datacentre(text=SITE.format(version="8.0.3"))
def test_playbook_writes_nothing_in_check_mode_or_unconfirmed(
    vcenter: Simulator, ansible: Ansible, tmp_path: Path
) -> None:
    shown = play(ansible, tmp_path, "--check")
    assert shown.rc == 0 and "maintenance and reboot: boot" in shown.out and "worker: move" not in shown.out
    refused = play(ansible, tmp_path)
    assert refused.rc != 0 and "confirm a spare or nested cluster: conformance_confirm=spare" in refused.out
    assert vcenter.writes() == [] and not (tmp_path / "table.json").exists()


@pytest.mark.slow
def test_playbook_writes_the_table(start: Start, ansible_for: AnsibleFor, tmp_path: Path) -> None:
    done = play(ansible_for(start(text=SITE.format(version="8.0.3"))), tmp_path, "-e", "conformance_confirm=spare")
    assert done.rc == 0, done.out
    rows = json.loads((tmp_path / "table.json").read_text())["cases"]
    assert {row["equal"] for row in rows if row["case"] not in ("worker", "switch", "VIB")} == {True}
