"""playbooks/vmotion_test.yml: workers of the simulated data centre move while real mpirun trains on this machine."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyVmomi import vim

from lab.simulator import ROOT, Simulator
from tests.integration.ansible import PYTHON, Ansible, AnsibleFor, Outcome, Start
from tests.integration.killing import has_started, wait_for
from tests.integration.releases import FIRST, NEWEST, RELEASES
from tests.integration.test_vmotion import TAGGED
from tests.integration.test_worker_rules import by_hand, config, overrides
from tests.integration.test_worker_vm_gpus import BIG
from tests.integration.training import Nodes
from tests.integration.workers import desired

pytestmark = pytest.mark.release(NEWEST)

PROGRAM = ROOT / "tests" / "lab" / "train.py"
WORKERS = [f"worker{number:02}" for number in range(1, 5)]
LONG = 1200  # seconds, for a machine that has much else to do


class Trial:
    """Four workers, a job whose ranks run on nodes of their names, and the test of both."""

    def __init__(self, vcenter: Simulator, ansible: Ansible, nodes: Nodes, folder: Path) -> None:
        self.vcenter, self.ansible, self.nodes, self.folder = vcenter, ansible, nodes, folder
        self.inventory = folder / "inventory.yml"
        here = {"ansible_connection": "local", "ansible_python_interpreter": PYTHON}
        groups = {"clusters": {"hosts": {"gpu": here}}, "launchers": {"hosts": {"launcher": here}}}
        self.inventory.write_text(json.dumps({"all": {"children": groups}}))

    def train(self, *more: Any) -> None:
        program = [sys.executable, "-u", str(PROGRAM), *map(str, more)]
        started = self.nodes.start(command=program, hosts=[{"name": name} for name in WORKERS])
        assert started.rc == 0, started.out
        self.nodes.training()

    def run(self, *arguments: str, **variables: Any) -> Outcome:
        return self.ansible.playbook(*self.command(*arguments, **variables), timeout=LONG)

    def begin(self, *arguments: str, **variables: Any) -> subprocess.Popen[str]:
        return self.ansible.start(*self.command(*arguments, **variables))

    def command(self, *arguments: str, **variables: Any) -> list[str]:
        given = {
            "vmotion_test_launcher": "launcher",
            "vmotion_test_run_dir": str(self.nodes.run_dir),
            "vmotion_test_records": str(self.nodes.run_dir),
            "vmotion_test_nodes": [{"name": "all", "reach": ["sh", "-c"]}],
            "vmotion_test_dir": str(self.folder / "tests"),
            "vmotion_test_metrics": str(self.folder / "metrics"),
            "vmotion_test_warmup_steps": 2,
            "vmotion_test_limits": {"max_gap_s": 30, "resume_deadline_s": 30},
            **variables,
        }
        return ["playbooks/vmotion_test.yml", "-i", str(self.inventory), "-e", json.dumps(given), *arguments]

    def kept(self, name: str) -> str:
        (found,) = (self.folder / "tests").glob(f"*/{name}")
        return found.read_text()

    def metrics(self) -> str:
        (collected,) = (self.folder / "metrics").iterdir()
        return collected.read_text()

    def moved(self) -> list[str]:
        return [write["name"] for write in self.vcenter.writes() if write["method"] == "RelocateVM_Task"]

    def free(self) -> bool:
        """Return whether no one holds the cluster's lock, not even a run that is gone."""
        done = self.ansible.module("cluster_lock", check=True, cluster="gpu", state="free", run="a test")
        return done.rc == 0 and not done.changed


@pytest.fixture
def trial(start: Start, ansible_for: AnsibleFor, tmp_path: Path, encryption: str) -> Iterator[Trial]:
    vcenter = start("", f"--encryption={encryption}", text=TAGGED)
    ansible = ansible_for(vcenter)
    done = ansible.module("worker_vm", **desired())
    assert done.rc == 0, done.out
    vcenter.clear()
    nodes = Nodes(ansible, tmp_path)
    yield Trial(vcenter, ansible, nodes, tmp_path)
    nodes.stop()


