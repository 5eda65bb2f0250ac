# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The data for a guest's cloud-init: unchanged data from vCenter, and data of the lab in addition."""

from __future__ import annotations

import json

from lab.machines.seed import settings
from lab.nodes.cloudinit import HEADER, Guest, User, guest
from lab.nodes.network import MANAGEMENT, RDMA, Card

CARDS = (
    Card(MANAGEMENT, "00:50:56:00:00:01", "10.0.1.11/24", gateway="10.0.1.1"),
    Card(RDMA, "00:50:56:00:00:02", "10.216.1.11/16", 9000),
)
GUEST = Guest("vm-7", "worker01", "worker01", (User("debian", ("ssh-ed25519 AAAA a",)),), CARDS)
REQUESTED = {
    "guestinfo.metadata": "e30=",
    "guestinfo.metadata.encoding": "base64",
    "guestinfo.userdata": "x",
    "sched.mem.pin": "1",
}


def test_words_of_vcenter_reach_the_guest_unchanged() -> None:
    result = settings(GUEST, REQUESTED, {}, [])
    assert {key: value for key, value in result.items() if "vendordata" not in key} == {
        key: value for key, value in REQUESTED.items() if key.startswith("guestinfo.")
    }


def test_a_guest_without_settings_has_name_users_and_addresses() -> None:
    result = settings(GUEST, {}, {}, [])
    again = guest("vm-7", "worker01", result)
    assert (again.hostname, again.cards) == ("worker01", CARDS)
    assert again.users == GUEST.users
    assert json.loads(result["guestinfo.metadata"])["instance-id"].startswith("worker01-")


def test_another_address_is_another_instance() -> None:
    other = Guest("vm-7", "worker01", "worker01", GUEST.users, CARDS[:1])
    ids = [json.loads(settings(one, {}, {}, [])["guestinfo.metadata"])["instance-id"] for one in (GUEST, other, GUEST)]
    assert ids[0] == ids[2] != ids[1]


def test_omits_empty_sections() -> None:
    assert json.loads(settings(GUEST, REQUESTED, {}, [])["guestinfo.vendordata"].removeprefix(HEADER)) == {}


def test_the_lab_s_own_words_are_vendor_data() -> None:
    result = settings(GUEST, REQUESTED, {"/etc/pip.conf": "[global]\n"}, ["/opt/dml/horovod", "/opt/two"])
    vendor = json.loads(result["guestinfo.vendordata"].removeprefix(HEADER))
    assert vendor == {
        "write_files": [{"path": "/etc/pip.conf", "content": "[global]\n"}],
        "mounts": [
            ["/dev/vdb", "/opt/dml/horovod", "ext4", "ro,noload"],
            ["/dev/vdc", "/opt/two", "ext4", "ro,noload"],
        ],
    }
