# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The checks of a node by kind: each compares what was found with what is wanted, and returns facts and misfits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from . import (
    docker,
    kubernetes_member,
    mpi_checks,
    node_settings,
    nvidia,
    rdma_bandwidth,
    rdma_gids,
    repositories,
    software_packages,
    software_versions,
    training_image,
)
from .parsed import parsed

Values = Mapping[str, Any]
LONGEST_ERROR = 100


class Answer(NamedTuple):
    """The facts in what was found, and a sentence for each misfit."""

    facts: dict[str, Any]
    misfits: list[str]


@dataclass(frozen=True)
class Kind:
    """One kind of check: its function, how the sentence about misfits begins, and what it advises at the end."""

    check: Callable[[Values, Values], Answer]
    opening: str
    remedy: str = ""


def check(kind: str, node: str, found: Values, wanted: Values) -> tuple[Answer, str]:
    """The answer of one kind of check, and one text about its misfits; empty where there is none."""
    one = KINDS[kind]
    try:
        answer = one.check(found, wanted)
    except docker.SettingsError as error:
        answer = Answer({}, [str(error)])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        # Programs of a node said something else than they do elsewhere: that is not what is wanted either.
        answer = Answer({}, [f"What its programs say cannot be read ({_short(error)})."])
    parts = [one.opening.format(node=node), *answer.misfits, one.remedy]
    return answer, " ".join(part for part in parts if part) if answer.misfits else ""


def _short(error: Exception) -> str:
    text = " ".join(f"it has no {error}".split() if isinstance(error, KeyError) else str(error).split())
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]} ..."


def _packages(found: Values, wanted: Values) -> Answer:
    installed, asked = found["installed"], wanted["packages"]
    facts = {"replaced": software_packages.replacements(installed, asked)}
    return Answer(facts, software_packages.misfits(installed, asked, found.get("held")))


def _python_packages(found: Values, wanted: Values) -> Answer:
    return Answer({}, software_packages.python_misfits(software_packages.listed(found["listed"]), wanted["packages"]))


def _repositories_wanted(_found: Values, wanted: Values) -> Answer:
    return Answer({}, repositories.misfits(wanted["repositories"], wanted["keys"]))


def _apt_repositories(found: Values, wanted: Values) -> Answer:
    return Answer({}, repositories.apt_misfits(found, wanted["repositories"], wanted["only"]))


def _dnf_repositories(found: Values, wanted: Values) -> Answer:
    return Answer({}, repositories.dnf_misfits(found, wanted["repositories"], wanted["only"]))


def _kernel_settings(found: Values, wanted: Values) -> Answer:
    return Answer({}, node_settings.misfits(node_settings.sysctls(found["sysctls"]), wanted["sysctls"]))


def _kubernetes_node(found: Values, wanted: Values) -> Answer:
    return Answer(kubernetes_member.facts(found, wanted), kubernetes_member.misfits(found, wanted))


def _node(found: Values, wanted: Values) -> Answer:
    return Answer({}, node_settings.node_misfits(found, wanted))


def _gpu_driver(found: Values, wanted: Values) -> Answer:
    if found["rc"] != 0:
        return Answer({}, [f"nvidia-smi failed: {(found['stdout'] + ' ' + found['stderr']).strip()}"])
    facts = nvidia.report(found["stdout"])
    return Answer(facts, nvidia.driver_misfits(facts, {**wanted, "gpus": int(wanted["gpus"])}))


def _cuda(found: Values, wanted: Values) -> Answer:
    reported, count = parsed(found["reported"]) or {}, int(wanted["devices"])
    asked = {part: version for part, version in wanted["versions"].items() if version}
    sentences, devices = nvidia.cuda_misfits(reported, asked), reported.get("devices") or []
    if count >= 0:
        sentences += nvidia.device_misfits(devices, reported.get("devices_why") or "", count)
    facts = {"versions": {part: reported.get(part) for part in asked}, "devices": devices if count >= 0 else []}
    return Answer(facts, sentences)


def _docker(found: Values, wanted: Values) -> Answer:
    facts = docker.report(found["info"])
    merged = docker.settings(found["settings"], docker.own_settings(wanted))
    # Compared as data: the layout of the file belongs to its owner.
    facts.update(settings=merged, differs=merged != (parsed(found["settings"]) or {}))
    return Answer(facts, docker.misfits(facts, wanted))


