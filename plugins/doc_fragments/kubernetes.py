# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of modules that read from Kubernetes."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - The file with the connection to Kubernetes, by default that of the user, as C(kubectl) finds it. Falls back to
        E(K8S_AUTH_KUBECONFIG).
    type: path
  context:
    description: The context of O(kubeconfig), by default its current one. Falls back to E(K8S_AUTH_CONTEXT).
    type: str
requirements:
  - kubernetes
notes:
  - The machine that runs the module needs the Python package C(kubernetes). Other parts of this collection do not need
    it. The options have the same names as in the collection C(kubernetes.core).
"""
