# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of the connection to vCenter."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  hostname: {description: Name or address of the vCenter server. Required. Falls back to E(VMWARE_HOST)., type: str}
  username: {description: The user name. Required. Falls back to E(VMWARE_USER)., type: str}
  password: {description: The password. Required. Falls back to E(VMWARE_PASSWORD)., type: str}
  port: {description: The port. Falls back to E(VMWARE_PORT)., type: int, default: 443}
  validate_certs:
    description:
      - Whether the server's certificate must be signed by an authority that is trusted here. If it is V(false) and
        O(tls_fingerprint) is not set, any server that answers gets the password, and the module warns.
        Falls back to E(VMWARE_VALIDATE_CERTS).
    type: bool
    default: true
  ca_path:
    description: A PEM file with the authorities to trust, such as that of vCenter. Falls back to E(VMWARE_CA_PATH).
    type: path
  tls_fingerprint:
    description:
      - The SHA-256 of the server's certificate. If it is given, every connection must present exactly this certificate,
        and authorities are not checked. Falls back to E(VMWARE_TLS_FINGERPRINT).
    type: str
  proxy: {description: "An HTTP proxy as HOST:PORT, without an account. Falls back to E(VMWARE_PROXY).", type: str}
  timeout:
    description: Seconds to wait for an answer from the server, also while connecting. Falls back to E(VMWARE_TIMEOUT).
    type: int
    default: 60
  vcenter_uuid:
    description:
      - The instance UUID of the vCenter to which the inventory is bound, as M(dml.vsphere.site) writes it.
        The module refuses another vCenter before it reads or changes anything there.
    type: str
requirements:
  - pyvmomi >= 8.0.3
notes:
  - Set the connection once, with C(module_defaults) for the group C(dml.vsphere.vsphere) or with environment variables.
"""
