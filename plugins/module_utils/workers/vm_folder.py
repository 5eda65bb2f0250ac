"""The name and the folder of a worker, which users change in the vSphere Client, and the copies that they made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import Refused
from ..plan import State
from ..vsphere import tasks
from ..vsphere.faults import translating_faults
from .context import Context
from .machine import Machine
from .worker_spec import WorkerSpec

MOVE_SECONDS = 300


def name_and_folder(context: Context, desired: WorkerSpec, current: State) -> dict[str, Any]:
    """Return the name and the folder after the run; an existing worker keeps both unless put_back is set."""
    given = desired["folder"]
    if current["exists"] and not context.options.put_back:
        return {"name": current["name"], "folder": current["folder"]}
    if current["exists"] and current["name"] != desired.name and context.cluster.is_taken(desired.name):
        reason = "another virtual machine has that name"
        raise Refused(desired.name, f"rename {current['name']} back", reason, "rename the other machine first")
    if given and current["folder"] != given:
        context.locations.folder(desired)
    return {"name": desired.name, "folder": given or current["folder"]}


def put_back(context: Context, desired: WorkerSpec, machine: Machine) -> None:
    """Move the worker into the folder in its options."""
    folder, tried = context.locations.folder(desired), f"move it into the folder {desired['folder']}"
    context.report(desired.name, f"is moved into the folder {desired['folder']}")
    with translating_faults(desired.name, tried):
        task = folder.MoveIntoFolder_Task([machine.ref])
    tasks.wait(context.cluster.session, tasks.Started(task, desired.name, tried), MOVE_SECONDS)


def warnings(context: Context, desired: WorkerSpec, after: State) -> Iterator[str]:
    """Yield a warning for another name, another folder and each copy."""
    cluster = context.cluster
    if after["name"] != desired.name:
        yield f"it was renamed: vCenter shows it as {after['name']}; put_back: true renames it back"
    if desired["folder"] and after["folder"] != desired["folder"]:
        where = after["folder"] or "a folder that this account does not see"
        yield f"it was moved: it is in {where}, not in {desired['folder']}; put_back: true moves it back"
    for copy in cluster.identities.copies(cluster.name, desired.name):
        if not copy.values.get("config.template"):
            yield f"{copy.shown} is a copy of it: a running copy uses the same addresses"
