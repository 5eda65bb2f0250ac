"""Findings about a cluster and its vCenter that stop a change of the hosts, or make it unwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...core.findings import NOTE, STOP, WARN, Finding, listed
from ...core.versions import numbers
from ...maintenance.cluster_facts import ClusterFacts, ProfileSlots
from ...maintenance.evacuation import FULLY_AUTOMATED
from ...workers.capacity.running_vm import HOT_MIGRATE

# If this option is set, DRS moves virtual machines with a vGPU to balance load, which stuns the training in them.
GPU_BALANCING = "PassthroughDrsAutomation"
CLOCKS_APART = 2.0
# Editions of hosts and of vCenter without vGPU and distributed switches; vCenter Standard supports both.
SMALL_EDITIONS = ("esx.standard", "esx.essentials", "esx.enterprise.", "vc.essentials", "vc.foundation")


@dataclass(frozen=True)
class CheckedCluster:
    """A cluster as cluster_info returns it, the needs of all its profiles, and whether any host must leave service.

    ``device_classes`` are the classes of the workers' devices, ``card_classes`` are those of their RDMA cards.
    """

    facts: ClusterFacts
    words: frozenset[str] = frozenset()
    vgpu: str = ""
    leaving: bool = True
    device_classes: Sequence[str] = ()
    card_classes: Sequence[str] = ()

    @property
    def name(self) -> str:
        return self.facts["name"]

    def finding(self, severity: str, rule: str, text: str) -> Finding:
        return Finding(severity, rule, self.name, text)


def findings(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield all findings about the cluster, except the stop rules of a rolling change."""
    checks = (_owners, _availability, _drs, _versions, _vmotion, _slots, _classes, _alarms, _busy, _clocks, _licences)
    for check in checks:
        yield from check(cluster)


