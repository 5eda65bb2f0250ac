#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: set options of a vCenter or a cluster that other users share."""

from __future__ import annotations

DOCUMENTATION = r"""
module: shared_settings
short_description: Set shared options of vCenter and of a cluster's DRS
version_added: 1.0.0
description:
  - Sets options that affect more than the hosts and workers of this collection. These are options of a whole vCenter,
    such as C(vgpu.hotmigrate.enabled), without which no virtual machine with a vGPU can move, and advanced options of
    a cluster's DRS, such as C(VgpuMMAutomationTimeoutSecs), with which DRS moves such machines off a host that is
    being emptied.
  - The module changes them only with O(allow_shared_settings=true). Without it, a run that would change an option
    fails, and the error names the old and the new values. Check mode shows the same.
  - RV(previous) has the form of the options; pass it to the module to restore the previous values.
  - Values are sent as the type that vCenter declares; text from templates is read as that type.
options:
  vcenter_options:
    description:
      - Options of vCenter and their values. V(null) leaves an option as it is, because vCenter does not remove options;
        a warning contains its value.
    type: dict
  cluster: {description: The cluster of O(drs_options)., type: str}
  drs_options:
    description: Advanced options of the cluster's DRS and their values. V(null) removes an option.
    type: dict
  allow_shared_settings: {description: Whether settings that others share may be changed., type: bool, default: false}
  instance_uuid:
    description:
      - The instance UUID of the vCenter from which the values were recorded. On another vCenter, the module fails.
    type: str
    default: ""
extends_documentation_fragment:
  - dml.vsphere.lock
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - vCenter stores DRS options as text. VMware's documents do not state their types; the vSphere Client enters them as
    text too.
seealso:
  - module: dml.vsphere.cluster_info
  - module: dml.vsphere.esxi_power
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Allow moves of virtual machines with a vGPU, and register the previous values
  dml.vsphere.shared_settings:
    vcenter_options:
      vgpu.hotmigrate.enabled: true
    cluster: gpu
    drs_options:
      VgpuMMAutomationTimeoutSecs: "-1"
    allow_shared_settings: true
  register: settings

- name: Restore the previous values
  dml.vsphere.shared_settings:
    vcenter_options: "{{ settings.previous.vcenter_options }}"
    cluster: gpu
    drs_options: "{{ settings.previous.drs_options }}"
    allow_shared_settings: true
"""

RETURN = r"""
previous:
  description:
    - The values before this call, in the form of the options; V(null) for an option that was not set.
      C(instance_uuid) is that of this vCenter.
  returned: success
  type: dict
  sample: {vcenter_options: {vgpu.hotmigrate.enabled: false}, drs_options: {VgpuMMAutomationTimeoutSecs: null}}
settings:
  description: One entry for vCenter and one for the cluster, for each that was given options.
  returned: always
  type: list
  elements: dict
  contains:
    object: {description: The vCenter or the cluster., type: str}
    changed: {description: Whether options were changed., type: bool}
    unmet: {description: "The changes that are not permitted, with old and new values.", type: list, elements: str}
    state: {description: The current options., type: dict}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.cluster.shared_settings import DrsOptions, VcenterOptions
from ..module_utils.errors import Refused
from ..module_utils.maintenance.lock import holder, own_lock
from ..module_utils.vsphere import session

ARGUMENTS = {
    "vcenter_options": {"type": "dict"},
    "cluster": {"type": "str"},
    "drs_options": {"type": "dict"},
    "allow_shared_settings": {"type": "bool", "default": False},
    "instance_uuid": {"type": "str", "default": ""},
    **own_lock.ARGUMENTS,
}


def subjects(opened: session.Session, params: runner.Params) -> runner.Result:
    allowed = params["allow_shared_settings"]
    found: dict[str, Any] = {}
    if params["vcenter_options"]:
        found["vcenter_options"] = VcenterOptions(opened, params["vcenter_options"], allowed=allowed)
    if params["drs_options"]:
        found["drs_options"] = DrsOptions(opened, params["cluster"], params["drs_options"], allowed=allowed)
    return found


def must_be(desired: str, opened: session.Session) -> str:
    """Return the instance UUID of this vCenter; raise an error if it is not the given one."""
    here = str(opened.content.about.instanceUuid)
    if desired and desired != here:
        reason = f"they were read in the vCenter with the instance UUID {desired}, and this one has {here}"
        raise Refused(opened.server, "set its recorded options", reason, "take the record of this vCenter")
    return here


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    with holder.marked(), session.session(params) as opened:
        here = must_be(params["instance_uuid"], opened)
        found = subjects(opened, params)
        # Options of vCenter belong to no cluster.
        force, check = params["force_unlock"], runner.only_plans(module)
        with own_lock.OwnLock(opened, params["cluster"] or "", force=force, check=check) as lock:
            guarded = [lock.guarded(one) if params["cluster"] else one for one in found.values()]
            result = runner.converge(module, runner.Work(subjects=guarded, refresh=lambda _subjects: None))
    settings = [{"object": one.pop("host"), **one} for one in result.pop("hosts")]
    previous = {key: one.previous or {} for key, one in found.items()}
    return {**result, "settings": settings, "previous": {**previous, "instance_uuid": here}}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **ARGUMENTS},
        supports_check_mode=True,
        required_by={"drs_options": ("cluster",)},
        required_one_of=[("vcenter_options", "drs_options")],
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
