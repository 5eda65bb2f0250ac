# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: a stack, read, checked and completed, with variables for roles."""

from __future__ import annotations

DOCUMENTATION = r"""
name: stack
short_description: A set of compatible versions
version_added: 1.0.0
description:
  - Reads a stack, by name from this collection or by path from your file, and returns its data.
  - Before anything is installed, refuses a file that does not follow C(stacks/schema.json), a stack with incompatible
    parts, and a stack with missing inputs. docs/stacks.md lists the checks.
  - Each mapping with C(base) and C(path) gets a C(url) if the base has an address.
  - C(roles) has, by platform and by role, the variables of the roles for nodes.
  - C(not_established) lists the pairs of parts whose compatibility no source confirms.
options:
  _terms:
    description: Names of stacks, such as V(lab-cpu), or paths of files that end in C(.yml) or C(.yaml).
    required: true
  inputs:
    description: The values for the C(inputs) of the stack, by dotted path, such as a checksum.
    type: dict
    default: {}
  bases: {description: "Base URLs of mirrors by base name, instead of those in the stack.", type: dict, default: {}}
  mirror:
    description:
      - The URL of a complete mirror, for a site without internet access. It has a folder for each base of the stack,
        with the name of the base, such as C(MIRROR/nvidia); O(bases) overrides the address of single bases.
      - Its folder C(python) is a Python package index, with a folder for each package.
    type: str
    default: ""
  platform:
    description: The node's system, such as V(ubuntu-22.04); refused if the stack does not support it.
    type: str
  gpu:
    description: The node's GPU, such as V(A100); refused if the CUDA of the stack does not support it.
    type: str
  host_driver:
    description: The version of the vGPU manager on the ESXi host; refused if it does not support the guest driver.
    type: str
  parts:
    description:
      - Optional parts to install, V(container) and V(image). Refused if the stack does not have them.
      - The C(inputs) of these parts are required too.
    type: list
    elements: str
    default: []
  incomplete: {description: Whether inputs may be missing; C(missing_inputs) lists them., type: bool, default: false}
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the stack, with a mirror
  ansible.builtin.set_fact:
    guest_stack: "{{ lookup('dml.vsphere.stack', 'lab-cpu', bases={'python': 'https://mirror.example.org/python'}) }}"

- name: Install the stack's OpenMPI
  ansible.builtin.include_role:
    name: dml.vsphere.openmpi
  vars:
    openmpi: "{{ lookup('dml.vsphere.stack', 'lab-cpu').roles['debian-12'].openmpi }}"
    openmpi_version: "{{ openmpi.openmpi_version }}"
    openmpi_packages: "{{ openmpi.openmpi_packages }}"

- name: Show the missing inputs of a custom stack
  ansible.builtin.debug:
    msg: "{{ lookup('dml.vsphere.stack', playbook_dir ~ '/ours.yml', incomplete=true).missing_inputs }}"
"""

RETURN = r"""
_raw:
  description:
    - The stacks, as in their files, with C(url), C(roles), C(missing_inputs) and C(not_established) added.
    - In C(roles), for example, C(roles['ubuntu-22.04'].cuda) is a mapping of the variables of the role
      P(dml.vsphere.cuda#role). Roles without a part in the stack, or in O(parts), are left out.
    - It contains the platform of the image as well as those of the guest.
  type: list
  elements: dict
"""

from pathlib import Path
from typing import Any

from ansible.errors import AnsibleError
from ansible.plugins.lookup import LookupBase
from ansible_collections.dml.vsphere.plugins.module_utils.guests.stack import fit, image_parts, role_variables
from ansible_collections.dml.vsphere.plugins.module_utils.guests.stack import stack as stacks

STACKS = Path(__file__).resolve().parents[2] / "stacks"


class LookupModule(LookupBase):  # type: ignore[misc]  # ansible is not read by mypy
    """Stacks by name or path."""

    def run(
        self, terms: list[str], variables: dict[str, object] | None = None, **options: object
    ) -> list[dict[str, Any]]:
        self.set_options(var_options=variables, direct=options)
        return [self._stack(term, self._path(term)) for term in terms]

    def _path(self, term: str) -> Path:
        path = Path(term).expanduser() if term.endswith((".yml", ".yaml")) else STACKS / f"{term}.yml"
        if path.is_file():
            return path
        known = ", ".join(sorted(file.stem for file in STACKS.glob("*.yml")))
        raise AnsibleError(
            f"There is no stack {term!r}: the file {path} does not exist. Use one of {known}, or a path."
        )

    def _read(self, path: Path) -> Any:
        """Return the data of a YAML or JSON file."""
        return self._loader.load_from_file(str(path), cache="none")

    def _stack(self, term: str, path: Path) -> dict[str, Any]:
        document = self._read(path)
        self._refuse(
            term, "does not follow the schema of stacks", stacks.faults(document, self._read(STACKS / "schema.json"))
        )
        try:
            stack = stacks.completed(document, *(self.get_option(name) for name in ("inputs", "bases", "mirror")))
        except stacks.StackError as error:
            raise AnsibleError(str(error)) from error
        # Values from options must follow the schema too.
        self._refuse(term, "has wrong inputs", self._faults_of_inputs(stack))
        facts = self._read(STACKS / "facts" / "compatibility.yml")
        around = fit.NodeEnvironment(*(self.get_option(name) for name in ("platform", "gpu", "host_driver")))
        self._refuse(term, "has incompatible parts", fit.misfits(stack, facts, around))
        parts = self.get_option("parts")
        self._refuse(term, "lacks requested parts", stacks.absent_parts(stack, parts))
        missing = stacks.missing_inputs(stack, parts)
        if not self.get_option("incomplete"):
            self._refuse(term, "has inputs without a value", missing)
        return {
            **stack,
            "roles": {
                platform: role_variables.variables(side, platform, parts)
                for side in self._sides(stack)
                for platform in side["platforms"]
            },
            "missing_inputs": missing,
            "not_established": fit.not_established(stack, facts, around),
        }

    @staticmethod
    def _sides(stack: dict[str, object]) -> list[dict[str, Any]]:
        """Return the image, without a driver, and the guest, which takes precedence if both have the same system."""
        content = image_parts.image_content(stack)
        return [content, stack] if content else [stack]

    def _faults_of_inputs(self, stack: dict[str, object]) -> list[str]:
        faults: list[str] = stacks.faults(stacks.without_urls(stack), self._read(STACKS / "schema.json"))
        return faults

    @staticmethod
    def _refuse(term: str, why: str, sentences: list[str]) -> None:
        if sentences:
            raise AnsibleError(f"The stack {term} {why}: {' '.join(sentences)}")
