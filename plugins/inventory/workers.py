# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Inventory: the worker VMs of this collection, identified in vCenter by their mark."""

from __future__ import annotations

DOCUMENTATION = r"""
name: workers
short_description: Worker VMs, identified in vCenter by their mark
version_added: 1.0.0
description:
  - Finds the virtual machines with the mark of M(dml.vsphere.worker_vm), and puts them into groups. The group
    C(workers) contains all of them; C(cluster_NAME), C(role_NAME), C(tenant_NAME) and C(host_NAME) contain those of a
    cluster, role, tenant or ESXi host; C(profile_NAME) contains those with a vGPU of that profile. Characters that
    Ansible forbids in names of groups become C(_).
  - The number of calls to vCenter does not grow with the number of workers.
  - If the login or the read fails, the run ends with one sentence and exit status 4, before any play.
  - The file's name must end in C(workers.yml) or C(workers.yaml).
  - The plugin reads the variables below only from the command line, C(-e), because Ansible reads inventories
    before the variables of groups and hosts.
options:
  plugin: {description: The name of this plugin., type: str, required: true, choices: [dml.vsphere.workers]}
  hostname:
    description: Name or address of the vCenter server.
    type: str
    env:
      - name: VMWARE_HOST
    vars:
      - name: vsphere_hostname
  username:
    description: The user name.
    type: str
    env:
      - name: VMWARE_USER
    vars:
      - name: vsphere_username
  password:
    description: The password.
    type: str
    secret: true
    env:
      - name: VMWARE_PASSWORD
    vars:
      - name: vsphere_password
  port:
    description: The port.
    type: int
    default: 443
    env:
      - name: VMWARE_PORT
    vars:
      - name: vsphere_port
  validate_certs:
    description: Whether the server's certificate must be signed by a trusted authority.
    type: bool
    default: true
    env:
      - name: VMWARE_VALIDATE_CERTS
    vars:
      - name: vsphere_validate_certs
  ca_path:
    description: A PEM file with the authorities to trust, such as vCenter's CA.
    type: path
    env:
      - name: VMWARE_CA_PATH
    vars:
      - name: vsphere_ca_path
  tls_fingerprint:
    description:
      - The SHA-256 of the server's certificate. If it is given, every connection must present exactly this certificate,
        and authorities are not checked.
    type: str
    env:
      - name: VMWARE_TLS_FINGERPRINT
    vars:
      - name: vsphere_tls_fingerprint
  proxy:
    description: An HTTP proxy as HOST:PORT, without an account.
    type: str
    secret: true
    env:
      - name: VMWARE_PROXY
    vars:
      - name: vsphere_proxy
  timeout:
    description: Seconds to wait for an answer from the server.
    type: int
    default: 60
    env:
      - name: VMWARE_TIMEOUT
    vars:
      - name: vsphere_timeout
  vcenter_uuid:
    description: The instance UUID of the vCenter to which the inventory is bound; the plugin refuses another vCenter.
    type: str
    vars:
      - name: vcenter_uuid
  clusters: {description: Only the workers of these clusters; empty means all., type: list, elements: str, default: []}
extends_documentation_fragment:
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
requirements:
  - pyvmomi >= 8.0.3
notes:
  - Each worker has these variables. C(ansible_host), the address of its management card, if the guest reports one
    or its cloud-init data contains one; C(vm_name), the name that vCenter shows, while the inventory keeps the
    name in the mark; C(vm_cluster), C(vm_role), C(vm_tenant), C(vm_built), C(vm_confirmed), C(vm_uuid), C(vm_host), the
    ESXi host it is on, C(vm_power), C(on) or C(off); C(vm_gpus), all its GPUs as text, and C(vm_profiles), its vGPU
    profiles; C(vm_rdma_macs) and C(vm_rdma_addresses) of its RDMA cards, with C(vm_rdma_protocol) for PVRDMA
    and C(vm_rdma_classes), the device classes, for cards with Enhanced DirectPath I/O; C(vm_foreign_disks), the files
    of attached disks that this collection did not create; C(vm_template), the item of a content library of which
    it was made, with its version.
  - Texts from vCenter and from guests are never evaluated as templates. Only an address of another machine becomes
    C(ansible_host). The plugin leaves a worker out, with a warning, if its name is not a valid name of a worker, if
    any of its texts has a template or invisible characters, or if the machine itself does not confirm its mark.
  - Several clusters, also of several vCenters with a file each, must not have workers with the same name.
  - With a cache, a worker that moved or was powered on keeps its previous variables until the cache expires.
    C(ansible-playbook --flush-cache) reads the workers again.
seealso:
  - module: dml.vsphere.worker_vm
author:
  - The dml.vsphere contributors (@dml-vsphere)
"""

EXAMPLES = r"""
# lab.workers.yml: the connection comes from VMWARE_HOST, VMWARE_USER, VMWARE_PASSWORD
plugin: dml.vsphere.workers
clusters: [gpu]
cache: true
cache_plugin: ansible.builtin.jsonfile
cache_connection: .cache/inventory
cache_timeout: 300
groups:
  running: vm_power == 'on'
keyed_groups:
  - key: vm_rdma_protocol
    prefix: rdma
compose:
  ansible_user: "'ubuntu'"
"""

import hashlib
import json
import os
from collections.abc import Mapping

from ansible.inventory.group import to_safe_group_name
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable
from ansible.utils.unsafe_proxy import wrap_var

