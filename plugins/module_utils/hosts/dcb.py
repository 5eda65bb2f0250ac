# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A network card's own word on flow control (DCB): the priorities, whether DCBX set them, and what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..vsphere.esxcli import CommandFailed
from ..vsphere.inventory import Host
from . import roce_settings

CALL = "esxcli network nic dcb status get"


def flow_control(host: Host, card: str) -> dict[str, Any]:
    """The priorities with flow control on a card now, and its DCBX; unknown where its driver does not tell.

    A driver without DCB answers with an error, which says nothing of the other cards of the host.
    """
    try:
        rows = host.esxcli.rows(CALL.removeprefix("esxcli "), nicname=card)
    except CommandFailed as error:
        return _unknown(error.said)
    if not rows:
        return _unknown("esxcli said nothing")
    return {"pfc": roce_settings.pfc_of(rows[0]), "dcbx": roce_settings.dcbx_of(rows[0]), "pfc_unknown": ""}


def missing_priority(seen: Mapping[str, Mapping[str, Any]], priority: int) -> str:
    """Which cards do no flow control on a priority although it is set, and who may have decided that; else empty."""
    lacking = {card: one for card, one in seen.items() if one["pfc"] is not None and priority not in one["pfc"]}
    if not lacking:
        return ""
    why = "; ".join(f"{card}: {_decided_by(one['dcbx'])}" for card, one in lacking.items())
    return (
        f"{', '.join(lacking)} shows no flow control on priority {priority} although the options are set: "
        f"reboot the host if it has not booted since, else look at DCBX ({why})"
    )


def further_priorities(seen: Mapping[str, Mapping[str, Any]], priority: int) -> str:
    """Which cards do flow control on further priorities, which the options did not ask for; else empty."""
    more = {card: extra for card, one in seen.items() if (extra := set(one["pfc"] or []) - {priority})}
    return "; ".join(
        f"{card} does flow control on priority {', '.join(map(str, sorted(extra)))} too, which its options do not set: "
        f"{_decided_by(seen[card]['dcbx'])}"
        for card, extra in more.items()
    )


def unknown_cards(seen: Mapping[str, Mapping[str, Any]]) -> str:
    """Which cards do not tell what flow control they do; else empty."""
    lost = {card: one["pfc_unknown"] for card, one in seen.items() if one["pfc"] is None}
    return "; ".join(f"whether {card} does flow control is unknown: {said}" for card, said in lost.items())


def _unknown(said: str) -> dict[str, Any]:
    return {"pfc": None, "dcbx": roce_settings.dcbx_of({}), "pfc_unknown": said}


def _decided_by(dcbx: Mapping[str, Any]) -> str:
    """From ESXi 7 on what the switch announces by DCBX may take the place of the options."""
    mode, willing = dcbx["mode"], dcbx["willing"]
    if mode is None and willing is None:
        return "the card does not tell its DCBX; if it takes part, the switch decides"
    spoken = f"DCBX in mode {mode.upper()}" if mode else "DCBX"
    if willing is None:
        return f"{spoken}, the card does not tell whether it takes over what the switch announces"
    taken = "takes over" if willing else "does not take over"
    return f"{spoken}, the card {taken} what the switch announces"
