"""A TrainJob of Kubeflow Trainer: its objects are valid in its schemas, and its state is read as of an MPIJob.

The objects that Trainer, JobSet and Kubernetes make have the names, labels and owners of the sources of Trainer 2.3 and
JobSet 0.12; no cluster was recorded.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.job_spec import JobError, job_of
from plugins.module_utils.kubernetes.mpijob import MpiJob
from plugins.module_utils.kubernetes.state import ranks_of_pods
from plugins.modules import mpijob_info
from tests import kubernetes_schema as schema
from tests.fakes.kubernetes import Cluster, served
from tests.unit.plugins.modules.test_continuity_verdict import call

from .objects import NODES, event, stamp
from .test_manifests import FULL, LEAST

PLACE = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default"
CORE = "/api/v1/namespaces/default"
JOBSETS, JOBS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", "/apis/batch/v1/namespaces/default/jobs"
OPTIONS = {
    "least": LEAST,
    "full": FULL,
    "privileged": {**FULL, "devices": "privileged"},
    "queued": {**LEAST, "queue": "team-a", "suspend": True},
    "torchrun": {**LEAST, "launcher": "torchrun"},
    "torchrun full": {**FULL, "launcher": "torchrun", "mpirun_arguments": [], "folder": "/home/user/run"},
}


def objects(options: dict[str, Any]) -> list[dict[str, Any]]:
    return manifests.manifests(job_of({**options, "api": "trainjob"}))


def pods_of(runtime: dict[str, Any]) -> dict[str, dict[str, Any]]:
    jobs = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    return {each["name"]: each["template"]["spec"]["template"] for each in jobs}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_each_object_is_valid_in_its_schema(options: dict[str, Any]) -> None:
    *others, runtime, trainjob = objects(options)

    assert (runtime["kind"], trainjob["kind"]) == ("TrainingRuntime", "TrainJob")
    assert schema.faults(runtime) == [] and schema.faults(trainjob) == []
    each = [*others, *map(schema.pod_of, pods_of(runtime).values())]
    assert [fault for one in each for fault in schema.kubernetes_faults(one, "1.35")] == []


def test_the_runtime_schema_refuses_an_unknown_field() -> None:
    *_others, runtime, _trainjob = objects(LEAST)
    runtime["spec"]["mlPolicy"]["mpi"]["slots"] = 1

    assert any("slots" in fault for fault in schema.faults(runtime))


def test_trainer_finds_the_containers_for_ssh_keys() -> None:
    *_others, runtime, trainjob = objects(FULL)

    containers = {name: template["spec"]["containers"][0] for name, template in pods_of(runtime).items()}
    assert {container["name"] for container in containers.values()} == {"node"}
    assert containers["node"]["command"][-2:] == ["/usr/sbin/sshd", "-De"]
    assert containers["node"]["readinessProbe"]["tcpSocket"] == {"port": 22}
    assert containers["launcher"]["command"] == trainjob["spec"]["trainer"]["command"]
    assert runtime["spec"]["mlPolicy"]["numNodes"] == 1, "Trainer runs that many launchers"
    assert trainjob["spec"]["trainer"]["numNodes"] == 4 and trainjob["spec"]["trainer"]["numProcPerNode"] == 2
    launcher = runtime["spec"]["template"]["spec"]["replicatedJobs"][1]
    assert launcher["dependsOn"] == [{"name": "node", "status": "Ready"}]
    assert launcher["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}


def test_launcher_and_nodes_copy_the_ssh_key() -> None:
    *_others, runtime, trainjob = objects(LEAST)

    words = trainjob["spec"]["trainer"]["command"]
    assert words[:4] == ["sh", "-c", '(umask 077 && cp /root/.ssh/id_rsa /root/.dml-key) && exec "$@"', "sh"]
    assert words[4:8] == ["mpirun", "--mca", "plm_rsh_args", "-o ConnectionAttempts=10 -i /root/.dml-key"]
    assert pods_of(runtime)["node"]["spec"]["containers"][0]["command"][:4] == words[:4]


def test_other_users_read_what_ranks_write(tmp_path: Path) -> None:
    *_others, trainjob = objects(LEAST)
    (tmp_path / "id_rsa").touch()
    script, key = trainjob["spec"]["trainer"]["command"][2], tmp_path / "key"
    script = script.replace(manifests.SSH, str(tmp_path)).replace(manifests.OWN_KEY, str(key))

    subprocess.run(["sh", "-c", script, "sh", "touch", str(tmp_path / "step1.ckpt")], umask=0o022, check=True)

    assert [path.stat().st_mode & 0o777 for path in (key, tmp_path / "step1.ckpt")] == [0o600, 0o644]


def test_jobset_labels_keep_workers_apart() -> None:
    *_others, runtime, _trainjob = objects(LEAST)

    affinity = pods_of(runtime)["node"]["spec"]["affinity"]["podAntiAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["labelSelector"]["matchLabels"] == {
        "jobset.sigs.k8s.io/jobset-name": "train",
        "jobset.sigs.k8s.io/replicatedjob-name": "node",
    }


def test_a_kueue_queue_is_a_label_of_jobs() -> None:
    *_others, runtime, trainjob = objects({**LEAST, "queue": "team-a"})

    assert trainjob["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert "kueue.x-k8s.io/queue-name" not in runtime["metadata"]["labels"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gang": {"least": 4}}, "trainjob does not support gang: use v2beta1"),
        ({"clean_pods": "All"}, "trainjob does not support clean_pods All"),
        ({"name": "t" * 45}, "63 characters are allowed"),
        ({"launcher": "srun"}, "launcher is 'srun': expected one of mpirun, torchrun"),
        ({"launcher": "torchrun", "mpirun_arguments": ["--bind-to", "core"]}, "but the launcher is torchrun: remove"),
    ],
)
def test_refuses_options_that_a_trainjob_does_not_support(options: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError, match=words):
        objects({**LEAST, **options})


def test_deletes_the_job_before_its_runtime() -> None:
    options = manifests.deletion("train", "trainjob")
    definitions = options["resource_definition"]

    assert options["delete_options"] == {"propagationPolicy": "Background"}

    assert [each["kind"] for each in definitions] == ["TrainJob", "TrainingRuntime", "ConfigMap", "Secret"]


def test_another_image_makes_another_job() -> None:
    *_mine, mine = objects(LEAST)
    *_others, other = objects({**LEAST, "image": "other"})

    assert list(manifests.changed_fields(mine, mine)) == []
    assert list(manifests.changed_fields(other, mine)) == ["the pod templates of its runtime"]


def owned(name: str, kind: str, uid: str, owner: tuple[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid, "ownerReferences": [{"kind": owner[0], "uid": owner[1]}]}}


def pod(role: str, index: int, node: str, end: str, state: dict[str, Any], **status: Any) -> dict[str, Any]:
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": role}
    host = f"train-{role}-0-{index}"
    made = owned(f"{host}-{end}", "Pod", f"pod-{role}-{index}", ("Job", f"job-{role}"))
    made["metadata"]["labels"] = {**labels, "batch.kubernetes.io/job-completion-index": str(index)}
    made["spec"] = {"hostname": host, "nodeName": node}
    containers = [{"name": "node", "restartCount": 0, "state": state}]
    made["status"] = {"phase": "Running", "containerStatuses": containers, **status}
    return made


BEGAN = {"running": {"startedAt": stamp(2)}}
NODE_PODS = [pod("node", 0, "k3", "x7k2p", BEGAN), pod("node", 1, "k2", "9fjq4", BEGAN)]
LAUNCHER = pod("launcher", 0, "k1", "zz8dm", BEGAN)


def cluster(*conditions: tuple[str, str], pods: Any = (), events: Any = (), **answers: Any) -> Cluster:
    *_others, trainjob = objects({**LEAST, "workers": 2, "slots": 2})
    trainjob["metadata"].update(uid="train-job", creationTimestamp=stamp(0))
    listed = [
        {"type": kind, "status": "True", "reason": reason, "message": "", "lastTransitionTime": stamp(90)}
        for kind, reason in conditions
    ]
    trainjob["status"] = {"conditions": listed} if listed else {}
    found = {
        f"{PLACE}/trainjobs/train": trainjob,
        f"{JOBSETS}/train": owned("train", "JobSet", "job-set", ("TrainJob", "train-job")),
        f"{JOBS}/train-launcher-0": owned("train-launcher-0", "Job", "job-launcher", ("JobSet", "job-set")),
        f"{JOBS}/train-node-0": owned("train-node-0", "Job", "job-node", ("JobSet", "job-set")),
        f"{CORE}/pods": list(pods),
        f"{CORE}/events": list(events),
        "/api/v1/nodes": NODES,
    }
    return Cluster({**found, **answers})


def read(server: Cluster, folder: Path, **options: Any) -> dict[str, Any]:
    with served(server, folder) as kubeconfig:
        return call(mpijob_info, name="train", api="trainjob", kubeconfig=kubeconfig, **options)


def test_a_running_trainjob_has_ranks_workers_and_launcher(tmp_path: Path) -> None:
    job = read(cluster(pods=[LAUNCHER, *NODE_PODS]), tmp_path, names={"k3": "vm-3"})["job"]

    assert (job["state"], job["launcher"]["host"]) == ("running", "train-launcher-0-0-zz8dm")
    assert job["nodes_of_ranks"] == ["train-node-0-0"] * 2 + ["train-node-0-1"] * 2
    assert [worker["name"] for worker in job["workers"]] == ["vm-3", "k2"]
    assert job["workers"][0]["reach"][-6:] == ["train-node-0-0-x7k2p", "-c", "node", "--", "sh", "-c"]
    assert job["rank_0_on"] == "vm-3" and "mpirun" in job["mpirun_command"]


def test_finds_ranks_in_pods_with_longer_names(tmp_path: Path) -> None:
    job = read(cluster(pods=[LAUNCHER, *NODE_PODS]), tmp_path)["job"]

    by_pod = ranks_of_pods({"train-node-0-0": [0, 1], "train-node-0-1.train": [2, 3]}, job["pods"], {})

    assert by_pod == {
        "train-node-0-0-x7k2p": {"worker": "k3", "ranks": [0, 1]},
        "train-node-0-1-9fjq4": {"worker": "k2", "ranks": [2, 3]},
    }


def test_ignores_pods_with_another_owner(tmp_path: Path) -> None:
    stranger = pod("node", 0, "k4", "evil0", BEGAN)
    stranger["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "of another tenant"}]

    job = read(cluster(pods=[LAUNCHER, *NODE_PODS, stranger]), tmp_path)["job"]

    assert "train-node-0-0-evil0" not in job["pods"] and len(job["workers"]) == 2


def test_a_complete_trainjob_finishes_at_the_condition_time(tmp_path: Path) -> None:
    launcher = pod("launcher", 0, "k1", "zz8dm", {"terminated": {"exitCode": 0}}, phase="Succeeded")
    log = {f"{CORE}/pods/train-launcher-0-0-zz8dm/log": "step 100\n"}

    result = read(cluster(("Complete", "AllJobsCompleted"), pods=[launcher], **log), tmp_path)

    job = result["job"]
    assert (job["state"], job["exit_code"], job["ended"] - job["started"]) == ("finished", 0, 90)
    assert result["log"] == "step 100\n"


def test_a_failed_trainjob_has_its_launchers_cause(tmp_path: Path) -> None:
    launcher = pod("launcher", 0, "k1", "zz8dm", {"terminated": {"exitCode": 1, "reason": "Error"}}, phase="Failed")
    text = "[1,3]<stderr>:ValueError: odd\n"
    log = {f"{CORE}/pods/train-launcher-0-0-zz8dm/log": text}

    job = read(cluster(("Failed", "FailedJobs"), pods=[launcher], **log), tmp_path)["job"]

    assert (job["state"], job["why"]) == ("died", "rank 3 on train-node-0-1 ended: ValueError: odd")


def test_a_node_silent_too_long_is_the_cause(tmp_path: Path) -> None:
    name = "train-node-0-1-9fjq4"
    marked = event("Pod", name, "TaintManagerEviction", f"Marking for deletion Pod default/{name}", 70)

    job = read(cluster(("Failed", "FailedJobs"), pods=NODE_PODS[:1], events=[marked]), tmp_path)["job"]

    assert job["why"].startswith(f"pod {name} was deleted because its node was silent for longer")
    assert job["machine"] is True


def test_a_queued_trainjob_waits_but_suspended_ones_stop(tmp_path: Path) -> None:
    queued = cluster(("Suspended", "Suspended"))
    queued.answers[f"{PLACE}/trainjobs/train"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "team-a"

    states = [read(server, tmp_path)["job"] for server in (queued, cluster(("Suspended", "Suspended")))]

    assert [(job["state"], job["why"]) for job in states] == [
        ("waiting", "it waits in the queue team-a"),
        ("stopped", "it is suspended"),
    ]


def test_a_refused_trainjob_waits_with_the_reason(tmp_path: Path) -> None:
    message = 'TrainJob resources reconciliation failed: JobSet "train" is forbidden: exceeded quota'
    refused = event("TrainJob", "train", "TrainJobResourcesCreationFailed", message, 1)

    job = read(cluster(events=[refused]), tmp_path)["job"]

    assert (job["state"], job["why"]) == ("waiting", f"the operator refused it: {message}")


def test_a_quota_explains_why_a_job_waits(tmp_path: Path) -> None:
    message = 'Error creating: pods "train-node-0-0-" is forbidden: exceeded quota: gpus'
    refused = event("Job", "train-node-0", "FailedCreate", message, 1)

    job = read(cluster(events=[refused]), tmp_path)["job"]

    assert job["why"] == "a pod cannot be created: exceeded quota: gpus"


def test_a_trainjob_that_no_controller_processes_names_trainer(tmp_path: Path) -> None:
    job = read(cluster(), tmp_path)["job"]

    assert "no operator has taken it up" in job["why"] and "check that Kubeflow Trainer runs" in job["why"]


def test_a_kubernetes_without_trainer_is_named(tmp_path: Path) -> None:
    server = cluster()
    for path in (f"{PLACE}/trainjobs/train", "/apis/trainer.kubeflow.org/v1alpha1"):
        server.answers.pop(path)

    why = read(server, tmp_path)["job"]["why"]

    assert why == (
        "this Kubernetes does not support TrainJobs of that version: install Kubeflow Trainer, with its Helm chart, "
        "which brings JobSet"
    )


def test_a_trainjobs_annotation_acknowledges_a_window() -> None:
    requests: list[dict[str, Any]] = []

    def here(_module: str, options: Any) -> dict[str, Any]:
        requests.append(dict(options))
        note = {"annotations": {"dml.vsphere/window-ack": "2026-01-01T00:00:00Z"}}
        return {"resources": [{"metadata": note}]}

    job = MpiJob(here, lambda *_words: {}, {"name": "train", "api": "trainjob", "namespace": "ml"}, "/runs/train")

    assert job.acknowledged() == 1767225600.0 and job.ack.startswith("kubectl annotate --overwrite trainjob train")
    assert (requests[0]["api_version"], requests[0]["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
