"""Assumptions about disks, templates, storage and keys of workers that no recording confirms."""

from __future__ import annotations

from .assumption_checks import Assumption

_HERE = "plugins/module_utils"
WORKERS = (
    Assumption(
        "UUIDs of disks",
        "A disk keeps the UUID of its backing in snapshots and moves to other datastores; a clone gets another UUID.",
        (f"{_HERE}/workers/foreign_disks.py", "def _identity"),
        "`workers` changes nothing after a snapshot and a Storage vMotion of a worker with `disks_gb`",
    ),
    Assumption(
        "detached disks",
        "vSphere deletes a virtual machine with its disks, and keeps a detached disk in its folder.",
        (f"{_HERE}/workers/absent_worker.py", "foreign_disks.detach"),
        "`teardown` of a worker to which the vSphere Client added a disk",
    ),
    Assumption(
        "items of a library",
        "A clone of the `vm_template` of a library item is like one of another template, and each change of its files "
        "gives an item another `content_version`, also in a subscribed library.",
        (f"{_HERE}/vsphere/libraries.py", "def template_of"),
        "`workers` with a VM template of a library, again without a change, and with a warning after a new version",
    ),
    Assumption(
        "deployment of an OVF item",
        "vCenter answers the deployment of an OVF item when the virtual machine is complete, and continues it if the "
        "client has gone; a machine that is still being deployed refuses to be reconfigured.",
        (f"{_HERE}/workers/library_templates.py", "_left_by_killed_run"),
        "`workers` with an OVF item, killed during the deployment and run again: one template, and workers that start",
    ),
    Assumption(
        "properties of the Deep Learning VM",
        "VMware's Deep Learning VM has the OVF property `user-data` for cloud-init, as Ubuntu's OVA has it. Its "
        "published description was not found.",
        ("plugins/modules/worker_vm.py", "properties: {user-data"),
        "`workers` with its item and a property that does not exist: the refusal names those that it has",
    ),
    Assumption(
        "OVF properties and guestinfo",
        "vCenter removes the vApp configuration of a virtual machine that is off, and its guest then has no OVF "
        "environment.",
        (f"{_HERE}/workers/worker.py", "vAppConfigRemoved"),
        "`workers` with `guest` and a template from Ubuntu's OVA: each guest has its address and users",
    ),
    Assumption(
        "privileges for libraries and policies",
        "The REST API needs VApp.Import and those of pool, store and network for an OVF item, ContentLibrary."
        "SyncLibraryItem to synchronize it, StorageProfile.View for policies, and VirtualMachine.Config.Settings.",
        (f"{_HERE}/hosts/privileges/privilege_table.py", "ovf/library-item"),
        "`workers` with an item of a subscribed library and `storage_policy`, and the account that `account` created",
    ),
    Assumption(
        "datastore of a clone",
        "A full clone takes `summary.storage.committed` of its template, and may go to the datastore that "
        "RecommendDatastores names first, without applying the recommendation.",
        (f"{_HERE}/workers/clone.py", "RecommendDatastores"),
        "the datastore of a worker that `workers` built on a datastore cluster, and its free space before and after",
    ),
    Assumption(
        "storage policy of a clone",
        "A clone with a policy in its location and in the locator of each disk complies from the start, and a PATCH of "
        "the REST API sets the policy of a running virtual machine.",
        (f"{_HERE}/workers/clone.py", "def _set_profile"),
        "`workers` with `storage_policy`, then with another policy: `workers --check` shows no warning",
    ),
    Assumption(
        "clones and moves of encrypted workers",
        "With a key provider, a clone of an encrypted template starts and moves, and has a new virtual TPM on request.",
        (f"{_HERE}/workers/encryption.py", "def refuse_unable"),
        "`workers` with a template that has a virtual TPM: two have other certificates, and `vmotion_test` moves both",
    ),
)
