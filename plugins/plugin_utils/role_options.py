# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a role: an action reads or declares them, and only the argument specification of the role has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.module_utils.common.yaml import yaml_load
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase

from ..module_utils.durable.calls import Arguments

ROLES = Path(__file__).resolve().parents[2] / "roles"
ROLE_OF_TRIALS, ROLE_OF_HOSTS = "vmotion_test", "esxi_host"
# The options of the action esxi_rollout that have other names than those of the role.
RENAMED = {"profiles": "host_profiles"}
DOCUMENTED = ("description", "type", "elements", "choices", "required", "default")
# The keys of a specification that arguments of modules have too.
TYPED = ("type", "elements", "choices", "options")


def of_trial(*left_out: str) -> dict[str, object]:
    """Return the options of an action around a running job: the role takes the job as one mapping."""
    options = _of_role(ROLE_OF_TRIALS, {"job", *left_out}, {})
    options["dir"] = {**options["dir"], "default": None, "required": True}
    return options


def of_esxi_rollout() -> dict[str, object]:
    """Return the options of the action esxi_rollout: the role saves the evidence."""
    return _of_role(ROLE_OF_HOSTS, {"evidence_dir"}, RENAMED)


def specification(options: Arguments) -> dict[str, object]:
    """Return options as an argument specification; elements of lists are not taken apart."""
    spec: dict[str, Any] = {}
    for name, option in options.items():
        spec[name] = {key: option[key] for key in DOCUMENTED[1:] if option.get(key) is not None}
        if "options" in option and option["type"] != "list":
            spec[name]["options"] = specification(option["options"])
    return spec


def documentation(options: Arguments) -> dict[str, object]:
    """Return options as the documentation of a module has them."""
    documented: dict[str, Any] = {}
    for name, option in options.items():
        documented[name] = {key: option[key] for key in DOCUMENTED if option.get(key) is not None}
        if "options" in option:
            documented[name]["suboptions"] = documentation(option["options"])
    return documented


def _of_role(role: str, left_out: Collection[str], renamed: Mapping[str, str]) -> dict[str, Any]:
    text = (ROLES / role / "meta" / "argument_specs.yml").read_text(encoding="utf-8")
    options = yaml_load(re.sub(rf"\bO\({role}_", "O(", text))["argument_specs"]["main"]["options"]
    names = {name: name[len(role) + 1 :] for name in options}
    return {
        renamed.get(names[name], names[name]): _without_template(option)
        for name, option in options.items()
        if names[name] not in left_out
    }


def _without_template(option: Mapping[str, Any]) -> dict[str, object]:
    """Return an option for an action, which has no templates: it is required instead, or empty by default."""
    default = option.get("default", {"list": [], "dict": {}}.get(option["type"], ""))
    if default == "{{ inventory_hostname }}":
        return {**option, "default": None, "required": True}
    return {**option, "default": "" if "{{" in str(default) else default}


def role_options(
    action: ActionBase,
    task_vars: Mapping[str, object],
    role: str,
    more: Mapping[str, object] | None = None,
    only: Collection[str] = (),
) -> dict[str, Any]:
    """Return the options of a role by their names without the role's prefix, with the types that the role declares.

    The templates are those of the host of the task; ``more`` has further variables for them. With ``only``, the other
    options are left out.
    """
    path = ROLES / role / "meta" / "argument_specs.yml"
    spec = action._loader.load_from_file(str(path))["argument_specs"]["main"]["options"]
    variables = {**task_vars, **(more or {})}
    templar = action._templar.copy_with_new_env(available_variables=variables)
    start = len(role) + 1
    known = {name: spec[name] for name in spec if name in variables}
    # Templates of other options would take letters of a list that the command line gives as words with commas.
    words = {
        name: variables[name] for name, each in known.items() if each["type"] == "list" and _is_words(variables[name])
    }
    templar.available_variables = {**variables, **_typed(role, spec, words)}
    desired = [name for name in known if not only or name[start:] in only]
    given = {name: templar.template(templar.available_variables[name]) for name in desired}
    return {name[start:]: value for name, value in _typed(role, spec, given).items()}


def requested_of_role(action: ActionBase, task_vars: Mapping[str, object], role: str) -> dict[str, Any]:
    """Return the options of a role if the task asks for them with ``of_role``, and take that option from the task."""
    return role_options(action, task_vars, role) if boolean(action._task.args.pop("of_role", False)) else {}


def _is_words(value: object) -> bool:
    return isinstance(value, str) and "{{" not in value and "{%" not in value


def _typed(role: str, spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, object]:
    """Return values with the types that the role declares."""
    types = {name: {key: spec[name][key] for key in TYPED if key in spec[name]} for name in given}
    checked = ArgumentSpecValidator(types).validate(given)
    if checked.error_messages:
        raise AnsibleError(f"The options of the role {role} are invalid: {'; '.join(checked.error_messages)}")
    return {name: value for name, value in checked.validated_parameters.items() if name in given}
