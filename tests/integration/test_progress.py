"""The progress that a person sees while hosts change, and the rest of a killed ansible."""

from __future__ import annotations

import threading
from pathlib import Path
from unittest import mock

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.killing import has_started, kill_all, wait_for

PLAY = """
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - dml.vsphere.cluster_lock: {cluster: gpu}
    - dml.vsphere.esxi_power: {hosts: [esx01.lab], state: maintenance}
    - dml.vsphere.esxi_power: {hosts: [esx01.lab], state: rebooted}
    - dml.vsphere.cluster_lock: {cluster: gpu, state: free}
"""
LOCAL = ("-i", "localhost,")


def play(tmp_path: Path) -> Path:
    path = tmp_path / "play.yml"
    path.write_text(PLAY)
    return path


def test_shows_one_line_per_event_and_cleans_up(ansible: Ansible, tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    ansible.environment["ANSIBLE_LOCAL_TEMP"] = str(temporary)
    done = ansible.playbook(play(tmp_path), *LOCAL)
    assert done.rc == 0, done.out
    lines = [line.strip() for line in done.out.splitlines() if line.startswith("  esx01.lab: ")]
    reported = [line.split(": ")[1].split(" [")[0] for line in lines]
    every = ["enters maintenance mode", "is in maintenance mode", "reboots", "is down", "is back", "serves again"]
    assert reported == every
    assert not list(temporary.rglob("dml-progress-*"))
    assert "progress_file" not in done.out


def test_takes_over_the_lock_of_a_killed_ansible(vcenter: Simulator, ansible: Ansible, tmp_path: Path) -> None:
    vcenter.set_host("esx01.lab", reboot_seconds=30)
    running = ansible.start(play(tmp_path), *LOCAL)
    wait_for(has_started(vcenter, "RebootHost_Task"))
    refused = ansible.module("cluster_lock", cluster="gpu", run="other")
    assert refused.rc == 1 and "it is held by" in refused.msg
    kill_all(running)
    taken = ansible.module("cluster_lock", cluster="gpu", run="other")
    assert taken.changed and taken.result["state"]["run"] == "other"
    assert "its process is gone" in str(taken.result["warnings"])
    vcenter.clear()
    back = threading.Timer(1, lambda: vcenter.set_host("esx01.lab", connection="connected"))
    back.start()
    after = ansible.module("esxi_power", hosts=["esx01.lab"], state="rebooted", reboot_timeout=60)
    back.join()
    assert after.rc == 0 and "RebootHost_Task" not in [write["method"] for write in vcenter.writes()]


def test_skips_a_step_after_its_waiter_has_gone(vcenter: Simulator, ansible: Ansible) -> None:
    with mock.patch("plugins.modules.esxi_power.holder.run_watch", return_value=lambda: False):
        left = ansible.module("esxi_power", hosts=["esx01.lab"], state="maintenance")
    assert left.rc == 1 and "the ansible run that requested it has ended" in left.msg
    assert "EnterMaintenanceMode_Task" not in [write["method"] for write in vcenter.writes()]
    assert not ansible.module("esxi_power", hosts=["esx01.lab"], check=True, state="in_service").changed
