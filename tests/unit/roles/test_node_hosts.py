"""The role node writes names that glibc finds for IPv4 addresses and for their IPv6 form, without a name server."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.rendering import rendered

TASKS = Path(__file__).parents[3] / "roles" / "node" / "tasks" / "user.yml"
PEERS = {"w1": {"address": "10.216.1.11"}, "w2": {"address": "fd00::12"}, "10.216.1.13": {"address": "10.216.1.13"}}
# Mounts need root; others have them in a user namespace, where they are root.
UNSHARE = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"])]


def block() -> list[str]:
    """Return the lines that the role writes for the peers."""
    (task,) = [task for task in yaml.safe_load(TASKS.read_text()) if "/etc/hosts and its template" in task["name"]]
    text = task["ansible.builtin.blockinfile"]["block"]
    return str(rendered(text, node_peers=list(PEERS), __node_told=PEERS)).split("\n")


def test_an_ipv4_address_also_has_its_ipv6_form() -> None:
    assert [line.strip() for line in block() if line.strip()] == [
        "10.216.1.11 w1",
        "::ffff:10.216.1.11 w1",
        "fd00::12 w2",
    ]


@pytest.mark.parametrize("requested", ["w1", "10.216.1.11", "::ffff:10.216.1.11", "w2", "fd00::12"])
def test_glibc_resolves_each_name_and_address(tmp_path: Path, requested: str) -> None:
    """With files as the only source of names: a lookup that finds no line fails."""
    assert shutil.which("unshare") and shutil.which("getent"), "this machine lacks unshare or getent"
    lines = ["127.0.0.1 localhost", *block()]
    (tmp_path / "hosts").write_text("\n".join(line.strip() for line in lines) + "\n")
    (tmp_path / "nsswitch.conf").write_text("hosts: files\n")
    mounts = " && ".join(f"mount --bind {tmp_path}/{name} /etc/{name}" for name in ("hosts", "nsswitch.conf"))
    found = lookup(f"{mounts} && getent hosts {requested}")
    assert found.returncode == 0, found.stderr
    assert found.stdout.split()[-1] == ("w2" if requested in ("w2", "fd00::12") else "w1")


def lookup(script: str) -> Any:
    return subprocess.run([*UNSHARE, "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60)
