#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: what a site has - an inventory for it, whether the readers understand it, and a recording of its answers."""

from __future__ import annotations

DOCUMENTATION = r"""
module: site
short_description: Describe a vCenter, check whether the collection understands it, or record its answers
version_added: 1.0.0
description:
  - With O(gather=discovery), reads the clusters of a vCenter with their hosts, GPUs, RDMA cards, networks and
    datastores, and the templates, and returns an inventory as YAML with comments. Its variables describe the hosts as
    they are. A comment that starts with C(decide:) names a decision that only you can make, with a proposal below it.
    The inventory contains no password.
  - With O(gather=acceptance), runs each reader of the collection on hosts, their clusters and virtual machines, and
    checks the answers of the servers. All decisions of this collection depend on these answers. It reports which of the
    unverified assumptions of this collection the answers confirm or refute.
  - With O(gather=recording), runs each reader too, and writes an archive with the answers of the servers. These are
    properties, answers of esxcli and its descriptions of the commands, events and tasks, counters, and answers of vLCM.
    Data of other hosts and virtual machines are not recorded. The tests of this collection can replay the archive.
  - Names, addresses, serials, UUIDs and licence keys are replaced, each with the same pseudonym at every occurrence. A
    hardware address keeps its vendor. Names of hardware and software stay.
  - Free text, such as messages, notes, paths and URLs, keeps only numbers, addresses and signs. Each word is replaced
    with C(word-N). The manifest contains the number of these words.
  - Advanced settings of virtual machines, which may include passwords of guests, are never read.
  - Only reads vCenter. A call that is not a read is refused before it is sent.
options:
  gather:
    description: The action. V(acceptance) and V(recording) need O(hosts) or O(cluster), V(recording) also O(folder).
    type: str
    choices: [acceptance, discovery, recording]
    required: true
  clusters:
    description:
      - For V(discovery), names of the clusters to read. The default is all clusters of the vCenter.
      - Clusters without an NVIDIA GPU are listed in a comment, unless no cluster has one.
    type: list
    elements: str
    default: []
  short:
    description:
      - For V(acceptance), runs only the readers of hosts and of counters, on one connected host of each version and
        model, as O(dml.vsphere.esxi_info#module:acceptance) does. Other hosts give similar answers.
    type: bool
    default: false
  accept_new:
    description: Whether RV(error) omits answers that are only new to this collection.
    type: bool
    default: false
  folder:
    description: The folder on the machine that runs the module for V(recording.tar.xz) and V(manifest.json).
    type: path
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.site
  - dml.vsphere.attributes
attributes:
  idempotent:
    description: A site changes continuously, so a second run records it again.
    support: none
notes:
  - Read the manifest before you share the archive. It lists as C(left) the names of the site that are also words of
    hardware or software. They stay in the fields for such words.
seealso:
  - module: dml.vsphere.esxi_info
  - module: dml.vsphere.cluster_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Read the vCenter
  dml.vsphere.site:
    gather: discovery
  register: found

- name: Write the inventory, unless there is one
  ansible.builtin.copy:
    content: "{{ found.inventory }}"
    dest: hosts.yml
    force: false
    mode: "0644"

- name: Check whether the readers understand one host and one worker
  dml.vsphere.site:
    gather: acceptance
    hosts: [esx01.example.com]
    vms: [worker-0]
  register: acceptance

- name: Stop if a reader does not understand the site
  ansible.builtin.assert:
    that: acceptance.error | length == 0
    fail_msg: "{{ acceptance.error }}"

- name: Record two hosts and a worker
  dml.vsphere.site:
    gather: recording
    hosts: [esx01.example.com, esx02.example.com]
    vms: [worker-0]
    folder: "{{ playbook_dir }}/recording"
  register: recorded
"""

