# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A node that is a member of the lab's Kubernetes from its first boot, as an image with kubeadm would make it."""

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
# Not privileged, which would show a node the machine's disks; but kubelet makes mounts, namespaces and cgroups. The
# rule for devices is for pods that are privileged. The clock and the modules are the whole machine's.
RIGHTS = (
    *("--cap-add", "all", "--cap-drop", "SYS_TIME,SYS_MODULE", "--security-opt", "seccomp=unconfined"),
    *("--cgroupns", "private", "--pids-limit", "-1", "--device", "/dev/kmsg", "--device-cgroup-rule", "a *:* rwm"),
)


@dataclass
class Member(Kind):
    """Nodes of a lab whose authority lies in ``folder``."""

    built: Built
    folder: Path
    where: Layout

    def __post_init__(self) -> None:
        self.image, self.rights = self.built.image, RIGHTS

    def volumes(self, disk: Path) -> list[str]:
        """The programs, kubelet's folder, and containerd's with all images, whose layers all nodes have in common."""
        filled = self.built.containerd
        layers = [path.relative_to(filled) for path in sorted(filled.glob(f"{SNAPSHOTS}/*/fs"))]
        if not disk.exists():
            # A layer has tens of thousands of files: to link and to unlink them takes many times what the rest takes.
            skip = shutil.ignore_patterns("fs")
            shutil.copytree(filled, disk / "containerd", ignore=skip, copy_function=_own)
            for folder in (*(f"containerd/{layer}" for layer in layers), "kubelet"):
                (disk / folder).mkdir()
        shared = [f"{filled / layer}:{CONTAINERD}/{layer}:ro" for layer in layers]
        own = [f"{disk}/kubelet:/var/lib/kubelet", f"{disk}/containerd:{CONTAINERD}"]
        return [f"{self.built.programs}:{PROGRAMS}:ro", *own, *shared]

    def files(self, guest: Guest, address: str) -> dict[str, str]:
        """What makes the node a member, by path there."""
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


def _own(here: str, there: str) -> None:
    """What is written in place must be a node's own; what an image consists of never is."""
    if here.endswith(".db"):
        shutil.copy2(here, there)
    else:
        os.link(here, there)


def kubelet(where: Layout) -> dict[str, Any]:
    """kubelet's configuration."""
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
        # A machine whose disk is nearly full is no reason to evict a pod or to forget an image that nobody can pull.
        "evictionHard": dict.fromkeys(("nodefs.available", "imagefs.available", "nodefs.inodesFree"), "0%"),
        "imageGCHighThresholdPercent": 100,
        "failSwapOn": False,
        "oomScoreAdj": 0,
    }


def cni(pods: str) -> dict[str, Any]:
    """The network of a node's pods: a cable for each, routed by the node, with nothing rewritten."""
    ranges = [[{"subnet": pods}]]
    ipam = {"type": "host-local", "ranges": ranges, "routes": [{"dst": "0.0.0.0/0"}]}
    cable = {"type": "ptp", "mtu": 1500, "ipMasq": False, "ipam": ipam}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "0.4.0", "name": "lab", "plugins": [cable, ports]}
