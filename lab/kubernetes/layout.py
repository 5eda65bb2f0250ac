# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The addresses of a lab's Kubernetes: they follow from the lab's network, so that nobody need hand them out."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from lab.nodes.programs import LabError

PODS, SERVICES = "10.244.0.0/16", "10.96.0.0/16"
API = "10.96.0.1"  # the first address of the services, by which pods reach the API server
DOMAIN = "cluster.local"
PORT = 6443
SMALLEST = 24  # bits; the pods of a node are known by the last byte of its address


@dataclass(frozen=True)
class Layout:
    """What lies where in the network of a lab."""

    subnet: ipaddress.IPv4Network

    @classmethod
    def of(cls, subnet: str) -> Layout:
        """The layout in a network, which must be small enough for one pod network for each of its addresses."""
        network = ipaddress.IPv4Network(subnet)
        if network.prefixlen < SMALLEST:
            raise LabError(f"The network {network} is too large for Kubernetes in it: give one of /{SMALLEST} or less.")
        return cls(network)

    @property
    def control(self) -> str:
        """Where the API server and the name service listen: beside the lab's gateway, and never a worker's."""
        return str(self.subnet[2])

    @property
    def server(self) -> str:
        """The API server's address."""
        return f"https://{self.control}:{PORT}"

    def pods_of(self, node: str) -> str:
        """The network of the pods on a node, by the node's address."""
        if node == self.control or ipaddress.IPv4Address(node) not in self.subnet:
            raise LabError(f"No worker can have the address {node} in {self.subnet}: {self.control} is the API server.")
        return f"10.244.{node.rpartition('.')[2]}.0/24"

    def routes(self) -> Iterator[tuple[str, str]]:
        """To the pods of every node that there can be: (network, node)."""
        for address in self.subnet.hosts():
            if str(address) not in {self.control, str(self.subnet[1])}:
                yield self.pods_of(str(address)), str(address)
