# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The functions of the collection that a program runs on the controller: in its process, or in the background.

A program names them as it names modules, and gets a result as of a module. None of them connects to vCenter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..module_utils import runner
from ..module_utils.core.child_environment import without_account
from ..module_utils.pages.followed_job import follow_records
from ..module_utils.pages.restart_section import judge_restart
from ..module_utils.training.results.known_runs import list_runs
from ..module_utils.training.results.last_metrics import last_metrics
from ..module_utils.training.results.other_runs import read_runs
from ..module_utils.training.results.outputs import copy_growing_outputs, copy_outputs
from ..module_utils.training.results.report_files import write_output, write_private
from ..module_utils.training.results.saved_checkpoints import newest_checkpoint
from ..module_utils.training.results.saved_manifests import write_manifest
from ..module_utils.training.results.saved_results import network_findings, remaining_runs, write_pairs
from ..module_utils.watch.awaited_steps import wait_for_steps
from ..module_utils.watch.node_programs import (
    read_connections,
    read_gpus,
    read_guests,
    read_hang,
    read_stacks,
)
from ..module_utils.watch.watch_process import new_watch_folder, output_of, reported_end, why_watch_ended
from .modules import as_text
from .packed_folder import code_checksum, data_checksum, keep_code

Result = dict[str, Any]
Show = Callable[[str, str], None]

FUNCTIONS: dict[str, Callable[..., Result]] = {
    function.__name__: function
    for function in (
        code_checksum,
        copy_growing_outputs,
        copy_outputs,
        data_checksum,
        judge_restart,
        keep_code,
        last_metrics,
        list_runs,
        network_findings,
        new_watch_folder,
        newest_checkpoint,
        read_connections,
        read_gpus,
        read_guests,
        read_hang,
        read_runs,
        read_stacks,
        remaining_runs,
        reported_end,
        why_watch_ended,
        write_manifest,
        write_output,
        write_pairs,
        write_private,
    )
}
# Functions that take long, and show their progress: an object, and what happens to it.
WITH_PROGRESS: dict[str, Callable[..., Result]] = {
    function.__name__: function for function in (follow_records, wait_for_steps)
}
PACKAGE = Path(__file__).resolve().parents[1]
WATCH = "import sys; sys.path.insert(0, sys.argv[1]); from module_utils.watch.watch_process import main; main()"


def has(name: str) -> bool:
    """Return whether a name is that of a function, and not of a module."""
    return name in FUNCTIONS or name in WITH_PROGRESS


def run(name: str, options: Mapping[str, Any], show: Show) -> Result:
    """Run a function; an expected error becomes a result with ``failed``, as that of a module."""
    # Texts, containers and warnings of Ansible become plain ones, as for a module.
    plain = json.loads(json.dumps(options, default=as_text))
    if name in FUNCTIONS:
        return runner.outcome(lambda: FUNCTIONS[name](**plain))
    return runner.outcome(lambda: WITH_PROGRESS[name](show=show, **plain))


def start_watch(options: Mapping[str, Any]) -> Result:
    """Start the process that watches the records of a job; it outlives this one, and has no vCenter account."""
    output = output_of(Path(options["records"]))
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
