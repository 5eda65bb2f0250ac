"""Create the mirror: repositories at NVIDIA's paths, each signed with its own key, and some untrusted ones."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

import packages
import recipes
from packages import run

BASE = "nvidia/compute"
PLACES = {recipes.CUDA: "cuda/repos", recipes.LEARNING: "machine-learning/repos"}
# The names of the keys in the stack, and their file names at NVIDIA.
KEYS = {recipes.CUDA: ("nvidia-2022", "3bf863cc.pub"), recipes.LEARNING: ("nvidia-2016", "7fa2af80.pub")}
STRANGER = "stranger"


def main(mirror: Path) -> None:
    """Create all repositories."""
    prints = {name: key(name) for name in (*(name for name, _file in KEYS.values()), STRANGER)}
    with tempfile.TemporaryDirectory() as work:
        for_apt(mirror, Path(work))
        for_dnf(mirror, Path(work))
    # Written last: this file shows that the mirror is complete.
    (mirror / "fingerprints.json").write_text(json.dumps(prints))


def key(name: str) -> str:
    """Create a signing key, and return its fingerprint."""
    run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-gen-key", name, "rsa2048", "sign", "never")
    rows = run("gpg", "--list-keys", "--with-colons", name).splitlines()
    return next(row.split(":")[9] for row in rows if row.startswith("fpr"))


def export(name: str, path: Path) -> None:
    """Write the public key to a file, as NVIDIA does."""
    path.write_text(run("gpg", "--armor", "--export", name))


def for_apt(mirror: Path, work: Path) -> None:
    """Create NVIDIA's two repositories for Ubuntu 18.04, an unsigned one, and one with a foreign signature."""
    for kind, place in PLACES.items():
        folder = mirror / BASE / place / "ubuntu1804/x86_64"
        for package in recipes.of_debian():
            if package.repository == kind:
                packages.deb(package, work, folder)
        index_apt(folder)
        name, file = KEYS[kind]
        export(name, folder / file)
        for copy in ("unsigned", STRANGER):
            if kind == recipes.LEARNING:
                shutil.copytree(folder, mirror / copy / "apt")
        sign_apt(folder, name)
    sign_apt(mirror / STRANGER / "apt", STRANGER)


def index_apt(folder: Path) -> None:
    """Create the package lists for apt."""
    (folder / "Packages").write_text(run("dpkg-scanpackages", "--multiversion", ".", cwd=folder))
    (folder / "Release").write_text(run("apt-ftparchive", "release", ".", cwd=folder))


def sign_apt(folder: Path, name: str) -> None:
    """Sign the package lists for apt."""
    run("gpg", "--batch", "--yes", "-u", name, "--clearsign", "-o", folder / "InRelease", folder / "Release")


def for_dnf(mirror: Path, work: Path) -> None:
    """Create the same repositories for RHEL 7, where packages are signed too."""
    for kind, place in PLACES.items():
        folder = mirror / BASE / place / "rhel7/x86_64"
        name, file = KEYS[kind]
        made = [packages.rpm(one, work, folder) for one in recipes.of_redhat() if one.repository == kind]
        if kind == recipes.LEARNING:
            # Signed lists with unsigned packages, and later unsigned lists with signed packages.
            shutil.copytree(folder, mirror / "unsigned-packages/dnf")
            index_dnf(mirror / "unsigned-packages/dnf", name)
        for one in made:
            run("rpmsign", "--define", f"_gpg_name {name}", "--define", "__gpg /usr/bin/gpg", "--addsign", one)
        if kind == recipes.LEARNING:
            shutil.copytree(folder, mirror / "unsigned/dnf")
            index_dnf(mirror / "unsigned/dnf", "")
            shutil.copytree(folder, mirror / STRANGER / "dnf")
            index_dnf(mirror / STRANGER / "dnf", STRANGER)
        index_dnf(folder, name)
        export(name, folder / file)


def index_dnf(folder: Path, name: str) -> None:
    """Create the package lists for dnf, signed if a key is given."""
    run("createrepo_c", "--quiet", folder)
    if name:
        run("gpg", "--batch", "--yes", "-u", name, "--armor", "--detach-sign", folder / "repodata/repomd.xml")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
