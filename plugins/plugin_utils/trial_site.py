# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The world of a test, a window or an observation: modules, the watch, its folder, and the user's hooks."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http.client import HTTPException, InvalidURL
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from uuid import uuid4

from ansible.module_utils.urls import open_url
from ansible.release import __version__ as ansible_version

from ..module_utils import runner
from ..module_utils.core import observer_clock
from ..module_utils.core.child_environment import without_account
from ..module_utils.durable.calls import Arguments, Result
from ..module_utils.durable.program import ControllerGone
from ..module_utils.durable.program_journal import NAME
from ..module_utils.jobs.running_job import job_from
from ..module_utils.maintenance.lock.holder import current_user
from ..module_utils.training.results.report_files import for_collector
from ..module_utils.training.runs.any_job import Job
from ..module_utils.training.runs.restartable import WINDOW, NotRestartable, Restartable
from ..module_utils.trials.evidence.facts import Facts
from ..module_utils.trials.folder import job_moves, trial_folder
from ..module_utils.watch.watcher import is_watched
from . import running_jobs
from .interruption import PAUSE
from .modules import Modules
from .restartable_jobs import restartable
from .world import ActionWorld, start_watch

DRIVERS = "stacks/facts/compatibility.yml"
NOTICE_SECONDS = 30.0
WATCH_SECONDS, UNWATCH_SECONDS, ROLL_SECONDS = 60.0, 60.0, 30.0
MOST_OUTPUT = 300


class TrialSite(ActionWorld):
    """The modules, the watch and the files of one test in its folder."""

    def __init__(self, modules: Modules, subject: str, folder: Path, metrics: str) -> None:
        super().__init__(modules, subject)
        self.folder, self.controller, self.host = str(folder), str(uuid4()), modules.host
        self.drivers: Mapping[str, Any] = modules.load(DRIVERS)
        self.versions: Mapping[str, str] = {"ansible": ansible_version, "collection": modules.version}
        self._folder, self._metrics = folder, metrics
        self.run_command = run_command
        # The warnings of the modules, each once, for the result of the task.
        self.warnings: dict[str, Any] = {}

    def here(self, module: str, options: Arguments) -> Result:
        """Run a module on the controller, and return its result."""
        result = super().here(module, options)
        self.warnings.update({str(warning): warning for warning in result.get("warnings") or []})
        return result

    def start_watch(self, options: Arguments) -> Result:
        """Start a watch, which outlives this controller, unless one is running."""
        records = Path(options["records"])
        if is_watched(records):
            return {}
        # An earlier controller that was interrupted has asked its watch to end.
        Path(options["stop"]).unlink(missing_ok=True)
        attended = {**options, "attended": str(self._folder / NAME)}
        started = start_watch(attended)
        if started.get("failed") or not _until(lambda: is_watched(records), WATCH_SECONDS):
            reason = started.get("msg") or "the watch did not start"
            return {"failed": True, "msg": f"{records}: could not watch the job: {reason}"}
        return {}

    def stop_watch(self, options: Arguments) -> Result:
        """End the watch of the records."""
        records = Path(options["records"])
        Path(options["stop"]).touch(mode=0o600)
        if _until(lambda: not is_watched(records), UNWATCH_SECONDS):
            return {}
        reason = f"it is still running {UNWATCH_SECONDS:.0f} s after the request."
        return {"failed": True, "msg": f"{records}: could not end the watch: {reason}"}

    def on_node(self, node: str, user: str, module: str, options: Arguments, /) -> Result:
        """Run a module on a host of the inventory, as a user; one that does not answer is not waited for."""
        self.must_be_attended()
        return self._modules.on(node, user, module, options)

    def on(self, node: str, user: str, module: str, options: Arguments) -> Result:
        """Run a module on a host of the inventory, as a user, and wait for one that does not answer."""
        return self._connected(lambda: self._modules.on(node, user, module, options))

    def roll_records(self) -> bool:
        """Have the watch begin a new file of records; without a watch, the records stay as they are."""
        request = self._folder / "roll"
        request.touch(mode=0o600)
        is_rolled = _until(lambda: not request.exists(), ROLL_SECONDS)
        request.unlink(missing_ok=True)
        return is_rolled

    def ask_for_end(self) -> None:
        """Ask for the end of an observation."""
        (self._folder / "end").touch(mode=0o600)

    def must_pause(self) -> bool:
        """Return whether the user interrupted the playbook once."""
        return (self._folder / PAUSE).exists()

    def jobs_on_workers(self, settings: Mapping[str, object]) -> Result:
        """Return the other training jobs on the workers of the cluster, or why they are not known."""
        self.must_be_attended()
        return running_jobs.beside(self._modules, self._subject, settings)

    def earlier_changes(self) -> list[dict[str, Any]]:
        """Return the host changes of earlier windows of the cluster."""
        return trial_folder.earlier_changes(self._folder.parent, self._subject, self._folder)

    def last_change(self) -> float:
        """Return when an earlier window of the cluster last began a host."""
        return trial_folder.last_change(self._folder.parent, self._subject, self._folder)

    def restartable(self, known: Mapping[str, object]) -> Restartable:
        """Return an attempt of a job, which a window by restart stops and starts again."""
        if not known:
            return NotRestartable(
                "the job", "The job cannot be restarted: the playbook did not find it on the workers."
            )
        action, task_vars = self._modules.task
        by = f"{WINDOW} {current_user()}@{os.uname().nodename}"
        return restartable(action, task_vars, known, by)

    def notify(self, hook: Mapping[str, Any], text: str) -> Result:
        """Give a text to a command or a URL of the user."""
        if hook.get("url"):
            return post(str(hook["url"]), text, NOTICE_SECONDS)
        return run_command([str(word) for word in hook.get("command") or []], text, NOTICE_SECONDS)

    def write(self, name: str, content: object) -> None:
        """Write a JSON file in the folder of the test."""
        trial_folder.write_json(self._folder / f"{name}.json", content)

    def write_facts(self, facts: Facts) -> None:
        """Write the facts so far, and their metrics."""
        trial_folder.write_facts(self._folder, facts)
        self.write_metrics(facts, is_running=True)

    def write_metrics(self, facts: Facts, is_running: bool) -> None:
        """Write the metrics of the facts for a collector; the test continues without them, as on a full disk."""
        if self._metrics:
            text = job_moves.metrics(facts, self._folder.name, observer_clock.now(), is_running)
            files = for_collector(self._metrics, self._folder.name, text)
            self.show(str(runner.converge_one(runner.OfProgram(), files).get("msg") or ""))


