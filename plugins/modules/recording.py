#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a recording of the answers of a site to the readers of this collection, without the names of the site."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recording
short_description: Record the answers of a site that the collection reads, without its names
version_added: 1.0.0
description:
  - Runs each reader of the collection on the named hosts, their clusters and the named virtual machines, and records
    the answers of the servers. These are properties, answers of esxcli and its descriptions of the commands, events and
    tasks, counters, and answers of vLCM. Data of other hosts and virtual machines are not recorded.
  - Names, addresses, serials, UUIDs and licence keys are replaced, each with the same pseudonym at every occurrence. A
    hardware address keeps its vendor. Names of hardware and software stay.
  - Free text, such as messages, notes, paths and URLs, keeps only numbers, addresses and signs. Each word is replaced
    with C(word-N). The manifest contains the number of these words.
  - Advanced settings of virtual machines, which may include passwords of guests, are never read.
  - Only reads. A call that is not a read is refused before it is sent.
  - The archive is a test for this collection. Its readers can be run on the archive as on the site.
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
    description: A site changes continuously, so a second run records it again.
    support: none
notes:
  - Read the manifest before you share the archive. It lists as C(left) the names of the site that are also words of
    hardware or software. They stay in the fields for such words.
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

- name: Show the content of the recording
  ansible.builtin.debug:
    msg: "{{ recorded.lines }}"
"""

RETURN = r"""
manifest:
  description:
    - The content of the archive. C(server), the numbers of C(objects), of commands of C(esxcli), of C(calls) and of
      C(replaced) values, the paths of C(properties), the C(requests) to the REST API, the properties that are
      C(never_read), the remaining words of the site (C(left)), the answers that were C(not_understood), and the sizes
      of its C(files).
  returned: success
  type: dict
lines:
  description: The manifest as lines of text.
  returned: success
  type: list
  elements: str
files:
  description: The paths of the archive and the manifest.
  returned: success
  type: list
  elements: str
state:
  description: The checksum and the mode of each file; in check mode the planned ones.
  returned: success
  type: dict
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.site.acceptance import acceptance, collect
from ..module_utils.training.reports.report_files import PRIVATE, ReportFiles
from ..module_utils.vsphere import inventory, session

ARGUMENTS = {**acceptance.OPTIONS, "folder": {"type": "path", "required": True}}
ARCHIVE = "recording.tar.xz"
MANIFEST = "manifest.json"


def body(module: AnsibleModule) -> dict[str, Any]:
    with session.session(module.params) as opened:
        collected = collect.collect(opened, module.params)
    texts: dict[str, str | bytes] = {ARCHIVE: collected.archive}
    texts[MANIFEST] = json.dumps(collected.manifest, indent=4) + "\n"
    files = ReportFiles(Path(module.params["folder"]), texts, PRIVATE)
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
