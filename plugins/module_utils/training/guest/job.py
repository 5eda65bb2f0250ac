"""A training job on its launcher: its state from its run directory, its start and its stop."""

from __future__ import annotations

# pylint: disable=ansible-bad-function  # the supervisor outlives the module
import contextlib
import hashlib
import json
import math
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from typing import Any, cast

from ...core.child_environment import without_account
from ...errors import CollectionError, Failed, Refused, TimedOut, os_words
from ...guests import supervisor
from ...guests.file_ownership import exposed
from ...plan import Plan, State
from ...runner import Params
from ..ending.job_end import cause_of
from ..ending.job_state import ENDED, SIGNAL_REQUEST, STOP_REQUEST, JobState
from ..launch import mpirun
from . import daemon_ports, job_output
from .git_commit import commit_of

SECRET = "secret_environment"  # noqa: S105 - the name of an option # nosec B105
ENVIRONMENTS = ("environment", SECRET)
LOG_BYTES = 65536
# Ranks that a signal ends close their process group, and mpirun ends after them.
ENDING_SECONDS = 120.0
PROGRAM, STEPS_BY = "supervisor.py", "DML_STEPS_BY"
WRITE_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL
SHELLS = ("remote_shell", "daemon_shell")
REQUESTED = ("command", "hosts", "ranks", *ENVIRONMENTS, "mpirun", "mpirun_arguments", *SHELLS, "remote_python")
NOTED = ("transport", "stack", "script")
DERIVED = ("mpirun_command", "nodes_of_ranks", "script_sha256", "script_git")
STARTED = ("running", "finished", "waiting")
_NO_MODULE = re.compile(r"No module named '([A-Za-z_]\w*)")
WORK, DEEPEST = "work", 2


def job_state(run_dir: str) -> JobState:
    """Return the job of a run directory, from its files and its processes."""
    try:
        return cast("JobState", _job_state(run_dir))
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        cause = f"its files are not as this collection writes them ({type(error).__name__}: {error})"
        raise Failed(run_dir, "read its job", cause, "specify another run directory, or remove this one") from error


def _job_state(run_dir: str) -> dict[str, object]:
    desired = supervisor.read(run_dir, supervisor.DESIRED)
    if desired is None:
        return {"state": "absent"}
    run = supervisor.read(run_dir, supervisor.RUN) or {}
    end = supervisor.read(run_dir, supervisor.END)
    request = _request(run_dir, end)
    is_queued = bool(desired.get("queued")) and not run and end is None
    state = "waiting" if is_queued else _state_word(run, end, is_requested=request is not None)
    job = {key: desired.get(key) for key in ("command", "hosts", *NOTED, *DERIVED)}
    job.update({key: run.get(key) for key in ("launcher", "job", "started")})
    if is_queued and supervisor.is_full(run_dir):
        # A batch script that found the disk full could write nothing.
        job["full"] = no_space(run_dir)
    if state in ENDED:
        job.update(_end_facts(run_dir, desired, end or {}, state))
    if state == "stopped" and request is not None:
        # The supervisor ended it, so that its exit code shows nothing about the program.
        job["why"] = _why_stopped(request, None if (end or {}).get("stopped") else job["exit_code"])
    return {"state": state, "run_id": desired["id"], "steps_by": desired.get("environment", {}).get(STEPS_BY), **job}


def _request(run_dir: str, end: Mapping[str, Any] | None) -> dict[str, object] | None:
    """Return the request for the end of a job; None without one, or if the job had ended before it."""
    for name in (STOP_REQUEST, SIGNAL_REQUEST):
        try:
            at = os.stat(os.path.join(run_dir, name)).st_mtime
        except OSError:
            continue
        request = supervisor.read(run_dir, name)
        # After a signal for a checkpoint, a job that goes on for longer ends by itself.
        last = at + float((request or {}).get("seconds") or math.inf) + ENDING_SECONDS
        if end is None or at <= end["ended"] <= last:
            return request
    return None


def _why_stopped(request: Mapping[str, object], code: int | None) -> str:
    """Return who asked for the end of the job; torchrun may end with 1 although all ranks have saved and ended."""
    sentence = f"stopped by {request.get('by') or 'a command'}"
    return f"{sentence}; it ended with exit code {code}" if code else sentence


