#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: one check of a node. Its code is the action plugin of the same name, which runs on the controller."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_check
short_description: Compare the observed state of a node with the desired state
version_added: 1.0.0
description:
  - Compares the output of programs on a node with the desired state, and returns facts and one sentence for each
    misfit. The module fails if there are misfits, unless O(fail) is V(false).
  - The module runs on the controller, without connections and without writes. The roles for nodes end with a check.
options:
  kind:
    description:
      - The kind of check. Each kind uses keys of O(found) and of O(desired).
      - V(packages) takes C(installed), lines C(NAME VERSION installed), and optionally C(held), lines of the package
        manager; and wants C(packages). Its facts contain C(replaced), the packages with another version.
      - V(python_packages) takes C(listed), the output of C(pip list --format json), and wants C(packages).
      - V(repositories_wanted) wants C(repositories) and C(keys), and checks that each has an address and a key.
      - V(apt_repositories) and V(dnf_repositories) take C(update), the result of reading all lists, and C(targets) of
        C(apt-get indextargets), or C(enabled) of C(dnf repolist), as lines; and want C(repositories) and C(only).
      - V(kubernetes_node) takes C(node), the object of Kubernetes, C(limits), the limits of the container runtime's
        process, C(local), local facts, and C(devices), the paths of C(uverbs); and wants C(name), C(runtime),
        C(memlock) and C(resources). Its facts have the C(labels).
      - V(kernel_settings) takes C(sysctls), lines of C(sysctl), and wants C(sysctls).
      - V(node) takes C(sysctls), C(limits), and C(ssh) and C(sshd), the output of C(ssh -G) and C(sshd -T); and wants
        C(sysctls), C(limits) and C(stun_seconds), the seconds for which each timer must wait for a silent peer.
      - V(node_peers) takes C(known_hosts), the text of that file of the node, and wants C(peers), the C(inventory), a
        list of its hosts, and the options C(limit) and C(guests) of the run. It has a misfit if these leave out peers.
      - V(gpu_driver) takes the result of C(nvidia-smi -q), and wants C(driver), C(gpus), C(licensed) and C(persistent).
      - V(gpu_health) takes C(smi), the output of C(nvidia-smi -q -x), or C(failure), its error, and C(log), the lines
        of the kernel log, or V(null) if they cannot be read; or it takes C(error) if nothing could be read. It may take
        C(diagnostic), the output of C(dcgmi diag -r 1 -j). It wants C(since), the time from which errors in the log
        count, and C(idle), whether no process should use the GPUs. Its facts have the C(notes).
      - V(gpudirect) takes C(gpudirect) and C(dma_buf), CUDA's attributes 116 and 124 of each GPU, and C(modules), the
        loaded modules of the kernel. It has a misfit if the GPUs do not support GPUDirect RDMA, or if the node has
        neither C(nvidia_peermem) nor DMA-BUF.
      - V(memory_pools) takes C(pools), CUDA's attribute 115 of each GPU, and C(nccl), the number of the version that
        C(ncclGetVersion) returns. It has a misfit if this NCCL needs memory pools that a GPU does not have.
      - V(cuda) takes C(reported), JSON with the versions that nvcc, cuDNN and NCCL report, and wants C(versions) and
        C(devices), V(-1) for no check of devices.
      - V(docker) takes C(info), the JSON of C(docker info), and C(settings), the text of C(daemon.json); and wants
        C(version), C(nvidia), C(nvidia_default), C(mirrors) and C(settings). Its facts have the merged C(settings).
      - V(docker_change) takes C(docker), the facts of V(docker), and C(stale), and wants C(version). It has a misfit if
        the change would stop containers.
      - V(container_gpus) takes C(inside) and C(outside), the output of C(nvidia-smi -L), and wants C(gpus), a number.
      - V(rdma) takes C(rows), lines of JSON with the GIDs of all devices, and wants C(type), C(addresses), C(mtu) and
        C(driver). Its facts have the C(gids), one for each address.
      - V(rdma_bandwidth) takes C(from), C(to), C(output) and C(error) of C(ib_write_bw), and wants C(gbits).
      - V(rdma_mtu) takes C(address) and C(lost), the nodes that did not answer unsplit packets of the MTU.
      - V(openmpi) takes C(timers), C(version) and C(run), the result of C(mpirun), and wants C(version), C(nodes) and
        C(stun_seconds).
      - V(horovod) takes C(packages), C(python) and C(run), the result of C(mpirun), and wants C(version), C(packages),
        C(framework), C(framework_version), C(nodes) and C(nccl).
      - V(pytorch) takes the same, and wants C(version), C(packages), C(backend), V(nccl) or V(gloo), and C(nodes).
      - V(slurm_settings) takes lists with the facts of all nodes, and wants C(controller), C(cluster), C(partition),
        C(settings), C(stun_seconds), C(accounting), and the options C(limit) and C(guests) of the run. Its facts have
        the C(files) of the configuration and C(slurmdbd), the file of that daemon.
      - V(slurm) takes C(sinfo), lines, C(config), the output of C(scontrol show config), and C(runs), the results of
        runs over all nodes, and C(known), how slurmdbd lists the cluster; and wants C(found), as for V(slurm_settings),
        C(stun_seconds) and C(accounting).
      - V(training_image) takes C(versions), the result of the program that reads versions in the image, and C(run), the
        result of C(mpirun) in it; and wants C(versions) and C(nodes).
      - V(versions) takes C(nodes), local facts by node, and checks that all nodes have the same versions. Its facts
        have C(versions) by node and C(table), lines of text.
    type: str
    required: true
    choices:
      - apt_repositories
      - container_gpus
      - cuda
      - dnf_repositories
      - docker
      - docker_change
      - gpu_driver
      - gpu_health
      - gpudirect
      - horovod
      - kernel_settings
      - kubernetes_node
      - memory_pools
      - node
      - node_peers
      - openmpi
      - packages
      - python_packages
      - pytorch
      - rdma
      - rdma_bandwidth
      - rdma_mtu
      - repositories_wanted
      - slurm
      - slurm_settings
      - training_image
      - versions
  found: {description: The observed state of the node; its keys depend on O(kind)., type: dict, default: {}}
  desired: {description: The desired state of the node; its keys depend on O(kind)., type: dict, default: {}}
  fail: {description: Whether misfits fail the task., type: bool, default: true}
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - plugin: dml.vsphere.stack
    plugin_type: lookup
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Query the driver
  ansible.builtin.command:
    argv: [nvidia-smi, -q]
  register: queried
  changed_when: false
  failed_when: false

- name: Check the driver and the licence of each GPU
  dml.vsphere.node_check:
    kind: gpu_driver
    found: "{{ queried }}"
    desired: {driver: 580.65.06, gpus: 2, licensed: true}

- name: Compare the versions of all nodes
  dml.vsphere.node_check:
    kind: versions
    found:
      nodes: "{{ dict(ansible_play_hosts | zip(proofs)) }}"
  run_once: true
  vars:
    proofs: "{{ ansible_play_hosts | map('extract', hostvars, ['ansible_facts', 'ansible_local']) }}"
"""

RETURN = r"""
facts:
  description: The facts about the observed state; their keys depend on the kind.
  returned: always
  type: dict
  sample: {driver: 580.65.06, cuda_at_most: "13.0", gpus: []}
misfits:
  description: One sentence for each difference from the desired state.
  returned: always
  type: list
  elements: str
  sample: ["nvidia-smi sees 1 GPUs, not 2."]
msg: {description: All misfits in one message with the name of the node., returned: if there are misfits, type: str}
"""
