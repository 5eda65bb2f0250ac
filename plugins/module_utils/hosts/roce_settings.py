# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Lossless RoCE from the user's words (priority, trust, DSCP) to driver options and to the settings of the switch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .driver_options import OptionError, merge, parse, pfc_mask, render, same_value

DSCP, PCP = "dscp", "pcp"

# By driver of the network card: the options that are ours, by kernel module.
OURS: dict[str, dict[str, tuple[str, ...]]] = {
    "nmlx5_core": {"nmlx5_core": ("pfctx", "pfcrx", "trust_state"), "nmlx5_rdma": ("dscp_force", "pcp_force")},
    "nmlx4_en": {"nmlx4_en": ("pfctx", "pfcrx")},
}
_TRUST = {PCP: "1", DSCP: "2"}
_OFF = "-1"


@dataclass(frozen=True)
class Lossless:
    """RoCE traffic on one priority that the network must not drop, and how a packet shows that it is of it."""

    priority: int
    trust: str
    dscp: int | None = None


def lossless(priority: int, trust: str, dscp: int | None = None) -> Lossless:
    """The checked settings; without a DSCP the one of low drop precedence in the priority's class (26 for 3)."""
    pfc_mask([priority])
    if trust not in _TRUST:
        raise OptionError(f"The trust {trust!r} is neither {DSCP} nor {PCP}.")
    if trust == PCP:
        if dscp is not None:
            raise OptionError(f"dscp {dscp} means nothing with trust {PCP}, where the VLAN tag carries the priority.")
        return Lossless(priority, trust)
    value = priority * 8 + 2 if dscp is None else dscp
    if not 0 <= value <= 63:
        raise OptionError(f"The DSCP {value} is not one of the whole numbers 0 to 63.")
    if value >> 3 != priority:
        ours = f"{priority * 8} to {priority * 8 + 7}"
        raise OptionError(f"DSCP {value} is of priority {value >> 3}, not {priority}; priority {priority} has {ours}.")
    return Lossless(priority, trust, value)


def wanted(driver: str, desired: Lossless | None) -> dict[str, dict[str, str]]:
    """By kernel module: the options that the settings mean; none of ours without settings."""
    modules = OURS[driver]
    if desired is None:
        return {module: {} for module in modules}
    mask = pfc_mask([desired.priority])
    if driver == "nmlx4_en":
        if desired.trust != PCP:
            raise OptionError(f"The driver nmlx4_en of ConnectX-3 cannot trust DSCP; take trust {PCP}.")
        return {"nmlx4_en": {"pfctx": mask, "pfcrx": mask}}
    force = {"dscp_force": str(desired.dscp)} if desired.trust == DSCP else {"pcp_force": str(desired.priority)}
    # pfctx and pfcrx must be equal; the drivers ask for it.
    return {"nmlx5_core": {"pfctx": mask, "pfcrx": mask, "trust_state": _TRUST[desired.trust]}, "nmlx5_rdma": force}


def merged(driver: str, current: Mapping[str, dict[str, str]], desired: Lossless | None) -> dict[str, dict[str, str]]:
    """By kernel module: the options with the desired ones merged; foreign ones keep value and place, stale ones go."""
    result = {}
    for module, options in wanted(driver, desired).items():
        kept = {key: value for key, value in current[module].items() if not _stale(driver, module, key, value, options)}
        result[module] = parse(merge(render(kept), options))
    return result


def differing(driver: str, active: Mapping[str, dict[str, str]], desired: Lossless | None) -> dict[str, list[str]]:
    """By kernel module: the options that are not in use as desired."""
    result = merged(driver, active, desired)
    return {module: _unequal(active[module], result[module]) for module in result}


def dropped_priorities(driver: str, current: Mapping[str, dict[str, str]], desired: Lossless | None) -> list[int]:
    """Priorities with flow control configured now that the desired settings switch off."""
    kept = {desired.priority} if desired else set()
    masks = [current[module].get(key, "0") for module in OURS[driver] for key in ("pfctx", "pfcrx")]
    return sorted({priority for mask in masks for priority in priorities_of(mask)} - kept)


