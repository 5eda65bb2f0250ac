#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: the files of a folder of the controller on a node."""

from __future__ import annotations

DOCUMENTATION = r"""
module: training_folder
short_description: Copy a folder of the controller to a node, and install its requirements
version_added: 1.0.0
description:
  - Packs the folder into an archive that has the same checksum as long as the files are the same, and sends the archive
    only to a node that does not have it. The node needs only Python.
  - C(.git), C(__pycache__), C(.venv) and the files that C(.dmlignore) in the folder names stay on the controller. A
    pattern of C(.dmlignore) is a name, or a path from the folder, and may contain C(*) and C(?).
  - With O(environment), it also creates a virtual environment that sees the packages of the interpreter of the stack,
    and installs the requirements there with pip. The versions of the stack are constraints, and the stack is not
    changed. Runs with the same requirements and the same stack share an environment. Requirements that refer to files
    are the same only if all files of the folder are. Each run has its own environment if a package stays in O(dest)
    because of C(-e).
  - Refuses a folder that is too large, links that leave the folder, and files whose names or contents look like keys,
    passwords or tokens.
  - Files keep their permissions, except that only their owner can write them.
options:
  path: {description: "The folder on the controller; with O(shared), it may be a file.", type: path}
  url: {description: "The URL of a file for O(shared), which the node downloads.", type: str}
  shared:
    description:
      - Whether the files are data that several runs read. They are kept read-only in a folder of O(dest) with the name
        O(sha256), which is only there when it is complete. They may look like keys.
    type: bool
    default: false
  file: {description: "The name of the file in O(path), if O(shared) data is one file.", type: str, default: ""}
  command:
    description: The command that will run in the folder, as a list or as text; the folder must contain its script.
    type: raw
  exclude: {description: Further patterns of files that stay on the controller., type: list, elements: str, default: []}
  include:
    description: Patterns of files to copy although they look like keys, passwords or tokens.
    type: list
    elements: str
    default: []
  limit: {description: The largest size of all files in MB., type: int, default: 100}
  dest: {description: The folder on the node., type: path, required: true}
  store: {description: The folder on the node that keeps the archives., type: path, required: true}
  once:
    description: Whether to unpack the files in O(dest) only once, because a run changes them.
    type: bool
    default: false
  keep_times:
    description:
      - Whether the files keep the times of their last changes, as outputs do. The times are then part of the checksum.
    type: bool
    default: false
  folders: {description: Further folders to create on the node., type: list, elements: path, default: []}
  sha256:
    description:
      - The checksum of an archive of an earlier run, to unpack this one instead of O(path). By default, the controller
        sets it to the checksum of O(path).
    type: str
    default: ""
  kept: {description: "The archive O(sha256) on the controller, for nodes that do not have it.", type: path}
  environment:
    description: The environment to create; by default none.
    type: dict
    suboptions:
      python:
        description: The interpreter of the stack. It needs the modules C(venv) and C(pip).
        type: path
        required: true
      requirements: {description: The content of the requirements file., type: str, required: true}
      name: {description: The path of the requirements file in O(path)., type: str, default: requirements.txt}
      store: {description: The folder on the node that keeps the environments., type: path, required: true}
      timeout: {description: Seconds after which pip is stopped., type: int, default: 1800}
  archive: {description: "The archive on the node, which the controller sets if it sent one.", type: path}
  content: {description: "A small archive itself, compressed and in Base64, which the controller sets.", type: str}
extends_documentation_fragment:
  - dml.vsphere.attributes
seealso:
  - module: dml.vsphere.training_job
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Copy the training program
  dml.vsphere.training_folder:
    path: ~/mine
    command: [python, train.py]
    dest: /var/lib/dml/runs/one/work
    store: /var/lib/dml/code
    once: true
"""

