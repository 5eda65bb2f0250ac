"""The configuration of a Slurm cluster comes from the facts of its nodes, and each difference is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.guests import node_checks, slurm_timers

CONFIG = (Path(__file__).parents[4] / "fixtures/slurm/config-22.05.8.txt").read_text()
FOUND: dict[str, Any] = {
    "names": ["w1", "w2"],
    "hosts": ["n1.example", "n2"],
    "addresses": ["10.0.1.1", "worker2"],
    "cpus": [2, 2],
    "memory": [24105, 24105],
    "gpus": [0, 4],
    "cgroups": ["cgroup2fs", "cgroup2fs"],
}
DESIRED: dict[str, Any] = {
    "controller": "w2",
    "cluster": "dml",
    "partition": "dml",
    "settings": {},
    "stun_seconds": 100,
}
SINFO = ["n1|idle|2|22899|(null)|none", "n2|mixed|2|22899|gpu:4(S:0)|none"]
SRUN = {"rc": 0, "cmd": ["srun"], "stdout": "n2\nn1.example\n"}
HELLO = 'hello {"node": "n1", "sum": 1}\nhello {"node": "n2", "sum": 1}'
RUN: dict[str, Any] = {"sinfo": SINFO, "config": CONFIG, "runs": [SRUN, {**SRUN, "stdout": HELLO}, {"skipped": True}]}


def settings(desired: dict[str, Any], **found: Any) -> dict[str, Any]:
    result, message = node_checks.check("slurm_settings", "w1", {**FOUND, **found}, {**DESIRED, **desired})
    assert not message
    return result.facts


def test_files_follow_from_the_facts_of_all_nodes() -> None:
    made = settings({"stun_seconds": 400, "settings": {"SlurmdTimeout": 900, "PreemptMode": "REQUEUE"}})
    conf = made["files"]["slurm.conf"].splitlines()
    expected = [
        "SlurmctldHost=n2(n2)",
        "GresTypes=gpu",
        "SlurmdTimeout=900",
        "PreemptMode=REQUEUE",
        "ResumeTimeout=400",
    ]
    expected += ["AuthInfo=cred_expire=400,ttl=400", "ProctrackType=proctrack/cgroup", "ReturnToService=2"]
    expected += ["NodeName=n1 NodeAddr=10.0.1.1 CPUs=2 RealMemory=22899"]
    expected += ["NodeName=n2 NodeAddr=n2 CPUs=2 RealMemory=22899 Gres=gpu:4"]
    assert set(expected) <= set(conf) and conf[-1] == "PartitionName=dml Nodes=n1,n2 Default=YES State=UP"
    assert made["files"]["gres.conf"].endswith("\nNodeName=n2 Name=gpu File=/dev/nvidia[0-3]\n")
    assert "ConstrainDevices=yes" in made["files"]["cgroup.conf"] and made["tracks_by"] == "cgroup"


@pytest.mark.parametrize(("gpus", "keeps_gpus"), [([0, 4], True), ([0, 0], False)])
def test_accounting_names_the_node_of_slurmdbd(gpus: list[int], keeps_gpus: bool) -> None:
    made = settings({"accounting": True, "controller": "w1"}, gpus=gpus)

    conf = made["files"]["slurm.conf"].splitlines()
    assert {"AccountingStorageType=accounting_storage/slurmdbd", "AccountingStorageHost=10.0.1.1"} <= set(conf)
    assert ("AccountingStorageTRES=gres/gpu" in conf) == keeps_gpus
    assert {"DbdHost=n1", "DbdAddr=10.0.1.1", "StorageHost=localhost"} <= set(made["slurmdbd"].splitlines())
    assert "StoragePass" not in made["slurmdbd"] and "Accounting" not in settings({})["files"]["slurm.conf"]


@pytest.mark.parametrize(("known", "words"), [("dml|10.0.1.1", ""), ("dml|", "slurmdbd does not know"), ("", "slurmd")])
def test_cluster_that_slurmdbd_does_not_know_is_named(known: str, words: str) -> None:
    desired = {"found": FOUND, "stun_seconds": 50, "accounting": True}
    _result, message = node_checks.check("slurm", "w1", {**RUN, "known": known}, desired)
    assert words in message and bool(message) == bool(words)


def test_timers_of_the_files_withstand_their_stun() -> None:
    for stun in (10, 100, 300):
        config = slurm_timers.settings(settings({"stun_seconds": stun})["files"]["slurm.conf"])
        assert list(slurm_timers.timers(config, stun)) == []
        assert slurm_timers.starts_to_avoid(config, stun) == []


def test_node_without_cgroup_v2_is_tracked_otherwise() -> None:
    made = settings({}, cgroups=["cgroup2fs", "tmpfs"], gpus=[0, 0])
    assert list(made["files"]) == ["slurm.conf"] and "proctrack/linuxproc" in made["files"]["slurm.conf"]


@pytest.mark.parametrize(
    ("found", "desired", "words"),
    [
        ({"hosts": ["n1", "n1.b"]}, {}, "n1 is the host name of several nodes."),
        ({"hosts": ["n1", "n2 State=DOWN"]}, {}, "'n2 State=DOWN' is not a host name that Slurm accepts."),
        ({}, {"controller": "w3"}, "slurm_controller is w3, which is not one of slurm_nodes."),
        ({}, {"partition": "a b"}, "slurm_partition is 'a b': use letters"),
        ({}, {"settings": {"Epilog": "/a\nUser=x"}}, "slurm_settings contains 'Epilog', which is not"),
        ({}, {"settings": {"NodeName": "x"}}, "slurm_settings contains 'NodeName', which is not"),
        ({key: [] for key in FOUND}, {}, "slurm_nodes is empty."),
    ],
)
def test_impossible_cluster_is_refused(found: dict[str, Any], desired: dict[str, Any], words: str) -> None:
    result, message = node_checks.check("slurm_settings", "w1", {**FOUND, **found}, {**DESIRED, **desired})
    assert words in message and result.facts == {}


@pytest.mark.parametrize(
    ("options", "nodes", "words"),
    [
        ({"limit": "w2", "guests": ""}, ["w2"], "--limit w2 leaves out n1 of the cluster of these nodes"),
        ({"limit": "", "guests": "w2"}, ["w2"], "guests=w2 leaves out n1 of the cluster of these nodes"),
        ({"limit": "workers", "guests": "w*"}, ["w1", "w2"], ""),
        ({"limit": "", "guests": "true"}, ["w2"], ""),  # a worker that the inventory does not have any more
    ],
)
def test_limit_does_not_take_a_cluster_apart(options: dict[str, str], nodes: list[str], words: str) -> None:
    conf = settings({})["files"]["slurm.conf"].rstrip()
    found = {key: values[-len(nodes) :] for key, values in {**FOUND, "confs": [conf, conf]}.items()}

    result, message = node_checks.check("slurm_settings", "w2", found, {**DESIRED, **options})

    assert words in message and bool(message) == bool(words) and bool(result.facts) == (not words)


def test_limit_ignores_other_configurations() -> None:
    conf = "NodeName=n[1-8] CPUs=64\n"
    assert settings({"limit": "w1,w2"}, confs=[conf, ""])["nodes"] == ["n1", "n2"]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({}, ""),
        ({"sinfo": SINFO[:1]}, "Slurm has no node n2."),
        ({"sinfo": [*SINFO, "n9|idle|2|1|(null)|none"]}, "Slurm has a node n9 that is not in slurm_nodes."),
        ({"sinfo": [SINFO[0].replace("idle", "idle*"), SINFO[1]]}, "n1 is idle* in Slurm (none)."),
        ({"sinfo": [SINFO[0].replace("idle|2|22899|(null)|none", "drained|2|22899|(null)|disk")]}, "n1 is drained in"),
        (
            {"sinfo": [SINFO[0].replace("22899", "1000"), SINFO[1]]},
            "GPUs 2, 1000, (null) in Slurm, not 2, 22899, (null).",
        ),
        ({"sinfo": [SINFO[0], SINFO[1].replace("gpu:4", "gpu:3")]}, "2, 22899, gpu:3 in Slurm, not 2, 22899, gpu:4."),
        (
            {"config": CONFIG.replace("SlurmdTimeout           = 300", "SlurmdTimeout           = 90")},
            "SlurmdTimeout is 90 s",
        ),
        ({"runs": [{**SRUN, "rc": 1, "stderr": "srun: error: \n no"}]}, "srun failed: srun: error: no."),
        ({"runs": [{**SRUN, "stdout": "n1\nn1\n"}]}, "srun must run a rank on each of n1, n2; ranks ran on n1, n1."),
        ({"runs": [{**SRUN, "stdout": HELLO.replace("1}", "0}")}]}, "srun must run a rank on each of n1, n2; ranks"),
        ({"runs": [{**SRUN, "stdout": ""}]}, "ranks ran on no node."),
    ],
)
def test_only_what_differs_in_slurm_is_named(run: dict[str, Any], words: str) -> None:
    desired = {"found": FOUND, "stun_seconds": 50}
    result, message = node_checks.check("slurm", "w1", {**RUN, **run}, desired)
    assert words in message and bool(message) == bool(words) and result.facts == {"version": "22.05.8"}
