"""The findings of preflight together: they contain every source, and nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts.preflight.host_preflight import expected_models, findings, refusals, verdict
from tests.unit.plugins.module_utils.hosts.preflight.preflight_data import cluster, gpu, host, planned, read

MANAGER = "NVD-AIE_ESXi_8.0.0_Driver"


def running(version: str) -> dict[str, Any]:
    return {"running": [{"name": MANAGER, "version": version}], "pending": []}


def stop(rule: str, name: str = "esx1", text: str = "it is so; end it") -> dict[str, Any]:
    return {"severity": "stop", "rule": rule, "object": name, "text": f"{name}: {text}"}


def triples(**changed: Any) -> list[tuple[str, str, str]]:
    made = read(**{"hosts": {"hosts": [host(vibs=running("550.90.05"))]}, **changed})
    return [(finding["severity"], finding["rule"], finding["object"]) for finding in findings(made)]


@pytest.mark.parametrize("mask", ["********", "$REDACTED$"])
def test_refuses_findings_with_a_masked_word(mask: str) -> None:
    made = read(cluster={"cluster": cluster(), "stops": [stop("ha", text=f"High avai{mask}ility is off; turn it on")]})

    with pytest.raises(Refused, match=r"the findings about gpu: could not show them: avai.*ility is a masked name: "):
        verdict(made)


def test_reports_refused_plans_unless_a_stop_explains_it() -> None:
    plan = {"hosts": [planned(failed=True, msg="esx1: could not do it: no", reboots=0)]}
    (only,) = findings(read(plan=plan, hosts={"hosts": [host(vibs=running("550.90.05"))]}))
    assert (only["rule"], only["text"]) == ("plan", "esx1: could not do it: no.")
    hosts = {"hosts": [host(gpus=[], vibs=running("550.90.05"))]}
    assert [rule for _severity, rule, _object in triples(plan=plan, hosts=hosts)] == ["gpu"]


def test_a_plan_that_fails_completely_stops() -> None:
    assert triples(plan={"msg": "profile: unknown option"}) == [("stop", "plan", "gpu")]


@pytest.mark.parametrize(
    ("plan", "severity"),
    [
        ({"hosts": [planned(changed=False, needs=[], reboots=0)]}, "note"),
        ({"hosts": [planned(needs=["maintenance"], reboots=0)]}, "stop"),
        ({"hosts": [planned(failed=True, msg="esx1: could not do it: no", needs=[], reboots=0)]}, "note"),
        ({"msg": "profile: unknown option"}, "note"),
    ],
)
def test_missing_capacity_stops_only_if_a_host_leaves(plan: dict[str, Any], severity: str) -> None:
    full = cluster(max_out_of_service={"allowed": 0, "why": "0 places for grid_t4-16c are free"})
    shown = triples(cluster={"cluster": full, "stops": []}, plan=plan)
    assert [finding for finding in shown if finding[1] == "capacity"] == [(severity, "capacity", "gpu")]


def test_reports_reboots_and_warnings_of_the_plan() -> None:
    plan = {"hosts": [planned(reboots=2, warnings=["set the switch"])]}
    assert triples(plan=plan) == [("warn", "plan", "esx1"), ("note", "reboots", "esx1")]


def test_reports_each_reason_that_prevents_an_evacuation() -> None:
    blocked = {"hosts": [{"host": "esx1", "unmet": ["w1 has nowhere to go", "w2 has nowhere to go"]}]}
    lost = {"hosts": [{"host": "esx2", "failed": True, "msg": "esx2: could not read it"}]}
    skipped = {"skipped": True, "skip_reason": "Conditional result was False"}
    unknown = {"msg": "vc.example.com: could not log in"}
    assert triples(emptying=[blocked, lost, skipped, unknown]) == [
        ("stop", "emptying", "esx1"),
        ("stop", "emptying", "esx1"),
        ("stop", "emptying", "esx2"),
        ("stop", "emptying", "gpu"),
    ]


LOSES = "w1 runs here with a PVRDMA adapter and would lose vmk1: move the virtual machines or power them off"
TO_COME = "there is no vmkernel adapter vmk1 yet; it comes with the RDMA fabric"


def test_stops_if_a_host_in_service_would_refuse() -> None:
    blocked = planned(needs=[], reboots=0, unmet=[LOSES, TO_COME])
    (only,) = [finding for finding in findings(read(plan={"hosts": [blocked]})) if finding["severity"] == "stop"]
    assert (only["rule"], only["text"]) == ("plan", f"esx1: it stays in service and cannot be changed: {LOSES}.")
    emptied = planned(needs=["maintenance"], reboots=0, unmet=[LOSES])
    for other in (emptied, planned(changed=False, needs=[], reboots=0, unmet=[LOSES])):
        assert [finding for finding in findings(read(plan={"hosts": [other]})) if finding["severity"] == "stop"] == []


def test_refuses_only_changing_hosts_with_their_fabric_ready() -> None:
    hosts = [
        planned(unmet=[LOSES]),
        planned("esx2", unmet=[TO_COME]),
        planned("esx3", unmet=[LOSES], changed=False),
        planned("esx4"),
    ]
    (error,) = refusals(hosts)
    assert error.startswith(f"esx1: could not change host profile: {LOSES}")


def test_stops_at_hosts_another_user_took_out() -> None:
    out = {"cluster": cluster(), "stops": [stop("out_of_service")]}
    assert triples(cluster=out) == [("stop", "out_of_service", "esx1")]
    shown = triples(cluster=out, plan={"hosts": [planned(reboots=0)]})
    assert shown == [("stop", "out_of_service", "esx1")], "it is not changed either"


def test_a_disconnected_host_is_reported_once() -> None:
    lost = host(reachable=False, connection="disconnected", failed=True, msg="esx1: could not read it")
    out = {"cluster": cluster(), "stops": [stop("out_of_service")]}
    plan = {"hosts": [planned(failed=True, msg="esx1: could not read it", reboots=0)]}
    assert triples(hosts={"hosts": [lost]}, cluster=out, plan=plan) == [("stop", "disconnected", "esx1")]


def test_different_hosts_are_a_warning() -> None:
    vibs = running("550.90.05")
    other = host("esx2", version="8.0.2", gpus=[gpu(name="NVIDIA L4")], vibs=vibs, model="R750")
    hosts = {"hosts": [host(vibs=vibs, model="R740"), other]}
    assert triples(hosts=hosts) == [("warn", "mixed", "gpu")] * 3
    with_evc = {"cluster": cluster(evc="intel-icelake"), "stops": []}
    assert triples(hosts=hosts, cluster=with_evc) == [("warn", "mixed", "gpu")] * 2


def test_the_drivers_of_the_guests_are_a_note() -> None:
    (fresh,) = findings(read())
    assert (fresh["severity"], fresh["rule"]) == ("note", "guest_driver")
    assert "branch 550" in fresh["text"]
    (changing,) = findings(read(hosts={"hosts": [host(vibs=running("535.1"))]}))
    assert "from branch 535 to 550" in changing["text"]


def test_unreadable_answers_stop_and_new_ones_warn() -> None:
    rows = [
        {"reader": "esxi_info: rdma", "object": "esx1", "status": "not understood", "what": ["it lacks Bytes sent"]},
        {"reader": "esxi_info: gpu", "object": "esx1", "status": "never seen by us", "what": ["a word"]},
        {"reader": "esxi_info: vib", "object": "esx1", "status": "understood", "what": []},
    ]
    assumed = [
        {"name": "x", "text": "All is well.", "status": "refuted", "said": "it is not"},
        {"name": "y", "text": "All is open.", "status": "open", "said": "nothing tells"},
    ]
    shown = findings(
        read(hosts={"hosts": [host(vibs=running("550.90.05"))]}, acceptance={"readers": rows, "assumptions": assumed})
    )
    assert [(finding["severity"], finding["rule"], finding["object"]) for finding in shown] == [
        ("stop", "not_understood", "esx1"),
        ("stop", "refuted", "gpu"),
        ("warn", "never_seen", "esx1"),
    ]
    assert "esxi_info: rdma is not understood (it lacks Bytes sent); run again" in shown[0]["text"]
    assert shown[1]["text"] == "gpu: an assumption does not hold here: All is well. But it is not."


@pytest.mark.parametrize(
    ("version", "protocol", "stops"),
    [("9.0.0", "rocev1", True), ("9.0.0", "rocev2", False), ("9.0.0", "", False), ("8.0.3", "rocev1", False)],
)
def test_hosts_without_roce_v1_stop_workers_using_it(version: str, protocol: str, *, stops: bool) -> None:
    hosts = {"hosts": [host(version=version, vibs=running("550.90.05"))]}
    shown = triples(hosts=hosts, rdma_protocol=protocol)
    assert (("stop", "roce_v1", "esx1") in shown) is stops


@pytest.mark.parametrize("gpu", [4, None, [None], {"esx1": 4}, {"esx1": {"model": "T4"}}])
def test_refuses_an_expected_model_that_is_not_text(gpu: Any) -> None:
    with pytest.raises(Refused, match="give a model such as T4, a list of models, or a mapping"):
        expected_models(gpu, ["esx1"])


def test_notes_a_model_for_a_foreign_host() -> None:
    shown = [finding for finding in findings(read(gpu={"esx1": "T4", "esx9": "A100"})) if finding["rule"] == "gpu"]
    assert [(one["severity"], one["object"]) for one in shown] == [("note", "gpu")]
    assert "preflight_gpu has a model for esx9" in shown[0]["text"]
