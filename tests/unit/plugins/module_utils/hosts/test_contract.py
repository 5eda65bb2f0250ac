"""The contract of all subjects of a host: each is checked, applied, refused and restored in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.hosts import roce
from plugins.module_utils.hosts.part import Part, ProfileContext
from plugins.module_utils.hosts.profile import members_of
from plugins.module_utils.hosts.profile_parts import PARTS
from plugins.module_utils.hosts.reading import Reading
from plugins.module_utils.hosts.rollback.rollback import Before
from tests.fakes.esxi import FakeHost, refresh
from tests.fakes.module import FakeModule
from tests.unit.plugins.module_utils.hosts.contract import CASES, Case

each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.key)
WITH_NAMES = [part for part in PARTS if part.key in CASES and CASES[part.key].unknown is not None]

# esxcli returns other errors.
WITH_FAULTS = [part for part in PARTS if part.key != "vibs"]


@pytest.fixture(autouse=True)
def _no_port_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roce, "reachable_port_groups", lambda _session, _hosts: [])


@pytest.fixture
def case(part: Part) -> Case:
    assert part.key in CASES, f"add a case for {part.key} to contract.py"
    return CASES[part.key]


def converge(profile: Mapping[str, Any], *hosts: FakeHost, check: bool = False) -> dict[str, Any]:
    context = ProfileContext(profile)
    work = runner.Work([member for host in hosts for member in members_of(host, context)], refresh)
    return runner.converge(FakeModule(check_mode=check), work)


def calls(host: FakeHost) -> tuple[str, ...]:
    """Return the calls that change a setting; a note for the next boot is a custom attribute of vCenter."""
    return tuple(write[0] for write in host.writes if write[0] != "SetField")


def evidence(part: Part, case: Case, host: FakeHost) -> dict[str, Any]:
    host.refresh()
    reading = Reading(host, {part.key: case.requested})
    return {"host": host.name, **{key: value for group in part.groups for key, value in group.read(reading).items()}}


@each_part
def test_check_mode_and_second_runs_write_nothing(part: Part, case: Case) -> None:
    host = case.host("esx01.lab")

    planned = converge({part.key: case.requested}, host, check=True)
    assert planned["changed"] and host.writes == []

    applied = converge({part.key: case.requested}, host)
    assert applied["changed"] and applied["diff"] == planned["diff"] and calls(host) == case.writes
    assert set(applied["needs"]) == set(case.needs)

    written = len(host.writes)
    for check in (True, False):
        again = converge({part.key: case.requested}, host, check=check)
        assert not again["changed"] and set(again["needs"]) == set(case.needs) and len(host.writes) == written


@each_part
def test_reports_only_the_host_that_ignores_changes(part: Part, case: Case) -> None:
    deaf, good = case.host("esx01.lab"), case.host("esx02.lab")
    deaf.deaf = True

    result = converge({part.key: case.requested}, deaf, good)

    assert result["failed"] and "esx01.lab: could not change" in result["msg"] and "esx02.lab" not in result["msg"]
    assert "the server accepted the change, yet" in result["msg"] and calls(good) == case.writes
    assert not converge({part.key: case.requested}, good, check=True)["changed"]


@pytest.mark.parametrize("part", WITH_NAMES, ids=lambda part: part.key)
def test_refuses_an_unknown_name_before_any_write(part: Part, case: Case) -> None:
    hosts = case.host("esx01.lab"), case.host("esx02.lab")

    result = converge({part.key: case.unknown}, *hosts)

    assert result["failed"] and case.refusal in result["msg"] and "esx01.lab" in result["msg"]
    assert hosts[0].writes == hosts[1].writes == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (vim.fault.NoPermission(privilegeId="Host.Config.Any"), "privilege Host.Config.Any is missing"),
        (vim.fault.HostConfigFault(msg="the host is busy"), "HostConfigFault: the host is busy"),
        (ConnectionResetError("reset by peer"), "the connection broke"),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("part", WITH_FAULTS, ids=lambda part: part.key)
def test_reports_a_fault_and_stops_changing_the_host(part: Part, case: Case, fault: Exception, message: str) -> None:
    host = case.host("esx01.lab")
    host.faults[case.writes[0]] = fault

    result = converge({part.key: case.requested}, host)

    assert result["failed"] and "esx01.lab: could not " in result["msg"]
    assert message in result["msg"] and calls(host) == case.writes[:1]


@each_part
def test_unreachable_host_fails_without_a_write(part: Part, case: Case) -> None:
    host = case.host("esx01.lab")
    host.has(runtime__connectionState="notResponding")

    result = converge({part.key: case.requested}, host)

    assert result["failed"] and "vCenter shows it as notResponding" in result["msg"] and host.writes == []


@each_part
def test_evidence_restores_the_host(part: Part, case: Case) -> None:
    host = case.host("esx01.lab")
    before = evidence(part, case, host)
    converge({part.key: case.requested}, host)
    assert evidence(part, case, host) != before

    restored = part.restore(Before(before, {part.key: case.requested}))
    back = {each.key: complete(each, restored[each.key]) for each in PARTS if each.key in restored}
    done = converge(back, host)

    assert done["changed"] and not converge(back, host, check=True)["changed"]
    after = evidence(part, case, host)
    assert {key: settings(after[key]) for key in part.kept} == {key: settings(before[key]) for key in part.kept}


def complete(part: Part, requested: Any) -> Any:
    """Return the value of an option with the defaults of its suboptions, as Ansible passes it to the module."""
    defaults = {name: spec.get("default") for name, spec in part.spec.get("options", {}).items()}
    return [{**defaults, **entry} for entry in requested] if isinstance(requested, list) else {**defaults, **requested}


def settings(value: Any) -> Any:
    """Return the values of settings, without those in use until the next boot and without absent ones."""
    if isinstance(value, dict):
        kept = {key: settings(item) for key, item in value.items() if not key.startswith("active")}
        return {key: item for key, item in kept.items() if item not in ({}, None, "")}
    return value
