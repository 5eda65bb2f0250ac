"""The program of a maintenance window: change hosts one after another while a job trains, and judge the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from ...core.findings import listed
from ...durable.calls import required
from ...durable.program import EndRequested, Program
from ...errors import CollectionError
from ...hosts.change_hosts import HostChangeOptions, change_hosts, check_stop_rules, return_to_service
from ...hosts.image_plan import commit_image, plan_image, with_image
from ..evidence import move_lines
from ..evidence.outcome import broken
from ..evidence.prediction import predicted
from ..steps import jobs_beside
from ..steps.ending import keep_unfinished
from ..steps.holding import reservation_in_slurm
from ..steps.judgement import judge, review
from ..steps.opening import planned
from ..steps.trial import Trial
from ..steps.wave_of_moves import start_round, wave
from ..steps.window_end import attend, ended, heed, no_time, notify, permission, reason_to_end, require_possible
from .around_job import around_job

# The options of a window that are those of a change; the hosts are not.
NAMES = {field.name for field in fields(HostChangeOptions)}
# The rule that a full cluster breaks until its workers are off, or in another cluster, so that no host could leave.
OF_RUNNING_WORKERS = "gpu_slots"


def window(p: Program, trial: Trial) -> str:
    """Return why the window failed; empty if every host was changed and the job is continuous.

    A breach or an error ends the window before the next host. A host whose change failed keeps its state.
    """
    require_possible(p, trial)
    reason = around_job(p, trial, change_all) or not_as_requested(trial)
    notify(p, trial, "end", reason or "every host is changed")
    return reason


def not_as_requested(trial: Trial) -> str:
    """Return which hosts differ from the profile of this run, even if it continued an earlier one; empty if none."""
    hosts = sorted({*trial.settings["window"]["hosts"], *trial.requested.get("hosts", ())})
    planned = planned_hosts(trial, trial.requested, hosts)
    found = [f"{host['host']} ({'; '.join(host['why']) or 'it differs'})" for host in planned if host["changed"]]
    if not found:
        return ""
    return (
        f"Cluster {trial.facts.cluster}: the window is over, but these hosts differ from the requested profile: "
        f"{listed(found)}. Run again to change them."
    )


def planned_hosts(trial: Trial, window: Mapping[str, Any], hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Return the plans of hosts for the profile and the image of a window."""
    profiles = {"profile": window.get("profile") or {}, "host_profiles": window.get("host_profiles") or {}}
    planned = required(trial.site.planned("esxi_profile", {"hosts": list(hosts), **profiles}))["hosts"]
    return with_image(planned, plan_image(trial.site, trial.facts.cluster, window.get("image") or {}, hosts))


def keep_settled(p: Program, trial: Trial, number: int | str, hosts: Sequence[str]) -> None:
    """Keep those of some waiting hosts in service that others have changed."""
    settled = p.once(("settled", number), partial(settled_hosts, trial, hosts))
    trial.facts.settled += settled
    p.say(f"stays in service, because it has the profile already: {listed(settled)}" if settled else "")


def settled_hosts(trial: Trial, hosts: Sequence[str]) -> list[str]:
    """Return those hosts in service that others have changed: emptying them would stun workers for nothing."""
    try:
        planned = planned_hosts(trial, trial.settings["window"], hosts)
    except CollectionError:
        return []  # the stop rules name a host that does not respond
    return [
        host["host"]
        for host in planned
        if not host["changed"] and not host.get("needs") and not host.get("out_of_service")
    ]


def change_all(p: Program, trial: Trial) -> None:
    """Change each host. The others are planned again after each change, because the workers have moved."""
    facts = trial.facts
    trial.earlier = p.once("earlier windows", trial.site.earlier_changes)
    image = options_of(trial).image
    if image:
        p.say(f"sets the image of cluster {facts.cluster}")
        p.once("image", partial(commit_image, trial.site, facts.cluster, image))
    try:
        with reservation_in_slurm(p, trial), jobs_beside.watched(p, trial):
            change_each(p, trial)
            bring_back(p, trial)
    finally:
        keep_unfinished(p, facts, [[facts.at_hand]] if facts.at_hand else [])
    if facts.stopped and ((facts.judged or {}).get("breaches") or broken(facts.other_jobs)):
        notify(p, trial, "breach", facts.stopped)


def change_each(p: Program, trial: Trial) -> None:
    """Change one host after another, as long as no breach, limit, request or stop rule ends the window."""
    facts = trial.facts
    while facts.moving_hosts and not facts.stopped:
        number = facts.round + 1
        facts.stopped = p.once(("requests", number), partial(requests, p, trial))
        if not facts.stopped:
            keep_settled(p, trial, number, facts.moving_hosts)
        if facts.stopped or not facts.moving_hosts:
            break
        plan = planned(p, trial, ("plan", number), facts.moving_hosts)
        stage = plan["stages"][0]
        if number == 1:
            facts.prediction = p.once("prediction", partial(predicted, trial.settings["window"], plan, trial.earlier))
            notify(p, trial, "start", ", ".join(facts.moving_hosts))
        facts.stopped = p.once(("limits", number), partial(reason_not_to_start, p, trial, stage))
        if not facts.stopped:
            heed(trial, p.once(("permission", number), partial(permission, p, trial, stage)))
        if not facts.stopped:
            notify(p, trial, "host", stage["host"])
            empty_and_change(p, trial, plan, stage)


