"""Each kind of check returns facts and misfits, and one message about them with the node's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.action import node_check
from plugins.module_utils.guests import node_checks

from .node_check_cases import OF_GPUS

ROOT = Path(__file__).parents[5]
PACKAGE = {"name": "openmpi-bin", "version": "4.1.4"}
CUDA = {"url": "https://mirror/cuda/", "name": "cuda", "keys": ["own"]}
UPDATED = {"rc": 0, "stdout": "", "stderr": ""}
KERNEL = [
    "vm.nr_hugepages = 512",
    "net.ipv4.tcp_retries2 = 15",
    *(f"net.ipv4.tcp_keepalive_{name} = {value}" for name, value in (("time", 7200), ("intvl", 75), ("probes", 9))),
]
SSH = "stricthostkeychecking true\nserveraliveinterval 0\ntcpkeepalive no\n"
NODE = {
    "sysctls": KERNEL,
    "limits": ['{"nofile": [4096]}'],
    "ssh": SSH,
    "sshd": "clientaliveinterval 0\ntcpkeepalive no",
}
CORRECT = {"sysctls": {"vm.nr_hugepages": 512}, "limits": {"nofile": 4096}, "stun_seconds": "100"}
GID = {
    "device": "rocep0",
    "port": 1,
    "index": 3,
    "type": "RoCE v2",
    "state": "4: ACTIVE",
    "card": "ens224",
    "mtu": 9000,
}
ROW = json.dumps({**GID, "gid": "0000:0000:0000:0000:0000:ffff:0ad8:0128"})
RDMA = {"driver": "vmw_pvrdma", "type": "RoCE v2", "addresses": [], "mtu": "1500"}
BANDWIDTH = " BW average[Gb/sec]\n 65536 5000 24.10 23.55 0.044917\n"
DOCKER = {"ServerVersion": "28.3.3", "Runtimes": {"nvidia": {"path": "n"}}, "ContainersRunning": 2}
WANTS_DOCKER = {"version": "28.3.3", "nvidia": "n", "nvidia_default": False, "mirrors": [], "settings": {"debug": True}}
NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA "
    "driver is installed and running."
)
SMI = "Driver Version : 580.65\nGPU 00000000:02:01.0\n    Product Name : A100\n"
LIMITS = "Limit  Soft Limit  Hard Limit  Units\nMax locked memory     unlimited            unlimited            bytes\n"
OWN = {"dml.vsphere/gpu": "GRID-T4-16C", "dml.vsphere/gpus": "1"}
OWN = {**OWN, "dml.vsphere/rdma-device": "rocep0", "dml.vsphere/rdma-devices": "1", "dml.vsphere/rdma-mtu": "9000"}
JOINED: dict[str, Any] = {
    "metadata": {"name": "w1", "labels": {"kubernetes.io/hostname": "w1", **OWN}},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "allocatable": {"nvidia.com/gpu": "1", "rdma/hca": "0"},
        "nodeInfo": {"kubeletVersion": "v1.35.4", "containerRuntimeVersion": "containerd://1.6.20"},
    },
}
PROVEN: dict[str, Any] = {
    "dml_gpu_driver": {"proven": True, "gpus": [{"name": "GRID T4-16C"}]},
    "dml_rdma": {"proven": True, "devices": [GID]},
}
MEMBER = {"node": JOINED, "limits": LIMITS, "local": PROVEN, "devices": ["/dev/infiniband/uverbs0"]}
AS_MEMBER = {"name": "w1", "runtime": "containerd", "memlock": "unlimited", "resources": ["nvidia.com/gpu"]}
# kind, found and desired without a misfit; then their changes, and words of the only misfit.
CASES: list[tuple[str, Any, Any, dict[str, Any], dict[str, Any], str]] = [
    *OF_GPUS,
    (
        "packages",
        {"installed": ["openmpi-bin 4.1.4 installed"], "held": ["openmpi-bin"]},
        {"packages": [PACKAGE]},
        {"held": []},
        {},
        "The package openmpi-bin is not held at 4.1.4.",
    ),
    (
        "python_packages",
        {"listed": '[{"name": "six", "version": "1"}]'},
        {"packages": [{"name": "six", "version": "1"}]},
        {"listed": ""},
        {},
        "The Python package six is missing, not 1.",
    ),
    (
        "repositories_wanted",
        {},
        {"repositories": [CUDA], "keys": {"own": {"keyring": "/usr/share/a.gpg"}}},
        {},
        {"keys": {}},
        "names the key own, which is not in repositories_keys.",
    ),
    (
        "apt_repositories",
        {"update": UPDATED, "targets": ["https://mirror/cuda/", "https://other/"]},
        {"repositories": [CUDA], "only": False},
        {},
        {"only": True},
        "The node reads https://mirror/cuda/ and https://other/, but should read only https://mirror/cuda/.",
    ),
    (
        "apt_repositories",
        {"update": UPDATED, "targets": ["https://mirror/cuda/"]},
        {"repositories": [{**CUDA, "url": "https://mirror/cuda"}], "only": True},
        {"update": {**UPDATED, "stderr": "E: The repository is not signed."}},
        {},
        "E: The repository is not signed.",
    ),
    (
        "dnf_repositories",
        {"update": UPDATED, "enabled": ["repo id   repo name", "dml-cuda  dml-cuda"]},
        {"repositories": [CUDA], "only": True},
        {"update": {"rc": 1, "stderr": "cuda\nError: Bad GPG signature"}},
        {},
        "Error: Bad GPG signature",
    ),
    (
        "dnf_repositories",
        {"update": UPDATED, "enabled": ["repo id   repo name", "dml-cuda  dml-cuda"]},
        {"repositories": [CUDA], "only": True},
        {"enabled": []},
        {},
        "The node reads none, but should read only dml-cuda.",
    ),
    ("kernel_settings", {"sysctls": KERNEL}, {"sysctls": {"vm.nr_hugepages": 512}}, {"sysctls": []}, {}, "not 512."),
    (
        "kubernetes_node",
        MEMBER,
        AS_MEMBER,
        {"limits": LIMITS.replace("unlimited", "8388608")},
        {},
        "Containers may lock 8388608 bytes of memory, not unlimited.",
    ),
    ("kubernetes_node", MEMBER, AS_MEMBER, {"limits": ""}, {}, "The service containerd does not run."),
    ("kubernetes_node", MEMBER, AS_MEMBER, {"node": {}}, {}, "Kubernetes has no node w1: let the worker join"),
    ("kubernetes_node", MEMBER, AS_MEMBER, {"devices": []}, {}, "has no /dev/infiniband/uverbs*"),
    ("kubernetes_node", MEMBER, AS_MEMBER, {}, {"resources": ["rdma/hca"]}, "The node offers no rdma/hca: check"),
    ("node", NODE, CORRECT, {"ssh": SSH.replace("true", "ask")}, {}, "host keys of peers that are not pinned."),
    ("node", NODE, CORRECT, {"limits": ['{"nofile": [1024, 4096]}'] * 2}, {}, "nofile is 1024 and 4096, not 4096."),
    ("node", NODE, CORRECT, {}, {"stun_seconds": 1000}, "tcp_retries2 gives up on a silent node after 924.6 s"),
    (
        "node_peers",
        {"known_hosts": "# BEGIN peers, kept by Ansible\nw2 ssh-ed25519 AAAA\n# END peers, kept by Ansible\n"},
        {"peers": ["n1"], "inventory": ["n1", "w2"], "limit": "", "guests": ""},
        {},
        {"limit": "n1"},
        "--limit n1 leaves out w2",
    ),
    ("gpu_driver", {"rc": 0, "stdout": SMI}, {"driver": "580.65", "gpus": "1"}, {}, {"gpus": "2"}, "1 GPUs, not 2."),
    (
        "gpu_driver",
        {"rc": 0, "stdout": SMI},
        {"driver": "580.65", "gpus": 1},
        {"rc": 9, "stdout": "No devices were found", "stderr": ""},
        {},
        "nvidia-smi failed: No devices were found",
    ),
    # The answer of nvidia-smi 535.261.03 of Debian 12 without a GPU.
    (
        "gpu_driver",
        {"rc": 0, "stdout": SMI},
        {"driver": "580.65", "gpus": 1},
        {"rc": 9, "stdout": NO_DRIVER, "stderr": ""},
        {"gpus": "0"},
        f"The driver 580.65 cannot be verified, because the node has no GPU; nvidia-smi failed: {NO_DRIVER}",
    ),
    (
        "cuda",
        {"reported": '{"nvcc": "12.2", "devices": []}'},
        {"versions": {"nvcc": "12.2", "nccl": ""}, "devices": "-1"},
        {},
        {"devices": "1"},
        "CUDA sees 0 devices, not 1.",
    ),
    ("docker", {"info": json.dumps(DOCKER), "settings": "{}"}, WANTS_DOCKER, {"info": ""}, {}, "does not answer."),
    (
        "docker_change",
        {"docker": {"version": "28.3.3", "running": 2, "live_restore": False, "differs": False}, "stale": False},
        {"version": "28.3.3"},
        {"stale": True},
        {},
        "It runs 2 containers, which a restart of Docker with other settings would stop.",
    ),
    (
        "container_gpus",
        {"inside": "GPU 0: A100 (UUID: GPU-1)", "outside": "GPU 0: A100 (UUID: GPU-1)"},
        {"gpus": "1"},
        {"inside": ""},
        {},
        "A container lists the GPUs none, the node GPU-1; 1 are required.",
    ),
    ("rdma", {"rows": [ROW]}, RDMA, {}, {"mtu": "9001"}, "The MTU of ens224 is 9000, less than 9001."),
    ("rdma", {"rows": [ROW]}, RDMA, {"rows": []}, {}, "No device was found: check that the VM has an RDMA card"),
    ("rdma", {"rows": [ROW]}, RDMA, {"rows": [ROW, ROW]}, {}, "2 GIDs in active ports are of type RoCE v2; there"),
    ("rdma", {"rows": [ROW]}, RDMA, {}, {"addresses": ["10.9.9.9"]}, "0 GIDs in active ports are of type RoCE v2 with"),
    (
        "rdma_bandwidth",
        {"from": "n1", "to": "n2", "output": BANDWIDTH, "error": ""},
        {"gbits": "0"},
        {},
        {"gbits": "40"},
        "ib_write_bw from n1 to n2 measured 23.55 Gbit/s, less than 40.",
    ),
    (
        "rdma_mtu",
        {"address": "10.216.1.40", "lost": []},
        {},
        {"lost": [{"peer": "n2", "address": "10.216.1.41", "bytes": 9000, "why": "Message too long"}]},
        {},
        "Unsplit packets from 10.216.1.40 are not answered by n2 (10.216.1.41, 9000 bytes: Message too long): check",
    ),
    (
        "versions",
        {"nodes": {"n1": {"dml_node": {"versions": {"system": "Debian 12"}}}}},
        {},
        {"nodes": {"n1": {"dml_node": {"versions": {"system": "Debian 12"}}}, "n2": {}}},
        {},
        "system is Debian 12 on n1 and missing on n2.",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "found", "desired", "other_found", "other_desired", "words"), CASES)
def test_only_the_misfit_is_named(
    kind: str, found: Any, desired: Any, other_found: Any, other_desired: Any, words: str
) -> None:
    assert node_checks.check(kind, "n1", found, desired)[1] == ""
    answer, message = node_checks.check(kind, "n1", {**found, **other_found}, {**desired, **other_desired})
    assert len(answer.misfits) == 1
    assert words in answer.misfits[0] and answer.misfits[0] in message
    assert "n1" in message or kind == "versions"


def test_tests_cover_every_kind_of_check() -> None:
    tested = {case[0] for case in CASES} | {
        "openmpi",
        "horovod",
        "pytorch",
        "training_image",
        "slurm",
        "slurm_settings",
    }
    assert [f"add a case for {kind} to CASES" for kind in node_checks.KINDS if kind not in tested] == []
    assert tested <= set(node_checks.KINDS)


def test_facts_contain_the_values_that_roles_use() -> None:
    def facts(kind: str, found: Any, desired: Any) -> dict[str, Any]:
        return node_checks.check(kind, "n1", found, desired)[0].facts

    assert facts("rdma", {"rows": [ROW]}, RDMA)["gids"][0]["address"] == "10.216.1.40"
    other = json.dumps({**json.loads(ROW), "device": "rocep1", "gid": "0000:0000:0000:0000:0000:ffff:0ad8:0228"})
    both = {**RDMA, "addresses": ["10.216.2.40", "10.216.1.40"]}
    assert [gid["device"] for gid in facts("rdma", {"rows": [ROW, other]}, both)["gids"]] == ["rocep1", GID["device"]]
    assert facts("rdma", {"rows": [ROW]}, both) == {"gids": []}
    assert facts("rdma", {"rows": []}, RDMA) == {"gids": []}
    assert facts("rdma_bandwidth", {"from": "a", "to": "b", "output": BANDWIDTH}, {"gbits": 0}) == {"gbits": 23.55}
    replaced = facts("packages", {"installed": ["openmpi-bin 9 installed"]}, {"packages": [PACKAGE]})
    assert replaced == {"replaced": ["openmpi-bin 9 by 4.1.4"]}
    reported = {"reported": {"nvcc": "12.2", "devices": [{"name": "A100"}]}}
    assert facts("cuda", reported, {"versions": {"nvcc": "12.2"}, "devices": 1}) == {
        "versions": {"nvcc": "12.2"},
        "devices": [{"name": "A100"}],
    }
    docker = facts("docker", {"info": DOCKER, "settings": '{"a": 1}'}, WANTS_DOCKER)
    assert docker["settings"] == {"a": 1, "debug": True, "runtimes": {"nvidia": {"path": "n", "runtimeArgs": []}}}
    assert docker["differs"] is True
    assert facts("docker", {"info": "", "settings": json.dumps(docker["settings"])}, WANTS_DOCKER)["differs"] is False


def test_the_documentation_names_every_kind() -> None:
    source = (ROOT / "plugins" / "modules" / "node_check.py").read_text()
    options = yaml.safe_load(source.split('DOCUMENTATION = r"""')[1].split('"""')[0])["options"]
    choices, described = options["kind"]["choices"], " ".join(options["kind"]["description"])
    lacking = [kind for kind in node_checks.KINDS if kind not in choices or f"V({kind})" not in described]
    assert [f"plugins/modules/node_check.py: add {kind} to the option kind" for kind in lacking] == []
    assert choices == sorted(node_checks.KINDS), "plugins/modules/node_check.py: sort the choices of kind"


PROOFS = {
    "dml_openmpi": {"proven": True, "versions": {"OpenMPI": "4.1.4"}},
    "dml_horovod": {"versions": {"Horovod": "0.28.1", "TensorFlow": "2.15.1"}},
    "dml_rdma": {"proven": True, "devices": [{"device": "vmw_pvrdma0", "mtu": 9000}]},
    "others": {"versions": {"Not": "ours"}},
}
OTHER_PROOFS = {**PROOFS, "dml_openmpi": {"versions": {"OpenMPI": "4.1.5"}}}
VERSIONS = {"Horovod": "0.28.1", "TensorFlow": "2.15.1", "OpenMPI": "4.1.4"}


def test_the_table_has_a_line_for_each_node() -> None:
    assert node_checks.version_table({"node1": VERSIONS, "n2": {"OpenMPI": "4.1.4-longer"}}) == [
        "node   Horovod  TensorFlow  OpenMPI",
        "node1  0.28.1   2.15.1      4.1.4",
        "n2     -        -           4.1.4-longer",
    ]


def test_each_difference_names_the_nodes() -> None:
    nodes = node_checks.versions_by_node({"n1": PROOFS, "n2": OTHER_PROOFS, "n3": PROOFS, "n4": {}})
    assert node_checks.version_differences(nodes)[-1] == "OpenMPI is 4.1.4 on n1, n3 and 4.1.5 on n2 and missing on n4."
    assert node_checks.version_differences(nodes)[0] == "Horovod is 0.28.1 on n1, n2, n3 and missing on n4."


@pytest.mark.parametrize(
    ("seconds", "warned"), [('{"::ffff:10.0.0.2": 10.05, "w2": 0.01}', True), ('{"w2": 0.9}', False)]
)
def test_a_slow_lookup_of_a_peer_warns(seconds: str, warned: bool) -> None:
    given = {"kind": "node", "found": {**NODE, "lookups": seconds}, "desired": CORRECT, "fail": True}

    result = node_check.answer(given, "w1")

    assert not result.get("failed")
    assert bool(result["warnings"]) == warned
    if warned:
        assert result["warnings"][0].startswith(
            "w1: Lookups of the peers take long (::ffff:10.0.0.2 10.1 s), and each job"
        )
