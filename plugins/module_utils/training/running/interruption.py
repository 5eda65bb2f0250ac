"""The training jobs that a change would stop, in sentences; pure.

An answer is the result of training_info on a worker. It has no ``jobs`` if the worker could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .busy import short_error, title

Answers = Mapping[str, Mapping[str, Any]]
REMEDIES = {
    "wait": ", with -e training_wait=SECONDS or the playbook dml.vsphere.stop",
    "under_training": ", or change the hosts around it with under_training=true",
    "interrupt": ", or run again with interrupt_training=true",
}


def busy(answers: Answers) -> dict[str, str]:
    """Return the titles of the jobs on each busy worker."""
    return {worker: titles({worker: answer}) for worker, answer in answers.items() if answer.get("jobs")}


def titles(answers: Answers) -> str:
    """Return the jobs in words; a job on several workers is named once."""
    jobs = [job for answer in answers.values() for job in answer.get("jobs") or []]
    return ", ".join({str(job["run_dir"]): title(job) for job in reversed(jobs)}.values())


def refusal(answers: Answers, remedies: Sequence[str]) -> str:
    """Return the sentence that names the busy workers, their jobs and the remedies; empty if no worker is busy."""
    workers = busy(answers)
    if not workers:
        return ""
    return (
        f"{', '.join(workers)}: the training job {titles(answers)} runs on this worker. Wait until it ends or stop it"
        f"{''.join(REMEDIES[remedy] for remedy in remedies)}."
    )


def unread(answers: Answers) -> list[str]:
    """Return a sentence about each worker that could not be read."""
    silent = [(worker, answer) for worker, answer in answers.items() if "jobs" not in answer]
    return [f"The training jobs of {worker} cannot be read: {short_error(answer)}" for worker, answer in silent]
