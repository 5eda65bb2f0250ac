"""A Slurm cluster of workers: its configuration files from the facts of the nodes, and what differs from it; pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.findings import STOP
from ..core.run_request import narrowing_options
from . import mpi_checks, slurm_timers

Values = Mapping[str, Any]
HEADER = "# Written by the role dml.vsphere.slurm, which replaces changes.\n"
CGROUP2 = "cgroup2fs"
# The part of a node's memory for jobs: a node that registers with less than its line is drained.
FOR_JOBS = 0.95
# Slurm keeps ended jobs for an hour, so that a controller that returns finds their end.
KEPT_SECONDS = 3600
USABLE = ("idle", "allocated", "mixed", "completing")
_NAME, _KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,62}"), re.compile(r"[A-Za-z]{1,40}")
_NODE = re.compile(r"^NodeName=(\S+)", re.MULTILINE)
_STATE = re.compile(r"[*~#!%$@^-]+$")


class SlurmNode(NamedTuple):
    """A node as Slurm knows it."""

    name: str
    address: str
    cpus: int
    memory: int
    gpus: int
    has_cgroups: bool

    @property
    def line(self) -> str:
        """Return the line of slurm.conf."""
        gres = f" Gres=gpu:{self.gpus}" if self.gpus else ""
        return f"NodeName={self.name} NodeAddr={self.address} CPUs={self.cpus} RealMemory={self.memory}{gres}"


def nodes_of(found: Values) -> list[SlurmNode]:
    """Return the nodes from lists of facts in the same order."""
    keys = ("hosts", "addresses", "cpus", "memory", "gpus", "cgroups")
    return [
        SlurmNode(
            host.partition(".")[0],
            address if _is_address(address) else host,
            int(cpus),
            int(int(memory) * FOR_JOBS),
            int(gpus),
            cgroup == CGROUP2,
        )
        for host, address, cpus, memory, gpus, cgroup in zip(*(found[key] for key in keys))
    ]


def facts(found: Values, desired: Values) -> dict[str, Any]:
    """Return the files of all nodes, the way to track processes, and the node of slurmctld."""
    nodes = nodes_of(found)
    tracks = all(node.has_cgroups for node in nodes)
    controller = next((node for name, node in zip(found["names"], nodes) if name == desired["controller"]), nodes[0])
    files = {"slurm.conf": _conf(nodes, controller, tracks, desired)}
    if any(node.gpus for node in nodes):
        files["gres.conf"] = HEADER + "".join(map(_gres, (node for node in nodes if node.gpus)))
    if tracks:
        files["cgroup.conf"] = f"{HEADER}ConstrainCores=yes\nConstrainDevices=yes\n"
    tracked = {"tracks_by": "cgroup" if tracks else "linuxproc", "nodes": [node.name for node in nodes]}
    return {"files": files, "slurmdbd": HEADER + _lines(_slurmdbd(controller)), **tracked}


def settings_misfits(found: Values, desired: Values) -> list[str]:
    """Return why the nodes cannot be a cluster."""
    nodes, names = nodes_of(found), [host.partition(".")[0] for host in found["hosts"]]
    sentences = [f"{name!r} is not a host name that Slurm accepts." for name in names if not _NAME.fullmatch(name)]
    sentences += [
        f"{name} is the host name of several nodes." for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    if desired["controller"] not in found["names"]:
        sentences.append(f"slurm_controller is {desired['controller']}, which is not one of slurm_nodes.")
    for key in ("cluster", "partition"):
        if not _NAME.fullmatch(desired[key]):
            sentences.append(f"slurm_{key} is {desired[key]!r}: use letters, digits and '-'.")
    for key, value in desired["settings"].items():
        if not _KEY.fullmatch(str(key)) or "\n" in str(value) or str(key).lower() in ("nodename", "partitionname"):
            sentences.append(f"slurm_settings contains {key!r}, which is not a setting with one line.")
    sentences += _left_out(found, desired)
    return sentences if nodes else ["slurm_nodes is empty."]


def _left_out(found: Values, desired: Values) -> list[str]:
    """Return that a limit leaves out nodes of the present cluster: the others would leave it, with their jobs."""
    written = [text for text in found.get("confs") or [] if text.startswith(HEADER.rstrip())]
    there = {name for text in written for name in _NODE.findall(text)}
    left = sorted(there - set(_names(nodes_of(found))))
    options = narrowing_options(desired)
    if not options or not left:
        return []
    what = f"{options} leaves out {', '.join(left)} of the cluster of these nodes"
    return [f"{what}, which they would leave, so that their jobs end: run without {options}, or add those nodes to it."]


def misfits(found: Values, desired: Values) -> list[str]:
    """Return a sentence for each node that Slurm reports otherwise, each short timer, and a run that failed."""
    nodes = nodes_of(desired["found"])
    there = {row[0]: row for row in (line.split("|") for line in found["sinfo"]) if len(row) == len(_COLUMNS)}
    sentences = [text for node in nodes for text in _node_misfits(node, there.get(node.name))]
    sentences += [f"Slurm has a node {name} that is not in slurm_nodes." for name in there if name not in _names(nodes)]
    config = slurm_timers.settings(found["config"])
    rows = slurm_timers.timers(config, float(desired["stun_seconds"]))
    sentences += [f"{text}." for severity, text in rows if severity == STOP]
    if desired.get("accounting") and not str(found.get("known") or "").partition("|")[2]:
        sentences.append("slurmdbd does not know the address of slurmctld: see the logs of both in /var/log/slurm.")
    return sentences + [text for run in found["runs"] for text in _run_misfits(run, nodes)]


# The columns of ``sinfo --format``, and its format.
_COLUMNS = ("name", "state", "cpus", "memory", "gres", "reason")


def _node_misfits(node: SlurmNode, row: Sequence[str] | None) -> Iterator[str]:
    if row is None:
        yield f"Slurm has no node {node.name}."
        return
    there = dict(zip(_COLUMNS, row))
    if _STATE.sub("", there["state"]) not in USABLE or "*" in there["state"]:
        yield f"{node.name} is {there['state']} in Slurm ({there['reason']})."
    gres = f"gpu:{node.gpus}" if node.gpus else "(null)"
    reported = (there["cpus"], there["memory"], there["gres"].partition("(S:")[0])
    if reported != (str(node.cpus), str(node.memory), gres):
        has, needs = ", ".join(reported), f"{node.cpus}, {node.memory}, {gres}"
        yield f"{node.name} has the CPUs, memory and GPUs {has} in Slurm, not {needs}."


def _run_misfits(run: Values, nodes: Sequence[SlurmNode]) -> Iterator[str]:
    """Yield why a run over all nodes failed; one of srun prints host names, one of mpirun what hello.py writes."""
    if run.get("skipped"):
        return
    output, words = str(run.get("stdout") or ""), " ".join(run.get("cmd") or [])
    if run.get("rc") != 0:
        yield f"{words} failed: {' '.join(str(run.get('stderr') or output).split())[-400:]}."
        return
    ranks = mpi_checks.records(output, "hello")
    hosts = [str(rank["node"]) for rank in ranks] or output.split()
    names, total = _names(nodes), len(nodes) * (len(nodes) - 1) // 2
    if sorted(host.partition(".")[0] for host in hosts) != sorted(names) or {rank["sum"] for rank in ranks} - {total}:
        there = ", ".join(hosts) or "no node"
        yield f"{words} must run a rank on each of {', '.join(names)}; ranks ran on {there}."


def _conf(nodes: Sequence[SlurmNode], controller: SlurmNode, tracks: bool, desired: Values) -> str:
    settings = {
        "ClusterName": desired["cluster"],
        "SlurmctldHost": f"{controller.name}({controller.address})",
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "StateSaveLocation": "/var/lib/slurm/slurmctld",
        "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log",
        "ProctrackType": "proctrack/cgroup" if tracks else "proctrack/linuxproc",
        "TaskPlugin": "task/cgroup,task/affinity" if tracks else "task/none",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        **({"GresTypes": "gpu"} if any(node.gpus for node in nodes) else {}),
        # A node that was rebooted, or that did not answer for long, comes back by itself.
        "ReturnToService": 2,
        "MpiDefault": "none",
        **(_accounting(nodes, controller) if desired.get("accounting") else {}),
        "MinJobAge": KEPT_SECONDS,
        **_timers(int(float(desired["stun_seconds"]))),
        **{str(key): value for key, value in desired["settings"].items()},
    }
    partition = f"PartitionName={desired['partition']} Nodes={','.join(_names(nodes))} Default=YES State=UP"
    return HEADER + _lines(settings) + "".join(f"{line}\n" for line in (*(node.line for node in nodes), partition))


def _lines(settings: Values) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _accounting(nodes: Sequence[SlurmNode], controller: SlurmNode) -> dict[str, object]:
    """Return the settings with which slurmctld keeps jobs in slurmdbd."""
    gpus = {"AccountingStorageTRES": "gres/gpu"} if any(node.gpus for node in nodes) else {}
    where = {"AccountingStorageType": "accounting_storage/slurmdbd", "AccountingStorageHost": controller.address}
    return {**where, **gpus}


def _slurmdbd(controller: SlurmNode) -> dict[str, object]:
    """Return the settings of slurmdbd, which reaches its database on the same node by a socket."""
    return {
        "AuthType": "auth/munge",
        "DbdHost": controller.name,
        "DbdAddr": controller.address,
        "SlurmUser": "slurm",
        "PidFile": "/run/slurmdbd.pid",
        "LogFile": "/var/log/slurm/slurmdbd.log",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",
        "StorageUser": "slurm",
        "StorageLoc": "slurm_acct_db",
    }


def _timers(stun: int) -> dict[str, object]:
    """Return the timers with which Slurm waits for a stunned node: its defaults, or more if the stun needs more."""
    return {
        "SlurmdTimeout": max(300, 2 * stun),
        "BatchStartTimeout": max(10, stun),
        "ResumeTimeout": max(60, stun),
        "UnkillableStepTimeout": max(60, stun),
        "AuthInfo": f"cred_expire={max(120, stun)}" + (f",ttl={stun}" if stun > slurm_timers.TTL["auth/munge"] else ""),
    }


def _gres(node: SlurmNode) -> str:
    numbers = f"[0-{node.gpus - 1}]" if node.gpus > 1 else "0"
    return f"NodeName={node.name} Name=gpu File=/dev/nvidia{numbers}\n"


def _names(nodes: Sequence[SlurmNode]) -> list[str]:
    return [node.name for node in nodes]


def _is_address(text: object) -> bool:
    try:
        ipaddress.ip_address(str(text))
    except ValueError:
        return False
    return True
