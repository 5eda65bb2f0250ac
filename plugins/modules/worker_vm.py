#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: worker VMs with the hardware that training needs."""

from __future__ import annotations

DOCUMENTATION = r"""
module: worker_vm
short_description: Build worker VMs with GPUs and RDMA, many in one call
version_added: 1.0.0
description:
  - Configures many virtual machines in one call with the hardware that distributed training needs. The module clones
    each missing worker, places it on a host with the requested resources, reconfigures it once, and starts it.
  - The module finds hosts for all workers before the first write. If no host offers a profile, or there are not enough
    free slots, it refuses the whole call and reports the profiles of each host and the virtual machines on its GPUs.
  - The module manages only options that are set. Changes that vSphere allows only while a machine is powered off are
    made to a running machine only with O(power_cycle).
  - Workers have a mark, the custom attribute C(dml.vsphere.worker), a JSON text with C(name), C(uuid), C(cluster),
    C(tenant), C(role), and C(built), which is V(true) if this collection built the machine. Machines without the mark
    are not changed.
  - The advanced setting C(dml.vsphere.confirmation) of the machine confirms the mark, because a user of vCenter who may
    only set custom attributes can write a mark on any machine. The module refuses a machine whose mark is unconfirmed,
    such as a worker of an earlier release, unless O(adopt), and never deletes it.
  - The mark is the identity. The machine with the instance UUID in its mark is the worker, whatever its name and folder
    are; the module warns if it was renamed or moved (O(put_back)). A clone of a worker has the worker's mark, but
    another instance UUID. The module reports such copies in the warnings.
  - After a restore from a backup, it is possible that no machine has the UUID in the mark. Then the machine with the
    worker's name is the worker, and gets a new mark with O(adopt). If one machine has the UUID and another the name, or
    if a missing worker may be a running machine with another name, the module refuses the call and names the machines.
  - The next run continues the work of a run that was killed.
options:
  cluster: {description: The cluster in which the workers run., type: str, required: true}
  state:
    description:
      - V(absent) deletes workers that this collection built, and removes the mark of adopted ones (O(adopt)).
        A foreign disk is detached and its file stays. A disk is foreign if this collection did not clone or create it,
        if it is a first class disk such as a volume of Kubernetes, or if several virtual machines share it. Workers
        record their disks in the advanced setting C(dml.vsphere.disks). Earlier versions recorded none. For a worker
        that they built, V(absent) deletes only the disk with the name of the virtual machine. Run the module with
        V(present) and O(workers[].disks_gb) first, which records the disks of these sizes.
        Machines without the mark are not changed. With V(absent), only O(workers[].name) of each worker is used.
    type: str
    choices: [present, absent]
    default: present
  defaults:
    description: Options for all workers; the same as those of a worker, without a name.
    type: dict
    suboptions: &options
      template:
        description:
          - The template from which a missing worker is cloned, as the name of a template or virtual machine. One in
            a content library is a mapping with C(library) and C(item).
          - An item that is a VM template is cloned as it is. An OVF item is deployed once for each cluster and version,
            as a template with a name that begins with C(dml-), and the workers are cloned from it. It is deleted
            with the last worker of the cluster. The files of a subscribed library are synchronized first.
          - For an OVF item, the mapping may have C(accept_eula), which accepts all its licence agreements, C(networks),
            port groups by the names of its networks (by default the port group of the management NIC), C(properties),
            values by the identifiers of its properties, which the guests can read, and C(disk_format), one of V(thin),
            V(thick) and V(eagerZeroedThick).
          - A clone of an encrypted template is encrypted, and a clone of a template with a virtual TPM gets a new TPM.
            The module refuses both if vCenter has no key provider.
          - Workers record the version of the item. The module warns if the item has another version than an existing
            worker, and does not change the worker.
        type: raw
      clone:
        description: Whether a clone has its own disks, or shares those of a snapshot. By default V(full).
        type: str
        choices: [full, linked]
      snapshot: {description: The snapshot of a linked clone; by default the current snapshot., type: str}
      folder:
        description: The folder of a new worker; by default the template's. For existing workers see O(put_back).
        type: str
      resource_pool:
        description: The resource pool of a new worker; by default the root pool of the cluster.
        type: str
      datastore:
        description:
          - The datastore of a new worker, or a datastore cluster, of which vCenter recommends one. By default it
            is the template's. The module refuses workers for which it has no room.
        type: str
      storage_policy:
        description:
          - The name of the storage policy of the home and of all disks of the worker. The module refuses a datastore
            that the policy does not allow for a new worker, sets the policy of an existing one, and warns if it does
            not comply.
        type: str
      host:
        description: The host on which the worker must run. The module moves a worker that is on another host.
        type: str
      cpus: {description: Number of virtual CPUs., type: int}
      cores_per_socket: {description: "Cores of each virtual socket; they must divide O(workers[].cpus).", type: int}
      memory_mb: {description: "Memory in MB, a multiple of 4.", type: int}
      reserve_memory:
        description:
          - Whether all memory is reserved and the reservation follows the size, which vSphere requires for GPUs and
            PVRDMA. By default V(true); V(false) leaves the reservation as it is.
        type: bool
      numa:
        description: Advanced settings that start with C(numa.), without that prefix, such as C(nodeAffinity).
        type: dict
      latency_sensitivity:
        description: V(high) also reserves the CPUs, as vSphere requires.
        type: str
        choices: [normal, high]
      firmware:
        description: The required firmware of the template. It is only checked; an installed system cannot change it.
        type: str
        choices: [bios, efi]
      vmotion_encryption:
        description:
          - Whether the moves of the worker are encrypted. V(opportunistic), the default of vSphere, encrypts them if
            both hosts support it. With V(required), the worker does not move to a host without that support. Workers
            that are encrypted or have a virtual TPM always move encrypted, and other values are refused for them.
        type: str
        choices: [required, opportunistic, disabled]
      gpus:
        description:
          - All GPUs of the worker; an empty list removes them. Each entry has one of C(profile), C(group),
            C(device), C(label), or C(address).
        type: list
        elements: dict
        suboptions:
          profile:
            description: A vGPU profile that the host offers, such as V(grid_t4-16c), including MIG-backed profiles.
            type: str
          group:
            description:
              - A device group, with which vSphere 8 provides GPUs connected with NVLink, such as
                V(Nvidia:2@grid_a100-40c%NVLink).
            type: str
          device:
            description: A GPU in passthrough by C(vendor:device), such as V(10de:20f1); any free match on the host.
            type: str
          label: {description: A GPU in passthrough by its hardware label; any free match on the host., type: str}
          device_class:
            description:
              - A device with Enhanced DirectPath I/O by the name of its class in C(hardware.dvxClasses) of the host;
                any free match on the host. It requires vSphere 8.0.
              - The worker can move if both hosts report checkpoints for the class. Its memory is unknown, so set
                O(workers[].gpus[].memory_gb) or O(workers[].mmio_gb).
              - Devices of other classes are removed from the worker.
            type: str
          address: {description: "A GPU in passthrough by its PCI address. Requires O(workers[].host).", type: str}
          count: {description: Number of such GPUs., type: int, default: 1}
          memory_gb:
            description: The memory of one GPU in GB, if neither the host nor the name of the GPU reports it.
            type: int
      mmio_gb:
        description:
          - The size of the 64-bit MMIO window. By default, if O(workers[].gpus) is set, it is the memory of all GPUs,
            rounded up to a power of two and doubled.
        type: int
      vgpu_unified_memory:
        description:
          - Whether the vGPUs of the worker have CUDA's unified memory (C(pciPassthruN.cfg.enable_uvm)), which NCCL from
            2.23.4 to 2.31.2 requires.
          - vSphere does not move a running worker whose vGPUs have unified memory. The plan contains a warning.
          - A running worker is shut down for the change, see O(power_cycle).
        type: bool
      rdma_nics:
        description:
          - All RDMA NICs of the worker, by default PVRDMA NICs; an empty list removes them. The module removes all
            other NICs that are for PVRDMA or devices of a class.
          - The module asks the host how many PVRDMA NICs, vGPUs and passthrough devices the virtual hardware of the
            worker supports, and refuses more. One PVRDMA NIC needs hardware 13, several need hardware 19.
          - A list replaces that of O(defaults).
          - A running worker is shut down to add, change or remove a NIC, see O(power_cycle).
        type: list
        elements: dict
        suboptions:
          portgroup:
            description: A port group of the distributed switch for RDMA; with C(device_class), of any switch.
            type: str
          mac: {description: Its MAC address., type: str}
          protocol:
            description:
              - The version of RoCE, the same for all workers. By default V(rocev2).
              - The virtual hardware of the template must be 13 or later, for V(rocev2) 14.
              - V(rocev1) is refused on hosts with version 9.0 or later, which removed it.
            type: str
            choices: [rocev1, rocev2]
          device_class:
            description:
              - The name of a class in C(hardware.dvxClasses) of the host whose devices are network cards. The NIC is
                then a virtual function with Enhanced DirectPath I/O instead of PVRDMA. It requires vSphere 8.0.
              - The worker can move if both hosts report checkpoints for the class.
            type: str
      management_nic:
        description: The first NIC that is not for RDMA; the module adds it if there is none.
        type: dict
        suboptions:
          portgroup:
            description:
              - A port group or network of the cluster. A segment of NSX is a port group of its switch.
              - C(SWITCH/PORTGROUP) names one of several port groups with that name, as a segment has on two switches.
            type: str
          mac: {description: Its MAC address., type: str}
      disks_gb:
        description: The sizes of its disks, but for foreign ones. Disks grow and are added, never shrink, never go.
        type: list
        elements: int
      guest:
        description:
          - The data for cloud-init in the guest, passed in C(guestinfo). New NICs then get manual MAC addresses,
            because this data contains them before the NICs exist. The module derives them from the worker's name,
            within VMware's range for manual addresses.
          - After a later change, cloud-init treats the guest as a new machine at its next boot.
        type: dict
        suboptions:
          hostname: {description: The host name of the system; by default the worker's name., type: str}
          address:
            description:
              - The address of the management NIC with its prefix length, or V(dhcp), which is the default. Addresses
                are set only if O(workers[].management_nic) is set.
            type: str
          gateway: {description: The default gateway., type: str}
          dns: {description: Name servers., type: list, elements: str}
          rdma_addresses:
            description:
              - The addresses of O(workers[].rdma_nics) with their prefix lengths, one for each NIC in the same order.
                Choose a separate network for each NIC.
            type: list
            elements: str
          rdma_mtu: {description: The MTU of the RDMA NICs; by default 9000., type: int}
          user: {description: "A user with sudo, who gets the SSH keys.", type: str}
          ssh_keys: {description: Public SSH keys of that user., type: list, elements: str}
      annotation: {description: The note that the vSphere Client shows., type: str}
      tenant: {description: "The tenant of the worker, for the mark.", type: str}
      role: {description: "The role of the worker, for the mark. By default V(worker).", type: str}
      power: {description: Whether the worker runs. By default V(on)., type: str, choices: ["on", "off"]}
  workers:
    description:
      - The workers. Options that are not set come from O(defaults), for the management NIC and guest key by key.
    type: list
    elements: dict
    required: true
    suboptions:
      <<: *options
      name: {description: The name of the virtual machine., type: str, required: true}
  hosts:
    description: The hosts on which the workers may run; by default all hosts of the cluster.
    type: list
    elements: str
  to_come:
    description:
      - Objects that will be prepared before the workers are built. Check mode plans as if they existed; a real run
        is refused without them.
    type: dict
    suboptions:
      port_groups:
        description: Port groups that M(dml.vsphere.rdma_fabric) builds.
        type: list
        elements: str
        default: []
      gpus:
        description: Whether M(dml.vsphere.esxi_profile) will prepare the hosts for vGPUs or GPU passthrough.
        type: bool
        default: false
  one_per_host:
    description: Whether each worker has a separate host. Workers of the cluster that are not in this call count too.
    type: bool
    default: true
  same_numa_node:
    description:
      - Whether GPU and RDMA NIC must be on the same NUMA node, if the host reports their nodes. The host itself chooses
        the GPU of a vGPU, so V(require) allows only hosts whose shared GPUs are all on the node of the RDMA NIC.
      - For a worker with several RDMA NICs, each GPU must be on the node of one of the host's RDMA NICs. The host
        itself chooses the device of a class, and does not report its node.
    type: str
    choices: [require, prefer, ignore]
    default: prefer
  allow_moves:
    description:
      - Whether the module may move running workers to other hosts with vMotion, to make room for the workers of this
        call. As few workers as possible move. If false, the module refuses such a call and names the moves.
      - A worker whose O(workers[].host) or O(hosts) excludes its current host moves without this option.
    type: bool
    default: false
    version_added: 1.0.0
  adopt:
    description:
      - Whether the module takes over a virtual machine with that name that this collection did not build, or whose mark
        is unconfirmed. V(absent) only removes its mark.
    type: bool
    default: false
  put_back:
    description:
      - Whether the module restores the name and the O(workers[].folder) of a worker that was renamed or moved. By
        default it only warns.
    type: bool
    default: false
  power_cycle:
    description:
      - Whether running workers may be shut down, for changes that need it, for O(workers[].power=off) and for
        V(absent), which without this option refuses suspended workers too.
    type: bool
    default: false
  wait_for_address:
    description: Whether to wait, after starting a worker, until its guest reports an address.
    type: bool
    default: true
  clone_timeout: {description: "Seconds for a clone, a move, or a deletion.", type: int, default: 3600}
  power_timeout:
    description: Seconds for the start, and for the shutdown of the guest.
    type: int
    default: 300
  force_off:
    description:
      - Whether a worker is powered off whose guest never had VMware Tools, or does not shut down within
        O(power_timeout). Otherwise, the module fails and names the worker.
    type: bool
    default: true
  address_timeout: {description: Seconds to wait for the guest's address., type: int, default: 600}
extends_documentation_fragment:
  - dml.vsphere.progress
  - dml.vsphere.connection
  - dml.vsphere.attributes
notes:
  - The module calculates free slots for vGPUs from the names of the profiles and the memory of the GPUs. vCenter
    decides when a worker is powered on.
seealso:
  - module: dml.vsphere.esxi_graphics
  - module: dml.vsphere.esxi_passthrough
  - module: dml.vsphere.esxi_pvrdma
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Build four workers with one T4 each, as a vGPU, and PVRDMA
  dml.vsphere.worker_vm:
    cluster: gpu
    defaults:
      template: ubuntu-2204
      cpus: 16
      memory_mb: 65536
      gpus: [{profile: grid_t4-16c}]
      rdma_nics: [{portgroup: rdma-vm}]
      management_nic: {portgroup: VM Network}
      guest:
        gateway: 10.0.1.1
        user: ubuntu
        ssh_keys: ["{{ lookup('ansible.builtin.file', '~/.ssh/id_ed25519.pub') }}"]
    workers:
      - {name: worker01, guest: {address: 10.0.1.11/24, rdma_addresses: [10.216.1.11/24]}}
      - {name: worker02, guest: {address: 10.0.1.12/24, rdma_addresses: [10.216.1.12/24]}}
      - {name: worker03, guest: {address: 10.0.1.13/24, rdma_addresses: [10.216.1.13/24]}}
      - {name: worker04, guest: {address: 10.0.1.14/24, rdma_addresses: [10.216.1.14/24]}}
  register: built

- name: Show the host, the GPUs and the address of each worker
  ansible.builtin.debug:
    msg: "{{ built.state_lines }}"

- name: Build a worker with an A100 in passthrough and reserved CPUs
  dml.vsphere.worker_vm:
    cluster: hpc-a100
    same_numa_node: require
    workers:
      - name: big01
        template: ubuntu-2204-efi
        firmware: efi
        latency_sensitivity: high
        gpus: [{device: "10de:20f1"}]

- name: Build a worker with two GPUs and two ConnectX-7 network cards, of which each has its network
  dml.vsphere.worker_vm:
    cluster: hpc-h100
    workers:
      - name: wide01
        template: ubuntu-2404-efi
        gpus: [{device: "10de:2330", count: 2}]
        rdma_nics: [{portgroup: rail0, device_class: connectx7}, {portgroup: rail1, device_class: connectx7}]
        management_nic: {portgroup: VM Network}
        guest: {rdma_addresses: [10.216.0.11/24, 10.216.1.11/24]}

- name: Build two workers that share a GPU
  dml.vsphere.worker_vm:
    cluster: gpu
    one_per_host: false
    defaults: {template: ubuntu-2204, host: esx01.example.com, gpus: [{profile: grid_t4-8c}]}
    workers: [{name: half01}, {name: half02}]

- name: Build a worker from an OVF item of a content library
  dml.vsphere.worker_vm:
    cluster: gpu
    workers:
      - name: deep01
        template:
          library: deep-learning
          item: deep-learning-vm
          accept_eula: true
          properties: {user-data: "{{ lookup('ansible.builtin.file', 'cloud-init.yml') | b64encode }}"}
        datastore: vsan01
        gpus: [{profile: grid_a100-40c}]
        management_nic: {portgroup: VM Network}

- name: Delete the workers
  dml.vsphere.worker_vm:
    cluster: gpu
    state: absent
    power_cycle: true
    workers: [{name: half01}, {name: half02}]
"""

