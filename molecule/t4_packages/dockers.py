# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Create the repositories of Docker and NVIDIA's runtime, with a small daemon that reads settings as Docker does."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import packages
import repositories
from packages import run
from recipes import Package

# The path in the stack, the key that signs the repository, and the file with this key.
DOCKER = ("docker/linux/ubuntu", "docker", "docker/linux/ubuntu/gpg")
NVIDIA = {
    "libnvidia-container": "nvidia_container/libnvidia-container/stable/ubuntu18.04/amd64",
    "nvidia-container-runtime": "nvidia_container/nvidia-container-runtime/stable/ubuntu18.04/amd64",
    "nvidia-docker": "nvidia_container/nvidia-docker/ubuntu18.04/amd64",
}
NVIDIA_KEY = ("nvidia-container", "nvidia_container/nvidia-docker/gpgkey")
PYTHON = "#!/usr/bin/python3\n"
HERE = Path(__file__).parent
UNIT = """[Service]
Type=notify
ExecStart=/usr/bin/dockerd
Restart=no
[Install]
WantedBy=multi-user.target
"""


def of_docker() -> list[Package]:
    """Return the wanted version of Docker and a newer one."""
    made = []
    for version, containerd in (("18.09.7", "1.2.6-3"), ("18.09.9", "1.2.13-2")):
        full = f"5:{version}~3-0~ubuntu-bionic"
        daemon = PYTHON + (HERE / "stand_in_dockerd.py").read_text().replace("VERSION", version)
        files = (("/usr/bin/dockerd", daemon, 0o755), ("/lib/systemd/system/docker.service", UNIT, 0o644))
        client = (("/usr/bin/docker", PYTHON + (HERE / "stand_in_docker.py").read_text(), 0o755),)
        made += [
            Package("docker", "docker-ce", full, depends="docker-ce-cli, containerd.io (>= 1.2.2-3)", files=files),
            Package("docker", "docker-ce-cli", full, files=client),
            Package("docker", "containerd.io", containerd),
        ]
    return made


def of_nvidia() -> list[Package]:
    """Return NVIDIA's packages with the original dependencies."""
    # As in nvidia-docker2.
    settings = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "runtimeArgs": []}}}\n'
    made = []
    for docker in ("18.09.7", "18.09.9"):
        built = f"2.0.0+docker{docker}-3"
        exact = f"nvidia-container-runtime (= {built}), docker-ce (= 5:{docker}~3-0~ubuntu-bionic)"
        brought = (("/etc/docker/daemon.json", settings, 0o644),)
        made += [
            Package("nvidia-docker", "nvidia-docker2", f"2.0.3+docker{docker}-3", depends=exact, files=brought),
            Package(
                "nvidia-container-runtime",
                "nvidia-container-runtime",
                built,
                depends="nvidia-container-runtime-hook (<< 2.0.0)",
            ),
        ]
    tools = "libnvidia-container-tools (>= 0.1.0), libnvidia-container-tools (<< 2.0.0)"
    made.append(Package("nvidia-container-runtime", "nvidia-container-runtime-hook", "1.4.0-1", depends=tools))
    for version in ("1.0.2-1", "1.3.3-1"):
        needs = f"libnvidia-container1 (>= {version})"
        made += [
            Package("libnvidia-container", "libnvidia-container-tools", version, depends=needs),
            Package("libnvidia-container", "libnvidia-container1", version),
        ]
    return made


def main(mirror: Path) -> None:
    """Create all repositories."""
    prints = {name: repositories.key(name) for name in (DOCKER[1], NVIDIA_KEY[0])}
    with tempfile.TemporaryDirectory() as work:
        for_docker(mirror, Path(work))
        for package in of_nvidia():
            packages.deb(package, Path(work), mirror / NVIDIA[package.repository])
    for place in NVIDIA.values():
        repositories.index_apt(mirror / place)
        repositories.sign_apt(mirror / place, NVIDIA_KEY[0])
    repositories.export(NVIDIA_KEY[0], mirror / NVIDIA_KEY[1])
    # Written last: this file shows that the mirror is complete.
    (mirror / "dockers.json").write_text(json.dumps(prints))


def for_docker(mirror: Path, work: Path) -> None:
    """Create the Docker repository, which has suites and components like a distribution."""
    base, name, key = mirror / DOCKER[0], DOCKER[1], mirror / DOCKER[2]
    for package in of_docker():
        packages.deb(package, work, base / "pool")
    suite = base / "dists/bionic"
    lists = suite / "stable/binary-amd64"
    lists.mkdir(parents=True)
    (lists / "Packages").write_text(run("dpkg-scanpackages", "--multiversion", "pool", cwd=base))
    result = {"Suite": "bionic", "Codename": "bionic", "Components": "stable", "Architectures": "amd64"}
    options = [word for field, value in result.items() for word in ("-o", f"APT::FTPArchive::Release::{field}={value}")]
    (suite / "Release").write_text(run("apt-ftparchive", *options, "release", "dists/bionic", cwd=base))
    repositories.sign_apt(suite, name)
    repositories.export(name, key)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
