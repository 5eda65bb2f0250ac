# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filters for training jobs."""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.dml.vsphere.plugins.module_utils.training.transport import node_transport


def network_card(facts: dict[str, object], interface: str = "", address: str = "") -> dict[str, object]:
    """Return a network adapter by its name or its address, or that of the default route."""
    return dict(node_transport.network_card(facts, interface or node_transport.interface(facts, address)))


class FilterModule:
    """The filters by name."""

    def filters(self) -> dict[str, Callable[..., object]]:
        return {"network_card": network_card}
