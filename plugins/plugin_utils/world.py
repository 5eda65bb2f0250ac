# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of a program that an action runs: modules, the clock and the screen. Ansible enters programs here only."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from ansible.utils.display import Display
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils.core import observer_clock
from ..module_utils.core.names import printable
from ..module_utils.durable.calls import Arguments, Result
from ..module_utils.durable.program import ControllerGone
from ..module_utils.training.runs.controller_site import Files, KeptRuns, NodeReads, Outputs, Records
from . import controller
from .follow import line_of
from .modules import Modules
from .node_modules import NodeModules

RUN = "DML_VSPHERE_RUN"  # identifies the run to modules that outlive their controller
POLL_SECONDS = 2.0
# All times together in which vCenter or a node does not answer. A restart of vCenter's services takes minutes.
AWAY_SECONDS = {"vCenter": 900.0, "the launcher": 120.0}


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
        run = controller.OnController(self.must_be_attended)
        self.records: Records = controller.Records(run, shown_with_time)
        self.nodes: NodeReads = controller.NodeReads(run)

    def now(self) -> float:
        """Return the time of the run that owns its clock, else the system time."""
        return observer_clock.now()

    def own_clock(self) -> AbstractContextManager[None]:
        """Return a block whose time is not changed by a clock that is set, for a program without a folder."""
        return observer_clock.running()

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
        run = controller.OnController(self.must_be_attended)
        self.outputs: Outputs = controller.Outputs(run)
        self.files: Files = controller.Files(run)
        self.runs: KeptRuns = controller.KeptRuns(run)

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
        return controller.start_watch(options)
