#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the check whether the readers of this collection understand a site."""

from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_info
short_description: Check which of the collection's readers understand a site
version_added: 1.0.0
description:
  - Runs each reader of the collection on hosts, their clusters and virtual machines, and checks the answers of the
    servers. All decisions of this collection depend on these answers.
  - Only reads. A call that is not a read is refused before it is sent.
  - Reports which of the unverified assumptions of this collection the answers confirm or refute.
options:
  short:
    description:
      - Runs only the readers of hosts and of counters, on one connected host of each version and model, as
        O(dml.vsphere.esxi_info#module:acceptance) does. Other hosts give similar answers.
    type: bool
    default: false
  accept_new:
    description: Whether RV(error) leaves out answers that are only new to this collection.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.site
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.esxi_info
  - module: dml.vsphere.recording
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Check whether the readers understand one host and one worker
  dml.vsphere.acceptance_info:
    hosts: [esx01.example.com]
    vms: [worker-0]
  register: acceptance

- name: Show the table
  ansible.builtin.debug:
    msg: "{{ acceptance.lines }}"

- name: Stop if a reader does not understand the site
  ansible.builtin.assert:
    that: acceptance.error | length == 0
    fail_msg: "{{ acceptance.error }}"
"""

RETURN = r"""
readers:
  description: One entry for each reader and object.
  returned: success
  type: list
  elements: dict
  contains:
    reader: {description: The reader., type: str}
    object: {description: "The host, the cluster, the virtual machine, or V(vCenter).", type: str}
    status:
      description:
        - V(understood); V(not understood) if the reader failed or lacks a required field; V(never seen by us) if an
          answer has a field or a word that no recording or document of this collection has; V(not there) if the object
          has no such data.
      type: str
    what: {description: The problems., type: list, elements: str}
assumptions:
  description: The unverified assumptions of docs/unproven.md.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The name of the assumption., type: str}
    text: {description: The assumption., type: str}
    status: {description: "V(proven), V(refuted) or V(open), from the answers of this site.", type: str}
    said: {description: The answer of the site., type: str}
lines:
  description: Readers and assumptions as a table in lines of text.
  returned: success
  type: list
  elements: str
error:
  description: All answers that were not understood, as one error; empty if the site is accepted.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.site.acceptance import acceptance
from ..module_utils.site.acceptance.host_readers import HOST_READERS
from ..module_utils.site.acceptance.readers import READERS
from ..module_utils.vsphere import inventory, session

ARGUMENTS = {
    **acceptance.OPTIONS,
    "short": {"type": "bool", "default": False},
    "accept_new": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    with session.session(params) as opened:
        request = (acceptance.host_request if params["short"] else acceptance.read_request)(opened, params)
        readers = HOST_READERS if params["short"] else READERS
        run = acceptance.AcceptanceRun(opened, request, acceptance.full_scope(), readers)
    return {"changed": False, **acceptance.result(run, accept_new=params["accept_new"])}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **ARGUMENTS},
        supports_check_mode=True,
        required_one_of=inventory.EXACTLY_ONE,
        mutually_exclusive=inventory.EXACTLY_ONE,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
