# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The profile of a host and the groups of esxi_info. Written by tools/subjects.py from the modules: do not edit."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  profile:
    description: The settings of every host, by subject. Subjects that are not named stay
      unchanged.
    type: dict
    default: {}
    suboptions:
      passthrough:
        description: Pass PCI devices of ESXi hosts through to virtual machines, or return
          them to the host. See M(dml.vsphere.esxi_passthrough).
        type: dict
        suboptions:
          devices:
            description:
            - V(gpus) for all NVIDIA GPUs of a host, or PCI addresses such as V(0000:3b:00.0),
              or both.
            type: list
            elements: str
            default:
            - gpus
          enabled:
            description:
            - Whether the devices are passed through.
            type: bool
            required: true
      vibs:
        description: Install or remove a VIB on ESXi hosts. See M(dml.vsphere.esxi_vib).
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description:
            - The name of the VIB, as C(esxcli software vib list) shows it, such as V(NVD-AIE_ESXi_8.0.0_Driver).
            type: str
            required: true
          version:
            description:
            - The version. A version without its build, such as V(550.90.05), means any build
              of it.
            - Required if O(profile.vibs[].state=present).
            type: str
          source:
            description:
            - The location of the VIB, as an offline bundle (C(.zip)), a single package (C(.vib)),
              or the URL of a depot's C(index.xml).
            - Written as V([datastore] folder/file.zip), as V(/vmfs/volumes/datastore/folder/file.zip),
              or as an http(s) URL.
            - Required if O(profile.vibs[].state=present).
            type: str
          state:
            description:
            - Whether the VIB is installed.
            type: str
            choices:
            - present
            - absent
            default: present
          install_timeout:
            description:
            - Seconds to wait for the host to install or remove it.
            type: int
            default: 1800
      advanced_options:
        description:
        - Set advanced options of ESXi hosts. See M(dml.vsphere.esxi_advanced_option).
        - The values of the options by their keys, such as C(Mem.ShareForceSalting). A value
          may be written as text.
        - V(Net.PVRDMAVmknic) is refused; M(dml.vsphere.esxi_pvrdma) sets it.
        type: dict
      graphics:
        description: Share the GPUs of ESXi hosts between virtual machines. See M(dml.vsphere.esxi_graphics).
        type: dict
        suboptions:
          type:
            description:
            - V(shared_direct) for vGPU (Shared Direct in the vSphere Client), V(shared) for
              the shared graphics of VMware.
            type: str
            choices:
            - shared
            - shared_direct
          policy:
            description:
            - V(performance) spreads virtual machines over the GPUs, V(consolidation) fills
              one GPU before the next.
            type: str
            choices:
            - performance
            - consolidation
          vgpu_mode:
            description:
            - Whether vGPUs of one GPU must have the same size. Requires ESXi 8.0.3 or later.
            type: str
            choices:
            - same_size
            - mixed_size
          restart_xorg:
            description:
            - Whether to restart Xorg, so that a changed type takes effect without a boot.
              The host must be in maintenance mode. A GPU without a loaded driver, or whose
              mode changes, still needs a boot.
            - Xorg is not restarted if the host needs a boot for another change of the same
              call.
            type: bool
            default: false
      kernel_modules:
        description: Set options of a kernel module on ESXi hosts. See M(dml.vsphere.esxi_kernel_module).
        type: list
        elements: dict
        default: []
        suboptions:
          name:
            description:
            - The kernel module, such as V(nmlx5_core).
            type: str
            required: true
          options:
            description:
            - The options and their values. A boolean becomes V(1) or V(0), a list becomes
              its items separated by commas.
            type: dict
            required: true
          exact:
            description:
            - Whether to remove all options that are not named.
            type: bool
            default: false
      roce:
        description: Make RoCE traffic of ESXi hosts lossless. See M(dml.vsphere.esxi_roce).
        type: dict
        suboptions:
          priority:
            description:
            - The priority (802.1p, 0 to 7) of the traffic that must not be dropped.
            type: int
            default: 3
          trust:
            description:
            - The mark of a packet's priority. V(dscp) uses the IP header. V(pcp) uses the
              VLAN tag, so the port groups of the RDMA switch need a VLAN; the module refuses
              it if none of them has a VLAN.
            type: str
            choices:
            - dscp
            - pcp
            default: dscp
          dscp:
            description:
            - The DSCP (0 to 63) of RoCE traffic if O(profile.roce.trust=dscp). Cards and
              switches read the priority from its three upper bits, so O(profile.roce.dscp)
              divided by 8 must be O(profile.roce.priority).
            - The default is the priority times 8 plus 2, which is V(26) for priority 3.
            type: int
          state:
            description:
            - V(absent) removes the options that this module sets, and no others.
            type: str
            choices:
            - present
            - absent
            default: present
          acknowledge_shared_nic:
            description:
            - The options of a driver apply to all its ports in a host. The module refuses
              a change while vSAN, NVMe over RDMA or iSER uses the RDMA cards, unless this
              is V(true).
            type: bool
            default: false
      pvrdma:
        description: Prepare ESXi hosts for paravirtual RDMA. See M(dml.vsphere.esxi_pvrdma).
        type: dict
        suboptions:
          vmk:
            description:
            - The vmkernel adapter, such as V(vmk1). Required if O(profile.pvrdma.state=present).
            type: str
          state:
            description:
            - V(present) tags the adapter and opens the firewall.
            - V(absent) removes the tag and, by default, closes the firewall.
            type: str
            choices:
            - present
            - absent
            default: present
          close_firewall:
            description:
            - Whether O(profile.pvrdma.state=absent) closes the ruleset C(pvrdma) too. Only
              PVRDMA uses the ruleset, and a new host closes it; set this to V(false) if another
              tool manages it.
            type: bool
            default: true
  host_profiles:
    description: Hosts with other settings, each with a separate profile instead of O(profile).
    type: dict
    default: {}
"""

    GATHER = r"""
options:
  gather:
    description:
    - The groups to read. V(all) reads all groups. Connection, version and boot time are always
      read.
    - V(gpu) reads GPUs and their graphics settings.
    - V(vib) reads packages.
    - V(advanced_options) reads advanced options that O(profile.advanced_options) names.
    - V(driver) reads options of kernel modules.
    - V(rdma_devices) reads RDMA devices and their other users, without their traffic and
      flow control.
    - V(rdma) reads RDMA devices, their traffic, flow control and other users.
    - V(pvrdma) reads tag and firewall of PVRDMA.
    - V(network) reads uplinks, switches and vmkernel adapters.
    - V(management) reads cluster, image, configuration profile and host profile.
    type: list
    elements: str
    choices:
    - all
    - gpu
    - vib
    - advanced_options
    - driver
    - rdma_devices
    - rdma
    - pvrdma
    - network
    - management
    default:
    - all
"""
