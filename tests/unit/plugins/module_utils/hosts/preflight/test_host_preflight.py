# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The findings of preflight together: every source is heard, and nothing is said twice."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.hosts.preflight.host_preflight import findings, refusals
from tests.unit.plugins.module_utils.hosts.preflight.preflight_data import (
    PROFILE,
    clock,
    cluster,
    gpu,
    host,
    planned,
    read,
)

MANAGER = "NVD-AIE_ESXi_8.0.0_Driver"


def running(version: str) -> dict[str, Any]:
    return {"running": [{"name": MANAGER, "version": version}], "pending": []}


def stop(rule: str, name: str = "esx1", text: str = "it is so; end it") -> dict[str, Any]:
    return {"severity": "stop", "rule": rule, "object": name, "text": f"{name}: {text}"}


def found(**changed: Any) -> list[tuple[str, str, str]]:
    made = read(**{"hosts": {"hosts": [host(vibs=running("550.90.05"))]}, **changed})
    return [(one["severity"], one["rule"], one["object"]) for one in findings(made)]


def test_where_all_is_well_nothing_is_found() -> None:
    assert found() == []


def test_stops_come_first() -> None:
    hosts = {"hosts": [host(gpus=[], vibs=running("550.90.05"))]}
    told = found(hosts=hosts, cluster={"cluster": cluster(clocks=[clock(running=[])]), "stops": [stop("red_alarm")]})
    assert told == [("stop", "gpu", "esx1"), ("stop", "red_alarm", "esx1"), ("warn", "clock", "esx1")]


def test_the_plans_refusal_is_told_unless_a_stop_explains_it() -> None:
    plan = {"hosts": [planned(failed=True, msg="esx1: could not do it: no", reboots=0)]}
    (told,) = findings(read(plan=plan, hosts={"hosts": [host(vibs=running("550.90.05"))]}))
    assert (told["rule"], told["text"]) == ("plan", "esx1: could not do it: no.")
    hosts = {"hosts": [host(gpus=[], vibs=running("550.90.05"))]}
    assert [rule for _severity, rule, _object in found(plan=plan, hosts=hosts)] == ["gpu"]


def test_a_plan_that_could_not_be_made_at_all_stops() -> None:
    assert found(plan={"msg": "profile: unknown option"}) == [("stop", "plan", "gpu")]


@pytest.mark.parametrize(
    ("plan", "severity"),
    [
        ({"hosts": [planned(changed=False, needs=[], reboots=0)]}, "note"),
        ({"hosts": [planned(needs=["maintenance"], reboots=0)]}, "stop"),
        ({"hosts": [planned(failed=True, msg="esx1: could not do it: no", needs=[], reboots=0)]}, "note"),
        ({"msg": "profile: unknown option"}, "note"),
    ],
)
def test_that_no_host_may_leave_stops_only_where_one_must(plan: dict[str, Any], severity: str) -> None:
    full = cluster(max_out_of_service={"allowed": 0, "why": "0 places for grid_t4-16c are free"})
    told = found(cluster={"cluster": full, "stops": []}, plan=plan)
    assert [one for one in told if one[1] == "capacity"] == [(severity, "capacity", "gpu")]


def test_the_plans_reboots_and_warnings_are_told() -> None:
    plan = {"hosts": [planned(reboots=2, warnings=["set the switch"])]}
    assert found(plan=plan) == [("warn", "plan", "esx1"), ("note", "reboots", "esx1")]


def test_a_host_that_cannot_be_emptied_stops_for_each_reason() -> None:
    blocked = {"hosts": [{"host": "esx1", "unmet": ["w1 has nowhere to go", "w2 has nowhere to go"]}]}
    lost = {"hosts": [{"host": "esx2", "failed": True, "msg": "esx2: could not read it"}]}
    skipped = {"skipped": True, "skip_reason": "Conditional result was False"}
    unknown = {"msg": "vc.example.com: could not log in"}
    assert found(emptying=[blocked, lost, skipped, unknown]) == [
        ("stop", "emptying", "esx1"),
        ("stop", "emptying", "esx1"),
        ("stop", "emptying", "esx2"),
        ("stop", "emptying", "gpu"),
    ]


def test_the_options_of_the_playbooks_are_named_and_not_those_of_the_module() -> None:
    unmet = [
        "w1 stays because DRS is off: choose moved_by: module",
        "w2 stays: power_off: true would power it off",
    ]
    told = findings(read(emptying=[{"hosts": [{"host": "esx1", "unmet": unmet}]}]))
    texts = [one["text"] for one in told if one["rule"] == "emptying"]
    assert texts[0].endswith("choose esxi_host_moved_by: module.") and "-e power_off=true would power" in texts[1]


