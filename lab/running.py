# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A running lab: the simulated data centre, its hypervisor, and what is needed to use or end them."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import simulator
from lab.kubernetes import images
from lab.kubernetes.built import Built
from lab.kubernetes.cluster import Cluster
from lab.machines import host, roots
from lab.machines.machines import MEMORY_MIB
from lab.nodes import image, network
from lab.nodes.nodes import Nodes
from lab.nodes.podman import Podman
from lab.nodes.programs import LabError, can_make_nodes, require, run
from lab.simulator import DATACENTRES, ROOT, Centre, Control, Simulator

FOLDER = ROOT / ".cache" / "lab"
STORE, MACHINES = FOLDER / "podman", FOLDER / "machines"
KUBERNETES = ROOT / ".cache" / "kubernetes"  # what is built once for all labs
HOROVOD = FOLDER / "shared"  # the guests' Python with Horovod, one folder for all of them, kept for the next lab
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SUBNET = "10.0.1.0/24"  # the one that inventories/lab gives its workers
ENVIRONMENT = "env.sh"
START_SECONDS = 60
END_SECONDS = 60
NODE_SECONDS = 3600  # what is asked of the hypervisor may be a boot, on a machine that has much to do
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Desired:
    """How a lab should be; without a data centre it has nodes alone, which can be ``machines`` instead."""

    datacentre: Path | None = DATACENTRES / "lab.yml"
    subnet: str = SUBNET
    shares: Sequence[str] = ()
    proxy: bool = True
    nodes: bool = True
    machines: bool = False
    memory_mib: int = MEMORY_MIB  # of each machine
    containers: bool = False  # whether nodes can run containers
    options: Sequence[str] = ()  # of the simulator
    kubernetes: bool = False  # whether nodes are members of one
    operator: bool = True  # whether that has the MPI Operator from the beginning


