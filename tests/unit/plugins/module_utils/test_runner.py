# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The runner: one gate, read back, and a result that hides no host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import CollectionError, Failed, Refused, Unreachable
from plugins.module_utils.plan import MAINTENANCE, REBOOT, Plan
from tests.fakes.module import FakeModule, FakeSubject

WANTED = {"mtu": 9000}


def want(current: Mapping[str, Any], **more: Any) -> Plan:
    return Plan(before=current, after={**current, **WANTED}, **more)


def converge(subjects: Sequence[FakeSubject], *, check: bool = False, plan: Any = want) -> dict[str, Any]:
    work = runner.Work(subjects=subjects, refresh=lambda _subjects: None, make_plan=plan)
    return runner.converge(FakeModule(check_mode=check), work)


def test_check_apply_check_apply_write_nothing_once_nothing_nothing() -> None:
    subject = FakeSubject("esx1", {"mtu": 1500})
    planned = converge([subject], check=True)
    assert (planned["changed"], subject.writes) == (True, [])
    applied = converge([subject])
    assert (applied["changed"], subject.writes) == (True, [{"mtu": 9000}])
    assert applied["diff"] == planned["diff"]
    assert not converge([subject], check=True)["changed"]
    assert not converge([subject])["changed"]
    assert len(subject.writes) == 1


def test_the_diff_holds_the_changed_keys_alone() -> None:
    (diff,) = converge([FakeSubject("esx1", {"mtu": 1500, "name": "vmk1"})])["diff"]
    assert (diff["before"], diff["after"]) == ({"mtu": 1500}, {"mtu": 9000})
    assert diff["before_header"] == "esx1: settings"


def test_a_deaf_host_fails_and_says_what_still_differs() -> None:
    result = converge([FakeSubject("esx1", {"mtu": 1500}, deaf=True), FakeSubject("esx2", {"mtu": 1500})])
    assert result["failed"]
    assert "esx1: could not change settings: the server accepted the change, yet mtu is 1500, not 9000" in result["msg"]
    assert [host.get("failed", False) for host in result["hosts"]] == [True, False]


def test_a_refusal_anywhere_means_no_write_anywhere() -> None:
    good = FakeSubject("esx1", {"mtu": 1500})
    bad = FakeSubject(
        "esx2", {"mtu": 1500}, on_read=Refused("esx2", "read settings", "there is no vmk9", "name another")
    )
    result = converge([good, bad])
    assert result["failed"]
    assert not result["changed"]
    assert good.writes == []
    assert result["msg"] == "esx2: could not read settings: there is no vmk9; name another"


def test_an_unreachable_host_does_not_stop_the_others() -> None:
    good = FakeSubject("esx1", {"mtu": 1500})
    gone = FakeSubject("esx2", {}, on_read=Unreachable("esx2", "read settings", "notResponding"))
    result = converge([good, gone])
    assert good.writes == [{"mtu": 9000}]
    assert result["failed"]
    assert result["changed"]


def test_a_failed_write_is_reported_for_its_host() -> None:
    broken = FakeSubject("esx1", {"mtu": 1500}, on_apply=Failed("esx1", "set mtu", "the server said NoPermission"))
    result = converge([broken, FakeSubject("esx2", {"mtu": 1500})])
    assert [(host["host"], host["changed"]) for host in result["hosts"]] == [("esx1", True), ("esx2", True)]
    assert result["msg"] == "esx1: could not set mtu: the server said NoPermission"


def test_what_is_unmet_is_shown_in_check_mode_and_refused_before_any_write_otherwise() -> None:
    def plan(current: Mapping[str, Any]) -> Plan:
        return want(current, needs=frozenset({MAINTENANCE}), unmet=("it is not in maintenance mode",))

    subject = FakeSubject("esx1", {"mtu": 1500})
    planned = converge([subject], check=True, plan=plan)
    assert planned["hosts"][0]["unmet"] == ["it is not in maintenance mode"]
    assert not planned.get("failed")
    refused = converge([subject], plan=plan)
    assert refused["failed"]
    assert subject.writes == []


def test_what_only_a_later_boot_can_take_is_planned_and_not_written() -> None:
    def plan(current: Mapping[str, Any]) -> Plan:
        return want(current, needs=frozenset({REBOOT}), later=frozenset({"mtu"}))

    subject = FakeSubject("esx1", {"mtu": 1500})
    planned = converge([subject], check=True, plan=plan)
    assert planned["changed"]
    assert planned["hosts"][0]["reboots"] == 2
    done = converge([subject], plan=plan)
    assert (done["changed"], subject.writes, done["needs"]) == (False, [], ["reboot"])


def test_a_planner_that_refuses_names_the_host() -> None:
    def refuse(_current: Mapping[str, Any]) -> Plan:
        raise Refused("options", "merge them", "a key stands twice")

    result = converge([FakeSubject("esx1", {})], plan=refuse)
    assert result["msg"].startswith("esx1: options: could not merge them")


@pytest.mark.parametrize("error", [CollectionError("vc", "log in", "no"), Refused("vc", "log in", "no")])
def test_run_ends_the_module_with_one_sentence(error: CollectionError) -> None:
    module = FakeModule()

    def body() -> dict[str, Any]:
        raise error

    runner.run(module, body)
    assert module.ended == [("fail", {"msg": "vc: could not log in: no"})]


def test_run_passes_warnings_on() -> None:
    module = FakeModule()
    runner.run(module, lambda: {"changed": False, "warnings": ["mind the switch"]})
    assert module.warned == ["mind the switch"]
    assert module.ended == [("exit", {"changed": False})]


def test_hosts_to_which_the_same_happened_share_a_sentence() -> None:
    gone = [FakeSubject(name, {}, on_read=Unreachable(name, "read settings", "notResponding")) for name in ("a", "b")]
    assert converge(gone)["msg"] == "a, b: could not read settings: notResponding"
