"""Two workers and the playbooks that prepare them and train there; and what they need to train in a container image."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.nodes import nesting, surroundings
from lab.nodes.podman import Podman
from lab.nodes.programs import require, run
from lab.running import FOLDER, STORE
from lab.simulator import ROOT
from tests.integration.ansible import Outcome
from tests.lab.benchmark import NODES
from tests.lab.places import Place, ansible_login, desired

STACK = "t4-2019-cpu"
FILES, SERVED = FOLDER / "files", "/srv/files"
WORKERS = ("worker01", "worker02")
RUNS = "/var/lib/dml/runs"
SCRIPT = "/var/lib/dml/tensorflow1.py"
CPYTHON = "org.bytedeco:cpython:3.7.9-1.5.4:jar:linux-x86_64"
# The archives of packages that a node of the lab knows; the image itself knows nothing of the lab.
SURROUNDINGS = ("/etc/apt/sources.list.d", "/etc/apt/apt.conf.d", "/etc/pip.conf", "/etc/ssl/certs/dml-lab.crt")
BUILD_SECONDS = 7200


def archives(podman: Podman, name: str) -> str:
    """Lay out the two archives of the stack; the checksum of the first, a root of Debian."""
    FILES.mkdir(parents=True, exist_ok=True)
    root = FILES / f"{name.rpartition(':')[2]}.tar"
    if not root.exists():
        container = podman("create", name)
        podman("export", "--output", str(root.with_suffix(".part")), container)
        podman("rm", container)
        root.with_suffix(".part").rename(root)
    (FILES / "debian-12.tar").unlink(missing_ok=True)
    (FILES / "debian-12.tar").hardlink_to(root)
    interpreter()
    with root.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def interpreter() -> dict[str, Any]:
    """Lay out the archive of the stack's interpreter; the stack's part of it."""
    FILES.mkdir(parents=True, exist_ok=True)
    python = dict(yaml.safe_load((ROOT / "stacks" / f"{STACK}.yml").read_text())["image"]["python"])
    if not (FILES / python["archive"]["path"]).exists():
        run("mvn", "-q", "-B", "dependency:copy", f"-Dartifact={CPYTHON}", f"-DoutputDirectory={FILES}")
    return python


# An MPI and how it reaches other nodes, as each image for training has them.
MPI = ("python3", "openmpi-bin", "openssh-client")
SUITE = "bookworm"
SPARED = ("./usr/share/doc", "./usr/share/man", "./usr/share/locale", "./var/cache/apt", "./var/lib/apt/lists")


def made_elsewhere(name: str, packages: Sequence[str]) -> tuple[Path, str]:
    """The archive of an image of Debian with some packages, as others make one, and its checksum; made once."""
    path = FOLDER / name.rpartition("/")[2].partition(":")[0] / "image.tar"
    if not path.exists():
        require()
        path.parent.mkdir(parents=True, exist_ok=True)
        podman = Podman(STORE)
        podman.prepare()
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            root, part = f"{folder}/root", f"{folder}/image.tar"
            include = f"--include={','.join(packages)}"
            run("debootstrap", "--variant=minbase", include, SUITE, root, surroundings.mirror(SUITE))
            exclude = [f"--exclude={one}" for one in SPARED]
            run("tar", "--create", f"--file={root}.tar", f"--directory={root}", *exclude, ".")
            podman("import", f"{root}.tar", name)
            podman("save", "--format", "docker-archive", "--output", part, name)
            podman("rmi", name)
            Path(part).rename(path)
    with path.open("rb") as file:
        return path, hashlib.file_digest(file, "sha256").hexdigest()


# Debian's registry asks for a password, and has none.
OPEN = "sudo sed -i '/^auth:/,$d' /etc/docker/registry/config.yml && sudo systemctl restart docker-registry"


def registry(place: Place) -> str:
    """Where the first worker may have a registry."""
    return f"{place.address(1)}:5000"


def install_registry(place: Place, seconds: float) -> None:
    """Give the first worker Debian's registry of images, which whoever asks may read and write."""
    install = "sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq docker-registry > /dev/null"
    place.inside(1, f"sudo apt-get update -qq && {install} && {OPEN}", seconds=seconds)


