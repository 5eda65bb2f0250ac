# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs a vMotion test: does each step that the journal makes due, writes its entries and shows its messages."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ansible.release import __version__ as ansible_version
from ansible.utils.display import Display
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils.core.names import printable
from ..module_utils.errors import CollectionError
from ..module_utils.vmotion.folder import observer_clock
from ..module_utils.vmotion.folder.journal import NAME, Journal
from ..module_utils.vmotion.test.next_step import kind_of, next_step, state_of
from ..module_utils.vmotion.test.outcome import outcome, passed
from ..module_utils.vmotion.test.step import (
    BACKGROUND,
    LAUNCHER,
    Action,
    Controller,
    Entries,
    ModuleCall,
    Result,
    RollRecords,
    RunCommand,
    Step,
    WriteFiles,
)
from ..module_utils.vmotion.test.steps.moves_plan import not_applicable, plan_call, plan_lines
from ..module_utils.vmotion.test.trial_state import TrialState
from ..module_utils.vmotion.watch.watcher import is_watched
from .modules import Modules
from .observer import ended_by_signal, run_command

DRIVERS = "stacks/facts/compatibility.yml"
RUN = "DML_VSPHERE_RUN"  # identifies the run to modules that outlive their controller
POLL_SECONDS = 2.0
# All times together in which vCenter or the launcher does not answer. A restart of vCenter's services takes minutes.
AWAY_SECONDS = {"vCenter": 900.0, "the launcher": 120.0}
WATCH_SECONDS, UNWATCH_SECONDS, ROLL_SECONDS = 60.0, 60.0, 30.0


def show(text: str) -> None:
    """Show one line of the test."""
    Display().display(f"  {printable(text)}")


def show_plan(modules: Modules, opened: dict[str, Any]) -> dict[str, Any]:
    """Show the plan of a test in check mode, and return it."""
    settings = opened["settings"]
    call = plan_call(settings)
    planned = modules.here(call.module, call.options)
    if planned.get("failed"):
        return planned
    refusal = not_applicable(settings["cluster"], planned)
    if refusal:
        return {"failed": True, "msg": refusal}
    for line in plan_lines(planned):
        show(line)
    return {"changed": True, "moves": planned["moves"]}


