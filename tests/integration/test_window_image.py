"""playbooks/hosts.yml on a cluster that an image manages: vLCM applies it to each emptied host around a running job."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import AnsibleFor, Start
from tests.integration.killing import has_started, kill_all, wait_for
from tests.integration.releases import NEWEST
from tests.integration.test_hosts_under_training import HOSTS, Window
from tests.integration.test_vmotion import TAGGED
from tests.integration.test_vmotion_test import LONG, WORKERS, Trial
from tests.integration.test_window_refused import words
from tests.integration.training import Nodes
from tests.integration.workers import desired

pytestmark = [pytest.mark.release(NEWEST), pytest.mark.parametrize("encryption", ["on"])]

COMPONENT, OLD, NEW = "NVD-AIE-800", "550.90.05-1OEM.800.1.0.20613240", "550.127.06-1OEM.800.1.0.20613240"
IMAGE: dict[str, Any] = {"components": {COMPONENT: NEW}, "accept_eula": True}
# The spare host, and one with a worker.
TWO = HOSTS[3:]
NO_PROFILE: dict[str, Any] = {"esxi_host_profile": {}}
VIB = '{{name: NVD-AIE_ESXi_8.0.0_Driver, version: "{version}", vendor: NVIDIA, component: NVD-AIE-800}}'
INSTALLED = 'vibs: [{name: NVD-AIE_ESXi_8.0.0_Driver, version: "550.90.05-1", vendor: NVIDIA}]'


def data_centre() -> str:
    """Five hosts with the vGPU manager, and a depot with it and with the next one."""
    bundles = "".join(f"  - paths: [/{each}.zip]\n    vibs: [{VIB.format(version=each)}]\n" for each in (OLD, NEW))
    assert INSTALLED in TAGGED
    hosts = TAGGED.replace(INSTALLED, f"vibs: [{VIB.format(version=OLD)}]")
    return f"{hosts}depots:\n{bundles}"


@pytest.fixture
def trial(start: Start, ansible_for: AnsibleFor, tmp_path: Path, encryption: str) -> Iterator[Trial]:
    """Four workers on a cluster that an image manages, which is on all hosts."""
    vcenter = start("", f"--encryption={encryption}", text=data_centre())
    ansible = ansible_for(vcenter)
    assert ansible.module("worker_vm", **desired()).rc == 0
    vcenter.set_cluster("gpu", image_managed=True, image_components={COMPONENT: OLD})
    vcenter.clear()
    nodes = Nodes(ansible, tmp_path)
    yield Trial(vcenter, ansible, nodes, tmp_path)
    nodes.stop()


def image_of(trial: Trial) -> str:
    """Return the path of the image of the cluster."""
    moid = trial.vcenter.ask("GET", "/clusters/gpu")["moid"]
    return f"/api/esx/settings/clusters/{moid}/software"


def versions(trial: Trial) -> dict[str, list[str]]:
    """Return the running versions of the vGPU manager by host."""
    info = trial.ansible.module("esxi_info", cluster="gpu", gather=["vib"]).result["hosts"]
    return {
        host["host"]: [vib["version"] for vib in host["vibs"]["running"] if vib["name"].startswith("NVD")]
        for host in info
    }


def test_plan_shows_the_image_and_writes_nothing(trial: Trial) -> None:
    window = Window(trial)
    shown = window.run("--check", esxi_host_image=IMAGE, **NO_PROFILE)
    text = words(shown.out)
    assert shown.rc == 0 and trial.vcenter.writes() == [], shown.out
    assert f"the image of cluster gpu changes, components: {COMPONENT} {OLD} -> {COMPONENT} {NEW}" in text
    assert "changes out of service, 1 reboot" in text
    assert "because the image of its cluster is applied by vLCM (probably 1 reboot)" in text


@pytest.mark.slow
def test_next_run_finishes_a_killed_manager_upgrade(trial: Trial) -> None:
    path = image_of(trial)
    window = Window(trial)
    options = {"esxi_host_image": IMAGE, "esxi_host_hosts": TWO, **NO_PROFILE}
    running = trial.ansible.start(*window.command(**options))
    is_applying = has_started(trial.vcenter, f"POST {path}?action=apply", 2)
    wait_for(lambda: is_applying() or running.poll() is not None, LONG)
    assert running.poll() is None, running.communicate()[0]
    kill_all(running)

    done = window.run(**options)

    assert done.rc == 0, done.out
    applied = [write for write in trial.vcenter.writes() if write["method"] == f"POST {path}?action=apply"]
    assert len(applied) == 2, "one remediation a host"
    assert versions(trial) == {host: [NEW if host in TWO else OLD] for host in HOSTS}
    assert trial.moved() == [WORKERS[3]]
    assert json.loads(trial.kept("verdict.json"))["verdict"] == "continuous" and trial.free()
    assert trial.nodes.look()["state"] == "running"
