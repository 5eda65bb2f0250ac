#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a whole desired profile over many ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_profile
short_description: Bring ESXi hosts to a whole profile in one call
version_added: 1.0.0
description:
  - Plans, and applies, everything that a host should be in one call over many hosts.
    In check mode the result is the plan of every host, with the number of reboots that it needs and why.
  - One call applies what the running boot can take. What needs an earlier boot is left for the next call.
    The module itself never empties or reboots a host; M(dml.vsphere.esxi_power) does.
options:
  profile:
    description: What every host should be. Subjects that are not named are left alone.
    type: dict
    default: {}
    suboptions:
      kernel_modules:
        description: Options of kernel modules, as M(dml.vsphere.esxi_kernel_module) takes them.
        type: list
        elements: dict
        default: []
        suboptions:
          name: {description: The kernel module., type: str, required: true}
          options: {description: Its options and their values., type: dict, required: true}
          exact: {description: Whether to remove all options that are not named., type: bool, default: false}
  host_profiles:
    description: Hosts that should be something else, each with a profile of its own in place of O(profile).
    type: dict
    default: {}
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: What would change, and how often must each host boot?
  dml.vsphere.esxi_profile:
    cluster: gpu
    profile:
      kernel_modules:
        - name: nmlx5_core
          options: {max_vfs: 8}
  check_mode: true
  register: plan

- name: Show the hosts that need a reboot
  ansible.builtin.debug:
    msg: "{{ plan | community.general.json_query('hosts[?reboots > `0`].[host, reboots, why]') }}"
"""

RETURN = r"""
needs:
  description: What must happen until all hosts are in force.
  returned: success
  type: list
  elements: str
  sample: [maintenance, reboot]
hosts:
  description: One entry for each host.
  returned: always
  type: list
  elements: dict
  contains:
    host: {description: The host., type: str}
    changed: {description: Whether it was changed., type: bool}
    needs: {description: What must happen until the profile is in force., type: list, elements: str}
    reboots: {description: How often it must boot until then., type: int}
    why: {description: "Why, in words.", type: list, elements: str}
    unmet: {description: What prevents applying the rest right now., type: list, elements: str}
    state: {description: The state of every part., type: dict}
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils import runner
from ..module_utils.errors import Refused
from ..module_utils.esxi import parts
from ..module_utils.esxi.profile import Profile
from ..module_utils.vsphere import fleet, session

ARGUMENTS = {
    "profile": {"type": "dict", "default": {}, "options": parts.OPTIONS, "apply_defaults": True},
    "host_profiles": {"type": "dict", "default": {}},
}


def own_profile(host: str, profile: dict[str, Any]) -> dict[str, Any]:
    checked = ArgumentSpecValidator(parts.OPTIONS).validate(profile)
    if checked.error_messages:
        raise Refused(f"host_profiles of {host}", "read it", "; ".join(checked.error_messages), "correct it")
    return dict(checked.validated_parameters)


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    own = {host: own_profile(host, profile) for host, profile in params["host_profiles"].items()}
    with session.session(params) as opened:
        hosts = fleet.find(opened, params, parts.PATHS)
        profiles = [Profile(host, parts.parts_of(host, own.get(host.name, params["profile"]))) for host in hosts.hosts]
        return runner.converge(module, runner.Work(subjects=profiles, refresh=hosts.refresh_for))


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **fleet.ARGUMENTS, **ARGUMENTS},
        supports_check_mode=True,
        required_one_of=fleet.EXACTLY_ONE,
        mutually_exclusive=fleet.EXACTLY_ONE,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
