"""The end of a run: every property of every object that the server reports, in words that do not depend on chance.

Objects have the names that people gave them, not the server's ids, which depend on the number of attempts. Values that
the server makes up or counts (UUIDs, keys, times, tasks) are left out.
"""

from __future__ import annotations

import json
import re
import ssl
import urllib.request
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from lab.person import opened
from lab.simulator import Centre
from plugins.module_utils.vsphere.session import Session

ENVELOPE = (
    '<?xml version="1.0" encoding="UTF-8"?><soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"'
    "><soapenv:Body>{}</soapenv:Body></soapenv:Envelope>"
)
VIM, TYPE = "{urn:vim25}", "type"
# Managers that are in no folder, and hold settings.
MANAGERS = frozenset(
    {
        *("HostGraphicsManager", "HostFirewallSystem", "HostServiceSystem", "HostPciPassthruSystem", "OptionManager"),
        *("CustomFieldsManager", "AuthorizationManager", "HostImageConfigManager"),
    }
)
CONTENT = ("setting", "customFieldsManager", "authorizationManager")
# Made up by the server, counted, or a time.
CHANCE = frozenset(
    {
        *(
            "recentTask",
            "bootTime",
            "quickStats",
            "changeVersion",
            "modified",
            "uuid",
            "instanceUuid",
            "key",
            "addTime",
        ),
        *("addTime", "timestamp", "createDate", "changeTrackingId", "biosUuid", "macAddress", "roleId", "creatorId"),
        *("locationId", "portKey", "portgroupKey", "switchUuid", "connectionCookie", "configVersion", "uptime"),
        *("controllerKey", "usedBy", "ruleUuid", "vmProfile", "capacityInKB", "freeSpace", "uncommitted", "unshared"),
        *("diskObjectId", "fieldKey", "profileId", "lastHeartbeat", "overallUsage", "shadow", "lastActiveTime"),
        # The CustomFieldsManager reports the same, once for each attribute.
        "availableField",
    }
)
LABELS = tuple(
    "/".join(f"{VIM}{part}" for part in one.split("/"))
    for one in ("deviceInfo/label", "device", "id", "name", "key", "roleId", "privId", "principal")
)
# The lock leaves behind how often it was taken.
LOCK = re.compile(r"Folder (dml\.vsphere\.(lock|gone) |\d+$|\d+of\d+ |claim \d)")
# Folders and ports of this simulator's process, and numbers that it draws; that of an uplink port group is its id.
OWN = re.compile(
    r"\d{4}-\d\d-\d\dT[\d:.]+(Z|[-+]\d\d:\d\d)?|govcsim-\d+|(?<=127\.0\.0\.1):\d+|^-\d{6,}$|(?<=-DVUplinks-)\d+"
)


def state(vcenter: Centre) -> Counter[str]:
    """A line for each property of each object, and for what only the host itself knows."""
    with opened(vcenter) as one:
        reader = _Reader(vcenter, one)
        first = reader.read(_listed(one))
        managers = {(ref.get(TYPE, ""), ref.text or "") for ref in first.iter() if ref.get(TYPE) in MANAGERS}
        found = [first, *(reader.read(some) for some in _by_kind(managers | _of_content(one)))]
    names = _names(found)
    result = Counter(line for root in found for line in lines(root, names))
    for host in vcenter.ask("GET", "/hosts"):
        inside = {key: value for key, value in vcenter.ask("GET", f"/hosts/{host}").items() if key not in _INSIDE}
        result.update(f"inside {host}/{key} = {_in_order(key, value)}" for key, value in inside.items())
    return result


_INSIDE = frozenset({"moid", "boot_time"})


def _in_order(key: str, value: Any) -> str:
    """A text for a value; the order in which options of a kernel module were set says nothing."""
    if key in {"modules_active", "modules_configured"}:
        value = {module: sorted(options.split()) for module, options in value.items()}
    return json.dumps(value, sort_keys=True)


def differences(expected: Counter[str], found: Counter[str]) -> list[str]:
    """Return what is missing, and what is there in excess."""
    return [f"lacks {one}" for one in sorted(expected - found)] + [f"has {one}" for one in sorted(found - expected)]


