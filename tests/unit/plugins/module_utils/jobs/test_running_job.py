"""A job is read, checked and ended where it runs: on its launcher, or with the API server of Kubernetes.

The job around which hosts are changed is complete and runs, or the hosts are not changed.
"""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.jobs.running_job import job_from, require_complete, require_found, restart_of
from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.job_spec import job_of
from plugins.module_utils.kubernetes.state import ranks_of_pods
from plugins.modules import mpijob_info
from tests.fakes.deaths import MortalWorld

WHERE: dict[str, Any] = {"name": "train", "namespace": "ml", "kubeconfig": "/k", "context": "here"}
MPI: dict[str, Any] = {"run_dir": "/runs/one", "nodes": [], "launcher": "w1"}
RUN = {"launcher": "w1", "run_dir": "/run/one", "records": "/records/one", "kubernetes": {}}
KEPT = {"restarts": 0, "started": 1.0, "is_deleted": False, "role": "worker"}
PODS = {name: {"uid": f"{name}-1", "node": node, **KEPT} for name, node in (("a", "node-2"), ("b", "node-1"))}


class Recorder(MortalWorld):
    """Records the calls of modules, and their places."""

    def __init__(self, **answer: Any) -> None:
        super().__init__()
        self.answer, self.calls = answer, list[tuple[str, str, dict[str, Any]]]()

    def here(self, module: str, options: Any) -> dict[str, Any]:
        self.calls.append(("here", module, dict(options)))
        return self.answer

    def there(self, module: str, options: Any) -> dict[str, Any]:
        self.calls.append(("there", module, dict(options)))
        return self.answer


def test_reads_finishes_stops_runs_on_their_launcher() -> None:
    calls = Recorder(job={"state": "running"})
    job = job_from(calls.here, calls.there, RUN)
    assert job.name == "w1: the job in /run/one" and job.look()["job"]["state"] == "running"
    assert job.checked(["w1"], 20.0, []) == []
    job.finish()
    job.stop()
    assert calls.calls == [
        ("there", "dml.vsphere.training_info", {"gather": ["job"], "run_dir": "/run/one", "records": "/records/one"}),
        ("there", "ansible.builtin.file", {"path": "/records/one/finish", "state": "touch", "mode": "0644"}),
        ("there", "dml.vsphere.training_job", {"run_dir": "/run/one", "state": "stopped"}),
    ]


def test_reports_a_job_that_cannot_be_stopped() -> None:
    failing = Recorder(failed=True, msg="the server said no")
    with pytest.raises(CollectionError, match="the server said no"):
        job_from(failing.here, failing.there, RUN).stop()


def deletion(kubernetes: dict[str, Any]) -> dict[str, Any]:
    """Return the options with which a job is deleted."""
    calls = Recorder()
    job_from(calls.here, calls.there, {**RUN, "kubernetes": kubernetes}).stop()
    ((place, module, options),) = calls.calls
    assert (place, module) == ("here", "kubernetes.core.k8s")
    return options


def test_deletes_the_objects_of_a_test_job() -> None:
    options = deletion(WHERE)
    made = options.pop("resource_definition")
    assert [(one["kind"], one["metadata"]) for one in made] == [
        ("MPIJob", {"name": "train"}),
        ("ConfigMap", {"name": "train-library"}),
        ("Secret", {"name": "train-environment"}),
    ]
    assert made[0]["apiVersion"] == "kubeflow.org/v2beta1"
    assert options == {
        "state": "absent",
        "wait": True,
        "delete_options": {"propagationPolicy": "Foreground"},
        "namespace": "ml",
        "kubeconfig": "/k",
        "context": "here",
    }


