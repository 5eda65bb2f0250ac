#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: read the settings and devices of ESXi hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: esxi_info
short_description: Read the GPU and RDMA settings of ESXi hosts
version_added: 1.0.0
description:
  - Reads versions, GPUs, RDMA cards and their traffic, network, VIBs, driver options, PVRDMA and the features that
    manage the hosts, from many hosts in one call, as plain data.
  - The module reads hosts in batches and in parallel. All properties of a batch are read together; the other calls for
    a host are one to reach esxcli, one for all kernel modules, two for the VIBs, and three for each RDMA device.
options:
  acceptance:
    description:
      - Whether the module also checks that the collection understands the answers of vCenter and of one connected host
        of each version and model. Other hosts give similar answers.
    type: bool
    default: false
  fail_unreachable:
    description:
      - Whether the module fails if vCenter cannot reach a host. In both cases, it returns all other hosts, and
        RV(unreachable_hosts) contains the name of the host.
    type: bool
    default: true
extends_documentation_fragment:
  - dml.vsphere.subjects
  - dml.vsphere.subjects.gather
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.attributes.info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read all groups of the hosts of cluster gpu
  dml.vsphere.esxi_info:
    cluster: gpu
  register: esxi

- name: Show the hosts that need a reboot, and the reasons
  ansible.builtin.debug:
    msg: "{{ item.host }}: {{ item.reboot_why | join('; ') }}"
  loop: "{{ esxi.hosts | selectattr('reboot_owed') }}"
  loop_control: {label: "{{ item.host }}"}

- name: Show the GPUs whose active type is not the configured one
  ansible.builtin.debug:
    msg: "{{ item.0.host }}, {{ item.1.address }}: {{ item.1.type }}, active {{ item.1.active_type }}"
  loop: "{{ esxi.hosts | subelements('gpus') }}"
  loop_control: {label: "{{ item.1.address }}"}
  when: item.1.type != item.1.active_type

- name: Read the RDMA counters, which distinguish RDMA from a silent fallback to TCP
  dml.vsphere.esxi_info:
    hosts: [esx01.lab, esx02.lab]
    gather: [rdma]
  register: rdma

- name: Show the bytes that each RDMA device sent
  ansible.builtin.debug:
    msg: "{{ item.0.host }}, {{ item.1.device }}: {{ item.1.counters.bytes_sent }}"
  loop: "{{ rdma.hosts | subelements('rdma_devices') }}"
  loop_control: {label: "{{ item.1.device }}"}
"""

RETURN = r"""
acceptance:
  description: The result of the check, in the form of M(dml.vsphere.site).
  returned: if O(acceptance)
  type: dict
unreachable_hosts:
  description: Hosts that vCenter cannot reach; only their connection state is returned.
  returned: always
  type: list
  elements: str