def _docker_change(found: Values, wanted: Values) -> Answer:
    facts = found["docker"]
    return Answer({}, docker.stops(facts, wanted["version"], facts["differs"] or found["stale"]))


def _container_gpus(found: Values, wanted: Values) -> Answer:
    inside, outside = nvidia.uuids(found["inside"]), nvidia.uuids(found["outside"])
    whole = [one for one in outside if one.startswith("GPU-")]
    if inside == outside and len(whole) == int(wanted["gpus"]):
        return Answer({"gpus": inside}, [])
    named = [" and ".join(one) or "none" for one in (inside, outside)]
    sentence = f"A container lists the GPUs {named[0]}, the node {named[1]}, and {wanted['gpus']} are wanted."
    return Answer({"gpus": inside}, [sentence])


def _rdma(found: Values, wanted: Values) -> Answer:
    rows = [parsed(line) for line in found["rows"]]
    gids = rdma_gids.choose(rows, wanted["type"], wanted["address"])
    return Answer({"gid": gids[0] if len(gids) == 1 else {}}, rdma_gids.misfits(rows, wanted))


def _rdma_bandwidth(found: Values, wanted: Values) -> Answer:
    facts = {"gbits": rdma_bandwidth.average(found["output"])}
    return Answer(facts, rdma_bandwidth.misfits([found], float(wanted["gbits"])))


def _openmpi(found: Values, wanted: Values) -> Answer:
    return Answer(mpi_checks.openmpi_facts(found), mpi_checks.openmpi_misfits(found, wanted))


def _horovod(found: Values, wanted: Values) -> Answer:
    return Answer(mpi_checks.horovod_facts(found, wanted), mpi_checks.horovod_misfits(found, wanted))


def _pytorch(found: Values, wanted: Values) -> Answer:
    return Answer(mpi_checks.pytorch_facts(found, wanted), mpi_checks.pytorch_misfits(found, wanted))


def _training_image(found: Values, wanted: Values) -> Answer:
    return Answer(training_image.facts(found, wanted), training_image.misfits(found, wanted))


def _versions(found: Values, _wanted: Values) -> Answer:
    nodes = software_versions.collect(found["nodes"])
    return Answer({"versions": nodes, "table": software_versions.table(nodes)}, software_versions.differences(nodes))


KINDS = {
    "apt_repositories": Kind(_apt_repositories, "{node} cannot use its repositories:"),
    "container_gpus": Kind(_container_gpus, "The GPUs in containers of {node} are not as they should be:"),
    "cuda": Kind(_cuda, "CUDA on {node} is not as it should be:"),
    "dnf_repositories": Kind(_dnf_repositories, "{node} cannot use its repositories:"),
    "docker": Kind(_docker, "Docker on {node} is not as it should be:"),
    "docker_change": Kind(
        _docker_change,
        "Docker on {node} cannot be changed:",
        "Wait until the containers have ended, or set container_runtime_stop_containers to true.",
    ),
    "gpu_driver": Kind(_gpu_driver, "The GPUs of {node} are not as they should be:"),
    "horovod": Kind(_horovod, "Horovod on {node} is not as it should be:"),
    "kernel_settings": Kind(_kernel_settings, "The kernel settings of {node} are not in force:"),
    "kubernetes_node": Kind(_kubernetes_node, "{node} is not fit for training on Kubernetes:"),
    "node": Kind(_node, "{node} is not fit for training:"),
    "openmpi": Kind(_openmpi, "OpenMPI on {node} is not as it should be:"),
    "packages": Kind(_packages, "The packages of {node} are not as they should be:"),
    "python_packages": Kind(_python_packages, "The Python packages of {node} are not as they should be:"),
    "pytorch": Kind(_pytorch, "PyTorch on {node} is not as it should be:"),
    "rdma": Kind(_rdma, "The RDMA device of {node} is not as it should be:"),
    "rdma_bandwidth": Kind(_rdma_bandwidth, "The RDMA bandwidth of {node} is not as it should be:"),
    "repositories_wanted": Kind(_repositories_wanted, "{node} cannot get its repositories:"),
    "training_image": Kind(_training_image, "The training image on {node} is not as it should be:"),
    "versions": Kind(
        _versions,
        "The nodes have different versions, and must not train together:",
        "Give all nodes the same system and stack, and run the playbook again.",
    ),
}