def test_deletes_every_object_that_a_job_may_have() -> None:
    job = job_of(
        {
            "name": "train",
            "image": "i",
            "command": ["c"],
            "workers": 1,
            "secrets": {"A": "b"},
            "files": {"c": "d"},
            "library": "/lib",
        }
    )
    given = [*manifests.manifests(job), *filter(None, [manifests.secret(job)])]
    left = [(one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in manifests.owned("train", job.api)]
    assert sorted(left) == sorted((one["apiVersion"], one["kind"], one["metadata"]["name"]) for one in given)


def test_deletes_a_job_in_its_default_namespace() -> None:
    there = {key: value for key, value in WHERE.items() if key != "namespace"}
    assert deletion(there)["namespace"] == mpijob_info.ARGUMENTS["namespace"]["default"] == "default"


def test_finds_host_network_pods_by_node_name() -> None:
    pods = {"a": {**PODS["a"], "node": "w1.example.com"}, "launch": {**PODS["b"], "role": "launcher"}}
    found = ranks_of_pods({"w1": [0, 1]}, pods, {"w1.example.com": "vm-1"})
    assert found == {"a": {"worker": "vm-1", "ranks": [0, 1]}}
    assert ranks_of_pods({"elsewhere": [0]}, pods, {}) == {}


@pytest.mark.parametrize(
    ("node", "host"),
    [("w1.example.com", "W1.example.com"), ("W1", "w1.example.com"), ("10.0.0.7", "10.0.0.7"), ("k3", "A")],
)
def test_compares_rank_hosts_without_case_and_domain(node: str, host: str) -> None:
    pods = {"a": {**PODS["a"], "node": node}, "b": {**PODS["b"], "node": "10.0.0.8"}}
    assert ranks_of_pods({host: [1, 0]}, pods, {}) == {"a": {"worker": node, "ranks": [0, 1]}}


@pytest.mark.parametrize("job", [MPI, {"run_dir": "/runs/one", "kubernetes": {"name": "one"}}])
def test_accepts_a_named_job_with_all_keys(job: dict[str, Any]) -> None:
    require_complete(job, under_training=True)


@pytest.mark.parametrize(
    ("job", "under_training", "end"),
    [
        (MPI, False, "or run_dir, nodes and launcher."),
        ({"run_dir": "/runs/one"}, True, "nodes and launcher: it lacks nodes and launcher."),
        ({"slurm": {"job": 1}}, False, "or run_dir, nodes and launcher."),
        ({"kubernetes": {}}, True, "nodes and launcher: it lacks run_dir."),
    ],
)
def test_refuses_an_incomplete_job(job: dict[str, Any], under_training: bool, end: str) -> None:
    with pytest.raises(CollectionError) as refused:
        require_complete(job, under_training=under_training)

    assert str(refused.value).endswith(end)


def test_returns_the_job_that_was_found() -> None:
    found = [{"why": "w1 is idle"}, {**MPI, "found": True}]

    assert require_found("gpu", found, limit="", has_workers=True)["run_dir"] == "/runs/one"


@pytest.mark.parametrize(
    ("found", "limit", "cause"),
    [
        ([], "one", "because --limit one excludes the workers. Add them to the limit, or leave out under_training"),
        ([], "", "because this run has no workers in the inventory. Add the group workers, or leave out"),
        ([{"why": "none runs"}], "one", "because none runs. Correct that, or leave out under_training to change the"),
    ],
)
def test_refuses_to_change_hosts_without_a_found_job(found: list[dict[str, Any]], limit: str, cause: str) -> None:
    with pytest.raises(CollectionError) as refused:
        require_found("gpu", found, limit=limit, has_workers=True)

    assert str(refused.value).startswith("gpu: could not change its hosts around a training job: no job was found,")
    assert cause in str(refused.value)


def test_named_job_is_restarted_only_with_its_commands() -> None:
    commands = {"stop": "stop-it", "start": "start-it", "checkpoints": "/ck"}
    restart = restart_of({**MPI, **commands}, "/reports")
    assert restart == {"run": "one", "job": {**MPI, **commands, "results": "/reports"}}
    assert "it lacks stop, start, checkpoints." in restart_of(MPI, "")["why"]
