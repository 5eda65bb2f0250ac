# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lookup: the user or the password of vCenter from the environment."""

from __future__ import annotations

DOCUMENTATION = r"""
name: login
short_description: The vCenter login of the environment
version_added: 1.0.0
description:
  - Returns E(VMWARE_USER) or E(VMWARE_PASSWORD), also after P(dml.vsphere.run_request#lookup) has removed both from the
    environment, so that ssh and other child processes of a playbook do not get them.
  - The playbooks of this collection read their connection with it.
options:
  _terms: {description: V(VMWARE_USER) or V(VMWARE_PASSWORD)., required: true}
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: List the hosts
  dml.vsphere.esxi_info:
    cluster: gpu
    username: "{{ lookup('dml.vsphere.login', 'VMWARE_USER') }}"
    password: "{{ lookup('dml.vsphere.login', 'VMWARE_PASSWORD') }}"
"""

RETURN = r"""
_raw:
  description: The value of each term; an empty text if the environment did not contain it.
  type: list
  elements: str
"""

import os

from ansible.plugins.lookup import LookupBase
from ansible_collections.dml.vsphere.plugins.module_utils.core import child_environment


class LookupModule(LookupBase):  # type: ignore[misc]  # ansible is not read by mypy
    """The user or the password."""

    def run(self, terms: list[str], *_variables: object, **_options: object) -> list[str]:
        return [child_environment.login(term, os.environ) for term in terms]