LOSES = "w1 run here with a PVRDMA adapter and would lose vmk1: move them or power them off"
TO_COME = "there is no vmkernel adapter vmk1 yet; it comes with the RDMA fabric"


def test_a_change_that_a_host_in_service_would_refuse_stops() -> None:
    blocked = planned(needs=[], reboots=0, unmet=[LOSES, TO_COME])
    (told,) = [one for one in findings(read(plan={"hosts": [blocked]})) if one["severity"] == "stop"]
    assert (told["rule"], told["text"]) == ("plan", f"esx1: it stays in service and cannot be changed: {LOSES}.")
    emptied = planned(needs=["maintenance"], reboots=0, unmet=[LOSES])
    for other in (emptied, planned(changed=False, needs=[], reboots=0, unmet=[LOSES])):
        assert [one for one in findings(read(plan={"hosts": [other]})) if one["severity"] == "stop"] == []


def test_the_errors_of_the_real_run_are_those_of_the_hosts_that_change_and_do_not_wait_for_the_fabric() -> None:
    hosts = [
        planned(unmet=[LOSES]),
        planned("esx2", unmet=[TO_COME]),
        planned("esx3", unmet=[LOSES], changed=False),
        planned("esx4"),
    ]
    (error,) = refusals(hosts)
    assert error.startswith(f"esx1: could not change host profile: {LOSES}")


def test_somebody_elses_host_out_of_service_stops_unless_it_is_to_be_changed_anyway() -> None:
    out = {"cluster": cluster(), "stops": [stop("out_of_service")]}
    assert found(cluster=out) == [("stop", "out_of_service", "esx1")]
    told = found(cluster=out, plan={"hosts": [planned(reboots=0)]})
    assert told == [("warn", "out_of_service", "esx1")]


def test_a_lost_host_is_told_once() -> None:
    lost = host(reachable=False, connection="disconnected", failed=True, msg="esx1: could not read it")
    out = {"cluster": cluster(), "stops": [stop("out_of_service")]}
    plan = {"hosts": [planned(failed=True, msg="esx1: could not read it", reboots=0)]}
    assert found(hosts={"hosts": [lost]}, cluster=out, plan=plan) == [("stop", "disconnected", "esx1")]


def test_hosts_that_are_not_alike_are_a_warning() -> None:
    vibs = running("550.90.05")
    other = host("esx2", version="8.0.2", gpus=[gpu(name="NVIDIA L4")], vibs=vibs, model="R750")
    hosts = {"hosts": [host(vibs=vibs, model="R740"), other]}
    assert found(hosts=hosts) == [("warn", "mixed", "gpu")] * 3
    with_evc = {"cluster": cluster(evc="intel-icelake"), "stops": []}
    assert found(hosts=hosts, cluster=with_evc) == [("warn", "mixed", "gpu")] * 2


def test_the_drivers_in_the_guests_are_remembered() -> None:
    (fresh,) = findings(read())
    assert (fresh["severity"], fresh["rule"]) == ("note", "guest_driver")
    assert "branch 550" in fresh["text"]
    (changing,) = findings(read(hosts={"hosts": [host(vibs=running("535.1"))]}))
    assert "from branch 535 to 550" in changing["text"]


def test_a_host_with_a_profile_of_its_own_is_judged_by_that() -> None:
    hosts = {"hosts": [host(gpus=[], vibs=running("550.90.05"))]}
    assert found(hosts=hosts, host_profiles={"esx1": {"pvrdma": PROFILE["pvrdma"]}}) == []


def test_answers_that_are_not_understood_stop_and_new_ones_warn() -> None:
    rows = [
        {"reader": "esxi_info: rdma", "object": "esx1", "status": "not understood", "what": ["it lacks Bytes sent"]},
        {"reader": "esxi_info: gpu", "object": "esx1", "status": "never seen by us", "what": ["a word"]},
        {"reader": "esxi_info: vib", "object": "esx1", "status": "understood", "what": []},
    ]
    assumed = [
        {"name": "x", "text": "All is well.", "status": "refuted", "said": "it is not"},
        {"name": "y", "text": "All is open.", "status": "open", "said": "nothing tells"},
    ]
    told = findings(
        read(hosts={"hosts": [host(vibs=running("550.90.05"))]}, acceptance={"readers": rows, "assumptions": assumed})
    )
    assert [(one["severity"], one["rule"], one["object"]) for one in told] == [
        ("stop", "not_understood", "esx1"),
        ("stop", "refuted", "gpu"),
        ("warn", "never_seen", "esx1"),
    ]
    assert "esxi_info: rdma is not understood (it lacks Bytes sent); run again" in told[0]["text"]
    assert told[1]["text"] == "gpu: an assumption does not hold here: All is well. But it is not."
