# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Findings about a cluster and its vCenter that stop a change of the hosts, or make it unwise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.findings import NOTE, STOP, WARN, Finding, listed
from ...core.versions import numbers
from ...maintenance.evacuation import FULLY_AUTOMATED
from ...workers.capacity.running_vm import HOT_MIGRATE

Data = Mapping[str, Any]

# With it DRS moves virtual machines with a vGPU for balance, and so stuns the training in them.
GPU_BALANCING = "PassthroughDrsAutomation"
CLOCKS_APART = 2.0
# Editions that are known to lack vGPU and distributed switches.
SMALL_EDITIONS = ("standard", "essentials", "foundation", "esx.enterprise.")


@dataclass(frozen=True)
class Scene:
    """A cluster as cluster_info returns it, the needs of all its profiles, and whether any host must leave service."""

    cluster: Data
    words: frozenset[str] = frozenset()
    vgpu: str = ""
    leaving: bool = True

    @property
    def name(self) -> str:
        return str(self.cluster["name"])

    def find(self, severity: str, rule: str, text: str) -> Finding:
        """A finding about the cluster itself."""
        return Finding(severity, rule, self.name, text)


def findings(scene: Scene) -> Iterator[Finding]:
    """All findings about the cluster, except the stop rules of a rolling change."""
    checks = (_owners, _availability, _drs, _versions, _vmotion, _slots, _alarms, _busy, _clocks, _licences)
    for check in checks:
        yield from check(scene)


def _owners(scene: Scene) -> Iterator[Finding]:
    """Findings about other owners of host settings, who would undo the change."""
    if scene.cluster["configuration_profile"] and scene.words:
        text = "a configuration profile keeps its hosts' settings and would undo the change; make the change there"
        yield scene.find(STOP, "configuration_profile", text)
    if scene.cluster["image_managed"] and "vib" in scene.words:
        text = "an image manages it and would remove VIBs that are not in it; add the component with esxi_image instead"
        yield scene.find(STOP, "image_managed", text)
    elif scene.cluster["image_managed"]:
        text = "an image manages it, which keeps software only; settings stay, yet VIBs belong into the image"
        yield scene.find(NOTE, "image_managed", text)


def _availability(scene: Scene) -> Iterator[Finding]:
    most, ha = scene.cluster["max_out_of_service"], scene.cluster["ha"]
    if most["allowed"] < 1 and scene.leaving:
        text = f"no host may leave service, because {most['why']}; add a host, or free what is needed"
        yield scene.find(STOP, "capacity", text)
    elif most["allowed"] < 1:
        text = f"no host may leave service now, because {most['why']}; make room before a host must leave"
        yield scene.find(NOTE, "capacity", text)
    if not ha["enabled"]:
        yield scene.find(NOTE, "ha", "HA is off, so nothing restarts virtual machines if a host fails; switch it on")
    elif not ha["admission_control"]:
        text = "HA has no admission control, so room for failures is not kept free; switch that on, or watch it"
        yield scene.find(WARN, "ha", text)
    if ha["enabled"] and ha["failover_hosts_now"] == 0:
        text = "HA could not stand the failure of one host as it is; free capacity before a host leaves service"
        yield scene.find(WARN, "ha", text)


def _drs(scene: Scene) -> Iterator[Finding]:
    drs = scene.cluster["drs"]
    if not drs["enabled"] or drs["behaviour"] != FULLY_AUTOMATED:
        state = drs["behaviour"] if drs["enabled"] else "off"
        text = f"DRS is {state}, so it empties no host by itself; move running virtual machines by hand when it is time"
        yield scene.find(NOTE, "drs", text)
    if str(drs["options"].get(GPU_BALANCING, "0")) == "1":
        text = f"the DRS option {GPU_BALANCING} is 1, so DRS stuns training to balance load; remove it"
        yield scene.find(WARN, "drs", text)


def _versions(scene: Scene) -> Iterator[Finding]:
    vcenter = scene.cluster["vcenter"]["version"]
    newer = [one["host"] for one in scene.cluster["hosts"] if numbers(one["version"])[:2] > numbers(vcenter)[:2]]
    if newer:
        text = f"vCenter {vcenter} is older than ESXi on {listed(newer)}; update vCenter first"
        yield scene.find(STOP, "version", text)
    if numbers(vcenter) >= (9,) and "vib" in scene.words and not scene.cluster["image_managed"]:
        text = "vSphere 9 keeps the software of hosts by images alone; put the VIB into an image with esxi_image"
        yield scene.find(WARN, "version", text)


