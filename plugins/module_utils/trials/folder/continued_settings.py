"""The settings with which an unfinished test, window or observation continues: only named ones may differ; pure."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ...durable.program import START
from ...errors import Refused
from ...maintenance.window_limits import LIMITS
from ...slurm.job_states import is_named

Settings = Mapping[str, Any]
TEST, WINDOW, OBSERVATION = "vMotion test", "maintenance window", "observation"
ARTICLES = {TEST: "a vMotion test", WINDOW: "a maintenance window", OBSERVATION: "an observation"}
PLAYBOOKS = {
    TEST: "dml.vsphere.vmotion_test",
    WINDOW: "dml.vsphere.hosts with under_training=true",
    OBSERVATION: "dml.vsphere.observe",
}
# The settings that take effect at once: each is read when it is used, and decides nothing that was decided already.
# The cluster is that of the start, perhaps under another name: the folder is found by its id.
PRESENT = ("cluster", "warm_timeout", "move_timeout", "look_timeout")
PRESENT_IN_WINDOW = (
    *LIMITS,
    *("accepted", "max_out_of_service", "other_jobs", "accept_other_jobs", "ignored_jobs", "unread_is_idle"),
    *("notify", "requires_ack", "maintenance_timeout", "reboot_timeout", "take_over", "power_off"),
    *("checkpoint_wait", "checkpoint_signal", "accept_repeat_s"),
)
# The key under which a window by restart writes where the next attempt of its job runs.
STARTED_AGAIN = "started again"
# Windows of earlier versions have no such setting.
DEFAULTS = {"by": "move"}
# The settings that may differ and stay as they were, with the reason. All others must be equal.
KEPT = {
    "window": "its settings are compared one by one",
    "observe": "its settings are compared one by one",
    **dict.fromkeys(("run_dir", "launcher", "kubernetes", "slurm"), "they name the job, which is compared as one"),
    **dict.fromkeys(("records", "user", "restart"), "they belong to the job"),
    "nodes": "they are the addresses of the job, which the watch of its records has already",
    **dict.fromkeys(("ends_job", "finish_timeout"), "they follow from whether the first run started the job"),
    "site": "it is a sentence on the page",
}
KEPT_IN_WINDOW = {
    "settings": "it is the decision about the others",
    "hosts": "they are those that still differ, and the run names each that differs at its end",
    "reboots": "they belong to the hosts",
}
# The values of window_settings, with which a user decides about a window that began with other settings.
OLD, NEW = "old", "new"
TO_FINISH = "run again with window_settings=old to finish it as it began"
EITHER = (
    f"{TO_FINISH}, or with window_settings=new to end it and begin a window with the new ones, in which the changed "
    "hosts are planned again"
)
END_FIRST = f"{TO_FINISH}, or end it with dml.vsphere.window and window_action=end, and run again"
# The job of the earlier test may have ended, and cannot be named then.
WITHOUT_JOB = "run again without the name of a job to finish it, or move its folder elsewhere to abandon it"
EARLIER_ONES = "run again with the earlier ones to finish it, or move its folder elsewhere to abandon it"


def refuse_other(folder: Path, before: Settings, requested: Settings) -> None:
    """Refuse to continue a test of another kind, around another job, or with other settings."""
    tried, kinds = "continue the run in it", (kind(before), kind(requested))
    if kinds[0] != kinds[1]:
        remedy = f"finish it with the playbook {PLAYBOOKS[kinds[0]]}, or move its folder elsewhere to abandon it"
        raise Refused(str(folder), tried, f"it has an unfinished {kinds[0]}, not {ARTICLES[kinds[1]]}", remedy)
    decision, job = (requested.get("window") or {}).get("settings"), _another_job(before, requested)
    changed = [*filter(None, [job]), *_changes(before, requested)]
    if changed and decision != OLD and (job or decision != NEW):
        of_window, of_other = (END_FIRST, WITHOUT_JOB) if job else (EITHER, EARLIER_ONES)
        remedy = of_window if kinds[0] == WINDOW else of_other
        raise Refused(str(folder), tried, f"its {kinds[0]} began with other settings: {'; '.join(changed)}", remedy)


def with_next_attempt(values: Settings) -> Settings:
    """Return the settings with which a run began, around the next attempt of its job if its window has started that."""
    started = values.get(STARTED_AGAIN) or {}
    place = {key: started[key] for key in ("run_dir", "launcher", "kubernetes") if started.get("run_dir")}
    return {**values[START], **place}


def is_replaced(before: Settings, requested: Settings) -> bool:
    """Return whether the user wants to replace this unfinished window with one that has other settings."""
    return bool(_changes(before, requested)) and (requested.get("window") or {}).get("settings") == NEW


def continued(before: Settings, requested: Settings) -> dict[str, Any]:
    """Return the settings with which a test continues: a user can accept a stop rule so that a window goes on."""
    window = {key: requested["window"][key] for key in PRESENT_IN_WINDOW if key in requested["window"]}
    present = {key: requested[key] for key in PRESENT if key in requested}
    return {**before, **present, "window": {**before["window"], **window} if before["window"] else {}}


def kind(settings: Settings) -> str:
    """Return whether settings are those of a test, of a window or of an observation."""
    return WINDOW if settings.get("window") else OBSERVATION if settings.get("observe") else TEST


def _changes(before: Settings, requested: Settings) -> list[str]:
    """Return the settings that have changed, each with both values."""
    found = _differing(before, requested, {*PRESENT, *KEPT}, is_complete=False)
    found += _differing(before.get("observe") or {}, requested.get("observe") or {}, (), is_complete=True)
    allowed = {*PRESENT_IN_WINDOW, *KEPT_IN_WINDOW}
    return found + _differing(before.get("window") or {}, requested.get("window") or {}, allowed, is_complete=True)


def _differing(before: Settings, requested: Settings, allowed: Collection[str], *, is_complete: bool) -> list[str]:
    """Return the settings that differ, except the allowed ones; unless both are complete, only those that both name."""
    if not before or not requested:
        return []
    names = {**before, **requested} if is_complete else [name for name in before if name in requested]
    before, requested = (
        ({**DEFAULTS, **settings} for settings in (before, requested)) if is_complete else (before, requested)
    )
    pairs = {name: (_text(before.get(name)), _text(requested.get(name))) for name in names if name not in allowed}
    return [f"{name} was {old} and is {new} now" for name, (old, new) in pairs.items() if old != new]


def _another_job(before: Settings, requested: Settings) -> str:
    """Return the job of the start and the one that this run names; empty if it names none, or the same one."""
    was, now = _job(before), _job(requested)
    slurm = [(settings.get("slurm") or {}).get("job") for settings in (before, requested)]
    if slurm[0] and is_named(str(slurm[0]), slurm[1]):
        return ""
    return f"its job was {was} and is {now} now" if was and now and was != now else ""


def _job(settings: Settings) -> str:
    there = settings.get("kubernetes") or {}
    if there:
        return f"{there.get('name')} in namespace {there.get('namespace') or 'default'}"
    if settings.get("slurm"):
        return f"job {settings['slurm'].get('job')} in Slurm"
    return f"{settings['run_dir']} on {settings.get('launcher')}" if settings.get("run_dir") else ""


def _text(value: object) -> str:
    """Return a setting as text; a value of the command line is text already, such as ``True``."""
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        value = value.lower() == "true"
    return json.dumps(value or None, sort_keys=True)
