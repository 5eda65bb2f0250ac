"""The site, the tested job and the facts so far, which the programs of this room use; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from ...durable.calls import Arguments, Calls, Result, required
from ...durable.program import EndRequested, Key, Program
from ...errors import CollectionError
from ...training.runs.any_job import Job
from ...training.runs.controller_site import NodeReads, Records
from ...training.runs.restartable import Restartable
from ..evidence.facts import Facts

T = TypeVar("T")


class Site(Calls, Protocol):
    """The world of a vMotion test: modules, the watch of the job's records, and the folder of the test.

    ``controller`` names this process; ``drivers`` is the table of drivers that fit each other, and ``versions`` has
    those of Ansible and of the collection.
    """

    folder: str
    controller: str
    drivers: Mapping[str, Any]
    versions: Mapping[str, str]
    records: Records
    nodes: NodeReads

    def join(self, run: str) -> None:
        """Name the run that holds the lock to all modules."""

    def start_watch(self, options: Arguments) -> Result:
        """Start the module that watches the records, which outlives its controller, unless it runs."""

    def stop_watch(self, options: Arguments) -> Result:
        """End the watch of the records with these options."""

    def on_node(self, node: str, user: str, module: str, options: Arguments, /) -> Result:
        """Run a module on a host of the inventory, as a user, and return its result."""

    def roll_records(self) -> bool:
        """Have the watch begin a new file of records; return False without a watch."""

    def run_command(self, words: tuple[str, ...], text: str, seconds: float) -> Result:
        """Run a command of the user, never through a shell, with a text on its input."""

    def must_pause(self) -> bool:
        """Return whether the user interrupted the playbook once: the window stops before the next host."""

    def jobs_on_workers(self, settings: Mapping[str, object]) -> Result:
        """Return the other training jobs on the workers of the cluster, or why they are not known (``unread``).

        A test gets the workers whose jobs are unknown, with the reasons (``unread_workers``).
        """

    def earlier_changes(self) -> list[dict[str, Any]]:
        """Return the host changes of earlier windows of the cluster, the newest last."""

    def last_change(self) -> float:
        """Return when an earlier window of the cluster last began a host, however that ended; 0 if none did."""

    def restartable(self, known: Mapping[str, object]) -> Restartable:
        """Return an attempt of a job, which a window by restart stops and starts again; ``run`` names a later one."""

    def notify(self, hook: Mapping[str, object], text: str) -> Result:
        """Pass a text to a command or a URL of the user, within a limited time."""

    def write(self, name: str, content: object) -> None:
        """Write a JSON file in the folder of the test."""

    def write_facts(self, facts: Facts) -> None:
        """Write the facts so far, from which verdicts and pages are made."""


def _watch_none(_jobs: Sequence[Mapping[str, object]]) -> None:
    """Watch no other job: only a maintenance window does."""


@dataclass
class Trial:
    """A vMotion test, a maintenance window or an observation."""

    site: Site
    job: Job
    facts: Facts
    # The maintenance window as this run requests it; a window continues with the settings with which it began.
    requested: Mapping[str, Any] = field(default_factory=dict)
    # The time at which this controller started, from which the limits of a window count.
    started: float = 0.0
    earlier: list[dict[str, Any]] = field(default_factory=list)
    # Whether the window ends because one with other settings takes its place, which continues with the host at hand.
    is_replaced: bool = False
    polls: int = 0
    # The end of the last pause.
    resumed: float = 0.0
    # Begins to watch other jobs that a maintenance window has found.
    watch_too: Callable[[Sequence[Mapping[str, Any]]], None] = _watch_none
    # The last host of a maintenance window that this controller began.
    started_host: str = ""
    # The last host that this controller found to be in time.
    host_in_time: str = ""
    # The last round of a window before which this controller read the requests to it.
    attended_round: int = 0
    # The requests whose moves did not start, because another controller continued.
    unmade: int = 0
    # Whether this controller has judged the job, or has seen it become warm.
    is_current: bool = False
    judgements: int = 0
    # The vGPU managers of the hosts.
    managers: list[dict[str, Any]] = field(default_factory=list)

    @property
    def settings(self) -> dict[str, Any]:
        return self.facts.settings

    @property
    def records(self) -> str:
        return f"{self.site.folder}/records.jsonl"

    @property
    def nodes(self) -> dict[str, Any]:
        """Return the options with which reads reach the nodes and find the records there."""
        return {"nodes": self.settings["nodes"], "folder": self.settings["records"]}

    def restartable(self, started: Mapping[str, object] | None = None) -> Restartable:
        """Return the attempt of the job that runs at the start of a window by restart, or one that it has started."""
        run = {"run": started["run"]} if started else {}
        return self.site.restartable({**(self.settings.get("restart") or {}), **run})

    def here(self, module: str, **options: object) -> Result:
        """Return the result of a module on the controller; raise if it failed."""
        return required(self.site.here(module, options))

    def of_cluster(self, module: str, **options: object) -> Result:
        """Return the result of a module that works on the cluster; raise if it failed."""
        return self.here(module, cluster=self.facts.cluster, **options)


def tried(p: Program, trial: Trial, key: Key, effect: Callable[[], T]) -> T | None:
    """Return the value of an effect, or None: the end of a test does as much as it can, and keeps each failure.

    If the test stays open, the next controller tries again, unless the attempt at hand has failed meanwhile.
    """
    try:
        value: T = p.once(key, effect)
    except EndRequested:
        raise
    except CollectionError as error:
        p.missed(key, str(error))
        trial.facts.failures.append(str(error))
        p.say(str(error))
        return None
    return value