@pytest.mark.every_release
@pytest.mark.parametrize("encryption", ["on", pytest.param("off", marks=pytest.mark.slow)])
def test_job_stays_continuous_while_every_worker_moves(trial: Trial, release: str, encryption: str) -> None:
    planned = trial.run("--check")
    assert (planned.rc, trial.vcenter.writes()) == (0, []), planned.out
    trial.train()
    done = trial.run()
    assert done.rc == 0 and "continuous, moved: all" in done.out, done.out
    assert re.search(r"worker01: \d+ %; job: step \d+, \d+\.\d images/s, loss ", done.out), "no word of the job"
    assert sorted(trial.moved()) == WORKERS
    verdict = json.loads(trial.kept("verdict.json"))
    assert (verdict["verdict"], verdict["moved"], verdict["breaches"]) == ("continuous", "all", [])
    assert [one["ranks"] for one in verdict["moves"]] == [[WORKERS.index(one["worker"])] for one in verdict["moves"]]
    assert verdict["unproven"] == []
    transport = json.loads(trial.kept("transport.json"))
    assert [set(one["after"].values()) for one in transport["of_moves"]] == [{"tcp"}] * 4
    kinds = [one["kind"] for one in json.loads(trial.kept("events.json"))]
    assert [kinds.count(one) for one in ("VmMigratedEvent", FIRST[encryption])] == [4, 4], kinds
    assert [one["state"] for one in json.loads(trial.kept("tasks.json"))] == ["success"] * 4
    versions = json.loads(trial.kept("versions.json"))
    assert (len(versions["hosts"]), versions["collection"]) == (5, "1.1.0")
    assert versions["vcenter"]["version"] == RELEASES[release]
    timeline = json.loads(trial.kept("timeline.json"))
    stays = {len(one["stays"]) for one in timeline["hosts"]}
    assert (timeline["unit"], timeline["verdict"], stays) == ("images/s", "continuous", {2})
    assert "esx05.lab" in trial.kept("timeline.html")
    assert re.search(r'_running{.*,kind="test",.*} 0\n(.*\n)*.*_moves{.*,result="moved"} 4\n', trial.metrics())
    report = ET.fromstring(trial.kept("junit.xml"))
    assert (report.get("tests"), report.get("failures"), report.get("errors")) == ("5", "0", "0")
    assert trial.free() and trial.nodes.look()["state"] == "running"


def stays(moved: str) -> list[str]:
    """Where all are when one of them has gone to the free host."""
    homes = {name: f"esx{number:02}.lab" for number, name in enumerate(WORKERS, start=1)}
    return [f"{name} on {host}" for name, host in {**homes, moved: "esx05.lab"}.items()]


@pytest.mark.datacentre(text=BIG)
def test_refuses_to_test_workers_tied_to_host_devices(vcenter: Simulator, ansible: Ansible, tmp_path: Path) -> None:
    defaults = {"template": "debian-12", "gpus": [{"device": "10de:20f1"}]}
    requested = {"cluster": "gpu", "wait_for_address": False, "defaults": defaults, "workers": [{"name": "w1"}]}
    assert ansible.module("worker_vm", **requested).rc == 0
    vcenter.clear()
    done = Trial(vcenter, ansible, Nodes(ansible, tmp_path), tmp_path).run("--check")
    assert done.rc == 2, done.out
    message = "a vMotion test is not applicable: these workers are tied to their hosts by devices: w1; name those that"
    assert message in " ".join(done.out.split())
    assert vcenter.writes() == []


