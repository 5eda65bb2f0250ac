"""Check assumptions with the answers of a site: confirmed (True), refuted (False) or open (None), with a sentence."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ...moves.checks.move_events import HOT_ENCRYPTED, MOVED
from ...usage.gpu_load import MEMORY, UTILISATION
from ...vsphere.esxcli import parse
from ...workers.placement import gpu_slots
from ..recording.recording import EsxcliCommand, Recording
from .shapes import COMMANDS, letters

Evidence = tuple["bool | None", str]
NOTHING: Evidence = (None, "the site has no such object")
_DRS_TASK = "Drm.ExecuteVMotionLRO"


def executer(recording: Recording) -> Evidence:
    """Check the type name of the server's esxcli executer."""
    name = recording.server.get("executer")
    return (name in ("ReflectManagedMethodExecuter", "ManagedMethodExecuter"), f"it is {name}") if name else NOTHING


def fields_of(command: str) -> Any:
    """Return a check that the answers to an esxcli command have the required fields."""

    def check(recording: Recording) -> Evidence:
        rows = [row for answered in _answered(recording, command) for row in _rows(answered)]
        if not rows:
            return NOTHING
        needed = {letters(field) for field in COMMANDS[command].needed}
        lacking = sorted({field for row in rows for field in needed - {letters(key) for key in row}})
        return not lacking, f"it lacks {', '.join(lacking)}" if lacking else f"its fields are {', '.join(rows[0])}"

    return check


def flags_of_flow_control(recording: Recording) -> Evidence:
    """Check the format of the priorities with flow control in the DCB status."""
    rows = [row for answered in _answered(recording, "network nic dcb status get") for row in _rows(answered)]
    shown = [row[key] for row in rows for key in row if letters(key) == "pfcconfiguration"]
    if not shown:
        return NOTHING
    texts = [" ".join(value) if isinstance(value, list) else str(value) for value in shown]
    return all(re.fullmatch(r"([01]\s*){8}", text) for text in texts), f"it is {texts[0]!r}"


def no_waiting_image(recording: Recording) -> Evidence:
    """Check that the package list of a waiting image is empty on a host without one."""
    answered = [command for command in _answered(recording, "software vib list") if command.arguments]
    empty = [command for command in answered if not _rows(command)]
    if not answered:
        return NOTHING
    return (True, "the list is empty") if empty else (None, "an image waits for the boot on each host")


def option_by_key(recording: Recording) -> Evidence:
    """Check that a host returns one advanced option by its key."""
    values = list(_values(recording, 'config.option["Net.PVRDMAVmknic"].value'))
    return (True, f"it is {values[0]!r}") if values else NOTHING


def paired_uplink(recording: Recording) -> Evidence:
    """Check that an RDMA device contains the key of its network adapter."""
    is_key = list[bool]()
    for net in _values(recording, "config.network"):
        keys = {card.key for card in net.pnic or []}
        paired = [getattr(device.backing, "pairedUplink", None) for device in getattr(net, "rdmaDevice", None) or []]
        is_key += [uplink in keys for uplink in paired if uplink]
    return (all(is_key), f"{sum(is_key)} of {len(is_key)} do") if is_key else NOTHING


def profile_names(recording: Recording) -> Evidence:
    """Check that the names of all offered vGPU profiles can be parsed."""
    names = {name for offered in _values(recording, "config.sharedPassthruGpuTypes") for name in offered}
    strange = sorted(name for name in names if gpu_slots.parse(name) is None)
    result = f"not understood: {', '.join(strange)}" if strange else f"{len(names)} are understood"
    return (not strange, result) if names else NOTHING


def users_of_gpus(recording: Recording) -> Evidence:
    """Check that a GPU lists the virtual machines on it."""
    users = [vm for infos in _values(recording, "config.graphicsInfo") for info in infos for vm in info.vm or []]
    return (True, f"{len(users)} are named") if users else NOTHING


def counters_of_gpus(recording: Recording) -> Evidence:
    """Check that the counters of GPUs have the expected names."""
    named = {
        counter.nameInfo.key
        for known in _values(recording, "perfCounter")
        for counter in known
        if counter.groupInfo.key == "gpu" and counter.rollupType == "average"
    }
    desired = {UTILISATION, MEMORY}
    return (desired <= named, f"there are {', '.join(sorted(named))}") if named else NOTHING


