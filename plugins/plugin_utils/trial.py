# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carries a vMotion test out: asks the journal for the next step, does it, writes down and shows what came of it."""

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
from ..module_utils.vmotion.checks import move_lines
from ..module_utils.vmotion.folder.journal import NAME, Journal
from ..module_utils.vmotion.test import calls, evidence_files, results, sentences
from ..module_utils.vmotion.test.observed import Observed, observed
from ..module_utils.vmotion.test.steps import step_after
from ..module_utils.vmotion.watch.watcher import is_watched
from .modules import Modules

TABLE = "stacks/facts/compatibility.yml"
RUN = "DML_VSPHERE_RUN"  # by which modules that outlive their controller know whose they are
LOOK_SECONDS = 2.0
WATCH_SECONDS, UNWATCH_SECONDS = 60.0, 60.0


def show(text: str) -> None:
    """One line of the test."""
    Display().display(f"  {printable(text)}")


def begin(modules: Modules, opened: dict[str, Any]) -> dict[str, Any]:
    """The plan of a test that is not carried out now."""
    wanted = opened["settings"]
    call = calls.plan(wanted)
    planned = modules.here(call.module, call.options)
    if planned.get("failed"):
        return planned
    against = sentences.not_applicable(wanted["cluster"], planned)
    if against:
        return {"failed": True, "msg": against}
    for move in planned["moves"]:
        show(move_lines.line(move))
    return {"changed": True, "moves": planned["moves"]}


class Trial:
    """One test in its folder."""

    def __init__(self, modules: Modules, opened: dict[str, Any]) -> None:
        self._modules, self._folder = modules, Path(opened["folder"])
        self._is_taken_up, self._controller = bool(opened["taken_up"]), os.getppid()
        self._table = modules.load(TABLE)

    def carry_out(self) -> dict[str, Any]:
        """Do all steps that are left; what the test found."""
        begins = "takes up the test in {}, with the settings with which it began" if self._is_taken_up else "begins {}"
        show(begins.format(self._folder))
        try:
            with Journal(self._folder / NAME) as journal:
                refused = self._steps(journal)
                return self._result(observed(journal.entries), refused)
        except CollectionError as error:
            return {"failed": True, "msg": str(error), "folder": str(self._folder)}

    def _steps(self, journal: Journal) -> str:
        """Why nothing could be begun, empty where all steps were done."""
        while True:
            seen = observed(journal.entries)
            step = step_after(seen)
            # A controller that was killed leaves this process behind, which must begin nothing more.
            if not step or os.getppid() != self._controller:
                return ""
            self._show(sentences.doing(step, seen), seen)
            told = self._do(step, seen)
            for entry, what in told:
                for text in sentences.told(entry, what, seen):
                    self._show(text, seen)
            if step == "hold" and not seen.run and told[0][0] == "failed":
                return self._refused(journal, seen, str(told[0][1]["said"]))
            for entry, what in told:
                journal.append(entry, **what)

    def _refused(self, journal: Journal, seen: Observed, said: str) -> str:
        """Somebody else holds the cluster: nothing there may be touched, not even to give something back."""
        if seen.job is None:
            journal.append("end", passed=False, said=said)
        return said

    def _show(self, text: str, seen: Observed) -> None:
        if text:
            show(f"{seen.cluster}: {text}")

    def _do(self, step: str, seen: Observed) -> results.Entries:
        """The entries of one step."""
        if step in _OWN:
            return _OWN[step](self, seen)
        call = calls.call(step, seen, str(self._folder))
        if call is None:
            return [(step, {})]
        result = self._run(call)
        if not result.get("failed"):
            self._learn(step, result, seen)
        return results.entries(step, result, seen, may_fail=call.may_fail, now=time.time(), table=self._table)

    def _learn(self, step: str, result: dict[str, Any], seen: Observed) -> None:
        if step == "hold":
            # Ansible takes the values of an environment for templates, and vCenter told this one.
            self._modules.environment[RUN] = wrap_var(str(result["state"]["run"]))
        if step == "judge" and seen.is_over:
            for line in result["lines"]:
                show(line)

    def _run(self, call: calls.Call) -> dict[str, Any]:
        run = self._modules.there if call.where == calls.LAUNCHER else self._modules.here
        return run(call.module, call.options)

    def _watch(self, seen: Observed) -> results.Entries:
        """A watch outlives its controller; where it still runs, no second one is begun."""
        call = calls.call("watch", seen, str(self._folder))
        records = self._folder / "records.jsonl"
        if call is None or is_watched(records) or (self._folder / "stop").exists():
            return [("watch", {"begun": False})]
        options = {**call.options, "attended": str(self._folder / NAME)}
        begun = self._modules.background(call.module, options, calls.WATCH_SECONDS)
        if begun.get("failed") or not _until(lambda: is_watched(records), WATCH_SECONDS):
            said = f"{records}: could not watch the job: {begun.get('msg') or 'the watch did not begin'}"
            return [("failed", {"step": "watch", "said": said})]
        return [("watch", {"begun": True})]

    def _unwatch(self, _seen: Observed) -> results.Entries:
        (self._folder / "stop").touch(mode=0o600)
        records = self._folder / "records.jsonl"
        if _until(lambda: not is_watched(records), UNWATCH_SECONDS):
            return [("unwatch", {})]
        said = f"{records}: could not end the watch: it goes on {UNWATCH_SECONDS:.0f} s after it was told to end."
        return [("failed", {"step": "unwatch", "said": said})]

    def _await(self, seen: Observed) -> results.Entries:
        call = calls.call("await", seen, str(self._folder))
        found: list[results.Entries] = [[("await", {"state": "unknown"})]]

        def has_ended() -> bool:
            if call is not None:
                found.append(results.entries("await", self._run(call), seen, may_fail=True))
            return found[-1][0][1]["state"] not in ("running", "unknown")

        _until(has_ended, seen.settings["finish_timeout"], LOOK_SECONDS)
        return found[-1]

    def _keep(self, seen: Observed) -> results.Entries:
        versions = {"ansible": ansible_version, "collection": self._modules.version}
        for name, content in evidence_files.files(seen, versions).items():
            path = self._folder / f"{name}.json"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                json.dump(content, file, indent=4)
        return [("keep", {})]

    def _end(self, seen: Observed) -> results.Entries:
        said = sentences.outcome(seen, str(self._folder))
        return [("end", {"passed": not said, "said": said})]

    def _result(self, seen: Observed, refused: str) -> dict[str, Any]:
        judged = seen.judged or {}
        told: dict[str, Any] = {
            "folder": str(self._folder),
            **{key: judged[key] for key in ("verdict", "moved") if key in judged},
        }
        said = refused or str((seen.end or {}).get("said") or sentences.outcome(seen, str(self._folder)))
        if said:
            return {**told, "changed": True, "failed": True, "msg": said}
        return {**told, "changed": True, "msg": sentences.passed(str(self._folder))}


def _until(condition: Callable[[], bool], seconds: float, pause: float = 0.2) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


_OWN: dict[str, Callable[[Trial, Observed], results.Entries]] = {
    "watch": Trial._watch,
    "unwatch": Trial._unwatch,
    "await": Trial._await,
    "keep": Trial._keep,
    "end": Trial._end,
}
