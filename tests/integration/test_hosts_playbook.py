"""playbooks/hosts.yml against simulated data centres, judged by the server's log of writes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import PASSWORD, Simulator
from tests.integration.ansible import Ansible
from tests.integration.releases import NEWEST
from tests.integration.rolling import (
    PLAYBOOK,
    arguments,
    datacentre,
    most_out_of_service,
    recap,
    run,
    shown_changes,
    times,
)

pytestmark = pytest.mark.release(NEWEST)

Start = Callable[..., Simulator]
AnsibleFor = Callable[..., Ansible]


@pytest.mark.every_release
def test_bare_hosts_take_one_reboot_each_and_a_second_run_does_nothing(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre("name: esx01.lab", "name: esx02.lab, module_options: {nmlx5_core: max_vfs=8}"))
    ansible = ansible_for(vcenter)
    planned = run(ansible, "--check", "--diff")
    assert planned.rc == 0, planned.out
    assert vcenter.writes() == []
    done = run(ansible, "--diff")
    assert done.rc == 0, done.out
    assert shown_changes(done) == shown_changes(planned)
    assert set(shown_changes(planned)) == {"esx01.lab", "esx02.lab"}
    writes = vcenter.writes()
    assert times(writes, "RebootHost_Task") == {"esx01.lab": 1, "esx02.lab": 1}
    assert most_out_of_service(writes) == 1
    vcenter.clear()
    again = run(ansible)
    assert again.rc == 0, again.out
    assert recap(again)["changed"] == 0
    assert vcenter.writes() == []
    options = ansible.module("esxi_kernel_module", check=True, hosts=["esx02.lab"], name="nmlx5_core", options={})
    active = options.host("esx02.lab")["state"]["active"]
    assert active == {"max_vfs": "8", "pfctx": "0x08", "pfcrx": "0x08", "trust_state": "2"}


@pytest.mark.slow
def test_a_passthrough_host_comes_to_vgpu_with_two_reboots_and_two_go_at_a_time_where_allowed(
    start: Start, ansible_for: AnsibleFor
) -> None:
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
    assert most_out_of_service(writes) == 2


def test_only_the_canary_is_changed_until_the_user_continues(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    ansible = ansible_for(vcenter)
    first = run(ansible, canary="esx02.lab")
    assert first.rc == 0, first.out
    assert times(vcenter.writes(), "RebootHost_Task") == {"esx02.lab": 1}
    assert "continue_after_canary" in first.out
    rest = run(ansible, canary="esx02.lab", continue_after_canary=True)
    assert rest.rc == 0, rest.out
    assert times(vcenter.writes(), "RebootHost_Task") == {"esx01.lab": 1, "esx02.lab": 1}


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"canary": "esx09.lab"}, "there is no canary esx09.lab: the hosts of this run are esx01.lab, esx02.lab"),
        ({"canary": "esx09.lab", "continue_after_canary": True}, "there is no canary esx09.lab"),
        ({"esxi_host_profiles": {"esx09.lab": {}}}, "esxi_host_profiles has a profile for esx09.lab"),
        ({"max_out_of_service": 0}, "esxi_host_max_out_of_service is 0, but must be 1 or more"),
        ({"esxi_host_reboot_timeout": -1}, "esxi_host_reboot_timeout is -1, but must be 1 or more"),
    ],
)
def test_a_host_that_does_not_exist_or_a_number_out_of_range_ends_the_run_without_a_write(
    start: Start, ansible_for: AnsibleFor, variables: dict[str, Any], sentence: str
) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    refused = run(ansible_for(vcenter), **variables)
    assert refused.rc != 0 and sentence in " ".join(refused.out.split()), refused.out
    assert vcenter.writes() == [], "not even a lock"


def test_says_why_fewer_hosts_leave_service_at_once_than_requested(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 3', ha=True))
    profile = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
    done = run(ansible_for(vcenter), esxi_host_profile=profile, max_out_of_service=99)
    text = " ".join(done.out.split())
    assert done.rc == 0 and most_out_of_service(vcenter.writes()) == 1, done.out
    assert "max_out_of_service is 99, but at most 1 leave service at once: " in text


def test_a_cluster_without_the_canary_waits_with_a_message(
    start: Start, ansible_for: AnsibleFor, tmp_path: Path
) -> None:
    lab = yaml.safe_load(datacentre())
    lab["clusters"] = [
        {"name": name, "hosts": [{"name": f"esx{name}.lab"}], "ha": {"enabled": False}} for name in ("one", "two")
    ]
    vcenter = start(text=yaml.safe_dump(lab))
    inventory = tmp_path / "clusters.yml"
    local = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    modules = [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]
    variables = {**local, "esxi_host_profile": {"kernel_modules": modules}}
    inventory.write_text(yaml.safe_dump({"clusters": {"hosts": {"one": {}, "two": {}}, "vars": variables}}))
    ansible = ansible_for(vcenter, DML_EVIDENCE_DIR=str(tmp_path / "evidence"))
    first = ansible.playbook(PLAYBOOK, "-i", str(inventory), "-e", "canary=esxtwo.lab")
    assert first.rc == 0, first.out
    assert times(vcenter.writes(), "RebootHost_Task") == {"esxtwo.lab": 1}
    message = " ".join(first.out.split())
    assert "Cluster one waits, because the canary esxtwo.lab belongs to another cluster." in message
    assert message.count("The profile is active on the canary esxtwo.lab.") == 1
    vcenter.clear()
    limited = ansible.playbook(PLAYBOOK, "-i", str(inventory), "--limit", "one", "-e", "canary=esxtwo.lab")
    assert limited.rc != 0 and "there is no canary esxtwo.lab: the hosts of this run are esxone.lab" in limited.out
    assert vcenter.writes() == []


def test_changes_without_a_reboot_are_made_in_service(vcenter: Simulator, ansible: Ansible) -> None:
    done = run(ansible, esxi_host_profile={"pvrdma": {"vmk": "vmk1"}})
    assert done.rc == 0, done.out
    writes = vcenter.writes()
    assert times(writes, "UpdateOptions") == {f"esx{number:02d}.lab": 1 for number in range(1, 6)}
    assert most_out_of_service(writes) == 0


def test_a_driver_that_loads_after_the_boot_does_not_cost_a_second_reboot(
    start: Start, ansible_for: AnsibleFor
) -> None:
    vcenter = start(text=datacentre("name: esx01.lab"))
    vcenter.set_host("esx01.lab", driver_seconds=5)
    done = run(ansible_for(vcenter))
    assert done.rc == 0, done.out
    assert times(vcenter.writes(), "RebootHost_Task") == {"esx01.lab": 1}


@pytest.mark.slow
def test_refuses_the_second_controller_and_names_the_holder_of_the_lock(start: Start, ansible_for: AnsibleFor) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    ansible = ansible_for(vcenter)
    both = [ansible.start(PLAYBOOK, *arguments(ansible)) for _controller in range(2)]
    output = [process.communicate(timeout=300)[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], output
    (loser,) = [text for process, text in zip(both, output, strict=True) if process.returncode]
    assert "could not take its lock" in loser
    writes = vcenter.writes()
    assert most_out_of_service(writes) == 1
    assert times(writes, "RebootHost_Task") == {"esx01.lab": 1, "esx02.lab": 1}


@pytest.mark.parametrize(
    ("by_module", "profile"),
    [(True, {}), (False, {"esxi_host_profile": {"pvrdma": {"vmk": "vmk1"}}})],
    ids=["esxi_power, reboot", "client, in service"],
)
def test_a_host_in_the_maintenance_of_others_is_neither_changed_nor_rebooted(
    start: Start, ansible_for: AnsibleFor, by_module: bool, profile: dict[str, Any]
) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 3'))
    ansible = ansible_for(vcenter)
    if by_module:
        assert ansible.module("esxi_power", hosts=["esx02.lab"], state="maintenance").changed
    else:
        vcenter.set_host("esx02.lab", maintenance=True)
    vcenter.clear()
    refused = run(ansible, **profile)
    assert refused.rc != 0 and vcenter.writes() == [], refused.out
    assert "esx02.lab: could not change host profile: another user put it into maintenance mode" in " ".join(
        refused.out.split()
    )
    done = run(ansible, **profile, esxi_host_accepted_stops=["out_of_service"], max_out_of_service=2)
    assert done.rc == 0, done.out
    assert "neither changed nor rebooted" in " ".join(done.out.split())
    changed = {write["name"] for write in vcenter.writes() if write["name"].startswith("esx")}
    assert changed == {"esx01.lab", "esx03.lab"} and most_out_of_service(vcenter.writes()) <= 1, "with esx02.lab, two"
    vcenter.clear()
    taken = run(ansible, **profile, esxi_host_take_over=["esx02.lab"])
    assert taken.rc == 0 and "esxi_host_take_over names it" in " ".join(taken.out.split()), taken.out
    assert times(vcenter.writes(), "ExitMaintenanceMode_Task") == {"esx02.lab": 1}, taken.out
    assert "EnterMaintenanceMode_Task" not in [write["method"] for write in vcenter.writes()]


def test_the_error_names_a_module_that_the_kernel_kills(vcenter: Simulator, ansible: Ansible) -> None:
    python = ansible.folder / "python"
    killing = 'case "$*" in *AnsiballZ_esxi_profile*) kill -KILL $$;; esac'
    python.write_text(f'#!/bin/sh\n{killing}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    killed = run(ansible, ansible_python_interpreter=str(python))
    assert killed.rc == 2 and vcenter.writes() == [], killed.out
    assert "esxi_profile was killed, perhaps for lack of memory" in " ".join(killed.out.split())


@pytest.mark.parametrize("secret", [PASSWORD])
def test_the_password_appears_in_no_output_and_no_evidence(vcenter: Simulator, ansible: Ansible, secret: str) -> None:
    done = run(ansible, "-vvv", esxi_host_profile={"pvrdma": {"vmk": "vmk1"}})
    assert done.rc == 0, done.out
    assert secret not in done.out
    (evidence,) = (ansible.folder / "evidence").glob("*.json")
    assert secret not in evidence.read_text()
    assert oct(evidence.stat().st_mode)[-3:] == "600"
    assert json.loads(evidence.read_text())["hosts"]
