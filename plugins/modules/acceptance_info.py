#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what the readers of this collection understand of a site."""

from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance_info
short_description: Say which of the collection's readers understand a site
version_added: 1.0.0
description:
  - Runs each reader of the collection against hosts, their clusters and virtual machines, and judges what the servers
    answered. Everything that this collection decides rests on these answers.
  - Only reads. A call that is no read is refused before it is sent.
  - Says of the assumptions that nobody could prove without such a site which ones the answers prove or refute.
options:
  short:
    description:
      - Runs only the readers of hosts and of counters, against one connected host of each version and model. The others
        answer alike.
    type: bool
    default: false
  accept_new:
    description: Whether RV(error) leaves out what is only new to this collection.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.site
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.recording
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Say what the readers understand of one host and one worker
  dml.vsphere.acceptance_info:
    hosts: [esx01.example.com]
    vms: [worker-0]
  register: seen

- name: Show the table
  ansible.builtin.debug:
    msg: "{{ seen.lines }}"

- name: Stop where a reader does not understand the site
  ansible.builtin.assert:
    that: seen.error | length == 0
    fail_msg: "{{ seen.error }}"
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
        - V(understood); V(not understood), where the reader failed or lacks a field that it needs; V(never seen by us),
          where an answer has a field or a word that no recording or document of this collection has; V(not there),
          where the object has nothing of the kind.
      type: str
    what: {description: What was found., type: list, elements: str}
assumptions:
  description: The assumptions that nobody has proven yet, as in docs/unproven.md.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: The name of the assumption., type: str}
    text: {description: The assumption., type: str}
    status: {description: "V(proven), V(refuted) or V(open), by the answers of this site.", type: str}
    said: {description: What the site answered., type: str}
lines:
  description: Readers and assumptions as a table for a person.
  returned: success
  type: list
  elements: str
error:
  description: What was not understood as one error; empty where the site is accepted.
  returned: success
  type: str
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.site.acceptance import acceptance, assumptions
from ..module_utils.vsphere import inventory, session

ARGUMENTS = {
    **acceptance.OPTIONS,
    "short": {"type": "bool", "default": False},
    "accept_new": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    with session.session(params) as opened:
        seen = acceptance.Acceptance(
            opened, acceptance.question(opened, params), acceptance.everything(), short=params["short"]
        )
    judged = assumptions.judged(seen.recording)
    lines = [*acceptance.lines(seen.rows), "", *assumptions.lines(judged)]
    error = acceptance.error(seen.rows, judged, accept_new=params["accept_new"])
    return {"changed": False, "readers": seen.rows, "assumptions": judged, "lines": lines, "error": error}


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
