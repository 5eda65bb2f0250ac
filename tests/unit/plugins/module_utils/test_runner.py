"""The runner: one gate, read back, a result that hides no host, and options refused before a module runs."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import CollectionError, Failed, NotConnected, Refused, Unreachable
from plugins.module_utils.plan import MAINTENANCE, POWER_OFF, REBOOT, Plan
from tests.fakes.module import FakeModule, FakeSubject

DESIRED = {"mtu": 9000}


def want(current: Mapping[str, Any], **more: Any) -> Plan:
    return Plan(before=current, after={**current, **DESIRED}, **more)


def converge(subjects: Sequence[FakeSubject], *, check: bool = False, plan: Any = want) -> dict[str, Any]:
    work = runner.Work(subjects=subjects, refresh=lambda _subjects: None, make_plan=plan)
    return runner.converge(FakeModule(check_mode=check), work)


def test_writes_only_in_the_first_real_run() -> None:
    subject = FakeSubject("esx1", {"mtu": 1500})
    planned = converge([subject], check=True)
    assert (planned["changed"], subject.writes) == (True, [])
    applied = converge([subject])
    assert (applied["changed"], subject.writes) == (True, [{"mtu": 9000}])
    assert applied["diff"] == planned["diff"]
    assert not converge([subject], check=True)["changed"]
    assert not converge([subject])["changed"]
    assert len(subject.writes) == 1


def test_diff_contains_only_changed_keys() -> None:
    (diff,) = converge([FakeSubject("esx1", {"mtu": 1500, "name": "vmk1"})])["diff"]
    assert (diff["before"], diff["after"]) == ({"mtu": 1500}, {"mtu": 9000})
    assert diff["before_header"] == "esx1: settings"


def test_reports_differences_that_remain_after_a_write() -> None:
    result = converge([FakeSubject("esx1", {"mtu": 1500}, deaf=True), FakeSubject("esx2", {"mtu": 1500})])
    assert result["failed"]
    assert "esx1: could not change settings: the server accepted the change, yet mtu is 1500, not 9000" in result["msg"]
    assert [host.get("failed", False) for host in result["hosts"]] == [True, False]


def test_writes_nothing_if_any_host_refuses() -> None:
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


def test_refuses_unmet_needs_except_in_check_mode() -> None:
    def plan(current: Mapping[str, Any]) -> Plan:
        return want(current, needs=frozenset({MAINTENANCE}), unmet=("it is not in maintenance mode",))

    subject = FakeSubject("esx1", {"mtu": 1500})
    planned = converge([subject], check=True, plan=plan)
    assert planned["hosts"][0]["unmet"] == ["it is not in maintenance mode"]
    assert not planned.get("failed")
    refused = converge([subject], plan=plan)
    assert refused["failed"]
    assert subject.writes == []


def test_plans_but_does_not_write_later_changes() -> None:
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
def test_run_reports_an_error_and_ends_the_module(error: CollectionError) -> None:
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


def test_joins_hosts_with_the_same_error() -> None:
    gone = [FakeSubject(name, {}, on_read=Unreachable(name, "read settings", "notResponding")) for name in ("a", "b")]
    assert converge(gone)["msg"] == "a, b: could not read settings: notResponding"


def full_plan(current: Mapping[str, Any]) -> Plan:
    return want(
        current,
        needs=frozenset({REBOOT, MAINTENANCE, POWER_OFF}),
        why=("a boot is owed",),
        warnings=("mind the switch",),
    )


def test_result_has_each_hosts_state_before_and_after() -> None:
    subjects = [FakeSubject("esx1", {"mtu": 1500}), FakeSubject("esx2", {"mtu": 9000})]
    planned = converge(subjects, check=True, plan=full_plan)
    changed = {"before_header": "esx1: settings", "after_header": "esx1: settings"}
    host = {
        "host": "esx1", "changed": True, "needs": ["maintenance", "power_off", "reboot"], "reboots": 1,
        "why": ["a boot is owed"], "unmet": [], "warnings": ["mind the switch"], "state": {"mtu": 9000},
    }  # fmt: skip
    assert planned == {
        "changed": True,
        "needs": ["maintenance", "power_off", "reboot"],
        "hosts": [host, {**host, "host": "esx2", "changed": False}],
        "diff": [{**changed, "before": {"mtu": 1500}, "after": {"mtu": 9000}}],
        "warnings": ["esx1, esx2: mind the switch"],
    }
    assert converge(subjects, plan=full_plan) == planned


def test_needs_are_listed_alphabetically() -> None:
    needs = "qwertyuiopasdfghjkl"
    host = FakeSubject("esx1", {"mtu": 1500})
    result = converge([host], check=True, plan=lambda current: want(current, needs=frozenset(needs)))
    assert result["needs"] == result["hosts"][0]["needs"] == sorted(needs)


def test_reports_failed_and_successful_hosts_together() -> None:
    gone = FakeSubject("esx1", {}, on_read=Unreachable("esx1", "read settings", "notResponding"))
    sentence = "esx1: could not read settings: notResponding"
    for check in (True, False):
        result = converge([gone, FakeSubject("esx2", {"mtu": 1500})], check=check)
        assert result["hosts"][0] == {"host": "esx1", "changed": False, "failed": True, "msg": sentence}
        assert (result["msg"], result["hosts"][1]["changed"]) == (sentence, True)
        assert len(result["diff"]) == 1


def test_returns_no_changes_if_one_host_is_refused() -> None:
    bad = FakeSubject("esx2", {}, on_read=Refused("esx2", "read settings", "there is no vmk9"))
    sentence = "esx2: could not read settings: there is no vmk9"
    assert converge([FakeSubject("esx1", {"mtu": 1500}), bad]) == {
        "changed": False,
        "failed": True,
        "msg": sentence,
        "needs": [],
        "hosts": [
            {"host": "esx1", "changed": False},
            {"host": "esx2", "changed": False, "failed": True, "msg": sentence},
        ],
        "diff": [],
        "warnings": [],
    }


def test_reports_all_unmet_needs_and_writes_nothing() -> None:
    def plan(current: Mapping[str, Any]) -> Plan:
        return want(current, unmet=("it is in use", "it is locked") if current["busy"] else ())

    subjects = [FakeSubject("esx1", {"mtu": 1500, "busy": False}), FakeSubject("esx2", {"mtu": 1500, "busy": True})]
    result = converge(subjects, plan=plan)
    assert result["msg"] == "esx2: could not change settings: it is in use; it is locked"
    assert [subject.writes for subject in subjects] == [[], []]


def test_lists_remaining_differences_with_the_remedy() -> None:
    subject = FakeSubject("esx1", {"mtu": 1500, "name": "vmk1"}, deaf=True)
    desired = {"mtu": 9000, "name": "vmk2"}
    result = converge([subject], plan=lambda current: Plan(current, desired, warnings=("mind the switch",)))
    message = "the server accepted the change, yet mtu is 1500, not 9000, name is 'vmk1', not 'vmk2'"
    assert (
        result["msg"] == f"esx1: could not change settings: {message}; look at the host's log (hostd.log) and run again"
    )
    assert result["hosts"][0]["changed"] and result["hosts"][0]["state"] == {"mtu": 1500, "name": "vmk1"}


@pytest.mark.parametrize("gone", [False, True])
def test_rereads_only_what_was_written(gone: bool) -> None:
    requested: list[list[str]] = []

    def refresh(subjects: Sequence[Any]) -> None:
        requested.append([subject.target for subject in subjects])
        if gone and len(requested) == 2:
            raise Unreachable("vc", "read hosts", "timed out")

    subjects = [FakeSubject("esx1", {"mtu": 1500}), FakeSubject("esx2", {"mtu": 9000})]
    result = runner.converge(FakeModule(), runner.Work(subjects, refresh, want))
    assert requested == [["esx1", "esx2"], ["esx1"]]
    assert result["changed"]
    assert result.get("msg") == ("vc: could not read hosts: timed out" if gone else None)
    assert result["hosts"][0].get("failed", False) == gone


@pytest.mark.parametrize("parallel", [2, runner.PARALLEL])
def test_processes_hosts_in_parallel(parallel: int) -> None:
    together = threading.Barrier(2)

    class Meeting(FakeSubject):
        def apply(self, plan: Plan) -> None:
            together.wait(timeout=60)
            super().apply(plan)

    pair = [Meeting("esx1", {"mtu": 1500}), Meeting("esx2", {"mtu": 1500})]
    assert runner.converge(FakeModule(), runner.Work(pair, lambda _subjects: None, want, parallel))["changed"]


@pytest.mark.parametrize(
    ("parallel", "count", "threads"), [(1, 3, []), (16, 1, []), (16, 2, [2]), (2, 3, [2]), (16, 3, [3])]
)
def test_limits_threads_to_the_allowed_and_useful_number(
    parallel: int, count: int, threads: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, max_workers: int) -> None:
            taken.append(max_workers)
            super().__init__(max_workers)

    monkeypatch.setattr(runner, "ThreadPoolExecutor", Pool)
    subjects = [FakeSubject(f"esx{number}", {"mtu": 9000}) for number in range(count)]
    runner.converge(FakeModule(), runner.Work(subjects, lambda _subjects: None, want, parallel))
    assert taken == threads


def test_run_ends_the_module_with_a_failed_result() -> None:
    module = FakeModule()
    runner.run(module, lambda: {"changed": True, "failed": True, "msg": "esx1: could not set mtu: no"})
    assert module.ended == [("fail", {"changed": True, "msg": "esx1: could not set mtu: no"})]


@pytest.mark.parametrize(
    ("params", "warned"),
    [
        (
            {"validate_certs": False},
            [
                (
                    "validate_certs is false: an impostor of vCenter receives the password; "
                    "name vCenter's authority in ca_path, or pin its certificate with tls_fingerprint"
                )
            ],
        ),
        ({"validate_certs": False, "tls_fingerprint": "ab"}, []),
        ({"validate_certs": True}, []),
        ({}, []),
    ],
)
def test_warns_about_unchecked_certificates_even_on_failure(params: dict[str, Any], warned: list[str]) -> None:
    module = FakeModule(**params)
    runner.run(module, lambda: {"changed": False, "failed": True, "msg": "no"})
    assert module.warned == warned


def test_run_reports_a_full_disk_but_raises_bugs() -> None:
    module = FakeModule()

    def written() -> dict[str, Any]:
        Path("/dev/full").write_text("x")
        return {}

    runner.run(module, written)
    message = "could not write a file: No space left on device; free some space and run this again"
    assert module.ended == [("fail", {"msg": f"{socket.gethostname()}: {message}"})]
    with pytest.raises(FileNotFoundError):
        runner.run(FakeModule(), lambda: {"text": Path("/nowhere").read_text()})


def test_module_without_a_session_advises_to_repeat_it() -> None:
    module = FakeModule()

    def away() -> dict[str, Any]:
        raise NotConnected("vc:443", "connect", "the connection broke", "check hostname")

    runner.run(module, away)
    assert module.ended == [
        ("fail", {"msg": "vc:443: could not connect: the connection broke; check hostname", "not_connected": True})
    ]


def test_the_first_subjects_are_changed_before_all_others() -> None:
    order: list[str] = []

    class Slow(FakeSubject):
        def apply(self, plan: Plan) -> None:
            time.sleep(0.05 if self.target == "mover" else 0)
            order.append(self.target)
            super().apply(plan)

    subjects = [Slow(name, {"mtu": 1500}) for name in ("new", "mover", "other")]
    work = runner.Work(
        subjects=subjects,
        refresh=lambda _subjects: None,
        make_plan=lambda current: Plan(before=current, after={**current, "mtu": 9000}),
        first=lambda subject: bool(subject.target == "mover"),
    )
    assert not runner.converge(FakeModule(), work).get("failed")
    assert order[0] == "mover" and sorted(order) == ["mover", "new", "other"]


@pytest.mark.parametrize("mask", ["********", "$REDACTED$"])
def test_refuses_a_masked_name_with_the_reason(mask: str) -> None:
    module = FakeModule(hosts=[f"esx01.{mask}"])
    runner.run(module, lambda: pytest.fail("the module must not run"))
    ((how, result),) = module.ended
    assert how == "fail" and "the option hosts contains a masked name" in result["msg"]


def test_asterisks_in_a_longer_text_are_accepted() -> None:
    module = FakeModule(user_data="#cloud-config\n# ******** mounts ********\n")
    runner.run(module, lambda: {"changed": False})
    assert module.ended == [("exit", {"changed": False})]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_refuses_non_finite_numbers_with_the_option_name(value: float) -> None:
    module = FakeModule(stun_budget=value, timeout=10.0)
    runner.run(module, lambda: pytest.fail("the module must not run"))
    ((how, result),) = module.ended
    assert how == "fail" and f"the option stun_budget is {value}, which is not a finite number" in result["msg"]
