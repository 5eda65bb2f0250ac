"""Content libraries and their items; only vCenter's REST API has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ..errors import Failed, Refused
from .rest import Rest
from .sdk import ApiObject

_LIBRARY, _ITEM, _OVF = "/api/content/library", "/api/content/library/item", "/api/vcenter/ovf/library-item"
OVF, VM_TEMPLATE = "ovf", "vm-template"
_SUBSCRIBED = "SUBSCRIBED"
_LIBRARY_FORM = {"id": str, "name": str, "type": str}
_ITEM_FORM = {"id": str, "name": str, "type?": str, "content_version?": str, "cached?": bool}
_PROPERTIES = "PropertyParams"
_PARAMETERS_CLASS = "com.vmware.vcenter.ovf.property_params"


class LibraryItem(NamedTuple):
    """An item of a library; ``version`` is that of its files, and ``cached`` whether this vCenter has the files."""

    library: str
    name: str
    id: str
    kind: str
    version: str
    is_subscribed: bool
    cached: bool

    @property
    def path(self) -> str:
        return f"{self.library}/{self.name}"


class Requirements(NamedTuple):
    """The licences of an OVF item, its networks by name, and its properties by their ids."""

    licences: list[str]
    networks: list[str]
    properties: Mapping[str, Mapping[str, Any]]


def names(api: Rest) -> list[tuple[str, list[str]]]:
    """Return the libraries with the names of their items that can be templates."""
    found = []
    for one in api.get(_LIBRARY, tried="list its content libraries", form=[str]):
        library = _library(api, one)
        items = [_item(api, library, each) for each in _items_of(api, one)]
        found.append((str(library["name"]), sorted(item.name for item in items if item.kind in (OVF, VM_TEMPLATE))))
    return sorted(found)


def find_item(api: Rest, library: str, name: str) -> LibraryItem:
    """Return the item with a name in the library with a name; another number of either is refused."""
    body = {"name": library}
    tried = f"find its content library {library!r}"
    ids = api.send("POST", f"{_LIBRARY}?action=find", body, tried=tried, form=[str])
    # vCenter compares the names without their case.
    found = [one for one in (_library(api, each) for each in ids) if one["name"] == library]
    if len(found) != 1:
        known = ", ".join(title for title, _items in names(api)) or "none"
        raise Refused(api.server, tried, f"it has {len(found)} of that name: {known}", "correct the library")
    tried = f"find the item {name!r} in its content library {library!r}"
    body = {"name": name, "library_id": found[0]["id"]}
    listed = api.send("POST", f"{_ITEM}?action=find", body, tried=tried, form=[str])
    items = [one for one in (_item(api, found[0], each) for each in listed) if one.name == name]
    if len(items) != 1:
        known = ", ".join(dict(names(api)).get(library, [])) or "none"
        raise Refused(
            api.server, tried, f"it has {len(items)} of that name; its templates: {known}", "correct the item"
        )
    if items[0].kind not in (OVF, VM_TEMPLATE):
        reason = f"its type is {items[0].kind or 'not set'}"
        raise Refused(api.server, f"use the item {items[0].path} as a template", reason, "name an OVF or a VM template")
    return items[0]


def synchronize(api: Rest, item: LibraryItem) -> None:
    """Have vCenter fetch the files of an item of a subscribed library."""
    body, tried = {"force_sync_content": True}, f"synchronize {item.path}"
    remedy = "check the subscription of the library and its publisher"
    api.send("POST", f"{_LIBRARY}/subscribed-item/{_quoted(item.id)}?action=sync", body, tried=tried, remedy=remedy)


def template_of(api: Rest, item: LibraryItem) -> str:
    """Return the object id of the virtual machine of a VM template in a library."""
    path, tried = f"/api/vcenter/vm-template/library-items/{_quoted(item.id)}", f"read the VM template {item.path}"
    return str(api.get(path, tried=tried, form={"vm_template": str})["vm_template"])


def requirements_of(api: Rest, item: LibraryItem, pool: str) -> Requirements:
    """Return the requirements of an OVF item for its deployment to a resource pool."""
    path, body = f"{_OVF}/{_quoted(item.id)}?action=filter", {"target": {"resource_pool_id": pool}}
    form = {"EULAs?": [str], "networks?": [str], "additional_params?": [dict]}
    answer = api.send("POST", path, body, tried=f"read what {item.path} requires", form=form)
    known = [one for one in answer.get("additional_params") or [] if one.get("type") == _PROPERTIES]
    properties = {str(each["id"]): each for one in known for each in one.get("properties") or [] if each.get("id")}
    return Requirements(answer.get("EULAs") or [], answer.get("networks") or [], properties)


def deploy(api: Rest, item: LibraryItem, target: Mapping[str, str], spec: Mapping[str, object]) -> str:
    """Deploy an OVF item, and return the object id of the virtual machine; vCenter answers when it has done so."""
    path, tried = f"{_OVF}/{_quoted(item.id)}?action=deploy", f"deploy {item.path}"
    body = {"target": dict(target), "deployment_spec": dict(spec)}
    form = {"succeeded": bool, "resource_id?": {"type": str, "id": str}, "error?": dict}
    answer = api.send("POST", path, body, tried=tried, form=form)
    made = answer.get("resource_id")
    if not answer["succeeded"] or not made:
        raise Failed(api.server, tried, f"the server said {_errors(answer.get('error'))}", "correct it and run again")
    if made["type"] != "VirtualMachine":
        reason = f"it became a {made['type']}"
        raise Failed(api.server, tried, reason, f"delete {spec['name']}, and name an item with one virtual machine")
    return str(made["id"])


def properties_of(required: Requirements, values: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the additional parameters of a deployment that set properties of the OVF descriptor."""
    chosen = [{**required.properties[name], "value": value} for name, value in values.items()]
    return [{"@class": _PARAMETERS_CLASS, "type": _PROPERTIES, "properties": chosen}] if chosen else []


def _errors(error: ApiObject) -> str:
    """Return the messages of a failed deployment."""
    found = (error or {}).get("errors") or []
    messages = [each for one in found for each in ((one.get("error") or {}).get("messages") or [one.get("message")])]
    texts = [str(one["default_message"]) for one in messages if isinstance(one, dict) and one.get("default_message")]
    return "; ".join(texts) or "nothing more"


def _library(api: Rest, one: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = api.get(
        f"{_LIBRARY}/{_quoted(one)}", tried=f"read its library {one}", form=_LIBRARY_FORM
    )
    return found


def _items_of(api: Rest, library: str) -> list[str]:
    tried = f"list the items of its library {library}"
    listed: list[str] = api.get(f"{_ITEM}?{urlencode({'library_id': library})}", tried=tried, form=[str])
    return listed


def _item(api: Rest, library: Mapping[str, object], one: str) -> LibraryItem:
    found = api.get(f"{_ITEM}/{_quoted(one)}", tried=f"read its library item {one}", form=_ITEM_FORM)
    is_subscribed = library["type"] == _SUBSCRIBED
    kind, version = str(found.get("type") or ""), str(found.get("content_version") or "")
    return LibraryItem(
        str(library["name"]), found["name"], found["id"], kind, version, is_subscribed, bool(found.get("cached"))
    )


def _quoted(one: str) -> str:
    return quote(one, safe="")
