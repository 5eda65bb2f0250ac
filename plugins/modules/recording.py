#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a recording of what the readers of this collection read of a site, without the names of the site."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recording
short_description: Record what the collection reads of a site, without its names
version_added: 1.0.0
description:
  - Runs each reader of the collection against the named hosts, their clusters and the named virtual machines, and keeps
    what the servers answered. Properties, esxcli's answers and its own description of the commands, events and tasks,
    counters, answers of vLCM. Of other hosts and virtual machines nothing is kept.
  - Names, addresses, serials, UUIDs and licence keys are replaced, each by the same pseudonym wherever it stands. A
    hardware address keeps its vendor. Names of hardware and software stay.
  - Advanced settings of virtual machines, among which are passwords for guests, are never read.
  - Only reads. A call that is no read is refused before it is sent.
  - The archive is a test for this collection. Its readers can be run against it as against the site.
options:
  folder:
    description: The folder on the machine that runs the module for V(recording.tar.xz) and V(manifest.json).
    type: path
    required: true
extends_documentation_fragment:
  - dml.vsphere.connection
  - dml.vsphere.hosts
  - dml.vsphere.site
  - dml.vsphere.attributes
attributes:
  idempotent:
    description: A site changes from moment to moment, so that a second run records it anew.
    support: none
notes:
  - Read the manifest before you give the archive away. What it lists as C(left) are names of the site that also are
    words of hardware or software, and stay where they are such words.
seealso:
  - module: dml.vsphere.acceptance_info
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Record two hosts and a worker
  dml.vsphere.recording:
    hosts: [esx01.example.com, esx02.example.com]
    vms: [worker-0]
    folder: "{{ playbook_dir }}/recording"
  register: recorded

- name: Show what is in it
  ansible.builtin.debug:
    msg: "{{ recorded.lines }}"
"""

RETURN = r"""
manifest:
  description:
    - What is in the archive. C(server), the numbers of C(objects), of commands of C(esxcli), of C(calls) and of
      C(replaced) values, the paths of C(properties), the C(requests) of the REST API, what is C(never_read), words of
      the site that are C(left), what was C(not_understood), and the sizes of its C(files).
  returned: success
  type: dict
lines:
  description: The same for a person.
  returned: success
  type: list
  elements: str
files:
  description: The paths of archive and manifest.
  returned: success
  type: list
  elements: str
state:
  description: The checksum and mode of each file; in check mode those that they would get.
  returned: success
  type: dict
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.site.acceptance import acceptance, collect
from ..module_utils.training.reports.report_files import PRIVATE, Files
from ..module_utils.vsphere import inventory, session

ARGUMENTS = {**acceptance.OPTIONS, "folder": {"type": "path", "required": True}}
ARCHIVE = "recording.tar.xz"
MANIFEST = "manifest.json"


def body(module: AnsibleModule) -> dict[str, Any]:
    with session.session(module.params) as opened:
        collected = collect.collect(opened, module.params)
    texts: dict[str, str | bytes] = {ARCHIVE: collected.archive}
    texts[MANIFEST] = json.dumps(collected.manifest, indent=4) + "\n"
    files = Files(Path(module.params["folder"]), texts, PRIVATE)
    answer = {"manifest": dict(collected.manifest), "lines": collect.lines(collected.manifest), "files": files.paths}
    return {**runner.converge_one(module, files), **answer}


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