def bring_back(p: Program, trial: Trial) -> None:
    """Move workers back from the hosts of another cluster, unless the window has ended or they stay there."""
    facts, spare = trial.facts, trial.facts.window.get("spare") or {}
    if facts.stopped or not spare.get("return_home"):
        return
    plan = planned(p, trial, "plan of the return", [])
    start_round(p, trial, plan, plan["returns"])
    while facts.left and not facts.stopped:
        wave(p, trial, partial(attend, p, trial))


def requests(p: Program, trial: Trial) -> str:
    """Return why the window ends before its next host, by the requests to it."""
    trial.attended_round = trial.facts.round + 1
    return attend(p, trial)


def reason_not_to_start(p: Program, trial: Trial, stage: Mapping[str, object]) -> str:
    """Return why the next host is not started; a controller that did not read the requests itself reads them first."""
    is_attended = trial.attended_round == trial.facts.round + 1
    return ("" if is_attended else requests(p, trial)) or reason_to_end(p, trial, stage)


def empty_and_change(p: Program, trial: Trial, plan: Mapping[str, Any], stage: Mapping[str, Any]) -> None:
    """Move the workers of a host away, change it, and judge the job: a breach ends the window before the next host."""
    facts, host = trial.facts, stage["host"]
    began = p.once(("begin of", host), partial(begin, p, trial, host))
    start_round(p, trial, plan, stage["moves"])
    while facts.left and not facts.stopped:
        wave(p, trial, partial(why_not, p, trial, stage))
    if not may_change(p, trial, stage):
        return
    facts.at_hand = host
    # It is finished and returned even if an earlier controller left it for this one, which was asked to end the window.
    is_out = p.written(("out of service", host)) is not None
    with p.whole(is_out and not trial.is_replaced):
        # People read the facts while the host is out of service.
        p.ensure(partial(trial.site.write_facts, facts))
        changes = change_hosts(p, trial.site, [host], options_of(trial))
        attended = p.once(("attended", host), lambda: trial.started_host == host)
        facts.host_changes += [{**change, "began": began, "attended": attended} for change in changes]
        facts.at_hand = ""
    judge(p, trial)
    judge_others(p, trial, host)
    # Without a breach too, a stop rule that matches after the change of this host keeps the others in service.
    stops = "; ".join(changes[0]["stops"])
    p.say(f"after {host} returned: {stops}" if stops else "")
    if stops and facts.waiting_hosts and not facts.stopped:
        facts.stopped = ended(facts, stops)


def why_not(p: Program, trial: Trial, stage: Mapping[str, Any]) -> str:
    """Return why the workers of a host do not move now; raise Refused if a stop rule applies."""
    p.say("reads the stop rules of the cluster")
    check_stop_rules(trial.site, [stage["host"]], options_of(trial))
    return too_late(p, trial, stage)


def too_late(p: Program, trial: Trial, stage: Mapping[str, object]) -> str:
    """Return why a controller does not continue a host that another one started; empty for its own."""
    if trial.host_in_time == stage["host"]:
        return ""
    return attend(p, trial) or permission(p, trial, stage)["ends"] or no_time(p, trial, stage)


def may_change(p: Program, trial: Trial, stage: Mapping[str, Any]) -> bool:
    """Return whether an emptied host may leave service; if not, return it to service.

    An earlier controller may have taken it out of service before it died.
    """
    back = partial(return_to_service, trial.site, [stage["host"]])
    try:
        review(p, trial, stage["host"], partial(too_late, p, trial, stage))
    except EndRequested:
        back()
        raise
    if trial.facts.stopped:
        p.ensure(back)
    return not trial.facts.stopped


def begin(p: Program, trial: Trial, host: str) -> float:
    """Begin a host: the time until its return is measured if no other controller continues it."""
    trial.started_host = host
    return p.now()


def judge_others(p: Program, trial: Trial, host: str) -> None:
    """Judge the other jobs whose workers move; one that broke ends the window before the next host too."""
    facts = trial.facts
    jobs_beside.resume(p, trial, host)
    jobs_beside.judge(p, trial, host)
    hurt = broken(facts.other_jobs)
    if hurt and not facts.stopped:
        facts.stopped = ended(facts, hurt)


def options_of(trial: Trial) -> HostChangeOptions:
    """Return the options with which hosts are changed."""
    window_options = {name: value for name, value in trial.settings["window"].items() if name in NAMES}
    accepted = list(trial.settings["window"].get("accepted") or [])
    accepted += [OF_RUNNING_WORKERS] if trial.facts.spare_cluster else []
    places = move_lines.hosts_after(trial.facts.at, trial.facts.every_move)
    workers = {worker: host for worker, host in places.items() if trial.facts.ranks.get(worker)}
    known = {"cluster": trial.facts.cluster, "accepted_stops": accepted, "workers": workers}
    return HostChangeOptions(**{**window_options, **known})
