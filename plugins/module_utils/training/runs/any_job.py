"""A training job, wherever it runs and whoever started it: its state, the checks before a move, and its end; pure.

Its adapters are JobOnNodes, a job of mpirun that any tool has started, and MpiJob in ``kubernetes/mpijob.py``. The runs
of the role training extend them, in ``launching.py`` and in ``kubernetes/own_mpijob.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, List, Protocol

from ...core.findings import FindingRecord
from ...durable.calls import Result, required

JOB, INFO = "dml.vsphere.training_job", "dml.vsphere.training_info"
# The file in the run directory with which the owner of a job acknowledges a maintenance window.
ACK = "window-ack"
Findings = List[FindingRecord]
# Runs a module in one place, such as the launcher of a job.
Ask = Callable[[str, Mapping[str, Any]], Result]


class Job(Protocol):
    """A training job. ``name`` is its name in sentences.

    ``workers`` maps the names of its nodes to those of the workers in vCenter, if they differ.
    """

    name: str
    workers: Mapping[str, str]
    # How the owner of the job acknowledges a maintenance window, in words.
    ack: str

    def acknowledged(self) -> float:
        """Return the time at which the owner acknowledged a maintenance window; 0 if that never happened."""

    def look(self) -> Result:
        """Return the state of the job as ``job``, or the result of a launcher that did not report it."""

    def checked(self, moved: Sequence[str], stun_seconds: float, accept: Sequence[str], /) -> Findings:
        """Return the findings about the place of the job before these workers move."""

    def finish(self) -> None:
        """Ask the job to end after its epoch."""

    def stop(self) -> Result:
        """Stop the job on all its nodes; raise if that failed."""


class JobOnNodes:
    """A job of mpirun on its launcher. Only the records identify a job that another tool started."""

    workers: Mapping[str, str] = {}

    def __init__(self, on_launcher: Ask, name: str, run_dir: str, records: str = "") -> None:
        self.name, self._on_launcher = name, on_launcher
        self._run_dir, self._records = run_dir, records
        self.ack = f"touch {run_dir}/{ACK} on the launcher, at most a day before the window"

    def acknowledged(self) -> float:
        """Return the time of the file with which the owner acknowledges a window."""
        file = required(self._on_launcher("ansible.builtin.stat", {"path": f"{self._run_dir}/{ACK}"}))["stat"]
        return float(file["mtime"]) if file["exists"] else 0.0

    def look(self) -> Result:
        """Return the state of the job from its launcher."""
        return self._on_launcher(INFO, {"gather": ["job"], "run_dir": self._run_dir, **self._place()})

    def checked(self, _moved: Sequence[str], _stun_seconds: float, _accept: Sequence[str], /) -> Findings:
        """Return no finding: mpirun has no scheduler that would end it."""
        return []

    def finish(self) -> None:
        """Ask the benchmark of the collection to end after its epoch."""
        touch_finish(self._on_launcher, self._records or self._run_dir)

    def stop(self) -> Result:
        return required(self._on_launcher(JOB, {"run_dir": self._run_dir, "state": "stopped"}))

    def _place(self) -> dict[str, str]:
        return {"records": self._records} if self._records else {}


def touch_finish(on_launcher: Ask, records: str) -> None:
    """Write the file which ends the benchmark of the collection after its epoch."""
    touched = {"path": f"{records}/finish", "state": "touch", "mode": "0644"}
    required(on_launcher("ansible.builtin.file", touched))
