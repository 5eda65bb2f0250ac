"""Whole playbooks under attack, by the ansible-playbook command, as a user runs them."""

from __future__ import annotations

import json
import re
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from lab.simulator import ROOT
from tests.attack.controller import Ended, Kill
from tests.attack.ground import Ground
from tests.attack.scenarios import Scenario, Step, bare
from tests.integration import sites
from tests.integration.fabrics import addresses
from tests.integration.killing import kill_all
from tests.integration.rolling import LAB
from tests.integration.test_vmotion import TAGGED
from tests.integration.test_vmotion_test import Trial
from tests.integration.training import Nodes
from tests.integration.workers import desired

# An undisturbed playbook takes up to half a minute, and this machine may have more to do.
DEADLINE = 900.0
LOOK_SECONDS = 0.02
FATAL = re.compile(r"^fatal: \[[^\]]+\]: FAILED! => ?\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


@dataclass(frozen=True)
class Play(Scenario):
    """A playbook with its variables, on a data centre where modules have built something before."""

    playbook: str = ""
    variables: dict[str, Any] = field(default_factory=dict)


class Stage(Ground):
    """Runs of one playbook on its data centre."""

    scenario: Play

    def run(self, kill: Kill | None = None, timeout: int = 60) -> Ended:
        began = time.monotonic()
        running = self.ansible.start(*self.command(timeout))
        killer = threading.Thread(target=self._kill, args=(running, kill), daemon=True) if kill else None
        if killer:
            killer.start()
        try:
            text, hung = running.communicate(timeout=DEADLINE)[0], False
        except subprocess.TimeoutExpired:
            kill_all(running)
            text, hung = running.communicate()[0], True
        if killer:
            killer.join()
        killed = running.returncode < 0 and not hung
        return Ended(messages(text, running.returncode, killed), raised(text), hung, killed, time.monotonic() - began)

    def command(self, timeout: int) -> list[str]:
        """The playbook and what it is given; files of the run stay in the folder of the round."""
        given = {
            "vsphere_timeout": timeout,
            "esxi_host_evidence_dir": str(self.folder / "evidence"),
            "evidence_dir": str(self.folder / "evidence"),
            "fabric_record_dir": str(self.folder / "evidence"),
            "audit_dir": str(self.folder / "audit"),
            "record_dir": str(self.folder / "recording"),
            "discover_file": str(self.folder / "discovered.yml"),
            **self.scenario.variables,
        }
        return [f"playbooks/{self.scenario.playbook}.yml", *LAB, "-e", json.dumps(given)]

    def left_to_do(self) -> list[str]:
        return self.freed()

    def freed(self) -> list[str]:
        """A run with nothing to do needs no lock, so that of a dead one may stay: whoever wants it gets it."""
        if not self.held_by():
            return []
        for state in ("held", "free"):
            taken = self.ansible.module("cluster_lock", cluster="gpu", run="the next", state=state)
            if taken.rc:
                return [f"the lock is lost: {taken.msg}"]
        return self.held_by()

    def _kill(self, running: subprocess.Popen[str], kill: Kill) -> None:
        deadline = time.monotonic() + (kill.seconds or DEADLINE)
        while running.poll() is None and time.monotonic() < deadline:
            if kill.call and sum(self.vcenter.calls().values()) >= kill.call:
                break
            time.sleep(LOOK_SECONDS)
        if running.poll() is None:
            kill_all(running)


class RollbackStage(Stage):
    """A host that was changed since its evidence was taken."""

    def prepare(self) -> None:
        folder = json.dumps({"evidence_dir": str(self.folder / "before"), **self.scenario.variables})
        kept = self.ansible.playbook("playbooks/evidence.yml", *LAB, "-e", folder)
        if kept.rc:
            raise RuntimeError(f"there is no evidence: {kept.out}")
        super().prepare()

    def command(self, timeout: int) -> list[str]:
        (evidence,) = (self.folder / "before").glob("gpu-*.json")
        return [*super().command(timeout), "-e", f"rollback_evidence={evidence}"]


class VmotionStage(Stage):
    """The vMotion test of one worker while real mpirun trains on this machine."""

    def prepare(self) -> None:
        super().prepare()
        self.nodes = Nodes(self.ansible, self.folder)
        self.trial = Trial(self.vcenter, self.ansible, self.nodes, self.folder)
        self.trial.train()

    def command(self, timeout: int) -> list[str]:
        return self.trial.command(vmotion_test_workers=["worker01"], vsphere_timeout=timeout)

    def end(self) -> Counter[str]:
        """The last verdict; where a worker is depends on how many tests it took."""
        last = max((self.folder / "tests").glob("*/verdict.json"), key=lambda path: path.stat().st_mtime)
        kept = json.loads(last.read_text())
        return Counter([f"verdict {kept['verdict']}", f"moved {kept['moved']}", f"breaches {kept['breaches']}"])

    def close(self) -> None:
        if hasattr(self, "nodes"):
            self.nodes.stop()
        super().close()


def messages(text: str, code: int, killed: bool) -> list[dict[str, Any]]:
    """The sentences with which tasks failed, or that all went well."""
    if killed:
        return []
    failed = [" ".join(str(yaml.safe_load(block).get("msg", "")).split()) for block in FATAL.findall(text)]
    # The first is that of the task; a later one repeats it with what it means for the whole run.
    if code:
        return [{"module": "playbook", "rc": code, "msg": (failed or [text[-2000:]])[0]}]
    return [{"module": "playbook", "rc": 0, "msg": ""}]


def raised(text: str) -> str:
    """A traceback in the output; nothing without one."""
    found = re.search(r"Traceback \(most recent call last\).*|An exception occurred during task.*", text, re.DOTALL)
    return found[0][:3000] if found else ""


NAMES = ("esx01.lab", "esx02.lab")
SITE = yaml.safe_load((ROOT / "inventories" / "lab" / "group_vars" / "clusters.yml").read_text())
ADAPTER = {"port_group": "rdma-vmk", "device": "vmk1", "network": "10.216.0.0/24", "services": []}
ADAPTERS = [{**ADAPTER, "addresses": addresses(NAMES)}]
WORKERS = [sites.worker(1), sites.worker(2)]
FABRIC = {"fabric_adapters": ADAPTERS}
CHANGED = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
BUILT = sites.datacentre()
NETWORK = Step("rdma_fabric", {"cluster": "gpu", "port_groups": SITE["fabric_port_groups"], "adapters": ADAPTERS})
MACHINES = Step("worker_vm", {"cluster": "gpu", "defaults": SITE["worker_defaults"], "workers": WORKERS})
SET = Step("esxi_kernel_module", {"hosts": [NAMES[0]], **CHANGED["kernel_modules"][0]})

# All that write to vCenter, and all that only read it but those that need guests.
PLAYS = (
    Play("hosts.yml", bare(), (), playbook="hosts", variables={"esxi_host_profile": CHANGED}),
    Play("fabric.yml", BUILT, (), playbook="fabric", variables=FABRIC),
    Play("vmotion_test.yml", TAGGED, (), before=(Step("worker_vm", desired()),), playbook="vmotion_test"),
    Play("workers.yml", BUILT, (), before=(NETWORK,), playbook="workers", variables={"worker_vms": WORKERS}),
    Play(
        "teardown.yml",
        BUILT,
        (),
        before=(NETWORK, MACHINES),
        playbook="teardown",
        variables={**FABRIC, "confirm": True, "unreachable_is_idle": True, "worker_vms": WORKERS},
    ),
    Play("rollback.yml", bare(), (), before=(SET,), playbook="rollback", variables={"esxi_host_profile": CHANGED}),
    Play("evidence.yml", bare(), (), playbook="evidence", variables={"esxi_host_profile": CHANGED}),
    Play("preflight.yml", bare(), (), playbook="preflight", variables={"esxi_host_profile": CHANGED}),
    Play("window.yml", bare(), (), playbook="window"),
    Play(
        "depot.yml", bare(), (), playbook="depot", variables={"depot_url": "http://depot.lab/NVD-AIE-800_550.90.05.zip"}
    ),
    Play("audit.yml", BUILT, (), playbook="audit"),
    Play("account.yml", bare(), (), playbook="account"),
    Play("acceptance.yml", bare(), (), playbook="acceptance"),
    Play("discover.yml", bare(), (), playbook="discover", variables={"discover_replace": True}),
    Play("record.yml", bare(), (), playbook="record", variables={"record_keep": True}),
    Play(
        "site.yml",
        BUILT,
        (),
        playbook="site",
        variables={**FABRIC, "esxi_host_profile": CHANGED, "worker_vms": WORKERS},
    ),
)
STAGES: dict[str, type[Stage]] = {"rollback.yml": RollbackStage, "vmotion_test.yml": VmotionStage}


def stage(scenario: Play, certs: Path, folder: Path, **options: str) -> Stage:
    """Where this playbook is attacked."""
    return STAGES.get(scenario.name, Stage)(scenario, certs, folder, **options)
