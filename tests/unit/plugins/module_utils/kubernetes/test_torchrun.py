"""A TrainJob without a launcher: torchrun of each node starts its ranks, and one pod stands for the launcher."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.kubernetes.job_spec import JobError, job_of
from tests.fakes.kubernetes import Cluster

from .objects import stamp
from .test_manifests import FULL, LEAST
from .test_trainjob import CORE, JOBS, JOBSETS, NODE_PODS, PLACE, cluster, objects, owned, pod, pods_of, read

TORCHRUN_LOGS = Path(__file__).parents[4] / "fixtures" / "torchrun"
AGENTS = {"spec": {"replicatedJobs": [{"name": "node"}]}}


def test_torchrun_starts_ranks_without_sshd() -> None:
    full = {**FULL, "launcher": "torchrun", "mpirun_arguments": [], "folder": "/home/user/run"}
    *_others, runtime, trainjob = objects({**full, "torchrun": ["python3", "-m", "torch.distributed.run"]})

    assert runtime["spec"]["mlPolicy"] == {"numNodes": 1, "torch": {}}
    (job,) = runtime["spec"]["template"]["spec"]["replicatedJobs"]
    assert (job["name"], job["template"]["spec"]["backoffLimit"]) == ("node", 0)
    assert job["template"]["metadata"]["labels"] == {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    trainer = trainjob["spec"]["trainer"]
    agent = ["python3", "-m", "torch.distributed.run", "--tee", "3", "--no-python", "python", "train.py"]
    assert trainer == {"numNodes": 4, "numProcPerNode": 2, "command": agent}
    container = pods_of(runtime)["node"]["spec"]["containers"][0]
    assert (container["command"], container["workingDir"]) == (agent, "/home/user/run")
    assert container["securityContext"] == {"capabilities": {"add": ["IPC_LOCK"]}}
    assert {one["name"]: one["value"] for one in container["env"]} == {
        **FULL["environment"],
        "TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[1,${rank}]<stderr>:",
    }
    assert container["envFrom"] == [{"secretRef": {"name": "train-environment"}}]


def test_torchrun_needs_a_trainjob() -> None:
    with pytest.raises(JobError, match="the launcher is torchrun, which v2beta1 does not support: set api to trainjob"):
        job_of({**LEAST, "launcher": "torchrun"})


def without_launcher(*conditions: tuple[str, str], pods: Any, **answers: Any) -> Cluster:
    """A job whose JobSet has only the nodes, each with torchrun."""
    jobset = {**owned("train", "JobSet", "job-set", ("TrainJob", "train-job")), **AGENTS}
    server = cluster(*conditions, pods=pods, **{f"{JOBSETS}/train": jobset, **answers})
    server.answers.pop(f"{JOBS}/train-launcher-0")
    return server


def ended(index: int, node: str, end: str, code: int, at: float) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": stamp(at)}}
    return pod("node", index, node, end, state, phase="Failed" if code else "Succeeded")


def test_the_pod_of_rank_0_represents_torchruns_launcher(tmp_path: Path) -> None:
    job = read(without_launcher(pods=NODE_PODS), tmp_path)["job"]

    assert (job["state"], job["launcher"]["host"]) == ("running", "train-node-0-0-x7k2p")
    assert sorted(job["pods"]) == ["train-node-0-0-x7k2p", "train-node-0-1-9fjq4"] and len(job["workers"]) == 2


def test_mpirun_nodes_do_not_represent_a_waiting_launcher(tmp_path: Path) -> None:
    both = {"spec": {"replicatedJobs": [{"name": "node"}, {"name": "launcher"}]}}
    jobset = {**owned("train", "JobSet", "job-set", ("TrainJob", "train-job")), **both}

    assert read(cluster(pods=NODE_PODS, **{f"{JOBSETS}/train": jobset}), tmp_path)["job"]["state"] == "waiting"


def test_a_finished_torchrun_job_shows_rank_0_output(tmp_path: Path) -> None:
    pods = [ended(0, "k3", "x7k2p", 0, 80), ended(1, "k2", "9fjq4", 0, 81)]
    log = {f"{CORE}/pods/train-node-0-0-x7k2p/log": "[1,0]<stdout>:step 100\n"}

    result = read(without_launcher(("Complete", "AllJobsCompleted"), pods=pods, **log), tmp_path)

    assert (result["job"]["state"], result["job"]["exit_code"]) == ("finished", 0)
    assert result["log"] == "[1,0]<stdout>:step 100\n"


@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("fail", "rank 1 on train-node-0-1 ended: ValueError: the batch is empty (t.py, line 10)"),
        ("kill", "rank 1 on train-node-0-1 (process 32737) was ended by signal 9"),
    ],
)
def test_the_first_failed_torchrun_determines_the_cause(tmp_path: Path, log: str, why: str) -> None:
    pods = [ended(0, "k3", "x7k2p", 1, 85), ended(1, "k2", "9fjq4", 1, 80)]
    text = {f"{CORE}/pods/train-node-0-1-9fjq4/log": (TORCHRUN_LOGS / f"{log}.1.log").read_text()}
    server = without_launcher(("Failed", "FailedJobs"), pods=pods, **text)
    server.answers[f"{PLACE}/trainjobs/train"]["spec"]["trainer"]["numProcPerNode"] = 1

    job = read(server, tmp_path)["job"]

    assert (job["state"], job["why"], job["machine"]) == ("died", why, log == "kill")


@pytest.mark.parametrize("of_victim", [79, 80, 85], ids=["before", "same_second", "after"])
@pytest.mark.parametrize(
    ("log", "why"),
    [
        ("fail", "rank 1 on train-node-0-1 ended: ValueError: the batch is empty (t.py, line 10)"),
        ("kill", "rank 1 on train-node-0-1 (process 32737) was ended by signal 9"),
    ],
)
def test_torchrun_names_the_rank_that_the_others_lost(tmp_path: Path, log: str, why: str, of_victim: int) -> None:
    pods = [ended(0, "k3", "x7k2p", 1, of_victim), ended(1, "k2", "9fjq4", 1, 80)]
    text = {
        f"{CORE}/pods/train-node-0-0-x7k2p/log": (TORCHRUN_LOGS / "fail.0.log").read_text(),
        f"{CORE}/pods/train-node-0-1-9fjq4/log": (TORCHRUN_LOGS / f"{log}.1.log").read_text(),
    }
    server = without_launcher(("Failed", "FailedJobs"), pods=pods, **text)
    server.answers[f"{PLACE}/trainjobs/train"]["spec"]["trainer"]["numProcPerNode"] = 1

    result = read(server, tmp_path)

    assert (result["job"]["why"], result["job"]["machine"]) == (why, log == "kill")
    assert result["log"].strip() == (TORCHRUN_LOGS / f"{log}.1.log").read_text().strip()


def test_torchrun_without_output_is_named(tmp_path: Path) -> None:
    pods = [ended(0, "k3", "x7k2p", 143, 85)]
    text = {f"{CORE}/pods/train-node-0-0-x7k2p/log": "\n"}

    job = read(without_launcher(("Failed", "FailedJobs"), pods=pods, **text), tmp_path)["job"]

    assert job["why"] == "torchrun ended with exit code 143"
