"""The job of appendix A of VMware's paper "Distributed Machine Learning on vSphere leveraging NVIDIA vGPU and Mellanox
PVRDMA", field by field, in the current API, which has the policy of its pods in runPolicy.

The job corrects the errors of the page, with a test for each: ``obl`` instead of ``ob1``, a variable that NCCL 2.4 does
not read, ``Worker`` next to ``mpiReplicaSpecs``, and the name of the script in the line after its dash.
"""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.job_spec import job_of
from plugins.module_utils.training.transport.job_settings import gpudirect_environment, settings
from tests import kubernetes_schema as schema

IMAGE = "mpioperator/tensorflow-benchmarks:latest"
SCRIPT = "scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
OPTIONS = (
    "--model=resnet50",
    "--batch_size=32",
    "--variable_update=horovod",
    "--use_fp16",
    "--xla=True",
    "--num_batches=10000",
)
# By path what the appendix has; words of the command are tested below.
FIELDS: dict[str, Any] = {
    "apiVersion": "kubeflow.org/v2beta1",
    "kind": "MPIJob",
    "metadata.name": "tensorflow-benchmarks",
    "spec.slotsPerWorker": 1,
    "spec.runPolicy.cleanPodPolicy": "Running",
    "spec.mpiReplicaSpecs.Launcher.replicas": 1,
    "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0.image": IMAGE,
    "spec.mpiReplicaSpecs.Worker.replicas": 4,
    "spec.mpiReplicaSpecs.Worker.template.spec.containers.0.image": IMAGE,
    "spec.mpiReplicaSpecs.Worker.template.spec.containers.0.securityContext.privileged": True,
    "spec.mpiReplicaSpecs.Worker.template.spec.containers.0.volumeMounts.0.mountPath": "/dev/infiniband",
    "spec.mpiReplicaSpecs.Worker.template.spec.containers.0.volumeMounts.0.name": "infiniband",
    "spec.mpiReplicaSpecs.Worker.template.spec.containers.0.resources.limits.nvidia~com/gpu": 1,
    "spec.mpiReplicaSpecs.Worker.template.spec.volumes.0.name": "infiniband",
    "spec.mpiReplicaSpecs.Worker.template.spec.volumes.0.hostPath.path": "/dev/infiniband",
}


def papers(transport: str = "rdma", **changes: Any) -> dict[str, Any]:
    """Return the whitepaper's job, made with the same variables as for the MPI backend."""
    node = {"name": "any", "interface": "eth0", "network": "", "hcas": [{"name": "vmw_pvrdma0", "gid_index": 1}]}
    job_settings = settings(transport, [node], "2.4.7")
    gdr = gpudirect_environment(transport, [node], "2.4.7", "auto")
    return manifests.mpijob(
        job_of(
            {
                "name": "tensorflow-benchmarks",
                "image": IMAGE,
                "command": ["python", SCRIPT, *OPTIONS],
                "workers": 4,
                "gpus": 1,
                "transport": transport,
                "devices": "privileged",
                "environment": {**job_settings["environment"], **gdr},
                "mpirun_arguments": job_settings["mpirun_arguments"],
                **changes,
            }
        )
    )


def at(manifest: Any, path: str) -> Any:
    for key in path.split("."):
        manifest = manifest[int(key)] if isinstance(manifest, list) else manifest[key.replace("~", ".")]
    return manifest


def launcher(manifest: dict[str, Any]) -> dict[str, Any]:
    return dict(at(manifest, "spec.mpiReplicaSpecs.Launcher.template.spec.containers.0"))


def rank_environment(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the variables that mpirun passes to every rank, by name; None is the value in the image."""
    made = launcher(manifest)
    words = made["command"]
    values = {variable["name"]: variable["value"] for variable in made["env"]}
    return {words[index + 1]: values.get(words[index + 1]) for index, word in enumerate(words) if word == "-x"}


@pytest.mark.parametrize(("path", "value"), FIELDS.items())
def test_each_field_matches_the_paper(path: str, value: Any) -> None:
    assert at(papers(), path) == value


def test_mpirun_starts_four_ranks_by_slot_without_binding() -> None:
    words = launcher(papers())["command"]
    assert words[:2] == ["mpirun", "--allow-run-as-root"]
    for word, value in (("-np", "4"), ("--bind-to", "none"), ("--map-by", "slot")):
        assert words[words.index(word) + 1] == value


def test_mpi_uses_tcp_under_open_mpis_name() -> None:
    words = launcher(papers())["command"]
    given = {words[index + 1]: words[index + 2] for index, word in enumerate(words) if word == "--mca"}
    assert given["pml"] == "ob1" and given["btl"] == "^openib"


def test_the_ranks_get_the_environment_of_the_paper() -> None:
    variables = rank_environment(papers())
    assert variables["NCCL_DEBUG"] == "INFO"
    assert (variables["NCCL_IB_DISABLE"], variables["HOROVOD_MPI_THREADS_DISABLE"]) == ("0", "1")
    assert (variables["PATH"], variables["LD_LIBRARY_PATH"]) == (None, None)


def test_the_papers_tcp_switch_changes_two_variables() -> None:
    variables = rank_environment(papers("tcp", devices="none"))
    assert (variables["NCCL_IB_DISABLE"], variables["HOROVOD_MPI_THREADS_DISABLE"]) == ("1", "0")


def test_disables_gpudirect_with_this_nccls_variable() -> None:
    variables = rank_environment(papers())
    assert variables["NCCL_NET_GDR_LEVEL"] == "0" and "NCCL_IB_GDR_LEVEL" not in variables


def test_the_script_and_its_options_follow_python() -> None:
    words = launcher(papers())["command"]
    assert words[words.index("python") :] == ["python", SCRIPT, *OPTIONS]


def test_launcher_and_worker_are_shown_side_by_side() -> None:
    made = papers()
    assert set(made["spec"]["mpiReplicaSpecs"]) == {"Launcher", "Worker"} and "Worker" not in made["spec"]
    assert schema.faults(made) == []


def test_only_placement_and_tolerations_differ_from_the_paper() -> None:
    pod = at(papers(shared_memory=""), "spec.mpiReplicaSpecs.Worker.template.spec")
    assert set(pod) == {"containers", "volumes", "affinity", "tolerations"}
    assert set(pod["containers"][0]) == {
        *("name", "image", "imagePullPolicy", "securityContext", "resources", "volumeMounts")
    }
