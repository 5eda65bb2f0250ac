"""Derived images: Debian packages and files of the lab on top of the node image, tagged with a hash of the recipe."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.nodes import image, surroundings
from lab.nodes.podman import Podman

SOURCES = "/etc/apt/sources.list"  # does not exist in the node image
CERTIFICATES = Path("/etc/ssl/certs")  # this machine's certificates, because its archives may use a local authority
FILES = "/lab-files"
INSTALL = """\
set -eu
printf '%s' "$SOURCES" >{sources}
apt-get update --quiet --quiet
DEBIAN_FRONTEND=noninteractive apt-get install --quiet --quiet --yes --no-install-recommends $PACKAGES
rm -rf {sources} /var/lib/apt/lists/* /var/cache/apt/archives/*.deb /var/log/*.log
"""


@dataclass(frozen=True)
class Layer:
    """The additions of an image to the node image: packages, files by path, and a script."""

    name: str
    packages: tuple[str, ...]
    folder: Path
    files: tuple[tuple[str, str], ...] = ()
    script: str = ""
    changes: tuple[str, ...] = ()

    @property
    def tag(self) -> str:
        """Return the image's name, which contains a hash of the recipe."""
        texts = [(self.folder / here).read_text() for _there, here in self.files]
        parts = [image.tag(), self.packages, self.files, self.script, self.changes, INSTALL, texts]
        return f"{self.name}:{hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:12]}"

    @property
    def work(self) -> str:
        """Return the script that builds the image."""
        copies = [f"install -D --mode=755 {FILES}/{here} /{there}\n" for there, here in self.files]
        return "".join([INSTALL.format(sources=SOURCES), *copies, self.script])


def ensure(podman: Podman, layer: Layer, report: Callable[[str], None]) -> str:
    """Build the image if it does not exist, and return its name; only one build at a time may run in a store."""
    name = layer.tag
    if name in podman("images", "--format", "{{.Repository}}:{{.Tag}}").split():
        return name
    report(f"Building {name} (once)")
    container = f"build-{name.replace('/', '-').replace(':', '-')}"
    podman("rm", "--force", "--ignore", container)
    podman(*_command(layer, container))
    changes = [word for change in layer.changes for word in ("--change", change)]
    podman("commit", "--quiet", *changes, container, name)
    podman("rm", container)
    for other in podman("images", "--format", "{{.Repository}}:{{.Tag}}", layer.name).split():
        if other != name:
            podman("rmi", other, refused=("image is in use", "image used by"))
    return name


def _command(layer: Layer, container: str) -> list[str]:
    """Return podman's arguments; the build uses this machine's network to reach the archives."""
    archives = "".join(f"deb {uri} {release} {part}\n" for uri, release, part in surroundings.sources(image.SUITE))
    arguments = ["run", "--name", container, "--network", "host", "--volume", f"{layer.folder}:{FILES}:ro"]
    if CERTIFICATES.is_dir():
        arguments += ["--volume", f"{CERTIFICATES}:{CERTIFICATES}:ro"]
    arguments += ["--env", f"SOURCES={archives}", "--env", f"PACKAGES={' '.join(layer.packages)}"]
    return [*arguments, image.tag(), "sh", "-c", layer.work]
