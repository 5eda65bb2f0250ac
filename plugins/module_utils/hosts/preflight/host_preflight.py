"""The verdict on the state of a cluster before its hosts are prepared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ...core import masked
from ...core.findings import NOTE, STOP, WARN, Finding, FindingRecord, as_dicts, lines, listed, stops, without_object
from ...core.versions import ROCE_V1, has_roce_v1
from ...core.vgpu_manager import is_manager
from ...errors import Refused
from ...maintenance.rolling_change import leaves_service
from . import cluster_findings, host_findings
from .cluster_findings import CheckedCluster
from .host_findings import COMES_WITH_FABRIC, ExpectedHost

Data = Mapping[str, Any]
# Options of esxi_power as its errors name them, and the options of the playbooks.
_OPTIONS = {"moved_by: module": "esxi_host_moved_by: module", "power_off: true": "-e power_off=true"}
# The groups of esxi_info that the findings need, and those that only a part of a profile needs, with calls for each
# host. The plan contains the boots for which settings of the other parts wait.
GROUPS, GROUPS_OF_PARTS = ("gpu", "network", "rdma_devices", "management"), {"vibs": "vib"}
_REPORT = "run again, and if this persists, run dml.vsphere.record and report it"


def verdict(read: Data, accepted: Sequence[str] = ()) -> dict[str, Any]:
    """Return all findings, those that stop the work, all of them as lines, and the error, empty if nothing stops."""
    all_findings = findings(read)
    masked.refuse(all_findings, f"the findings about {read['cluster']['cluster']['name']}", "show them")
    stopping = stops(all_findings, accepted)
    texts = " ".join(finding["text"] for finding in stopping)
    number = "1 finding stops" if len(stopping) == 1 else f"{len(stopping)} findings stop"
    error = f"{read['cluster']['cluster']['name']}: {number} the preparation of its hosts: {texts}"
    remedy = "Correct that, or accept it by its rule in preflight_accept."
    refused = f"{error} {remedy}" if stopping else ""
    return {"findings": all_findings, "stops": stopping, "lines": lines(all_findings, accepted), "refused": refused}


def groups(profiles: Iterable[Data]) -> list[str]:
    """Return the groups of esxi_info that the findings about these profiles need."""
    keys = {key for profile in profiles for key, value in (profile or {}).items() if value}
    return [*GROUPS, *(group for key, group in GROUPS_OF_PARTS.items() if key in keys)]


def findings(read: Data) -> list[FindingRecord]:
    """Return all findings, stops first.

    ``read`` contains ``cluster`` (a result of cluster_info), ``hosts`` (of esxi_info), ``plan`` (a result of
    esxi_profile in check mode) and ``emptying`` (results of esxi_power in check mode), each as the module returned it;
    the desired ``profile`` and ``host_profiles``; ``gpu`` and ``vgpu``, the expected GPUs; ``rdma_protocol``,
    ``rdma_classes`` and ``device_classes`` of the workers; and ``acceptance`` (a result of site), if there is
    one.
    """
    hosts, cluster = read["hosts"]["hosts"], read["cluster"]["cluster"]
    models = expected_models(read["gpu"], [host["host"] for host in hosts])
    by_host = {name: ExpectedHost(_profile(read, name), expected) for name, expected in models.items()}
    words = frozenset(word for desired in by_host.values() for word in desired.words)
    all_findings = [finding for host in hosts for finding in host_findings.findings(host, by_host[host["host"]])]
    classes = {"device_classes": read["device_classes"], "card_classes": read["rdma_classes"]}
    leaving = _leaving(read["plan"])
    all_findings += cluster_findings.findings(CheckedCluster(cluster, words, read["vgpu"], leaving, **classes))
    all_findings += _mixed(hosts, cluster, words)
    all_findings += _roce_versions(hosts, read["rdma_protocol"])
    all_findings += _absent(read["gpu"], models, cluster["name"])
    all_findings += _managers(hosts, by_host)
    all_findings += _rolling(read, all_findings)
    all_findings += _emptying(read["emptying"], cluster["name"])
    all_findings += _plan(read["plan"], cluster["name"], all_findings)
    all_findings += _acceptance(read.get("acceptance") or {}, cluster["name"])
    return as_dicts(all_findings)


def expected_models(gpu: object, hosts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the expected models of GPUs by host, from a model, a list of models, or either of these by host."""
    return {host: _models(gpu.get(host, "") if isinstance(gpu, Mapping) else gpu) for host in hosts}


