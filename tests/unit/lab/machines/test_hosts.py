# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Hosts are joined to the lab's networks, have their own identities, and become the libvirtd of their namespaces."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

import pytest

from lab.machines import accelerator, wires
from lab.machines import host as module
from lab.machines.host import Host, arguments, configuration
from lab.machines.roots import Roots
from lab.nodes.programs import LabError

ROOTS = Roots(Path("/s/engine-1"), Path("/s/g/root.ext4"), Path("/s/g/vmlinuz"), Path("/s/g/initrd.img"))


def lines(commands: list[wires.Command]) -> list[str]:
    return [" ".join(command) for command in commands]


def test_every_network_of_the_lab_goes_on_in_a_host() -> None:
    result = lines(wires.host("dml0", 2))
    for network in ("management", "rdma"):
        assert f"ip -n dml0h2 link add {network} mtu 9000 type bridge forward_delay 0" in result
        cable = f"ip -n dml0 link add h2-{network} mtu 9000 type veth peer name up-{network} mtu 9000 netns dml0h2"
        assert cable in result
        assert f"ip -n dml0 link set h2-{network} master {network} up" in result
        assert f"ip -n dml0h2 link set up-{network} master {network} up" in result
    assert result[0] == "ip netns add dml0h2"


def test_migrations_have_a_network_apart_with_an_address_for_each_host() -> None:
    result = lines(wires.host("dml0", 2))
    assert "ip -n dml0h2 address add 198.18.0.2/24 dev migration" in result
    assert not [line for line in result if "migration" in line and "rdma" in line]
    assert "ip -n dml0 address add 198.18.0.254/24 dev migration" in lines(wires.switch("dml0"))


def test_names_of_links_are_short_enough_for_the_kernel() -> None:
    words = [command for command in wires.host("dml01234567", 12) if command[4:5] == ("add",)]
    assert words
    assert all(len(command[5]) < 16 for command in words)


def test_two_hosts_have_two_identities_and_listen_only_on_the_migration_network() -> None:
    one, two, again = (configuration(lab, number)["libvirtd.conf"] for lab, number in (("a", 1), ("a", 2), ("a", 1)))
    assert one == again != two
    assert 'listen_addr = "198.18.0.2"' in two
    assert 'migration_host = "198.18.0.2"' in configuration("a", 2)["qemu.conf"]


def test_a_host_starts_in_its_own_namespaces_and_sees_what_it_needs() -> None:
    host = Host("dml0", 1, "esx01.lab", Path("/lab/machines/host1"))
    result = arguments(host, ROOTS, Path("/s/engine-1.capabilities"), (Path("/lab/machines"),))
    assert result[:8] == ["ip", "netns", "exec", "dml0h1", "unshare", "--mount", "--uts", "bash"]
    assert result[9:] == [
        *("esx01.lab", "/s/engine-1", "/lab/machines/host1", "/s/engine-1.capabilities"),
        *("/s/g", "/lab/machines"),
    ]


def test_the_trial_of_kvm_boots_the_guests_own_kernel() -> None:
    result = accelerator.command(ROOTS)
    assert {"q35,accel=kvm", "/mnt/vmlinuz", "/mnt/initrd.img"} <= {word.removeprefix("-machine ") for word in result}
    assert result[6:8] == ["/s/engine-1", "/s/g"]


def test_quotes_virsh_with_its_host_and_without_the_connection_prefix() -> None:
    result = LabError("nsenter --target=7 --mount --uts --net --root failed (1): error: domain is not running")
    host = Host("dml0", 1, "esx01.lab", Path("/lab/machines/host1"))
    with (
        mock.patch.object(Host, "command", return_value=["virsh"]),
        mock.patch.object(module, "run", side_effect=result),
        pytest.raises(LabError, match=r"^virsh suspend failed on esx01\.lab: error: domain is not running$"),
    ):
        host.virsh("suspend", "vm-7")


def test_the_memory_of_all_hosts_of_a_lab_is_what_their_processes_had_at_most(tmp_path: Path) -> None:
    requested: list[str] = []

    def run(*words: str) -> str:
        requested.append(" ".join(words))
        return "dml0h1 (id: 3)\ndml0h2\ndml0\ndml1h1\n" if words[2] == "list" else f"{os.getpid()}\n999999999\n"

    with mock.patch.object(module, "run", run):
        found = module.memory_bytes("dml0")
    assert requested[1:] == ["ip netns pids dml0h1", "ip netns pids dml0h2"]
    assert found >= 2 * (10 << 20)
