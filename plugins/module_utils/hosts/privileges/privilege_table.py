"""The table of privileges: the needs of each call, and the calls of each module.

A call has its name in the log of the simulator: the type of its object, a dot, and the method; the complete esxcli
command; a request of the REST API with ``{id}`` for the variable part; or, for the few properties that need a separate
privilege, ``read TYPE.PROPERTY``. The table is Python instead of YAML, because Ansible transfers only Python code with
a module.
"""

from __future__ import annotations

from typing import NamedTuple

# The source of a line. The privileges of methods are part of the API's type tables, which pyVmomi contains; a test
# compares them.
TYPES = "type tables of the API (pyVmomi)"
REFERENCE = "API reference"
SECURITY = "vSphere Security guide"
LIFECYCLE = "vSphere Automation SDKs guide"
UNSURE = "not established"

HOST = "ESXi host"
CLUSTER = "cluster"
FOLDER = "folder of the cluster"
VM = "virtual machine"
VM_FOLDER = "folder of the virtual machines"
ROOT = "root of vCenter"


class Need(NamedTuple):
    """A privilege, the object on which it must be assigned, the source, and the modules; empty if all need it."""

    privilege: str
    on: str
    source: str = TYPES
    only: tuple[str, ...] = ()


# Every role has these, and they are enough to read nearly all properties.
ALWAYS = ("System.Anonymous", "System.Read", "System.View")

# Methods, as regular expressions, that need only the privileges that every role has.
FREE = (
    "Retrieve(ServiceContent|PropertiesEx|ManagedMethodExecuter|VgpuProfileInfo|VgpuDeviceInfo|EntityPermissions|RolePermissions)",
    "ContinueRetrievePropertiesEx|Fetch|Login|Logout|CurrentTime|CreateContainerView|DestroyView|FindByInventoryPath",
    "CreatePropertyCollector|DestroyPropertyCollector|CreateFilter|WaitForUpdatesEx",
    "Query(AssignedLicenses|ConfigOptionEx|ConfigTarget|DateTime|Events|NetConfig|NetworkHint|Options|SyncingVsanObjects|Perf.*)",
    "DirectPathProfileManagerQueryCapacity|QueryAvailablePerfMetric|HostImageConfigGetAcceptance|CheckRelocate_Task|FindAssociatedProfile",
    "RecommendDatastores",
    "(POST|DELETE) /api/session",
    "GET /api/cis/tagging/(category|tag)(/[^/?]+)?",
    r"POST /api/cis/tagging/(tag|tag-association)\?action=list-[a-z-]+",
    r"GET /api/content/library(/item)?(/[^/?]+)?|POST /api/content/library(/item)?\?action=find",
    r"GET /api/vcenter/vm-template/library-items/[^/?]+|POST /api/vcenter/ovf/library-item/[^/?]+\?action=filter",
)

_MODULE_OPTIONS = (Need("Host.Config.Settings", HOST),)
_NETWORK = (Need("Host.Config.Network", HOST, REFERENCE),)
_FOLDER_DELETE = (Need("Folder.Delete", FOLDER, SECURITY),)
_POLICY_READ = (Need("StorageProfile.View", ROOT, UNSURE),)
_IMAGE_READ = Need("VcIntegrity.lifecycleSoftwareSpecification.Read", ROOT, LIFECYCLE)
_SETTINGS_READ = Need("VcIntegrity.lifecycleSettings.Read", ROOT, LIFECYCLE)
_IMAGE_WRITE = (_IMAGE_READ, Need("VcIntegrity.lifecycleSoftwareSpecification.Write", ROOT, LIFECYCLE), _SETTINGS_READ)
_HEALTH_READ = Need("VcIntegrity.lifecycleHealth.Read", ROOT, LIFECYCLE)
_IMAGE_CHECK = (Need("VcIntegrity.lifecycleSoftwareRemediation.Read", ROOT, LIFECYCLE), _HEALTH_READ)
_IMAGE_APPLY = (Need("VcIntegrity.lifecycleSoftwareRemediation.Write", ROOT, LIFECYCLE), _HEALTH_READ)
# Through vCenter, every esxcli command, even one that writes, is the same call to a host. The privilege that vCenter
# requires for this call is not documented.
_ESXCLI = (Need("Host.Config.Settings", HOST, UNSURE),)
_ESXCLI_IMAGE = (*_ESXCLI, Need("Host.Config.Image", HOST, UNSURE))
_CLUSTER = "/api/esx/settings/clusters/{id}"
_DRAFTS = f"{_CLUSTER}/software/drafts"
_POLICY = f"{_CLUSTER}/policies/apply/effective"
_OFFLINE = "/api/esx/settings/depots/offline"
HOST_PROFILES = "read HostProfileManager.profile"