def _state_word(run: Mapping[str, Any], end: Mapping[str, Any] | None, *, is_requested: bool = False) -> str:
    if end is not None and (end["swept"] or not _is_supervised(run)):
        if end["stopped"] or is_requested:
            return "stopped"
        return "finished" if end["exit_code"] == 0 else "died"
    if run and (supervisor.is_alive(run["launcher"]) or _is_supervised(run)):
        return "running"
    return "stopped" if is_requested and run else "died"


def _is_supervised(run: Mapping[str, Any]) -> bool:
    return bool(run) and supervisor.is_alive(run["supervisor"])


def _is_unswept(run_dir: str) -> bool:
    """Return whether remaining processes must still be ended, as after a reboot of the launcher."""
    end = supervisor.read(run_dir, supervisor.END) or {}
    return supervisor.read(run_dir, supervisor.RUN) is not None and not end.get("swept")


def _sweep_again(run_dir: str) -> None:
    """Let nodes be looked through again that did not answer at the end of the job, or whose processes did not end."""
    end = supervisor.read(run_dir, supervisor.END) or {}
    if end.get("left"):
        supervisor.write_end(run_dir, {**end, "swept": False})


def _end_facts(run_dir: str, desired: State, end: Mapping[str, Any], state: str) -> dict[str, object]:
    facts = {"ended": end.get("ended"), "exit_code": end.get("exit_code"), "left": end.get("left", {})}
    if state == "died":
        output = job_output.shown_output(run_dir, LOG_BYTES)
        silent = [node for node, fault in facts["left"].items() if not fault.startswith(supervisor.UNENDED)]
        cause = cause_of(output, end.get("exit_code"), desired["nodes_of_ranks"], silent=silent)
        sentence = cause.sentence
        sentence += no_space(run_dir) if end.get("full") or supervisor.is_full(run_dir) else ""
        sentence += of(sentence, run_dir)
        facts.update(why=sentence, rank=cause.rank, node=cause.node, last_lines=list(cause.last_lines))
        facts["machine"] = cause.is_of_machine
    return facts


