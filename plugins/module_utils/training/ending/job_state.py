"""The state of a job, as training_info and mpijob_info return it; pure."""

from __future__ import annotations

from typing import Any, TypedDict

# The file in a run directory that asks for the end of its job: however it ends then, whoever asked has stopped it.
STOP_REQUEST = "stop-request.json"
# The same for a signal that asks for a checkpoint: it may end the job before anybody stops it.
SIGNAL_REQUEST = "signal-request.json"

ENDED = ("finished", "died", "stopped")


class LauncherIdentity(TypedDict):
    """The process or the pod of a launcher: these values are constant while it runs."""

    host: str
    pid: Any
    start: Any
    boot_id: str | None


class PodState(TypedDict, total=False):
    """The identity of a pod of a job, its role and index, and why it is deleted."""

    uid: str
    node: str | None
    restarts: int
    started: float | None
    role: str
    index: int | None
    is_deleted: bool
    host: str
    why: str


class JobState(TypedDict, total=False):
    """A job: only ``state`` is always there. The modules document the keys.

    ``ending`` is whether a batch system ends the processes of a running job.
    """

    state: str
    run_id: str
    launcher: LauncherIdentity | None
    job: str | None
    records: str
    command: list[str]
    hosts: list[dict[str, Any]]
    mpirun_command: list[str]
    nodes_of_ranks: list[str]
    steps_by: str | None
    started: float | None
    ended: float | None
    exit_code: int | None
    why: str | None
    full: str
    rank: int | None
    node: str | None
    machine: bool
    ending: bool
    last_lines: list[str]
    left: dict[str, str]
    pods: dict[str, PodState]
    silences: list[str]
    blocked: float
