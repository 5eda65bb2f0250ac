# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of a program that an action runs: modules, functions, the clock and the screen.

Ansible enters programs here only. No function connects to vCenter; ``training/runs/controller_site.py`` has the
protocols of their groups.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from ansible.utils.display import Display
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils import runner
from ..module_utils.core import observer_clock
from ..module_utils.core.child_environment import without_account
from ..module_utils.core.names import printable
from ..module_utils.durable.calls import Arguments, Result
from ..module_utils.durable.program import ControllerGone
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
from ..module_utils.training.runs import controller_site
from ..module_utils.watch import awaited_steps, node_programs, watcher
from ..module_utils.watch.live_pace import AwaitedSteps
from . import packed_folder
from .follow import line_of
from .modules import Modules, as_text
from .node_modules import NodeModules

P = ParamSpec("P")
T = TypeVar("T")
Show = Callable[[str, str], None]

PACKAGE = Path(__file__).resolve().parents[1]
WATCH = "import sys; sys.path.insert(0, sys.argv[1]); from module_utils.watch.watcher import main; main()"
RUN = "DML_VSPHERE_RUN"  # identifies the run to modules that outlive their controller
POLL_SECONDS = 2.0
# All times together in which vCenter or a node does not answer. A restart of vCenter's services takes minutes.
AWAY_SECONDS = {"vCenter": 900.0, "the launcher": 120.0}


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

    def follow(self, records: str, options: controller_site.FollowOptions) -> controller_site.Followed:
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


def show(text: str) -> None:
    """Show a line; names come from others and must not control the terminal."""
    Display().display(f"  {printable(text)}")


def shown_with_time() -> Callable[[str, str], None]:
    """Return a function that shows what happens to an object, with the seconds since its first line."""
    began: dict[str, float] = {}

    def report(about: str, what: str) -> None:
        if not about:  # a line of another program
            show(what)
            return
        now = time.monotonic()
        Display().display(line_of({"about": about, "what": what, "seconds": now - began.setdefault(about, now)}))

    return report


class ActionWorld:
    """Runs the effects of a program as modules, from the process of the action."""

    def __init__(self, modules: Modules, subject: str) -> None:
        self._modules, self._subject, self._parent = modules, subject, os.getppid()
        self._patience = dict(AWAY_SECONDS)
        run = OnController(self.must_be_attended)
        self.records: controller_site.Records = Records(run, shown_with_time)
        self.nodes: controller_site.NodeReads = NodeReads(run)

    def now(self) -> float:
        """Return the time of the run that owns its clock, else the system time."""
        return observer_clock.now()

    def own_clock(self) -> AbstractContextManager[None]:
        """Return a block whose time is not changed by a clock that is set, for a program without a folder."""
        return observer_clock.running()

    def awake_clock(self) -> AbstractContextManager[None]:
        """Return such a block whose time stands still while the controller sleeps."""
        return observer_clock.awake()

    def pause(self) -> None:
        """Pause between two checks of a condition."""
        time.sleep(POLL_SECONDS)

    def show(self, text: str) -> None:
        """Show a line, with the object of the program."""
        if text:
            show(f"{self._subject}: {text}")

    def must_be_attended(self) -> None:
        """Raise ControllerGone if ansible-playbook was killed: it leaves this process behind."""
        if os.getppid() != self._parent:
            raise ControllerGone

    def join(self, run: str) -> None:
        """Name the run that holds the lock to all modules; from now on, wait for a server that does not answer."""
        # Ansible treats values of the environment as templates, and this one comes from vCenter.
        self._modules.environment[RUN] = wrap_var(run)

    def here(self, module: str, options: Arguments) -> Result:
        """Run a module on the controller, and return its result."""
        return self._connected(lambda: self._modules.here(module, dict(options)))

    def planned(self, module: str, options: Arguments) -> Result:
        """Run a module on the controller in check mode, and return its result."""
        return self._connected(lambda: self._modules.planned(module, dict(options)))

    def _connected(self, run: Callable[[], dict[str, Any]]) -> Result:
        """Run a module again while vCenter or the launcher cannot be reached: such a run has changed nothing.

        A program that holds no lock fails at once.
        """
        while True:
            self.must_be_attended()
            began, result = time.monotonic(), run()
            if result.get("failed"):
                # It may have noticed the end of its controller: the program must not take that for a failure.
                self.must_be_attended()
            away = "vCenter" if result.get("not_connected") else "the launcher" if result.get("unreachable") else ""
            if not away or RUN not in self._modules.environment or self._patience[away] <= 0:
                return result
            if self._patience[away] == AWAY_SECONDS[away]:
                self.show(f"{away} cannot be reached; waits for up to {AWAY_SECONDS[away] / 60:.0f} minutes")
            self.pause()
            self._patience[away] -= time.monotonic() - began


class NodeWorld(ActionWorld):
    """A world that also runs modules on hosts of the inventory, and watches jobs in the background."""

    def __init__(self, modules: Modules, nodes: NodeModules, subject: str) -> None:
        super().__init__(modules, subject)
        self._nodes, nodes.show = nodes, self.show
        run = OnController(self.must_be_attended)
        self.outputs: controller_site.Outputs = Outputs(run)
        self.files: controller_site.Files = Files(run)
        self.runs: controller_site.KeptRuns = KeptRuns(run)

    def on(self, host: str, module: str, options: Arguments) -> Result:
        """Run a module on a host, and return its result."""
        return self._nodes.on(host, module, options)

    def on_each(self, module: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, object]]:
        """Run a module on several hosts at once, and return the results by host."""
        return self._nodes.on_each(module, options)

    def as_user(self, user: str) -> NodeWorld:
        """Return the same world, in which modules on hosts run as another user."""
        return NodeWorld(self._modules, self._nodes.as_user(user), self._subject)

    def controller(self) -> int:
        return self._parent

    def watch(self, options: Arguments) -> dict[str, object]:
        """Start the watch of the records of a job in the background of the controller."""
        return start_watch(options)