class TrainingJob:
    """The job of one run directory as a subject of the runner."""

    name = "training job"

    def __init__(self, params: Params) -> None:
        self._params = params
        self._run_dir = str(params["run_dir"])
        self.target = f"{socket.gethostname()}:{self._run_dir}"

    def read(self) -> dict[str, Any]:
        """Return the state from the run directory."""
        return {**job_state(self._run_dir)}

    def plan(self, state: State) -> Plan:
        """Return the plan to start or to stop; a run directory never contains a second job."""
        before = str(state["state"])
        if self._params["state"] == "stopped":
            if before == "waiting":
                remedy = "set training_backend to that of the run, or cancel the job there"
                raise Refused(self.target, "stop the job", "it waits in the queue of a batch system", remedy)
            is_left = before in ("died", "stopped") and (bool(state.get("left")) or _is_unswept(self._run_dir))
            if before == "running" or is_left:
                self._must_be_own("stop the job")
            ended = "stopped" if is_left or before not in ("absent", *ENDED) else before
            before = "died" if is_left else before
            return Plan(before={"state": before}, after={"state": ended})
        if before == "absent":
            self._job()
            self._must_be_own()
            return Plan(before={"state": before}, after={"state": "waiting" if self._params["queued"] else "running"})
        self._must_be_same()
        if before not in STARTED:
            raise self._refused(f"its job has {before}" + (f": {state['why']}" if "why" in state else ""))
        return Plan(before={"state": before}, after={"state": before})

    def apply(self, plan: Plan) -> None:
        if plan.after["state"] == "stopped":
            self._stop()
        else:
            self._start()

    def _must_be_same(self) -> None:
        desired = supervisor.read(self._run_dir, supervisor.DESIRED) or {}
        differs = [key for key in REQUESTED if desired.get(key) != self._params[key]]
        if differs:
            raise self._refused(f"it contains a job with another {', '.join(differs)}")

    def _must_be_own(self, tried: str = "start a job") -> None:
        """Refuse a run directory in which another user could replace the program."""
        cause = exposed(self._run_dir)
        if cause:
            remedy = "run this as the user of the job, or specify a run directory that only its user can change"
            raise Refused(self.target, tried, cause, remedy)

    def _refused(self, cause: str) -> Refused:
        return Refused(self.target, "start a job", cause, "give each job a separate run directory: set training_name")

    def _job(self, is_to_start: bool = False) -> mpirun.MpirunJob:
        params = self._params
        given = [pair for key in ENVIRONMENTS for pair in params[key].items()]
        environment = {str(name): str(value) for name, value in given}
        try:
            ports = daemon_ports.arguments(params.get("daemon_ports") or "") if is_to_start else []
            return mpirun.job_of(  # the remote shell runs nothing here # nosec B604
                params["command"],
                params["hosts"],
                params["ranks"],
                environment={**environment, "DML_RECORDS": self._run_dir},
                arguments=(*ports, *params["mpirun_arguments"]),
                mpirun=params["mpirun"],
                # In an allocation, mpirun knows its nodes.
                shell="" if params["queued"] else params["daemon_shell"] or params["remote_shell"],
            )
        except mpirun.LaunchError as error:
            raise Refused(self.target, "start a job", str(error)) from error

    def _start(self) -> None:
        try:
            self._claim()
        except FileExistsError as error:
            raise self._refused("another job has just been started in it") from error
        except OSError as error:
            raise Failed(self.target, "create the run directory", os_words(error, self._run_dir)) from error
        if not self._params["queued"]:
            self._launch()

    def _claim(self) -> None:
        os.makedirs(self._run_dir, mode=0o755, exist_ok=True)
        self._must_be_own()
        job, run_id, script = self._job(is_to_start=True), uuid.uuid4().hex, self._script_facts()
        desired = {
            **{key: self._params[key] for key in (*REQUESTED, *NOTED)},
            **script,
            "id": run_id,
            "queued": self._params["queued"],
            # A batch system ends the processes of its jobs itself.
            "nodes": [] if self._params["queued"] else list(dict.fromkeys(job.nodes_of_ranks)),
            "nodes_of_ranks": job.nodes_of_ranks,
            "here": _own_names(),
            "mpirun_command": mpirun.command_of(job, supervisor.MARK, os.geteuid() == 0, run_id),
            "mpirun_environment": dict(job.environment),
        }
        claim, program = (os.path.join(self._run_dir, name) for name in (supervisor.DESIRED, PROGRAM))
        _write_new(claim, json.dumps(desired, indent=1, sort_keys=True), 0o600)
        try:
            # Write neither to the file of an earlier attempt nor to the target of a link.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(program)
            _write_new(program, _program_text(), 0o644)
        except OSError:
            os.unlink(claim)
            raise

    def _script_facts(self) -> dict[str, object]:
        try:
            return _script_facts(self._params["script"])
        except OSError as error:
            remedy = "the script must be on every node; training_folder copies it there"
            raise Refused(self.target, f"read the script {error.filename}", str(error.strerror), remedy) from error

    def _launch(self) -> None:
        program = [sys.executable, os.path.join(self._run_dir, PROGRAM), "run", self._run_dir]
        # A launcher may be the controller itself; the ranks do not need its vCenter account.
        with subprocess.Popen(  # noqa: S603 # a program of the collection
            program,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=without_account(os.environ),
            start_new_session=True,
        ) as process:
            answering: Any = process.stdout
            ready, _writable, _odd = select.select([answering], [], [], self._params["start_timeout"])
            answer = _answer(process) if ready else {"error": "the supervisor did not answer"}
            # The supervisor continues to run: the module does not wait for its end.
            process.returncode = 0
        if "error" in answer:
            # No job ran: the directory is free for another attempt.
            os.unlink(os.path.join(self._run_dir, supervisor.DESIRED))
            raise Failed(self.target, f"start {self._params['mpirun']}", answer["error"])

    def _stop(self) -> None:
        run = supervisor.read(self._run_dir, supervisor.RUN) or {}
        if self._params["by"]:
            # A full disk must not keep the job alive.
            with contextlib.suppress(OSError):
                supervisor.write(self._run_dir, STOP_REQUEST, {"by": self._params["by"]})
        if _is_supervised(run):
            supervisor.send(run["supervisor"]["pid"], run["supervisor"]["start"], signal.SIGTERM)
        else:
            _sweep_again(self._run_dir)
        deadline = time.monotonic() + self._params["stop_timeout"]
        while job_state(self._run_dir)["state"] == "running" or _is_unswept(self._run_dir):
            if time.monotonic() > deadline:
                raise TimedOut(self.target, "stop the job", f"it still runs after {self._params['stop_timeout']} s")
            # The supervisor may have been killed, before or after the signal.
            if not _is_supervised(run):
                program = [sys.executable, os.path.join(self._run_dir, PROGRAM), "end", self._run_dir]
                patience, environment = self._params["stop_timeout"], without_account(os.environ)
                subprocess.run(program, check=False, timeout=patience, env=environment)  # noqa: S603 # as above
            time.sleep(supervisor.LOOK_SECONDS)
        left = job_state(self._run_dir)["left"]
        if left:
            faults = "; ".join(f"{node}: {fault}" for node, fault in left.items())
            raise Failed(self.target, "make sure that no process is left", faults, "check these nodes manually")


