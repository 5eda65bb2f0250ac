"""A lab in the hands of a test: its workers, commands in their guests, and what this machine shows of it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.running import Lab
from lab.simulator import PASSWORD, USERNAME
from plugins.module_utils.vsphere import properties, session, tasks
from plugins.module_utils.vsphere.sdk import vim
from plugins.module_utils.workers.machine import Machine
from tests.integration.ansible import Ansible
from tests.integration.workers import DEFAULTS, host_of

USER = "trainer"
ANY_KEY = ("-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR")
LOGIN = (*ANY_KEY, "-o", "BatchMode=yes", "-o", "ConnectTimeout=3")


@dataclass(frozen=True)
class Place:
    """The lab and the Ansible that works with it."""

    lab: Lab
    ansible: Ansible
    numbers: Sequence[int] = (1, 2, 3, 4)
    connect_seconds: int = 3

    def address(self, number: int) -> str:
        """The address that a worker was given."""
        return f"{self.lab.environment['LAB_NETWORK'].rsplit('.', maxsplit=1)[0]}.{10 + number}"

    def login(self, address: str, *command: str) -> list[str]:
        """The ssh command to a node."""
        connect = ("-o", f"ConnectTimeout={self.connect_seconds}")  # the first one counts
        return ["ssh", *connect, *LOGIN, "-i", str(self.lab.key), f"{USER}@{address}", *command]

    def inside(
        self, number: int, command: str, check: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the guest of a worker."""
        done = subprocess.run(
            self.login(self.address(number), command), capture_output=True, text=True, timeout=seconds, check=False
        )
        assert done.returncode == 0 or not check, f"{command}: {done.stdout} {done.stderr}"
        return done

    @contextmanager
    def machine(self, number: int) -> Iterator[Machine]:
        """A worker in the hands of a person with the API."""
        facts = self.lab.facts("ready")
        login = {"hostname": facts["hostname"], "port": facts["port"], "username": USERNAME, "password": PASSWORD}
        params = {"validate_certs": True, "timeout": 60, "ca_path": facts["ca_file"], **login}
        with session.session(params) as opened:
            found = properties.find_all(opened, vim.VirtualMachine, ("name",))
            (ref,) = [ref for ref, values in found if values["name"] == f"worker0{number}"]
            yield Machine(opened, ref)

    def move(self, number: int, host: str) -> None:
        """Move a worker as a person does in the vSphere Client."""
        with self.machine(number) as machine:
            task = machine.ref.RelocateVM_Task(vim.vm.RelocateSpec(host=host_of(machine, host)))
            tasks.wait(machine.session, tasks.Started(task, "a person", "move"), 60)

    def facts_of(self, number: int) -> dict[str, Any]:
        """Return what the data centre knows of a worker."""
        return dict(self.lab.control.ask("GET", f"/vms/worker0{number}"))

    def free_hosts(self) -> list[str]:
        """The hosts without a worker."""
        used = {self.facts_of(number)["host"] for number in self.numbers}
        return [str(name) for name in self.lab.control.ask("GET", "/hosts") if name not in used]

    def free_host(self) -> str:
        """The one host of five that has no worker."""
        (free,) = self.free_hosts()
        return free


def ansible_login(key: Path | str, user: str = USER) -> dict[str, Any]:
    """The variables with which Ansible logs into a node."""
    return {
        "ansible_user": user,
        "ansible_ssh_private_key_file": str(key),
        "ansible_ssh_common_args": " ".join(LOGIN),
        "ansible_python_interpreter": "/usr/bin/python3",
        # That of the tests is a folder of this checkout, which the user of a node cannot make.
        "ansible_remote_tmp": "~/.ansible/tmp",
    }


def desired(place: Place, numbers: Sequence[int] = (1, 2, 3, 4), seconds: float = 120) -> dict[str, Any]:
    """Workers whose guests let the lab's owner in, and must have an address within a given number of seconds."""
    lab = place.lab.environment
    guest = {"gateway": lab["LAB_GATEWAY"], "user": USER, "ssh_keys": [lab["LAB_SSH_PUBLIC_KEY"]]}
    workers = [
        {
            "name": f"worker0{number}",
            "guest": {"address": f"{place.address(number)}/24", "rdma_addresses": [f"10.216.1.{number}/24"]},
        }
        for number in numbers
    ]
    defaults = {**DEFAULTS, "guest": guest}
    return {"cluster": "gpu", "defaults": defaults, "workers": workers, "address_timeout": seconds}


def until(true: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait for something to be true."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.05)


class Traces:
    """Everything of one lab that this machine shows; other labs may come and go beside it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        lab.podman.prepare()
        self.layers: set[str] = set()  # of every container that was seen: a mount of it must not outlive it

    def __call__(self) -> dict[str, list[str]]:
        lab = self.lab
        containers = lab.podman.containers(f"dml-lab={lab.lab}")
        for container in containers:
            facts = lab.podman.inspect(container)
            self.layers |= {facts["Id"], facts["GraphDriver"]["Data"]["UpperDir"].split("/")[-2]}
        processes = [text_of(path) for path in Path("/proc").glob("[0-9]*/cmdline")]
        mounts = Path("/proc/mounts").read_text().splitlines()
        return {
            "processes": [line for line in processes if lab.lab in line or str(lab.folder) in line],
            "links": [line for line in output_lines("ip", "-oneline", "link") if lab.lab in line],
            "namespaces": [line for line in output_lines("ip", "netns") if lab.lab in line],
            "mounts": [line for line in mounts if any(layer in line for layer in self.layers)],
            "groups": [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/*{lab.lab}*")],
            "containers": containers,
            "volumes": lab.podman("volume", "ls", "--quiet").split(),
            "folder": [str(path) for path in lab.folder.rglob("*")],
        }


def output_lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def text_of(path: Path) -> str:
    try:
        return path.read_text(errors="replace").replace("\0", " ")
    except OSError:  # it has ended
        return ""
