"""worker_rules over a cluster in memory: four runs, drift, rules of others, a deaf server, faults, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from tests.fakes.rules import FakeCluster, add_rule, call, drs_of, override, pinned, priorities_of, together

RECONFIGURE, NOTE = "ReconfigureComputeResource_Task", "SetField"
RULE, HOST_RULE = "dml.vsphere workers: one per host", "dml.vsphere workers: on hosts"
WORKERS = ["w1", "w2", "w3"]
DESIRED: dict[str, Any] = {
    "workers": WORKERS,
    "hosts": ["esx3", "esx1", "esx2"],
    "host_affinity": "required",
    "drs_override": "manual",
    "overrides": [{"name": "w1", "restart_priority": "highest"}],
}
GONE = {"state": "absent"}


def test_second_run_changes_nothing_and_check_mode_agrees() -> None:
    cluster = FakeCluster()
    planned = call(cluster, check=True, **DESIRED)
    assert (planned["changed"], cluster.writes) == (True, []), planned
    done = call(cluster, **DESIRED)
    assert done["diff"] == planned["diff"]
    assert done["state"] == planned["state"]
    assert cluster.writes == [NOTE, NOTE, NOTE, RECONFIGURE]
    cluster.writes.clear()
    for check in (True, False):
        again = call(cluster, check=check, **DESIRED)
        assert (again["changed"], cluster.writes) == (False, []), again


def test_the_cluster_has_the_desired_rules() -> None:
    cluster = FakeCluster()
    call(cluster, **DESIRED)
    rules = {one.name: one for one in cluster.config.rule}
    groups = {one.name: one for one in cluster.config.group}
    assert {ref._moId for ref in rules[RULE].vm} == {ref._moId for ref in cluster.vms.values()}
    assert (rules[HOST_RULE].mandatory, rules[HOST_RULE].affineHostGroupName) == (True, "dml.vsphere workers: hosts")
    assert len(groups["dml.vsphere workers: hosts"].host) == len(groups["dml.vsphere workers: workers"].vm) == 3
    assert drs_of(cluster) == dict.fromkeys(WORKERS, "manual")
    assert priorities_of(cluster) == {"w1": "highest"}


def test_absent_removes_only_the_rules_of_the_set() -> None:
    cluster = FakeCluster()
    add_rule(cluster, together(cluster, "w1", "w2", enabled=False))
    override(cluster, "w2", drs="fullyAutomated")
    override(cluster, "w1", ha={"restartPriority": "low", "isolationResponse": "shutdown"})
    call(cluster, **DESIRED)
    assert (drs_of(cluster)["w2"], priorities_of(cluster)) == ("manual", {"w1": "highest"})
    assert cluster.notes("w2") == {"set": "workers", "drs": "fully_automated"}
    cluster.writes.clear()
    assert call(cluster, check=True, **GONE)["changed"]
    assert cluster.writes == []
    gone = call(cluster, **GONE)
    assert gone["changed"], gone
    assert [one.name for one in cluster.config.rule] == ["pair"]
    assert (list(cluster.config.group), drs_of(cluster)) == ([], {"w2": "fullyAutomated"})
    assert priorities_of(cluster) == {"w1": "low"}
    assert cluster.config.dasVmConfig[0].dasSettings.isolationResponse == "shutdown"
    assert [cluster.notes(name) for name in WORKERS] == [{}, {}, {}]
    cluster.writes.clear()
    assert not call(cluster, **GONE)["changed"]
    assert cluster.writes == []


def test_foreign_settings_in_an_override_stay() -> None:
    cluster = FakeCluster()
    call(cluster, workers=WORKERS, restart_priority="high")
    override(cluster, "w1", ha={"restartPriority": "high", "isolationResponse": "shutdown"})
    call(cluster, **GONE)
    assert priorities_of(cluster) == {"w1": "clusterRestartPriority"}
    assert cluster.config.dasVmConfig[0].dasSettings.isolationResponse == "shutdown"


def test_does_not_claim_an_override_that_already_matched() -> None:
    cluster = FakeCluster()
    override(cluster, "w1", drs="manual")
    call(cluster, workers=WORKERS, drs_override="manual")
    assert (cluster.notes("w1"), cluster.notes("w2")) == ({}, {"set": "workers", "drs": None})
    call(cluster, **GONE)
    assert drs_of(cluster) == {"w1": "manual"}


def test_removes_rules_that_a_call_no_longer_contains() -> None:
    cluster = FakeCluster()
    call(cluster, **DESIRED)
    less = call(cluster, workers=["w1", "w2"], drop=["w3"], drs_override="disabled")
    assert less["changed"], less
    (rule,) = cluster.config.rule
    assert (rule.name, len(rule.vm), list(cluster.config.group)) == (RULE, 2, [])
    assert [(one.key, one.enabled) for one in cluster.config.drsVmConfig] == [
        (cluster.vms["w1"], False),
        (cluster.vms["w2"], False),
    ]
    assert (priorities_of(cluster), cluster.notes("w3")) == ({}, {})
    assert not call(cluster, workers=["w1", "w2"], drs_override="disabled")["changed"]


def test_drift_is_repaired() -> None:
    cluster = FakeCluster()
    call(cluster, **DESIRED)
    for rule in cluster.config.rule:
        rule.enabled = False
    shown = call(cluster, check=True, **DESIRED)["diff"][0]["before"]
    assert shown["one_per_host"]["enabled"] is False
    assert shown["affinity"]["rule"] == "disabled"
    assert call(cluster, **DESIRED)["changed"]
    assert all(rule.enabled for rule in cluster.config.rule)
    assert not call(cluster, **DESIRED)["changed"]


def test_a_deleted_worker_is_removed_from_the_rules() -> None:
    cluster = FakeCluster()
    call(cluster, **DESIRED)
    cluster.delete("w3")
    cluster.writes.clear()
    refused = call(cluster, **DESIRED)
    assert "gpu: could not change rules of workers: w3 does not exist; dml.vsphere.worker_vm" in refused["msg"]
    assert not call(cluster, **{**DESIRED, "workers": ["w1", "w2"]})["changed"]
    assert cluster.writes == []
    cluster.delete("w2")
    assert call(cluster, **{**DESIRED, "workers": ["w1"]})["changed"]
    assert [one.name for one in cluster.config.rule] == [HOST_RULE]
    assert not call(cluster, **{**DESIRED, "workers": ["w1"]})["changed"]
    cluster.delete("w1")
    assert call(cluster, **GONE)["changed"]
    assert [*cluster.config.rule, *cluster.config.group] == []


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ({RECONFIGURE}, "drs is {'w1': None, 'w2': None, 'w3': None}, not"),
        ({NOTE}, "w1: could not write its custom attribute dml.vsphere.worker: the server accepted it, yet"),
    ],
)
def test_reports_a_server_that_ignores_changes(broken: set[str], words: str) -> None:
    cluster = FakeCluster()
    cluster.deaf = broken
    failed = call(cluster, **DESIRED)
    assert "the server accepted " in failed["msg"] and words in failed["msg"]
    cluster.deaf = set()
    assert not call(cluster, **DESIRED).get("failed")
    assert not call(cluster, **DESIRED)["changed"]


def test_run_after_a_reported_fault_finishes_the_rules() -> None:
    cluster = FakeCluster()
    override(cluster, "w1", drs="fullyAutomated")
    cluster.faults[RECONFIGURE] = vim.fault.NoPermission(privilegeId="Host.Inventory.EditCluster")
    failed = call(cluster, **DESIRED)
    assert "gpu: could not change the rules and overrides of its workers: the server said NoPermission" in failed["msg"]
    cluster.faults.clear()
    assert call(cluster, **DESIRED)["changed"]
    assert cluster.notes("w1")["drs"] == "fully_automated"
    cluster.faults[NOTE] = vim.fault.NoPermission(privilegeId="Global.SetCustomField")
    assert "could not write its custom attribute" in call(cluster, **GONE)["msg"]
    cluster.faults.clear()
    assert call(cluster, **GONE)["changed"]
    assert (drs_of(cluster), cluster.notes("w1")) == ({"w1": "fullyAutomated"}, {})


def test_distinguishes_a_foreign_machine_with_a_workers_name() -> None:
    cluster = FakeCluster()
    call(cluster, workers=WORKERS)
    stranger = cluster.add("w3/elsewhere", cluster=None)
    (rule,) = cluster.config.rule
    rule.vm = [cluster.vms["w1"], cluster.vms["w2"], stranger]
    shown = call(cluster, workers=WORKERS)["diff"][0]["before"]["one_per_host"]["workers"]
    assert shown == ["w1", "w2", f"w3 ({stranger._moId})"]
    assert {ref._moId for ref in cluster.config.rule[0].vm} == {cluster.vms[name]._moId for name in WORKERS}


def test_check_mode_shows_workers_not_yet_built() -> None:
    cluster = FakeCluster(workers=1)
    shown = call(cluster, check=True, workers=["w1", "w2"], drs_override="manual")
    assert (shown["changed"], cluster.writes) == (True, [])
    assert shown["unmet"] == ["w2 does not exist; dml.vsphere.worker_vm builds workers and takes them over"]
    assert shown["state"]["one_per_host"]["workers"] == ["w1", "w2"]


ONE_PER_HOST: dict[str, Any] = {
    "workers": WORKERS,
    "hosts": ["esx1", "esx2", "esx3"],
    "drs_override": "manual",
    "restart_priority": "high",
}


@pytest.mark.parametrize(
    ("make", "desired", "words"),
    [
        (lambda c: add_rule(c, together(c, "w1", "w3")), {}, "keep w1, w3 apart: another user's rule 'pair'"),
        (
            lambda c: pinned(c, ["w1", "w2"], ["esx1"], mandatory=True),
            {},
            "give each of w1, w2 a separate host: only esx1 is left for them by",
        ),
        (
            lambda c: pinned(c, ["w2"], ["esx1"], mandatory=True),
            {"hosts": ["esx2", "esx3"], "workers": ["w2"], "host_affinity": "required"},
            "could not keep w2 on esx2, esx3: another user's rule 'pin' forbids it",
        ),
        (
            lambda c: pinned(c, ["w1"], ["esx1", "esx2", "esx3"], mandatory=True, away=True),
            {"one_per_host": False},
            "rule 'pin' forbids it",
        ),
        (lambda _cluster: None, {"hosts": ["esx1", "esx9"]}, "it has no esx9; it has esx1, esx2, esx3"),
        (
            lambda _cluster: None,
            {"hosts": ["esx1"], "host_affinity": "required"},
            "a separate host: only esx1 is left for them;",
        ),
        (lambda _cluster: None, {"workers": ["w1", "w1"]}, "w1: could not take it as a worker: it is named twice"),
        (lambda _cluster: None, {"overrides": [{"name": "w9"}]}, "w9: could not set its overrides: it is not among"),
        (lambda c: c.add("w4", cluster="other"), {"workers": ["w4"], "hosts": ["esx1"]}, "w4 is a worker of cluster"),
        (lambda c: c.add("w4", host="afar"), {"workers": ["w4"], "hosts": ["esx1"]}, "w4 is on a host of another"),
        (
            lambda c: c.add("w4", cluster=None),
            {"workers": ["w4"], "hosts": ["esx1"]},
            "it carries no mark of this collection",
        ),
        (
            lambda c: c.add("w1/again"),
            {},
            "several virtual machines have its mark and match its name or its instance UUID: w1 (vm-1) and",
        ),
        (
            lambda c: add_rule(c, vim.cluster.AffinityRuleSpec(name=RULE, enabled=True, vm=list(c.vms.values()))),
            {},
            f"rule '{RULE}': could not manage it: it has another type",
        ),
    ],
)
def test_refuses_impossible_rules_before_any_write(make: Any, desired: dict[str, Any], words: str) -> None:
    cluster = FakeCluster()
    make(cluster)
    refused = call(cluster, **{"workers": WORKERS, **desired})
    assert words in refused["msg"], refused
    assert " | " not in refused["msg"]
    assert cluster.writes == []


def test_keeps_groups_that_a_foreign_rule_uses() -> None:
    cluster = FakeCluster()
    call(cluster, **ONE_PER_HOST)
    add_rule(
        cluster, vim.cluster.VmHostRuleInfo(name="theirs", enabled=False, vmGroupName="dml.vsphere workers: workers")
    )
    cluster.writes.clear()
    assert "the groups of this set are in use by another user's rule 'theirs'" in call(cluster, **GONE)["msg"]
    assert cluster.writes == []


def test_override_belongs_to_only_one_set() -> None:
    cluster = FakeCluster()
    call(cluster, workers=WORKERS, drs_override="manual")
    words = call(cluster, name="others", workers=["w1", "w2"], drs_override="disabled")["msg"]
    assert "w1: could not set its overrides: the set 'workers' of this cluster already sets its overrides" in words
    assert call(cluster, name="others", workers=["w1", "w2"])["changed"]
    assert call(cluster, name="others", **GONE)["changed"]
    assert [one.name for one in cluster.config.rule] == [RULE]
    assert drs_of(cluster) == dict.fromkeys(WORKERS, "manual")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"drsConfig": vim.cluster.DrsConfigInfo(enabled=False)}, "DRS is off: its rules and overrides are stored"),
        (
            {"drsConfig": vim.cluster.DrsConfigInfo(enabled=True, enableVmBehaviorOverrides=False)},
            "the cluster does not allow DRS overrides of single virtual machines",
        ),
        ({"dasConfig": vim.cluster.DasConfigInfo(enabled=False)}, "HA is off: restart priorities are stored"),
    ],
)
def test_warns_about_stored_settings_without_effect(setting: dict[str, Any], words: str) -> None:
    cluster = FakeCluster()
    for key, value in setting.items():
        setattr(cluster.config, key, value)
    for check in (True, False, False):
        (reported,) = call(cluster, check=check, **ONE_PER_HOST)["told"]
        assert words in reported
    assert call(cluster, **GONE)["told"] == []


def test_warns_about_rule_moves_and_conflicting_foreign_preferences() -> None:
    cluster = FakeCluster()
    cluster.homes["w2"] = cluster.hosts["esx1"]
    pinned(cluster, ["w3"], ["esx3"], mandatory=False)
    message = str(call(cluster, check=True, workers=WORKERS, hosts=["esx1", "esx2"])["told"])
    assert "w1, w2 run on esx1" in message
    assert "another user's rule 'pin' prefers other hosts for w3" in message


def test_warns_about_preferred_hosts_that_a_rule_forbids() -> None:
    cluster = FakeCluster()
    pinned(cluster, ["w2", "w3"], ["esx1"], mandatory=True)
    reported = call(cluster, workers=WORKERS, hosts=["esx2", "esx3"], one_per_host=False)["told"]
    assert reported == ["gpu: another user's rule 'pin' forbids w2, w3 on esx2, esx3: the preference has no effect"]
    assert cluster.writes


@pytest.mark.parametrize(
    ("options", "lost"),
    [
        ({"workers": []}, "w1, w2, w3"),
        ({"workers": ["w4", "w5"]}, "w1, w2, w3"),
        ({"workers": ["w1", "w2"]}, "w3"),
        ({"workers": ["w1"], "drop": ["w2"]}, "w3"),
        ({"workers": ["w1"], **GONE}, "w2, w3"),
    ],
)
@pytest.mark.parametrize(
    "kept", [{"hosts": ["esx1", "esx2", "esx3"], "one_per_host": False}, {}, {"drs_override": "manual"}]
)
def test_workers_of_another_list_keep_their_rules(options: dict[str, Any], kept: dict[str, Any], lost: str) -> None:
    cluster = FakeCluster()
    call(cluster, workers=WORKERS, **kept)
    cluster.add("w4")
    cluster.add("w5", host="esx2")
    cluster.writes.clear()
    refused = call(cluster, **options)
    assert refused["msg"] == (
        f"cluster gpu: could not remove the rules and overrides of {lost}: the set 'workers' contains these workers, "
        "and the call does not name them; give each list of workers another set name (worker_rules_name), "
        f"or confirm with drop: [{lost}]"
    )
    assert cluster.writes == []


def test_another_set_and_confirmed_workers_are_not_refused() -> None:
    cluster = FakeCluster()
    call(cluster, workers=WORKERS)
    cluster.add("w4")
    assert not call(cluster, name="second", workers=["w4"]).get("failed")
    assert [one.name for one in cluster.config.rule] == [RULE]
    done = call(cluster, workers=["w1", "w4"], drop=["w2", "w3"])
    assert done["state"]["one_per_host"]["workers"] == ["w1", "w4"], done
    both = call(cluster, workers=["w1", "w4"], drop=["w4"])
    assert "w4: could not drop it from the rules: it is also in workers; name it in only one list" in both["msg"]
    assert call(cluster, **GONE)["changed"]
    assert list(cluster.config.rule) == []
