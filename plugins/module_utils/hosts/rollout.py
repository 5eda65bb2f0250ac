"""A rollout: its plan, and its program, which brings the hosts of a cluster to their profile, a few at a time; pure.

Its journal is in memory: the hosts keep the lasting state, with a note on each host that the collection took out of
service. The next run plans again, and its plan contains exactly the remaining work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Protocol, TypedDict

from ..core.findings import listed
from ..durable.calls import Arguments, Calls, Result, required
from ..durable.program import Program
from ..errors import CollectionError, Refused, WholeError
from ..maintenance import rolling_change
from ..maintenance.window_limits import LIMITS
from . import image_plan
from .change_hosts import HostChangeOptions, HostsNotChanged, change_hosts, return_to_service
from .image_plan import commit_image
from .preflight import host_preflight

# The options of a maintenance window, and their names in the playbook.
OPTIONS_OF_WINDOW = {
    **{name: f"window_{name}" for name in ("settings", *LIMITS, "requires_ack")},
    **{name: f"window_{name}" for name in ("by", "checkpoint_wait", "checkpoint_signal", "accept_repeat_s")},
    "notify": "window_notify",
    "spare": "window_spare",
    "accept_other_jobs": "accept_other_jobs",
}
# The defaults of those that have a value without a wish of the user.
DEFAULTS = {"by": "move", "checkpoint_wait": 3600}
# A guest may boot, or be slow to answer right after its move.
READ_SECONDS = 600.0
POSITIVE = ("max_out_of_service", "maintenance_timeout", "reboot_timeout", "lock_ttl")


@dataclass(frozen=True)
class RolloutOptions:
    """The hosts to change and their order: without ``hosts`` all of the cluster, with ``around_job`` only in service.

    ``refusal`` is a sentence against every change, such as one about workers whose training jobs are unknown.
    ``window`` has the options of a maintenance window, which only ``around_job`` opens, and ``training`` its job with
    the jobs of others beside it. ``job_check`` has the options with which the training jobs on the workers are read
    again before hosts leave service; empty: they are not read.
    """

    change: HostChangeOptions
    hosts: Sequence[str] = ()
    canary: str = ""
    continue_after_canary: bool = False
    around_job: bool = False
    refusal: str = ""
    force_unlock: bool = False
    window: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    job_check: Mapping[str, Any] = field(default_factory=dict)


class RolloutPlan(TypedDict):
    """The hosts of a rollout, with the ``lines`` to show, and the sentences that refuse it."""

    hosts: list[str]
    lines: list[str]
    in_service: list[str]
    noted: list[str]
    leaving: list[str]
    reboots: dict[str, int]
    refusals: list[str]
    changed: bool


class HostsAtOnce(TypedDict):
    """How many hosts may leave service together, and why these are fewer than requested."""

    most: int
    why: str


def require_positive(change: HostChangeOptions) -> None:
    """Raise the sentence about the first number that is out of range."""
    for name in POSITIVE:
        if getattr(change, name) < 1:
            number = f"esxi_host_{name} is {getattr(change, name)}, but must be 1 or more"
            raise WholeError(f"{change.cluster}: {number}. Correct it and run again.")


def plan_hosts(calls: Calls, how: RolloutOptions, adapters_to_come: Sequence[str] = ()) -> RolloutPlan:
    """Plan each host, and find the hosts that an earlier run left in maintenance mode."""
    chosen = {"hosts": list(how.hosts)} if how.hosts else {"cluster": how.change.cluster}
    _require_members(calls, how)
    profiles = {"profile": how.change.profile, "host_profiles": how.change.host_profiles}
    options = {**chosen, **profiles, "adapters_to_come": list(adapters_to_come)}
    planned = required(calls.planned("esxi_profile", options))
    image = image_plan.plan_image(
        calls, how.change.cluster, how.change.image, [host["host"] for host in planned["hosts"]]
    )
    planned = {
        **planned,
        "hosts": image_plan.with_image(planned["hosts"], image),
        "changed": planned["changed"] or image["changed"],
        "image": image_plan.lines(how.change.cluster, image),
    }
    left: Result = {"hosts": []}
    # Usually no host is out of service, and no further call is needed.
    if any(host.get("out_of_service") for host in planned["hosts"]):
        left = required(calls.planned("esxi_power", {**chosen, "state": "in_service", "rollout": True}))
        left = {**left, "hosts": rolling_change.taken_over(left["hosts"], how.change.take_over)}
    return _plan_of(planned, left, how)


def _require_members(calls: Calls, how: RolloutOptions) -> None:
    """Refuse hosts of another cluster: its lock and its stop rules are others."""
    if not how.hosts:
        return
    cluster = required(calls.here("cluster_info", {"cluster": how.change.cluster}))["cluster"]
    others = sorted(set(how.hosts) - {host["host"] for host in cluster["hosts"]})
    if others:
        cause = f"cluster {how.change.cluster} has no such host"
        raise Refused(listed(others), "change host profile", cause, "correct esxi_host_hosts, or name its cluster")


def _plan_of(planned: Result, left: Result, how: RolloutOptions) -> RolloutPlan:
    hosts, out = planned["hosts"], left["hosts"]
    work = rolling_change.to_do(hosts, how.canary, how.continue_after_canary, out)
    in_service = [entry["host"] for entry in work if not entry["leaves_service"]]
    staying = [host for host in hosts if host["host"] in in_service]
    others = rolling_change.refusals(hosts, out, how.change.accepted_stops)
    # A cluster whose hosts match their profile is not refused: nothing is done to it.
    for_all = list(filter(None, [how.refusal, unread_limits(how)])) if work else []
    return {
        "hosts": [host["host"] for host in hosts],
        "lines": [*planned["image"], *rolling_change.lines(hosts, out)],
        "in_service": in_service,
        "noted": sorted(set(in_service) & set(rolling_change.noted(hosts, out))),
        "leaving": [entry["host"] for entry in work if entry["leaves_service"]],
        "reboots": {entry["host"]: entry["reboots"] for entry in work},
        "refusals": [*host_preflight.refusals(staying), *others, *for_all],
        "changed": bool(planned["changed"] or any(host.get("changed") for host in out)),
    }


def unread_limits(how: RolloutOptions) -> str:
    """Return why a change without a window is refused that has options of one; empty if it has none."""
    named = [OPTIONS_OF_WINDOW[name] for name, value in how.window.items() if value and value != DEFAULTS.get(name)]
    if how.around_job or not named:
        return ""
    cause = "only a maintenance window around a training job reads them, and this run opens none"
    remedy = "add under_training=true, or leave them out"
    return f"Cluster {how.change.cluster}: could not obey {listed(named)}: {cause}; {remedy}."


def require_possible(plan: RolloutPlan) -> None:
    """Raise the errors of hosts that cannot be changed now."""
    if plan["refusals"]:
        raise WholeError(" ".join(plan["refusals"]))


def hosts_at_once(calls: Calls, leaving: Sequence[str], how: HostChangeOptions) -> HostsAtOnce:
    """Return how many hosts may leave service together; other hosts that stay out of service count too."""
    if how.max_out_of_service <= 1:
        return {"most": 1, "why": ""}
    cluster = required(calls.here("cluster_info", {"cluster": how.cluster}))["cluster"]
    others = {host["host"] for host in cluster["out_of_service"]} - set(leaving)
    spare = cluster["max_out_of_service"]
    most = max(1, min(how.max_out_of_service, int(spare["allowed"])) - len(others))
    most_requested = min(how.max_out_of_service, len(leaving))
    reason = f"out of service already: {listed(sorted(others))}" if others else str(spare["why"])
    why = f"max_out_of_service is {how.max_out_of_service}, but at most {most} leave service at once: {reason}"
    return {"most": most, "why": why if most < most_requested else ""}


def after_canary(plan: RolloutPlan, how: RolloutOptions, *, is_changed: bool) -> str:
    """Return how to continue a run that changes only the canary; empty without a canary, or before its change."""
    name, cluster = how.canary, how.change.cluster
    if not name or how.continue_after_canary:
        return ""
    if name in plan["hosts"]:
        again = "Run again with continue_after_canary=true for the other hosts."
        return f"The profile is active on the canary {name}. {again}" if is_changed else ""
    again = "Run again with continue_after_canary=true to change its hosts."
    return f"Cluster {cluster} waits, because the canary {name} belongs to another cluster. {again}"


def window_of(plan: RolloutPlan, how: RolloutOptions) -> dict[str, object]:
    """Return the maintenance window in which the hosts that leave service are changed around a job."""
    options = asdict(how.change)
    accepted = options.pop("accepted_stops")
    for name in ("cluster", "lock_ttl", "workers"):
        del options[name]
    # A window is not continued with other hosts than those from which it began to choose.
    chosen = {"only_hosts": sorted(how.hosts), "canary": "" if how.continue_after_canary else how.canary}
    reboots = {host: plan["reboots"][host] for host in plan["leaving"]}
    beside = {
        "other_jobs": how.training.get("others") or [],
        "ignored_jobs": how.training.get("ignored_jobs") or "",
        "unread_is_idle": how.training.get("unread_is_idle", True),
    }
    accepts = {"accepted": list(accepted), **how.window, **(beside if how.training else {})}
    return {"hosts": plan["leaving"], "reboots": reboots, **options, **chosen, **accepts}


class RolloutCalls(Calls, Protocol):
    """Calls of a run that can identify itself to its modules while it holds the lock."""

    def join(self, run: str) -> None:
        """Name the run that holds the lock to all modules."""

    def jobs_on_workers(self, options: Arguments) -> Result:
        """Fail if training jobs run on the workers of the cluster; return why they are not known (``unread``)."""


def rollout(p: Program, calls: RolloutCalls, how: RolloutOptions) -> RolloutPlan:
    """Change the hosts that differ, those that stay in service first, and return the plan that was carried out.

    A host whose change fails stays out of service and ends the rollout. A killed rollout leaves the lock, which the
    next run on this controller takes over, and at most one batch of hosts out of service, which it finishes first.
    """
    with p.held("the lock", partial(take_lock, calls, how), partial(release_lock, calls, how)):
        # Another controller may have changed hosts until now.
        plan: RolloutPlan = p.once("plan", partial(plan_hosts, calls, how))
        require_possible(plan)
        if how.change.image and not how.around_job:
            p.say(f"sets the image of cluster {how.change.cluster}")
            p.once("image", partial(commit_image, calls, how.change.cluster, how.change.image))
        if plan["in_service"]:
            p.say(f"changes {listed(plan['in_service'])} in service")
            p.ensure(partial(change_in_service, calls, plan, how))
        # Around a training job, a maintenance window changes the hosts that leave service.
        if not how.around_job and plan["leaving"]:
            at_once: HostsAtOnce = p.once("hosts at once", partial(hosts_at_once, calls, plan["leaving"], how.change))
            p.say(at_once["why"])
            most = at_once["most"]
            for first in range(0, len(plan["leaving"]), most):
                leaving = plan["leaving"][first : first + most]
                require_no_job(p, calls, leaving, how)
                change_hosts(p, calls, leaving, how.change)
    if p.left:
        raise WholeError("; ".join(p.left.values()))
    return plan


def require_no_job(p: Program, calls: RolloutCalls, leaving: Sequence[str], how: RolloutOptions) -> None:
    """Refuse to empty hosts if a training job has started on the workers since the run began."""
    if not how.job_check:
        return
    p.say("reads the training jobs on the workers")
    read = partial(_unread_jobs, calls, how)
    try:
        unread = p.ensure(read)
        if unread:
            p.say(f"waits up to {READ_SECONDS:.0f} s for workers whose training jobs cannot be read")
            unread = "" if p.wait(lambda: not read(), READ_SECONDS) else p.ensure(read)
        if unread:
            raise WholeError(unread)
    except CollectionError as error:
        raise HostsNotChanged(leaving, WholeError(f"{listed(leaving)}: could not leave service: {error}")) from error


def _unread_jobs(calls: RolloutCalls, how: RolloutOptions) -> str:
    """Return why the training jobs on the workers are not known; raise ModuleFailed if one of them runs."""
    return str(required(calls.jobs_on_workers(how.job_check))["unread"])


def take_lock(calls: RolloutCalls, how: RolloutOptions) -> None:
    """Take the lock of the cluster, by force if the user is certain that its holder has ended."""
    change = how.change
    options = {"cluster": change.cluster, "state": "held", "ttl": change.lock_ttl, "force_unlock": how.force_unlock}
    # Modules that start after their playbook was killed see that its run has ended.
    calls.join(required(calls.here("cluster_lock", options))["state"]["run"])


def release_lock(calls: RolloutCalls, how: RolloutOptions) -> None:
    required(calls.here("cluster_lock", {"cluster": how.change.cluster, "state": "free"}))


def change_in_service(calls: RolloutCalls, plan: RolloutPlan, how: RolloutOptions) -> None:
    """Apply the profile to hosts that need no maintenance mode for it; fail if one of them must boot nevertheless."""
    if plan["noted"]:
        # This also ends the entry that a killed run requested.
        return_to_service(calls, plan["noted"])
    profiles = {"profile": how.change.profile, "host_profiles": how.change.host_profiles}
    applied = required(calls.here("esxi_profile", {"hosts": plan["in_service"], **profiles}))
    if left := rolling_change.not_in_force_in_service(applied["hosts"]):
        raise WholeError(" ".join(left))
