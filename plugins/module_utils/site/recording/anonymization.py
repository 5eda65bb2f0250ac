"""Anonymize a recording: replace names, addresses, serials and UUIDs of the site consistently."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any
from xml.sax.saxutils import escape, unescape

from ...vsphere.typed import TypedField, clear_numbers, fields, replace_texts
from .free_text import SENTENCES
from .pseudonyms import Pseudonyms
from .recording import EsxcliCommand, Recording, RestRequest

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
# Fields of data objects that contain a name, a serial or a note of a user, each with the word of its pseudonyms.
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
    "entityDisplayName": "host",
    "vswitchName": "switch",
    "netStackInstanceKey": "stack",
    "storageUrl": "place",
    "url": "place",
}
# Types whose field "name" is a name from a user.
_NAMED = re.compile(
    r"vim\.event\.\w+Argument|vim\.vm\.ConfigInfo|vim\.vm\.Summary\.\w+|vim\.host\.(PortGroup|VirtualSwitch)(\.\w+)?"
    r"|vim\.(dvs|DistributedVirtualSwitch)[\w.]*(ConfigInfo|ConfigSpec)|vim\.cluster\.(\w*Rule\w*|\w*Group\w*)"
    r"|vim\.AuthorizationManager\.Role|vim\.alarm\.AlarmInfo|vim\.Datastore\.\w+|vim\.vm\.(Network|Datastore)Info"
    r"|vim\.Network\.Summary|vim\.vm\.SnapshotTree|vim\.host\.NetStackInstance"
)
# Keys that are or contain a name, unlike all other keys.
_STACK, _SWITCH_KEY = "vim.host.NetStackInstance", "key-vim."
# The labels of a licence come from an administrator; its properties have the same type and words of vSphere.
_LICENCE = "vim.LicenseManager.LicenseInfo"
# A file or folder in a datastore is often named after a virtual machine that no longer exists.
_PATH = re.compile(r"\[[^\]]+\] (?P<file>.+)|(?:ds:///)?/?vmfs/volumes/[^/]+/(?P<below>.+)")
_FILE_ENDING = re.compile(r"(-\d{6})?(-(flat|delta|sesparse|ctk|rdmp?))?(-[0-9a-f]{8})?\.[A-Za-z0-9]{1,5}$")
_UUID_LIKE = re.compile(r"[0-9a-fA-F-]{8,}")
# Fields with words of vSphere and of hardware, which may equal a name of the site by chance. They are not replaced.
_PUBLIC = re.compile(
    r"(?i)key|eventTypeId|descriptionId|vendor(Name)?|deviceName|model|vgpu|profileName|\w*version|build|firmware"
    r"|driver|graphicsType|vgpuMode|fullName|productLineId|osType|guestId|guestFullName|licenseProductVersion|label"
    r"|summary|privId|nicType|adapterType|cpuModel|patchLevel|apiType|licenseProductName|sharedPassthruAssignmentPolicy"
)
# The description of a counter comes from vSphere; the description of a virtual device contains its network's name.
_DESCRIBING = ("label", "summary")
_DESCRIPTIONS = ("vim.ElementDescription", "vim.host.")
_VIRTUAL_DEVICE = "vim.vm.device."
_SECRET = re.compile(r"(?i).*(secret|password|passphrase).*")
# Numbers that identify a host worldwide.
_WORLD_WIDE = ("nodeWorldWideName", "portWorldWideName")
# Standard switches, adapters and roles, which have these names on every site.
_USUAL = re.compile(
    r"key-vim\..*|vSphereProvisioning|mirror|ops|vxlan|hyperbus"
    r"|vSwitch\d+|vmk\d+|vmnic\d+|vmrdma\d+|DSwitch|dvUplink\d*|Uplink \d+|dml\.vsphere[\w.-]*"
)
# The answers of esxcli about software are the same on every site.
_SOFTWARE = "software "
_CONTENT = re.compile(r"(?P<tag><[^<>]*)?>(?P<text>[^<>]+)(?=<)")
# Elements about hardware.
_HARDWARE = re.compile(r"(?i)<(vendor(Name)?|deviceName|model|driver|firmware|\w*version)(?!\w).*", re.DOTALL)


def replace_names(recording: Recording, pseudonyms: Pseudonyms) -> None:
    """Replace all names of the site, in place."""
    for kind, value in _names(recording):
        if not _USUAL.fullmatch(value):
            pseudonyms.name(kind, value)
    _replace_values(recording, _typed(pseudonyms))
    for key in ("name", "instance"):
        if recording.server.get(key):
            recording.server[key] = pseudonyms.whole(recording.server[key])
    reported = pseudonyms.free_text
    recording.calls = {_call(key, reported): answer for key, answer in recording.calls.items()}
    packages = {value: pseudonyms.whole(value) for kind, value in _names(recording) if kind in ("package", "vendor")}
    recording.commands = [_command(command, reported, packages) for command in recording.commands]
    recording.requests = [_request(request, pseudonyms) for request in recording.requests]


def _names(recording: Recording) -> Iterator[tuple[str, str]]:
    """Yield every name and serial, with the word of its pseudonyms."""
    for recorded in recording.objects.values():
        if isinstance(recorded.values.get("name"), str):
            yield _KINDS.get(recorded.kind, "object"), recorded.values["name"]
        for path, value in recorded.values.items():
            yield from _in_property(path, value)
            yield from _in_fields(value)
    for answer in recording.calls.values():
        yield from _in_fields([answer.value, answer.fault])
    for request in recording.requests:
        yield from _in_request(request)
    for command in recording.commands:
        yield from names(command.response or "")


def _in_property(path: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        last = path.rsplit(".", maxsplit=1)[-1]
        if last in _FIELDS or path == "info.name":
            yield _FIELDS.get(last, "title"), value
        yield from _in_path(value)


def _in_fields(value: object) -> Iterator[tuple[str, str]]:
    for field in fields(value):
        kind = _kind_of(field)
        texts = field.value if isinstance(field.value, list) else [field.value]
        yield from ((kind, text) for text in texts if kind and isinstance(text, str))
        yield from (pair for text in texts if isinstance(text, str) for pair in _in_path(text))
        if field.kind == _STACK and field.name == "key":
            yield "stack", field.value
        if field.kind == _LICENCE and field.name == "labels":
            yield from (("label", label.value) for label in field.value or [])


def _kind_of(field: TypedField) -> str:
    """Return the word of the pseudonyms for a field; empty if the field contains no name."""
    if field.name in ("name", "groupName") and _NAMED.fullmatch(field.kind):
        return _argument_kind(field.kind)
    if field.kind.endswith("CustomFieldsManager.FieldDef") and field.name == "name":
        return "attribute"
    if field.kind.endswith("CustomFieldsManager.StringValue") and field.name == "value":
        return "" if _is_note(field.value) else "value"
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


def _is_note(value: Any) -> bool:
    """Return whether a custom value is a note of this collection; the names within it are replaced separately."""
    try:
        return isinstance(json.loads(value), dict)
    except (TypeError, ValueError):
        return False


def _in_request(request: RestRequest) -> Iterator[tuple[str, str]]:
    if "/tagging/" in request.path and request.verb == "GET":
        answer = _parsed(request.text)
        if isinstance(answer, dict):
            yield from (("tag", str(answer[key])) for key in ("name", "description") if answer.get(key))


def _typed(pseudonyms: Pseudonyms) -> Callable[[str, str, str], str]:
    def new(kind: str, name: str, text: str) -> str:
        if _SECRET.fullmatch(name):
            return ""
        if name == "key" and (kind == _STACK or text.startswith(_SWITCH_KEY)):
            return pseudonyms.text(text)
        if _is_public(kind, name):
            return text
        if kind.endswith("CustomFieldsManager.StringValue") and _is_note(text):
            return json.dumps(_in_json(json.loads(text), pseudonyms.free_text))
        known = pseudonyms.known(text) if name in _FIELDS or name in ("name", "value") else None
        return known or pseudonyms.free_text(text, name in SENTENCES)

    return new


def _is_public(kind: str, name: str) -> bool:
    """Return whether a field contains words of vSphere or of hardware, and no name of the site."""
    if name in _DESCRIBING:
        return kind.startswith(_DESCRIPTIONS)
    return bool(_PUBLIC.fullmatch(name)) and not (name == "deviceName" and kind.startswith(_VIRTUAL_DEVICE))


def _replace_values(recording: Recording, new: Callable[[str, str, str], str]) -> None:
    for recorded in recording.objects.values():
        for path, value in recorded.values.items():
            clear_numbers(value, _WORLD_WIDE)
            recorded.values[path] = replace_texts(value, new, recorded.kind, path.rsplit(".", maxsplit=1)[-1])
    for answer in recording.calls.values():
        answer.value = replace_texts(answer.value, new)
        answer.fault = replace_texts(answer.fault, new)
    recording.content = replace_texts(recording.content, new)


def _command(command: EsxcliCommand, text: Callable[..., str], packages: dict[str, str]) -> EsxcliCommand:
    answers = (command.response, command.fault, command.detail)
    if command.command.startswith(_SOFTWARE):
        sentence = partial(text, is_sentence=True)
        renamed = (answer and replaced(answer, packages, sentence) for answer in answers)
        return EsxcliCommand(command.host, command.command, command.arguments, *renamed)
    arguments = {key: _in_xml(value, text) or "" for key, value in command.arguments.items()}
    return EsxcliCommand(command.host, command.command, arguments, *(_in_xml(answer, text) for answer in answers))


def _in_xml(answer: str | None, text: Callable[[str], str]) -> str | None:
    """Return an answer with the texts of its elements replaced; any format but XML is replaced as a whole.

    Elements about hardware keep their words.
    """
    if not answer or not answer.lstrip().startswith("<"):
        return text(answer) if answer else answer

    def new(match: re.Match[str]) -> str:
        tag = match["tag"] or ""
        return match[0] if _HARDWARE.match(tag) else f"{tag}>{escape(text(unescape(match['text'])))}"

    return _CONTENT.sub(new, answer)


def _request(request: RestRequest, pseudonyms: Pseudonyms) -> RestRequest:
    content, reported, text = _parsed(request.text), pseudonyms.free_text, pseudonyms.text
    answer = reported(request.text) if content is None else json.dumps(_in_json(content, reported))
    body = text(request.body) if request.body else request.body
    return RestRequest(request.verb, text(request.path), body, request.status, answer)


def _call(key: str, reason: Callable[[str], str]) -> str:
    """Return the key of a call with replaced texts in its arguments."""
    *place, arguments = key.split(" ", 3)
    return " ".join((*place, json.dumps(_in_json(json.loads(arguments), reason), sort_keys=True)))


def _in_json(value: object, text: Callable[[str], str]) -> object:
    if isinstance(value, dict):
        return {key: item if _PUBLIC.fullmatch(key) else _in_json(item, text) for key, item in value.items()}
    if isinstance(value, list):
        return [_in_json(item, text) for item in value]
    return text(value) if isinstance(value, str) else value


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


_PACKAGE = re.compile(r"<DataObject\b.*?</DataObject>", re.DOTALL)
_FIELD = re.compile(r"<(?P<field>Name|Vendor|Version)>(?P<text>[^<]+)</(?P=field)>")
_DESCRIPTION = re.compile(r"(<(?!Name|Vendor|ID|Version)\w+>)([^<]+)")
# A part of a version; VMware and its partners write these three.
_WORD = re.compile(r"(?!(?:OEM|vmw|vib)(?![A-Za-z]))(?<![A-Za-z])[A-Za-z]+")
# The vendors of hardware and software, as they call themselves in their packages.
_VENDORS = frozenset(
    (
        *("adaptec", "amd", "aqt", "avago", "bcm", "broadcom", "cisco", "csco", "dec", "del", "dell", "dellemc", "elx"),
        *("emc", "emu", "emulex", "fujitsu", "ftw", "hitachi", "hp", "hpe", "hpq", "ibm", "int", "intel", "ixg", "lsi"),
        *("lenovo", "lvo", "mel", "mellanox", "microchip", "mrvl", "nec", "netapp", "nvd", "nvidia", "pure", "qlc"),
        *("purestorage", "qlogic", "quanta", "samsung", "smc", "supermicro", "vmw", "vmware"),
    )
)


def names(answer: str) -> Iterator[tuple[str, str]]:
    """Yield the names of home-made packages and of their vendors, each with the word of its pseudonyms."""
    for package in _PACKAGE.findall(answer):
        values = _values(package)
        if _is_home_made(values):
            yield "vendor", values["Vendor"].strip()
            yield "package", values.get("Name", "")


def _values(package: str) -> dict[str, str]:
    return {match["field"]: unescape(match["text"]) for match in _FIELD.finditer(package)}


def _is_home_made(values: Mapping[str, str]) -> bool:
    vendor = values.get("Vendor", "").split()
    return bool(vendor) and vendor[0].strip(",.").lower() not in _VENDORS


def _without_words(package: str, version: str) -> str:
    """Return a package without the words in its version, which its ID repeats; numbers do not identify a site."""
    plain = _WORD.sub("x", version)
    return package.replace(escape(version), plain) if version else package


def replaced(text: str, pseudonyms: Mapping[str, str], reason: Callable[[str], str]) -> str:
    """Return the text with pseudonyms instead of these names; ``reason`` replaces the words in a description."""

    def described(match: re.Match[str]) -> str:
        values = _values(match[0])
        if not _is_home_made(values):
            return match[0]
        package = _without_words(match[0], values.get("Version", ""))
        return _DESCRIPTION.sub(lambda one: one[1] + escape(reason(unescape(one[2]))), package)

    text = _PACKAGE.sub(described, text)
    ordered = sorted(pseudonyms, key=lambda name: -len(name))
    pattern = "|".join(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])" for name in ordered)
    return re.sub(pattern, lambda match: pseudonyms[match[0]], text) if pattern else text
