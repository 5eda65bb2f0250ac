# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The variables of the collection, from the specifications of its roles and the table of its playbooks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from ..module_utils.core import variable_types
from ..module_utils.core.run_request import Known

COLLECTION = Path(__file__).resolve().parents[2]
OPTIONS = COLLECTION / "playbooks" / "vars" / "options.yml"


@cache
def known() -> Known:
    """Return the variables, options and tags of the roles and playbooks of this collection."""
    roles = {path.name: _variables(path) for path in (COLLECTION / "roles").iterdir() if path.is_dir()}
    table = _data(OPTIONS)["playbook_options"]
    return Known(roles, table, table["site"]["parts"])


@cache
def specs() -> dict[str, variable_types.Spec]:
    entries = [entry for path in (COLLECTION / "roles").iterdir() for entry in _entries(path)]
    return {**_data(OPTIONS)["playbook_types"], **{name: spec for entry in entries for name, spec in entry.items()}}


@cache
def _data(path: Path) -> dict[str, Any]:
    """Return the data of a file; empty if it does not exist."""
    # Ansible's loader is slower, because it marks and copies each value.
    return (yaml_load(path.read_text(encoding="utf-8")) or {}) if path.is_file() else {}


def _variables(role: Path) -> set[str]:
    """Return the options of all entry points of a role, and its variables that are not for users."""
    names = {name for entry in _entries(role) for name in entry}
    return names.union(*(_data(role / folder / "main.yml") for folder in ("defaults", "vars")))


def _entries(role: Path) -> list[dict[str, object]]:
    """Return the options of each entry point of a role."""
    entries = _data(role / "meta" / "argument_specs.yml").get("argument_specs", {}).values()
    return [entry.get("options", {}) for entry in entries]