RETURN = r"""
readers:
  description: One entry for each reader and object.
  returned: with O(gather=acceptance)
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
  returned: with O(gather=acceptance)
  type: list
  elements: dict
  contains:
    name: {description: The name of the assumption., type: str}
    text: {description: The assumption., type: str}
    status: {description: "V(proven), V(refuted) or V(open), from the answers of this site.", type: str}
    said: {description: The answer of the site., type: str}
error:
  description: All answers that were not understood, as one error; empty if the site is accepted.
  returned: with O(gather=acceptance)
  type: str
lines:
  description: Readers and assumptions as a table, or the manifest, in lines of text.
  returned: with O(gather=acceptance) and O(gather=recording)
  type: list
  elements: str
inventory: {description: The inventory as YAML., returned: with O(gather=discovery), type: str}
decisions:
  description: The decisions that the inventory leaves to the user, each with its cluster.
  returned: with O(gather=discovery)
  type: list
  elements: str
clusters:
  description: The names of the clusters that were read.
  returned: with O(gather=discovery)
  type: list
  elements: str
manifest:
  description:
    - The content of the archive. C(server), the numbers of C(objects), of commands of C(esxcli), of C(calls) and of
      C(replaced) values, the paths of C(properties), the C(requests) to the REST API, the properties that are
      C(never_read), the remaining words of the site (C(left)), the answers that were C(not_understood), and the sizes
      of its C(files).
  returned: with O(gather=recording)
  type: dict
files:
  description: The paths of the archive and the manifest.
  returned: with O(gather=recording)
  type: list
  elements: str
state:
  description: The checksum and the mode of each file; in check mode the planned ones.
  returned: with O(gather=recording)
  type: dict
"""

import json
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.core import masked
from ..module_utils.errors import Refused
from ..module_utils.site.acceptance import acceptance, collect
from ..module_utils.site.acceptance.reader import HOST_READERS
from ..module_utils.site.acceptance.readers import READERS
from ..module_utils.site.discovery import inventory_plan, site_reader
from ..module_utils.training.results.report_files import PRIVATE, ReportFiles
from ..module_utils.vsphere import inventory, session

ARGUMENTS = {
    **acceptance.OPTIONS,
    "gather": {"type": "str", "choices": ["acceptance", "discovery", "recording"], "required": True},
    "clusters": {"type": "list", "elements": "str", "default": []},
    "short": {"type": "bool", "default": False},
    "accept_new": {"type": "bool", "default": False},
    "folder": {"type": "path"},
}
ARCHIVE = "recording.tar.xz"
MANIFEST = "manifest.json"


def accepted(_module: AnsibleModule, opened: session.Session, params: runner.Params) -> runner.Result:
    request = (acceptance.host_request if params["short"] else acceptance.read_request)(opened, params)
    readers = HOST_READERS if params["short"] else READERS
    run = acceptance.AcceptanceRun(opened, request, acceptance.full_scope(), readers)
    return dict(acceptance.result(run, accept_new=params["accept_new"]))


def discovered(_module: AnsibleModule, opened: session.Session, params: runner.Params) -> runner.Result:
    site = site_reader.read(opened, params["clusters"])
    clusters = [cluster.name for cluster in site.clusters]
    text, decisions = inventory_plan.text_of(site), inventory_plan.decisions_of(site)
    found = {"inventory": text, "decisions": decisions, "clusters": clusters}
    if masked.contains(found, params["password"]):
        cause = "its text contains the password, of which Ansible masks each occurrence"
        raise Refused("the inventory of this vCenter", "write it", cause, masked.REMEDY)
    return found


def recorded(module: AnsibleModule, opened: session.Session, params: runner.Params) -> runner.Result:
    """Write a recording of the answers of the site."""
    collected = collect.collect(opened, params)
    texts: dict[str, str | bytes] = {ARCHIVE: collected.archive}
    texts[MANIFEST] = json.dumps(collected.manifest, indent=4) + "\n"
    files = ReportFiles(Path(params["folder"]), texts, PRIVATE)
    answer = {"manifest": dict(collected.manifest), "lines": collect.lines(collected.manifest), "files": files.paths}
    return {**runner.converge_one(module, files), **answer}


QUESTIONS = {"acceptance": accepted, "discovery": discovered, "recording": recorded}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    with session.session(params) as opened:
        return {"changed": False, **QUESTIONS[params["gather"]](module, opened, params)}


def main() -> None:
    module = AnsibleModule(
        argument_spec={**session.arguments(), **ARGUMENTS},
        supports_check_mode=True,
        mutually_exclusive=inventory.EXACTLY_ONE,
        required_if=[
            ("gather", "acceptance", ("hosts", "cluster"), True),
            ("gather", "recording", ("hosts", "cluster"), True),
            ("gather", "recording", ("folder",)),
        ],
    )
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
