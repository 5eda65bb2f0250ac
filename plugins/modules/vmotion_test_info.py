#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the vMotion test of a cluster that was not ended, and what it observed so far."""

from __future__ import annotations

DOCUMENTATION = r"""
module: vmotion_test_info
short_description: Find the unfinished vMotion test of a cluster, and return its observations
version_added: 1.0.0
description:
  - Reads the journal in the folder of a test of M(dml.vsphere.vmotion_test). It needs no vCenter.
options:
  cluster:
    description: The cluster of the test.
    type: str
    required: true
  folder:
    description: The folder of the test; empty means the unfinished test in O(dir).
    type: str
    default: ""
  dir:
    description: The folder on this machine in which each test has a separate folder.
    type: path
    required: true
  window:
    description:
      - The maintenance window that is to run, as O(dml.vsphere.vmotion_test#module:window). The module refuses an
        unfinished window that began with another profile unless C(settings) is V(old) or V(new), and an unfinished test
        of another kind.
    type: dict
    default: {}
  observe:
    description: The observation that is to run, as O(dml.vsphere.vmotion_test#module:observe).
    type: dict
    default: {}
extends_documentation_fragment:
  - dml.vsphere.attributes.info
seealso:
  - module: dml.vsphere.vmotion_test
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Find the unfinished test of cluster gpu
  dml.vsphere.vmotion_test_info:
    cluster: gpu
    dir: /var/lib/dml/vmotion_test
  delegate_to: localhost
  register: found
"""

RETURN = r"""
found:
  description: Whether there is an unfinished test.
  returned: success
  type: bool
folder:
  description: The folder of the test; empty if none exists.
  returned: success
  type: str
replaced:
  description: Whether a new window takes the place of the unfinished one.
  returned: success
  type: bool
launcher:
  description: The host of the inventory on which the job was started.
  returned: success
  type: str
user:
  description: The user who runs the job.
  returned: success
  type: str
moves:
  description: The moves that have ended so far.
  returned: success
  type: list
  elements: dict
"""

from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.durable.program_journal import NAME, ends
from ..module_utils.vmotion.checks import move_lines
from ..module_utils.vmotion.folder import facts_file, trial_folder

ARGUMENTS = {
    "cluster": {"type": "str", "required": True},
    "folder": {"type": "str", "default": ""},
    "dir": {"type": "path", "required": True},
    "window": {"type": "dict", "default": {}},
    "observe": {"type": "dict", "default": {}},
}
NOTHING = {"found": False, "folder": "", "replaced": False, "launcher": "", "user": "", "moves": []}


def test_in(folder: Path, requested: dict[str, Any]) -> dict[str, Any]:
    """Return the test in a folder; refuse one of another kind, or a window with other settings."""
    settings = ends(folder / NAME).start if (folder / NAME).exists() else None
    if settings is None:
        return NOTHING
    trial_folder.refuse_other(folder, settings, requested)
    moves = facts_file.read(folder).moves if (folder / facts_file.NAME).exists() else []
    return {
        "found": True,
        "folder": str(folder),
        "replaced": trial_folder.is_replaced(settings, requested),
        "launcher": settings["launcher"],
        "user": settings["user"],
        "moves": [move_lines.without_events(move) for move in moves],
    }


def body(module: AnsibleModule) -> dict[str, Any]:
    params = module.params
    folder = trial_folder.find(params["folder"], params["dir"], params["cluster"])
    return {"changed": False, **(test_in(folder, params) if folder else NOTHING)}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
