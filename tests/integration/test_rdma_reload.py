"""The driver of an RDMA device whose port is not active is loaded again, once, and that is reported."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.integration.ansible import Ansible

# Programs that stand in for those of a node: each has a file with the state of its port, and writes down what it did.
CAT = '#!/bin/sh\ncase "$1" in /sys/class/infiniband/*) exec /bin/cat "$NODE/state";; *) exec /bin/cat "$@";; esac\n'
MODPROBE = """#!/bin/sh
echo "$*" >> "$NODE/modprobe"
[ "$1" = --remove ] || [ ! -e "$NODE/heals" ] || echo 4: ACTIVE > "$NODE/state"
"""
PLAY = {
    "name": "Look at the ports",
    "hosts": "all",
    "gather_facts": False,
    "environment": {"NODE": "{{ folder }}", "PATH": "{{ programs }}:/usr/bin:/bin"},
    "tasks": [
        {
            "name": "Reload the driver if the port of its device is not active",
            "ansible.builtin.include_role": {"name": "dml.vsphere.rdma", "tasks_from": "reload"},
        }
    ],
}
STATES = {"healthy": "4: ACTIVE", "down": "1: DOWN", "broken": "1: DOWN"}


def test_only_an_inactive_port_causes_one_reload(tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in (("cat", CAT), ("modprobe", MODPROBE)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    for name, state in STATES.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "state").write_text(f"{state}\n")
    (tmp_path / "down" / "heals").touch()
    hosts = {name: {"ansible_connection": "local", "folder": str(tmp_path / name)} for name in STATES}
    inventory, play = tmp_path / "hosts.yml", tmp_path / "play.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": hosts, "vars": {"programs": str(programs)}}}))
    play.write_text(yaml.safe_dump([PLAY]))
    done = Ansible({}, tmp_path).playbook(play, "-i", str(inventory), "-e", "__rdma_port_tries=1")
    assert done.rc == 0, done.out
    reloaded = "--remove vmw_pvrdma\nvmw_pvrdma\n"
    assert not (tmp_path / "healthy" / "modprobe").exists()
    assert (tmp_path / "down" / "modprobe").read_text() == reloaded
    assert (tmp_path / "broken" / "modprobe").read_text() == reloaded
    message = " ".join(done.out.split())
    for name in ("down", "broken"):
        assert (
            f"{name} had an RDMA device with a port that was not active (1: DOWN) and reloaded vmw_pvrdma once."
            in message
        )
    assert "healthy had an RDMA device" not in message