def _owners(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about other owners of host settings, who would undo the change."""
    if cluster.facts["configuration_profile"] and cluster.words:
        text = "a configuration profile keeps its hosts' settings and would undo the change; make the change there"
        yield cluster.finding(STOP, "configuration_profile", text)
    if cluster.facts["image_managed"] and "vib" in cluster.words:
        text = "an image manages it and would remove VIBs that are not in it; add the component with esxi_image instead"
        yield cluster.finding(STOP, "image_managed", text)
    elif cluster.facts["image_managed"]:
        text = "an image manages its software, but not its settings; VIBs belong in the image"
        yield cluster.finding(NOTE, "image_managed", text)


def _availability(cluster: CheckedCluster) -> Iterator[Finding]:
    most, ha = cluster.facts["max_out_of_service"], cluster.facts["ha"]
    if most["allowed"] < 1 and cluster.leaving:
        text = f"no host may leave service, because {most['why']}; add a host, or free capacity"
        yield cluster.finding(STOP, "capacity", text)
    elif most["allowed"] < 1:
        text = f"no host may leave service now, because {most['why']}; make room before a host must leave"
        yield cluster.finding(NOTE, "capacity", text)
    if not ha["enabled"]:
        yield cluster.finding(
            NOTE, "ha", "HA is off, so nothing restarts virtual machines if a host fails; switch it on"
        )
    elif not ha["admission_control"]:
        text = "HA has no admission control, so it reserves no capacity for failures; switch it on, or monitor that"
        yield cluster.finding(WARN, "ha", text)
    if ha["enabled"] and ha["failover_hosts_now"] == 0:
        text = "HA cannot tolerate the failure of one host now; free capacity before a host leaves service"
        yield cluster.finding(WARN, "ha", text)


def _drs(cluster: CheckedCluster) -> Iterator[Finding]:
    drs = cluster.facts["drs"]
    if not drs["enabled"] or drs["behaviour"] != FULLY_AUTOMATED:
        state = drs["behaviour"] if drs["enabled"] else "off"
        text = f"DRS is {state}, so it does not empty hosts; move running virtual machines by hand before a change"
        yield cluster.finding(NOTE, "drs", text)
    if str(drs["options"].get(GPU_BALANCING, "0")) == "1":
        text = f"the DRS option {GPU_BALANCING} is 1, so DRS stuns training to balance load; remove it"
        yield cluster.finding(WARN, "drs", text)


def _versions(cluster: CheckedCluster) -> Iterator[Finding]:
    vcenter = cluster.facts["vcenter"]["version"]
    newer = [host["host"] for host in cluster.facts["hosts"] if numbers(host["version"])[:2] > numbers(vcenter)[:2]]
    if newer:
        text = f"vCenter {vcenter} is older than ESXi on {listed(newer)}; update vCenter first"
        yield cluster.finding(STOP, "version", text)
    if numbers(vcenter) >= (9,) and "vib" in cluster.words and not cluster.facts["image_managed"]:
        text = "vSphere 9 manages the software of hosts only with images; add the VIB to an image with esxi_image"
        yield cluster.finding(WARN, "version", text)


def _vmotion(cluster: CheckedCluster) -> Iterator[Finding]:
    if "vgpu" in cluster.words and not cluster.facts["options"].get(HOT_MIGRATE):
        text = f"the vCenter option {HOT_MIGRATE} is false; without it, no running vGPU can move: see shared_settings"
        yield cluster.finding(WARN, "vmotion", text)


def _slots(cluster: CheckedCluster) -> Iterator[Finding]:
    offered = cluster.facts["gpu_slots"]
    if not cluster.vgpu or "vgpu" not in cluster.words or not offered:
        return
    desired = next((slots for slots in offered if slots["profile"] == cluster.vgpu), None)
    if desired is None:
        names = listed(slots["profile"] for slots in offered)
        yield cluster.finding(
            WARN, "gpu_slots", f"no host offers the vGPU profile {cluster.vgpu}; choose one of {names}"
        )
    elif desired["free"] == 0:
        taken = f"all {desired['used'] + desired['reserved']} places for {cluster.vgpu} are taken{_reserved(desired)}"
        text = f"{taken}, so no worker can move; keep one host free"
        yield cluster.finding(WARN, "gpu_slots", text)
    else:
        free, total = desired["free"], desired["used"] + desired["free"] + desired["reserved"]
        text = f"of {total} places for {cluster.vgpu} {free} are free{_reserved(desired)}; a move needs one"
        yield cluster.finding(NOTE, "gpu_slots", text)


def _classes(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about the device classes of the workers: hosts without them, and hosts where they cannot move."""
    hosts = {host["host"]: host["device_classes"] for host in cluster.facts["hosts"]}
    for name in sorted({*cluster.device_classes, *cluster.card_classes}):
        there = {host: classes[name] for host, classes in hosts.items() if name in classes}
        if absent := listed(sorted(set(hosts) - set(there))):
            text = f"{absent} has no device of class {name}, so workers with one cannot run there"
            yield cluster.finding(WARN, "device_class", f"{text}; check its driver, or leave the host out")
        if tied := listed(sorted(host for host, found in there.items() if not found["moves"])):
            text = f"{tied} reports no vMotion support for its devices of class {name}"
            yield cluster.finding(WARN, "device_class", f"{text}, so their workers must be shut down instead of moved")
        others = listed(sorted(host for host, found in there.items() if not found["network_card"]))
        if others and name in cluster.card_classes:
            text = f"{others} reports that devices of class {name} are not network cards"
            yield cluster.finding(STOP, "device_class", f"{text}; correct device_class in rdma_nics")


def _reserved(slots: ProfileSlots) -> str:
    return f" ({slots['reserved']} reserved in vCenter, without a user)" if slots["reserved"] else ""


def _alarms(cluster: CheckedCluster) -> Iterator[Finding]:
    """Yield findings about alarms, except red unacknowledged ones, which the stop rules report."""
    for alarm in cluster.facts["alarms"]:
        if alarm["status"] == "yellow" or alarm["acknowledged"]:
            state = f"{alarm['status']}{' and acknowledged' if alarm['acknowledged'] else ''}"
            text = f"the alarm {alarm['alarm']!r} is {state} since {alarm['since']}; check its cause before the change"
            yield Finding(WARN, "alarm", alarm["object"], text)


def _busy(cluster: CheckedCluster) -> Iterator[Finding]:
    lock, vsan = cluster.facts["lock"], cluster.facts["vsan"]
    if lock["held"] and lock["over"]:
        text = f"{lock['owner']} (run {lock['run']}) left its lock behind: {lock['over']}; the next run takes it over"
        yield cluster.finding(NOTE, "lock", text)
    elif lock["held"]:
        text = f"{lock['owner']} (run {lock['run']}) holds its lock until {lock['until']}; wait for that run"
        yield cluster.finding(STOP, "lock", text)
    for task in cluster.facts["tasks"]:
        text = f"the task {task['task']} of {task['user']} runs on it; wait until it ends"
        yield Finding(NOTE if task["ours"] else WARN, "running_task", task["object"], text)
    for host in cluster.facts["out_of_service"]:
        if host["ours"]:
            text = f"an earlier run left it out of service ({host['why']}, {host['by']}); hosts.yml continues there"
            yield Finding(NOTE, "out_of_service", host["host"], text)
    if vsan["enabled"] and vsan["resync_bytes"] is None:
        text = "vSAN does not report whether it is resynchronizing; check that in the vSphere Client"
        yield cluster.finding(WARN, "vsan_resync", text)


def _clocks(cluster: CheckedCluster) -> Iterator[Finding]:
    for clock in cluster.facts["clocks"]:
        offset = clock["offset_seconds"]
        if offset is not None and abs(offset) > CLOCKS_APART:
            text = f"its clock is {offset:+.1f} s off vCenter's, as are its events and logs; correct its time service"
            yield Finding(WARN, "clock", clock["host"], text)
        elif not clock["running"]:
            text = "no time service runs on it; give it NTP servers and start ntpd"
            yield Finding(WARN, "clock", clock["host"], text)


def _licences(cluster: CheckedCluster) -> Iterator[Finding]:
    for licence in cluster.facts["licences"]:
        edition, name = str(licence["edition"]), licence["object"]
        if licence["expired"]:
            text = f"its licence {licence['name']} expired at {licence['expires']}, so it may be disconnected; renew it"
            yield Finding(STOP, "licence", name, text)
        elif licence["evaluation"]:
            until = f" until {licence['expires']}" if licence["expires"] else ""
            yield Finding(NOTE, "licence", name, f"it runs on an evaluation licence{until}; assign one in time")
        elif edition.lower().startswith(SMALL_EDITIONS) and cluster.words & {"vgpu", "pvrdma"}:
            text = f"its licence {licence['name']} ({edition}) is of an edition without vGPUs and distributed switches"
            yield Finding(WARN, "licence", name, f"{text}; assign a larger one")
