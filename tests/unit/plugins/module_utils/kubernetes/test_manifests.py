"""The manifests of a job: they are valid in the schemas of the operator and of Kubernetes, and complete."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

import pytest

from plugins.module_utils.kubernetes import manifests, pod_templates
from plugins.module_utils.kubernetes.job_spec import JobError, job_of
from tests import kubernetes_schema as schema

LEAST: dict[str, Any] = {
    "name": "train",
    "image": "example.com/train:1",
    "command": ["python", "train.py"],
    "workers": 4,
}
FULL: dict[str, Any] = {
    **LEAST,
    "namespace": "ml",
    "slots": 2,
    "gpus": 2,
    "gpu_resource": "nvidia.com/GRID_T4-16C",
    "transport": "rdma",
    "devices": "plugin",
    "environment": {"NCCL_DEBUG": "INFO", "NCCL_IB_DISABLE": "0"},
    "secrets": {"WANDB_API_KEY": "s3cret-value"},
    "mpirun_arguments": ["--mca", "pml", "ob1"],
    "toleration_seconds": 120,
    "nodes": ["w1", "w2", "w3", "w4"],
    "node_selector": {"dml.vsphere/gpu": "GRID-T4-16C"},
    "requests": {"cpu": "8", "memory": "32Gi"},
    "pull_secrets": ["registry"],
    "records": "/var/lib/dml/runs/train",
    "records_on_node": True,
    "library": "/var/lib/dml/training",
    "files": {"dml_records.py": "print()\n"},
    "volumes": [
        {"name": "data", "path": "/data", "source": {"persistentVolumeClaim": {"claimName": "data"}}, "read_only": True}
    ],
    "setup": ["python3", "setup.py"],
}
BEYOND: dict[str, Any] = {
    "suspend": True,
    "queue": "team-a",
    "scheduler": "volcano",
    "gang": {"least": 4, "queue": "training", "priority_class": "high", "timeout": 300, "resources": {"cpu": "32"}},
}
# One job for each way in which manifests differ.
JOBS: dict[str, dict[str, Any]] = {
    "least": LEAST,
    "full": FULL,
    "beyond": {**FULL, **BEYOND},
    "privileged": {**FULL, "devices": "privileged"},
    "host network": {**LEAST, "host_network": True},
    "bare": {**LEAST, "is_spread": False, "shared_memory": ""},
}


def made(**changes: Any) -> dict[str, Any]:
    return manifests.mpijob(job_of({**FULL, **changes}))


def spec_of(made: dict[str, Any], replica: str) -> dict[str, Any]:
    return dict(made["spec"]["mpiReplicaSpecs"][replica]["template"]["spec"])


def container(made: dict[str, Any], replica: str) -> dict[str, Any]:
    return dict(spec_of(made, replica)["containers"][0])


@pytest.mark.parametrize("entry", schema.INDEX, ids=lambda entry: str(entry["file"]))
def test_schemas_have_the_listed_checksums(entry: dict[str, Any]) -> None:
    assert hashlib.sha256(schema.content(entry["file"])).hexdigest() == entry["sha256"]
    assert entry["licence"] == "Apache-2.0"


@pytest.mark.parametrize("desired", JOBS.values(), ids=JOBS)
def test_every_job_matches_its_operators_schema(desired: dict[str, Any]) -> None:
    job = manifests.mpijob(job_of(desired))
    assert schema.faults(job) == []


@pytest.mark.parametrize("desired", JOBS.values(), ids=JOBS)
@pytest.mark.parametrize("release", schema.RELEASES)
def test_every_object_matches_the_kubernetes_schema(desired: dict[str, Any], release: str) -> None:
    job = job_of(desired)
    *others, mpijob = manifests.manifests(job)
    templates = [mpijob["spec"]["mpiReplicaSpecs"][name]["template"] for name in ("Launcher", "Worker")]
    secret = manifests.secret(job)
    each = [*others, *([secret] if secret else []), *map(schema.pod_of, templates)]
    assert [fault for entry in each for fault in schema.kubernetes_faults(entry, release)] == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("spec", "slots"), 1),
        (("spec", "runPolicy", "cleanPods"), "All"),
        (("spec", "mpiReplicaSpecs", "Worker", "template", "spec", "toleration"), []),
        (("spec", "slotsPerWorker"), "two"),
        (("spec", "mpiImplementation"), "LAM"),
        (("metadata", "lables"), {}),
    ],
)
def test_the_strict_schema_detects_wrong_fields(path: tuple[str, ...], value: Any) -> None:
    job = made()
    place = job
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    assert any(path[-1] in fault or ".".join(path) in fault for fault in schema.faults(job))


def test_kubernetes_own_schema_sees_a_misspelt_field() -> None:
    pod = schema.pod_of(made()["spec"]["mpiReplicaSpecs"]["Worker"]["template"])
    pod["spec"]["containers"][0]["volumeMount"] = []
    assert "volumeMount" in schema.kubernetes_faults(pod, "1.35")[0]


def test_the_launcher_runs_mpirun_over_all_ranks() -> None:
    launcher = container(made(), "Launcher")
    words = launcher["command"]
    assert words[0] == "mpirun" and words[words.index("-np") + 1] == "8"
    forwarded = [words[index + 1] for index, word in enumerate(words) if word == "-x"]
    assert forwarded == ["PATH", "LD_LIBRARY_PATH", "NCCL_DEBUG", "NCCL_IB_DISABLE", "WANDB_API_KEY"]
    assert words[-5:] == ["--mca", "pml", "ob1", "python", "train.py"]
    assert launcher["env"] == [{"name": "NCCL_DEBUG", "value": "INFO"}, {"name": "NCCL_IB_DISABLE", "value": "0"}]
    # A remote shell or a host in the command would override the values that the operator gives to mpirun.
    assert not {"--host", "-host", "--hostfile", "plm_rsh_agent"} & set(words)


def test_the_setup_shares_image_volumes_and_environment() -> None:
    (setup,) = spec_of(made(), "Worker")["initContainers"]
    worker, launcher = container(made(), "Worker"), container(made(), "Launcher")
    assert (setup["image"], setup["command"]) == (worker["image"], ["python3", "setup.py"])
    assert setup["volumeMounts"] == worker["volumeMounts"]
    assert (setup["env"], setup["envFrom"]) == (launcher["env"], launcher["envFrom"])
    assert "initContainers" not in spec_of(made(setup=[]), "Worker")
    assert "initContainers" not in spec_of(made(), "Launcher")


def test_secrets_are_stored_and_never_shown() -> None:
    job = job_of(FULL)
    secret = manifests.secret(job)
    assert secret is not None
    assert base64.b64decode(secret["data"]["WANDB_API_KEY"]) == b"s3cret-value"
    shown = str(manifests.manifests(job))
    assert "s3cret-value" not in shown and secret["data"]["WANDB_API_KEY"] not in shown
    assert container(made(), "Launcher")["envFrom"] == [{"secretRef": {"name": secret["metadata"]["name"]}}]
    assert manifests.secret(job_of(LEAST)) is None


def test_gpus_limit_the_resource_the_cluster_offers() -> None:
    limits = container(made(), "Worker")["resources"]["limits"]
    assert limits == {"nvidia.com/GRID_T4-16C": 2, "rdma/hca": 1}
    assert "resources" not in container(made(gpus=0, devices="privileged", requests={}), "Worker")
    assert "resources" not in container(made(), "Launcher")


def test_devices_come_by_plugin_privilege_or_not() -> None:
    def infiniband(job: dict[str, Any]) -> list[str]:
        return [
            entry["mountPath"] for entry in container(job, "Worker")["volumeMounts"] if entry["name"] == "infiniband"
        ]

    plugin, privileged, without = (made(devices=way, transport="tcp") for way in ("plugin", "privileged", "none"))
    assert container(privileged, "Worker")["securityContext"] == {"privileged": True}
    assert infiniband(privileged) == ["/dev/infiniband"] and infiniband(plugin) == infiniband(without) == []
    assert "IPC_LOCK" in container(plugin, "Worker")["securityContext"]["capabilities"]["add"]
    assert "IPC_LOCK" not in container(without, "Worker")["securityContext"]["capabilities"]["add"]


def test_two_workers_never_share_a_node() -> None:
    labels = {"training.kubeflow.org/job-name": "train", "training.kubeflow.org/job-role": "worker"}
    terms = spec_of(made(), "Worker")["affinity"]["podAntiAffinity"]
    (term,) = terms["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    assert "affinity" not in spec_of(made(is_spread=False, nodes=[]), "Worker")


def test_workers_run_on_the_named_nodes_only() -> None:
    affinity = spec_of(made(), "Worker")["affinity"]["nodeAffinity"]
    terms = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [entry["matchFields"][0]["values"] for entry in terms] == [["w1"], ["w2"], ["w3"], ["w4"]]
    assert "affinity" not in spec_of(made(), "Launcher")


def test_all_pods_tolerate_silent_nodes_equally_long() -> None:
    for replica in ("Launcher", "Worker"):
        tolerations = spec_of(made(), replica)["tolerations"]
        assert {entry["key"] for entry in tolerations} == set(pod_templates.TAINTS)
        assert {(entry["effect"], entry["tolerationSeconds"]) for entry in tolerations} == {("NoExecute", 120)}


def test_the_job_has_its_policies() -> None:
    new = made(clean_pods="All", backoff_limit=2)["spec"]
    assert new["runPolicy"] == {"cleanPodPolicy": "All", "backoffLimit": 2}
    assert new["launcherCreationPolicy"] == "WaitForWorkersReady" and new["slotsPerWorker"] == 2


def test_sets_gang_queue_and_suspension_only_on_request() -> None:
    job = made(**BEYOND)
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert job["spec"]["runPolicy"]["suspend"] is True
    assert job["spec"]["runPolicy"]["schedulingPolicy"] == {
        "minAvailable": 4,
        "queue": "training",
        "priorityClass": "high",
        "scheduleTimeoutSeconds": 300,
        "minResources": {"cpu": "32"},
    }
    assert spec_of(job, "Worker")["schedulerName"] == spec_of(job, "Launcher")["schedulerName"] == "volcano"
    plain = made()
    assert not {"suspend", "schedulingPolicy"} & set(plain["spec"]["runPolicy"])
    assert "kueue.x-k8s.io/queue-name" not in plain["metadata"]["labels"]


def test_workers_mount_records_library_and_data() -> None:
    worker = spec_of(made(), "Worker")
    sources = {entry["name"]: entry for entry in worker["volumes"]}
    paths = {entry["name"]: entry["mountPath"] for entry in worker["containers"][0]["volumeMounts"]}
    assert sources["records"]["hostPath"] == {"path": "/var/lib/dml/runs/train", "type": "DirectoryOrCreate"}
    assert paths["records"] == "/var/lib/dml/runs/train" and paths["library"] == "/var/lib/dml/training"
    assert sources["library"]["configMap"]["name"] == "train-library" and paths["data"] == "/data"
    assert spec_of(made(records_on_node=False), "Worker")["volumes"][1] == {"name": "records", "emptyDir": {}}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "Train"}, "the name must consist of lower-case letters"),
        ({"name": "t" * 60}, "63 characters"),
        ({"image": ""}, "lacks image"),
        ({"command": []}, "lacks command"),
        ({"workers": 0}, "lacks workers"),
        ({"workers": -1}, "workers is -1: expected 1 or more"),
        ({"slots": 0}, "slots is 0"),
        ({"api": "v1"}, "api is 'v1': expected one of v2beta1, trainjob"),
        ({"devices": "all"}, "devices is 'all'"),
        ({"devices": "none"}, "the pods get no RDMA device"),
        ({"gpus": 1}, "2 ranks of a worker share 1 of nvidia.com/GRID_T4-16C"),
        ({"gpu_resource": "nvidia.com/"}, "gpu_resource is 'nvidia.com/'"),
        ({"queue": "Team A"}, "expected the name of a LocalQueue"),
        ({"environment": {"A B": "1"}}, "'A B' is not a name of an environment variable"),
        ({"environment": {"WANDB_API_KEY": "x"}}, "WANDB_API_KEY is given twice"),
        ({"gang": {"minimum": 4}}, "gang has minimum: expected some of least"),
        ({"library": ""}, "no folder for them"),
        ({"backof_limit": 3}, "unknown options: backof_limit"),
        ({"api": "v1alpha2"}, "api is 'v1alpha2': expected one of v2beta1, trainjob"),
    ],
)
def test_refuses_an_impossible_job_with_a_message(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message.replace("(", r"\(")):
        job_of({**FULL, **changes})


def test_reports_every_error_at_once() -> None:
    with pytest.raises(JobError) as caught:
        job_of({**FULL, "slots": 3, "clean_pods": "Some", "toleration_seconds": -1})
    assert all(word in str(caught.value) for word in ("clean_pods", "toleration_seconds", "3 ranks of a worker"))


def test_the_last_pods_name_may_have_63_characters() -> None:
    longest = "t" * (63 - len("-worker-3"))
    assert manifests.mpijob(job_of({**LEAST, "name": longest}))["metadata"]["name"] == longest


def test_ignores_fields_that_the_server_filled_in() -> None:
    job, server_job = made(), made()
    server_job["status"] = {"conditions": []}
    server_job["spec"].update(sshAuthMountPath="/root/.ssh", mpiImplementation="OpenMPI")
    server_job["spec"]["runPolicy"]["suspend"] = False
    worker = server_job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    worker["resources"]["limits"]["nvidia.com/GRID_T4-16C"] = "2"
    assert list(manifests.differences(job["spec"], server_job["spec"])) == []


def test_lists_the_differences_of_an_equally_named_job() -> None:
    job, server_job = (
        made(),
        made(workers=2, environment={"NCCL_DEBUG": "WARN", "NCCL_IB_DISABLE": "0"}, pull_secrets=[]),
    )
    paths = list(manifests.differences(job["spec"], server_job["spec"]))
    assert "mpiReplicaSpecs.Worker.replicas" in paths
    assert "mpiReplicaSpecs.Launcher.template.spec.containers[0].env[0].value" in paths
    assert "mpiReplicaSpecs.Worker.template.spec.imagePullSecrets" in paths


def test_workers_claim_dra_devices_and_launchers_none() -> None:
    mpijob = made(gpus=0, slots=1, claims={"gpu": "single-gpu"})

    claims = [{"name": "gpu", "resourceClaimTemplateName": "single-gpu"}]
    assert spec_of(mpijob, "Worker")["resourceClaims"] == claims
    assert container(mpijob, "Worker")["resources"]["claims"] == [{"name": "gpu"}]
    assert "resourceClaims" not in spec_of(mpijob, "Launcher")
    pods = [schema.pod_of(replica["template"]) for replica in mpijob["spec"]["mpiReplicaSpecs"].values()]
    assert schema.faults(mpijob) == []
    assert [fault for pod in pods for fault in schema.kubernetes_faults(pod, "1.35")] == []
    with pytest.raises(JobError, match="claims contain 'Single GPU': expected"):
        job_of({**LEAST, "claims": {"gpu": "Single GPU"}})
