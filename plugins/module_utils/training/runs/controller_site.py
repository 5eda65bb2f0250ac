"""The records, outputs, files, runs and reads of a program on the controller, as typed methods; pure.

A method raises CollectionError if it fails. The functions that ``plugin_utils/world.py`` names describe them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

from ...durable.calls import NodeCalls, ReachedNode, Result
from ...watch.curve import Point
from ...watch.live_pace import AwaitedSteps, Pace
from ..results.manifest import Manifest, RunEnd
from ..running.busy import Nodes

PROGRESS = "progress"


@dataclass(frozen=True)
class FollowOptions:
    """The content of a job's page and screen, and the page's folder; without a ``folder``, no page is written.

    ``steps`` is the last step of the job, 0 if it is unknown; a job that makes more is followed until its records end.
    ``metrics`` is another folder for the metrics, such as that of node_exporter. ``vmotion_tests`` is the folder of
    vMotion tests; the page shows their moves of the job in ``run_dir``.

    ``shows`` is ``progress`` if the screen shows the pace, ``log`` for the lines that the watch writes to ``output``,
    ``both``, or ``page``. With ``awaits_end``, a node reports the end of the job, whatever the number of its steps.
    With ``ends_apart``, following ends as soon as ranks train separate models.
    Following ends when no record has arrived for ``quiet`` seconds, as soon as the last step is ``silence`` seconds
    old, and after ``at_most`` seconds; 0 for any time. The pace is shown ``every`` few seconds.
    """

    steps: int = 0
    warmup: int = 0
    quiet: float = 15.0
    every: float = 5.0
    folder: str = ""
    metrics: str = ""
    vmotion_tests: str = ""
    run_dir: str = ""
    state: str = "running"
    why: str = ""
    run: str = ""
    shows: str = PROGRESS
    output: str = ""
    awaits_end: bool = False
    silence: float = 0.0
    at_most: float = 0.0
    ends_apart: bool = False


class JobCurve(TypedDict, total=False):
    """The curve of a job, and its rate."""

    images_per_sec: float | None
    points: list[Point]


class Followed(TypedDict):
    """How following a job ended, the time of its last step, whether it has records, its pace and its curve."""

    ended: str
    last_seen: float | None
    has_records: bool
    pace: Pace
    curve: JobCurve


class Records(Protocol):
    """The records of a job, which its watch collects on the controller."""

    def new_folder(self, results: str) -> str: ...
    def follow(self, records: str, options: FollowOptions) -> Followed: ...
    def wait_for_steps(self, records: str, awaited: AwaitedSteps) -> Result: ...
    def reported_end(self, records: str) -> bool: ...
    def why_ended(self, records: str) -> str: ...


class Outputs(Protocol):
    """The outputs of a run on a node."""

    def copy(self, *, node: str, reach: Sequence[str], folder: str, dest: str, limit: int) -> Result: ...
    def copy_growing(self, *, node: str, reach: Sequence[str], folder: str, dest: str, limit: int) -> Result: ...
    def copy_path(
        self, *, node: str, reach: Sequence[str], folder: str, path: str, dest: str, limit: int
    ) -> Result: ...


class Files(Protocol):
    """The files of a run on the controller, and the user's folders."""

    def write_manifest(
        self,
        folder: str,
        *,
        manifest: Manifest | None = None,
        end: RunEnd | None = None,
        outputs: str = "",
        names: Sequence[str] = (),
    ) -> Result: ...
    def write_private(self, folder: str, files: Mapping[str, str]) -> Result: ...
    def write_output(self, folder: str, text: str) -> Result: ...
    def write_pairs(self, folder: str, records: str, job: Mapping[str, object], **check: object) -> Result: ...
    def keep_code(self, folder: str, exclude: Sequence[str], sha256: str, earlier: str, dest: str) -> bool: ...
    def code_checksum(self, folder: str, exclude: Sequence[str]) -> str: ...
    def data_checksum(self, path: str, limit: int, expected: str) -> Result: ...


class KeptRuns(Protocol):
    """The runs and measurements that the controller keeps."""

    def listed(
        self,
        *,
        nodes: Mapping[str, Result],
        results: str,
        compare: Sequence[str],
        places: Nodes,
        queued: Sequence[Mapping[str, str]],
    ) -> Result: ...
    def remaining(
        self, *, measured: Mapping[str, object], results: str, requested: Mapping[str, object], prove: bool
    ) -> Result: ...
    def network_findings(self, folder: str, nodes: Sequence[str], recent: int) -> list[str]: ...
    def last_metrics(self, results: str, runs: Sequence[str]) -> dict[str, dict[str, float]]: ...
    def newest_checkpoint(self, name: str, folder: str, patterns: Sequence[str], required: bool) -> Result: ...
    def unusable_checkpoint(self, name: str, folder: str, patterns: Sequence[str]) -> str: ...
    def judge_restart(self, results: str, name: str) -> Result: ...
    def followers(self, results: str, name: str) -> dict[str, str]: ...


class NodeReads(Protocol):
    """The reads on all nodes of a job at once."""

    def read_gpus(
        self, nodes: Sequence[ReachedNode], *, python: str = "", idle: bool, xid_seconds: float, gdr: str = ""
    ) -> Result: ...
    def read_hang(self, nodes: Sequence[ReachedNode], folder: str, recorders: str) -> list[str]: ...
    def read_stacks(self, nodes: Sequence[ReachedNode], folder: str) -> str: ...
    def read_runs(self, nodes: Sequence[ReachedNode], folder: str, since: float) -> Result: ...
    def read_connections(self, nodes: Sequence[ReachedNode], folder: str, timeout: float) -> Result: ...
    def read_guests(self, nodes: Sequence[ReachedNode], folder: str, checkpoints: str) -> Result: ...
    def signal_ranks(self, nodes: Sequence[ReachedNode], folder: str, number: str) -> Result: ...


class TrainingCalls(NodeCalls, Protocol):
    """The modules of a program of training, and what it does on the controller itself."""

    records: Records
    outputs: Outputs
    files: Files
    runs: KeptRuns
    nodes: NodeReads
