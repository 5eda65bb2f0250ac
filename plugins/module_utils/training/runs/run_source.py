"""The options of a run that follows, resumes or repeats an earlier one, from the manifest of that run; pure."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import cast

from ...errors import Refused
from ..results import manifest
from ..results.manifest import Manifest, name_of_attempt
from ..running import busy
from . import node_setup
from .controller_site import TrainingCalls
from .rank_words import split_command
from .training_options import Options
from .training_run import TrainingFailed, TrainingRun, request_of

# The options that belong to a program, and the further ones of a run that is only followed.
PROGRAM = (
    *("nodes", "launcher", "command", "folder", "outputs", "framework", "options", "transport", "ranks_per_node"),
    *("steps", "steps_by", "warmup", "gradient_bytes", "data", "data_sha256", "runs"),
)
FOLLOWED = (*PROGRAM, "stack", "nccl", "attempts")
# With one of these on the command line, the run has its own program.
GIVEN = ("command", "folder", "options")


def source_name(o: Options) -> str:
    """Return the name of the run to resume or to repeat; empty without one."""
    if o["resume"] and o["repeat"]:
        cause = f"training_resume is {o['resume']} and training_repeat is {o['repeat']}"
        raise Refused("training_resume", "choose an earlier run", cause, "set one of them")
    return str(o["resume"] or o["repeat"])


def require_source(o: Options, source: Manifest, *, takes_program: bool) -> None:
    """Refuse to resume a run that has not ended here, and to run a program that only a node has reported."""
    name = str(source["name"])
    if takes_program:
        require_variables(o, source)
    if o["resume"] and "end" not in source:
        raise TrainingFailed(
            f"The training run {name} has no end in its manifest, so its outputs may be incomplete here. Follow it "
            f"with training_name={name}, or stop it with the playbook dml.vsphere.stop, then resume."
        )
    if o["resume"] and source.get("folder") and "outputs" not in source["end"] and "outputs" not in o["accept"]:
        raise TrainingFailed(
            f"The outputs of the training run {name} were not copied here after its end, so its newest checkpoint may "
            f"be missing. Follow the run with training_name={name}, which copies them, then resume. If they are lost, "
            """resume from those that are here: -e '{"training_accept": ["outputs"]}'."""
        )
    if takes_program and source.get(manifest.REPORTED) and "manifest" not in o["accept"]:
        raise TrainingFailed(
            f"Another controller started the training run {name}: {o['results']}/{name}/manifest.json is a copy of the "
            "manifest on its launcher, whose user could change the command. Set training_folder and training_command, "
            """or read the copy and accept its command: -e '{"training_accept": ["manifest"]}'."""
        )


def require_owner(o: Options, own: Manifest) -> None:
    """Refuse to mix the files of a run of another user with those of an own run of the same name."""
    by = str(own.get("asked_by") or "")
    if o["started_by"] and by and not busy.is_by(o["started_by"], by):
        place, remedy = f"{o['results']}/{own['name']}", "set training_results to another folder"
        raise Refused(place, f"use it for the run of {o['started_by']}", f"it has the run of {by}", remedy)


def require_variables(o: Options, source: Manifest) -> None:
    """Refuse a run without the variables of the earlier one: their values may be secrets, so no manifest has them."""
    before = (source.get("asked") or {}).get("environment") or {}
    missing = sorted(set(before) - set(o["environment"]))
    if missing and "environment" not in o["accept"]:
        raise TrainingFailed(
            f"The training run {source['name']} had {', '.join(missing)} in training_environment, this command does "
            "not. Set the same variables as for that run, or go without them: "
            """-e '{"training_accept": ["environment"]}'."""
        )


def require_same_program(calls: TrainingCalls, run: TrainingRun, results: Mapping[str, Manifest]) -> None:
    """Refuse a table of runs that finished with another program, other data or other settings than a run has now."""
    now = {**request_of(run.o), "data": node_setup.data_of(calls, run).sha256}
    if run.o["folder"]:
        now["code"] = calls.files.code_checksum(run.o["folder"], node_setup.left_out(run))
    for name, known in results.items():
        code = (known.get("code") or {}).get("sha256")
        before = {**(known.get("asked") or {}), "data": str(known.get("data_sha256") or ""), "code": code}
        differing = manifest.differing(before, now, sorted({*before, *now} - {"command", *run.o["accept"]}))
        if differing:
            raise TrainingFailed(
                f"The training run {name} finished with another {', '.join(differing)} than this command has, so a "
                "table would compare different programs: set another training_name, or accept it: "
                f"-e '{{\"training_accept\": {json.dumps(differing)}}}'."
            )


def with_program(o: Options, source: Manifest, given: Collection[str] = ()) -> Options:
    """Return the options of a run that takes the program of an earlier one, except those ``given`` with the command.

    The launcher of the earlier run need not be one of other nodes.
    """
    own = {*given, *(("launcher",) if "nodes" in given else ())}
    options = {**o, **_of(source, tuple(name for name in PROGRAM if name not in own))}
    return cast("Options", options) if "runs" in own else with_place(cast("Options", options), source)


def with_place(o: Options, known: Manifest) -> Options:
    """Return options with the folder on the nodes that has the folder of a run, which a node alone cannot choose."""
    is_own = "run_dir" in known and not known.get(manifest.REPORTED)
    return {**o, "runs": posixpath.dirname(known["run_dir"])} if is_own else o


def with_followed(o: Options, known: Manifest) -> Options:
    """Return the options of a run that was started before, and that is only followed."""
    backend = known.get("backend") or "mpi"
    if backend != o["backend"]:
        raise TrainingFailed(
            f"The training run {known['name']} has the backend {backend}, but the backend of this command is "
            f"{o['backend']}. Set the same backend and its settings as for the run."
        )
    return with_place(cast("Options", {**o, **_of(known, FOLLOWED), "asked": known.get("asked") or {}}), known)


def latest_attempt(read: Callable[[str], Manifest], name: str) -> Manifest:
    """Return the manifest of the latest attempt of the named run; empty without one.

    A later attempt that started before the run belongs to an earlier run with this name.
    """
    own = read(name)
    first, number = own.get("first_attempt"), int(own.get("attempt") or 1)
    last = own
    while own:
        number += 1
        found = read(name_of_attempt(str(first), number))
        if found.get("first_attempt") == first and found["started"] > own["started"]:
            last = found
        elif number > int(own.get("attempts") or 1):
            # A maintenance window starts attempts beyond those that the user allows for failures.
            break
    return last


def taken_up(run: TrainingRun, known: Manifest) -> TrainingRun:
    """Return a run that has started before; its next attempt has the same program, from the kept archive."""
    return replace(
        run,
        known=known,
        source={**known, "takes_program": True},
        requirements=str(known.get("requirements") or ""),
        first=str(known.get("first_attempt") or run.name),
        number=int(known.get("attempt") or 1),
    )


def is_taken_up(o: Options, own: Manifest) -> bool:
    """Return whether a run with several attempts is started again with its program: its remaining attempts follow."""
    program = {"command": split_command(o["command"]), **{key: o[key] for key in ("folder", "framework", "options")}}
    return int(own.get("attempts") or 1) > 1 and all(own.get(key) == value for key, value in program.items())


def _of(known: Manifest, names: tuple[str, ...]) -> dict[str, object]:
    steps_by = {"steps_by": "auto"} if "steps_by" in names else {}
    return {**steps_by, **{name: value for name, value in known.items() if name in names}}
