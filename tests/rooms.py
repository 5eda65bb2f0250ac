# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rooms of the house: which there are, and what each may import."""

from __future__ import annotations

# Which rooms a room may import. A room is a file or folder of plugins/module_utils, a folder of its logic, or another
# folder of plugins. Outside of logic, "logic" stands for all of its rooms; inside, for the files that lie in it alone.
SUBJECTS = {"vsphere", "logic", "plan", "errors"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "logic": {"logic"},
    "logic/continuity": {"logic/continuity"},
    "logic/hosts": {"logic/hosts", "logic/placement", "logic"},
    "logic/kubernetes": {"logic/kubernetes", "logic/training", "logic"},
    "logic/migration": {"logic/migration", "logic/nodes", "logic/stack", "logic/transport", "logic"},
    "logic/moves": {"logic/moves"},
    "logic/nodes": {"logic/nodes"},
    "logic/placement": {"logic/placement"},
    "logic/privileges": {"logic/privileges"},
    "logic/recording": {"logic/recording"},
    "logic/stack": {"logic/stack", "logic/nodes", "logic"},
    "logic/training": {"logic/training", "logic/transport", "logic/continuity"},
    "logic/transport": {"logic/transport"},
    "logic/trial": {"logic/trial", "logic/kubernetes", "logic/migration", "logic/transport", "logic"},
    "logic/usage": {"logic", "logic/usage", "logic/placement"},
    "pages": {"pages", "logic"},
    "plan": {"errors"},
    "vsphere": {"vsphere", "errors"},
    "capacity": {"capacity", *SUBJECTS},
    "esxi": {"esxi", "capacity", *SUBJECTS},
    "cluster": {"cluster", "esxi", "capacity", *SUBJECTS},
    "fabric": {"fabric", "esxi", *SUBJECTS},
    "vm": {"vm", "capacity", *SUBJECTS},
    "vmotion": {"vmotion", "vm", "cluster", "esxi", "capacity", *SUBJECTS},
    "recording": {"recording", *SUBJECTS},
    "acceptance": {"acceptance", "recording", "vmotion", "vm", "fabric", "cluster", "esxi", "capacity", *SUBJECTS},
    "guest": {"guest", "logic", "plan", "errors"},
    "watch": {"watch", "errors"},
    "kubernetes": {"kubernetes", "logic", "errors"},
    "reports": {"reports", "plan", "errors"},
    "runner": {"plan", "errors"},
    "single": {"runner", "plan", "errors"},
    "progress": set(),
    "trial": {"trial", "plan", "errors"},
    "modules": {
        "runner",
        "single",
        "progress",
        "esxi",
        "cluster",
        "fabric",
        "vm",
        "vmotion",
        "acceptance",
        "guest",
        "kubernetes",
        "watch",
        "pages",
        "reports",
        "trial",
        *SUBJECTS,
    },
    "inventory": {"vm", "vsphere", "logic", "runner", "errors"},
    "action": {"plugin_utils", "logic", "plan", "errors"},
    "plugin_utils": {"plugin_utils", "trial", "watch", "logic", "errors"},
    "filter": {"logic", "pages", "errors"},
    "lookup": {"logic", "errors"},
    "doc_fragments": set(),
}
# What a room may import from outside the collection and the standard library.
FOREIGN: dict[str, set[str]] = {
    "vsphere": {"pyVim", "pyVmomi", "ansible"},
    "kubernetes": {"kubernetes", "urllib3", "yaml", "ansible"},
    "modules": {"ansible"},
    "inventory": {"ansible"},
    "action": {"ansible"},
    "plugin_utils": {"ansible"},
    "filter": {"ansible"},
    "lookup": {"ansible"},
}


def room_of(name: tuple[str, ...]) -> str:
    """The room of a dotted name; empty where it is none of the collection's plugins."""
    name = name[3:] if name[:3] == ("ansible_collections", "dml", "vsphere") else name
    if name[:1] != ("plugins",) or len(name) < 2:
        return ""
    if name[1] != "module_utils":
        return name[1]
    inner = "/".join(name[2:4])
    return inner if inner in MAY_IMPORT else name[2] if len(name) > 2 else "module_utils"


def may_import(room: str, target: str) -> bool:
    """Whether the table allows a room to import another."""
    allowed = MAY_IMPORT[room]
    return target in allowed or (not room.startswith("logic") and target.split("/", 1)[0] in allowed)