CALLS: dict[str, tuple[Need, ...]] = {
    "AuthorizationManager.AddAuthorizationRole": (Need("Authorization.ModifyRoles", ROOT),),
    "AuthorizationManager.UpdateAuthorizationRole": (Need("Authorization.ModifyRoles", ROOT),),
    "AuthorizationManager.RemoveAuthorizationRole": (Need("Authorization.ModifyRoles", ROOT),),
    "AuthorizationManager.SetEntityPermissions": (Need("Authorization.ModifyPermissions", "entity and its parent"),),
    "ClusterComputeResource.ReconfigureComputeResource_Task": (Need("Host.Inventory.EditCluster", CLUSTER),),
    "CustomFieldsManager.AddCustomFieldDef": (Need("Global.ManageCustomFields", ROOT),),
    "CustomFieldsManager.RemoveCustomFieldDef": (Need("Global.ManageCustomFields", ROOT),),
    "CustomFieldsManager.SetField": (Need("Global.SetCustomField", "object that is marked"),),
    "DistributedVirtualPortgroup.Destroy_Task": (Need("DVPortgroup.Delete", "port group and its parent", SECURITY),),
    "DistributedVirtualPortgroup.ReconfigureDVPortgroup_Task": (Need("DVPortgroup.Modify", "port group", SECURITY),),
    "DistributedVirtualSwitch.AddDVPortgroup_Task": (Need("DVPortgroup.Create", "distributed switch"),),
    "DistributedVirtualSwitch.Destroy_Task": (
        Need("DVSwitch.Delete", "distributed switch and its parent", SECURITY),
        Need("DVPortgroup.Delete", "port group and its parent", SECURITY),
    ),
    "DistributedVirtualSwitch.ReconfigureDvs_Task": (
        Need("DVSwitch.Modify", "distributed switch", SECURITY),
        Need("DVSwitch.HostOp", "distributed switch", SECURITY),
        Need("Host.Config.Network", HOST, SECURITY),
    ),
    "Folder.CreateDVS_Task": (Need("DVSwitch.Create", "network folder"),),
    "Folder.CreateFolder": (Need("Folder.Create", FOLDER),),
    "Folder.Destroy_Task": _FOLDER_DELETE,
    "Folder.MoveIntoFolder_Task": (
        Need("VirtualMachine.Inventory.Move", "virtual machine and both folders", REFERENCE),
    ),
    "Folder.Rename_Task": (Need("Folder.Rename", FOLDER, SECURITY),),
    "HostSystem.AddVirtualNic": (*_NETWORK, Need("Network.Assign", "port group", SECURITY)),
    "HostSystem.DeselectVnicForNicType": (Need("Host.Config.Network", HOST),),
    "HostSystem.DisableRuleset": (Need("Host.Config.NetService", HOST),),
    "HostSystem.EnableRuleset": (Need("Host.Config.NetService", HOST),),
    "HostSystem.EnterMaintenanceMode_Task": (Need("Host.Config.Maintenance", HOST),),
    "HostSystem.ExitMaintenanceMode_Task": (Need("Host.Config.Maintenance", HOST),),
    "HostSystem.QueryConfiguredModuleOptionString": _MODULE_OPTIONS,
    "HostSystem.QueryModules": _MODULE_OPTIONS,
    "HostSystem.RebootHost_Task": (Need("Host.Config.Maintenance", HOST),),
    "HostSystem.RefreshGraphicsManager": (Need("Host.Config.Settings", HOST),),
    "HostSystem.RefreshServices": (Need("Host.Config.NetService", HOST),),
    "HostSystem.RemoveVirtualNic": (Need("Host.Config.Network", HOST),),
    "HostSystem.RestartService": (Need("Host.Config.NetService", HOST),),
    "HostSystem.SelectVnicForNicType": (Need("Host.Config.Network", HOST),),
    "HostSystem.UpdateGraphicsConfig": (Need("Host.Config.Settings", HOST),),
    "HostSystem.UpdateModuleOptionString": _MODULE_OPTIONS,
    "HostSystem.UpdateOptions": (Need("Host.Config.AdvancedConfig", HOST, SECURITY),),
    "HostSystem.UpdatePassthruConfig": (Need("Host.Config.PciPassthru", HOST),),
    "HostSystem.UpdateVirtualNic": _NETWORK,
    "OptionManager.UpdateOptions": (Need("Global.Settings", ROOT, SECURITY),),
    "Task.CancelTask": (Need("Global.CancelTask", "object of the task", SECURITY),),
    "GET /api/vcenter/storage/policies": _POLICY_READ,
    "GET /api/vcenter/storage/policies/compliance/vm": _POLICY_READ,
    "GET /api/vcenter/storage/policies/{id}/vm": _POLICY_READ,
    "POST /api/vcenter/storage/policies/{id}?action=check-compatibility": _POLICY_READ,
    "PATCH /api/vcenter/vm/{id}/storage/policy": (*_POLICY_READ, Need("VirtualMachine.Config.Settings", VM, UNSURE)),
    "POST /api/content/library/subscribed-item/{id}?action=sync": (
        Need("ContentLibrary.SyncLibraryItem", "content library", UNSURE),
    ),
    "POST /api/vcenter/ovf/library-item/{id}?action=deploy": (
        Need("VApp.Import", VM_FOLDER, UNSURE),
        Need("Resource.AssignVMToPool", "resource pool", UNSURE),
        Need("Datastore.AllocateSpace", "datastore", UNSURE),
        Need("Network.Assign", "network", UNSURE),
    ),
    "VirtualMachine.MarkAsTemplate": (Need("VirtualMachine.Provisioning.MarkAsTemplate", VM),),
    "VirtualMachine.CloneVM_Task": (
        Need("VirtualMachine.Inventory.CreateFromExisting", VM_FOLDER, REFERENCE),
        Need("VirtualMachine.Provisioning.DeployTemplate", "template", REFERENCE),
        Need("VirtualMachine.Provisioning.Clone", "virtual machine that is cloned", REFERENCE),
        Need("Resource.AssignVMToPool", "resource pool", REFERENCE),
        Need("Datastore.AllocateSpace", "datastore", REFERENCE),
        Need("Network.Assign", "network of the template", SECURITY),
        Need("VirtualMachine.Config.AdvancedConfig", VM_FOLDER, REFERENCE),
    ),
    "VirtualMachine.Destroy_Task": (
        Need("VirtualMachine.Inventory.Delete", "virtual machine and its folder", SECURITY),
    ),
    "VirtualMachine.PowerOffVM_Task": (Need("VirtualMachine.Interact.PowerOff", VM),),
    "VirtualMachine.PowerOnVM_Task": (Need("VirtualMachine.Interact.PowerOn", VM),),
    "VirtualMachine.ReconfigVM_Task": (
        Need("VirtualMachine.Config.AddNewDisk", VM, REFERENCE),
        Need("VirtualMachine.Config.AddRemoveDevice", VM, REFERENCE),
        Need("VirtualMachine.Config.AdvancedConfig", VM, REFERENCE),
        Need("VirtualMachine.Config.Annotation", VM, SECURITY),
        Need("VirtualMachine.Config.CPUCount", VM, REFERENCE),
        Need("VirtualMachine.Config.DiskExtend", VM, SECURITY),
        Need("VirtualMachine.Config.EditDevice", VM, REFERENCE),
        Need("VirtualMachine.Config.Memory", VM, REFERENCE),
        Need("VirtualMachine.Config.RawDevice", VM, UNSURE),
        Need("VirtualMachine.Config.RemoveDisk", VM, REFERENCE),
        Need("VirtualMachine.Config.Rename", VM, REFERENCE),
        Need("VirtualMachine.Config.Resource", VM, REFERENCE),
        Need("VirtualMachine.Config.Settings", VM, REFERENCE),
        Need("VirtualMachine.Interact.DeviceConnection", VM, REFERENCE),
        Need("VApp.ApplicationConfig", VM, REFERENCE),
        Need("Network.Assign", "port group", REFERENCE),
        Need("Datastore.AllocateSpace", "datastore", SECURITY),
    ),
    "VirtualMachine.RelocateVM_Task": (
        Need("Resource.ColdMigrate", VM),
        Need("Resource.HotMigrate", VM, SECURITY),
        Need("Resource.AssignVMToPool", "resource pool", REFERENCE),
    ),
    "VirtualMachine.ShutdownGuest": (Need("VirtualMachine.Interact.PowerOff", VM),),
    "esxcli network diag ping": _ESXCLI,
    "esxcli network nic dcb status get": _ESXCLI,
    "esxcli network nic stats get": _ESXCLI,
    "esxcli rdma device stats get": _ESXCLI,
    "esxcli software vib install": _ESXCLI_IMAGE,
    "esxcli system module parameters list": _ESXCLI,
    "esxcli vim CLIInfo FetchCLIInfo": _ESXCLI,
    "esxcli software vib list": _ESXCLI,
    "esxcli software vib remove": _ESXCLI_IMAGE,
    "POST /api/cis/tasks?action=list": (Need("VcIntegrity.lifecycleGeneral.Read", ROOT, SECURITY),),
    "GET /api/cis/tasks/{id}": (Need("VcIntegrity.lifecycleGeneral.Read", ROOT, SECURITY),),
    f"GET {_POLICY}": (_SETTINGS_READ,),
    f"GET {_OFFLINE}": (_SETTINGS_READ,),
    f"POST {_OFFLINE}": (Need("VcIntegrity.lifecycleSettings.Write", ROOT, LIFECYCLE),),
    f"POST {_CLUSTER}/software?action=scan": (_IMAGE_READ,),
    f"POST {_CLUSTER}/software?action=check": _IMAGE_CHECK,
    f"POST {_CLUSTER}/software?action=apply": _IMAGE_APPLY,
    f"PUT {_DRAFTS}/{{id}}/software/base-image": _IMAGE_WRITE,
    f"PUT {_DRAFTS}/{{id}}/software/add-on": _IMAGE_WRITE,
    f"GET {_CLUSTER}/enablement/software": (_IMAGE_READ,),
    f"GET {_CLUSTER}/software": (_IMAGE_READ,),
    f"GET {_CLUSTER}/software/compliance": (_IMAGE_READ,),
    f"POST {_DRAFTS}": _IMAGE_WRITE,
    f"PATCH {_DRAFTS}/{{id}}/software/components": _IMAGE_WRITE,
    f"POST {_DRAFTS}/{{id}}?action=validate": _IMAGE_WRITE,
    f"POST {_DRAFTS}/{{id}}?action=commit": _IMAGE_WRITE,
    f"DELETE {_DRAFTS}/{{id}}": _IMAGE_WRITE,
    HOST_PROFILES: (Need("Profile.View", ROOT),),
}

