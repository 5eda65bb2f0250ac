"""Recordings contain no property of a virtual machine in which its owner may keep a password."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.site.recording import anonymization
from plugins.module_utils.site.recording.pseudonyms import Pseudonyms
from plugins.module_utils.site.recording.recorder import Recorder, Scope
from plugins.module_utils.site.recording.recording import Recording
from plugins.module_utils.vsphere.sdk import vim, vmodl
from plugins.module_utils.vsphere.wire import ApiCall
from plugins.module_utils.workers import machine

COLLECTOR = vmodl.query.PropertyCollector
SECRET = "hunter2hunter2"
VM = vim.VirtualMachine("vm-7")


def carried(requested: Any) -> Any:
    """Return the answer of a server whose virtual machine has the properties of Ubuntu's OVA."""
    password = vim.vApp.PropertyInfo(key=1, id="password", label="Default User's password", value=SECRET)
    values = {
        "name": "w1",
        "config.vAppConfig": vim.vApp.VmConfigInfo(property=[password]),
        "config.extraConfig": [vim.option.OptionValue(key="guestinfo.ovfEnv", value=SECRET)],
    }
    (spec,) = requested.propSet
    found = [vmodl.DynamicProperty(name=path, val=values[path]) for path in spec.pathSet if path in values]
    return COLLECTOR.RetrieveResult(objects=[COLLECTOR.ObjectContent(obj=VM, propSet=found)])


def test_recordings_lack_the_passwords_in_ovf_properties() -> None:
    spec = COLLECTOR.PropertySpec(type=vim.VirtualMachine, pathSet=list(machine.PATHS))
    requested = COLLECTOR.FilterSpec(objectSet=[COLLECTOR.ObjectSpec(obj=VM)], propSet=[spec])
    recording = Recording()
    call = ApiCall("PropertyCollector", "p", "RetrievePropertiesEx", ([requested], None))
    Recorder(recording, Scope(frozenset({"vm-7"}))).soap(call, lambda: carried(requested))
    anonymization.replace_names(recording, Pseudonyms())
    assert recording.objects["vm-7"].values["name"] == "guest-1"
    assert SECRET not in str(recording.objects["vm-7"].values)