def in_image(checksum: str) -> dict[str, Any]:
    """Return the variables with which playbooks build and use the image of the stack."""
    return {
        "stack": STACK,
        "stack_inputs": {"bases.files": f"file://{SERVED}", "image.archive.sha256": checksum},
        "guest_containers": True,
        "guest_image": True,
        "training_image_arguments": list(nesting.RUN_ARGUMENTS),
        "training_image_ulimits": {},
        "training_image_build_arguments": [
            *nesting.RUN_ARGUMENTS,
            *(f"--volume={path}:{path}:ro" for path in SURROUNDINGS),
        ],
        "training_command": ["/opt/dml/horovod/bin/python", "-u", SCRIPT],
    }


class Pair:
    """Workers, two by default, and the playbooks for them, with an inventory that has these variables."""

    def __init__(self, place: Place, expected: dict[str, Any], count: int = len(WORKERS)) -> None:
        self.place, self.results, self._numbers = place, place.ansible.folder / "results", range(1, count + 1)
        self.variables = {**expected, "training_results": str(self.results)}
        self.inventory = place.ansible.folder / "pair.yml"
        self.inventory.write_text(json.dumps(self._inventory()))

    def _inventory(self) -> dict[str, Any]:
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        nodes = {name: value for name, value in NODES.items() if name != "horovod_venv_shared"}
        workers = {f"worker0{n}": {"ansible_host": self.place.address(n)} for n in self._numbers}
        groups = {
            "clusters": {"hosts": {"gpu": here}},
            "workers": {"hosts": workers, "vars": {**ansible_login(self.place.lab.key), **nodes}},
        }
        return {"all": {"children": groups, "vars": self.variables}}

    def build(self) -> None:
        """The workers in the data centre."""
        built = self.place.ansible.module("worker_vm", **desired(self.place, self._numbers))
        assert built.rc == 0, built.out

    def bring(self) -> None:
        """Put the small training where containers have it."""
        text = (Path(__file__).parent / "tensorflow1.py").read_text()
        for number, _name in enumerate(WORKERS, 1):
            login = self.place.login(self.place.address(number), f"sudo tee {SCRIPT} > /dev/null")
            subprocess.run(login, input=text, text=True, check=True, timeout=60)

    def play(self, playbook: str, *arguments: str, **variables: Any) -> Outcome:
        """Run a playbook."""
        words = [f"playbooks/{playbook}.yml", "-i", str(self.inventory), "-e", json.dumps(variables), *arguments]
        return self.place.ansible.playbook(*words, timeout=BUILD_SECONDS)

    def moved(self, stun: float, **variables: Any) -> dict[str, Any]:
        """The verdict of a vMotion test in which each worker is stunned for a given number of seconds."""
        self.place.lab.hypervisor.ask("PUT", "/moves", {"precopy_seconds": 1, "stun_seconds": stun})
        given = {
            "training_name": "moved",
            "vmotion_test_dir": str(self.results / "tests"),
            "vmotion_test_warmup_steps": 5,
            "vmotion_test_limits": {"max_gap_s": 30, "resume_deadline_s": 60},
        }
        done = self.play("vmotion_test", **{**given, **variables})
        assert done.rc == 0, done.out[-4000:]
        (evidence,) = (self.results / "tests").iterdir()
        return dict(json.loads((evidence / "verdict.json").read_text()))

    def containers(self) -> list[str]:
        """The containers that run in the workers, and the processes of jobs."""
        look = "sudo podman ps --format '{{.Command}}'; pgrep -a 'mpirun|orted'; true"
        return [line for number in (1, 2) for line in self.place.inside(number, look).stdout.splitlines()]

    def records(self, name: str) -> list[dict[str, Any]]:
        """The records of a run as they arrived at the controller."""
        (path,) = self.results.glob(f"{name}/watch-*/records.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()]


def check_run(pair: Pair, name: str, first: int, last: int) -> None:
    """Each rank of a run recorded every step once, as one process on its own node."""
    for rank, worker in enumerate(WORKERS):
        steps = [one for one in pair.records(name) if one["rank"] == rank and "mark" not in one]
        assert [one["step"] for one in steps] == list(range(first, last + 1))
        assert {(one["host"], one["size"]) for one in steps} == {(worker, len(WORKERS))}
        assert len({(one["pid"], one["start"], one["job"]) for one in steps}) == 1
        assert all(isinstance(one["loss"], float) for one in steps)


def check_moved(verdict: dict[str, Any]) -> None:
    """The job went on, and both workers were moved."""
    assert (verdict["verdict"], verdict["moved"], verdict["unproven"]) == ("continuous", "all", [])
    assert len(verdict["moves"]) == len(WORKERS)