def _vmotion(scene: Scene) -> Iterator[Finding]:
    hot = scene.cluster["options"].get(HOT_MIGRATE)
    if "vgpu" not in scene.words or hot:
        return
    if hot is None:
        text = f"vCenter has no option {HOT_MIGRATE}, which came with 6.7 U1; without it no vGPU moves while it runs"
    else:
        text = f"the vCenter option {HOT_MIGRATE} is false; without it no vGPU moves while it runs: see shared_settings"
    yield scene.find(WARN, "vmotion", text)


def _slots(scene: Scene) -> Iterator[Finding]:
    offered = scene.cluster["gpu_slots"]
    if not scene.vgpu or "vgpu" not in scene.words or not offered:
        return
    one = next((slots for slots in offered if slots["profile"] == scene.vgpu), None)
    if one is None:
        names = listed(slots["profile"] for slots in offered)
        yield scene.find(WARN, "gpu_slots", f"no host offers the vGPU profile {scene.vgpu}, choose of {names}")
    elif one["free"] == 0:
        text = f"all {one['used']} places for {scene.vgpu} are taken, so no worker can move; keep one host free"
        yield scene.find(WARN, "gpu_slots", text)
    else:
        text = f"of {one['used'] + one['free']} places for {scene.vgpu} {one['free']} are free; a move needs one"
        yield scene.find(NOTE, "gpu_slots", text)


def _alarms(scene: Scene) -> Iterator[Finding]:
    """Findings about alarms, except red unacknowledged ones, which the stop rules report."""
    for alarm in scene.cluster["alarms"]:
        if alarm["status"] == "yellow" or alarm["acknowledged"]:
            state = f"{alarm['status']}{' and acknowledged' if alarm['acknowledged'] else ''}"
            text = f"the alarm {alarm['alarm']!r} is {state} since {alarm['since']}; see what it is before the work"
            yield Finding(WARN, "alarm", alarm["object"], text)


def _busy(scene: Scene) -> Iterator[Finding]:
    lock, vsan = scene.cluster["lock"], scene.cluster["vsan"]
    if lock["held"] and lock["over"]:
        text = f"{lock['owner']} (run {lock['run']}) left its lock behind: {lock['over']}; the next run takes it over"
        yield scene.find(NOTE, "lock", text)
    elif lock["held"]:
        text = f"{lock['owner']} (run {lock['run']}) holds its lock until {lock['until']}; wait for that run"
        yield scene.find(STOP, "lock", text)
    for task in scene.cluster["tasks"]:
        text = f"the task {task['task']} of {task['user']} runs on it; wait until it ends"
        yield Finding(NOTE if task["ours"] else WARN, "running_task", task["object"], text)
    for one in scene.cluster["out_of_service"]:
        if one["ours"]:
            text = f"an earlier run left it out of service ({one['why']}, {one['by']}); hosts.yml continues there"
            yield Finding(NOTE, "out_of_service", one["host"], text)
    if vsan["enabled"] and vsan["resync_bytes"] is None:
        yield scene.find(WARN, "vsan_resync", "vSAN does not tell whether it is resyncing; look in the vSphere Client")


def _clocks(scene: Scene) -> Iterator[Finding]:
    for clock in scene.cluster["clocks"]:
        offset = clock["offset_seconds"]
        if offset is not None and abs(offset) > CLOCKS_APART:
            text = f"its clock is {offset:+.1f} s off vCenter's, and its events and logs too; correct its time service"
            yield Finding(WARN, "clock", clock["host"], text)
        elif not clock["running"]:
            text = "no time service runs on it; give it NTP servers and start ntpd"
            yield Finding(WARN, "clock", clock["host"], text)


def _licences(scene: Scene) -> Iterator[Finding]:
    for licence in scene.cluster["licences"]:
        edition, name = str(licence["edition"]), licence["object"]
        if licence["expired"]:
            text = f"its licence {licence['name']} expired at {licence['expires']}, so it may be disconnected; renew it"
            yield Finding(STOP, "licence", name, text)
        elif licence["evaluation"]:
            until = f" until {licence['expires']}" if licence["expires"] else ""
            yield Finding(NOTE, "licence", name, f"it runs on an evaluation licence{until}; assign one in time")
        elif any(word in edition.lower() for word in SMALL_EDITIONS) and scene.words & {"vgpu", "pvrdma"}:
            text = f"its licence {licence['name']} ({edition}) is of an edition without vGPUs and distributed switches"
            yield Finding(WARN, "licence", name, f"{text}; assign a larger one")
