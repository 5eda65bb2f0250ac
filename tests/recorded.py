"""Fixtures from other projects, and events from recordings of a Ruby client, as pyVmomi objects."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from plugins.module_utils.vsphere.sdk import VmomiSupport
from plugins.module_utils.vsphere.wire import value_of

FOLDER = Path(__file__).parent / "fixtures" / "recorded"
INDEX = FOLDER / "index.yml"
_RUBY = "!ruby/object:RbVmomi::VIM::"


def text(name: str) -> str:
    """Return the text of a fixture."""
    return (FOLDER / name).read_text(encoding="utf-8")


def data(name: str) -> Any:
    """Return a fixture in YAML."""
    return yaml.safe_load(text(name))


def value(name: str, stub: Any = None) -> Any:
    """Return a fixture in the XML of the API."""
    return value_of(text(name), stub)


@cache
def config_options() -> dict[str, Any]:
    """Return the options of virtual machines that a real ESXi 9.0 reported, by hardware version."""
    return {option.version: option for option in value("vm_operator/config_options.xml")}


def ruby(name: str) -> Any:
    """Return an object that a Ruby client of the API wrote as YAML."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_multi_constructor(_RUBY, _constructed)
    return yaml.load(text(name), Loader)


def _constructed(loader: Any, wsdl_name: str, node: Any) -> Any:
    found = loader.construct_mapping(node, deep=True)
    kind = VmomiSupport.GetWsdlType("urn:vim25", wsdl_name)
    if "ref" in found:
        return kind(found["ref"])
    made = kind()
    for key, one in found["props"].items():
        _set(made, key.removeprefix(":"), one)
    return made


def _set(made: Any, name: str, one: Any) -> None:
    field = made._GetPropertyInfo(name).type
    if isinstance(one, list):
        getattr(made, name).extend(one)
    elif field is type:
        setattr(made, name, VmomiSupport.GetWsdlType("urn:vim25", one))
    elif isinstance(one, str) and field is VmomiSupport.ManagedMethod:
        setattr(made, name, VmomiSupport.GuessWsdlMethod(one))
    else:
        setattr(made, name, field(one) if isinstance(one, str) and issubclass(field, VmomiSupport.Enum) else one)
