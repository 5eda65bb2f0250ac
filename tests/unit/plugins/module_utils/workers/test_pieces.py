"""The pure parts of a worker: merged options, paired GPUs, MAC addresses from names, cloud-init data."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.errors import Refused
from plugins.module_utils.workers import customise, nics, worker_gpus, worker_mark
from plugins.module_utils.workers.placement.place import DeviceRequest
from plugins.module_utils.workers.worker_spec import Gpu, WorkerSpec, worker_specs_of

MACS = {"management_nic": {"mac": "00:50:56:01:02:03"}, "rdma_nics": [{"mac": "00:50:56:01:02:04"}]}
NICS = {"management_nic": {"portgroup": "a"}, "rdma_nics": [{"portgroup": "b"}]}


def assigned(*gpus: Gpu) -> list[worker_gpus.AssignedGpu]:
    return [worker_gpus.AssignedGpu(one, (object(),)) for one in gpus]


def guest_data(**guest: Any) -> dict[str, Any]:
    found = customise.desired_data(WorkerSpec("w1", {**NICS, "guest": guest}), MACS)
    assert found
    return found


def test_worker_options_override_defaults_key_by_key() -> None:
    (desired,) = worker_specs_of(
        {
            "defaults": {
                "cpus": 4,
                "memory_mb": 8,
                "management_nic": {"portgroup": "a", "mac": "00:50:56:01:02:03"},
                "rdma_nics": [{"portgroup": "a", "protocol": "rocev1", "mac": None}],
            },
            "workers": [{"name": "w1", "cpus": 8, "memory_mb": None, "management_nic": {"portgroup": "b"}}],
        }
    )
    assert (desired["cpus"], desired["memory_mb"], desired["power"]) == (8, 8, "on")
    assert desired["management_nic"] == {"portgroup": "b", "mac": "00:50:56:01:02:03"}
    assert desired["rdma_nics"] == [{"portgroup": "a", "protocol": "rocev1"}]
    assert desired.gpus is None


def test_class_rdma_card_has_no_pvrdma_protocol() -> None:
    nic = {"portgroup": "a", "device_class": "cx7"}
    (desired,) = worker_specs_of({"workers": [{"name": "w1", "rdma_nics": [nic]}]})
    assert desired["rdma_nics"] == [nic]
    with pytest.raises(Refused, match="protocol is a setting of PVRDMA, and device_class makes it another card"):
        worker_specs_of({"workers": [{"name": "w1", "rdma_nics": [{**nic, "protocol": "rocev2"}]}]})


def test_options_accept_several_rdma_cards() -> None:
    rails = [{"portgroup": "a", "device_class": "cx7"}, {"portgroup": "b", "device_class": "cx7"}]
    (desired,) = worker_specs_of({"defaults": {"rdma_nics": rails}, "workers": [{"name": "w1"}]})
    assert desired["rdma_nics"] == rails
    (single,) = worker_specs_of({"defaults": {"rdma_nics": rails}, "workers": [{"name": "w1", "rdma_nics": []}]})
    assert single["rdma_nics"] == []


def test_equal_vgpus_are_counted_not_only_found() -> None:
    t4 = Gpu("grid_t4-8c")
    kept, missing, many = worker_gpus.compare([t4, t4], assigned(t4))
    assert (len(kept), missing, many) == (1, [t4], [])
    kept, missing, many = worker_gpus.compare([t4], assigned(t4, t4, t4))
    assert (len(kept), missing, len(many)) == (1, [], 2)


@pytest.mark.parametrize(
    ("desired", "there", "same"),
    [
        (DeviceRequest("10de:20f1"), DeviceRequest("10de:20f1"), True),
        (DeviceRequest("10de:20f1"), DeviceRequest("10de:20f1", "gold"), False),
        (DeviceRequest(label="gold"), DeviceRequest("10de:20f1", "gold"), True),
        (DeviceRequest(label="gold"), DeviceRequest("10de:20f1", "silver"), False),
        (DeviceRequest(address="0000:3b:00.0"), DeviceRequest(address="0000:3b:00.0"), True),
        (DeviceRequest(address="0000:3b:00.0"), DeviceRequest("10de:20f1"), False),
    ],
)
def test_keeps_a_device_that_matches_the_request(desired: DeviceRequest, there: DeviceRequest, same: bool) -> None:
    _kept, missing, _many = worker_gpus.compare([Gpu(device=desired)], assigned(Gpu(device=there)))
    assert bool(missing) != same


def test_the_window_follows_from_profiles_groups_and_devices() -> None:
    desired = WorkerSpec("w1", {}, (Gpu("grid_t4-8c"), Gpu(group="Nvidia:2@grid_a100-40c%NVLink")))
    assert worker_gpus.desired_window_gb(desired, lambda _device: None) == 256
    device = WorkerSpec("w1", {}, (Gpu(device=DeviceRequest("10de:20f1")),))
    assert worker_gpus.desired_window_gb(device, lambda _device: 40) == 128
    assert worker_gpus.desired_window_gb(WorkerSpec("w1", {"mmio_gb": 512}, device.gpus), lambda _device: None) == 512
    with pytest.raises(Refused, match="set memory_gb"):
        worker_gpus.desired_window_gb(device, lambda _device: None)


@given(st.lists(st.text(min_size=1), unique=True, max_size=30))
def test_new_addresses_are_stable_unique_and_in_range(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        chosen = nics.choose_macs("gpu", name, nics.keys(2), taken)
        assert chosen == nics.choose_macs("gpu", name, nics.keys(2)[::-1], taken)
        assert not set(chosen.values()) & taken
        assert all(mac.startswith("00:50:56:") and int(mac[9:11], 16) <= 0x3F for mac in chosen.values())
        taken |= set(chosen.values())


def test_reads_cloud_init_data_as_written() -> None:
    data = guest_data(
        address="10.0.0.1/24", gateway="10.0.0.254", dns=["1.1.1.1"], rdma_addresses=["10.1.0.1/16"], user="me"
    )
    options = customise.guestinfo_options(data)
    assert customise.facts(options) == data
    plain = base64.b64decode(options["guestinfo.userdata"]).decode()
    assert plain.startswith("#cloud-config\n")
    assert json.loads(base64.b64decode(options["guestinfo.metadata"]))["local-hostname"] == "w1"


@pytest.mark.parametrize(
    ("address", "gateway", "everywhere"),
    [("10.0.0.1/24", "10.0.0.254", "0.0.0.0/0"), ("2001:db8::1/64", "2001:db8::ff", "::/0")],
)
def test_default_routes_are_ipv6_when_the_gateway_is(address: str, gateway: str, everywhere: str) -> None:
    card = guest_data(address=address, gateway=gateway)["metadata"]["network"]["ethernets"]["management"]
    assert card["routes"] == [{"to": everywhere, "via": gateway}]


def test_cards_are_found_by_their_addresses() -> None:
    network = guest_data(rdma_addresses=["10.1.0.1/16"])["metadata"]["network"]["ethernets"]
    assert network["management"] == {"match": {"macaddress": "00:50:56:01:02:03"}, "dhcp4": True}
    assert (network["rdma0"]["match"], network["rdma0"]["mtu"]) == ({"macaddress": "00:50:56:01:02:04"}, 9000)


def test_each_rdma_card_has_its_address() -> None:
    nics_ = [{"portgroup": "a"}, {"portgroup": "b"}]
    there = {"management_nic": MACS["management_nic"], "rdma_nics": [{"mac": "00:50:56:01:02:09"}, *MACS["rdma_nics"]]}
    guest = {"rdma_addresses": ["10.1.0.1/24", "10.2.0.1/24"], "rdma_mtu": 4200}
    spec = {**NICS, "rdma_nics": nics_, "guest": guest}

    found = customise.desired_data(WorkerSpec("w1", spec), there)

    assert found
    ethernets = found["metadata"]["network"]["ethernets"]
    assert {
        key: (one["match"]["macaddress"], one["addresses"], one["mtu"])
        for key, one in ethernets.items()
        if key != "management"
    } == {"rdma0": ("00:50:56:01:02:09", ["10.1.0.1/24"], 4200), "rdma1": ("00:50:56:01:02:04", ["10.2.0.1/24"], 4200)}
    with pytest.raises(
        Refused, match="rdma_addresses has 1 entries and rdma_nics has 2; name one address for each NIC"
    ):
        customise.desired_data(WorkerSpec("w1", {**spec, "guest": {"rdma_addresses": ["10.1.0.1/24"]}}), there)


def test_peers_in_etc_hosts_survive_a_boot() -> None:
    # With true, cloud-init writes /etc/hosts again at each boot; localhost only adds the name of the guest:
    # https://cloudinit.readthedocs.io/en/latest/reference/modules.html#update-etc-hosts
    assert guest_data()["userdata"]["manage_etc_hosts"] == "localhost"


def test_instance_id_changes_only_with_the_data() -> None:
    first, same, other = guest_data(user="a"), guest_data(user="a"), guest_data(user="b")
    assert first == same
    assert first["metadata"]["instance-id"] != other["metadata"]["instance-id"]


def test_addresses_need_a_managed_card() -> None:
    found = customise.desired_data(WorkerSpec("w1", {"guest": {"user": "me"}}), {})
    assert found
    assert "network" not in found["metadata"]
    with pytest.raises(Refused, match="set management_nic as well"):
        customise.desired_data(WorkerSpec("w1", {"guest": {"address": "10.0.0.1/24"}}), {})


def test_foreign_data_is_not_shown() -> None:
    secret = customise.facts({"guestinfo.userdata": "password: hunter2"})
    assert secret
    assert "hunter2" not in str(secret)


def test_a_mark_keeps_foreign_keys() -> None:
    assert worker_mark.desired_mark("w1", {"built": True, "note": "x", "role": "old"}, role="new") == {
        "built": True,
        "note": "x",
        "role": "new",
        "name": "w1",
    }