def hot_migration_option(recording: Recording) -> Evidence:
    """Check that the option for vMotion with a virtual GPU can be queried."""
    answers = [answer for key, answer in recording.calls.items() if "vgpu.hotmigrate.enabled" in key]
    known = [answer for answer in answers if answer.fault is None and answer.value]
    return (True, f"it is {known[0].value[0].value!r}") if known else NOTHING


def stun_times(recording: Recording) -> Evidence:
    """Check that hosts report the stun times of vGPU profiles."""
    answers = [answer.value or [] for key, answer in recording.calls.items() if " RetrieveVgpuProfileInfo " in key]
    profiles = [info for infos in answers for info in infos if info.stunTimeEstimates]
    return (True, f"for {len(profiles)} profiles") if profiles else NOTHING


def image_managed(recording: Recording) -> Evidence:
    """Check that the property of a cluster and the REST API agree whether an image manages the cluster."""
    clusters = {key: each for key, each in recording.objects.items() if _has_image_flag(each)}
    answers = {
        match[1]: bool(json.loads(request.text).get("enabled"))
        for request in recording.requests
        if request.status < 400 and (match := re.fullmatch(r".*/clusters/([^/]+)/enablement/software", request.path))
    }
    both = {key: clusters[key].values["lifecycleManaged"] == answers[key] for key in clusters if key in answers}
    return (all(both.values()), f"equal on {sum(both.values())} of {len(both)} clusters") if both else NOTHING


def unset_boot_time(recording: Recording) -> Evidence:
    """Check that a running virtual machine has no boot time."""
    running = [each for each in recording.objects.values() if str(each.values.get("runtime.powerState")) == "poweredOn"]
    unset = [machine for machine in running if machine.values.get("runtime.bootTime") is None]
    return (True, f"{len(unset)} of {len(running)} have none") if unset else NOTHING


def encrypted_move(recording: Recording) -> Evidence:
    """Check that the event of an encrypted move contains its target in its arguments."""
    moves = [event for event in _events(recording) if getattr(event, "eventTypeId", None) == HOT_ENCRYPTED]
    keys = [[argument.key for argument in event.arguments or []] for event in moves]
    return ("destHost" in keys[0], f"its arguments are {', '.join(keys[0])}") if keys else NOTHING


def one_chain(recording: Recording) -> Evidence:
    """Check that the events of a move share a chain."""
    events = list(_events(recording))
    ends = [event for event in events if type(event).__name__.rsplit(".", maxsplit=1)[-1] in MOVED]
    shared = [any(event is not end and event.chainId == end.chainId for event in events) for end in ends]
    return (all(shared), f"in {sum(shared)} of {len(shared)} moves") if shared else NOTHING


def task_of_drs(recording: Recording) -> Evidence:
    """Check the name of the tasks in which DRS moves machines."""
    kinds = {str(value) for value in _values(recording, "info.descriptionId")}
    return (True, "there is such a task") if _DRS_TASK in kinds else NOTHING


def move_encryption(recording: Recording) -> Evidence:
    """Check the values that a virtual machine has for the encryption of its moves."""
    words = {str(value) for value in _values(recording, "config.migrateEncryption")}
    known = {"disabled", "opportunistic", "required"}
    return (words <= known, f"there is {', '.join(sorted(words))}") if words else NOTHING


def not_readable(_recording: Recording) -> Evidence:
    """Leave an assumption open that no read can check."""
    return None, "no read can check it"


@dataclass(frozen=True)
class Assumption:
    """One assumption.

    ``where`` is a file of the collection and words in it that depend on the assumption; ``proof`` is the observation
    that would confirm it; ``check`` checks the answers of a site.
    """

    name: str
    text: str
    where: tuple[str, str]
    proof: str
    check: Callable[[Recording], Evidence] = not_readable


def _has_image_flag(recorded: Any) -> bool:
    return bool(recorded.kind == "ClusterComputeResource" and recorded.values.get("lifecycleManaged") is not None)


def _answered(recording: Recording, command: str) -> list[EsxcliCommand]:
    return [each for each in recording.commands if each.command == command and each.fault is None]


def _rows(command: EsxcliCommand) -> list[dict[str, object]]:
    answer = parse(command.response)
    return [answer] if isinstance(answer, dict) else answer if isinstance(answer, list) else []


def _values(recording: Recording, path: str) -> Iterator[Any]:
    yield from (each.values[path] for each in recording.objects.values() if each.values.get(path) is not None)


def _events(recording: Recording) -> Iterable[Any]:
    answers = [answer for key, answer in recording.calls.items() if " QueryEvents " in key]
    return [event for answer in answers for event in answer.value or []]
