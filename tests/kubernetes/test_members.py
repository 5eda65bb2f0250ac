"""The workers of the simulated vCenter are members of a real Kubernetes, and real MPIJobs run on them."""

from __future__ import annotations

import json
import re

import pytest

from lab.kubernetes.cluster import Cluster
from lab.kubernetes.images import HOROVOD
from lab.simulator import ROOT
from tests.kubernetes.mpijob import Jobs, mpijob
from tests.lab.places import Place
from tests.lab.trial import WORKERS

GPU, HCA = "nvidia.com/gpu", "rdma/hca"
TRAIN_SECONDS = 900
TRAINING = ROOT / "roles" / "training" / "files"
MOUNTED, PYTHON = "/opt/dml/training", "/opt/dml/horovod/bin/python"
SMALL = "--model small --cpu --batch-size 4 --image-size 32 --classes 10 --steps 5 --warmup 1"


@pytest.fixture
def cluster(members: Place) -> Cluster:
    return members.lab.kubernetes


def test_workers_of_vcenter_are_nodes_of_kubernetes(members: Place, cluster: Cluster) -> None:
    nodes = {node["metadata"]["name"]: node for node in cluster.get("nodes")["items"]}
    assert sorted(nodes) == WORKERS
    for number, name in enumerate(WORKERS, start=1):
        addresses = {one["type"]: one["address"] for one in nodes[name]["status"]["addresses"]}
        assert addresses == {"Hostname": name, "InternalIP": members.address(number)}
        assert {GPU: "1", HCA: "2"}.items() <= nodes[name]["status"]["allocatable"].items()


def test_every_node_answers_hello(cluster: Cluster, jobs: Jobs) -> None:
    name = jobs.begin(mpijob("hello", 4, ["hostname"], limits={GPU: 1, HCA: 1}))
    result = jobs.ended(name)
    assert sorted(result.split()) == [f"hello-worker-{number}" for number in range(4)], result
    pods = jobs.pods(name)
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == WORKERS


def test_worker_finds_its_devices_and_peers_by_name(cluster: Cluster, jobs: Jobs) -> None:
    script = "ls /dev/nvidia0 /dev/infiniband/uverbs0; getent hosts kubernetes.default.svc.cluster.local"
    words = jobs.ended(jobs.begin(mpijob("devices", 2, ["sh", "-c", script], limits={GPU: 1, HCA: 1}))).split()
    found = ("/dev/nvidia0", "/dev/infiniband/uverbs0", "10.96.0.1")
    assert {word: words.count(word) for word in found} == dict.fromkeys(found, 2), words
    # A rank comes by ssh, which does not hand on what the container was given.
    result = cluster.kubectl("exec", "devices-worker-0", "--", "printenv", "NVIDIA_VISIBLE_DEVICES")
    assert result == "GPU-lab-0\n"


def test_pod_without_free_gpu_waits_with_a_message(jobs: Jobs) -> None:
    name = jobs.begin(mpijob("greedy", 2, ["hostname"], limits={GPU: 2}))

    def messages() -> list[str]:
        return [one["message"] for one in jobs.events(f"{name}-worker-0") if one["reason"] == "FailedScheduling"]

    jobs.until(messages, "it is said")
    assert f"4 Insufficient {GPU}" in messages()[0]
    assert {pod["status"]["phase"] for pod in jobs.pods(name)} == {"Pending"}
    assert jobs.conditions(name) == {"Created": "True"}
    jobs.remove(name)


def test_the_pod_reports_a_missing_image(jobs: Jobs) -> None:
    name = jobs.begin(mpijob("imageless", 1, ["hostname"], image="lab.local/nowhere:1"))
    reasons = {"ErrImagePull", "ImagePullBackOff"}

    def waiting() -> set[str]:
        states = [one["state"] for pod in jobs.pods(name) for one in pod["status"].get("containerStatuses", ())]
        return {state["waiting"]["reason"] for state in states if "waiting" in state}

    jobs.until(lambda: waiting() & reasons, "the image cannot be pulled")
    assert jobs.conditions(name) == {"Created": "True"}
    jobs.remove(name)


def test_horovod_trains_over_all_nodes(jobs: Jobs) -> None:
    scripts = {path.name: path.read_text() for path in TRAINING.glob("*.py")}
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "training"}, "data": scripts}
    script = f"""
        cd $(mktemp -d)
        {PYTHON} {MOUNTED}/dml_benchmark_tensorflow.py {SMALL} && cat summary*.json
    """
    job = mpijob("horovod", 4, ["sh", "-c", script], HOROVOD, {GPU: 1, HCA: 1}, {"training": MOUNTED})
    result = jobs.ended(jobs.begin(job, files), TRAIN_SECONDS)
    summaries = [json.loads(line) for line in re.findall(r'\{[^{}]*"parameters_sha256"[^{}]*\}', result)]
    assert sorted(one["rank"] for one in summaries) == [0, 1, 2, 3], result
    assert {one["size"] for one in summaries} == {4}
    assert len({one["parameters_sha256"] for one in summaries}) == 1
