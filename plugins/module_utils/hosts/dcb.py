# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The flow control (DCB) that a network card reports: its priorities, and whether DCBX may have set them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..vsphere.esxcli import CommandFailed
from ..vsphere.inventory import Host
from . import roce_settings

CALL = "esxcli network nic dcb status get"


def flow_control(host: Host, card: str) -> dict[str, Any]:
    """Return a card's current priorities with flow control, and its DCBX; None if its driver does not report them.

    A driver without DCB answers with an error; the other cards of the host are still read.
    """
    try:
        rows = host.esxcli.rows(CALL.removeprefix("esxcli "), nicname=card)
    except CommandFailed as error:
        return _unknown(error.reason)
    if not rows:
        return _unknown("esxcli returned no row")
    return {"pfc": roce_settings.pfc_of(rows[0]), "dcbx": roce_settings.dcbx_of(rows[0]), "pfc_unknown": ""}


def missing_priority(flow_control_by_card: Mapping[str, Mapping[str, Any]], priority: int) -> str:
    """Return the cards that have no flow control on a priority although it is set, and the cause; empty if none."""
    lacking = {
        card: flow
        for card, flow in flow_control_by_card.items()
        if flow["pfc"] is not None and priority not in flow["pfc"]
    }
    if not lacking:
        return ""
    why = "; ".join(f"{card}: {_decided_by(flow['dcbx'])}" for card, flow in lacking.items())
    return (
        f"{', '.join(lacking)} shows no flow control on priority {priority} although the options are set: "
        f"reboot the host if it has not booted since, otherwise check DCBX ({why})"
    )


def further_priorities(flow_control_by_card: Mapping[str, Mapping[str, Any]], priority: int) -> str:
    """Return the cards that have flow control on priorities that the options do not set; empty if none."""
    more = {
        card: extra for card, flow in flow_control_by_card.items() if (extra := set(flow["pfc"] or []) - {priority})
    }
    return "; ".join(
        f"{card} does flow control on priority {', '.join(map(str, sorted(extra)))} too, which its options do not set: "
        f"{_decided_by(flow_control_by_card[card]['dcbx'])}"
        for card, extra in more.items()
    )


def unknown_cards(flow_control_by_card: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the cards that do not report their flow control; empty if none."""
    unknown = {card: flow["pfc_unknown"] for card, flow in flow_control_by_card.items() if flow["pfc"] is None}
    return "; ".join(f"whether {card} does flow control is unknown: {reason}" for card, reason in unknown.items())


def _unknown(reason: str) -> dict[str, Any]:
    return {"pfc": None, "dcbx": roce_settings.dcbx_of({}), "pfc_unknown": reason}


def _decided_by(dcbx: Mapping[str, Any]) -> str:
    """Return the possible origin: from ESXi 7 on, settings announced with DCBX can replace the options."""
    mode, willing = dcbx["mode"], dcbx["willing"]
    if mode is None and willing is None:
        return "the card does not report its DCBX; if it takes part, the switch decides"
    in_mode = f"DCBX in mode {mode.upper()}" if mode else "DCBX"
    if willing is None:
        return f"{in_mode}, the card does not report whether it adopts the settings that the switch announces"
    adopts = "adopts" if willing else "does not adopt"
    return f"{in_mode}, the card {adopts} the settings that the switch announces"
