# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What the answers of a site say of an assumption: proven (True), refuted (False) or nothing (None), and in words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from ...usage.gpu_load import MEMORY, UTILISATION
from ...vmotion.checks.move_events import HOT_ENCRYPTED, MOVED
from ...vsphere.esxcli import parse
from ...workers.placement import gpu_slots
from ..recording.recording import Command, Recording
from .shapes import COMMANDS, letters

Evidence = tuple["bool | None", str]
NOTHING: Evidence = (None, "the site has nothing that tells")
_DRS_TASK = "Drm.ExecuteVMotionLRO"


def executer(recording: Recording) -> Evidence:
    """By which name the server calls what carries out esxcli."""
    name = recording.server.get("executer")
    return (name in ("ReflectManagedMethodExecuter", "ManagedMethodExecuter"), f"it is {name}") if name else NOTHING


def fields_of(command: str) -> Any:
    """The check that the answers to an esxcli command have the fields that are needed."""

    def check(recording: Recording) -> Evidence:
        rows = [row for one in _of(recording, command) for row in _rows(one)]
        if not rows:
            return NOTHING
        needed = {letters(field) for field in COMMANDS[command].needed}
        lacking = sorted({field for row in rows for field in needed - {letters(key) for key in row}})
        return not lacking, f"it lacks {', '.join(lacking)}" if lacking else f"its fields are {', '.join(rows[0])}"

    return check


def flags_of_flow_control(recording: Recording) -> Evidence:
    """How the DCB status writes the priorities with flow control."""
    rows = [row for one in _of(recording, "network nic dcb status get") for row in _rows(one)]
    shown = [row[key] for row in rows for key in row if letters(key) == "pfcconfiguration"]
    if not shown:
        return NOTHING
    texts = [" ".join(one) if isinstance(one, list) else str(one) for one in shown]
    return all(re.fullmatch(r"([01]\s*){8}", text) for text in texts), f"it writes {texts[0]!r}"


def no_waiting_image(recording: Recording) -> Evidence:
    """What a host without a waiting image answers to the list of its packages."""
    asked = [one for one in _of(recording, "software vib list") if one.arguments]
    empty = [one for one in asked if not _rows(one)]
    if not asked:
        return NOTHING
    return (True, "the list is empty") if empty else (None, "an image waits for the boot on each host")


def option_by_key(recording: Recording) -> Evidence:
    """Whether a host answers with one advanced option by its key."""
    values = list(_values(recording, 'config.option["Net.PVRDMAVmknic"].value'))
    return (True, f"it is {values[0]!r}") if values else NOTHING


def paired_uplink(recording: Recording) -> Evidence:
    """Whether an RDMA device names its network card by the card's key."""
    found = list[bool]()
    for net in _values(recording, "config.network"):
        keys = {card.key for card in net.pnic or []}
        paired = [getattr(one.backing, "pairedUplink", None) for one in getattr(net, "rdmaDevice", None) or []]
        found += [one in keys for one in paired if one]
    return (all(found), f"{sum(found)} of {len(found)} do") if found else NOTHING


def profile_names(recording: Recording) -> Evidence:
    """Whether the names of all vGPU profiles that are offered are understood."""
    names = {name for offered in _values(recording, "config.sharedPassthruGpuTypes") for name in offered}
    strange = sorted(name for name in names if gpu_slots.parse(name) is None)
    said = f"not understood: {', '.join(strange)}" if strange else f"{len(names)} are understood"
    return (not strange, said) if names else NOTHING


def users_of_gpus(recording: Recording) -> Evidence:
    """Whether a GPU names the virtual machines on it."""
    users = [vm for infos in _values(recording, "config.graphicsInfo") for one in infos for vm in one.vm or []]
    return (True, f"{len(users)} are named") if users else NOTHING


def counters_of_gpus(recording: Recording) -> Evidence:
    """Whether the counters of GPUs bear the names that are looked for."""
    named = {
        one.nameInfo.key
        for known in _values(recording, "perfCounter")
        for one in known
        if one.groupInfo.key == "gpu" and one.rollupType == "average"
    }
    wanted = {UTILISATION, MEMORY}
    return (wanted <= named, f"there are {', '.join(sorted(named))}") if named else NOTHING