def _listed(one: Session) -> set[tuple[str, str]]:
    view = one.content.viewManager.CreateContainerView(one.content.rootFolder, None, True)
    found = {(str(ref._wsdlName), str(ref._moId)) for ref in view.view}
    view.DestroyView()
    return found


def _of_content(one: Session) -> set[tuple[str, str]]:
    refs = [getattr(one.content, name) for name in CONTENT]
    return {(str(ref._wsdlName), str(ref._moId)) for ref in refs}


def _by_kind(refs: set[tuple[str, str]]) -> Iterator[set[tuple[str, str]]]:
    for kind in sorted({kind for kind, _id in refs}):
        yield {ref for ref in refs if ref[0] == kind}


class _Reader:
    """Reads all properties as the XML that the server sends."""

    def __init__(self, vcenter: Centre, one: Session) -> None:
        self._address = f"https://{vcenter.facts['hostname']}:{vcenter.facts['port']}/sdk"
        self._context = ssl.create_default_context(cafile=str(vcenter.facts["ca_file"]))
        self._headers = {"Cookie": str(one.stub.cookie), "Content-Type": "text/xml"}
        self._collector = str(one.content.propertyCollector._moId)
        version = str(one.content.about.apiVersion)
        self._headers["SOAPAction"] = f'"urn:vim25/{version}"'

    def read(self, refs: Iterable[tuple[str, str]]) -> ET.Element:
        """All properties of these objects."""
        chosen = sorted(refs)
        named = sorted({kind for kind, _id in chosen})
        kinds = "".join(f"<propSet><type>{kind}</type><all>true</all></propSet>" for kind in named)
        objects = "".join(f'<objectSet><obj type="{kind}">{its_id}</obj></objectSet>' for kind, its_id in chosen)
        body = (
            f'<RetrieveProperties xmlns="urn:vim25"><_this type="PropertyCollector">{self._collector}</_this>'
            f"<specSet>{kinds}{objects}</specSet></RetrieveProperties>"
        )
        request = urllib.request.Request(self._address, data=ENVELOPE.format(body).encode(), headers=self._headers)
        with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
            return ET.fromstring(answer.read())


def _objects(root: ET.Element) -> Iterator[tuple[str, str, dict[str, ET.Element]]]:
    for one in root.iter(f"{VIM}returnval"):
        ref = one.find(f"{VIM}obj")
        if ref is not None:
            values = {str(item.findtext(f"{VIM}name")): item for item in one.iter(f"{VIM}propSet")}
            yield ref.get(TYPE, ""), ref.text or "", values


def _names(found: Iterable[ET.Element]) -> dict[str, str]:
    """The name of each object by its id, with that of what it lies in where it is a folder."""
    result: dict[str, str] = {}
    for root in found:
        for kind, its_id, values in _objects(root):
            name = values["name"].findtext(f"{VIM}val") if "name" in values else ""
            result[its_id] = f"{kind} {OWN.sub('', name)}" if name else kind
    return result


def lines(root: ET.Element, names: dict[str, str]) -> Iterator[str]:
    """A line for each property that the server returned; ``names`` are those of all objects, by id."""
    for _kind, its_id, values in _objects(root):
        name = names[its_id]
        if LOCK.match(name):
            continue
        for key, item in values.items():
            value = item.find(f"{VIM}val")
            if value is not None and key not in CHANCE:
                yield from _flat(value, f"{name}/{key}", names)


def _flat(element: ET.Element, path: str, names: dict[str, str]) -> Iterator[str]:
    children = [child for child in element if _tag(child) not in CHANCE]
    if element.get(TYPE):
        text = names.get(element.text or "", element.get(TYPE, ""))
        if text != "Task" and not LOCK.match(text):
            yield f"{path} = {text}"
        return
    if not len(element):
        yield f"{path} = {OWN.sub('', (element.text or '').strip())}"
        return
    for child in children:
        label = _label(child, names)
        yield from _flat(child, f"{path}/{_tag(child)}" + (f"[{label}]" if label else ""), names)


def _tag(element: ET.Element) -> str:
    return element.tag.removeprefix(VIM)


def _label(element: ET.Element, names: dict[str, str]) -> str:
    """Return the words that distinguish an element from its siblings; nothing if it has no such words."""
    for one in LABELS if len(element) else ():
        text = element.findtext(one)
        if text and not text.lstrip("-").isdigit():
            return names.get(text, text)
    return ""
