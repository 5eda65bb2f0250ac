"""The releases of vSphere on which the playbooks are tested.

The main path of each playbook is marked ``every_release``: the newest in each run, all others in the slow tests.
The other tests of the playbooks take the newest, and the tests of modules several, which costs less.
"""

from __future__ import annotations

from pyVmomi import VmomiSupport

from plugins.module_utils.core.versions import numbers

RELEASES = {"8.0 U2": "8.0.2", "8.0 U3": "8.0.3", "9.0": "9.0.0", "9.1": "9.1.0"}
# A server answers in the newest version that the client knows. The simulator answers in its own, so that an older
# pyVmomi does not understand it.
CLIENT = numbers(VmomiSupport.newestVersions.GetNamespace("vim").partition("/")[2])
KNOWN = [name for name, version in RELEASES.items() if numbers(version)[:2] <= CLIENT[:2]]
*OLDER, NEWEST = KNOWN
# The event with which a move begins, by whether moves are encrypted.
FIRST = {"on": "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent", "off": "VmBeingHotMigratedEvent"}