def _models(gpu: object) -> tuple[str, ...]:
    models = tuple(gpu) if isinstance(gpu, list) else (gpu,)
    if not all(isinstance(model, str) for model in models):
        remedy = "give a model such as T4, a list of models, or a mapping of host names to one of these"
        raise Refused("gpu", "read it as models of GPUs", f"it contains {gpu!r}", remedy)
    return tuple(model for model in models if model)


def _absent(gpu: object, hosts: Iterable[str], cluster: str) -> Iterator[Finding]:
    """Yield a finding about hosts with an expected model that the cluster does not have."""
    absent = sorted(set(gpu) - set(hosts)) if isinstance(gpu, Mapping) else []
    if absent:
        text = f"preflight_gpu has a model for {listed(absent)}, which it does not contain; check the names"
        yield Finding(NOTE, "gpu", cluster, text)


def _leaving(plan: Data) -> bool:
    """Return whether a planned host must leave service. A plan that failed has a separate finding."""
    return any(leaves_service(host) for host in plan.get("hosts", ()) if not host.get("failed"))


def _profile(read: Data, host: str) -> Data:
    profile: Data = read["host_profiles"].get(host, read["profile"]) or {}
    return profile


def _mixed(hosts: Sequence[Data], cluster: Data, words: frozenset[str]) -> Iterator[Finding]:
    """Yield findings about differences between hosts, because virtual machines move between the hosts of a cluster."""
    readable = [host for host in hosts if not host.get("failed")]
    values_by_property = {
        "versions of ESXi": {host["version"] for host in readable},
        "GPU models": {gpu["name"] for host in readable for gpu in host["gpus"]} if "vgpu" in words else set(),
        "server models": set() if cluster["evc"] else {host["model"] for host in readable if host["model"]},
    }
    remedies = {"server models": "set an EVC mode if their processors differ"}
    for name, values in values_by_property.items():
        if len(values) > 1:
            text = f"its hosts have different {name} ({listed(sorted(values))}), between which vMotion may be refused"
            remedy = remedies.get(name, "make them alike")
            yield Finding(WARN, "mixed", cluster["name"], f"{text}; {remedy}")


def _roce_versions(hosts: Sequence[Data], protocol: str) -> Iterator[Finding]:
    """Yield a finding about each host that no longer supports the workers' version of RoCE."""
    for host in hosts:
        if protocol == ROCE_V1 and not host.get("failed") and not has_roce_v1(host["version"]):
            text = f"it runs ESX {host['version']}, and 9.0 removed RoCE version 1, which the workers' PVRDMA cards use"
            yield Finding(STOP, "roce_v1", host["host"], f"{text}; set protocol: rocev2 in rdma_nics")


def _managers(hosts: Sequence[Data], by_host: Mapping[str, ExpectedHost]) -> Iterator[Finding]:
    """Yield findings about the current and desired vGPU managers, which the drivers in the guests must match."""
    for host in hosts:
        if host.get("failed"):
            continue
        vibs = by_host[host["host"]].profile.get("vibs") or []
        running = _manager_versions(host["vibs"]["running"]) if vibs else {}
        for name, version in _manager_versions(vib for vib in vibs if vib.get("state") != "absent").items():
            branch, before = _branch(version), [_branch(current) for current in running.values()]
            if before and before != [branch]:
                text = f"its vGPU manager changes from branch {listed(before)} to {branch}; check the guest drivers"
            elif not before:
                text = f"its guests need drivers for branch {branch} of {name}; before vGPU 13, of that branch only"
            else:
                continue
            yield Finding(NOTE, "guest_driver", host["host"], text)


