# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions of the collection that a program runs on the controller: in its process, or in the background.

None of them connects to vCenter. The protocols of their groups are in ``training/runs/controller_site.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ..module_utils import runner
from ..module_utils.core.child_environment import without_account
from ..module_utils.durable.calls import Arguments, Result
from ..module_utils.pages import followed_job, restart_section
from ..module_utils.training.results import (
    known_runs,
    last_metrics,
    other_runs,
    outputs,
    report_files,
    saved_attempts,
    saved_checkpoints,
    saved_manifests,
    saved_results,
)
from ..module_utils.training.runs.controller_site import Followed, FollowOptions
from ..module_utils.watch import awaited_steps, node_programs, watcher
from ..module_utils.watch.live_pace import AwaitedSteps
from . import packed_folder
from .modules import as_text

P = ParamSpec("P")
T = TypeVar("T")
Show = Callable[[str, str], None]

PACKAGE = Path(__file__).resolve().parents[1]
WATCH = "import sys; sys.path.insert(0, sys.argv[1]); from module_utils.watch.watcher import main; main()"


@dataclass(frozen=True)
class OnController:
    """Makes functions of the collection those of a program, whose playbook must not have ended.

    Texts and containers of Ansible become plain ones, as for a module, and a full disk is an expected error.
    """

    must_be_attended: Callable[[], None]

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:

        def called(*values: P.args, **options: P.kwargs) -> T:
            self.must_be_attended()
            with runner.full_disk_expected():
                return function(*(plain(value) for value in values), **plain(options))

        return called


def plain(value: object) -> Any:
    """Return data, or the options of a call as a dataclass, without the types of Ansible."""
    if is_dataclass(value) and not isinstance(value, type):
        return type(value)(**plain(asdict(value)))
    return value if callable(value) else json.loads(json.dumps(value, default=as_text))


class Records:
    """The records of a job; ``shown`` returns a function that shows the progress of one call."""

    def __init__(self, run: OnController, shown: Callable[[], Show]) -> None:
        self._run, self._shown = run, shown
        self.new_folder, self.reported_end = run(watcher.new_folder), run(watcher.reported_end)
        self.why_ended = run(watcher.why_ended)

    def follow(self, records: str, options: FollowOptions) -> Followed:
        """Show the pace of a job until it ends or is quiet."""
        return self._run(followed_job.follow)(records, options, self._shown())

    def wait_for_steps(self, records: str, awaited: AwaitedSteps) -> Result:
        """Wait until every rank has made some steps."""
        return self._run(awaited_steps.wait_for_steps)(records, awaited, self._shown())


class Outputs:
    """The outputs of a run on a node."""

    def __init__(self, run: OnController) -> None:
        self.copy, self.copy_growing = run(outputs.copy_outputs), run(outputs.copy_growing_outputs)
        self.copy_path = run(outputs.copy_growing_path)


class Files:
    """The files of a run on the controller, and the user's folders."""

    def __init__(self, run: OnController) -> None:
        self.write_manifest, self.write_pairs = run(saved_manifests.write_manifest), run(saved_results.write_pairs)
        self.write_private, self.write_output = run(report_files.write_private), run(report_files.write_output)
        self.keep_code, self.code_checksum = run(packed_folder.keep_code), run(packed_folder.code_checksum)
        self.data_checksum = run(packed_folder.data_checksum)


class KeptRuns:
    """The runs and measurements that the controller keeps."""

    def __init__(self, run: OnController) -> None:
        self.listed, self.remaining = run(known_runs.list_runs), run(saved_results.remaining_runs)
        self.network_findings, self.last_metrics = run(saved_results.network_findings), run(last_metrics.last_metrics)
        self.newest_checkpoint = run(saved_checkpoints.newest_checkpoint)
        self.unusable_checkpoint = run(saved_checkpoints.unusable_checkpoint)
        self.judge_restart, self.followers = run(restart_section.judge_restart), run(saved_attempts.followers)


class NodeReads:
    """The reads on all nodes of a job at once."""

    def __init__(self, run: OnController) -> None:
        self.read_gpus, self.read_hang = run(node_programs.read_gpus), run(node_programs.read_hang)
        self.read_stacks, self.read_runs = run(node_programs.read_stacks), run(other_runs.read_runs)
        self.read_connections, self.read_guests = run(node_programs.read_connections), run(node_programs.read_guests)
        self.signal_ranks = run(node_programs.signal_ranks)


def start_watch(options: Arguments) -> Result:
    """Start the process that watches the records of a job; it outlives this one, and has no vCenter account."""
    output = watcher.output_of(Path(options["records"]))
    try:
        with open(os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as written:
            process = subprocess.Popen(  # noqa: S603 - this interpreter
                [sys.executable, "-P", "-c", WATCH, str(PACKAGE)],
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=written,
                text=True,
                env=without_account(os.environ),
                start_new_session=True,
            )
        if process.stdin:
            process.stdin.write(json.dumps(options))
            process.stdin.close()
        # The watch itself is a child of this process, which ends at once.
        process.wait()
    except OSError as error:
        return {"failed": True, "msg": f"{output}: could not start the watch: {error.strerror or error}"}
    return {}