RETURN = r"""
needs:
  description: V(power_off) if a worker must be powered off for its changes.
  returned: success
  type: list
  elements: str
workers:
  description: One entry for each worker.
  returned: always
  type: list
  elements: dict
  contains:
    name: {description: The worker., type: str}
    changed: {description: Whether it was changed., type: bool}
    needs: {description: V(power_off) if it must be powered off for that., type: list, elements: str}
    why: {description: "The reasons of the changes.", type: list, elements: str}
    unmet: {description: The reasons that prevent the change now., type: list, elements: str}
    warnings: {description: Warnings about the worker., type: list, elements: str}
    state:
      description: The state of the worker; in check mode, the planned state.
      type: dict
      contains:
        exists: {description: Whether it exists., type: bool}
        name: {description: The name that vCenter shows., type: str}
        folder: {description: "Its folder, if O(workers[].folder) is set.", type: str}
        host: {description: The host that it is on., type: str}
        power: {description: V(on) or V(off)., type: str}
        template:
          description: "The item of a content library of which it was made: library, item, id, version."
          type: dict
        encrypted: {description: Whether the home or a disk of the worker is encrypted., type: bool}
        vtpm: {description: "Whether it has a virtual TPM, for which its home is encrypted.", type: bool}
        vmotion_encryption: {description: The encryption of its moves., type: str}
        storage_policy:
          description: "O(workers[].storage_policy) if the home and all disks of the worker have it, otherwise V(null)."
          type: str
        storage_compliance: {description: "Its compliance with O(workers[].storage_policy).", type: str}
        address: {description: The address that its guest reports., type: str}
        gpus: {description: "Its GPUs: profiles, groups, or PCI devices.", type: list, elements: str}
        mmio_gb: {description: Its 64-bit memory window., type: int}
        vgpu_unified_memory: {description: Whether its vGPUs have unified memory., type: bool}
        rdma_nics:
          description: "Its RDMA NICs: portgroup, mac, connected, and protocol or device_class."
          type: list
          elements: dict
        management_nic: {description: "Its management NIC: portgroup, mac, connected.", type: dict}
        disks_gb: {description: "The sizes of its disks, but for foreign ones.", type: list, elements: int}
        disks_recorded: {description: Whether the worker records which disks are its own., type: bool}
        cpu_reserved_mhz: {description: The reserved CPU., type: int}
        memory_reserved: {description: Whether all memory is reserved., type: bool}
        numa: {description: Its NUMA settings., type: dict}
        guest: {description: The data for cloud-init., type: dict}
        mark: {description: Its mark., type: dict}
        confirmed: {description: Whether the machine itself confirms its mark., type: bool}
      sample:
        exists: true
        host: esx01.example.com
        power: "on"
        gpus: [grid_t4-16c]
templates:
  description: "The templates that are made of items of content libraries, or deleted: C(name), C(changed), C(state)."
  returned: success
  type: list
  elements: dict
plan_lines:
  description: The changes of each worker with their reasons, as lines of text.
  returned: success
  type: list
  elements: str
  sample: ["worker01: changes", "    is cloned from debian-12 to esx01.lab"]
state_lines:
  description: The host, the GPUs and the address of each worker, as lines of text.
  returned: success
  type: list
  elements: str
  sample: ["worker01: runs on esx01.lab, grid_t4-16c, 10.0.1.11"]
"""