def _manager_versions(vibs: Iterable[Data]) -> dict[str, str]:
    return {vib["name"]: str(vib["version"]) for vib in vibs if is_manager(vib["name"])}


def _branch(version: str) -> str:
    return version.split(".", maxsplit=1)[0]


def _rolling(read: Data, earlier: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings about the stop rules of a rolling change."""
    disconnected = {finding.object for finding in earlier if finding.rule == "disconnected"}
    for stop in read["cluster"]["stops"]:
        if stop["rule"] not in ("out_of_service", "not_responding") or stop["object"] not in disconnected:
            yield Finding(STOP, stop["rule"], stop["object"], without_object(stop["object"], stop["text"]))


def _emptying(results: Iterable[Data], cluster: str) -> Iterator[Finding]:
    """Yield findings about virtual machines that prevent the evacuation of a host that must leave service."""
    for result in results:
        if "hosts" not in result and result.get("msg"):
            yield Finding(STOP, "emptying", cluster, f"whether its hosts can be emptied is unknown: {result['msg']}")
        for host in result.get("hosts") or []:
            reasons = [str(host["msg"])] if host.get("failed") else host.get("unmet") or []
            for reason in reasons:
                text = f"it cannot be emptied: {_for_the_inventory(reason)}"
                yield Finding(STOP, "emptying", host["host"], text)


def _for_the_inventory(reason: str) -> str:
    """Return a reason of esxi_power with the options of the playbooks instead of those of the module."""
    for module_option, playbook_option in _OPTIONS.items():
        reason = reason.replace(module_option, playbook_option)
    return reason


def refusals(hosts: Iterable[Data]) -> list[str]:
    """Return the errors of a real run on these hosts, which stay in service, from their plans in check mode."""
    blocked = {host["host"]: reasons for host in hosts if host.get("changed") and (reasons := _lasting(host))}
    return [str(Refused(name, "change host profile", "; ".join(reasons))) for name, reasons in blocked.items()]


def _lasting(host: Data) -> list[str]:
    """Return the reasons against the change that the playbooks do not remove."""
    return [reason for reason in host.get("unmet") or [] if not reason.endswith(COMES_WITH_FABRIC)]


def _acceptance(result: Data, cluster: str) -> Iterator[Finding]:
    """Yield findings about answers of the site that the collection does not understand or that are new to it."""
    severities = {"not understood": (STOP, "not_understood"), "never seen by us": (WARN, "never_seen")}
    for row in result.get("readers") or []:
        if row["status"] in severities:
            severity, rule = severities[row["status"]]
            details = listed(without_object(row["object"], text) for text in row["what"])
            text = f"{row['reader']} is {row['status']} ({details}); {_REPORT}"
            yield Finding(severity, rule, row["object"], text)
    for row in result.get("assumptions") or []:
        if row["status"] == "refuted":
            text = f"an assumption does not hold here: {row['text']} But {row['said']}"
            yield Finding(STOP, "refuted", cluster, text)


def _plan(plan: Data, cluster: str, earlier: Iterable[Finding]) -> Iterator[Finding]:
    """Yield findings about warnings of the planner, and its refusals, unless a stop at that host explains them."""
    explained = {finding.object for finding in earlier if finding.severity == STOP}
    if "hosts" not in plan:
        yield Finding(STOP, "plan", cluster, str(plan.get("msg", "its hosts could not be planned")))
    for host in plan.get("hosts") or []:
        name = host["host"]
        if host.get("failed") and name not in explained:
            yield Finding(STOP, "plan", name, without_object(name, host["msg"]))
        if host.get("changed") and not leaves_service(host):
            for reason in _lasting(host):
                yield Finding(STOP, "plan", name, f"it stays in service and cannot be changed: {reason}")
        for text in host.get("warnings") or []:
            yield Finding(WARN, "plan", name, text)
        if host.get("reboots"):
            boots = "once" if host["reboots"] == 1 else f"{host['reboots']} times"
            yield Finding(NOTE, "reboots", name, f"it will leave service and boot {boots}; allow time for that")
