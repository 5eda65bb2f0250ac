"""The remediations of a cluster by vLCM: its policy, and those that run at the moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..errors import Refused
from ..vsphere.rest import TASKS, Rest, task_path
from .cluster_image import CLUSTERS

SERVICE = "com.vmware.esx.settings.clusters.software"
UNCHANGED = "DO_NOT_CHANGE_VMS_POWER_STATE"
# Operations that only read.
_READING = ("check$task", "scan$task")
_POLICY = {
    "pre_remediation_power_action": str,
    "enable_quick_boot": bool,
    "disable_hac": bool,
    "parallel_remediation_action?": {"enabled": bool},
    "enforce_quick_patch?": bool,
    "software_policy_spec?": {
        "parallel_remediation_action?": {"enabled": bool},
        "live_patch_action?": {"live_patch_mode": str},
    },
}
_LISTED = {str: {"operation": str, "user?": str, "target?": {"id": str}}}
_REMEDY = "change it in the cluster's Configure > Updates > Image, or globally in Lifecycle Manager > Settings"


def read_policy(rest: Rest, moid: str, cluster: str) -> dict[str, object]:
    path, tried = f"{CLUSTERS}/{moid}/policies/apply/effective", f"read the remediation policy of cluster {cluster}"
    policy: dict[str, Any] = rest.get(path, tried=tried, form=_POLICY)
    return policy


def require_policy(cluster: str, policy: Mapping[str, object]) -> None:
    """Refuse a policy that contradicts a change of hosts one after another whose workers were moved away."""
    found = list(_contradictions(policy))
    if found:
        raise Refused(cluster, "apply its image to hosts", "its remediation policy " + ", and ".join(found), _REMEDY)


def extras_of(policy: Mapping[str, Any]) -> str:
    """Return what makes a remediation shorter, in words that follow its impact; empty without it."""
    mode = ((policy.get("software_policy_spec") or {}).get("live_patch_action") or {}).get("live_patch_mode") or ""
    patches = policy.get("enforce_quick_patch") or mode in ("AUTO_LIVE_PATCH", "ENFORCE_LIVE_PATCH")
    boots = ", with Quick Boot where the host supports it" if policy["enable_quick_boot"] else ""
    return boots + (", as a live patch where the image supports it" if patches else "")


def running(rest: Rest, moid: str, cluster: str) -> list[dict[str, Any]]:
    """Return the remediations that run on a cluster: the user, and the IDs of the hosts, empty if not known."""
    tried = f"list the remediations of cluster {cluster}"
    body = {"filter_spec": {"services": [SERVICE], "status": ["PENDING", "RUNNING", "BLOCKED"]}}
    listed = rest.send("POST", f"{TASKS}?action=list", body, tried=tried, form=_LISTED)
    found = []
    for task, info in sorted(listed.items()):
        is_here = (info.get("target") or {}).get("id", moid) == moid
        if is_here and info["operation"] not in _READING:
            result = (rest.find(task_path(task), tried=tried) or {}).get("result") or {}
            found.append({"user": info.get("user") or "", "hosts": sorted(result.get("host_status") or {})})
    return found


def _contradictions(policy: Mapping[str, Any]) -> Iterator[str]:
    action = policy["pre_remediation_power_action"]
    if action != UNCHANGED:
        yield f"changes the power state of virtual machines ({action})"
    newer = (policy.get("software_policy_spec") or {}).get("parallel_remediation_action") or {}
    if (policy.get("parallel_remediation_action") or {}).get("enabled") or newer.get("enabled"):
        yield "remediates several hosts at once"
    if policy["disable_hac"]:
        yield "disables the admission control of HA"