class ObservationSite(TrialSite):
    """An observation survives its controller: it changes nothing but its folder, and ends with its report."""

    def must_be_attended(self) -> None:
        """Ask for the end of the observation if its controller is gone."""
        try:
            super().must_be_attended()
        except ControllerGone:
            self.ask_for_end()


def job_of(site: TrialSite, settings: Mapping[str, Any]) -> Job:
    """Return the job of a run, which is read on its launcher as its user; one in Slurm also on its login node."""
    on_launcher = partial(site.on, settings["launcher"] or site.host, settings["user"])
    login = str((settings.get("slurm") or {}).get("login") or "")
    return job_from(site.here, on_launcher, settings, partial(site.on, login, ""))


def _until(condition: Callable[[], bool], seconds: float, pause: float = 0.2) -> bool:
    """Return whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def run_command(words: Sequence[str], text: str, seconds: float) -> Result:
    """Run a command of the user without the vCenter account; return its exit status, and why it failed."""
    name = words[0] if words else "the command"
    if not words:
        return {"rc": None, "msg": "the command is empty: name it as a list of words."}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    options: dict[str, Any] = {**pipes, "text": True, "errors": "replace", "start_new_session": True}
    try:
        # Its separate session, so that all that the command has started ends with it.
        process = subprocess.Popen(words, env=without_account(os.environ), **options)  # noqa: S603 - the user's command
    except OSError as error:
        return {"rc": None, "msg": f"{name}: could not run the command: {error.strerror or error}."}
    with process:
        try:
            written, errors = process.communicate(text, seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return {"rc": None, "msg": f"{name}: could not finish the command: it ran for {seconds:.0f} s."}
    if process.returncode:
        output = (errors or written).strip()[-MOST_OUTPUT:]
        return {"rc": process.returncode, "msg": f"{name}: the command ended with {process.returncode}: {output}"}
    return {"rc": 0}


def post(url: str, text: str, seconds: float) -> Result:
    """Post JSON to a URL of the user, and return why that failed."""
    if not url.startswith(("https://", "http://")):
        return {"msg": f"{_shown(url)}: could not post to it: it is not a URL of http or https."}
    reasons: list[str] = []
    thread = threading.Thread(target=lambda: reasons.append(_posted(url, text, seconds)), daemon=True)
    thread.start()
    # The time limit of a connection is for each of its reads: a server that sends slowly would hold the window.
    thread.join(seconds)
    reason = reasons[0] if reasons else f"it did not answer within {seconds:.0f} s"
    return {"msg": f"{_shown(url)}: could not post to it: {reason}."} if reason else {}


def _posted(url: str, text: str, seconds: float) -> str:
    """Post JSON, and return why that failed, without the words of the server, which may contain the URL."""
    headers = {"Content-Type": "application/json"}
    try:
        open_url(url, data=text.encode(), headers=headers, method="POST", timeout=seconds).close()
    except HTTPError as error:
        return f"it answered with the HTTP status {error.code}"
    except (InvalidURL, ValueError):
        return "its URL is malformed"
    except HTTPException:
        return "its answer is not HTTP"
    except OSError as error:
        cause = error.reason if isinstance(error, URLError) else error
        return (cause.strerror if isinstance(cause, OSError) else "") or type(cause).__name__
    return ""


def _shown(url: str) -> str:
    """Return a URL without its account, path and query, which usually contain the token of a webhook."""
    try:
        parts = urlsplit(url)
        return f"{parts.scheme}://{parts.hostname or ''}"
    except ValueError:
        return "a malformed URL"
