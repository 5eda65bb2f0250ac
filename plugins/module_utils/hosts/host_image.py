"""Subject: one host that runs the image of its cluster; vLCM applies it to the emptied host, and to no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..errors import Failed, Refused
from ..plan import MAINTENANCE, REBOOT, Plan, State
from ..vsphere.inventory import Host
from ..vsphere.rest import Rest
from .cluster_image import CLUSTERS, text_of

COMPLIANT, INCOMPATIBLE, UNKNOWN = "compliant", "incompatible", "unavailable"
# The impacts that need no reboot; an unknown one may need it.
_WITHOUT_REBOOT = ("no_impact", "partial_maintenance_mode_required", "maintenance_mode_required")
_COMPLIANCE = {"hosts?": {str: {"status": str, "impact?": str}}}
_CHECKED = {"result": {"status": str, "entity_results?": [{"check_statuses?": [{"status": str}]}]}}
_APPLIED = {"result": {"failed_hosts?": [str], "host_status?": {str: {"status": str, "notifications?": dict}}}}
_BUSY = "wait until the other operation of vLCM on the cluster ends, and run again"
_EULA = (
    "read VMware's End User License Agreement, and accept it with accept_eula=true, in a rollback with "
    "rollback_accept_eula=true"
)


@dataclass(frozen=True)
class ApplyOptions:
    """How the image is applied to hosts; ``changing`` says that the image itself is to change first."""

    accept_eula: bool = False
    task_timeout: int = 600
    apply_timeout: int = 7200
    changing: bool = False
    report: Callable[[str, str], None] = field(default=lambda _about, _what: None)


class ImageOfHosts:
    """The last comparison of the hosts of a cluster with its image by vLCM."""

    def __init__(self, rest: Rest, moid: str, cluster: str, options: ApplyOptions) -> None:
        self.rest, self.cluster, self.options = rest, cluster, options
        self.path = f"{CLUSTERS}/{moid}/software"
        self.by_host: dict[str, Any] = {}

    def look(self) -> None:
        """Read the last comparison, which writes nothing."""
        tried = f"read how the hosts of cluster {self.cluster} comply with its image"
        found = self.rest.find(f"{self.path}/compliance", tried=tried, form=_COMPLIANCE) or {}
        self.by_host = dict(found.get("hosts") or {})

    def scan(self) -> None:
        """Have vLCM compare the hosts with the image, and read the result."""
        tried = f"compare the hosts of cluster {self.cluster} with its image"
        form, seconds = {"result?": _COMPLIANCE}, self.options.task_timeout
        found = self.rest.task(self.path, tried=tried, seconds=seconds, form=form, action="scan") or {}
        self.by_host = dict(found.get("hosts") or {})


class HostImage:
    """The image of the cluster on one host."""

    name = "image of its cluster"

    def __init__(self, host: Host, images: ImageOfHosts, extras: str = "") -> None:
        self.host, self.images, self.target, self.extras = host, images, host.name, extras

    def read(self) -> State:
        """Return whether the host complied with the image when vLCM compared them, and the impact of a change."""
        found = self.images.by_host.get(self.host.ref._moId) or {}
        status, impact = (str(found.get(key) or "").lower() for key in ("status", "impact"))
        if self.images.options.changing:
            status, impact = UNKNOWN, ""
        return {
            "compliance": status or UNKNOWN,
            "impact": impact or "unknown",
            "in_maintenance": self.host.in_maintenance,
        }

    def plan(self, current: State) -> Plan:
        return plan_host(current, self.extras)

    def apply(self, _plan: Plan) -> None:
        """Have vLCM check the emptied host and apply the image to it."""
        self.host.must_answer("apply the image of its cluster")
        options, hosts = self.images.options, {"hosts": [self.host.ref._moId]}
        self._check(hosts)
        tried = f"apply the image of cluster {self.images.cluster} to {self.target}"
        body = {**hosts, **({"accept_eula": True} if options.accept_eula else {})}
        done = self.images.rest.task(
            self.images.path,
            body,
            tried=tried,
            seconds=options.apply_timeout,
            form=_APPLIED,
            action="apply",
            report=self._report,
            remedy=_BUSY,
        )
        self._must_have_worked(done or {}, tried)

    def _check(self, hosts: Mapping[str, object]) -> None:
        tried = f"check whether the image of cluster {self.images.cluster} can be applied to {self.target}"
        seconds = self.images.options.task_timeout
        rest, path = self.images.rest, self.images.path
        found = rest.task(path, hosts, tried=tried, seconds=seconds, form=_CHECKED, action="check", remedy=_BUSY)
        issues = list(_issues(found))
        if issues:
            raise Failed(self.target, tried, "vLCM found " + "; ".join(issues), "remove the cause and run again")

    def _report(self, info: Mapping[str, Any]) -> None:
        progress = info.get("progress") or {}
        if progress.get("total"):
            share = 100 * float(progress.get("completed") or 0) / float(progress["total"])
            self.images.options.report(self.target, f"vLCM applies the image, {share:.0f} %")

    def _must_have_worked(self, done: Mapping[str, Any], tried: str) -> None:
        moid = self.host.ref._moId
        status = (done.get("host_status") or {}).get(moid) or {}
        if moid in (done.get("failed_hosts") or []) or status.get("status") in ("ERROR", "TIMED_OUT"):
            errors = (status.get("notifications") or {}).get("errors") or []
            reason = "vLCM said " + ("; ".join(text_of(error.get("message")) for error in errors) or "nothing more")
            raise Failed(self.target, tried, reason, "remove the cause and run again")


def plan_host(current: State, extras: str = "") -> Plan:
    """Return the plan that brings an emptied host to the image of its cluster."""
    if current["compliance"] == COMPLIANT:
        return Plan(before=current, after=current)
    if current["compliance"] == INCOMPATIBLE:
        cause, remedy = "vLCM finds the host incompatible with it", "read the reasons in the cluster's Updates > Image"
        raise Refused("the image of its cluster", "apply it", cause, remedy)
    reboots = current["impact"] not in _WITHOUT_REBOOT
    unmet = () if current["in_maintenance"] else ("the image is applied only in maintenance mode: enter it first",)
    return Plan(
        before=current,
        after={**current, "compliance": COMPLIANT, "impact": "no_impact"},
        needs=frozenset({MAINTENANCE, REBOOT} if reboots else {MAINTENANCE}),
        why=(f"the image of its cluster is applied by vLCM ({_impact(current['impact'])}{extras})",),
        unmet=unmet,
    )


def require_eula(cluster: str, options: ApplyOptions) -> None:
    """Refuse to apply an image as long as the user has not accepted the agreement of VMware."""
    if not options.accept_eula:
        cause = "vLCM applies it only after VMware's End User License Agreement is accepted"
        raise Refused(cluster, "apply its image to hosts", cause, _EULA)


def _impact(impact: str) -> str:
    words = {
        "no_impact": "no impact",
        "partial_maintenance_mode_required": "a live patch, no reboot",
        "maintenance_mode_required": "no reboot",
        "reboot_required": "1 reboot",
    }
    return words.get(impact, "probably 1 reboot")


def _issues(found: Mapping[str, Any]) -> Any:
    """Yield the texts of the checks that failed."""
    for entity in found.get("entity_results") or []:
        for check in entity.get("check_statuses") or []:
            if check["status"] in ("ERROR", "TIMEOUT"):
                texts = [text_of(issue) for issue in check.get("issues") or []]
                texts += [text_of(issue.get("description")) for issue in check.get("check_issues") or []]
                yield from dict.fromkeys(texts or [text_of((check.get("check") or {}).get("name"))])
