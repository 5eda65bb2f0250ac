# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""A recording without what names the site: names, addresses, serials and UUIDs are replaced, each everywhere alike."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape, unescape

from ...vsphere.typed import TypedField, clear_numbers, fields, replace_texts
from . import home_made
from .pseudonyms import Pseudonyms
from .recording import Command, Recording, Request

# The words of pseudonyms, by kind of object.
_KINDS = {
    "HostSystem": "host",
    "VirtualMachine": "guest",
    "ClusterComputeResource": "cluster",
    "ComputeResource": "cluster",
    "Datacenter": "datacentre",
    "Datastore": "datastore",
    "Folder": "folder",
    "ResourcePool": "pool",
    "Network": "network",
    "DistributedVirtualPortgroup": "network",
    "DistributedVirtualSwitch": "switch",
    "VmwareDistributedVirtualSwitch": "switch",
}
# Fields of data objects that hold a name, a serial or a sentence of somebody, each with the word of its pseudonyms.
_FIELDS = {
    "hostName": "host",
    "dnsName": "host",
    "userName": "user",
    "domainName": "domain",
    "searchDomain": "domain",
    "domain": "domain",
    "portgroup": "network",
    "portgroupName": "network",
    "networkName": "network",
    "dvsName": "switch",
    "switchName": "switch",
    "uplinkPortName": "uplink",
    "resourcePoolName": "pool",
    "server": "host",
    "iScsiName": "initiator",
    "iScsiAlias": "initiator",
    "chapName": "user",
    "mutualChapName": "user",
    "serialNumber": "serial",
    "identifierValue": "serial",
    "assetTag": "serial",
    "annotation": "note",
    "notes": "note",
    "description": "note",
    "entityName": "object",
    "vswitchName": "switch",
    "netStackInstanceKey": "stack",
    "storageUrl": "place",
    "url": "place",
}
# Types whose field "name" is a name that somebody gave.
_NAMED = re.compile(
    r"vim\.event\.\w+Argument|vim\.vm\.ConfigInfo|vim\.vm\.Summary\.\w+|vim\.host\.(PortGroup|VirtualSwitch)(\.\w+)?"
    r"|vim\.(dvs|DistributedVirtualSwitch)[\w.]*(ConfigInfo|ConfigSpec)|vim\.cluster\.(\w*Rule\w*|\w*Group\w*)"
    r"|vim\.AuthorizationManager\.Role|vim\.alarm\.AlarmInfo|vim\.Datastore\.\w+|vim\.vm\.(Network|Datastore)Info"
    r"|vim\.Network\.Summary|vim\.vm\.SnapshotTree|vim\.host\.NetStackInstance"
)
# Keys that are or contain a name, unlike all other keys.
_STACK, _SWITCH_KEY = "vim.host.NetStackInstance", "key-vim."
# A file or folder in a datastore is often named after a virtual machine that no longer exists.
_PATH = re.compile(r"\[[^\]]+\] (?P<file>.+)|(?:ds:///)?/?vmfs/volumes/[^/]+/(?P<below>.+)")
_FILE_ENDING = re.compile(r"(-\d{6})?(-(flat|delta|sesparse|ctk|rdmp?))?(-[0-9a-f]{8})?\.[A-Za-z0-9]{1,5}$")
_UUID_LIKE = re.compile(r"[0-9a-fA-F-]{8,}")
# Words of vSphere and of hardware, which a site's name may equal by chance. They stay as they are.
_PUBLIC = re.compile(
    r"(?i)key|eventTypeId|descriptionId|vendor(Name)?|deviceName|model|vgpu|profileName|\w*version|build|firmware"
    r"|driver|graphicsType|vgpuMode|fullName|productLineId|osType|guestId|guestFullName|licenseProductVersion|label"
    r"|summary|privId|nicType|adapterType|cpuModel|patchLevel|apiType|licenseProductName|sharedPassthruAssignmentPolicy"
)
# Only a counter's description is vSphere's own; that of a virtual device names its network.
_DESCRIBING = ("label", "summary")
_DESCRIPTIONS = ("vim.ElementDescription", "vim.host.")
_VIRTUAL_DEVICE = "vim.vm.device."
_SECRET = re.compile(r"(?i).*(secret|password|passphrase).*")
# Numbers that name a host in the world.
_WORLD_WIDE = ("nodeWorldWideName", "portWorldWideName")
# Standard switches, adapters and roles that every site has under these names.
_USUAL = re.compile(
    r"key-vim\..*|vSphereProvisioning|mirror|ops|vxlan|hyperbus"
    r"|vSwitch\d+|vmk\d+|vmnic\d+|vmrdma\d+|DSwitch|dvUplink\d*|Uplink \d+|dml\.vsphere[\w.-]*"
)
# What esxcli says of software is the same on every site.
_SOFTWARE = "software "
_CONTENT = re.compile(r">([^<>]+)<")