def hot_migration_option(recording: Recording) -> Evidence:
    """Whether the option that allows vMotion with a virtual GPU can be asked for."""
    answers = [one for key, one in recording.calls.items() if "vgpu.hotmigrate.enabled" in key]
    known = [one for one in answers if one.fault is None and one.value]
    return (True, f"it is {known[0].value[0].value!r}") if known else NOTHING


def stun_times(recording: Recording) -> Evidence:
    """Whether hosts tell the stun times of vGPU profiles."""
    asked = [one.value or [] for key, one in recording.calls.items() if " RetrieveVgpuProfileInfo " in key]
    told = [info for infos in asked for info in infos if info.stunTimeEstimates]
    return (True, f"of {len(told)} profiles") if told else NOTHING


def image_managed(recording: Recording) -> Evidence:
    """Whether clusters tell both ways alike that an image manages them."""
    told = {key: one.values["lifecycleManaged"] for key, one in recording.objects.items() if _has_image_flag(one)}
    answers = {
        match[1]: bool(json.loads(one.text).get("enabled"))
        for one in recording.requests
        if one.status < 400 and (match := re.fullmatch(r".*/clusters/([^/]+)/enablement/software", one.path))
    }
    both = {key: told[key] == answers[key] for key in told if key in answers}
    return (all(both.values()), f"alike on {sum(both.values())} of {len(both)} clusters") if both else NOTHING


def unset_boot_time(recording: Recording) -> Evidence:
    """Whether a virtual machine that runs has no time of its boot."""
    running = [one for one in recording.objects.values() if str(one.values.get("runtime.powerState")) == "poweredOn"]
    unset = [one for one in running if one.values.get("runtime.bootTime") is None]
    return (True, f"{len(unset)} of {len(running)} have none") if unset else NOTHING


def encrypted_move(recording: Recording) -> Evidence:
    """Whether the event of an encrypted move names its target among its arguments."""
    found = [one for one in _events(recording) if getattr(one, "eventTypeId", None) == HOT_ENCRYPTED]
    keys = [[argument.key for argument in one.arguments or []] for one in found]
    return ("destHost" in keys[0], f"its arguments are {', '.join(keys[0])}") if keys else NOTHING


def one_chain(recording: Recording) -> Evidence:
    """Whether the events of one move share a chain."""
    events = list(_events(recording))
    ends = [one for one in events if type(one).__name__.rsplit(".", maxsplit=1)[-1] in MOVED]
    shared = [any(one is not end and one.chainId == end.chainId for one in events) for end in ends]
    return (all(shared), f"in {sum(shared)} of {len(shared)} moves") if shared else NOTHING


def task_of_drs(recording: Recording) -> Evidence:
    """How DRS calls its own moves."""
    kinds = {str(value) for value in _values(recording, "info.descriptionId")}
    return (True, "such a task is there") if _DRS_TASK in kinds else NOTHING


def move_encryption(recording: Recording) -> Evidence:
    """Which words a virtual machine has for the encryption of its moves."""
    words = {str(value) for value in _values(recording, "config.migrateEncryption")}
    known = {"disabled", "opportunistic", "required"}
    return (words <= known, f"there is {', '.join(sorted(words))}") if words else NOTHING


def by_hand(_recording: Recording) -> Evidence:
    """No read can tell."""
    return None, "no read can tell"


def _has_image_flag(one: Any) -> bool:
    return bool(one.kind == "ClusterComputeResource" and one.values.get("lifecycleManaged") is not None)


def _of(recording: Recording, command: str) -> list[Command]:
    return [one for one in recording.commands if one.command == command and one.fault is None]


def _rows(one: Command) -> list[dict[str, Any]]:
    answer = parse(one.response)
    return [answer] if isinstance(answer, dict) else answer if isinstance(answer, list) else []


def _values(recording: Recording, path: str) -> Iterator[Any]:
    yield from (one.values[path] for one in recording.objects.values() if one.values.get(path) is not None)


def _events(recording: Recording) -> Iterable[Any]:
    return [event for key, one in recording.calls.items() if " QueryEvents " in key for event in one.value or []]
