# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check mode on nodes that nothing was done to yet: it succeeds, tells what would change, and writes nothing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import testinfra
from testinfra.utils.ansible_runner import AnsibleRunner

ROOT = Path(__file__).parents[3]
INVENTORY = os.environ["MOLECULE_INVENTORY_FILE"]
NODES: list[str] = AnsibleRunner(INVENTORY).get_hosts("workers")
# Every file with its size and times, but for what any login by ssh and sudo writes.
LIST = r"""find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log \
  -o -path /var/lib/systemd -o -path '*/.ansible' -o -path '*/.ssh' \) -prune -o -printf '%p %y %m %s %C@\n' | sort"""


def written(node: str) -> set[str]:
    """What is on a node."""
    found = testinfra.get_host(f"ansible://{node}?ansible_inventory={INVENTORY}", sudo=True).run(LIST)
    assert found.rc == 0, found
    return {line for line in found.stdout.splitlines() if not line.startswith(("/home/molecule d", "/root d"))}


def test_check_mode_on_fresh_nodes_succeeds_and_writes_nothing() -> None:
    before = {node: written(node) for node in NODES}
    done = subprocess.run(
        ["ansible-playbook", "-i", INVENTORY, "playbooks/guests.yml", "--check", "--diff"],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_NOCOLOR": "1", "ANSIBLE_FORCE_COLOR": "0"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "The package openmpi-bin is missing, not 4.1.4-3+b1." in done.stdout
    assert {node: sorted(written(node) ^ before[node]) for node in NODES} == {node: [] for node in NODES}
