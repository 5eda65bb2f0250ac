"""The job around which hosts are changed is complete and runs, or the hosts are not changed."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.jobs import running_job

MPI: dict[str, Any] = {"run_dir": "/runs/one", "nodes": [], "launcher": "w1"}


@pytest.mark.parametrize("job", [MPI, {"run_dir": "/runs/one", "kubernetes": {"name": "one"}}])
def test_accepts_a_named_job_with_all_keys(job: dict[str, Any]) -> None:
    running_job.require_complete(job, under_training=True)


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
        running_job.require_complete(job, under_training=under_training)

    assert str(refused.value).endswith(end)


def test_returns_the_job_that_was_found() -> None:
    found = [{"why": "w1 is idle"}, {**MPI, "found": True}]

    assert running_job.require_found("gpu", found, limit="", has_workers=True)["run_dir"] == "/runs/one"


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
        running_job.require_found("gpu", found, limit=limit, has_workers=True)

    assert str(refused.value).startswith("gpu: could not change its hosts around a training job: no job was found,")
    assert cause in str(refused.value)


def test_named_job_is_restarted_only_with_its_commands() -> None:
    commands = {"stop": "stop-it", "start": "start-it", "checkpoints": "/ck"}
    restart = running_job.restart_of({**MPI, **commands}, "/reports")
    assert restart == {"run": "one", "job": {**MPI, **commands, "results": "/reports"}}
    assert "it lacks stop, start, checkpoints." in running_job.restart_of(MPI, "")["why"]
