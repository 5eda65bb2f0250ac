"""Simulated workers have real guests: they boot, answer, go off, come back and vanish with their machines."""

from __future__ import annotations

import json
import re

from plugins.module_utils.vsphere import tasks
from tests.integration.ansible import BIN
from tests.lab.places import USER, Place, ansible_login, desired, until

NUMBERS = (1, 2, 3, 4)


def test_four_workers_are_four_nodes(place: Place) -> None:
    for number in NUMBERS:
        result = place.inside(
            number, "hostname; cat /etc/hostname; id -un; sudo -n id -un; systemctl is-system-running"
        )
        assert result.stdout.split() == [f"worker0{number}"] * 2 + [USER, "root", "running"]
        assert place.facts_of(number)["address"] == place.address(number)
    keys = {place.inside(number, "cat /etc/ssh/ssh_host_ed25519_key.pub /etc/machine-id").stdout for number in NUMBERS}
    assert len(keys) == len(NUMBERS), "nodes share a host key or a machine id"


def test_cards_are_those_of_the_machine(place: Place) -> None:
    with place.machine(2) as machine:
        devices = machine.ref.config.hardware.device
        macs = {device.macAddress for device in devices if hasattr(device, "macAddress")}
    shown = json.loads(place.inside(2, "ip -json address").stdout)
    cards = {card["ifname"]: card for card in shown if card["ifname"] != "lo"}
    assert {card["address"] for card in cards.values()} == macs
    assert [cards[name]["mtu"] for name in ("eth0", "eth1")] == [1500, 9000]
    assert cards["eth1"]["addr_info"][0]["local"] == "10.216.1.2"
    place.inside(2, "ping -c 1 -W 5 -M do -s 8972 10.216.1.3")


def test_second_run_changes_nothing(place: Place) -> None:
    again = place.ansible.module("worker_vm", **desired(place))
    assert (again.rc, again.changed) == (0, False), again.out


def test_inventory_leads_to_the_nodes(place: Place) -> None:
    config = place.ansible.folder / "lab.workers.yml"
    config.write_text("plugin: dml.vsphere.workers\n")
    result = ansible_login(place.lab.key)
    command = [str(BIN / "ansible"), "-i", str(config), "workers", "-m", "ansible.builtin.command", "-a", "hostname"]
    command += ["-e", json.dumps(result)]
    done = place.ansible.run(command)
    assert done.returncode == 0, done.stdout
    answers = re.findall(r"^(\S+) \| CHANGED \| rc=0 >>\n(\S+)$", done.stdout, re.MULTILINE)
    assert sorted(answers) == [(f"worker0{number}", f"worker0{number}") for number in NUMBERS]


def test_packages_are_downloaded_once(place: Place) -> None:
    kept = place.lab.podman.store / "packages"
    downloads = []
    for number in (1, 2):
        place.inside(number, "sudo apt-get update -qq && sudo apt-get install -y -qq hello && hello")
        files = {path: path.stat().st_mtime_ns for path in kept.glob("*-hello_*.deb")}
        assert len(files) == 1
        downloads.append(files)
    assert downloads[0] == downloads[1], "the second node's package was downloaded again"


def test_shutdown_by_the_guest_ends_its_services(place: Place) -> None:
    stopping = "--property=ExecStop='/usr/bin/touch /var/ended' sleep infinity"
    place.inside(3, f"sudo systemd-run --quiet --unit=witness {stopping}")
    with place.machine(3) as machine:
        machine.ref.ShutdownGuest()
        until(lambda: not place.facts_of(3)["powered_on"], "worker03 is off", 90)
        assert place.inside(3, "true", check=False).returncode == 255
        _do(machine, machine.ref.PowerOnVM_Task())
    until(lambda: place.facts_of(3)["address"] == place.address(3), "worker03 reports its address again")
    place.inside(3, "test -e /var/ended")


def test_off_on_and_reset(place: Place) -> None:
    place.inside(4, "echo kept > stays")
    with place.machine(4) as machine:
        _do(machine, machine.ref.PowerOffVM_Task())
        assert place.inside(4, "true", check=False).returncode == 255
        assert not place.facts_of(4)["address"]
        _do(machine, machine.ref.PowerOnVM_Task())
        until(lambda: place.facts_of(4)["address"] == place.address(4), "worker04 reports its address again")
        booted = place.inside(4, "cat stays; cut -d' ' -f22 /proc/1/stat").stdout.split()
        _do(machine, machine.ref.ResetVM_Task())
    until(lambda: place.inside(4, "true", check=False).returncode == 0, "worker04 answers after its reset")
    again = place.inside(4, "cat stays; cut -d' ' -f22 /proc/1/stat").stdout.split()
    assert booted[0] == again[0] == "kept"
    assert booted[1] != again[1], "the reset did not boot the guest"


def test_destroyed_with_its_machine(place: Place) -> None:
    names = {node["name"] for node in place.lab.hypervisor.ask("GET", "/nodes")}
    assert "worker04" in names
    with place.machine(4) as machine:
        key = machine.ref._moId
        _do(machine, machine.ref.PowerOffVM_Task())
        _do(machine, machine.ref.Destroy_Task())
    assert {node["name"] for node in place.lab.hypervisor.ask("GET", "/nodes")} == names - {"worker04"}
    assert not [name for name in place.lab.podman.containers(f"dml-lab={place.lab.lab}") if name.endswith(f"-{key}")]
    assert place.inside(4, "true", check=False).returncode == 255
    again = place.ansible.module("worker_vm", **desired(place))
    assert again.rc == 0, again.out
    assert place.inside(4, "hostname; ls").stdout == "worker04\n", "the new guest has what the old one wrote"


def _do(machine: object, task: object) -> None:
    tasks.wait(machine.session, tasks.Started(task, "a person", "work"), 60)  # type: ignore[attr-defined]