hosts:
  description: One entry for each host, without groups that were not requested or could not be read.
  returned: always
  type: list
  elements: dict
  contains:
    host: {description: The host., type: str}
    connection: {description: "V(connected), V(disconnected) or V(notResponding).", type: str}
    reachable: {description: Whether vCenter can reach it., type: bool}
    in_maintenance: {description: Whether it is in maintenance mode., type: bool}
    boot_time: {description: "The time of its last boot, in UTC.", type: str}
    reboot_owed: {description: Whether it must boot for the settings that were read to take effect., type: bool}
    reboot_why: {description: The reasons why the host must boot., type: list, elements: str}
    version: {description: The version of ESXi., type: str}
    build: {description: The build of ESXi., type: str}
    vendor: {description: The vendor of the host., type: str}
    model: {description: The host's model., type: str}
    uuid: {description: The UUID of the host's hardware., type: str}
    cluster: {description: Its cluster., type: str}
    image_managed:
      description: Whether a vLCM image manages the cluster; null if vCenter does not report it.
      type: bool
    configuration_profile:
      description: Whether a vSphere Configuration Profile manages the cluster; null if vCenter does not report it.
      type: bool
    host_profile: {description: The host profile that is attached to it or to its cluster., type: str}
    gpus:
      description:
        - Its NVIDIA GPUs. C(direct_path) has the mode of the GPU and the modes that it could have, in the names of the
          API; hosts before vSphere 9.1 do not report it (null).
      type: list
      elements: dict
      sample:
        - address: "0000:3b:00.0"
          name: NVIDIA Tesla T4
          memory_mb: 16384
          type: shared_direct
          active_type: shared
          passthrough: "off"
          direct_path: {mode: host, modes: [host, directPath, vGpuSameSize]}
          numa_node: 0
          vms: [worker01]
    graphics:
      description:
        - The configured and the active sharing of its GPUs, by GPU address for settings that can differ;
          C(profiles) are the vGPU profiles that it offers now.
      type: dict
    rdma_devices:
      description:
        - Its RDMA devices. C(counters) has the traffic of the device, C(uplink_counters) the other traffic of its card,
          both since the host booted. C(pfc) has the priorities with flow control from the DCB status of the card, null
          if its driver does not report any, with the reason in C(pfc_unknown). C(dcbx) has the mode of DCBX, with which
          the switch may have set them from ESXi 7 on, and whether the card is willing to adopt them; null if unknown.
          V(rdma_devices) of O(gather) leaves out all of these, which take calls for each device.
      type: list
      elements: dict
      sample:
        - device: vmrdma0
          uplink: vmnic2
          driver: nmlx5_rdma
          state: active
          mtu: 4096
          speed_mbps: 100000
          roce: true
          numa_node: 0
          pfc: [3]
          dcbx: {mode: ieee, willing: true}
          pfc_unknown: ""
          counters: {bytes_sent: 0, bytes_received: 0}
          uplink_counters: {bytes_sent: 0, bytes_received: 0}
    rdma_users: {description: The other users of the RDMA cards., type: list, elements: dict}
    uplinks: {description: Its network cards., type: list, elements: dict}
    switches: {description: Its virtual switches with their uplinks on this host., type: list, elements: dict}
    vmkernel: {description: "Its vmkernel adapters with MTU, address and services.", type: list, elements: dict}
    vibs:
      description: Packages of NVIDIA and of RDMA cards, those that run and those of the image for the next boot.
      type: dict
      sample:
        running:
          - name: nmlx5-core
            version: 4.23.6.2-1OEM.803.0.0.24022510
            vendor: NVIDIA
            acceptance_level: VMwareCertified
        pending: []
    kernel_modules:
      description:
        - By name, the drivers of its network cards and GPUs and every other module that has options;
          a module that is missing here has no options.
      type: dict
      sample:
        nmlx5_core:
          options: {pfctx: "0x08"}
          active: {}
          text: pfctx=0x08
          loaded: true
    pvrdma:
      description:
        - The tagged vmkernel adapter and the firewall ruleset; null if this ESXi does not have the option or the
          ruleset. C(firewall_allowed) is empty if the ruleset lets in all.
      type: dict
      sample: {vmk: vmk1, firewall_open: true, firewall_allowed: []}
    advanced_options:
      description: The values of those that O(profile.advanced_options) names; null for one that it does not have.
      type: dict
      sample: {Security.AccountLockFailures: 5}
    failed: {description: Whether it could not be read., type: bool}
    msg: {description: The reason in one sentence., type: str}
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.hosts import host_info, profile
from ..module_utils.vsphere import arguments, inventory, session

OPTIONS = {**host_info.OPTIONS, "acceptance": {"type": "bool", "default": False}}


def body(module: AnsibleModule) -> runner.Result:
    params, shared = module.params, module.params["profile"]
    own = arguments.by_name("host_profiles", profile.OPTIONS, params["host_profiles"])
    with session.session(params) as opened:
        hosts = inventory.find_hosts(opened, params, host_info.paths(params["gather"], [shared, *own.values()]))
        requested = {host.name: own.get(host.name, shared) for host in hosts.hosts}
        entries = host_info.gather(hosts, params["gather"], requested)
        result = host_info.result(entries, fail_unreachable=params["fail_unreachable"])
        return {**result, "acceptance": _acceptance(opened, params)} if params["acceptance"] else result


def _acceptance(opened: session.Session, params: runner.Params) -> runner.Result:
    # Imported here, because a module compiles its imports in each call, and only preflight uses these.
    from ..module_utils.site.acceptance import acceptance
    from ..module_utils.site.acceptance.reader import HOST_READERS

    request, scope = acceptance.host_request(opened, params), acceptance.full_scope()
    return acceptance.result(acceptance.AcceptanceRun(opened, request, scope, HOST_READERS))


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **inventory.ARGUMENTS, **profile.ARGUMENTS, **OPTIONS},
        supports_check_mode=True,
        required_one_of=inventory.EXACTLY_ONE,
        mutually_exclusive=inventory.EXACTLY_ONE,
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
