"""The checks of a node by kind: each compares the observed with the desired state, and returns facts and misfits."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..core.findings import STOP
from ..core.json_values import JsonObject, parse_json
from . import (
    docker,
    gpu_health,
    gpudirect,
    kubernetes_member,
    memory_pools,
    mpi_checks,
    node_settings,
    nvidia,
    repositories,
    slurm_cluster,
    slurm_timers,
    software_packages,
    training_image,
)

Values = Mapping[str, Any]
LONGEST_ERROR = 100
NO_VERSION = "-"


class CheckResult(NamedTuple):
    """The facts about the observed state, and a sentence for each misfit."""

    facts: dict[str, Any]
    misfits: list[str]


@dataclass(frozen=True)
class CheckKind:
    """One kind of check: its function, the start of its message, and the remedy at the end of the message."""

    check: Callable[[Values, Values], CheckResult]
    opening: str
    remedy: str = ""


def check(kind: str, node: str, found: Values, desired: Values) -> tuple[CheckResult, str]:
    """Return the result of one kind of check, and one message about its misfits; empty without misfits."""
    check_kind = KINDS[kind]
    try:
        result = check_kind.check(found, desired)
    except docker.SettingsError as error:
        result = CheckResult({}, [str(error)])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # A program on the node wrote unexpected output, which is a misfit too.
        result = CheckResult({}, [f"The output of its programs cannot be read ({_short(error)})."])
    parts = [check_kind.opening.format(node=node), *result.misfits, check_kind.remedy]
    return result, " ".join(part for part in parts if part) if result.misfits else ""


def _short(error: Exception) -> str:
    text = " ".join(f"it has no {error}".split() if isinstance(error, KeyError) else str(error).split())
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]} ..."


def _packages(found: Values, desired: Values) -> CheckResult:
    installed, requested = found["installed"], desired["packages"]
    facts = {"replaced": software_packages.replacements(installed, requested)}
    return CheckResult(facts, software_packages.misfits(installed, requested, found.get("held")))


def _python_packages(found: Values, desired: Values) -> CheckResult:
    return CheckResult(
        {}, software_packages.python_misfits(software_packages.pip_list(found["listed"]), desired["packages"])
    )


def _desired_repositories(_found: Values, desired: Values) -> CheckResult:
    return CheckResult({}, repositories.misfits(desired["repositories"], desired["keys"]))


def _apt_repositories(found: Values, desired: Values) -> CheckResult:
    return CheckResult({}, repositories.apt_misfits(found, desired["repositories"], desired["only"]))


def _dnf_repositories(found: Values, desired: Values) -> CheckResult:
    return CheckResult({}, repositories.dnf_misfits(found, desired["repositories"], desired["only"]))


def _kernel_settings(found: Values, desired: Values) -> CheckResult:
    return CheckResult({}, node_settings.misfits(node_settings.sysctls(found["sysctls"]), desired["sysctls"]))


def _kubernetes_node(found: Values, desired: Values) -> CheckResult:
    return CheckResult(kubernetes_member.facts(found, desired), kubernetes_member.misfits(found, desired))


def _node(found: Values, desired: Values) -> CheckResult:
    warnings = node_settings.slow_lookups(found.get("lookups") or "{}")
    return CheckResult({"warnings": warnings}, node_settings.node_misfits(found, desired))


def _node_peers(found: Values, desired: Values) -> CheckResult:
    return CheckResult({}, node_settings.left_out_peers(found["known_hosts"], desired))


def _gpu_driver(found: Values, desired: Values) -> CheckResult:
    if found["rc"] != 0:
        # It also fails if the driver has no GPU to work on.
        alone = f"The driver {desired['driver']} cannot be verified, because the node has no GPU; "
        words = (found["stdout"] + " " + found["stderr"]).strip()
        return CheckResult({}, [f"{'' if int(desired['gpus']) else alone}nvidia-smi failed: {words}"])
    facts = nvidia.report(found["stdout"])
    return CheckResult(facts, nvidia.driver_misfits(facts, {**desired, "gpus": int(desired["gpus"])}))


def _gpu_health(found: Values, desired: Values) -> CheckResult:
    since, idle = float(desired.get("since") or 0.0), bool(desired.get("idle"))
    findings = gpu_health.findings("the node", found, since, idle=idle)
    notes = [f"{finding.severity}: {finding.text}." for finding in findings if finding.severity != STOP]
    return CheckResult({"notes": notes}, [f"{finding.text}." for finding in findings if finding.severity == STOP])


def _gpudirect(found: Values, _desired: Values) -> CheckResult:
    sentence = gpudirect.misfit(found)
    return CheckResult(gpudirect.facts(found), [f"{sentence[:1].upper()}{sentence[1:]}."] if sentence else [])


def _memory_pools(found: Values, _desired: Values) -> CheckResult:
    return CheckResult(memory_pools.facts(found), [f"{sentence}." for sentence in memory_pools.misfits(found)])


def _cuda(found: Values, desired: Values) -> CheckResult:
    reported, count = parse_json(found["reported"]) or {}, int(desired["devices"])
    requested = {part: version for part, version in desired["versions"].items() if version}
    sentences, devices = nvidia.cuda_misfits(reported, requested), reported.get("devices") or []
    if count >= 0:
        sentences += nvidia.device_misfits(devices, reported.get("devices_why") or "", count)
    facts = {"versions": {part: reported.get(part) for part in requested}, "devices": devices if count >= 0 else []}
    return CheckResult(facts, sentences)


def _docker(found: Values, desired: Values) -> CheckResult:
    facts = docker.report(found["info"])
    merged = docker.settings(found["settings"], docker.own_settings(desired))
    # Compared as data, so that the layout of the file does not matter.
    facts.update(settings=merged, differs=merged != (parse_json(found["settings"]) or {}))
    return CheckResult(facts, docker.misfits(facts, desired))


def _docker_change(found: Values, desired: Values) -> CheckResult:
    facts = found["docker"]
    return CheckResult({}, docker.stops(facts, desired["version"], facts["differs"] or found["stale"]))


def _container_gpus(found: Values, desired: Values) -> CheckResult:
    inside, outside = nvidia.uuids(found["inside"]), nvidia.uuids(found["outside"])
    whole = [one for one in outside if one.startswith("GPU-")]
    if inside == outside and len(whole) == int(desired["gpus"]):
        return CheckResult({"gpus": inside}, [])
    named = [" and ".join(one) or "none" for one in (inside, outside)]
    sentence = f"A container lists the GPUs {named[0]}, the node {named[1]}; {desired['gpus']} are required."
    return CheckResult({"gpus": inside}, [sentence])


def _rdma(found: Values, desired: Values) -> CheckResult:
    rows = [parse_json(line) for line in found["rows"]]
    misfits = gid_misfits(rows, desired)
    gids = [] if misfits else usable_gids(rows, desired["type"], desired["addresses"])
    return CheckResult({"gids": gids}, misfits)


def _rdma_bandwidth(found: Values, desired: Values) -> CheckResult:
    facts = {"gbits": average_gbits(found["output"])}
    return CheckResult(facts, bandwidth_misfits([found], float(desired["gbits"])))


def _rdma_mtu(found: Values, _desired: Values) -> CheckResult:
    return CheckResult({}, mtu_misfits(str(found["address"]), found["lost"]))


def _openmpi(found: Values, desired: Values) -> CheckResult:
    return CheckResult(mpi_checks.openmpi_facts(found), mpi_checks.openmpi_misfits(found, desired))


def _horovod(found: Values, desired: Values) -> CheckResult:
    return CheckResult(mpi_checks.horovod_facts(found, desired), mpi_checks.horovod_misfits(found, desired))


def _pytorch(found: Values, desired: Values) -> CheckResult:
    return CheckResult(mpi_checks.pytorch_facts(found, desired), mpi_checks.pytorch_misfits(found, desired))


def _training_image(found: Values, desired: Values) -> CheckResult:
    return CheckResult(training_image.facts(found, desired), training_image.misfits(found, desired))


def _slurm_settings(found: Values, desired: Values) -> CheckResult:
    misfits = slurm_cluster.settings_misfits(found, desired)
    return CheckResult({} if misfits else slurm_cluster.facts(found, desired), misfits)


def _slurm(found: Values, desired: Values) -> CheckResult:
    version = slurm_timers.settings(found["config"]).get("SLURM_VERSION", "")
    return CheckResult({"version": version}, slurm_cluster.misfits(found, desired))


def _versions(found: Values, _desired: Values) -> CheckResult:
    nodes = versions_by_node(found["nodes"])
    return CheckResult({"versions": nodes, "table": version_table(nodes)}, version_differences(nodes))


def versions_by_node(local_facts: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """Return the versions of each node, from ``versions`` in its proofs."""
    return {
        node: {
            str(part): str(version)
            for name in sorted(proofs or {})
            if name.startswith("dml_") and isinstance(proofs[name], Mapping)
            for part, version in (proofs[name].get("versions") or {}).items()
        }
        for node, proofs in local_facts.items()
    }


def version_table(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return the lines of a table with one line for each node."""
    names = _version_names(nodes.values())
    cells = ([node, *(versions.get(name, NO_VERSION) for name in names)] for node, versions in nodes.items())
    rows = [["node", *names], *cells]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]


