# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A migration: never live under emulation, and whatever fails leaves the guest running at its source."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from lab.hypervisor.backend import Cancelled, Move
from lab.machines.health import LabFailure
from lab.machines.moving import Migration
from lab.nodes.programs import LabError

QUICK = Move(0.0, 0.0)
COPYING = "Data total: 100 MiB\nData remaining: 25 MiB\n"


class Host:
    """A libvirtd that writes down what it is asked; ``virsh migrate`` is a program of the test's."""

    def __init__(self, name: str, migrate: Sequence[str] = ("true",), state: str = "running") -> None:
        self.name, self.address, self.requests = name, f"address-of-{name}", list[str]()
        self.migrate, self.state = migrate, state

    def virsh(self, *words: str, refused: Sequence[str] = ()) -> str:
        self.requests.append(" ".join(words[:2]))
        return {"domstate": f"{self.state}\n", "domjobinfo": COPYING}.get(words[0], "")

    def command(self, *words: str) -> list[str]:
        self.requests.append(" ".join(words))
        return list(self.migrate)


def migration(source: Host, target: Host, how: Move = QUICK, is_live: bool = False, report: Any = None) -> Migration:
    noted: Any = (source, target)  # as much of a host as a migration asks
    return Migration("vm-7", *noted, how, report or (lambda _percent: None), threading.Event(), is_live)


def without_looks(host: Host) -> list[str]:
    return [reported for reported in host.requests if not reported.startswith("domjobinfo")]


def test_under_emulation_the_guest_pauses_during_the_copy() -> None:
    source, target = Host("a"), Host("b")
    migration(source, target).run()
    copy = "migrate --unsafe vm-7 qemu+tcp://address-of-b/system tcp://address-of-b"
    assert without_looks(source) == ["suspend vm-7", copy]
    assert target.requests == ["resume vm-7", "domstate vm-7"]


def test_with_kvm_the_guest_runs_during_the_copy() -> None:
    source, target = Host("a"), Host("b")
    migration(source, target, is_live=True).run()
    assert without_looks(source) == ["migrate --unsafe --live vm-7 qemu+tcp://address-of-b/system tcp://address-of-b"]
    assert target.requests == ["suspend vm-7", "resume vm-7", "domstate vm-7"]


def test_the_stun_lasts_as_long_as_it_should_and_the_copy_is_part_of_it() -> None:
    assert 0.5 <= migration(Host("a", ("sleep", "0.3")), Host("b"), Move(0.0, 0.5)).run() < 0.75


def test_a_copy_that_fails_leaves_the_guest_at_its_source() -> None:
    source = Host("a", ("sh", "-c", "echo error: operation failed: job failed; exit 1"))
    target = Host("b")
    message = "vm-7 could not be moved from a to b: error: operation failed: job failed. It stays on its source host."
    with pytest.raises(LabError, match=f"^{message}$") as raised:
        migration(source, target).run()
    assert not isinstance(raised.value, LabFailure)
    assert source.requests[-2:] == ["resume vm-7", "domstate vm-7"]
    assert target.requests == []


def test_a_cancelled_task_aborts_the_copy_and_the_guest_goes_on_at_its_source() -> None:
    reported: list[int] = []

    def report(percent: int) -> None:
        reported.append(percent)
        if percent == 75:
            raise Cancelled

    source, target = Host("a", ("sh", "-c", "sleep 0.7; exit 1")), Host("b")
    with pytest.raises(Cancelled):
        migration(source, target, report=report).run()
    assert without_looks(source)[-3:] == ["domjobabort vm-7", "resume vm-7", "domstate vm-7"]
    assert (target.requests, reported) == ([], [*sorted(reported[:-1]), 75])


def test_a_move_that_shall_fail_copies_nothing() -> None:
    source, target = Host("a"), Host("b")
    with pytest.raises(LabError, match=r"^no room$"):
        migration(source, target, Move(0.0, 0.0, "no room")).run()
    assert (source.requests, target.requests) == (["suspend vm-7", "resume vm-7", "domstate vm-7"], [])


@pytest.mark.parametrize("is_live", [False, True])
def test_a_guest_that_does_not_go_on_is_a_failure_of_the_lab(is_live: bool) -> None:
    with pytest.raises(LabFailure, match="The lab failed, not the job: vm-7 is crashed on b"):
        migration(Host("a"), Host("b", state="crashed"), is_live=is_live).run()


def test_a_limit_of_speed_is_handed_on() -> None:
    source = Host("a")
    migration(source, Host("b"), Move(0.0, 0.0, mib_per_second=8)).run()
    assert "migrate --unsafe --bandwidth=8 vm-7" in " ".join(source.requests)


class Left(Host):
    """A source that its guest leaves, as libvirt says it between the end of the copy and that of virsh."""

    def virsh(self, *words: str, refused: Sequence[str] = ()) -> str:
        result = super().virsh(*words, refused=refused)
        if words[0] == "domjobinfo" and self.requests.count("domjobinfo vm-7") > 1:
            raise LabError("error: failed to get domain 'vm-7'")
        return result


def test_a_guest_that_has_left_its_source_is_not_a_failure() -> None:
    reported: list[int] = []
    source, target = Left("a", ("sleep", "1.3")), Host("b")
    move = migration(source, target, report=reported.append)
    move.run()
    assert reported == sorted(reported), "the progress of a task went back"
    assert reported[-2:] == [75, 75]
    assert (move.at, target.requests) == (target, ["resume vm-7", "domstate vm-7"])


def test_a_guest_of_a_cancelled_task_that_had_just_left_goes_on_at_its_target() -> None:
    def report(percent: int) -> None:
        if percent >= 5:
            raise Cancelled

    source, target = Left("a", ("sleep", "0.1")), Host("b")
    move = migration(source, target, report=report)
    with pytest.raises(Cancelled):
        move.run()
    assert (move.at, target.requests) == (target, ["resume vm-7", "domstate vm-7"])
