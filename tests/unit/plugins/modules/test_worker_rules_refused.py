"""Requests that worker_rules refuses before it writes, and its warnings."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from tests.fakes.rules import FakeCluster, add_rule, call, drs_of, pinned, together

RECONFIGURE = "ReconfigureComputeResource_Task"
RULE = "dml.vsphere workers: one per host"
WORKERS = ["w1", "w2", "w3"]
DESIRED: dict[str, Any] = {
    "workers": WORKERS,
    "hosts": ["esx1", "esx2", "esx3"],
    "drs_override": "manual",
    "restart_priority": "high",
}
GONE = {"state": "absent"}


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
    call(cluster, **DESIRED)
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
        (reported,) = call(cluster, check=check, **DESIRED)["told"]
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
