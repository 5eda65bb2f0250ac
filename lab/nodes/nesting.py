# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a node needs so that containers run in it: podman and Docker find what they find in a virtual machine."""

from __future__ import annotations

from lab.nodes.programs import run

# Mounts, a /proc of its own, and the devices that each container gets: a console and tun.
ARGUMENTS = (
    *("--cap-add", "SYS_ADMIN", "--security-opt", "seccomp=unconfined", "--security-opt", "unmask=ALL"),
    *("--device-cgroup-rule", "c 5:1 rwm", "--device-cgroup-rule", "c 10:200 rwm"),
)
# The disk of a node is itself of layers, and can hold none.
LAYERS = ("/var/lib/containers", "/var/lib/docker")
# A group of its own for each container: those of the node are mounted from further below than its processes believe.
FILES = {
    "/etc/containers/containers.conf.d/dml-lab.conf": '[engine]\ncgroup_manager = "cgroupfs"\nruntime = "runc"\n',
    "/etc/docker/daemon.json": '{"default-cgroupns-mode": "private", "iptables": false, "bridge": "none"}\n',
}
# podman has no setting for that where cgroups are of the old kind.
RUN_ARGUMENTS = ("--cgroupns=private",)
_WRITABLE = "awk '$3 == \"cgroup\" { print $2 }' /proc/1/mounts | sort -u | xargs -n 1 mount -o remount,bind,rw"


def open_groups(pid: int) -> None:
    """Let a node make groups below its own, in which it is frozen with all its containers."""
    run("nsenter", "--target", str(pid), "--mount", "sh", "-c", _WRITABLE)
