"""Run a script that is written for torchrun in the ranks that mpirun or torchrun starts::

    python -u dml_torchrun.py script.py ...
    python -u dml_torchrun.py -m module ...

In a rank of mpirun, it sets the same variables as torchrun: rank, node, size and the rendezvous address (MASTER_ADDR
and MASTER_PORT, which the role sets). It also sets the interface for Gloo, which otherwise uses the address of the host
name, often loopback. The steps of the script are recorded by dml_steps.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys

import dml_steps

# The variable names of torchrun and of mpirun.
NAMES = {
    "RANK": "OMPI_COMM_WORLD_RANK",
    "WORLD_SIZE": "OMPI_COMM_WORLD_SIZE",
    "LOCAL_RANK": "OMPI_COMM_WORLD_LOCAL_RANK",
    "LOCAL_WORLD_SIZE": "OMPI_COMM_WORLD_LOCAL_SIZE",
}
ADDRESS, GLOO = "MASTER_ADDR", "GLOO_SOCKET_IFNAME"
# The variable that torchrun sets in each of its ranks, and mpirun does not.
OF_TORCHRUN = "TORCHELASTIC_RUN_ID"
# From linux/sockios.h; the probe sends nothing to the port.
SIOCGIFADDR, ANY_PORT = 0x8915, 9


def set_environment() -> None:
    """Set the environment variables that torchrun would set, unless torchrun started this rank."""
    if OF_TORCHRUN not in os.environ:
        _set_place()
    interface = interface_to(os.environ[ADDRESS])
    if interface:
        os.environ.setdefault(GLOO, interface)
    # Only the log of NCCL shows which network it used.
    os.environ.setdefault("NCCL_DEBUG", "INFO")


def _set_place() -> None:
    lacking = [name for name in (*NAMES.values(), ADDRESS) if name not in os.environ]
    if lacking:
        sys.exit(f"dml_torchrun.py needs a rank of mpirun and {ADDRESS}: {', '.join(lacking)} is missing")
    os.environ.update({name: os.environ[of_mpi] for name, of_mpi in NAMES.items()})
    # torchrun's default: with it, Lightning compares its number of nodes with that of the ranks.
    os.environ[OF_TORCHRUN] = "none"
    os.environ.update(groups(*(int(os.environ[name]) for name in NAMES)))


def groups(rank: int, size: int, local_rank: int, local_size: int) -> dict[str, str]:
    """Return the node of this rank as torchrun numbers it, if each node has the same number of consecutive ranks.

    Lightning calculates the rank from it.
    """
    if size % local_size or rank % local_size != local_rank:
        return {}
    numbers = {"GROUP_RANK": rank // local_size, "GROUP_WORLD_SIZE": size // local_size}
    return {name: str(number) for name, number in {**numbers, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": size}.items()}


def interface_to(address: str) -> str:
    """Return the interface through which this node reaches an address; empty if no IPv4 route leads there."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, ANY_PORT))
        except OSError:
            return ""
        own = probe.getsockname()[0]
        found = [name for _index, name in socket.if_nameindex() if _address(probe, name) == own]
    return found[0] if found else ""


def _address(probe: socket.socket, name: str) -> str:
    """Return the first IPv4 address of an interface; empty if it has none."""
    try:
        answer = fcntl.ioctl(probe.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()))
    except OSError:
        return ""
    return socket.inet_ntoa(answer[20:24])


def main() -> None:
    """Run the given script as the main program, with its steps recorded."""
    set_environment()
    dml_steps.install()
    dml_steps.run(sys.argv[1:])


if __name__ == "__main__":
    main()