class Lab:
    """One lab in one folder; labs of different names do not see each other."""

    def __init__(self, name: str = "default", folder: Path = FOLDER) -> None:
        self.folder = folder / name
        if not NAME.fullmatch(name) or self.folder in (STORE, MACHINES, HOROVOD):
            raise LabError(f"No lab can be called {name!r}: the folder of a lab is removed with it.")
        self.lab = f"dml{hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]}"
        self.podman = Podman(STORE)
        self.key = self.folder / "id_ed25519"
        self.kubernetes = Cluster(self.folder / "kubernetes")

    def up(self, desired: Desired | None = None) -> None:
        """Start it; what a killed one left is taken away before."""
        desired = desired or Desired()
        if desired.nodes:
            require(desired.machines)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            # The environment is written last: without it the lab was killed while it started.
            if self.facts("hypervisor" if desired.nodes else "ready") and (self.folder / ENVIRONMENT).exists():
                self._refuse_other(desired)
                return
            self._clear()
            try:
                self._start(desired)
            except BaseException:
                self._clear()
                raise
            lines = [f"export {key}={value!r}" for key, value in self.environment.items()]
            (self.folder / ENVIRONMENT).write_text("\n".join(lines) + "\n")

    def down(self) -> None:
        """End it, and take every trace away but the images and packages that are kept for the next."""
        if self.key.exists():
            require((self.folder / host.FOLDER).exists())
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            self._clear()
        shutil.rmtree(self.folder)

    def facts(self, what: str) -> dict[str, Any]:
        """What a running part says of itself: hypervisor, or ready for the simulator; nothing if it does not run."""
        path = self.folder / f"{what}.json"
        try:
            facts = dict(json.loads(path.read_text()))
        except FileNotFoundError:
            return {}
        return facts if simulator.alive(facts["pid"]) else {}

    @property
    def hypervisor(self) -> Control:
        """The hypervisor's interface."""
        facts = self.facts("hypervisor")
        if not facts:
            raise LabError(f"The lab in {self.folder} is not up: python -m lab up starts it.")
        return Control(facts["address"], NODE_SECONDS)

    @property
    def control(self) -> Centre:
        """The data centre."""
        facts = self.facts("ready")
        if not facts:
            raise LabError(f"The lab in {self.folder} has no data centre: python -m lab up starts one.")
        return Centre(facts)

    @property
    def environment(self) -> dict[str, str]:
        """What Ansible needs to reach the data centre and its nodes."""
        centre, facts = self.facts("ready"), self.facts("hypervisor")
        told = simulator.environment(centre) if centre else {}
        if facts:
            told["LAB_HYPERVISOR"] = str(facts["address"])
            told["LAB_NETWORK"], told["LAB_GATEWAY"] = str(facts["network"]), str(facts["gateway"])
            told["LAB_SSH_KEY"], told["LAB_SSH_PUBLIC_KEY"] = str(self.key), self.public_key
        return {**told, **self.kubernetes.environment}

    @property
    def public_key(self) -> str:
        """The key that lets the lab's owner into its nodes."""
        return self.key.with_suffix(".pub").read_text().strip()

    def node(self, name: str, user: str = "debian", **more: Any) -> dict[str, Any]:
        """Make a node that belongs to no virtual machine, if it is not there; how it is reached."""
        made = self.hypervisor.ask("PUT", f"/nodes/{name}", {"user": user, "ssh_keys": [self.public_key], **more})
        return {
            "instance": name,
            "address": made["address"],
            "user": user,
            "port": "22",
            "identity_file": str(self.key),
        }

    def built(self) -> Built:
        """What Kubernetes needs, built where it is not there."""
        self.podman.prepare()
        return images.ensure(self.podman, KUBERNETES, HOROVOD, _say)

    def _refuse_other(self, desired: Desired) -> None:
        if desired.kubernetes and not self.kubernetes.kubeconfig.exists():
            raise LabError(f"The lab in {self.folder} is up without Kubernetes: take it down, or give another --name.")

    def _start(self, desired: Desired) -> None:
        if desired.kubernetes:
            self.kubernetes.prepare(self.built())
        if desired.nodes:
            if desired.machines:
                roots.ensure(MACHINES, _say)
            else:
                self.podman.prepare()
                image.ensure(self.podman, _say)
            self.key.unlink(missing_ok=True)
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", self.lab, "-f", str(self.key))
        control = ""
        if desired.datacentre is not None:
            control = Simulator(desired.datacentre, *desired.options, folder=self.folder).facts["control"]
        if desired.nodes:
            self._start_hypervisor(desired, control)
        if desired.kubernetes:
            self.kubernetes.start(self.lab, self.facts("hypervisor")["network"], desired.operator)

    def _start_hypervisor(self, desired: Desired, control: str) -> None:
        command = [sys.executable, "-m", "lab.hypervisor", "--lab", self.lab, "--folder", str(self.folder)]
        command += ["--store", str(MACHINES if desired.machines else STORE), "--control", control]
        command += ["--network", desired.subnet]
        command += [f"--share={share}" for share in desired.shares] + ([] if desired.proxy else ["--no-proxy"])
        command += ["--machines", "--memory", str(desired.memory_mib)] if desired.machines else []
        command += ["--containers"] if desired.containers else []
        command += ["--kubernetes"] if desired.kubernetes else []
        log = self.folder / "hypervisor.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.facts("hypervisor"):
            if process.poll() is not None or time.monotonic() > deadline:
                said = log.read_text().strip().splitlines()[-1:] or [f"it says nothing within {START_SECONDS} s"]
                raise LabError(f"The lab's hypervisor does not start. {said[0]} What it said is in {log}.")
            time.sleep(LOOK_SECONDS)

    def _clear(self) -> None:
        """End what runs and remove what is there, whoever left it."""
        for what in ("hypervisor", "ready"):
            if facts := self.facts(what):
                _end(int(facts["pid"]))
            (self.folder / f"{what}.json").unlink(missing_ok=True)
        (self.folder / ENVIRONMENT).unlink(missing_ok=True)
        gone = network.Network(self.lab)
        if can_make_nodes(machines=True):
            host.clear(self.lab, self.folder)
            gone.remove()
        if can_make_nodes():
            Nodes(self.lab, self.folder, self.podman, gone).clear()
            gone.remove()
            shutil.rmtree(self.kubernetes.folder, ignore_errors=True)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while simulator.alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