class Trial:
    """One test in its folder."""

    def __init__(self, modules: Modules, opened: dict[str, Any]) -> None:
        self._modules, self._folder = modules, Path(opened["folder"])
        self._is_taken_up, self._parent = bool(opened["taken_up"]), os.getppid()
        self._drivers, self._patience = modules.load(DRIVERS), dict(AWAY_SECONDS)

    def run(self) -> dict[str, Any]:
        """Do all steps that are left, and return the result of the test."""
        first = "continues the test in {} with its original settings" if self._is_taken_up else "starts {}"
        show(first.format(self._folder))
        try:
            with observer_clock.running(self._folder), Journal(self._folder / NAME) as journal:
                with ended_by_signal(self._ask_for_end, _is_observation(journal)):
                    refusal = self._steps(journal)
                return self._result(state_of(journal.entries), refusal)
        except CollectionError as error:
            return {"failed": True, "msg": str(error), "folder": str(self._folder)}

    def _steps(self, journal: Journal) -> str:
        """Do the steps, and return why the test cannot even start; empty if it can."""
        while True:
            state = state_of(journal.entries)
            step = next_step(state)
            # A killed controller leaves this process behind, which must not start another step.
            if step is None or (os.getppid() != self._parent and not self._may_end_alone(state)):
                return ""
            self._show(step.title_of(state), state)
            entries = self._do(step, state)
            for kind, content in entries:
                for text in kind_of(kind).messages(content, state):
                    self._show(text, state)
            if _is_refused(state, entries):
                return self._refused(journal, state, str(entries[0][1]["said"]))
            for kind, content in entries:
                journal.append(kind, **content)

    def _may_end_alone(self, state: TrialState) -> bool:
        """Return whether the test may end without its controller: an observation changes nothing but its folder."""
        if not state.settings.get("observe"):
            return False
        self._ask_for_end()
        return True

    def _ask_for_end(self) -> None:
        (self._folder / "end").touch(mode=0o600)

    def _refused(self, journal: Journal, state: TrialState, reason: str) -> str:
        """Leave the cluster, which another run has locked, unchanged; there is nothing to restore either."""
        if state.job is None:
            journal.append("end", passed=False, said=reason)
        return reason

    def _show(self, text: str, state: TrialState) -> None:
        if text:
            show(f"{state.cluster}: {text}")

    def _do(self, step: Step, state: TrialState) -> Entries:
        """Do one step, and return its entries."""
        if state.run:
            # Ansible treats values of the environment as templates, and this one comes from vCenter.
            self._modules.environment[RUN] = wrap_var(state.run)
        action = step.action(state, self._controller()) if step.action else None
        result = self._act(action) if action else {}
        if not result.get("failed"):
            for line in step.result_lines(result, state):
                show(line)
        may_fail = isinstance(action, ModuleCall) and action.may_fail
        return step.entries_of(result, state, self._controller(), may_fail=may_fail)

    def _controller(self) -> Controller:
        versions = {"ansible": ansible_version, "collection": self._modules.version}
        return Controller(str(self._folder), observer_clock.now(), self._drivers, versions)

    def _act(self, action: Action) -> Result:
        if isinstance(action, ModuleCall):
            return self._start(action) if action.where == BACKGROUND else self._call(action)
        if isinstance(action, RunCommand):
            return run_command(action)
        if isinstance(action, RollRecords):
            return self._roll()
        return self._write(action.contents) if isinstance(action, WriteFiles) else self._stop_watch()

    def _call(self, call: ModuleCall) -> Result:
        """Call a module, repeatedly if it has to satisfy a condition, and return the last result."""
        run = self._modules.there if call.where == LAUNCHER else self._modules.here
        deadline = time.monotonic() + call.seconds
        while True:
            result = self._connected(lambda: run(call.module, call.options))
            if call.until is None or call.until(result) or time.monotonic() > deadline:
                return result
            time.sleep(POLL_SECONDS)

    def _connected(self, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Run a module again while vCenter or the launcher cannot be reached: such a run has changed nothing.

        A test that has not locked its cluster fails at once.
        """
        while True:
            began, result = time.monotonic(), run()
            away = "vCenter" if result.get("not_connected") else "the launcher" if result.get("unreachable") else ""
            if not away or RUN not in self._modules.environment or self._patience[away] <= 0:
                return result
            if self._patience[away] == AWAY_SECONDS[away]:
                show(f"{away} cannot be reached; waits for it for up to {AWAY_SECONDS[away] / 60:.0f} minutes")
            time.sleep(POLL_SECONDS)
            self._patience[away] -= time.monotonic() - began

    def _start(self, call: ModuleCall) -> Result:
        """Start a watch, which outlives this controller, unless one is running or was asked to end."""
        records, stop = Path(call.options["records"]), Path(call.options["stop"])
        if is_watched(records) or stop.exists():
            return {"begun": False}
        options = {**call.options, "attended": str(self._folder / NAME)}
        started = self._modules.background(call.module, options, call.options["timeout"])
        if started.get("failed") or not _until(lambda: is_watched(records), WATCH_SECONDS):
            reason = started.get("msg") or "the watch did not start"
            return {"failed": True, "msg": f"{records}: could not watch the job: {reason}"}
        return {"begun": True}

    def _stop_watch(self) -> Result:
        (self._folder / "stop").touch(mode=0o600)
        records = self._folder / "records.jsonl"
        if _until(lambda: not is_watched(records), UNWATCH_SECONDS):
            return {}
        reason = f"it is still running {UNWATCH_SECONDS:.0f} s after the request."
        return {"failed": True, "msg": f"{records}: could not end the watch: {reason}"}

    def _roll(self) -> Result:
        """Have the watch begin a new file of records; without a watch, the records stay as they are."""
        request = self._folder / "roll"
        request.touch(mode=0o600)
        if _until(lambda: not request.exists(), ROLL_SECONDS):
            return {"rolled": True}
        request.unlink(missing_ok=True)
        return {"rolled": False}

    def _write(self, contents: dict[str, Any]) -> Result:
        for name, content in contents.items():
            path = self._folder / f"{name}.json"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(content, file, indent=4)
        return {}

    def _result(self, state: TrialState, refusal: str) -> dict[str, Any]:
        judged = state.judged or {}
        result: dict[str, Any] = {
            "folder": str(self._folder),
            **{key: judged[key] for key in ("verdict", "moved") if key in judged},
        }
        reason = refusal or str((state.end or {}).get("said") or outcome(state, str(self._folder)))
        if reason:
            return {**result, "changed": True, "failed": True, "msg": reason}
        return {**result, "changed": True, "msg": passed(state, str(self._folder))}


def _is_observation(journal: Journal) -> bool:
    return bool(state_of(journal.entries).settings.get("observe"))


def _is_refused(state: TrialState, entries: Entries) -> bool:
    """Return whether a step failed while this controller does not hold the cluster's lock, and needs it."""
    return not state.run and not state.is_freed and entries[0][0] == "failed"


def _until(condition: Callable[[], bool], seconds: float, pause: float = 0.2) -> bool:
    """Return whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True
