# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the options of a role in an action, so that only the role's argument specification declares them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ansible.errors import AnsibleError
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible.plugins.action import ActionBase

from .modules import ROOT

# The keys of a specification that arguments of modules have too.
TYPED = ("type", "elements", "choices", "options")


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
    path = ROOT / "roles" / role / "meta" / "argument_specs.yml"
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


def _is_words(value: object) -> bool:
    return isinstance(value, str) and "{{" not in value and "{%" not in value


def _typed(role: str, spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, object]:
    """Return values with the types that the role declares."""
    types = {name: {key: spec[name][key] for key in TYPED if key in spec[name]} for name in given}
    checked = ArgumentSpecValidator(types).validate(given)
    if checked.error_messages:
        raise AnsibleError(f"The options of the role {role} are invalid: {'; '.join(checked.error_messages)}")
    return {name: value for name, value in checked.validated_parameters.items() if name in given}