from collections.abc import Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import progress, runner
from ..module_utils.maintenance.lock import holder, keeper
from ..module_utils.vsphere import session
from ..module_utils.workers import library_templates, worker_spec
from ..module_utils.workers.absent_worker import AbsentWorker
from ..module_utils.workers.placement import worker_plan
from ..module_utils.workers.worker import Worker
from ..module_utils.workers.worker_set import WorkerSet, context_of


def body(module: AnsibleModule) -> runner.Result:
    specs, options = worker_spec.worker_specs_of(module.params), worker_spec.set_options_of(module.params)
    with holder.marked(), session.session(module.params) as opened, keeper.renewing(opened):
        context = context_of(opened, options, progress.Progress(module.params["progress_file"]).report, specs)
        workers = WorkerSet(context)
        if options.state == "absent":
            gone = [AbsentWorker(context, spec) for spec in specs]
            done = runner.converge(module, runner.Work(subjects=gone, refresh=workers.refresh))
            unused = [] if done.get("failed") else library_templates.unused(context)
            return by_worker(done, runner.converge(module, runner.Work(subjects=unused, refresh=lambda _unused: None)))
        subjects = [Worker(context, spec, workers.assignments[spec.name]) for spec in specs]
        work = runner.Work(subjects=subjects, refresh=workers.read, first=workers.makes_room)
        return _built(module, workers, work)


