"""The hypervisor's process: python -m lab.hypervisor, started by the lab."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

from lab.hypervisor.backend import Backend
from lab.hypervisor.containers import Containers
from lab.hypervisor.orders import OPERATIONS, Orders
from lab.hypervisor.proxy import Proxy
from lab.hypervisor.server import Server
from lab.kubernetes.cluster import Cluster
from lab.kubernetes.layout import Layout
from lab.kubernetes.member import Member
from lab.machines import accelerator, roots, shares
from lab.machines.machines import MEMORY_MIB, Machines
from lab.nodes import image, surroundings
from lab.nodes.kinds import Kind
from lab.nodes.network import Network
from lab.nodes.nodes import Nodes, Share
from lab.nodes.podman import Podman
from lab.nodes.programs import LabError
from lab.simulator import Control


def main() -> int:
    """Serve until SIGTERM, then remove everything that was made; print a lab error as one sentence."""
    requested = _parsed()
    try:
        _run(requested)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.hypervisor")
    parser.add_argument("--lab", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--store", type=Path, required=True)
    parser.add_argument("--network", required=True)
    parser.add_argument("--control", default="")
    parser.add_argument("--share", action="append", default=[])
    parser.add_argument("--containers", action="store_true")
    parser.add_argument("--suite", choices=image.SUITES, default=image.SUITE)
    parser.add_argument("--no-proxy", action="store_true")
    parser.add_argument("--machines", action="store_true")
    parser.add_argument("--memory", type=int, default=MEMORY_MIB, help="memory of each machine, in MiB")
    parser.add_argument("--kubernetes", action="store_true", help="nodes are members of the lab's cluster")
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> None:
    network = Network(arguments.lab)
    backend = (_machines if arguments.machines else _containers)(arguments, network)
    network.build(arguments.network)
    try:
        if arguments.kubernetes and isinstance(backend, Containers):
            cluster = Cluster(arguments.folder / "kubernetes")
            backend.nodes.kind = Member(cluster.built, cluster.folder, Layout.of(str(network.subnet)))
        backend.prepare()
        _serve(arguments, backend)
    finally:
        backend.clear()
        network.remove()


def _containers(arguments: argparse.Namespace, network: Network) -> Backend:
    nodes = Nodes(arguments.lab, arguments.folder, Podman(arguments.store), network)
    nodes.kind = Kind(arguments.suite)
    nodes.shares = [Share.parse(share) for share in arguments.share]
    nodes.runs_containers = arguments.containers
    return Containers(nodes)


def _machines(arguments: argparse.Namespace, network: Network) -> Backend:
    built = roots.ensure(arguments.store, print)
    domain_type = accelerator.detect(built)
    print(f"Guests run with {domain_type}", flush=True)
    machines = Machines(arguments.lab, arguments.folder, network, built, domain_type)
    machines.memory_mib = arguments.memory
    machines.disks = shares.disks(arguments.store / "shares", [Share.parse(share) for share in arguments.share])
    return machines


def _serve(arguments: argparse.Namespace, backend: Backend) -> None:
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    downloads: Mapping[str, int] = {}
    if not arguments.no_proxy:
        proxy = Proxy(backend.network.gateway, arguments.store / "packages", surroundings.indexes())
        proxy.serve()
        backend.proxy, downloads = proxy.address, proxy.downloads
    orders = Orders(backend, Control(arguments.control))
    server = Server(orders, downloads)
    threading.Thread(target=server.serve_forever, name="server", daemon=True).start()
    if arguments.control:
        orders.control.ask("PUT", "/external", {"listener": f"{server.address}/orders", "ops": OPERATIONS})
    facts = {"pid": os.getpid(), "address": server.address, "network": str(backend.network.subnet)}
    ready = arguments.folder / "hypervisor.json"
    ready.with_suffix(".part").write_text(
        json.dumps({**facts, "gateway": backend.network.gateway, "proxy": backend.proxy})
    )
    ready.with_suffix(".part").rename(ready)
    ended.wait()
    backend.stopping.set()
    orders.ended.set()
    ready.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(main())
