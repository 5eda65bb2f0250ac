"""The lab's command: python -m lab up, down, node, kubectl."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.machines.machines import MEMORY_MIB
from lab.nodes import image
from lab.nodes.network import AUTO
from lab.nodes.programs import LabError
from lab.running import SUBNET, Desired, Lab
from lab.simulator import DATACENTRES, add_site, site_options

SSH_OPTIONS = "-o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR -o IdentitiesOnly=yes"


def main() -> int:
    """Run the requested action and return the exit code."""
    arguments = _parser().parse_args()
    try:
        arguments.do(Lab(arguments.name or ("kubernetes" if arguments.kubernetes else "default")), arguments)
    except (LabError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m lab", description="A data centre with real guests.")
    parser.add_argument("--name", help="name of the lab; labs with different names are isolated from each other")
    parser.add_argument("--kubernetes", action="store_true", help="nodes are members of the lab's Kubernetes cluster")
    actions = parser.add_subparsers(required=True)
    up = actions.add_parser("up", help="start the data centre and its hypervisor")
    up.add_argument("--datacentre", type=Path, default=DATACENTRES / "lab.yml")
    up.add_argument("--without-nodes", action="store_true", help="start only the data centre, which does not need root")
    add_site(up)
    up.set_defaults(do=_up)
    node = actions.add_parser("node", help="make nodes without virtual machines; print as JSON how to reach them")
    _add_node(node)
    for action, subnet in ((up, SUBNET), (node, AUTO)):
        action.add_argument("--network", default=subnet, help=f"network of the guests, or {AUTO}")
        action.add_argument("--share", action="append", default=[], metavar="HERE[:THERE[:rw]]")
        action.add_argument("--machines", action="store_true", help="guests are virtual machines instead of nodes")
        action.add_argument(
            "--memory", type=int, default=MEMORY_MIB, help="MiB for each virtual machine; a framework needs 1536"
        )
        action.add_argument("--containers", action="store_true", help="nodes can run containers")
        action.add_argument("--suite", choices=image.SUITES, default=image.SUITE, help="the Debian of the nodes")
        action.add_argument("--no-proxy", action="store_true", help="nodes cannot reach a package archive")
        action.add_argument("--without-operator", action="store_true", help="Kubernetes without the MPI Operator")
    kubectl = actions.add_parser("kubectl", help="run kubectl against the lab's Kubernetes")
    kubectl.add_argument("arguments", nargs=argparse.REMAINDER)
    kubectl.set_defaults(do=_kubectl)
    actions.add_parser("down", help="stop the lab and remove everything that it created").set_defaults(do=_down)
    return parser


def _add_node(node: argparse.ArgumentParser) -> None:
    """Add the options of the action for nodes without virtual machines."""
    node.add_argument("nodes", nargs="+", metavar="NAME[=ADDRESS/BITS]", help="an address adds an RDMA card")
    node.add_argument("--user", default="debian")
    node.add_argument("--inventory", type=Path, help="a file for Ansible with the connections to these nodes")
    node.set_defaults(do=_node, datacentre=None)


def _up(lab: Lab, arguments: argparse.Namespace) -> None:
    lab.up(_desired(arguments, not arguments.without_nodes, site_options(arguments)))
    print(f"The lab is up; its environment is in {lab.folder / 'env.sh'}.")


def _node(lab: Lab, arguments: argparse.Namespace) -> None:
    if not lab.facts("hypervisor"):
        lab.up(_desired(arguments))
    cards = {name: address for name, _sign, address in (node.partition("=") for node in arguments.nodes)}
    made = [lab.node(name, arguments.user, rdma_address=address) for name, address in cards.items()]
    if arguments.kubernetes:
        lab.kubernetes.wait_for(list(cards))
    if arguments.inventory:
        arguments.inventory.parent.mkdir(parents=True, exist_ok=True)
        arguments.inventory.write_text(json.dumps(_connections(made), indent=2) + "\n")
    print(json.dumps(made, indent=2))


def _connections(made: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return an inventory with the connections to nodes, whose host keys change with each lab."""
    login = {"ansible_ssh_common_args": SSH_OPTIONS}
    names = {"ansible_host": "address", "ansible_user": "user", "ansible_ssh_private_key_file": "identity_file"}
    hosts = {node["instance"]: {name: node[key] for name, key in names.items()} for node in made}
    return {"all": {"hosts": hosts, "vars": login}}


def _desired(arguments: argparse.Namespace, nodes: bool = True, options: Sequence[str] = ()) -> Desired:
    if arguments.kubernetes and (arguments.machines or not nodes):
        other = "--machines" if arguments.machines else "--without-nodes"
        raise LabError(f"Kubernetes needs nodes: --kubernetes and {other} cannot go together.")
    if arguments.suite != image.SUITE and (arguments.machines or arguments.kubernetes):
        raise LabError(f"Virtual machines and Kubernetes have Debian {image.SUITE}: --suite is for plain nodes.")
    more = {
        "suite": arguments.suite,
        "machines": arguments.machines,
        "memory_mib": arguments.memory,
        "containers": arguments.containers,
        "options": options,
    }
    members = {"kubernetes": arguments.kubernetes, "operator": not arguments.without_operator}
    return Desired(
        arguments.datacentre, arguments.network, arguments.share, not arguments.no_proxy, nodes, **more, **members
    )


def _kubectl(lab: Lab, arguments: argparse.Namespace) -> None:
    if not lab.facts("hypervisor") or not lab.kubernetes.kubeconfig.exists():
        raise LabError(f"The lab in {lab.folder} has no Kubernetes: python -m lab --kubernetes up starts one.")
    command = lab.kubernetes.command
    os.execve(command[0], [*command, *arguments.arguments], {**os.environ, **lab.environment})


def _down(lab: Lab, _arguments: argparse.Namespace) -> None:
    lab.down()
    print("The lab is down.")


if __name__ == "__main__":
    sys.exit(main())
