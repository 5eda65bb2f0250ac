"""Lossless RoCE: from the user's options (priority, trust, DSCP) to driver options and to the switch's settings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .driver_options import OptionError, merge, parse, pfc_mask, render, same_value

DSCP, PCP = "dscp", "pcp"

# By driver of the network card and kernel module: the options that this subject sets.
DRIVER_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "nmlx5_core": {"nmlx5_core": ("pfctx", "pfcrx", "trust_state"), "nmlx5_rdma": ("dscp_force", "pcp_force")},
    "nmlx4_en": {"nmlx4_en": ("pfctx", "pfcrx")},
}
_TRUST = {PCP: "1", DSCP: "2"}
_OFF = "-1"


@dataclass(frozen=True)
class LosslessRoce:
    """RoCE traffic on one priority that the network must not drop, and the marks of its packets."""

    priority: int
    trust: str
    dscp: int | None = None


def lossless_roce(priority: int, trust: str, dscp: int | None = None) -> LosslessRoce:
    """Return the checked settings; the default DSCP has low drop precedence in the priority's class (26 for 3).

    Raise OptionError if the settings contradict each other.
    """
    pfc_mask([priority])
    if trust not in _TRUST:
        raise OptionError(f"The trust {trust!r} is neither {DSCP} nor {PCP}.")
    if trust == PCP:
        if dscp is not None:
            raise OptionError(f"dscp {dscp} has no effect with trust {PCP}, because the VLAN tag carries the priority.")
        return LosslessRoce(priority, trust)
    value = priority * 8 + 2 if dscp is None else dscp
    if not 0 <= value <= 63:
        raise OptionError(f"The DSCP {value} is not one of the whole numbers 0 to 63.")
    if value >> 3 != priority:
        valid = f"{priority * 8} to {priority * 8 + 7}"
        raise OptionError(f"DSCP {value} is of priority {value >> 3}, not {priority}; priority {priority} has {valid}.")
    return LosslessRoce(priority, trust, value)


def desired_options(driver: str, desired: LosslessRoce | None) -> dict[str, dict[str, str]]:
    """Return the options for the settings by kernel module; empty for each module without settings."""
    modules = DRIVER_OPTIONS[driver]
    if desired is None:
        return {module: {} for module in modules}
    mask = pfc_mask([desired.priority])
    if driver == "nmlx4_en":
        if desired.trust != PCP:
            raise OptionError(f"The driver nmlx4_en of ConnectX-3 cannot trust DSCP; use trust {PCP}.")
        return {"nmlx4_en": {"pfctx": mask, "pfcrx": mask}}
    force = {"dscp_force": str(desired.dscp)} if desired.trust == DSCP else {"pcp_force": str(desired.priority)}
    # The drivers require that pfctx and pfcrx are equal.
    return {"nmlx5_core": {"pfctx": mask, "pfcrx": mask, "trust_state": _TRUST[desired.trust]}, "nmlx5_rdma": force}


def merged(
    driver: str, current: Mapping[str, dict[str, str]], desired: LosslessRoce | None
) -> dict[str, dict[str, str]]:
    """Return the current options with the desired ones merged, by kernel module.

    Options that this subject does not set keep their value and position; those that are no longer desired are removed.
    """
    result = {}
    for module, options in desired_options(driver, desired).items():
        kept = {key: value for key, value in current[module].items() if not _stale(driver, module, key, value, options)}
        result[module] = parse(merge(render(kept), options))
    return result


def differing(driver: str, active: Mapping[str, dict[str, str]], desired: LosslessRoce | None) -> dict[str, list[str]]:
    """Return the options whose active value is not the desired one, by kernel module."""
    result = merged(driver, active, desired)
    return {module: _unequal(active[module], result[module]) for module in result}


def dropped_priorities(driver: str, current: Mapping[str, dict[str, str]], desired: LosslessRoce | None) -> list[int]:
    """Return the priorities whose configured flow control the desired settings switch off."""
    kept = {desired.priority} if desired else set()
    masks = [current[module].get(key, "0") for module in DRIVER_OPTIONS[driver] for key in ("pfctx", "pfcrx")]
    return sorted({priority for mask in masks for priority in priorities_of(mask)} - kept)


def priorities_of(mask: str) -> list[int]:
    """Return the priorities of a bit mask; empty if it is not a number."""
    try:
        bits = int(mask, 16 if mask.lower().startswith("0x") else 10)
    except ValueError:
        return []
    return [priority for priority in range(8) if bits >> priority & 1]


def pfc_of(status: Mapping[str, object]) -> list[int]:
    """Return the priorities with flow control from the answer of ``esxcli network nic dcb status get``."""
    answer = {re.sub(r"[^a-z]", "", key.lower()): value for key, value in status.items()}
    if str(answer.get("pfcenabled", "")).lower() not in ("true", "1"):
        return []
    shown = answer.get("pfcconfiguration", "")
    flags = [str(flag) for flag in shown] if isinstance(shown, list) else str(shown).split()
    return [priority for priority, flag in enumerate(flags) if flag == "1"]


def dcbx_of(status: Mapping[str, object]) -> dict[str, object]:
    """Return the DCBX from the same answer: its mode, and whether the card adopts the settings of the switch.

    The answer nests the exchanged settings, with names that depend on the version; None if it does not contain them.
    """
    fields = dict(_flat(status))
    mode = next((word for word in ("ieee", "cee") if word in str(fields.get("mode", "")).lower()), None)
    willing = [str(value).lower() in ("true", "1") for key, value in fields.items() if key.startswith("willing")]
    return {"mode": mode, "willing": any(willing) if willing else None}


def _flat(status: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield the fields of an answer and of its nested records, by the letters of their names."""
    for key, value in status.items():
        yield re.sub(r"[^a-z]", "", key.lower()), value
        for record in value if isinstance(value, list) else [value]:
            if isinstance(record, Mapping):
                yield from _flat(record)


def switch_settings(desired: LosslessRoce) -> dict[str, str]:
    """Return the settings of the switches between the hosts, in words and for Onyx."""
    return {"generic": _in_words(desired), "onyx": _for_onyx(desired)}


def _in_words(desired: LosslessRoce) -> str:
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


def _for_onyx(desired: LosslessRoce) -> str:
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
    """Return whether an option of this subject is no longer desired; an option that is off already may stay."""
    return key in DRIVER_OPTIONS[driver][module] and key not in options and not (options and same_value(value, _OFF))


def _unequal(active: dict[str, str], desired: dict[str, str]) -> list[str]:
    return [key for key in {**desired, **active} if active.get(key) != desired.get(key)]
