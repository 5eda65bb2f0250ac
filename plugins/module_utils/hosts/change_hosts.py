"""How hosts are changed out of service: emptied, changed, rebooted as needed, verified and returned; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Dict, List

from ..core.findings import listed, stops
from ..durable.calls import Calls, Result, required
from ..durable.program import Program
from ..errors import CollectionError, Refused, WholeError
from ..maintenance.rolling_change import not_in_force
from .image_plan import apply_image, reboots_of

# A profile needs at most two reboots: the end of passthrough, then the driver.
MOST_REBOOTS = 3
# A driver may need a moment after the boot; another reboot would not help it.
DRIVER_SECONDS = 60.0
# A remediation of an earlier controller takes as long as the boot of a host and the installation before it.
REMEDIATION_SECONDS = 7200.0
CONTINUES = "Hosts in maintenance mode stay there; the next run of this playbook continues from here"

HostChanges = List[Dict[str, Any]]


@dataclass(frozen=True)
class HostChangeOptions:
    """The cluster, the profile of its hosts, and how they leave service; all times are in seconds."""

    cluster: str
    profile: Mapping[str, Any]
    host_profiles: Mapping[str, Any] = field(default_factory=dict)
    maintenance_timeout: int = 3600
    reboot_timeout: int = 1800
    power_off: bool = False
    moved_by: str = "drs"
    non_disruptive: bool = False
    max_out_of_service: int = 1
    accepted_stops: Sequence[str] = ()
    # Hosts that another user put into maintenance mode, and that are nevertheless changed and returned to service.
    take_over: Sequence[str] = ()
    lock_ttl: int = 7200
    # The host of each worker of the training job around which the hosts are changed.
    workers: Mapping[str, str] = field(default_factory=dict)
    # The options of esxi_image, with which vLCM applies the image of the cluster to each host; empty: no image.
    image: Mapping[str, Any] = field(default_factory=dict)


class HostsNotChanged(WholeError):
    """Hosts whose change failed, with the reason and the way to continue."""

    def __init__(self, hosts: Sequence[str], error: CollectionError, *, is_changed: bool = False) -> None:
        reason = str(error).rstrip(".")
        # Each of them may be out of service already.
        if not all(host in reason for host in hosts):
            tried = "return to service" if is_changed else "complete the change"
            reason = f"{listed(hosts)}: could not {tried}: {reason}"
        active = f" The profile is active on {listed(hosts)} already." if is_changed else ""
        super().__init__(f"{reason}. {CONTINUES}.{active}", listed(hosts))


def change_hosts(p: Program, calls: Calls, hosts: Sequence[str], how: HostChangeOptions) -> HostChanges:
    """Change hosts out of service, and return the facts about each.

    They are when it left and returned, its reboots, the rounds of its profile, and the stop rules that apply after its
    return.

    The caller holds the lock of the cluster. If a step fails, the hosts stay as they are: out of service once they
    have left it.
    """
    change = HostChange(calls, tuple(hosts), how)
    try:
        # Two values: a later controller must not take changed or returned hosts out of service again.
        done = p.once(("changed", *hosts), partial(_change, p, change))
    except CollectionError as error:
        raise HostsNotChanged(hosts, error) from error
    try:
        p.say(f"returns {listed(hosts)} to service")
        back_at = p.once(("returned", *hosts), partial(_return, p, change))
    except CollectionError as error:
        raise HostsNotChanged(hosts, error, is_changed=True) from error
    stops = p.once(("rules after", *hosts), change.stops_after)
    changes = [{"host": host, **done[host], "back_at": back_at, "stops": stops} for host in hosts]
    for entry in changes:
        p.say(_summary(entry))
    return changes


def _change(p: Program, change: HostChange) -> dict[str, Any]:
    """Apply the profile to hosts that stay out of service, and return the facts about each."""
    hosts, named = change.hosts, listed(change.hosts)
    p.ensure(change.renew_lock)
    # One that an earlier controller started goes on without it, also if the image is no longer requested.
    if not p.wait(change.has_no_remediation, REMEDIATION_SECONDS):
        cause = f"vLCM still applies an image to it after {REMEDIATION_SECONDS:.0f} s"
        raise Refused(named, "change host profile", cause, "see its task in the vSphere Client, and run again")
    # The cluster changes while other hosts are away, so its rules are read again before each change.
    rebooting = p.ensure(change.check_stop_rules)
    if rebooting:
        p.say(f"waits for {listed(rebooting)}, which an earlier run rebooted")
        p.ensure(partial(change.reboot, rebooting, {}))
    p.say(f"puts {named} into maintenance mode")
    p.ensure(change.leave_service)
    out_at = p.once(("out of service", *hosts), p.now)
    images = p.once(("image", *hosts), partial(_apply_image, p, change)) if change.how.image else {}
    rounds, reboots = _bring_into_force(p, change)
    p.say(f"verifies that the profile is active on {named}")
    if not p.wait(change.is_in_force, DRIVER_SECONDS):
        p.ensure(change.require_in_force)
    return {
        host: {"out_at": out_at, "reboots": reboots[host] + images.get(host, 0), "rounds": rounds} for host in hosts
    }


def _apply_image(p: Program, change: HostChange) -> dict[str, int]:
    """Bring emptied hosts to the image of their cluster, and return the reboots of each."""
    p.say(f"applies the image of the cluster to {listed(change.hosts)}")
    options = change.calls, change.how.cluster, change.how.image, change.hosts
    # Written before: a later controller finds the image on hosts that vLCM booted for an earlier one.
    reboots: dict[str, int] = p.once(("reboots by the image", *change.hosts), partial(reboots_of, *options))
    p.ensure(partial(apply_image, *options))
    # vLCM may have returned them to service.
    p.ensure(change.leave_service)
    return reboots


def _bring_into_force(p: Program, change: HostChange) -> tuple[int, dict[str, int]]:
    """Apply the profile and reboot the hosts that need it, once for each reboot; return the rounds and the reboots."""
    hosts, due, reboots = change.hosts, list(change.hosts), dict.fromkeys(change.hosts, 0)
    for number in range(1, MOST_REBOOTS + 1):
        p.say(f"applies the profile to {listed(due)}")
        applied = p.once(("applied", number, *hosts), partial(change.apply, due))
        rebooting = [host for host in due if applied[host]["reboots"]]
        if rebooting:
            p.say(f"reboots {listed(rebooting)}")
            # A reboot that happened before its controller died shows in the boot time.
            boot_times = {host: applied[host]["boot_time"] for host in rebooting}
            p.once(("rebooted", number, *hosts), partial(change.reboot, rebooting, boot_times))
        reboots.update({host: reboots[host] + 1 for host in rebooting})
        due = [host for host in rebooting if applied[host]["reboots"] > 1]
        if not due:
            break
    return number, reboots


def _return(p: Program, change: HostChange) -> float:
    return_to_service(change.calls, change.hosts)
    return p.now()


def _summary(change: Mapping[str, Any]) -> str:
    seconds, reboots = change["back_at"] - change["out_at"], change["reboots"]
    return f"{change['host']} was out of service for {seconds:.0f} s, {reboots} reboot{'' if reboots == 1 else 's'}"


def check_stop_rules(calls: Calls, hosts: Sequence[str], how: HostChangeOptions) -> list[str]:
    """Raise Refused if hosts must not leave service now; return those that an earlier run left rebooting.

    Hosts that are all out of service already may go on: they return to service sooner.
    """
    read, texts = _read_rules(calls, hosts, how)
    ours = {host["host"]: host for host in read["cluster"]["hosts"] if host["maintenance"] and host["ours"]}
    if texts and not set(hosts) <= set(ours):
        remedy = "remove the cause and run again, or accept it by its rule in esxi_host_accepted_stops"
        raise Refused(listed(hosts), "leave service", "; ".join(texts), remedy)
    return [host for host in hosts if host in ours and ours[host]["connection"] != "connected"]


def _read_rules(calls: Calls, leaving: Sequence[str], how: HostChangeOptions) -> tuple[Result, list[str]]:
    """Return the state of the cluster, and in words the stop rules that apply and that the user did not accept."""
    options = {"cluster": how.cluster, "leaving": list(leaving), "max_out_of_service": how.max_out_of_service}
    read = required(calls.here("cluster_info", options))
    taken_over = [f"{rule}:{host}" for host in how.take_over for rule in ("taken_out", "out_of_service")]
    found = stops(read["stops"], [*how.accepted_stops, *taken_over])
    return read, [f"{str(stop['text']).rstrip('.')}{_affected(stop, how)}" for stop in found]


def _affected(stop: Mapping[str, object], how: HostChangeOptions) -> str:
    """Return which workers of the training job are on the host of a stop rule, in words that follow its text."""
    workers = [worker for worker, host in sorted(how.workers.items()) if host == stop["object"]]
    runs = "runs" if len(workers) == 1 else "run"
    return f"; {listed(workers)} of the job {runs} on it" if workers else ""


def return_to_service(calls: Calls, hosts: Sequence[str]) -> None:
    """Take hosts out of maintenance mode that the collection put there."""
    required(calls.here("esxi_power", {"hosts": list(hosts), "state": "in_service", "rollout": True}))


@dataclass(frozen=True)
class HostChange:
    """The effects of a change on its hosts; each can be repeated."""

    calls: Calls
    hosts: tuple[str, ...]
    how: HostChangeOptions

    def renew_lock(self) -> None:
        """Renew the lock of the cluster for this step."""
        options = {"cluster": self.how.cluster, "state": "held", "ttl": self.how.lock_ttl}
        required(self.calls.here("cluster_lock", options))

    def check_stop_rules(self) -> list[str]:
        """Raise Refused if the hosts must not leave service now; return those that an earlier run left rebooting."""
        return check_stop_rules(self.calls, self.hosts, self.how)

    def has_no_remediation(self) -> bool:
        """Return whether vLCM applies no image to these hosts after a rollout emptied them; stop rules name others.

        A remediation whose hosts are not known, such as one that begins, may be one of these hosts.
        """
        cluster = required(self.calls.here("cluster_info", {"cluster": self.how.cluster}))["cluster"]
        ours = {host["host"] for host in cluster["out_of_service"] if host["ours"]}
        mine = ours & set(self.hosts)
        accepts_unknown = {"remediation", f"remediation:{self.how.cluster}"} & set(self.how.accepted_stops)
        unknown = [] if accepts_unknown or not mine else [one for one in cluster["remediations"] if not one["hosts"]]
        if errors := [one["error"] for one in unknown if one["error"]]:
            cause = f"whether vLCM still applies an image to it is not known: {errors[0]}"
            remedy = "run again, or accept remediation in esxi_host_accepted_stops if none runs"
            raise Refused(listed(self.hosts), "change host profile", cause, remedy)
        running = (set(one["hosts"]) for one in cluster["remediations"])
        return not unknown and not any(hosts & mine and hosts <= ours for hosts in running)

    def leave_service(self) -> None:
        """Put the hosts into maintenance mode; refuse a host that others put there."""
        keys = ("maintenance_timeout", "power_off", "moved_by", "non_disruptive", "take_over")
        options = {key: getattr(self.how, key) for key in keys}
        states = self._power(self.hosts, "maintenance", options)
        others = [host for host, state in states.items() if not state["ours"]]
        if others:
            cause = "another user put it into maintenance mode, so it is neither changed nor rebooted"
            remedy = "return it to service, run without it, or name it in esxi_host_take_over"
            raise Refused(listed(others), "change host profile", cause, remedy)

    def apply(self, hosts: Sequence[str]) -> dict[str, Any]:
        """Apply the changes that do not wait for a reboot, and return each host's needed reboots and boot time."""
        applied = required(self.calls.here("esxi_profile", self._profile(hosts)))
        return {
            host["host"]: {
                "reboots": host["reboots"] if "reboot" in host["needs"] else 0,
                "boot_time": host.get("boot_time") or "",
            }
            for host in applied["hosts"]
        }

    def reboot(self, hosts: Sequence[str], boot_times: Mapping[str, str]) -> None:
        """Reboot the hosts that have not booted since the given times."""
        known = {host: time for host, time in boot_times.items() if time}
        self._power(hosts, "rebooted", {"reboot_timeout": self.how.reboot_timeout, "boot_times": known})

    def is_in_force(self) -> bool:
        """Return whether the hosts have neither changes nor needs left."""
        planned = self._planned()
        return not planned["diff"] and not planned["needs"]

    def require_in_force(self) -> None:
        """Raise the sentences about the hosts whose profile is not active."""
        left = not_in_force(self._planned()["hosts"])
        if left:
            raise WholeError("; ".join(left))

    def stops_after(self) -> list[str]:
        """Return the stop rules that apply after the return of the hosts, in words."""
        return _read_rules(self.calls, [], self.how)[1]

    def _planned(self) -> Result:
        return required(self.calls.planned("esxi_profile", self._profile(self.hosts)))

    def _profile(self, hosts: Sequence[str]) -> dict[str, object]:
        return {"hosts": list(hosts), "profile": self.how.profile, "host_profiles": self.how.host_profiles}

    def _power(self, hosts: Sequence[str], state: str, options: Mapping[str, object]) -> dict[str, Any]:
        """Bring hosts into a state of esxi_power, and return their states."""
        done = required(
            self.calls.here("esxi_power", {"hosts": list(hosts), "state": state, "rollout": True, **options})
        )
        return {host["host"]: host["state"] for host in done["hosts"]}
