"""The end of the output of a job, with or without the values of its secret environment."""

from __future__ import annotations

import os

from ...guests import supervisor
from . import job_secrets


def last_output(run_dir: str, limit: int) -> str:
    """Return the last bytes of the output, or an empty text without an output."""
    try:
        with open(os.path.join(run_dir, supervisor.OUTPUT), "rb") as output:
            output.seek(max(0, os.fstat(output.fileno()).st_size - limit))
            return output.read(limit).decode("utf-8", "replace")
    except OSError:
        return ""


def shown_output(run_dir: str, limit: int) -> str:
    """Return the last lines of the output with each secret value replaced.

    The first line is left out if it is incomplete: it may begin within a secret value.
    """
    desired = supervisor.read(run_dir, supervisor.DESIRED) or {}
    text = last_output(run_dir, limit)
    if len(text.encode("utf-8", "replace")) >= limit:
        text = text.partition("\n")[2]
    return job_secrets.without(text, job_secrets.values(desired.get("secret_environment") or {}))
