"""Nodes that are members of the lab's Kubernetes from their first boot, as with a kubeadm image."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.kubernetes import layout
from lab.kubernetes.built import Built
from lab.kubernetes.layout import Layout
from lab.kubernetes.pki import NODES, Authority
from lab.nodes.cloudinit import Guest
from lab.nodes.kinds import Kind

HERE = Path(__file__).parent / "node"
FOLDER = "/etc/kubernetes"
PROGRAMS = "/opt/kubernetes"
CONTAINERD = "/var/lib/containerd"
SNAPSHOTS = "io.containerd.snapshotter.v1.overlayfs/snapshots"
PROXY = "system:kube-proxy"
# Not privileged, because that would expose the host machine's disks; but kubelet makes mounts, namespaces and cgroups.
# The device rule is for privileged pods. The clock and the kernel modules belong to the host machine.
RIGHTS = (
    *("--cap-add", "all", "--cap-drop", "SYS_TIME,SYS_MODULE", "--security-opt", "seccomp=unconfined"),
    *("--cgroupns", "private", "--pids-limit", "-1", "--device", "/dev/kmsg", "--device-cgroup-rule", "a *:* rwm"),
)


@dataclass
class Member(Kind):
    """Nodes of a lab with its certificate authority in ``folder``."""

    built: Built
    folder: Path
    where: Layout

    def __post_init__(self) -> None:
        self.image, self.rights = self.built.image, RIGHTS

    def volumes(self, disk: Path) -> list[str]:
        """Return the volumes for programs, kubelet and containerd; all nodes share containerd's image layers."""
        filled = self.built.containerd
        layers = [path.relative_to(filled) for path in sorted(filled.glob(f"{SNAPSHOTS}/*/fs"))]
        if not disk.exists():
            # A layer has tens of thousands of files: linking and unlinking them would take most of the time.
            skip = shutil.ignore_patterns("fs")
            shutil.copytree(filled, disk / "containerd", ignore=skip, copy_function=_copy)
            for folder in (*(f"containerd/{layer}" for layer in layers), "kubelet"):
                (disk / folder).mkdir()
        shared = [f"{filled / layer}:{CONTAINERD}/{layer}:ro" for layer in layers]
        own = [f"{disk}/kubelet:/var/lib/kubelet", f"{disk}/containerd:{CONTAINERD}"]
        return [f"{self.built.programs}:{PROGRAMS}:ro", *own, *shared]

    def files(self, guest: Guest, address: str) -> dict[str, str]:
        """Return the files that make the node a member, by path on the node."""
        authority, server = Authority(self.folder), self.where.server
        name = guest.hostname
        node = {"NODE_ADDRESS": address, "CONTROL": self.where.control, "PODS": layout.PODS}
        return {
            f"{FOLDER}/ca.crt": authority.certificate,
            f"{FOLDER}/kubelet.conf": authority.kubeconfig(server, f"system:node:{name}", (NODES,)),
            f"{FOLDER}/proxy.conf": authority.kubeconfig(server, PROXY),
            f"{FOLDER}/kubelet.yaml": json.dumps(kubelet(self.where), indent=2),
            f"{FOLDER}/kube-proxy.yaml": (HERE / "kube-proxy.yaml").read_text(),
            f"{FOLDER}/resolv.conf": f"nameserver {self.where.control}\n",
            f"{FOLDER}/node.env": "".join(f"{key}={value}\n" for key, value in node.items()),
            "/etc/cni/net.d/10-lab.conflist": json.dumps(cni(self.where.pods_of(address)), indent=2),
        }


def _copy(here: str, there: str) -> None:
    """Copy files that are written in place, and hard-link the files of images, which never change."""
    if here.endswith(".db"):
        shutil.copy2(here, there)
    else:
        os.link(here, there)


def kubelet(where: Layout) -> dict[str, Any]:
    """Return kubelet's configuration."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": f"{FOLDER}/ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [where.control],
        "clusterDomain": layout.DOMAIN,
        "resolvConf": f"{FOLDER}/resolv.conf",
        # On a machine with a nearly full disk, kubelet must neither evict pods nor remove images that cannot be pulled.
        "evictionHard": dict.fromkeys(("nodefs.available", "imagefs.available", "nodefs.inodesFree"), "0%"),
        "imageGCHighThresholdPercent": 100,
        "failSwapOn": False,
        "oomScoreAdj": 0,
    }


def cni(pods: str) -> dict[str, Any]:
    """Return the CNI configuration: a veth pair for each pod, routed by the node, without NAT."""
    ranges = [[{"subnet": pods}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    cable = {"type": "ptp", "mtu": 1500, "ipMasq": False, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "lab", "plugins": [cable, ports]}