@pytest.mark.slow
def test_reports_another_users_ha_change_after_two_rounds(trial: Trial) -> None:
    trial.train()
    by_hand(trial.vcenter, overrides)
    before = str(config(trial.vcenter).drsVmConfig)
    other = vim.cluster.DasConfigInfo(enabled=not config(trial.vcenter).dasConfig.enabled)
    home = {"vmotion_test_return_home": True, "vmotion_test_rounds": 2, "vmotion_test_workers": WORKERS[:1]}
    running = trial.begin(**home)
    wait_for(has_started(trial.vcenter, "RelocateVM_Task"))
    by_hand(trial.vcenter, lambda _vms: vim.cluster.ConfigSpecEx(dasConfig=other))
    text = " ".join(running.communicate(timeout=LONG)[0].split())
    assert running.returncode == 2
    assert "Cluster gpu: HA was switched on or off during the test: restore the setting." in text
    assert "continuous, moved: all" in text
    assert trial.moved() == WORKERS[:1] * 4
    assert [one["target"] for one in json.loads(trial.kept("moves.json"))] == ["esx05.lab", "esx01.lab"] * 2
    assert str(config(trial.vcenter).drsVmConfig) == before, "the DRS settings of the workers are as before"


@pytest.mark.slow
def test_different_final_parameters_break_the_job(trial: Trial) -> None:
    trial.train()
    for rank, checksum in enumerate(("aa", "aa", "bb", "aa")):
        summary = trial.nodes.run_dir / f"summary{rank}.json"
        summary.write_text(json.dumps({"parameters_sha256": checksum}))
    done = trial.run(vmotion_test_workers=WORKERS[:1], vmotion_test_finish_timeout=2)
    assert done.rc == 2, done.out
    assert "the ranks ended with different parameters: all:summary0.json aa" in " ".join(done.out.split())
    verdict = json.loads(trial.kept("verdict.json"))
    assert ([one["kind"] for one in verdict["breaches"]], verdict["moved"]) == (["parameters"], "all")


@pytest.mark.slow
def test_new_node_problem_blocks_the_next_move(trial: Trial) -> None:
    """Nodes are looked into before each move: the licence of this one ends while the first worker moves."""
    trial.train()
    trial.vcenter.set_host("esx01.lab", vmotion_seconds=5)
    programs = trial.folder / "bin"
    programs.mkdir()
    reach = ["env", f"PATH={programs}:{os.environ['PATH']}", "sh", "-c"]
    running = trial.begin(vmotion_test_nodes=[{"name": "all", "reach": reach}])
    wait_for(has_started(trial.vcenter, "RelocateVM_Task"))
    (programs / "nvidia-smi").write_text("#!/bin/sh\necho 'License Status : Unlicensed'\n")
    (programs / "nvidia-smi").chmod(0o700)
    text = " ".join(running.communicate(timeout=LONG)[0].split())
    assert running.returncode == 2
    assert "the job is continuous and some of the moves took place: Cluster gpu: all: its vGPU is unlicensed" in text
    assert len(trial.moved()) == 1
    verdict = json.loads(trial.kept("verdict.json"))
    assert [one["moved"] for one in verdict["moves"]] == [True, False]
    assert trial.free()


@pytest.mark.slow
def test_failed_move_ends_the_test_while_job_continues(trial: Trial) -> None:
    trial.train()
    trial.vcenter.fault("RelocateVM_Task", "task_fails", fault="HostConnectFault", message="Too slow.", skip=1)
    done = trial.run()
    assert done.rc == 2
    assert "the job is continuous and some of the moves took place" in done.out
    assert "Too slow" in done.out
    first = trial.moved()[0]
    assert f"the workers stay where they are: {', '.join(stays(first))}" in " ".join(done.out.split())
    assert len(trial.moved()) == 2
    assert ET.fromstring(trial.kept("junit.xml")).get("failures") == "1"
    assert trial.free()


@pytest.mark.slow
def test_rank_killed_during_a_move_breaks_the_job(trial: Trial) -> None:
    trial.train()
    trial.vcenter.set_host("esx01.lab", vmotion_seconds=5)
    running = trial.begin()
    wait_for(has_started(trial.vcenter, "RelocateVM_Task"))
    os.kill(trial.nodes.steps(2)[-1]["pid"], signal.SIGKILL)
    text = running.communicate(timeout=LONG)[0]
    assert running.returncode == 2
    assert "the job is broken" in text
    verdict = json.loads(trial.kept("verdict.json"))
    assert verdict["verdict"] == "broken"
    assert "died" in {one["kind"] for one in verdict["breaches"]}
    assert len(trial.moved()) < len(WORKERS), "it stops at the first breach"
    assert trial.free()
