"""Replaces VMware's simulator program ``vcsim`` with this project's simulator, for the same command line.

govmomi's test scripts start ``vcsim`` with sizes of an inventory; this program serves a data centre with these sizes
and names. For inventories that this project does not simulate, such as a single ESXi host, it runs VMware's program in
DML_STOCK.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
START_SECONDS = 60
SIZES = {"dc": 1, "cluster": 1, "host": 3, "standalone-host": 1, "vm": 2, "ds": 1, "pg": 1}
MANAGEMENT = {
    "device": "vmk0",
    "portgroup": "Management Network",
    "address": "127.0.0.1",
    "mtu": 1500,
    "services": ["management"],
}
# Kinds of objects that this project does not simulate.
OTHERS = ("pool", "app", "pod", "pg-nsx", "nsx", "folder", "esx", "load", "delay", "method-delay")


def options(arguments: list[str]) -> argparse.Namespace | None:
    """Return the options, or None if VMware's program must run."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False, add_help=False)
    for name, value in SIZES.items():
        parser.add_argument(f"-{name}", type=int, default=value)
    parser.add_argument("-l", default="127.0.0.1:0")
    parser.add_argument("-E", default="/dev/stdout")
    parser.add_argument("-username", default="user")
    parser.add_argument("-password", default="pass")
    parser.add_argument("-autostart", default="true")
    try:
        found, unknown = parser.parse_known_args(arguments)
    except argparse.ArgumentError:
        return None
    return None if unknown or found.dc != 1 else found


def description(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the data centre, with the names that VMware's program uses."""
    alone = {f"DC0_H{number}": [f"DC0_H{number}"] for number in range(arguments.standalone_host)}
    clusters = [f"DC0_C{number}" for number in range(arguments.cluster)]
    # A standalone host is a cluster with one host here: its path is the same.
    hosts = {**alone, **{name: [f"{name}_H{number}" for number in range(arguments.host)] for name in clusters}}
    machines = [
        {"name": f"{name}{'' if name in alone else '_RP0'}_VM{number}", "host": there[number % len(there)]}
        for name, there in hosts.items()
        for number in range(arguments.vm if there else 0)
    ]
    started = arguments.autostart != "false"
    groups = [{"name": f"DC0_DVPG{number}", "vlan": 0} for number in range(arguments.pg)]
    return {
        "datacenter": "DC0",
        "datastores": [f"LocalDS_{number}" for number in range(arguments.ds)],
        "host_defaults": {"hardware": "t4_cx5", "vmkernel": [MANAGEMENT]},
        # VMware's program accepts image drafts for any cluster.
        "clusters": [
            {"name": name, "image_managed": True, "hosts": [{"name": host} for host in hosts[name]]} for name in hosts
        ],
        "switches": [{"name": "DVS0", "uplinks": ["vmnic2"], "portgroups": groups}],
        "vms": [{**machine, "powered_on": started} for machine in machines],
    }


def serve(arguments: argparse.Namespace, folder: Path) -> int:
    """Serve until a signal ends this process, and write the address in the format of VMware's program."""
    (folder / "datacentre.yml").write_text(yaml.safe_dump(description(arguments)))
    ready = folder / "ready.json"
    given = {"datacentre": folder / "datacentre.yml", "ready": ready, "certs": folder, "listen": arguments.l}
    account = {"username": arguments.username, "password": arguments.password}
    words = [f"--{key}={value}" for key, value in {**given, **account}.items()]
    with subprocess.Popen([ROOT / ".cache" / "vcenter", *words], stdout=subprocess.DEVNULL) as running:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, lambda *_: running.terminate())
        deadline = time.monotonic() + START_SECONDS
        while not ready.exists() and running.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        port = json.loads(ready.read_text())["port"]
        url = f"https://{arguments.username}:{arguments.password}@127.0.0.1:{port}/sdk"
        Path(arguments.E).write_text(f"export GOVC_URL={url} GOVC_SIM_PID={os.getpid()}\n")
        return running.wait()


def main() -> int:
    arguments = sys.argv[1:]
    is_other = any(argument.lstrip("-").partition("=")[0] in OTHERS for argument in arguments)
    requested = None if is_other else options(arguments)
    if requested is None:
        os.execv(os.environ["DML_STOCK"], ["vcsim", *arguments])
    with tempfile.TemporaryDirectory(prefix="dml-vcsim-") as folder:
        return serve(requested, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
