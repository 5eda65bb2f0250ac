"""Settings with which a node can run containers: podman and Docker work as in a virtual machine."""

from __future__ import annotations

from lab.nodes.programs import run

# Mounts, a separate /proc, and the devices that each container gets: a console and tun.
ARGUMENTS = (
    *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "unmask=ALL"),
    *("--device-cgroup-rule", "c 5:1 rwm", "--device-cgroup-rule", "c 10:200 rwm"),
)
# The disk of a node consists of overlay layers, and cannot hold further overlay layers.
LAYERS = ("/var/lib/containers", "/var/lib/docker")
# A private cgroup namespace for each container: the node's cgroup mounts start at another level than its processes see.
FILES = {
    "/etc/containers/containers.conf.d/dml-lab.conf": '[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\n',
    "/etc/docker/daemon.json": '{"default-cgroupns-mode": "private", "iptables": false, "bridge": "none"}\n',
}
# podman has no such setting for cgroup v1.
RUN_ARGUMENTS = ("--cgroupns=private",)
_WRITABLE = "awk '$3 == \"cgroup\" { print $2 }' /proc/1/mounts | sort -u | xargs -n 1 mount -o remount,bind,rw"


def open_groups(pid: int) -> None:
    """Allow a node to make cgroups below its own, so that it is frozen together with all its containers."""
    run("nsenter", "--target", str(pid), "--mount", "sh", "-c", _WRITABLE)
