# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The remains of a killed build of the nodes' image are removed, never through a mount."""

from __future__ import annotations

import shutil
from pathlib import Path
from unittest import mock

from lab.nodes import image


def test_what_is_mounted_in_it_is_let_go_before_it_is_removed(tmp_path: Path) -> None:
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
