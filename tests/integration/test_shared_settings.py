"""shared_settings against the simulated data centre: refused without permission, typed, restored from what was."""

from __future__ import annotations

import os
import subprocess
from typing import Any

from lab.simulator import Simulator
from plugins.module_utils.maintenance.lock import holder
from tests.integration.ansible import Ansible, AnsibleFor

HOT = "vgpu.hotmigrate.enabled"
DRS = "VgpuMMAutomationTimeoutSecs"
DESIRED: dict[str, Any] = {"vcenter_options": {HOT: True}, "cluster": "gpu", "drs_options": {DRS: -1}}


def test_refusal_names_current_and_requested_values(vcenter: Simulator, ansible: Ansible) -> None:
    refused = ansible.module("shared_settings", **DESIRED)
    assert refused.rc == 1 and vcenter.writes() == []
    assert f"{HOT} is false for all of vCenter" in refused.msg and "would become true" in refused.msg
    assert f"{DRS} is not set for DRS of cluster gpu and would become -1" in refused.msg
    planned = ansible.module("shared_settings", check=True, **DESIRED)
    assert planned.rc == 0 and all(one["unmet"] for one in planned.result["settings"]) and vcenter.writes() == []


def test_permission_allows_changes_that_recorded_values_revert(vcenter: Simulator, ansible: Ansible) -> None:
    done = ansible.module("shared_settings", allow_shared_settings=True, **DESIRED)
    assert done.changed, done.out
    previous = dict(done.result["previous"])
    uuid = previous.pop("instance_uuid")
    assert previous == {"vcenter_options": {HOT: False}, "drs_options": {DRS: None}}
    assert vcenter.ask("GET", "/clusters/gpu")["drs_options"] == {DRS: "-1"}
    read = ansible.module("cluster_info", cluster="gpu").result["cluster"]
    assert read["options"] == {HOT: True} and read["drs"]["options"] == {DRS: "-1"}
    vcenter.clear()
    again = ansible.module("shared_settings", allow_shared_settings=True, **DESIRED)
    assert not again.changed and vcenter.writes() == []
    assert not ansible.module("shared_settings", **DESIRED).changed
    recorded = {**done.result["previous"], "instance_uuid": "another"}
    refused = ansible.module("shared_settings", cluster="gpu", allow_shared_settings=True, **recorded)
    assert refused.rc == 1 and vcenter.writes() == []
    message = f"they were read in the vCenter with the instance UUID another, and this one has {uuid}"
    assert f"could not set its recorded options: {message}; take the record of this vCenter" in refused.msg
    restored = ansible.module("shared_settings", cluster="gpu", allow_shared_settings=True, **done.result["previous"])
    assert restored.changed and restored.result["previous"]["drs_options"] == {DRS: "-1"}
    assert vcenter.ask("GET", "/clusters/gpu")["drs_options"] == {}


def run_of(pid: int) -> dict[str, str]:
    """The environment of a module that an ansible command with this process runs."""
    process = holder._described(pid)
    assert process is not None
    return {holder.RUN: f"{process.machine}.{process.pid}.{process.started}"}


def test_releases_a_lock_whose_process_has_ended(vcenter: Simulator, ansible_for: AnsibleFor) -> None:
    options = {"cluster": "gpu", "vcenter_options": {HOT: False}}
    with subprocess.Popen(["sleep", "60"]) as other:
        killed, ansible = ansible_for(vcenter, **run_of(other.pid)), ansible_for(vcenter, **run_of(os.getpid()))
        assert killed.module("cluster_lock", cluster="gpu").changed
        assert not ansible.module("shared_settings", **options).changed
        assert ansible.module("cluster_info", cluster="gpu").result["cluster"]["lock"]["held"]
        other.kill()
    vcenter.clear()
    assert not ansible.module("shared_settings", check=True, **options).changed
    assert vcenter.writes() == []
    assert not ansible.module("shared_settings", **options).changed
    assert not ansible.module("cluster_info", cluster="gpu").result["cluster"]["lock"]["held"]


def test_keeps_the_lock_of_a_killed_window(vcenter: Simulator, ansible_for: AnsibleFor) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        killed = ansible_for(vcenter, **run_of(other.pid))
        assert killed.module("cluster_lock", cluster="gpu", note="changes+esx01.lab").changed
        other.kill()
    vcenter.clear()
    ansible = ansible_for(vcenter, **run_of(os.getpid()))
    assert not ansible.module("shared_settings", cluster="gpu", vcenter_options={HOT: False}).changed
    assert vcenter.writes() == []