def _built(module: AnsibleModule, workers: WorkerSet, work: runner.Work) -> runner.Result:
    """Deploy the missing templates of content libraries, after all options were checked, and build the workers."""
    if not workers.templates.named:
        return by_worker(runner.converge(module, work))
    planned = runner.converge(runner.OfPlan(), work)
    if planned.get("failed"):
        return by_worker(planned)
    missing = workers.templates.to_deploy()
    made = runner.converge(module, runner.Work(subjects=missing, refresh=lambda _missing: None))
    return by_worker({**planned, **made} if made.get("failed") else runner.converge(module, work), made)


def by_worker(result: Mapping[str, Any], of_templates: Mapping[str, Any] | None = None) -> runner.Result:
    """Return the runner's results, their entries listed as workers and templates, and as lines of text."""
    workers, templates = _entries(result), _entries(of_templates or {"hosts": []})
    listed = {**{key: value for key, value in result.items() if key != "hosts"}, "workers": workers}
    listed.update({"templates": templates, "changed": any(one.get("changed") for one in (*workers, *templates))})
    listed["diff"] = [*((of_templates or {}).get("diff") or []), *(result.get("diff") or [])]
    if result.get("failed"):
        return listed
    lines = worker_plan.as_lines(workers)
    return {**listed, **lines, "plan_lines": [*worker_plan.changes(templates), *lines["plan_lines"]]}


def _entries(result: Mapping[str, Any]) -> list[dict[str, object]]:
    return [{"name": entry["host"], **{k: v for k, v in entry.items() if k != "host"}} for entry in result["hosts"]]


def main() -> None:
    arguments = {**session.arguments(), **worker_spec.OPTIONS, **progress.ARGUMENTS}
    module = AnsibleModule(argument_spec=arguments, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