# A note on a host that is valid until its next boot.
NOTE = ("CustomFieldsManager.AddCustomFieldDef", "CustomFieldsManager.SetField")
# Long calls renew the lock of their run.
LOCK = ("Folder.CreateFolder", "Folder.Destroy_Task", "Folder.Rename_Task")

# All calls of the collection's readers.
_READERS = (
    HOST_PROFILES,
    "HostSystem.QueryModules",
    "esxcli network nic dcb status get",
    "esxcli network nic stats get",
    "esxcli rdma device stats get",
    "esxcli software vib list",
    f"GET {_CLUSTER}/enablement/software",
    f"GET {_CLUSTER}/software",
    f"GET {_CLUSTER}/software/compliance",
    f"GET {_POLICY}",
    "POST /api/cis/tasks?action=list",
    "GET /api/cis/tasks/{id}",
)

# The calls of each module that need more privileges than every role has; "workers" is the inventory plugin. The modules
# of the parts of a host's profile have their calls in their PART, and those of esxi_info and esxi_profile are derived.
MODULES: dict[str, tuple[str, ...]] = {
    # The programs of these actions call other modules.
    "esxi_window": (),
    "esxi_rollout": (),
    "program": (),
    # The remediations of a cluster that an image manages.
    "cluster_info": (
        HOST_PROFILES,
        "esxcli network diag ping",
        "POST /api/cis/tasks?action=list",
        "GET /api/cis/tasks/{id}",
    ),
    "cluster_lock": LOCK,
    "custom_attributes": ("CustomFieldsManager.RemoveCustomFieldDef", "CustomFieldsManager.SetField"),
    "esxi_image": (
        *LOCK,
        "GET /api/cis/tasks/{id}",
        "POST /api/cis/tasks?action=list",
        f"GET {_POLICY}",
        f"GET {_OFFLINE}",
        f"POST {_OFFLINE}",
        f"POST {_CLUSTER}/software?action=scan",
        f"POST {_CLUSTER}/software?action=check",
        f"POST {_CLUSTER}/software?action=apply",
        f"PUT {_DRAFTS}/{{id}}/software/base-image",
        f"PUT {_DRAFTS}/{{id}}/software/add-on",
        f"GET {_CLUSTER}/enablement/software",
        f"GET {_CLUSTER}/software",
        f"GET {_CLUSTER}/software/compliance",
        f"POST {_DRAFTS}",
        f"PATCH {_DRAFTS}/{{id}}/software/components",
        f"POST {_DRAFTS}/{{id}}?action=validate",
        f"POST {_DRAFTS}/{{id}}?action=commit",
        f"DELETE {_DRAFTS}/{{id}}",
    ),
    "esxi_power": (
        *LOCK,
        *NOTE,
        "HostSystem.EnterMaintenanceMode_Task",
        "HostSystem.ExitMaintenanceMode_Task",
        "HostSystem.RebootHost_Task",
        "HostSystem.RefreshServices",
        "Task.CancelTask",
        "VirtualMachine.PowerOffVM_Task",
        "VirtualMachine.RelocateVM_Task",
        "VirtualMachine.ShutdownGuest",
    ),
    "gpu_usage": (),
    "maintenance_window": LOCK,
    "rdma_fabric": (
        *LOCK,
        *NOTE,
        "DistributedVirtualPortgroup.Destroy_Task",
        "DistributedVirtualPortgroup.ReconfigureDVPortgroup_Task",
        "DistributedVirtualSwitch.AddDVPortgroup_Task",
        "DistributedVirtualSwitch.Destroy_Task",
        "DistributedVirtualSwitch.ReconfigureDvs_Task",
        "Folder.CreateDVS_Task",
        "HostSystem.AddVirtualNic",
        "HostSystem.DeselectVnicForNicType",
        "HostSystem.RemoveVirtualNic",
        "HostSystem.SelectVnicForNicType",
        "HostSystem.UpdateVirtualNic",
    ),
    "site": ("esxcli vim CLIInfo FetchCLIInfo", *_READERS),
    "shared_settings": (*LOCK, "ClusterComputeResource.ReconfigureComputeResource_Task", "OptionManager.UpdateOptions"),
    "vcenter_role": (
        "AuthorizationManager.AddAuthorizationRole",
        "AuthorizationManager.RemoveAuthorizationRole",
        "AuthorizationManager.SetEntityPermissions",
        "AuthorizationManager.UpdateAuthorizationRole",
    ),
    "vmotion": (*LOCK, "Task.CancelTask", "VirtualMachine.RelocateVM_Task"),
    "observe": (),
    "vmotion_info": (),
    "vmotion_plan": (),
    "vmotion_test": (),
    "worker_rules": ("ClusterComputeResource.ReconfigureComputeResource_Task", "CustomFieldsManager.SetField"),
    "worker_vm": (
        *LOCK,
        *NOTE,
        "Folder.MoveIntoFolder_Task",
        "GET /api/vcenter/storage/policies",
        "GET /api/vcenter/storage/policies/compliance/vm",
        "GET /api/vcenter/storage/policies/{id}/vm",
        "PATCH /api/vcenter/vm/{id}/storage/policy",
        "POST /api/content/library/subscribed-item/{id}?action=sync",
        "POST /api/vcenter/ovf/library-item/{id}?action=deploy",
        "POST /api/vcenter/storage/policies/{id}?action=check-compatibility",
        "VirtualMachine.CloneVM_Task",
        "VirtualMachine.Destroy_Task",
        "VirtualMachine.MarkAsTemplate",
        "VirtualMachine.PowerOffVM_Task",
        "VirtualMachine.PowerOnVM_Task",
        "VirtualMachine.ReconfigVM_Task",
        "VirtualMachine.RelocateVM_Task",
        "VirtualMachine.ShutdownGuest",
    ),
    "worker_vm_info": (),
    "workers": (),
}
