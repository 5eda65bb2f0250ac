"""A training job, wherever it runs and whoever started it, and the job of a run, which mpirun starts; pure.

An adapter of another job is MpiJob in ``kubernetes/mpijob.py``; of a run, OwnMpiJob in ``kubernetes/own_mpijob.py``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from typing import Any, List, Mapping, Protocol, Sequence, TypedDict

from ...core.findings import FindingRecord
from ...durable.calls import NodeCalls, ReachedNode, Result, required
from . import rank_words
from .training_options import Options
from .training_run import Prepared, TrainingRun

JOB, INFO = "dml.vsphere.training_job", "dml.vsphere.training_info"
# The file in the run directory with which the owner of a job acknowledges a maintenance window.
ACK = "window-ack"
Findings = List[FindingRecord]
# Runs a module in one place, such as the launcher of a job.
Ask = Callable[[str, Mapping[str, Any]], Result]
OUTPUT_BYTES = 1 << 20
SSH, USER_CHANGE = "ssh", "sudo"


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


class Launched(TypedDict):
    """A job that was started or found: the node of rank 0, its place on Kubernetes, and the nodes to watch."""

    launcher: str
    kubernetes: Mapping[str, object]
    watched: list[ReachedNode]


class RunPlace(TypedDict, total=False):
    """Where a job runs, and the connections to its nodes, as playbooks read them; ``by_owner`` is another's run."""

    run: str
    launcher: str
    kubernetes: Mapping[str, object]
    user: str
    run_dir: str
    nodes: list[ReachedNode]
    by_owner: str


class Place(Protocol):
    """The nodes of a job, which its scheduler gives to no other job while a window has stopped it."""

    def pending(self) -> int:
        """Return the number of jobs that wait for the same nodes; refuse a queue that does not exist."""

    def keep(self) -> None:
        """Keep the nodes for the next attempt; a second call changes nothing."""

    def free(self) -> None:
        """Let other jobs have the nodes again, unless they were not kept."""

    def why_not_ready(self) -> str:
        """Return why the scheduler cannot start a job on the nodes yet; empty if it can."""


class Unscheduled:
    """Nodes that no scheduler gives to jobs."""

    def pending(self) -> int:
        """Return 0: no job waits for them."""
        return 0

    def keep(self) -> None:
        """Keep nothing."""

    def free(self) -> None:
        """Free nothing."""

    def why_not_ready(self) -> str:
        """Return nothing: a node that answers can start a job."""
        return ""


class OwnJob(Job, Protocol):
    """The job of a run of the role training, which it can start.

    ``is_scheduled``: a scheduler starts and ends the job, which is found by its name. ``may_wait``: it may wait in a
    queue after ``begin``.
    """

    is_scheduled: bool
    may_wait: bool

    def begin(self, prepared: Prepared) -> Launched:
        """Start the job, unless it was started before, and return where it runs."""

    def found(self) -> Launched:
        """Return where a job that was started before runs."""

    def end_leftovers(self) -> None:
        """End the processes that a failed attempt left."""

    def report(self, looked: Result) -> Result:
        """Return ``job``, the end of its ``output`` and the ``printed`` figures in it; failed if unreadable."""

    def forget(self) -> None:
        """Remove an earlier job of this name that cannot be used."""

    def kept_nodes(self) -> Place:
        """Return the nodes, which a window keeps from other jobs while the job is stopped."""


def watched_nodes(run: TrainingRun) -> list[ReachedNode]:
    """Return how the controller reaches each watched node."""
    named = [name for name in run.o["watched"] if name in run.nodes]
    return [{"name": name, "reach": run.nodes[name]["reach"]} for name in named]


class OwnMpirun(JobOnNodes):
    """The job of a run, with mpirun on its launcher."""

    is_scheduled = may_wait = False

    def __init__(self, calls: NodeCalls, run: TrainingRun) -> None:
        self._calls, self._run = calls, run
        super().__init__(partial(calls.on, run.launcher), run.job, run.dir)

    def begin(self, prepared: Prepared) -> Launched:
        """Start the job; a second call finds the running one."""
        required(self._on_launcher(JOB, self.options(prepared)))
        return self.found()

    def found(self) -> Launched:
        """Return where the job runs."""
        run = self._run
        return {"launcher": run.launcher, "kubernetes": {}, "watched": watched_nodes(run)}

    def options(self, prepared: Prepared) -> dict[str, Any]:
        """Return the options of the module that starts the job."""
        run, o = self._run, self._run.o
        nodes = run.ranks_of_nodes(prepared)
        rank = rank_words.rank_words(o, prepared)
        for option in rank.dropped:
            self._calls.show(f"mpirun starts the ranks, one for each slot: dropped {option}")
        settings = rank_words.transport_settings(o, nodes)
        script = rank_words.script_of(rank.words, run.work)
        meeting = {"MASTER_ADDR": nodes[0]["card"]["address"], "MASTER_PORT": str(prepared.port)}
        wdir = ["--wdir", run.work] if run.work else []
        return {
            "run_dir": run.dir,
            "command": [*rank_words.lock_words(o), *rank.words],
            "hosts": [{"name": node["name"], "slots": int(o["ranks_per_node"])} for node in nodes],
            "environment": {
                **settings["environment"],
                **meeting,
                **rank_words.recorder_environment(run, prepared),
                **rank_words.run_environment(run, prepared),
            },
            "secret_environment": rank_words.own_environment(o),
            "mpirun_arguments": [*settings["mpirun_arguments"], *wdir, *o["mpirun_arguments"]],
            **launch_options(o),
            **({"script": script} if script else {}),
        }

    def end_leftovers(self) -> None:
        """End the ranks on the other nodes: a launcher that was rebooted could not do so."""
        self.stop()

    def report(self, looked: Result) -> Result:
        """Return the job with the end of its output, and the figures in it; the launcher itself may have failed."""
        del looked
        options = {"gather": ["job", "printed"], "run_dir": self._run_dir, "output_bytes": OUTPUT_BYTES}
        answer = self._on_launcher(INFO, options)
        job: Mapping[str, Any] = answer.get("job") or {}
        return {**answer, **({"output": str(job["output"])} if "output" in job else {})}

    def forget(self) -> None:
        """End what the job has left, for which its run directory is needed, and remove that on each node."""
        self.end_leftovers()
        options = {"path": self._run_dir, "state": "absent"}
        self._calls.on_each("ansible.builtin.file", dict.fromkeys(self._run.nodes, options))

    def kept_nodes(self) -> Place:
        return Unscheduled()


def launch_options(o: Options) -> dict[str, object]:
    """Return the options with which a node starts mpirun, whatever it runs."""
    return {
        "transport": o["transport"],
        "stack": o["stack"],
        "mpirun": o["mpirun"],
        "remote_shell": o["remote_shell"],
        "remote_python": o["remote_python"],
        **({"daemon_ports": o["daemon_ports"]} if o["daemon_ports"] else {}),
        **({"daemon_shell": "/opt/dml/bin/dml-shell"} if o["image"] else {}),
    }


def forwarding_command(reach: Sequence[str], ports: Sequence[int]) -> str:
    """Return the command that forwards ports of a node to the controller, from the ssh command that reaches the node.

    It is empty without ports, or if another command reaches the node.
    """
    words = [str(word) for word in reach]
    if not ports or words[:1] != [SSH]:
        return ""
    login = words.index(USER_CHANGE) if USER_CHANGE in words else len(words)
    forwarded = [word for port in ports for word in ("-L", f"{int(port)}:localhost:{int(port)}")]
    return shlex.join([SSH, "-N", *forwarded, *words[1:login]])