def priorities_of(mask: str) -> list[int]:
    """The priorities of a bit mask; none where it is no number."""
    try:
        bits = int(mask, 16 if mask.lower().startswith("0x") else 10)
    except ValueError:
        return []
    return [priority for priority in range(8) if bits >> priority & 1]


def pfc_of(status: Mapping[str, Any]) -> list[int]:
    """The priorities with flow control in what ``esxcli network nic dcb status get`` answers."""
    answer = {re.sub(r"[^a-z]", "", key.lower()): value for key, value in status.items()}
    if str(answer.get("pfcenabled", "")).lower() not in ("true", "1"):
        return []
    shown = answer.get("pfcconfiguration", "")
    flags = [str(one) for one in shown] if isinstance(shown, list) else str(shown).split()
    return [priority for priority, flag in enumerate(flags) if flag == "1"]


def dcbx_of(status: Mapping[str, Any]) -> dict[str, Any]:
    """The DCBX that the same answer tells of: its mode, and whether the card takes over what the switch says.

    The answer nests what was exchanged, under words that differ between versions; None is what it does not tell.
    """
    told = dict(_flat(status))
    mode = next((word for word in ("ieee", "cee") if word in str(told.get("mode", "")).lower()), None)
    willing = [str(value).lower() in ("true", "1") for key, value in told.items() if key.startswith("willing")]
    return {"mode": mode, "willing": any(willing) if willing else None}


def _flat(status: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields of an answer and of the records in it, by the letters of their names."""
    for key, value in status.items():
        yield re.sub(r"[^a-z]", "", key.lower()), value
        for record in value if isinstance(value, list) else [value]:
            if isinstance(record, Mapping):
                yield from _flat(record)


def switch_settings(desired: Lossless) -> dict[str, str]:
    """The settings of the switches between the hosts, in words and for Onyx."""
    return {"generic": _in_words(desired), "onyx": _for_onyx(desired)}


def _in_words(desired: Lossless) -> str:
    if desired.trust == DSCP:
        trust = f"trust DSCP (L3) and map DSCP {desired.dscp} to traffic class {desired.priority}"
    else:
        trust = (
            f"trust PCP (L2), carry the RDMA VLAN tagged, and map PCP {desired.priority} to class {desired.priority}"
        )
    return "\n".join(
        (
            f"Every port towards a host and every link between switches: {trust}.",
            f"Priority flow control on for priority {desired.priority} and no other, global pause off.",
            f"Traffic class {desired.priority} lossless, with ECN marking.",
            "MTU 9216.",
            "DCBX not willing to overrule the hosts, or off.",
        )
    )


def _for_onyx(desired: Lossless) -> str:
    ports, level = "interface ethernet PORTS", "L3" if desired.trust == DSCP else "L2"
    lines = [
        "dcb priority-flow-control enable force",
        f"dcb priority-flow-control priority {desired.priority} enable",
        f"{ports} dcb priority-flow-control mode on force",
        f"{ports} qos trust {level}",
        f"{ports} traffic-class {desired.priority} congestion-control ecn minimum-absolute 150 maximum-absolute 1500",
    ]
    lines += [f"{ports} switchport mode trunk"] if desired.trust == PCP else []
    lines += [f"{ports} shutdown", f"{ports} mtu 9216 force", f"{ports} no shutdown"]
    return "\n".join([*lines, "show dcb priority-flow-control", "configuration write"])


def _stale(driver: str, module: str, key: str, value: str, options: dict[str, str]) -> bool:
    """Whether an option of ours is no longer desired; one that is off already may stay."""
    return key in OURS[driver][module] and key not in options and not (options and same_value(value, _OFF))


def _unequal(one: dict[str, str], other: dict[str, str]) -> list[str]:
    return [key for key in {**other, **one} if one.get(key) != other.get(key)]
