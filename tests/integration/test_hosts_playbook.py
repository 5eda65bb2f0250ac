"""playbooks/hosts.yml against simulated data centres, judged by the server's log of writes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import DATACENTRES, PASSWORD, Simulator
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.releases import NEWEST
from tests.integration.rolling import PLAYBOOK, arguments, datacentre, recap, run, shown_changes, times

pytestmark = pytest.mark.release(NEWEST)

IN_SERVICE: dict[str, Any] = {"esxi_host_profile": {"pvrdma": {"vmk": "vmk1"}}}


@pytest.mark.every_release
@pytest.mark.datacentre(text=datacentre("name: esx01.lab", "name: esx02.lab, module_options: {nmlx5_core: max_vfs=8}"))
def test_bare_hosts_reboot_once_and_never_again(vcenter: Simulator, ansible: Ansible) -> None:
    # A driver that loads after the boot does not cost a second reboot.
    vcenter.set_host("esx01.lab", driver_seconds=5)
    planned = run(ansible, "--check", "--diff")
    assert planned.rc == 0, planned.out
    assert vcenter.writes() == []
    done = run(ansible, "--diff")
    assert done.rc == 0, done.out
    assert shown_changes(done) == shown_changes(planned)
    assert set(shown_changes(planned)) == {"esx01.lab", "esx02.lab"}
    writes = vcenter.writes()
    assert times(writes, "RebootHost_Task") == {"esx01.lab": 1, "esx02.lab": 1}
    vcenter.clear()
    again = run(ansible)
    assert again.rc == 0, again.out
    assert recap(again)["changed"] == 0
    assert vcenter.writes() == []
    options = ansible.module("esxi_kernel_module", check=True, hosts=["esx02.lab"], name="nmlx5_core", options={})
    active = options.host("esx02.lab")["state"]["active"]
    assert active == {"max_vfs": "8", "pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2"}


@pytest.mark.slow
@pytest.mark.breaks("hosts_out")
def test_passthrough_host_reaches_vgpu_with_two_reboots(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre("name: esx01.lab, passthrough: [all]", "name: esx02.lab", "name: esx03.lab"))
    profile: dict[str, Any] = {
        "passthrough": {"enabled": False},
        "vibs": [
            {
                "name": "NVD-AIE_ESXi_8.0.0_Driver",
                "version": "550.90.05",
                "source": "[shared] NVD-AIE-800_550.90.05-1OEM.800.1.0.20613240_24012345.zip",
            }
        ],
        "graphics": {"type": "shared_direct"},
    }
    done = run(ansible_for(vcenter), esxi_host_profile=profile, max_out_of_service=2)
    assert done.rc == 0, done.out
    writes = vcenter.writes()
    assert times(writes, "RebootHost_Task") == {"esx01.lab": 2, "esx02.lab": 1, "esx03.lab": 1}
    assert all("," not in one["what"] for one in vcenter.violations()), "more than two at once"


def test_refuses_an_unknown_canary_before_any_write(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    refused = run(ansible_for(vcenter), canary="esx09.lab")
    assert refused.rc != 0 and vcenter.writes() == [], "not even a lock"
    sentence = "there is no canary esx09.lab: the hosts of this run are esx01.lab, esx02.lab"
    assert sentence in " ".join(refused.out.split()), refused.out


@pytest.mark.slow
def test_changes_only_the_canary_until_the_user_continues(
    start: Start, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    lab = yaml.safe_load((DATACENTRES / "ready.yml").read_text())
    hosts = {"one": ["esx01.lab"], "two": ["esx02.lab", "esx03.lab"]}
    lab["clusters"] = [
        {"name": cluster, "hosts": [{"name": name} for name in names], "ha": {"enabled": False}}
        for cluster, names in hosts.items()
    ]
    vcenter = start(text=yaml.safe_dump({**lab, "vms": []}))
    inventory = tmp_path / "clusters.yml"
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    variables = {**local, **IN_SERVICE}
    inventory.write_text(yaml.safe_dump({"clusters": {"hosts": {name: {} for name in hosts}, "vars": variables}}))
    ansible = ansible_for(vcenter, DML_EVIDENCE_DIR=str(tmp_path / "evidence"))
    first = ansible.playbook(PLAYBOOK, "-i", str(inventory), "-e", "canary=esx02.lab")
    assert first.rc == 0, first.out
    assert times(vcenter.writes(), "UpdateOptions") == {"esx02.lab": 1}
    message = " ".join(first.out.split())
    assert "Cluster one waits, because the canary esx02.lab belongs to another cluster." in message
    assert message.count("The profile is active on the canary esx02.lab.") == 1
    rest = ansible.playbook(
        PLAYBOOK, "-i", str(inventory), "-e", "canary=esx02.lab", "-e", "continue_after_canary=true"
    )
    assert rest.rc == 0, rest.out
    assert times(vcenter.writes(), "UpdateOptions") == dict.fromkeys(["esx01.lab", "esx02.lab", "esx03.lab"], 1)


def test_changes_hosts_in_service_and_shows_no_password(vcenter: Simulator, ansible: Ansible) -> None:
    done = run(ansible, "-vvv", **IN_SERVICE)
    assert done.rc == 0 and PASSWORD not in done.out, done.out
    writes = vcenter.writes()
    assert times(writes, "UpdateOptions") == {f"esx{number:02d}.lab": 1 for number in range(1, 6)}
    assert times(writes, "EnterMaintenanceMode_Task") == {}
    (evidence,) = (ansible.folder / "evidence").glob("*.json")
    assert PASSWORD not in evidence.read_text() and json.loads(evidence.read_text())["hosts"]
    assert oct(evidence.stat().st_mode)[-3:] == "600"


@pytest.mark.slow
@pytest.mark.datacentre(text=datacentre('name: "esx%02d.lab", count: 2'))
def test_refuses_a_second_controller_during_a_run(vcenter: Simulator, ansible: Ansible) -> None:
    both = [ansible.start(PLAYBOOK, *arguments(ansible)) for _controller in range(2)]
    output = [process.communicate(timeout=300)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], output
    (loser,) = [text for process, text in zip(both, output, strict=True) if process.returncode]
    assert "could not take its lock" in loser
    writes = vcenter.writes()
    assert times(writes, "RebootHost_Task") == {"esx01.lab": 1, "esx02.lab": 1}


@pytest.mark.slow
@pytest.mark.datacentre(text=datacentre('name: "esx%02d.lab", count: 2'))
def test_skips_a_host_in_another_users_maintenance(vcenter: Simulator, ansible: Ansible) -> None:
    vcenter.set_host("esx02.lab", maintenance=True)
    refused = run(ansible, **IN_SERVICE)
    assert refused.rc != 0 and vcenter.writes() == [], refused.out
    assert "esx02.lab: could not change host profile: another user put it into maintenance mode" in " ".join(
        refused.out.split()
    )
    done = run(ansible, **IN_SERVICE, esxi_host_accepted_stops=["out_of_service"])
    assert done.rc == 0 and "neither changed nor rebooted" in " ".join(done.out.split()), done.out
    assert {write["name"] for write in vcenter.writes() if write["name"].startswith("esx")} == {"esx01.lab"}
    vcenter.clear()
    taken = run(ansible, **IN_SERVICE, esxi_host_take_over=["esx02.lab"])
    assert taken.rc == 0 and "esxi_host_take_over names it" in " ".join(taken.out.split()), taken.out
    assert times(vcenter.writes(), "ExitMaintenanceMode_Task") == {"esx02.lab": 1}, taken.out
    assert "EnterMaintenanceMode_Task" not in [write["method"] for write in vcenter.writes()]


def test_error_names_a_module_killed_by_the_kernel(vcenter: Simulator, ansible: Ansible) -> None:
    python = ansible.folder / "python"
    killing = 'case "$*" in *AnsiballZ_esxi_profile*) kill -KILL $$;; esac'
    python.write_text(f'#!/bin/sh\n{killing}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    killed = run(ansible, ansible_python_interpreter=str(python))
    assert killed.rc == 2 and vcenter.writes() == [], killed.out
    assert "esxi_profile was killed, perhaps for lack of memory" in " ".join(killed.out.split())