def version_differences(nodes: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return a sentence for each part whose version differs between nodes."""
    sentences = []
    for name in _version_names(nodes.values()):
        by_version: dict[str, list[str]] = {}
        for node, versions in nodes.items():
            by_version.setdefault(versions.get(name, "missing"), []).append(node)
        if len(by_version) > 1:
            parts = [f"{version} on {', '.join(there)}" for version, there in by_version.items()]
            sentences.append(f"{name} is {' and '.join(parts)}.")
    return sentences


def _version_names(nodes: Iterable[Mapping[str, str]]) -> list[str]:
    return list(dict.fromkeys(name for versions in nodes for name in versions))


KINDS = {
    "apt_repositories": CheckKind(_apt_repositories, "{node} cannot use its repositories:"),
    "container_gpus": CheckKind(_container_gpus, "The GPUs in containers of {node} are not as they should be:"),
    "cuda": CheckKind(_cuda, "CUDA on {node} does not match its settings:"),
    "dnf_repositories": CheckKind(_dnf_repositories, "{node} cannot use its repositories:"),
    "docker": CheckKind(_docker, "Docker on {node} does not match its settings:"),
    "docker_change": CheckKind(
        _docker_change,
        "Docker on {node} cannot be changed:",
        "Wait until the containers have ended, or set container_runtime_stop_containers to true.",
    ),
    "gpu_driver": CheckKind(_gpu_driver, "The GPUs of {node} are not as they should be:"),
    "gpu_health": CheckKind(_gpu_health, "The GPUs of {node} are not healthy:"),
    "gpudirect": CheckKind(_gpudirect, "{node} cannot send from the memory of its GPUs:"),
    "horovod": CheckKind(_horovod, "Horovod on {node} does not match its settings:"),
    "kernel_settings": CheckKind(_kernel_settings, "The kernel settings of {node} are not in force:"),
    "kubernetes_node": CheckKind(_kubernetes_node, "{node} is not fit for training on Kubernetes:"),
    "memory_pools": CheckKind(_memory_pools, "NCCL does not start on the GPUs of {node}:"),
    "node": CheckKind(_node, "{node} is not fit for training:"),
    "node_peers": CheckKind(_node_peers, "{node} cannot be prepared:"),
    "openmpi": CheckKind(_openmpi, "OpenMPI on {node} does not match its settings:"),
    "packages": CheckKind(_packages, "The packages of {node} are not as they should be:"),
    "python_packages": CheckKind(_python_packages, "The Python packages of {node} are not as they should be:"),
    "pytorch": CheckKind(_pytorch, "PyTorch on {node} does not match its settings:"),
    "rdma": CheckKind(_rdma, "The RDMA device of {node} does not match its settings:"),
    "rdma_bandwidth": CheckKind(_rdma_bandwidth, "The RDMA bandwidth of {node} does not match its settings:"),
    "rdma_mtu": CheckKind(_rdma_mtu, "Large packets of {node} do not reach all nodes:"),
    "repositories_wanted": CheckKind(_desired_repositories, "{node} cannot get its repositories:"),
    "slurm": CheckKind(_slurm, "The Slurm cluster is not as it should be:"),
    "slurm_settings": CheckKind(_slurm_settings, "The nodes cannot become a Slurm cluster:"),
    "training_image": CheckKind(_training_image, "The training image on {node} does not match its settings:"),
    "versions": CheckKind(
        _versions,
        "The nodes have different versions, and must not train together:",
        "Give all nodes the same system and stack, and run the playbook again.",
    ),
}


ACTIVE = "4:"  # the kernel's "4: ACTIVE"
# Bytes, iterations, peak, average, messages per second: the row below the heading that names gigabits.
ROW = re.compile(r"^[ \t]*\d+[ \t]+\d+[ \t]+[\d.]+[ \t]+(?P<average>[\d.]+)[ \t]+[\d.]+\s*$", re.MULTILINE)
HEADING = re.compile(r"BW average\[Gb/sec\]")
# The program wrote all data but could not determine the processor's frequency, which it reports on stderr.
UNMEASURED = re.compile(r"^[ \t]*\d+[ \t]+\d+(?:[ \t]+0\.0+){3}\s*$", re.MULTILINE)


def usable_gids(rows: Sequence[Mapping[str, object]], kind: str, addresses: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the GIDs of one type in active ports: those of the IPv4 addresses in their order, or without any, all."""
    gids = []
    for row in rows:
        mapped = ipaddress.IPv6Address(row["gid"]).ipv4_mapped
        if mapped is None or row["type"] != kind or not str(row["state"]).startswith(ACTIVE):
            continue
        gids.append({**row, "address": str(mapped)})
    return [gid for address in addresses for gid in gids if gid["address"] == address] if addresses else gids


def gid_misfits(rows: Sequence[Mapping[str, object]], desired: JsonObject) -> list[str]:
    """Return sentences if there is no device, not exactly one GID per address, or a card whose MTU is too small.

    The keys of ``desired`` are ``type``, ``addresses``, ``mtu`` and ``driver``.
    """
    if not rows:
        return [
            f"No device was found: check that the VM has an RDMA card and the driver {desired['driver']} is loaded."
        ]
    sentences = []
    for address in desired["addresses"] or [""]:
        gids = usable_gids(rows, desired["type"], [address] if address else [])
        if len(gids) != 1:
            of_address = f" with the address {address}" if address else ""
            text = f"{len(gids)} GIDs in active ports are of type {desired['type']}{of_address}"
            sentences.append(f"{text}; there must be exactly one.")
        elif gids[0]["mtu"] < int(desired["mtu"]):
            sentences.append(f"The MTU of {gids[0]['card']} is {gids[0]['mtu']}, less than {desired['mtu']}.")
    return sentences


def mtu_misfits(address: str, lost: Sequence[Mapping[str, object]]) -> list[str]:
    """Return a sentence if nodes did not answer unsplit packets of the MTU."""
    words = [f"{each['peer']} ({each['address']}, {each['bytes']} bytes{_reason(each)})" for each in lost]
    remedy = "check the MTU of the virtual and the physical switch, and that no firewall drops ICMP echo"
    return [f"Unsplit packets from {address} are not answered by {', '.join(words)}: {remedy}."] if lost else []


def _reason(lost: Mapping[str, object]) -> str:
    return f": {lost['why']}" if lost["why"] else ""


def average_gbits(output: str) -> float | None:
    """Return the average in gigabits per second; None if the program measured nothing, or used other units."""
    rows = ROW.findall(output) if HEADING.search(output) and not UNMEASURED.search(output) else []
    return float(rows[-1]) if rows else None


def bandwidth_misfits(pairs: Sequence[Mapping[str, Any]], least: float) -> list[str]:
    """Return a sentence for each pair of nodes, ``{"from", "to", "output"}``, whose bandwidth is missing or low."""
    sentences = []
    for pair in pairs:
        gbits = average_gbits(pair["output"])
        way = f"ib_write_bw from {pair['from']} to {pair['to']}"
        if UNMEASURED.search(pair["output"]):
            sentences += [_unmeasured(way, str(pair.get("error") or ""))] if least else []
        elif gbits is None:
            output = (str(pair.get("error") or pair["output"]).strip() or "it printed nothing")[-400:]
            sentences.append(f"{way} measured nothing: {output}")
        elif gbits <= 0 or gbits < least:
            sentences.append(f"{way} measured {gbits:g} Gbit/s, less than {least:g}.")
    return sentences


def _unmeasured(way: str, error: str) -> str:
    reason = next((line.strip() for line in error.splitlines() if "orrelation" in line), "no reason was printed")
    return (
        f"{way} wrote all data but could not measure the bandwidth with the processor's clock ({reason}): run it again."
    )
