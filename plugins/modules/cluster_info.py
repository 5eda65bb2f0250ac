#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the facts of a cluster that matter for changes of its hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_info
short_description: Read the facts of a cluster that matter for changes of its hosts
version_added: 1.0.0
description:
  - Reads one cluster in few calls. The facts are high availability and its capacity, DRS, EVC, vSAN, alarms, running
    tasks, hosts out of service with the user who took them out, time, licences, versions and slots for virtual GPUs.
  - Returns how many hosts may be out of service at once, and, for the hosts in O(leaving), the reasons why they must
    not leave service now.
  - A value that the server does not report is V(null), not a guess.
  - With O(switch), it also reads the RDMA network of the cluster, in few calls for all hosts. That is a distributed
    switch, its port groups, and the RDMA cards, uplinks and vmkernel adapters of each host.
options:
  cluster: {description: Name of the cluster., type: str, required: true}
  leaving:
    description: Hosts that leave service next; RV(stops) lists the reasons that prevent it.
    type: list
    elements: str
    default: []
  max_out_of_service:
    description: The number of hosts that may be out of service at once, including those in O(leaving).
    type: int
    default: 1
  gather:
    description:
      - Facts that need more calls. V(clocks) compares every host's clock with vCenter's, in one call for each host.
        V(vms) lists the running virtual machines of all hosts with their devices, V(occupied) only the hosts with any.
    type: list
    elements: str
    choices: [clocks, occupied, vms]
    default: []
  switch:
    description: Name of the distributed switch of the RDMA network; empty means that the network is not read.
    type: str
    default: ""
  ping:
    description:
      - Whether the vmkernel adapters on O(switch) ping each other. On each port group, each pair of hosts sends and
        answers packets of the full MTU that must not be split, sixteen pairs at once.
      - A ping verifies that the adapters reach each other over IP. Only the counters of the cards show RDMA traffic.
    type: bool
    default: false
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.attributes.info
notes:
  - The failover capacity of HA is the capacity that its admission control reserves. A percentage is converted into a
    number of hosts as if all hosts were equal.
  - Slots for virtual GPUs are counted from the names of the profiles and the memory of the GPUs.
seealso:
  - module: dml.vsphere.esxi_info
  - module: dml.vsphere.esxi_power
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: May esx01 leave service now?
  dml.vsphere.cluster_info:
    cluster: gpu
    leaving: [esx01.example.com]
  register: gpu

- name: Stop if not
  ansible.builtin.assert:
    that: gpu.stops | length == 0
    fail_msg: "{{ gpu.stops | map(attribute='text') | join(' ') }}"

- name: Which hosts have free slots of each vGPU profile?
  ansible.builtin.debug:
    msg: "{{ item.profile }}: {{ item.hosts | selectattr('free') | map(attribute='host') | join(', ') }}"
  loop: "{{ gpu.cluster.gpu_slots }}"

- name: Fail unless all RDMA adapters of cluster gpu reach each other
  dml.vsphere.cluster_info:
    cluster: gpu
    switch: rdma
    ping: true
  register: rdma
  failed_when: rdma is failed or rdma.ping_error | length > 0
"""

RETURN = r"""
stops:
  description:
    - The reasons why the next hosts must not leave service now; empty if they may.
    - "The rules: V(red_alarm), V(vsan_resync), V(out_of_service) (by another user), V(taken_out) (a leaving host, by
      another user), V(not_responding), V(max_out_of_service), V(ha_capacity), V(gpu_slots), V(running_task),
      V(remediation)."
  returned: success
  type: list
  elements: dict
  contains:
    severity: {description: Always V(stop)., type: str}
    rule: {description: The rule., type: str}
    object: {description: The host or the cluster., type: str}
    text: {description: The reason as a sentence., type: str}
