"""The addresses of a lab's Kubernetes, derived from the lab's network."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from lab.nodes.programs import LabError

PODS, SERVICES = "10.244.0.0/16", "10.96.0.0/16"
API = "10.96.0.1"  # the first service address, at which pods reach the API server
DOMAIN = "cluster.local"
PORT = 6443
SMALLEST = 24  # bits; the pod network of a node contains the last byte of the node's address


@dataclass(frozen=True)
class Layout:
    """The addresses in the network of a lab."""

    subnet: ipaddress.IPv4Network

    @classmethod
    def of(cls, subnet: str) -> Layout:
        """Return the layout for a network, which must be small enough for one pod network per address."""
        network = ipaddress.IPv4Network(subnet)
        if network.prefixlen < SMALLEST:
            raise LabError(f"The network {network} is too large for Kubernetes: use a /{SMALLEST} network or smaller.")
        return cls(network)

    @property
    def control(self) -> str:
        """Return the address of the API server and the name service: next to the gateway, and never a worker's."""
        return str(self.subnet[2])

    @property
    def server(self) -> str:
        """Return the URL of the API server."""
        return f"https://{self.control}:{PORT}"

    def pods_of(self, node: str) -> str:
        """Return the pod network of a node with this address."""
        if node == self.control or ipaddress.IPv4Address(node) not in self.subnet:
            reserved = f"it must be in {self.subnet}, and {self.control} is the API server"
            raise LabError(f"A worker cannot have the address {node}: {reserved}.")
        return f"10.244.{node.rpartition('.')[2]}.0/24"

    def routes(self) -> Iterator[tuple[str, str]]:
        """Yield the routes to the pods of every possible node: (network, node)."""
        for address in self.subnet.hosts():
            if str(address) not in {self.control, str(self.subnet[1])}:
                yield self.pods_of(str(address)), str(address)
