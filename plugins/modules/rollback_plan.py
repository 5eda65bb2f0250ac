#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the profiles that restore ESXi hosts from evidence."""

from __future__ import annotations

DOCUMENTATION = r"""
module: rollback_plan
short_description: Find the profiles that restore the hosts of a cluster from its evidence
version_added: 1.0.0
description:
  - Reads a file that P(dml.vsphere.evidence#role) wrote before a change, and returns for each host the profile that
    restores the settings of the change. It changes nothing; P(dml.vsphere.rollback#role) uses it.
  - If the evidence cannot be restored completely, the module fails with all reasons at once. It also fails if the
    change has settings that this version of the collection does not support.
  - The module rejects a file that is incomplete or was changed after it was written. It also rejects evidence from
    another vCenter or from other machines with the same names, which it detects from the instance UUID of vCenter and
    the hardware UUIDs of the hosts.
options:
  evidence:
    description: The file of evidence.
    type: path
    required: true
  cluster:
    description: The cluster that the evidence must describe.
    type: str
    required: true
  hosts:
    description: The hosts to restore. The default is all hosts in the evidence.
    type: list
    elements: str
    default: []
  depots:
    description: The sources of older versions of VIBs.
    type: list
    elements: dict
    default: []
    suboptions:
      name: {description: The name of the VIB., type: str, required: true}
      version: {description: The version., type: str, required: true}
      source:
        description: The location of the VIB for the host, as O(dml.vsphere.esxi_vib#module:source).
        type: str
        required: true
extends_documentation_fragment:
  - dml.vsphere.attributes.info
  - dml.vsphere.connection
seealso:
  - module: dml.vsphere.esxi_profile
  - module: dml.vsphere.shared_settings
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the profiles that restore cluster gpu
  dml.vsphere.rollback_plan:
    evidence: /var/lib/dml/evidence/gpu-20260101T120000Z.json
    cluster: gpu
  register: before

- name: Show the changes that would restore the hosts of cluster gpu
  dml.vsphere.esxi_profile:
    cluster: gpu
    host_profiles: "{{ before.profiles }}"
  check_mode: true
  diff: true
"""

RETURN = r"""
profiles:
  description: The profile that restores each host, by host name, as O(dml.vsphere.esxi_profile#module:host_profiles).
  returned: success
  type: dict
  sample: {esx01.lab: {pvrdma: {state: absent, close_firewall: true}}}
shared_settings:
  description: The options of M(dml.vsphere.shared_settings) that restore vCenter and the cluster's DRS.
  returned: success
  type: dict
  contains:
    vcenter_options: {description: Options of vCenter., type: dict}
    drs_options: {description: Options of the cluster's DRS; V(null) for one that was not set., type: dict}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.hosts.rollback import ways
from ..module_utils.vsphere import session

DEPOT = {key: {"type": "str", "required": True} for key in ("name", "version", "source")}
ARGUMENTS = {
    "evidence": {"type": "path", "required": True},
    "cluster": {"type": "str", "required": True},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "depots": {"type": "list", "elements": "dict", "default": [], "options": DEPOT},
}


def body(module: AnsibleModule) -> dict[str, Any]:
    params, file, cluster = module.params, module.params["evidence"], module.params["cluster"]
    document = ways.evidence_of(file, cluster)
    with session.session(params) as opened:
        identity = ways.cluster_identity(opened, cluster)
    return {"changed": False, **ways.plan(file, document, identity, params["depots"], params["hosts"])}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
