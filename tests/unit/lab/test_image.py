# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nodes' images: their names, their archives, and the remains of a killed build."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

import pytest

from lab.nodes import image, surroundings
from lab.nodes.kinds import Kind


def test_unmounts_everything_in_a_folder_before_its_removal(tmp_path: Path) -> None:
    proc = tmp_path / "rootfs-killed" / "proc"
    proc.mkdir(parents=True)
    mounted, done = {proc}, []

    def run(*command: str) -> str:
        done.append(command)
        mounted.discard(Path(command[1]))
        return ""

    def remove(path: Path) -> None:
        assert not mounted, f"{path} is removed with what is mounted in it"
        done.append(("remove", str(path)))

    with (
        mock.patch.object(Path, "is_mount", lambda path: path in mounted),
        mock.patch.object(image, "run", run),
        mock.patch.object(shutil, "rmtree", remove),
    ):
        image._remove_leftovers(tmp_path)
    assert done == [("umount", str(proc)), ("remove", str(proc.parent))]


def test_an_image_contains_nothing_that_debootstrap_has_left_mounted(tmp_path: Path) -> None:
    mounted, packed = set[Path](), list[Path]()

    def run(*command: str) -> str:
        if command[0] == "debootstrap":
            (Path(command[4]) / "etc").mkdir()
            mounted.add(Path(command[4]) / "proc")
        elif command[0] == "umount":
            mounted.discard(Path(command[1]))
        return ""

    def pack(_podman: object, root: Path, _name: str) -> None:
        assert not mounted, "the archive contains the processes of this machine"
        packed.append(root)

    with (
        mock.patch.object(Path, "is_mount", lambda path: path in mounted),
        mock.patch.object(image, "run", run),
        mock.patch.object(image, "_import", pack),
        mock.patch.object(surroundings, "mirror", return_value="http://archive"),
    ):
        image._build(mock.Mock(store=tmp_path), "localhost/node:1", "bookworm")
    assert len(packed) == 1 and not packed[0].exists()


TARGETS = """http://archive/debian/|bookworm|main|Debian
http://archive/debian/|bookworm-updates|main|Debian
http://archive/debian/|bookworm|contrib|Debian
http://archive/security/|bookworm-security|main|Debian
http://archive/debian/|bookworm-backports|main|Debian
http://vendor/|stable|main|Vendor"""


@pytest.mark.parametrize(
    ("suite", "targets"),
    [("bookworm", TARGETS), ("trixie", TARGETS), ("trixie", TARGETS + TARGETS.replace("bookworm", "trixie"))],
)
def test_the_archives_of_this_machine_have_another_debian_too(
    monkeypatch: pytest.MonkeyPatch, suite: str, targets: str
) -> None:
    monkeypatch.delenv(surroundings.MIRROR, raising=False)
    monkeypatch.setattr(surroundings.shutil, "which", lambda _name: "/usr/bin/apt-get")
    monkeypatch.setattr(surroundings, "run", lambda *_words: targets)
    assert surroundings.sources(suite) == [
        ("http://archive/debian/", suite, "main"),
        ("http://archive/debian/", f"{suite}-updates", "main"),
        ("http://archive/security/", f"{suite}-security", "main"),
    ]
    assert surroundings.mirror(suite) == "http://archive/debian/"


def test_each_debian_has_an_image_that_outlives_the_other() -> None:
    names = [Kind(suite).image.partition(":")[0] for suite in image.SUITES]
    assert Kind().image == image.tag() and len(set(names)) == len(names) == 2
