# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The root file system of machines is built once for each recipe, and remains of a killed build are removed safely."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from unittest import mock

import pytest

from lab.machines import kept, roots, shares
from lab.nodes.nodes import Share
from lab.nodes.programs import LabError


def test_each_recipe_is_built_once(tmp_path: Path) -> None:
    built: list[str] = []

    def build(folder: Path, kept: Path) -> None:
        assert kept == tmp_path / "packages"
        folder.mkdir()
        built.append(folder.name)

    reported: list[str] = []
    with mock.patch.multiple(roots, _build_engine=build, _build_guest=build):
        first = roots.ensure(tmp_path, reported.append)
        assert roots.ensure(tmp_path, reported.append) == first
    assert (len(built), len(reported)) == (2, 2)
    assert first.disk.parent == tmp_path / f"guest-{roots.guest_digest()}"
    assert first.engine.is_dir()


def test_removes_what_an_earlier_recipe_made_unless_it_is_in_use(tmp_path: Path) -> None:
    for name in ("engine-1", "engine-1.capabilities", "engine-2", "engine-2.capabilities", "guest-1", "engine-3.part"):
        (tmp_path / name).mkdir()
    used = kept.hold(tmp_path / "engine-2")

    def build(folder: Path, _kept: Path) -> None:
        folder.mkdir()

    with mock.patch.multiple(roots, _build_engine=build, _build_guest=build):
        made = roots.ensure(tmp_path, lambda _words: None)
        left = {made.engine.name, made.disk.parent.name, "engine-3.part", "lock"}
        assert {path.name for path in tmp_path.iterdir()} == {*left, "engine-2", "engine-2.capabilities"}
        os.close(used)
        roots.ensure(tmp_path, lambda _words: None)
    assert {path.name for path in tmp_path.iterdir()} == left


def test_a_build_that_fails_leaves_nothing_that_counts_as_built(tmp_path: Path) -> None:
    def fail(folder: Path, _kept: Path) -> None:
        folder.mkdir()
        raise LabError("no")

    with mock.patch.multiple(roots, _build_engine=fail), pytest.raises(LabError):
        roots.ensure(tmp_path, lambda _words: None)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir() and not path.name.endswith(".part")] == []


def test_unmounts_a_killed_build_first(tmp_path: Path) -> None:
    proc = tmp_path / "guest.part" / "root" / "proc"
    proc.mkdir(parents=True)
    mounted = {proc}

    def run(*command: str) -> str:
        assert command == ("umount", str(proc))
        mounted.clear()
        return ""

    def remove(path: Path, **_options: bool) -> None:
        assert not mounted, f"{path} is removed with what is mounted in it"
        path.rename(tmp_path / "gone")

    with (
        mock.patch.object(Path, "is_mount", lambda path: path in mounted),
        mock.patch.object(roots, "run", run),
        mock.patch.object(shutil, "rmtree", remove),
    ):
        roots._fresh(tmp_path / "guest.part")
    assert (tmp_path / "gone").is_dir()


def test_the_rdma_device_is_made_of_the_second_card_when_that_appears() -> None:
    (rule,) = [
        line for line in (roots.FOLDER / "rdma.rules").read_text().splitlines() if line and not line.startswith("#")
    ]
    assert 'KERNEL=="eth1"' in rule and "rdma link add rxe0 type rxe netdev eth1" in rule
    assert "etc/udev/rules.d/90-lab-rdma.rules" in roots.FILES


def test_a_share_is_a_disk_that_changes_with_its_folder(tmp_path: Path) -> None:
    here, store = tmp_path / "here", tmp_path / "store"
    here.mkdir()
    (here / "file").write_text("one")
    share = Share(here, "/opt/there")
    ((first, there),) = shares.disks(store, [share])
    output = subprocess.run(["debugfs", "-R", "cat file", str(first)], capture_output=True, text=True, check=True)
    assert (there, output.stdout) == ("/opt/there", "one")
    assert shares.disks(store, [share]) == [(first, "/opt/there")]
    (here / "file").write_text("another")
    ((second, _there),) = shares.disks(store, [share])
    assert second != first
    other = tmp_path / "other"
    other.mkdir()
    shares.disks(store, [Share(other, "/opt/other")])
    assert first.exists() and second.exists(), "the first is still in use here"


def test_a_share_for_writing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="cannot be shared for writing"):
        shares.disks(tmp_path, [Share(tmp_path, "/opt/there", writable=True)])
