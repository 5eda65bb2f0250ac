"""Freezes and thaws a node with the kernel's freezer, immediately.

``podman pause`` does the same, but waits for locks that all nodes of its store share: on a busy machine, a stun of
seconds took half a minute while the nodes of another lab were removed.
"""

from __future__ import annotations

import time
from pathlib import Path

from lab.nodes.programs import LabError

CGROUPS = Path("/sys/fs/cgroup")
OLD, NEW = "freezer.state", "cgroup.freeze"
LOOK_SECONDS = 0.005


def group_of(pid: int) -> Path:
    """Return the cgroup of a node from its first process: the one directly below its lab's, in cgroup v1 or v2."""
    try:
        lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    except FileNotFoundError as error:
        raise LabError(f"The process {pid}, the first process of a node, has ended, and with it the node.") from error
    paths = {kind: path for _number, kind, path in (line.split(":", 2) for line in lines)}
    top = CGROUPS / "freezer" if "freezer" in paths else CGROUPS
    return top.joinpath(*Path(paths.get("freezer", paths[""])).parts[1:3])


def freeze(group: Path, seconds: float) -> None:
    """Return when every process of the group is frozen; after ``seconds`` without that, thaw all and raise LabError."""
    deadline = time.monotonic() + seconds
    while True:
        _set(group, on=True)
        if is_frozen(group):
            return
        if time.monotonic() > deadline:
            thaw(group)
            raise LabError(f"{group} could not be frozen: after {seconds} s, some of its processes still ran.")
        time.sleep(LOOK_SECONDS)


def thaw(group: Path) -> None:
    """Thaw all processes of the group."""
    _set(group, on=False)


def thaw_below(lab: str) -> None:
    """Thaw all nodes of a lab: a frozen process cannot be killed."""
    for path in [*CGROUPS.glob(f"freezer/{lab}/*/{OLD}"), *CGROUPS.glob(f"{lab}/*/{NEW}")]:
        thaw(path.parent)


def is_frozen(group: Path) -> bool:
    """Return whether every process of the group is frozen."""
    if (group / OLD).exists():
        return (group / OLD).read_text().strip() == "FROZEN"
    return "frozen 1" in (group / "cgroup.events").read_text().splitlines()


def _set(group: Path, *, on: bool) -> None:
    if (group / OLD).exists():
        (group / OLD).write_text("FROZEN" if on else "THAWED")
    else:
        (group / NEW).write_text("1" if on else "0")
