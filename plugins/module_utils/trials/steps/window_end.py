"""The end of a maintenance window: limits, permissions, requests to pause or end it, and its hooks; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Dict

from ...core.findings import listed
from ...core.names import short_name
from ...durable.calls import Result, required
from ...durable.program import Program
from ...errors import Refused, WholeError
from ...maintenance.window_limits import limits_of
from ...training.running.busy import second
from ..evidence import prediction, restart_lines
from ..evidence.facts import Facts
from . import jobs_beside
from .holding import lock_note, lost_machines
from .trial import Trial

PAUSE, END = "pause", "end"
# The number of moments between two checks of a pause, because each check is a call to vCenter.
MOMENTS = 5
NO_END = float("inf")
DAY_MINUTES = 24 * 60
WAYS = "Run the playbook again to continue, or dml.vsphere.window with window_action=end to end it"

Value = Mapping[str, Any]
# An acknowledgement applies only to the next window. Clocks of nodes may differ by less than the second of these times.
ACK_SECONDS, CLOCK_SECONDS = 86_400.0, 300.0
READ_SECONDS = 60.0

# Why the window ends before the host (``ends``), and the accepted other jobs that started meanwhile (``jobs``).
Permission = Dict[str, Any]
EVENTS = ("start", "host", "breach", "pause", "end")
SEVERITIES = {"breach": "critical", "pause": "warning"}


class WindowPaused(BaseException):
    """The window stops here and stays open: all that it holds is released, and the next run continues it."""


def deadline(window: Value, started: float) -> tuple[float | None, str]:
    """Return the time at which a started run must end, and the option that sets it; None without one."""
    limits, ends = limits_of(window), []
    if limits.not_after:
        ends.append((_time_of(limits.not_after, started), "window_not_after"))
    if limits.max_minutes:
        ends.append((started + 60.0 * limits.max_minutes, "window_max_minutes"))
    return min(ends) if ends else (None, "")


def _time_of(text: str, started: float) -> float:
    """Return a time of day after the start, or a date with a time; without a zone it is that of the controller."""
    try:
        if "-" not in text:
            hour, minute = (int(part) for part in text.split(":"))
            return _next_time(hour, minute, started)
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError as error:
        cause, remedy = f"{text!r} is not a time", "write HH:MM, or a date and a time such as 2026-11-27T06:00+01:00"
        if text.isdecimal() and int(text) < DAY_MINUTES:
            meant = f"{int(text) // 60}:{int(text) % 60:02}"
            cause, remedy = f"YAML reads {meant} without quotes as the number {text}", f'quote it: "{meant}"'
        raise Refused("window_not_after", "read it", cause, remedy) from error


def _next_time(hour: int, minute: int, started: float) -> float:
    """Return when clocks show a time of day next. In the nights of a time change they may show it twice, or skip it."""
    begin = datetime.fromtimestamp(started).astimezone().replace(tzinfo=None)
    times = list[float]()
    for day in (0, 1):
        at = (begin + timedelta(days=day)).replace(hour=hour, minute=minute, second=0, microsecond=0)
        first, second = (at.replace(fold=fold).timestamp() for fold in (0, 1))
        times += [first, max(first, second)]
    return min(at for at in times if at > started)


def reason_to_end(p: Program, trial: Trial, stage: Value) -> str:
    """Return why the next host is not started, and which hosts remain for the next window; empty if it may start."""
    late, why = no_time(p, trial, stage), _no_stall(trial, stage)
    return late or (ended(trial.facts, why) if why else "")


def no_time(p: Program, trial: Trial, stage: Value) -> str:
    """Return why a host is not started, or not continued by a later controller before it leaves service."""
    if trial.host_in_time == stage["host"]:
        return ""
    why = _no_time(trial, stage, p.now())
    trial.host_in_time = "" if why else stage["host"]
    return ended(trial.facts, why) if why else ""


def ended(facts: Facts, why: str) -> str:
    """Return the progress of a window that ends before the next host."""
    return f"{_progress(facts)}: {why}. The next run begins with the remaining hosts"


def _no_time(trial: Trial, stage: Value, now: float) -> str:
    until, option = deadline(trial.settings["window"], trial.started)
    if until is None:
        return ""
    measured = prediction.attended(trial.facts.finished_changes) or trial.earlier
    seconds = prediction.host_seconds(trial.settings["window"], stage, measured, of_others=max)
    if now + seconds <= until:
        return ""
    needs = f"{stage['host']} needs about {seconds / 60:.0f} min"
    return f"{needs}, and the window ends at {prediction.clock(until)} ({option})"


def _no_stall(trial: Trial, stage: Value) -> str:
    most = limits_of(trial.settings["window"]).max_stall_s
    cost = (trial.facts.judged or {}).get("cost")
    spent = cost["stalled_s"] if cost else 0.0
    stuns = sum(float(move.get("stun_s") or 0.0) for move in stage["moves"])
    if not most or spent + stuns <= most:
        return ""
    adds = f"{stage['host']} adds about {stuns:.0f} s"
    return f"the job stood still for {spent:.0f} s, {adds}, and window_max_stall_s is {most:.0f}"


def limits_in_words(window: Value, started: float) -> list[str]:
    """Return the limits of a window, each with its effect."""
    until, option = deadline(window, started)
    left = "no host is started that would exceed it; the others remain for the next window"
    found = [f"end: {prediction.clock(until)} ({option}); {left}"] if until is not None else []
    most = limits_of(window).max_stall_s
    found += [f"stall: {most:.0f} s in all (window_max_stall_s); {left}"] if most else []
    return [*found, "breach: the host in progress is finished and returned, and no other host is changed"]


def attend(p: Program, trial: Trial) -> str:
    """Wait while a pause is requested; return why the window ends now, empty if it continues; or raise WindowPaused."""
    if trial.site.must_pause():
        raise WindowPaused
    request = _request(trial)
    if request["request"] == PAUSE:
        p.say(f"{request['requester']} requested a pause: the window waits for resume or end")
        request = p.wait(lambda: _after_pause(trial), NO_END)
        p.say("" if request["request"] else "the window goes on")
        # Its job may have died meanwhile.
        trial.is_current, trial.resumed = False, p.now()
    return ended(trial.facts, f"{request['requester']} requested the end") if request["request"] == END else ""


def _after_pause(trial: Trial) -> dict[str, Any]:
    """Return the request after the pause; empty while the pause lasts."""
    if trial.site.must_pause():
        raise WindowPaused
    trial.polls += 1
    request = _request(trial) if trial.polls % MOMENTS == 0 else {"request": PAUSE}
    return {} if request["request"] == PAUSE else request


def _request(trial: Trial) -> dict[str, object]:
    """Return the request in the record of the lock, which is renewed with the progress of the window."""
    facts = trial.facts
    hosts = facts.settings["window"]["hosts"]
    note = lock_note(len(hosts) - len(facts.waiting_hosts), hosts)
    state: dict[str, Any] = trial.of_cluster("cluster_lock", **note)["state"]
    return {"request": state.get("request") or "", "requester": state.get("requester") or "somebody"}


def _progress(facts: Facts) -> str:
    left, hosts = facts.waiting_hosts, facts.settings["window"]["hosts"]
    return f"{len(hosts) - len(left)} of {len(hosts)} hosts are changed, {len(left)} left ({', '.join(left) or 'none'})"


def paused(facts: Facts) -> str:
    """Return the sentence about a window that stops and stays open, with the ways to continue."""
    taken = restart_lines.taken(facts)
    state = f"the window is paused: {_progress(facts)}. No host is out of service. {WAYS}."
    return f"Cluster {facts.cluster}: {state}{f' {taken}' if taken else ''}"


def interrupted(facts: Facts) -> str:
    """Return the state that a run leaves when it ends in the middle of a host, and the ways to continue."""
    at_hand = f"{facts.at_hand} may be out of service, " if facts.at_hand else ""
    return (
        f"Cluster {facts.cluster}: the window was interrupted: {_progress(facts)}; {at_hand}the lock of the cluster is "
        f"held, and DRS does not move the workers until the next run. {WAYS}. {restart_lines.taken(facts)}"
    ).rstrip()


def require_possible(p: Program, trial: Trial) -> None:
    """Refuse a new window that could not change any host, before it takes the lock."""
    if p.written("job") is not None:
        return
    p.say("checks the end of the window, and the acknowledgement of the owner of the job")
    reason = p.ensure(partial(over, trial.settings["window"], trial.started, p.now())) or p.ensure(
        partial(unacknowledged, p, trial)
    )
    if reason:
        raise WholeError(f"Cluster {trial.facts.cluster}: no window is opened: {reason}.")


def over(window: Value, started: float, now: float) -> str:
    """Return why a window that starts now is over already; empty if it is not."""
    until, option = deadline(window, started)
    return f"its end, {prediction.clock(until)} ({option}), is over" if until is not None and until <= now else ""


def permission(p: Program, trial: Trial, stage: Value) -> Permission:
    """Return whether the site and the owner of the job let a host be emptied; stop rules and limits are others."""
    jobs = present_jobs(p, trial, stage)
    why = changed_machines(p, trial) or unacknowledged(p, trial)
    why = why or jobs_beside.refusal_of_present(trial.facts.window, jobs)
    known = {job["run_dir"] for job in trial.facts.other_jobs}
    new = [job for job in jobs if job["run_dir"] not in known]
    return {"ends": ended(trial.facts, why) if why else "", "jobs": new}


def heed(trial: Trial, read: Permission) -> None:
    """End the window before the host, or watch and judge the jobs that started meanwhile too."""
    trial.facts.stopped = trial.facts.stopped or read["ends"]
    if not trial.facts.stopped:
        trial.watch_too(read["jobs"])


def present_jobs(p: Program, trial: Trial, stage: Value) -> list[dict[str, object]]:
    """Return the other jobs that run now on workers which this host moves."""
    p.say("reads the training jobs on the workers")
    # A guest may be slow to answer right after its move.
    read = p.wait(partial(_readable, trial), READ_SECONDS) or _read(trial)
    if read["unread"]:
        raise WholeError(read["unread"])
    reach = {short_name(node["name"]): node.get("reach") for node in trial.settings["nodes"]}
    found = jobs_beside.on_workers(read["jobs"], [move["worker"] for move in stage["moves"]], trial.facts.at)
    return [
        {**job, "watched": [{"name": name, "reach": reach.get(short_name(name)) or []} for name in job["nodes"]]}
        for job in found
    ]


def _read(trial: Trial) -> Result:
    return required(trial.site.jobs_on_workers(trial.settings))


def _readable(trial: Trial) -> Result:
    """Return the jobs on the workers; empty while the jobs of a worker are not known."""
    read = _read(trial)
    return {} if read["unread"] else read


def changed_machines(p: Program, trial: Trial) -> str:
    """Return which workers were removed or built again since the window began; empty if none was."""
    lost = lost_machines(p, trial)
    return f"{listed(lost)}: removed or built again since the window began" if lost else ""


def unacknowledged(p: Program, trial: Trial) -> str:
    """Return why the owner of the job does not agree; empty if they do, or if no agreement is required.

    An acknowledgement is at most a day older than the start of this run, or than the end of its last pause.
    """
    if not trial.facts.window.get("requires_ack") or trial.facts.outlives_job:
        return ""
    p.say("looks for the acknowledgement of the owner of the job")
    at = trial.job.acknowledged()
    reason = "the owner of the job has not acknowledged the window"
    if at > p.now() + CLOCK_SECONDS:
        reason = f"the acknowledgement of the owner of the job is dated in the future, {second(at)}"
    elif at and at < max(trial.started, trial.resumed) - ACK_SECONDS:
        reason = f"{reason} within the last day: its last acknowledgement is of {second(at)}"
    elif at and trial.site.last_change() > at:
        reason = f"the acknowledgement of the owner of the job, {second(at)}, was for a window that has changed hosts"
    elif at:
        return ""
    return f"{reason}: {trial.job.ack}"


def notify(p: Program, trial: Trial, event: str, about: str) -> None:
    """Tell the hooks of the user about an event. A hook that fails or hangs does not stop the window."""
    for number, hook in enumerate(trial.facts.window.get("notify") or [], start=1):
        if event not in (hook.get("events") or EVENTS):
            continue
        key = "notice", event, trial.facts.round, number
        called = p.once(key, partial(trial.site.notify, hook, _text(trial, hook, event, about)))
        p.say(f"window_notify {number}: {called['msg']}" if called.get("msg") else "")


def notify_of_pause(trial: Trial) -> None:
    """Tell the hooks that the window stops and stays open; each pause is a new event, so nothing is written."""
    for hook in trial.facts.window.get("notify") or []:
        if "pause" in (hook.get("events") or EVENTS):
            trial.site.notify(hook, _text(trial, hook, "pause", ", ".join(trial.facts.waiting_hosts)))


def _text(trial: Trial, hook: Mapping[str, Any], event: str, about: str) -> str:
    facts = trial.facts
    content = {
        "event": event,
        "about": about,
        "cluster": facts.cluster,
        "folder": trial.site.folder,
        "done": [change["host"] for change in facts.finished_changes],
        "left": facts.waiting_hosts,
        "verdict": (facts.judged or {}).get("verdict"),
    }
    return f"{json.dumps(in_format(hook.get('format') or 'json', content))}\n"


def in_format(name: str, content: Mapping[str, Any]) -> object:
    """Return an event in the format of its receiver: as it is, as a message of a chat, or as an alert."""
    if name == "json":
        return content
    done, left = len(content["done"]), len(content["left"])
    text = (
        f"Window of cluster {content['cluster']}: {content['event']}: {content['about']} ({done} changed, {left} left)"
    )
    if name == "slack":
        return {"text": text}
    severity = SEVERITIES.get(content["event"], "info")
    labels = {"alertname": "MaintenanceWindow", "cluster": content["cluster"], "event": content["event"]}
    annotations = {"summary": text, "folder": content["folder"]}
    return [{"labels": {**labels, "severity": severity}, "annotations": annotations}]
