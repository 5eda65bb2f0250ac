"""A running lab: the simulated data centre and its hypervisor, and how to use and stop them."""

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
from collections.abc import Iterator, Mapping, Sequence
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
from lab.progress import Progress
from lab.simulator import DATACENTRES, ROOT, Centre, Control, Simulator

FOLDER = ROOT / ".cache" / "lab"
STORE, MACHINES = FOLDER / "podman", FOLDER / "machines"
KUBERNETES = ROOT / ".cache" / "kubernetes"  # built once for all labs
HOROVOD = FOLDER / "shared"  # the guests' Python with Horovod: one folder for all guests, kept for the next lab
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
SUBNET = "10.0.1.0/24"  # the network of the workers in inventories/lab
ENVIRONMENT = "env.sh"
START_SECONDS = 60
END_SECONDS = 60
NODE_SECONDS = 3600  # a request to the hypervisor can include a boot, on a busy machine
LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Desired:
    """The desired state of a lab; without a data centre it has only nodes, or virtual machines with ``machines``."""

    datacentre: Path | None = DATACENTRES / "lab.yml"
    subnet: str = SUBNET
    shares: Sequence[str] = ()
    proxy: bool = True
    nodes: bool = True
    machines: bool = False
    memory_mib: int = MEMORY_MIB  # for each machine
    containers: bool = False  # whether nodes can run containers
    suite: str = image.SUITE  # the Debian of the nodes
    options: Sequence[str] = ()  # for the simulator
    kubernetes: bool = False  # whether nodes are members of a Kubernetes cluster
    operator: bool = True  # whether the cluster starts with the MPI Operator


class Lab:
    """One lab in one folder; labs with different names are isolated from each other."""

    def __init__(self, name: str = "default", folder: Path = FOLDER) -> None:
        self.folder = folder / name
        if not NAME.fullmatch(name) or self.folder in (STORE, MACHINES, HOROVOD):
            raise LabError(f"A lab cannot be named {name!r}: its folder is removed with the lab. Use another --name.")
        self.lab = f"dml{hashlib.sha256(str(self.folder).encode()).hexdigest()[:8]}"
        self.podman = Podman(STORE)
        self.key = self.folder / "id_ed25519"
        self.kubernetes = Cluster(self.folder / "kubernetes")

    def up(self, desired: Desired | None = None) -> None:
        """Start the lab, after removing leftovers of a killed lab."""
        desired = desired or Desired()
        if desired.nodes:
            require(desired.machines)
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            # The environment file is written last: if it is missing, the lab was killed during its start.
            if self.facts("hypervisor" if desired.nodes else "ready") and (self.folder / ENVIRONMENT).exists():
                self._refuse_other(desired)
                return
            self._clear()
            try:
                self._start(desired)
            except BaseException:
                self._clear()
                raise
            self.export(self.environment)

    def export(self, variables: Mapping[str, str]) -> None:
        """Add variables to the file that a user's shell reads."""
        with (self.folder / ENVIRONMENT).open("a") as file:
            file.writelines(f"export {key}={value!r}\n" for key, value in variables.items())

    def down(self) -> None:
        """Stop the lab and remove all that it created, except for images and packages, which the next lab uses."""
        if self.key.exists():
            require((self.folder / host.FOLDER).exists())
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._locked():
            self._clear()
        shutil.rmtree(self.folder)

    def facts(self, part: str) -> dict[str, Any]:
        """Return the facts of a running part (hypervisor, or ready for the simulator), or {} if it does not run."""
        path = self.folder / f"{part}.json"
        try:
            facts = dict(json.loads(path.read_text()))
        except FileNotFoundError:
            return {}
        return facts if simulator.alive(facts["pid"]) else {}

    @property
    def hypervisor(self) -> Control:
        """Return a client for the hypervisor's interface."""
        facts = self.facts("hypervisor")
        if not facts:
            raise LabError(f"The lab in {self.folder} is not up: python -m lab up starts it.")
        return Control(facts["address"], NODE_SECONDS)

    @property
    def control(self) -> Centre:
        """Return a client for the data centre."""
        facts = self.facts("ready")
        if not facts:
            raise LabError(f"The lab in {self.folder} has no data centre: python -m lab up starts one.")
        return Centre(facts)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment variables with which Ansible reaches the data centre and its nodes."""
        centre, facts = self.facts("ready"), self.facts("hypervisor")
        variables = simulator.environment(centre) if centre else {}
        if facts:
            variables["LAB_HYPERVISOR"] = str(facts["address"])
            variables["LAB_NETWORK"], variables["LAB_GATEWAY"] = str(facts["network"]), str(facts["gateway"])
            variables["LAB_SSH_KEY"], variables["LAB_SSH_PUBLIC_KEY"] = str(self.key), self.public_key
        return {**variables, **self.kubernetes.environment}

    @property
    def public_key(self) -> str:
        """Return the public SSH key for logins to the nodes."""
        return self.key.with_suffix(".pub").read_text().strip()

    def node(self, name: str, user: str = "debian", **more: Any) -> dict[str, Any]:
        """Make a node that belongs to no virtual machine, if it does not exist, and return how to reach it."""
        made = self.hypervisor.ask("PUT", f"/nodes/{name}", {"user": user, "ssh_keys": [self.public_key], **more})
        return {
            "instance": name,
            "address": made["address"],
            "user": user,
            "port": "22",
            "identity_file": str(self.key),
        }

    def built(self) -> Built:
        """Return the build results that Kubernetes needs, building those that are missing."""
        self.podman.prepare()
        with Progress() as progress:
            return images.ensure(self.podman, KUBERNETES, HOROVOD, progress)

    def _refuse_other(self, desired: Desired) -> None:
        if desired.kubernetes and not self.kubernetes.kubeconfig.exists():
            raise LabError(f"The lab in {self.folder} is up without Kubernetes: take it down, or use another --name.")

    def _start(self, desired: Desired) -> None:
        if desired.kubernetes:
            self.kubernetes.prepare(self.built())
        if desired.nodes:
            with Progress() as progress:
                if desired.machines:
                    roots.ensure(MACHINES, progress)
                else:
                    self.podman.prepare()
                    image.ensure(self.podman, progress, desired.suite)
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
        command += ["--suite", desired.suite]
        command += ["--kubernetes"] if desired.kubernetes else []
        log = self.folder / "hypervisor.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self.facts("hypervisor"):
            if process.poll() is not None or time.monotonic() > deadline:
                last = log.read_text().strip().splitlines()[-1:] or [f"It has no output within {START_SECONDS} s."]
                raise LabError(f"The lab's hypervisor does not start. {last[0]} Its log is {log}.")
            time.sleep(LOOK_SECONDS)

    def _clear(self) -> None:
        """Stop and remove all parts of this lab, also those of a killed lab."""
        for part in ("hypervisor", "ready"):
            if facts := self.facts(part):
                _end(int(facts["pid"]))
            (self.folder / f"{part}.json").unlink(missing_ok=True)
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
    def _locked(self) -> Iterator[None]:
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _end(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + END_SECONDS
    while simulator.alive(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
        time.sleep(LOOK_SECONDS)