def replace(recording: Recording, pseudonyms: Pseudonyms) -> None:
    """Replace all that names the site, in place."""
    for kind, value in _names(recording):
        if not _USUAL.fullmatch(value):
            pseudonyms.name(kind, value)
    _replace_values(recording, _typed(pseudonyms))
    for key in ("name", "instance"):
        if recording.server.get(key):
            recording.server[key] = pseudonyms.whole(recording.server[key])
    text = pseudonyms.text
    recording.calls = {text(key): answer for key, answer in recording.calls.items()}
    packages = {value: pseudonyms.whole(value) for kind, value in _names(recording) if kind in ("package", "vendor")}
    recording.commands = [_command(one, text, packages) for one in recording.commands]
    recording.requests = [_request(one, text) for one in recording.requests]


def _names(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield every name and serial, with the word of its pseudonyms."""
    for one in recording.objects.values():
        if isinstance(one.values.get("name"), str):
            yield _KINDS.get(one.kind, "object"), one.values["name"]
        for path, value in one.values.items():
            yield from _in_property(path, value)
            yield from _in_fields(value)
    for answer in recording.calls.values():
        yield from _in_fields([answer.value, answer.fault])
    for request in recording.requests:
        yield from _in_request(request)
    for command in recording.commands:
        yield from home_made.names(command.response or "")


def _in_property(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        last = path.rsplit(".", maxsplit=1)[-1]
        if last in _FIELDS or path == "info.name":
            yield _FIELDS.get(last, "title"), value
        yield from _in_path(value)


def _in_fields(value: Any) -> Iterator[tuple[str, str]]:
    for field in fields(value):
        kind = _kind_of(field)
        texts = field.value if isinstance(field.value, list) else [field.value]
        yield from ((kind, text) for text in texts if kind and isinstance(text, str))
        yield from (pair for text in texts if isinstance(text, str) for pair in _in_path(text))
        if field.kind == _STACK and field.name == "key":
            yield "stack", field.value


def _kind_of(field: TypedField) -> str:
    """The word of the pseudonyms of a field; empty where it holds no name."""
    if field.name in ("name", "groupName") and _NAMED.fullmatch(field.kind):
        return _argument_kind(field.kind)
    if field.kind.endswith("CustomFieldsManager.FieldDef") and field.name == "name":
        return "attribute"
    if field.kind.endswith("CustomFieldsManager.StringValue") and field.name == "value":
        return "" if _is_ours(field.value) else "value"
    if field.name == "description" and not field.kind.startswith(("vim.alarm", "vim.host.Host", "vim.vm.SnapshotTree")):
        return ""
    return _FIELDS.get(field.name, "")


def _argument_kind(kind: str) -> str:
    word = kind.rsplit(".", maxsplit=1)[-1].removesuffix("EventArgument").lower()
    known = {"vm": "guest", "host": "host", "configinfo": "guest", "datastore": "datastore", "network": "network"}
    known |= {"snapshottree": "snapshot", "virtualswitch": "switch", "netstackinstance": "stack"}
    return known.get(word, "object")


def _in_path(text: str) -> Iterator[tuple[str, str]]:
    """Yield the names of the folders and the file in a path of a datastore, without the endings of files."""
    if found := _PATH.fullmatch(text):
        *folders, file = (found["file"] or found["below"]).split("/")
        yield from (("file", name) for name in (*folders, _FILE_ENDING.sub("", file)) if not _UUID_LIKE.fullmatch(name))


def _is_ours(value: Any) -> bool:
    """Whether a custom value is a note of this collection; names within it are replaced one by one."""
    try:
        return isinstance(json.loads(value), dict)
    except (TypeError, ValueError):
        return False


def _in_request(request: Request) -> Iterator[tuple[str, str]]:
    if "/tagging/" in request.path and request.verb == "GET":
        answer = _parsed(request.text)
        for one in [answer] if isinstance(answer, dict) else []:
            yield from (("tag", str(one[key])) for key in ("name", "description") if one.get(key))


def _typed(pseudonyms: Pseudonyms) -> Callable[[str, str, str], str]:
    def new(kind: str, name: str, text: str) -> str:
        if _SECRET.fullmatch(name):
            return ""
        if name == "key" and (kind == _STACK or text.startswith(_SWITCH_KEY)):
            return pseudonyms.text(text)
        if _is_public(kind, name):
            return text
        return pseudonyms.whole(text) if name in _FIELDS or name in ("name", "value") else pseudonyms.text(text)

    return new


def _is_public(kind: str, name: str) -> bool:
    """Whether a field has words of vSphere or of hardware, and no name of the site."""
    if name in _DESCRIBING:
        return kind.startswith(_DESCRIPTIONS)
    return bool(_PUBLIC.fullmatch(name)) and not (name == "deviceName" and kind.startswith(_VIRTUAL_DEVICE))


def _replace_values(recording: Recording, new: Callable[[str, str, str], str]) -> None:
    for one in recording.objects.values():
        for path, value in one.values.items():
            clear_numbers(value, _WORLD_WIDE)
            one.values[path] = replace_texts(value, new, one.kind, path.rsplit(".", maxsplit=1)[-1])
    for answer in recording.calls.values():
        answer.value = replace_texts(answer.value, new)
        answer.fault = replace_texts(answer.fault, new)
    recording.content = replace_texts(recording.content, new)


def _command(one: Command, text: Callable[[str], str], packages: dict[str, str]) -> Command:
    if one.command.startswith(_SOFTWARE):
        replaced = (said and home_made.replaced(said, packages) for said in (one.response, one.fault, one.detail))
        return Command(one.host, one.command, one.arguments, *replaced)
    answers = (_in_xml(said, text) for said in (one.response, one.fault, one.detail))
    return Command(one.host, one.command, {key: text(value) for key, value in one.arguments.items()}, *answers)


def _in_xml(said: str | None, text: Callable[[str], str]) -> str | None:
    """An answer with the text of each element replaced, never its name; one that is no XML, as a whole."""
    if not said or not said.lstrip().startswith("<"):
        return text(said) if said else said
    return _CONTENT.sub(lambda found: f">{escape(text(unescape(found[1])))}<", said)


def _request(one: Request, text: Callable[[str], str]) -> Request:
    answer = _parsed(one.text)
    said = text(one.text) if answer is None else json.dumps(_in_json(answer, text))
    return Request(one.verb, text(one.path), text(one.body) if one.body else one.body, one.status, said)


def _in_json(value: Any, text: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: one if _PUBLIC.fullmatch(key) else _in_json(one, text) for key, one in value.items()}
    if isinstance(value, list):
        return [_in_json(one, text) for one in value]
    return text(value) if isinstance(value, str) else value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
