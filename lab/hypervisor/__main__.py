# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The hypervisor's process: python -m lab.hypervisor, started by the lab."""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path

from lab.hypervisor.containers import Containers
from lab.hypervisor.orders import OPERATIONS, Orders
from lab.hypervisor.proxy import Proxy
from lab.hypervisor.server import Server
from lab.nodes import surroundings
from lab.nodes.network import Network
from lab.nodes.nodes import Nodes, Share
from lab.nodes.podman import Podman
from lab.simulator import Control


def main() -> None:
    """Serve until SIGTERM, then take away all that was made."""
    parser = argparse.ArgumentParser(prog="python -m lab.hypervisor")
    parser.add_argument("--lab", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--network", required=True)
    parser.add_argument("--control", default="")
    parser.add_argument("--share", action="append", default=[])
    parser.add_argument("--no-proxy", action="store_true")
    asked = parser.parse_args()
    network = Network(asked.lab)
    nodes = Nodes(asked.lab, asked.folder, Podman(asked.store), network)
    nodes.shares = [Share.parse(share) for share in asked.share]
    network.build(asked.network)
    try:
        _serve(asked, nodes)
    finally:
        nodes.clear()
        network.remove()


def _serve(asked: argparse.Namespace, nodes: Nodes) -> None:
    backend, ended = Containers(nodes), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    downloads: Mapping[str, int] = {}
    if not asked.no_proxy:
        proxy = Proxy(nodes.network.gateway, asked.store / "packages", surroundings.indexes())
        proxy.serve()
        nodes.proxy, downloads = proxy.address, proxy.downloads
    orders = Orders(backend, Control(asked.control))
    server = Server(nodes, orders, downloads)
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    if asked.control:
        orders.control.ask("PUT", "/external", {"listener": f"{server.address}/orders", "ops": OPERATIONS})
    facts = {"pid": os.getpid(), "address": server.address, "network": str(nodes.network.subnet)}
    ready = asked.folder / "hypervisor.json"
    ready.with_suffix(".part").write_text(json.dumps({**facts, "gateway": nodes.network.gateway, "proxy": nodes.proxy}))
    ready.with_suffix(".part").rename(ready)
    ended.wait()
    backend.stopping.set()
    orders.ended.set()
    ready.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