from ..module_utils import runner
from ..module_utils.core import child_environment, names
from ..module_utils.errors import CollectionError, Failed
from ..module_utils.vsphere import session
from ..module_utils.workers import existing_workers, worker_mark

# The exit status of Ansible for an inventory that it cannot parse.
PARSER_ERROR = 4
ENDINGS = ("workers.yml", "workers.yaml")
# The options that determine which workers the plugin reads.
SELECTION = ("hostname", "port", "vcenter_uuid", "clusters")
REMEDY = "run dml.vsphere.record and report it"


def _in_words(error: Exception, server: str) -> CollectionError:
    """Return the sentence for an error of the read; no reader expected the shape of data that causes another error."""
    if isinstance(error, CollectionError):
        return error
    return Failed(server, "read the workers", f"{type(error).__name__}: {error}", REMEDY)


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):  # type: ignore[misc]  # ansible is not read by mypy
    """Adds the workers to Ansible's inventory."""

    NAME = "dml.vsphere.workers"

    def verify_file(self, path: str) -> bool:
        """Return whether the name of a file is that of a source of this plugin."""
        return bool(super().verify_file(path)) and path.endswith(ENDINGS)

    def parse(self, inventory: object, loader: object, path: str, cache: bool = True) -> None:
        """Fill the inventory, from the cache if it is enabled and has data."""
        super().parse(inventory, loader, path, cache)
        self._read_config_data(path)
        for worker in self._workers(self._cache_key(path), fresh=not cache):
            if self._is_accepted(worker):
                self._add(wrap_var(worker))

    def _cache_key(self, path: str) -> str:
        """Return the key for the workers of a file; Ansible's key ignores the environment and the file's content."""
        selection = json.dumps([self.get_option(name) for name in SELECTION])
        return f"{self.get_cache_key(path)}_{hashlib.sha256(selection.encode()).hexdigest()[:12]}"

    def _workers(self, key: str, *, fresh: bool) -> list[existing_workers.ExistingWorker]:
        has_cache = self.get_option("cache")
        if has_cache and not fresh:
            try:
                return list(self._cache[key])
            except KeyError:  # no entry, or an expired one
                pass
        workers = self._read()
        if has_cache:
            self._cache[key] = workers
        return workers

    def _read(self) -> list[existing_workers.ExistingWorker]:
        connection = {name: self.get_option(name) for name in session.arguments()}
        # Ansible turns an empty path, such as an empty environment variable, into the working directory.
        if connection["ca_path"] == os.path.realpath(os.getcwd()):
            connection["ca_path"] = None
        # Another reading of the inventory in the same run.
        for name in ("username", "password"):
            connection[name] = connection[name] or child_environment.login(session.NEEDED[name], os.environ) or None
        if runner.trusts_anybody(connection):
            self.display.warning(runner.UNCHECKED)
        try:
            with session.session(connection) as opened:
                return existing_workers.read_workers(opened, self.get_option("clusters"))
        except Exception as error:
            # Ansible turns each exception of an inventory plugin into a warning, and continues without the workers.
            self.display.error(str(_in_words(error, str(connection["hostname"]))), wrap_text=False)
            raise SystemExit(PARSER_ERROR) from error

    def _is_accepted(self, worker: Mapping[str, object]) -> bool:
        """Return whether a worker may be in the inventory; if not, warn."""
        name, odd = str(worker["name"]), names.odd(worker)
        reason = "it is not a valid name of a worker; correct it in vCenter"
        if odd:
            reason = f"{names.printable(odd[0])} contains a template or unprintable characters; correct it in vCenter"
        elif names.is_machine(name) and not worker["vm_confirmed"]:
            reason = f"{worker_mark.UNCONFIRMED}; if it is a worker, adopt it once with worker_vm (adopt: true)"
        elif names.is_machine(name):
            return True
        self.display.warning(f"The worker {names.printable(name)} is left out of the inventory: {reason}")
        return False

    def _refuse_namesake(self, worker: Mapping[str, object]) -> None:
        """End the run if another worker has the name: Ansible has one host of a name, and would lose one of the two."""
        known = self.inventory.hosts.get(worker["name"])
        before = known.vars if known else {}
        if any(before.get(key, worker[key]) != worker[key] for key in ("vm_uuid", "vm_cluster")):
            clusters = f"{before['vm_cluster']} and {worker['vm_cluster']}"
            self.display.error(
                f"The clusters {clusters} have workers named {worker['name']}, and Ansible has one host of a name: "
                "build one of them again with another name, or select a cluster with the option clusters of this file",
                wrap_text=False,
            )
            raise SystemExit(PARSER_ERROR)

    @staticmethod
    def _sanitize_group_name(name: str) -> str:
        """Return a safe group name, which cannot be a template, whatever the configuration of Ansible."""
        return str(to_safe_group_name(name, force=True, silent=True))

    def _add(self, worker: Mapping[str, object]) -> None:
        name, strict = worker["name"], self.get_option("strict")
        self._refuse_namesake(worker)
        self.inventory.add_host(name)
        for group in existing_workers.inventory_groups(worker):
            self.inventory.add_child(self.inventory.add_group(self._sanitize_group_name(group)), name)
        variables = {key: value for key, value in worker.items() if key != "name"}
        for key, value in variables.items():
            self.inventory.set_variable(name, key, value)
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)