cluster:
  description: The cluster.
  returned: success
  type: dict
  contains:
    name: {description: Its name., type: str}
    id: {description: "The id of the cluster in vCenter, which stays the same when it is renamed.", type: str}
    vcenter: {description: "C(version), C(build), C(instance_uuid) and C(time) of vCenter.", type: dict}
    options: {description: "Options of vCenter for the collection, such as C(vgpu.hotmigrate.enabled).", type: dict}
    image_managed: {description: Whether vLCM keeps the hosts to an image., type: bool}
    configuration_profile: {description: Whether a configuration profile keeps the hosts' settings., type: bool}
    hosts:
      description:
        - "Its hosts: C(host), C(version), C(build), C(connection), C(maintenance), C(ours)."
        - C(device_classes) are the classes of its devices with Enhanced DirectPath I/O, by name, each with C(moves),
          whether virtual machines with these devices can move, and C(network_card).
      type: list
      elements: dict
    ha:
      description: "C(enabled), C(admission_control), C(policy), C(failover_hosts) and C(failover_hosts_now)."
      type: dict
    drs: {description: "C(enabled), C(behaviour), C(vmotion_rate) and C(options).", type: dict}
    evc: {description: The EVC mode., type: str}
    vsan: {description: "C(enabled) and C(resync_bytes).", type: dict}
    alarms:
      description: "Red and yellow alarms: C(object), C(alarm), C(status), C(since), C(acknowledged)."
      type: list
      elements: dict
    tasks: {description: "Running tasks: C(object), C(task), C(user), C(ours).", type: list, elements: dict}
    remediations:
      description:
        - "On a cluster that an image manages, the remediations by vLCM that run: C(user) and C(hosts)."
        - C(error) is the reason why they cannot be read.
      type: list
      elements: dict
    out_of_service:
      description: "Hosts out of service: C(host), C(why), C(ours) if a rollout took it out, C(by)."
      type: list
      elements: dict
    lock:
      description:
        - The holder of the lock of M(dml.vsphere.cluster_lock).
        - C(over) is the reason why the next run on this controller takes it over, if it does.
      type: dict
    licences:
      description:
        - "Licences of hosts and vCenter: C(object), C(name), C(edition), C(evaluation), C(expires), C(expired),
          C(features)."
      type: list
      elements: dict
    clocks: {description: "By host: C(running), C(servers), C(offset_seconds).", type: list, elements: dict}
    gpu_slots:
      description:
        - "Slots for virtual GPUs on hosts in service: C(profile), C(used), C(free), C(reserved), and C(hosts) with the
          same."
        - From vSphere 9.0 on, vCenter counts them. C(reserved) are slots of reservations that no virtual machine uses;
          before 9.0 it is 0.
      type: list
      elements: dict
    vms:
      description: "Running virtual machines: C(vm), C(host), C(folder), C(pool), C(owner), C(vgpus), C(fixed)."
      type: list
      elements: dict
    occupied: {description: "Hosts with running virtual machines.", type: list, elements: str}
    max_out_of_service: {description: "How many hosts may be out of service: C(allowed) and C(why).", type: dict}
fabric:
  description: The current RDMA network.
  returned: with O(switch)
  type: dict
  contains:
    switch: {description: "C(mtu), and whether it is C(ours); V(null) without a switch.", type: dict}
    port_groups: {description: "By name the C(vlan), V(null) for a trunk, and whether it is C(ours).", type: dict}
    hosts:
      description:
        - By host its C(uplinks) on the switch, its C(rdma) devices, its C(adapters) by port group, what of them this
          collection C(built), and the adapter that is C(tagged) for PVRDMA.
      type: dict
    machines: {description: "The virtual machines on the port groups.", type: list, elements: dict}
    removal:
      description:
        - Whether M(dml.vsphere.rdma_fabric) with V(absent) removes the C(switch), and which C(port_groups). C(in_use)
          are the hosts and adapters that prevent it, C(shared_with) the hosts of other clusters for which it stays.
      type: dict
pings:
  description: One entry for each ping between two adapters.
  returned: with O(switch)
  type: list
  elements: dict
  contains:
    port_group: {description: The port group., type: str}
    host: {description: The host that sent the ping., type: str}
    device: {description: The adapter of that host., type: str}
    peer: {description: The host that was pinged., type: str}
    address: {description: The address that was pinged., type: str}
    size: {description: The payload of a packet in bytes., type: int}
    sent: {description: Packets sent., type: int}
    received: {description: Answers received., type: int}
    reached: {description: Whether every packet was answered., type: bool}
    text: {description: The ping as one line., type: str}
    said: {description: The error if there was no answer., type: str}
ping_error:
  description: The pings without all answers as one error; empty if every ping was answered.
  returned: with O(switch)
  type: str
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.cluster import cluster_info
from ..module_utils.fabric import pings
from ..module_utils.fabric.fabric import Fabric
from ..module_utils.fabric.fabric_spec import FabricSpec
from ..module_utils.maintenance import stop_rules
from ..module_utils.vsphere import session
from ..module_utils.vsphere.arguments import require_positive

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "leaving": {"type": "list", "elements": "str", "default": []},
    "max_out_of_service": {"type": "int", "default": 1},
    "gather": {"type": "list", "elements": "str", "choices": list(cluster_info.GATHER), "default": []},
    "switch": {"type": "str", "default": ""},
    "ping": {"type": "bool", "default": False},
}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    require_positive(params, ["max_out_of_service"])
    leaving = stop_rules.LeavingHosts(tuple(params["leaving"]), params["max_out_of_service"])
    with session.session(params) as opened:
        facts = cluster_info.ClusterReader(opened, params["cluster"])
        facts.must_have(leaving.hosts)
        cluster = facts.read(params["gather"])
        network = rdma_network(opened, params) if params["switch"] else {}
    return {"changed": False, "cluster": cluster, "stops": stop_rules.stops(cluster, leaving), **network}


def rdma_network(opened: session.Session, params: runner.Params) -> runner.Result:
    """Return the RDMA network of the cluster, and the pings between its adapters."""
    fabric = Fabric(opened, FabricSpec(params["cluster"], params["switch"]))
    info = fabric.info()
    adapters = {name: host["adapters"] for name, host in info["hosts"].items()}
    planned = pings.pings_of_pairs(adapters, list(info["port_groups"])) if params["ping"] else []
    answers = pings.send_pings(fabric.hosts, planned)
    error = pings.reach_error(params["cluster"], params["switch"], answers)
    return {"fabric": info, "pings": answers, "ping_error": error}


def main() -> None:
    module = AnsibleModule(argument_spec={**session.arguments(), **ARGUMENTS}, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
