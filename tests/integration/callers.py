"""Closes the loop of the privileges: what the modules really called in a run of tests, beside the table.

Every simulator is asked at its end; the processes of a run share one folder; the first of them judges at the very end.
"""

from __future__ import annotations

import atexit
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyVmomi import VmomiSupport

from lab.simulator import ROOT, Simulator
from plugins.module_utils.hosts.module_privileges import TABLE as NEEDS
from plugins.module_utils.hosts.module_privileges import is_free
from plugins.module_utils.hosts.privileges.privilege_table import ALWAYS

TABLE = "plugins/module_utils/hosts/privileges/privilege_table.py"
FOLDER = "DML_CALLERS"
INVENTORY = ("ansible", "ansible-inventory", "ansible-playbook")
# Ids and names of objects in paths of the REST API.
VARIABLE = re.compile(
    r"/(domain-c\d+|vm-\d+|[0-9a-f]{8}-[0-9a-f-]+|\d+|NVD-[^/?]+|nvd-[^/?]+|[\w-]*task-[^/?]+)(?=[/?]|$)"
)
# A call that works for longer than some seconds renews the lock of its run.
LOCK = {"Folder.CreateFolder", "Folder.Destroy_Task", "Folder.Rename_Task"}
# Calls that the code makes only where no fast test leads: after a time-out, in a part of esxi_profile that the tests of
# only the module for that part shows, or while vCenter remediates a cluster.
SELDOM = {
    "esxi_power": {*LOCK, "Task.CancelTask", "VirtualMachine.PowerOffVM_Task"},
    "esxi_image": LOCK,
    "esxi_profile": {
        *LOCK,
        "HostSystem.DisableRuleset",
        "HostSystem.RefreshGraphicsManager",
        "HostSystem.RestartService",
        "HostSystem.UpdatePassthruConfig",
        "esxcli software vib remove",
    },
    "maintenance_window": LOCK,
    "site": {"GET /api/cis/tasks/{id}"},
    "vmotion": {*LOCK, "Task.CancelTask"},
    "worker_vm": LOCK,
}
Called = dict[str, set[str]]


def begin() -> None:
    """Make the folder of this run, unless the process that started this one has made it."""
    if FOLDER not in os.environ:
        os.environ[FOLDER] = tempfile.mkdtemp(prefix="dml-callers-")
        atexit.register(shutil.rmtree, os.environ[FOLDER])
        # All commands of Ansible of this run pack a module once (lab/bytecode/sitecustomize.py).
        os.environ["DML_PACKED"] = os.path.join(os.environ[FOLDER], "packed")


def note(simulator: Simulator) -> None:
    """Keep what was called on a simulator; one that a test has stopped cannot tell any more."""
    if simulator.process.poll() is not None:
        return
    text = json.dumps(simulator.callers())
    handle, _path = tempfile.mkstemp(suffix=".json", dir=os.environ[FOLDER])
    with os.fdopen(handle, "w") as file:
        file.write(text)


def called() -> Called:
    """The calls of each module in this run; those of the inventory plugin by the name ``workers``."""
    found: Called = {}
    for path in Path(os.environ[FOLDER]).glob("*.json"):
        for caller, calls in json.loads(path.read_text()).items():
            if match := re.fullmatch(r"dml\.vsphere \((.+)\)", caller):
                name = "workers" if match[1] in INVENTORY else match[1]
                found.setdefault(name, set()).update(VARIABLE.sub("/{id}", call) for call in calls)
    return found


def lacking(found: Mapping[str, set[str]]) -> list[str]:
    """A sentence for each call that the table does not know, with the line to add."""
    return [
        line
        for module in sorted(set(found) & NEEDS.modules())
        for call in sorted(found[module])
        if (line := _lacking(module, call))
    ] + [
        f"{module} calls vCenter and is not in {TABLE}: add to MODULES\n    {module!r}: (),"
        for module in sorted(set(found) - NEEDS.modules())
        if (ROOT / "plugins" / "modules" / f"{module}.py").exists()
    ]


def privileges_of_property(call: str) -> set[str]:
    """Return what the type tables say that reading a property needs, beyond what every role has."""
    kind, name = call.removeprefix("read ").split(".")
    info = VmomiSupport.GetWsdlType("urn:vim25", kind)._GetPropertyInfo(name)
    return {info.privId} - {None, "", *ALWAYS}


def _lacking(module: str, call: str) -> str:
    if call in NEEDS.calls_of(module):
        return ""
    if not privileges_of_property(call) if call.startswith("read ") else is_free(call):
        return ""
    known = "" if NEEDS.is_known(call) else f" and to CALLS\n    {call!r}: (Need(PRIVILEGE, OBJECT, SOURCE),),"
    return f"{module} called {call}: add to {module!r} in MODULES of {TABLE}\n        {call!r},{known}"


def unused(found: Mapping[str, set[str]]) -> list[str]:
    """A sentence for each call that the table gives to a module which never made it."""
    return [
        f"{module} never called {call} in any test: remove it from {module!r} in MODULES of {TABLE}, or test it"
        for module in sorted(NEEDS.modules())
        for call in sorted(set(NEEDS.calls_of(module)) - found.get(module, set()) - SELDOM.get(module, set()))
    ]


def judge(session: pytest.Session) -> list[str]:
    """Return what is wrong with the table, as far as this run shows: unused entries only after all fast tests."""
    found = called()
    whole = all(Path(argument).resolve() == ROOT / "tests" / "integration" for argument in session.config.args)
    narrowed = session.config.option.keyword or session.config.option.markexpr not in {"", "not slow"}
    complete = whole and not narrowed and not session.testsfailed
    return lacking(found) + (unused(found) if complete else [])