def _write_new(path: str, text: str, mode: int) -> None:
    """Write a new file completely, or remove it: a partial claim would block the run directory for every job."""
    handle = os.open(path, WRITE_NEW, mode)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        os.unlink(path)
        raise OSError(error.errno, error.strerror, path) from error


def _answer(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Return the answer of the supervisor, which it prints when the job has started or has failed to start."""
    line = process.stdout.readline() if process.stdout else b""
    if line:
        return dict(json.loads(line))
    errors = process.stderr.read().decode("utf-8", "replace").strip().splitlines() if process.stderr else []
    return {"error": errors[-1] if errors else "the supervisor ended without an answer"}


def _script_facts(script: str | None) -> dict[str, object]:
    """Return the checksum of the training script, and the commit of its folder if that is a git repository."""
    if not script:
        return {"script_sha256": None, "script_git": None}
    with open(script, "rb") as file:
        checksum = hashlib.sha256(file.read()).hexdigest()
    return {"script_sha256": checksum, "script_git": commit_of(os.path.dirname(os.path.abspath(script))) or None}


def _own_names() -> list[str]:
    name = socket.gethostname()
    return sorted({name, name.partition(".")[0], socket.getfqdn()})


def _program_text() -> str:
    """Return the source of the supervisor, from the archive in which Ansible packed it."""
    loader: Any = supervisor.__loader__
    text = loader.get_source(supervisor.__name__)
    if not text:
        raise CollectionError(PROGRAM, "read the supervisor's source", "the loader of this module does not provide it")
    return str(text)


def of(sentence: str, run_dir: str) -> str:
    """Return the remedy for the cause of a job's end, as the rest of a sentence; empty if unknown."""
    work, missing = os.path.join(run_dir, WORK), _NO_MODULE.search(sentence)
    if not missing or not os.path.isdir(work):
        return ""
    name = missing[1]
    folder = _folder_with(work, name)
    if folder:
        path = os.path.relpath(folder, work)
        return (
            f"; your folder has {path}/{name}: set PYTHONPATH={path} in training_environment, or install it with the "
            "line . in requirements.txt"
        )
    return f"; add the package that has the module {name} to requirements.txt in your folder"


def no_space(run_dir: str) -> str:
    """Return the full file system that contains a run directory, and its size."""
    space, path = os.statvfs(run_dir), os.path.realpath(run_dir)
    while not os.path.ismount(path):
        path = os.path.dirname(path)
    size = space.f_blocks * space.f_frsize / 1e6
    return f"; no space left on {socket.gethostname()}:{run_dir}, whose file system {path} has {size:.1f} MB"


def _folder_with(work: str, name: str) -> str:
    """Return the nearest folder below the copied one that contains a module; empty if none is near."""
    for above, folders, files in os.walk(work):
        if above != work and (name in folders or f"{name}.py" in files):
            return above
        if above.count(os.sep) - work.count(os.sep) >= DEEPEST:
            folders.clear()
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
    return ""
