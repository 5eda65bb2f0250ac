# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a host's profile and the groups of esxi_info: only the modules of the parts document them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from ..module_utils.hosts import host_info
from ..module_utils.hosts.part import Part
from ..module_utils.hosts.profile_parts import PARTS

# The keys of a documented option that the profile copies, in addition to the description.
DOCUMENTED = ("type", "elements", "choices", "default", "required")
_MODULES = __name__.rpartition(".plugin_utils.")[0] + ".modules"


def profile() -> dict[str, Any]:
    """Return the documentation of the profile of a host."""
    shared = {"type": "dict", "default": {}}
    described = "The settings of every host, by subject. Subjects that are not named stay unchanged."
    others = "Hosts with other settings, each with a separate profile instead of O(profile)."
    return {
        "profile": {"description": described, **shared, "suboptions": {part.key: _part(part) for part in PARTS}},
        "host_profiles": {"description": others, **shared},
    }


def gather() -> dict[str, object]:
    """Return the documentation of the groups of esxi_info."""
    texts = ["The groups to read. V(all) reads all groups. Connection, version and boot time are always read."]
    texts += [f"V({name}) reads {group.shows}." for name, group in host_info.GROUPS.items()]
    texts += ["V(management) reads cluster, image, configuration profile and host profile."]
    spec = host_info.OPTIONS["gather"]
    return {"gather": {"description": texts, **{key: spec[key] for key in DOCUMENTED if key in spec}}}


def _part(part: Part) -> dict[str, object]:
    document = yaml_load(importlib.import_module(f"{_MODULES}.{part.module}").DOCUMENTATION)
    place = f"profile.{part.key}" + ("[]" if part.spec["type"] == "list" else "")
    options = {name: _option(place, document["options"], name) for name in part.spec.get("options", ())}
    summary = f"{document['short_description']}. See M(dml.vsphere.{part.module})."
    kept = {key: part.spec[key] for key in DOCUMENTED if key in part.spec}
    if options:
        return {"description": summary, **kept, "suboptions": options}
    (only,) = document["options"].values()
    return {"description": [summary, *_listed(only["description"])], **kept}


def _option(place: str, options: Mapping[str, Any], name: str) -> dict[str, object]:
    """Return a module's option as an option of the profile, with references to other options adjusted."""
    names = "|".join(options)
    texts = [re.sub(rf"\bO\((?={names})", f"O({place}.", text) for text in _listed(options[name]["description"])]
    return {"description": texts, **{key: options[name][key] for key in DOCUMENTED if key in options[name]}}


def _listed(text: Any) -> list[str]:
    texts = [text] if isinstance(text, str) else list(text)
    if invalid := [text for text in texts if not isinstance(text, str)]:
        raise ValueError(f"A description is not a string, quote it: {invalid}")
    return texts
