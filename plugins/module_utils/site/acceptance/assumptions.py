# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What the collection assumes of real systems and no recording has proven; docs/unproven.md is written from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..recording.recording import Recording
from . import proofs
from .proofs import Evidence

PROVEN, REFUTED, OPEN = "proven", "refuted", "open"


@dataclass(frozen=True)
class Assumption:
    """One assumption.

    ``where`` is a file of the collection and words in it that rest on the assumption; ``proof`` says what would prove
    it; ``check`` looks at the answers of a site.
    """

    name: str
    text: str
    where: tuple[str, str]
    proof: str
    check: Callable[[Recording], Evidence] = proofs.by_hand


_HERE = "plugins/module_utils"
_ON_A_SITE = "`acceptance` on any site"
_WITH_RDMA = "`acceptance` on a host with RDMA cards"
_WITH_VGPU = "`acceptance` on a host with vGPUs in use"
_AFTER_A_MOVE = "`acceptance` with a virtual machine that was moved within the last days"
ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "esxcli executer",
        "vCenter calls the type of what carries out esxcli ReflectManagedMethodExecuter or ManagedMethodExecuter.",
        (f"{_HERE}/vsphere/esxcli.py", "PlainExecuter"),
        _ON_A_SITE,
        proofs.executer,
    ),
    Assumption(
        "esxcli privilege",
        "Through vCenter esxcli needs Host.Config.Settings and no other privilege, such as Host.Cim.CimInteraction.",
        (f"{_HERE}/hosts/privileges/privilege_table.py", "_ESXCLI ="),
        "`acceptance` with the account that `account` made, which has no more",
    ),
    Assumption(
        "counters of RDMA devices",
        "`esxcli rdma device stats get` has the packets and bytes that were received and sent.",
        (f"{_HERE}/hosts/network.py", "rdma device stats get"),
        _WITH_RDMA,
        proofs.fields_of("rdma device stats get"),
    ),
    Assumption(
        "counters of network cards",
        "`esxcli network nic stats get` has the packets and bytes that were received and sent.",
        (f"{_HERE}/hosts/network.py", "network nic stats get"),
        _WITH_RDMA,
        proofs.fields_of("network nic stats get"),
    ),
    Assumption(
        "flow control in the DCB status",
        "`esxcli network nic dcb status get` says whether priority flow control is enabled and on which priorities.",
        (f"{_HERE}/hosts/dcb.py", "network nic dcb status get"),
        _WITH_RDMA,
        proofs.fields_of("network nic dcb status get"),
    ),
    Assumption(
        "flags of flow control",
        "The DCB status writes eight flags of 0 and 1, priority 0 first.",
        (f"{_HERE}/hosts/roce_settings.py", "pfcconfiguration"),
        _WITH_RDMA,
        proofs.flags_of_flow_control,
    ),
    Assumption(
        "no waiting image",
        "`esxcli software vib list --rebooting-image` answers with an empty list where no image waits for the boot.",
        (f"{_HERE}/hosts/installed_vibs.py", "rebootingimage"),
        _ON_A_SITE,
        proofs.no_waiting_image,
    ),
    Assumption(
        "no reboot required",
        "A vGPU manager is in use only after a reboot, although install and update say that none is required.",
        (f"{_HERE}/hosts/vib.py", "NVIDIA's guide reboots the host after every change"),
        "`hosts` with a newer vGPU manager on one host, then `esxi_info` before and after its boot",
    ),
    Assumption(
        "one option by its key",
        "A host answers with one advanced option by its key as a property.",
        (f"{_HERE}/vsphere/option_definitions.py", "config.option["),
        _ON_A_SITE,
        proofs.option_by_key,
    ),
    Assumption(
        "uplink of an RDMA device",
        "An RDMA device names its network card by the card's key.",
        (f"{_HERE}/hosts/network.py", "pairedUplink"),
        _WITH_RDMA,
        proofs.paired_uplink,
    ),
    Assumption(
        "names of profiles",
        "The name of a vGPU profile has the model, the memory and the slices of the GPU.",
        (f"{_HERE}/workers/placement/gpu_slots.py", "_PROFILE"),
        _WITH_VGPU,
        proofs.profile_names,
    ),
    Assumption(
        "users of a GPU",
        "A GPU of a host names the virtual machines whose virtual GPUs are on it.",
        (f"{_HERE}/workers/capacity/host_capacity.py", "def users"),
        _WITH_VGPU,
        proofs.users_of_gpus,
    ),
    Assumption(
        "counters of GPUs",
        "vCenter measures each GPU by averages that are called utilization and mem.used.",
        (f"{_HERE}/usage/gpu_load.py", "UTILISATION"),
        _WITH_VGPU,
        proofs.counters_of_gpus,
    ),
    Assumption(
        "option of hot migration",
        "vCenter tells the option vgpu.hotmigrate.enabled to whoever asks for it by name.",
        (f"{_HERE}/vsphere/options.py", "QueryOptions"),
        _ON_A_SITE,
        proofs.hot_migration_option,
    ),
    Assumption(
        "stun times of profiles",
        "From vCenter 8.0 U2 on a host tells for each vGPU profile the stun times by the bandwidth of the move.",
        (f"{_HERE}/vmotion/move/move_facts.py", "stunTimeEstimates"),
        _WITH_VGPU,
        proofs.stun_times,
    ),
    Assumption(
        "managed by an image",
        "A cluster's property lifecycleManaged says the same as the REST API of vLCM.",
        (f"{_HERE}/hosts/cluster_image.py", "lifecycleManaged"),
        _ON_A_SITE,
        proofs.image_managed,
    ),
    Assumption(
        "boot time after a move",
        "A virtual machine that was moved runs without a time of its boot.",
        (f"{_HERE}/vmotion/checks/move_events.py", "vCenter forgets since when a machine runs"),
        _AFTER_A_MOVE,
        proofs.unset_boot_time,
    ),
    Assumption(
        "target of an encrypted move",
        "The event of an encrypted move names its target in the argument destHost.",
        (f"{_HERE}/vmotion/move/move_watch.py", "destHost"),
        _AFTER_A_MOVE,
        proofs.encrypted_move,
    ),
    Assumption(
        "chain of a move",
        "All events of one move bear the chain id of its task.",
        (f"{_HERE}/vmotion/move/move_watch.py", "of_chain"),
        _AFTER_A_MOVE,
        proofs.one_chain,
    ),
    Assumption(
        "moves of DRS",
        "DRS's own moves are tasks that are called Drm.ExecuteVMotionLRO.",
        (f"{_HERE}/maintenance/recent_tasks.py", "ExecuteVMotionLRO"),
        "`acceptance` with a virtual machine just after DRS moved it",
        proofs.task_of_drs,
    ),
    Assumption(
        "encryption of moves",
        "A virtual machine says by disabled, opportunistic or required whether its moves are encrypted.",
        (f"{_HERE}/vmotion/move/move_watch.py", "config.migrateEncryption"),
        _ON_A_SITE,
        proofs.move_encryption,
    ),
)


def judged(recording: Recording) -> list[dict[str, Any]]:
    """Each assumption with what the answers of a site say of it."""
    words = {True: PROVEN, False: REFUTED, None: OPEN}
    checked = [(one, one.check(recording)) for one in ASSUMPTIONS]
    return [{"name": one.name, "text": one.text, "status": words[told], "said": said} for one, (told, said) in checked]


def lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    """The assumptions for a person, refuted ones first."""
    order = (REFUTED, PROVEN, OPEN)
    listed = sorted(found, key=lambda one: order.index(one["status"]))
    return [f"{one['status']:<8} {one['text']} ({one['said']})" for one in listed]
