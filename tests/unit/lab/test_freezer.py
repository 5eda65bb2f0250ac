# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The freezer of either kind of control groups, on files that stand for the kernel's; tests/lab freezes real nodes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.nodes import freezer
from lab.nodes.programs import LabError


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(freezer, "CGROUPS", tmp_path)
    return tmp_path


def old(groups: Path) -> Path:
    """One hierarchy for each controller: the state is what was written, once the kernel is done."""
    group = groups / "freezer" / "dml1" / "libpod-1"
    group.mkdir(parents=True)
    (group / "freezer.state").write_text("THAWED\n")
    return group


def new(groups: Path, frozen: int) -> Path:
    """One hierarchy: what is wanted is one file, what is so is another."""
    group = groups / "dml1" / "libpod-1"
    group.mkdir(parents=True)
    (group / "cgroup.freeze").write_text("0\n")
    (group / "cgroup.events").write_text(f"populated 1\nfrozen {frozen}\n")
    return group


def test_uses_the_freezer_hierarchy_among_many(groups: Path) -> None:
    group = old(groups)
    freezer.freeze(group, 1)
    assert freezer.is_frozen(group)
    freezer.thaw(group)
    assert not freezer.is_frozen(group)


def test_reads_the_events_of_a_single_hierarchy(groups: Path) -> None:
    group = new(groups, 1)
    freezer.freeze(group, 1)
    assert (group / "cgroup.freeze").read_text() == "1"
    freezer.thaw(group)
    assert (group / "cgroup.freeze").read_text() == "0"


def test_resumes_everything_if_one_process_does_not_stop(groups: Path) -> None:
    group = new(groups, 0)
    with pytest.raises(LabError, match=r"could not be frozen: after 0\.02 s, some of its processes still ran"):
        freezer.freeze(group, 0.02)
    assert (group / "cgroup.freeze").read_text() == "0"


def test_all_nodes_of_one_lab_go_on(groups: Path) -> None:
    group, other = old(groups), groups / "freezer" / "dml2" / "libpod-2"
    other.mkdir(parents=True)
    (other / "freezer.state").write_text("THAWED\n")
    for one in (group, other):
        freezer.freeze(one, 1)
    freezer.thaw_below("dml1")
    assert [freezer.is_frozen(one) for one in (group, other)] == [False, True]


def test_a_process_is_in_the_group_right_under_its_lab(groups: Path) -> None:
    found = freezer.group_of(os.getpid())
    assert groups in found.parents or found in {groups, groups / "freezer"}
    assert len(found.relative_to(groups).parts) <= 3
    with pytest.raises(LabError, match="has ended, and with it the node"):
        freezer.group_of(2**22 + 1)
