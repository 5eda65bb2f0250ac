#!/usr/bin/python
# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Module: a key with which a node verifies packages."""

from __future__ import annotations

DOCUMENTATION = r"""
module: signing_key
short_description: Install one package signing key by its fingerprint
version_added: 1.0.0
description:
  - Imports a file with keys into GnuPG on the node, in a temporary home, exports the key with the given fingerprint,
    and installs only that key, so that apt and dnf do not trust other keys in the file.
  - Fails if the file does not contain the key. A key with O(fingerprint) only as a subkey does not match.
  - GnuPG is required on the node.
options:
  source:
    description: The file on the node with the key, armored or binary. It may contain other keys too.
    type: path
    required: true
  fingerprint:
    description: The fingerprint of the key, 40 or 64 hexadecimal digits. Spaces and case do not matter.
    type: str
    required: true
  path:
    description:
      - The file on the node that apt or dnf reads, for C(Signed-By) or C(gpgkey). Its folder must exist. The key is
        armored.
    type: path
    required: true
extends_documentation_fragment:
  - dml.vsphere.attributes
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
- name: Trust NVIDIA's key for apt
  dml.vsphere.signing_key:
    source: /var/cache/dml/keys/nvidia.asc
    fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC
    path: /etc/apt/keyrings/dml-nvidia.asc
"""

RETURN = r"""
state:
  description: The installed file.
  returned: success
  type: dict
  contains:
    sha256: {description: The checksum of the file., type: str}
    mode: {description: The mode of the file., type: str, sample: "0644"}
"""


from ansible.module_utils.basic import AnsibleModule

from ..module_utils import runner
from ..module_utils.guests.signing_key import SigningKey

ARGUMENTS = {
    "source": {"type": "path", "required": True},
    "fingerprint": {"type": "str", "required": True, "no_log": False},
    "path": {"type": "path", "required": True},
}


def body(module: AnsibleModule) -> runner.Result:
    return runner.converge_one(module, SigningKey(module.params))


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    runner.run(module, lambda: body(module))


if __name__ == "__main__":
    main()