RETURN = r"""
state:
  description: The folder on the node.
  returned: success
  type: dict
  contains:
    sha256: {description: The checksum of the archive that was unpacked., type: str}
python:
  description: The interpreter of the environment, also in check mode.
  returned: with O(environment)
  type: str
lock:
  description: The packages that were installed in addition to the stack, as C(NAME==VERSION).
  returned: with O(environment)
  type: list
  elements: str
data:
  description: The path of the data on the node, a folder or a file, also in check mode.
  returned: with O(shared)
  type: str
missing: {description: Whether the node does not have the archive., returned: always, type: bool}
files: {description: The number of files., returned: success, type: int}
bytes: {description: The size of all files., returned: success, type: int}
git:
  description:
    - The C(commit) of the repository that contains the folder, read from its files; empty without one. With git,
      also the number of its files that were C(changed), and the checksum of their names and contents as
      C(changes_sha256). C(state.sha256) identifies the files that were copied.
  returned: success
  type: dict
"""


import base64
import os
import zlib

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ..module_utils import runner
from ..module_utils.training.guest.code_folder import CodeFolder, MadeFolders
from ..module_utils.training.guest.environment import Environment
from ..module_utils.training.guest.shared_data import SharedData
from ..module_utils.training.launch.folder import ARGUMENTS_OF_FOLDER

ENVIRONMENT = {
    "python": {"type": "path", "required": True},
    "requirements": {"type": "str", "required": True},
    "name": {"type": "str", "default": "requirements.txt"},
    "store": {"type": "path", "required": True},
    "timeout": {"type": "int", "default": 1800},
}
ARGUMENTS = {
    **ARGUMENTS_OF_FOLDER,
    "dest": {"type": "path", "required": True},
    "store": {"type": "path", "required": True},
    "folders": {"type": "list", "elements": "path", "default": []},
    "sha256": {"type": "str", "default": ""},
    "archive": {"type": "path"},
    # Neither the log of the node nor the reply repeats it.
    "content": {"type": "str", "no_log": True},
    "kept": {"type": "path"},
    "environment": {"type": "dict", "options": ENVIRONMENT},
}


def _received(module: AnsibleModule) -> dict[str, str]:
    """Return the option of the archive that came with the options, in a file that is removed when the module ends."""
    if not module.params["content"]:
        return {}
    path = os.path.join(module.tmpdir, "archive.tar")
    with open(path, "wb") as file:
        file.write(zlib.decompress(base64.b64decode(module.params["content"])))
    return {"archive": path}


def _unpacked(module: AnsibleModule) -> runner.Result:
    """Unpack the files, and make the other folders."""
    code = CodeFolder({**module.params, **_received(module)})
    is_missing = code.is_missing
    unpacked = {**runner.converge_one(module, code), "missing": is_missing}
    if unpacked.get("failed"):
        return unpacked
    made = runner.converge_one(module, MadeFolders(module.params["folders"]))
    failed = made if made.get("failed") else {}
    return {**unpacked, **failed, "changed": bool(unpacked["changed"] or made["changed"])}


def _shared(module: AnsibleModule) -> runner.Result:
    """Keep data that several runs read."""
    shared = SharedData(module.params, open_url)
    is_missing = shared.is_missing
    return {**runner.converge_one(module, shared), "missing": is_missing, "data": shared.path}


def body(module: AnsibleModule) -> runner.Result:
    params = module.params
    if params["shared"]:
        return _shared(module)
    unpacked = _unpacked(module)
    if unpacked.get("failed") or not params["environment"]:
        return unpacked
    place = {"folder": params["dest"], "code": params["sha256"]}
    environment = Environment({**params["environment"], **place})
    installed = runner.converge_one(module, environment)
    changed = bool(unpacked["changed"] or installed["changed"])
    if installed.get("failed"):
        return {**unpacked, **installed, "changed": changed}
    return {**unpacked, "changed": changed, "python": environment.python, "lock": environment.lock}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, required_one_of=[("path", "url")], supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
