"""The objects of a run on Kubernetes: variables of the user take precedence over those of the role, as on nodes."""

from __future__ import annotations

import base64
import re

from plugins.module_utils.kubernetes.own_mpijob import OwnMpiJob, job_name
from plugins.module_utils.training.runs.training_run import Prepared
from tests.fakes.training_world import TrainingWorld


def test_a_users_variable_overrides_that_of_the_role() -> None:
    """The documented PYTHONPATH of a folder with src/ is one that the role sets too."""
    given = {"PYTHONPATH": "src", "MASTER_PORT": "4000", "TOKEN": "hf_secret", "LD_LIBRARY_PATH": "/opt/own/lib"}
    world = TrainingWorld(backend="kubernetes", kubernetes={"image": "train:1"}, environment=given)

    secret, job = OwnMpiJob(world, world.run()).objects(Prepared(python="python3", port=29500))

    values = {name: base64.b64decode(value).decode() for name, value in secret["data"].items()}
    assert values == {**given, "PYTHONPATH": "src:/lib"}
    container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    named = [each["name"] for each in container["env"]]
    assert "DML_RECORDS" in named and not set(named) & set(given)
    words = [*container.get("command", []), *container.get("args", [])]
    passed = [words[index + 1] for index, word in enumerate(words) if word == "-x"]
    assert set(given) <= set(passed) and len(passed) == len(set(passed))
    assert "hf_secret" not in str(job)


def test_two_runs_never_share_a_job() -> None:
    names = ["one", "One", "one.", "a_b", "a-b", "a.b", "_", "..", "x" * 60, "x" * 61, "20261127T101112-tcp-2"]

    jobs = [job_name(name) for name in names]

    assert len(set(jobs)) == len(names) and jobs[0] == "dml-one" and jobs[4] == "dml-a-b"
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", job) and len(job) <= 48 for job in jobs)
