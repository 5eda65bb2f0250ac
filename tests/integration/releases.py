# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The releases of vSphere on which the playbooks are tested.

The main path of each playbook is marked ``every_release``: oldest and newest in each run, all in the slow tests.
The other tests of the playbooks take the newest, and all else the release of the lab, which costs no run more.
"""

from __future__ import annotations

RELEASES = {"7.0 U2": "7.0.2", "7.0 U3": "7.0.3", "8.0 U2": "8.0.2", "8.0 U3": "8.0.3", "9.0": "9.0.0", "9.1": "9.1.0"}
OLDEST, *BETWEEN, NEWEST = RELEASES
# The event with which a move begins, by whether moves are encrypted.
FIRST = {"on": "com.vmware.vc.vm.VmHotMigratingWithEncryptionEvent", "off": "VmBeingHotMigratedEvent"}
