# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A node becomes what the collection writes for a guest."""

from __future__ import annotations

import base64
import json

import pytest

from lab.nodes.cloudinit import DEFAULT_USER, SUDO, User, guest
from lab.nodes.network import MANAGEMENT, RDMA, Card, address_for
from plugins.module_utils.workers import customise

CARD = {"match": {"macaddress": "00:50:56:00:00:01"}}
EXTRA_CONFIG = {
    "metadata": {
        "local-hostname": "trainer-1",
        "network": {
            "version": 2,
            "ethernets": {
                "rdma0": {"match": {"macaddress": "00:50:56:00:00:02"}, "addresses": ["10.216.0.1/16"], "mtu": 4200},
                "management": {
                    **CARD,
                    "dhcp4": False,
                    "addresses": ["10.0.1.11/24"],
                    "routes": [{"to": "0.0.0.0/0", "via": "10.0.1.1"}],
                },
            },
        },
    },
    "userdata": {"users": ["default", {"name": "ann", "sudo": SUDO, "shell": "/bin/sh", "ssh_authorized_keys": ["k"]}]},
}


def test_reads_what_the_collection_writes() -> None:
    made = guest("vm-7", "worker01", customise.guestinfo_options(EXTRA_CONFIG))
    assert (made.key, made.name, made.hostname) == ("vm-7", "worker01", "trainer-1")
    assert made.cards == (
        Card(MANAGEMENT, "00:50:56:00:00:01", "10.0.1.11/24", 1500, "10.0.1.1"),
        Card(RDMA, "00:50:56:00:00:02", "10.216.0.1/16", 4200),
    )
    assert made.users == (User(DEFAULT_USER), User("ann", ("k",), SUDO, "/bin/sh"))


def test_plain_text_is_read_too() -> None:
    extra = {"guestinfo.userdata": '#cloud-config\n{"ssh_authorized_keys": ["k"], "hostname": "h"}'}
    made = guest("vm-7", "worker01", extra)
    assert (made.hostname, made.users) == ("h", (User(DEFAULT_USER, ("k",)),))


@pytest.mark.parametrize("metadata", [None, {"network": {"ethernets": {"management": {**CARD, "dhcp4": True}}}}])
def test_without_an_address_it_waits_for_the_labs(metadata: dict[str, object] | None) -> None:
    text = base64.b64encode(json.dumps(metadata).encode()).decode()
    extra = {"guestinfo.metadata": text, "guestinfo.metadata.encoding": "base64"} if metadata else {}
    made = guest("vm-7", "worker01", extra)
    assert made.hostname == "worker01"
    assert made.cards == (Card(MANAGEMENT, CARD["match"]["macaddress"] if metadata else address_for("vm-7")),)
