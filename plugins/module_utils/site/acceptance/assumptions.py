"""Assumptions of the collection about real systems that no recording confirms; the source of docs/unproven.md."""

from __future__ import annotations

from . import assumption_checks
from .assumption_checks import Assumption
from .worker_assumptions import WORKERS

_HERE = "plugins/module_utils"
_ON_A_SITE = "`acceptance` on any site"
_ONE_IMAGE = "`hosts` with `esxi_host_image` on one empty host of a cluster that an image manages"
_WITH_RDMA = "`acceptance` on a host with RDMA cards"
_WITH_VGPU = "`acceptance` on a host with vGPUs in use"
_AFTER_A_MOVE = "`conformance` with a template, or `acceptance` with a virtual machine that moved in the last days"
ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "esxcli executer",
        "The type of the object that runs esxcli in vCenter is ReflectManagedMethodExecuter or ManagedMethodExecuter.",
        (f"{_HERE}/vsphere/esxcli.py", "PlainExecuter"),
        _ON_A_SITE,
        assumption_checks.executer,
    ),
    Assumption(
        "esxcli privilege",
        "Through vCenter, esxcli requires only the privilege Host.Config.Settings, and not Host.Cim.CimInteraction.",
        (f"{_HERE}/hosts/privileges/privilege_table.py", "_ESXCLI ="),
        "`acceptance` with the account that `account` created, which has no other privileges",
    ),
    *WORKERS,
    Assumption(
        "counters of RDMA devices",
        "`esxcli rdma device stats get` returns the numbers of received and sent packets and bytes.",
        (f"{_HERE}/hosts/network.py", "rdma device stats get"),
        _WITH_RDMA,
        assumption_checks.fields_of("rdma device stats get"),
    ),
    Assumption(
        "counters of network cards",
        "`esxcli network nic stats get` returns the numbers of received and sent packets and bytes.",
        (f"{_HERE}/hosts/network.py", "network nic stats get"),
        _WITH_RDMA,
        assumption_checks.fields_of("network nic stats get"),
    ),
    Assumption(
        "flow control in the DCB status",
        "`esxcli network nic dcb status get` returns whether priority flow control is enabled, and its priorities.",
        (f"{_HERE}/hosts/roce.py", "network nic dcb status get"),
        _WITH_RDMA,
        assumption_checks.fields_of("network nic dcb status get"),
    ),
    Assumption(
        "flags of flow control",
        "The DCB status contains eight flags of 0 and 1, priority 0 first.",
        (f"{_HERE}/hosts/roce_settings.py", "pfcconfiguration"),
        _WITH_RDMA,
        assumption_checks.flags_of_flow_control,
    ),
    Assumption(
        "no waiting image",
        "`esxcli software vib list --rebooting-image` returns an empty list if no image waits for the boot.",
        (f"{_HERE}/hosts/vib.py", "rebootingimage"),
        _ON_A_SITE,
        assumption_checks.no_waiting_image,
    ),
    Assumption(
        "no reboot required",
        "A vGPU manager is in use only after a reboot, although install and update report that none is required.",
        (f"{_HERE}/hosts/vib.py", "NVIDIA's guide reboots the host after every change"),
        "`hosts` with a newer vGPU manager on one host, then `esxi_info` before and after its boot",
    ),
    Assumption(
        "one option by its key",
        "A host returns one advanced option as a property with the key of the option.",
        (f"{_HERE}/vsphere/option_definitions.py", "config.option["),
        _ON_A_SITE,
        assumption_checks.option_by_key,
    ),
    Assumption(
        "uplink of an RDMA device",
        "An RDMA device contains the key of its network adapter.",
        (f"{_HERE}/hosts/network.py", "pairedUplink"),
        _WITH_RDMA,
        assumption_checks.paired_uplink,
    ),
    Assumption(
        "names of profiles",
        "The name of a vGPU profile contains the model, the memory and the slices of the GPU, on Blackwell as in "
        "`nvidia_rtx_pro_6000_blackwell_dc-4-96c`.",
        (f"{_HERE}/workers/placement/gpu_slots.py", "_PROFILE"),
        _WITH_VGPU,
        assumption_checks.profile_names,
    ),
    Assumption(
        "capacity for profiles",
        "From 9.0 on, vCenter counts the vGPUs of a profile without a DirectPath profile, and without a privilege.",
        (f"{_HERE}/workers/capacity/server_capacity.py", "CapacityQueryByDeviceConfig"),
        "`acceptance` on vCenter 9.0 with vGPUs and `account`'s account, and `cluster_info` beside the vSphere Client",
    ),
    Assumption(
        "reservations of vGPUs",
        "The slots of a reservation without a user are not among the remaining ones, and a worker cannot use them.",
        (f"{_HERE}/workers/capacity/server_capacity.py", "unusedReservation"),
        "`worker_vm` on a host whose only free slot is reserved",
    ),
    Assumption(
        "moves of device classes",
        "A virtual machine with an Enhanced DirectPath device moves if both hosts report checkpointSupported for its "
        "class. No source confirms it for a GPU.",
        (f"{_HERE}/workers/capacity/host_capacity.py", "checkpointSupported"),
        "`vmotion` of a worker with a `device_class`, on vSphere 8.0 or later",
    ),
    Assumption(
        "RDMA card of a class",
        "A network card of a device class is an SR-IOV card with a port group and dvxBackingInfo, and in the guest an "
        "RDMA device of mlx5_ib with the MAC address that vCenter shows.",
        (f"{_HERE}/workers/nics.py", "dvxBackingInfo"),
        "`workers` and `guests` with `device_class` in `rdma_nics`, on hosts with ConnectX-7 or BlueField-3",
    ),
    Assumption(
        "count of device classes",
        "From 9.0 on, vCenter counts the devices of a class on a host without a DirectPath profile for it.",
        (f"{_HERE}/workers/capacity/server_capacity.py", "DvxDirectPathConfig"),
        "`worker_vm` with a `device_class` on vCenter 9.0 or later, with fewer devices than workers",
    ),
    Assumption(
        "moves of linked vGPUs",
        "A worker with vGPUs that NVLink connects moves to each host that offers its device group and has as many free "
        "slots. A host offers the group also if the free slots are not linked; vCenter's check then refuses the move.",
        (f"{_HERE}/moves/move/rolling_moves.py", "_find_links"),
        "`vmotion_test` with two workers that have a device group, on hosts with a free pair and without one",
    ),
    Assumption(
        "stuns of moves at once",
        "Workers with vGPUs that move at once, over different hosts, are stunned no longer than if each moved by "
        "itself, and their job waits for the sum of their stuns at most.",
        (f"{_HERE}/moves/plan/fleet.py", "_by_stun"),
        "`vmotion_test` with `vmotion_test_max_moves=2`, beside one with a single move at a time",
    ),
    Assumption(
        "limits of moves at once",
        "vSphere 8 and 9 run as many moves of a host at once as the documentation of 6.7 gives for the speed of its "
        "link: eight at 10 Gb/s, four at 1 Gb/s.",
        (f"{_HERE}/moves/plan/fleet.py", "MOVES_BY_LINK"),
        "`vmotion_test` of workers without a GPU with `vmotion_test_max_moves=8`, beside the tasks in vCenter",
    ),
    Assumption(
        "non-disruptive evacuation",
        "From 9.1 on, EnterMaintenanceMode_Task takes evacMode.workloadNonDisruptive and then moves only workloads "
        "that it does not disturb.",
        (f"{_HERE}/maintenance/maintenance_mode.py", "workloadNonDisruptive"),
        "`hosts` with `esxi_host_non_disruptive` on a vCenter 9.1, while a job runs",
    ),
    Assumption(
        "no RoCE version 1",
        "ESX 9.0 and later have no RoCE version 1.",
        (f"{_HERE}/core/versions.py", "_WITHOUT_ROCE_V1"),
        "`esxi_info` and `esxcli rdma device protocol list` on such a host",
    ),
    Assumption(
        "names with a domain",
        "vCenter 9.0 and later refuse a name without a domain with InvalidLogin.",
        (f"{_HERE}/vsphere/session.py", "_DOMAIN_REQUIRED"),
        "any module with the user `administrator`",
    ),
    Assumption(
        "users of a GPU",
        "A GPU of a host lists the virtual machines whose virtual GPUs are on it.",
        (f"{_HERE}/workers/capacity/host_capacity.py", "def users"),
        _WITH_VGPU,
        assumption_checks.users_of_gpus,
    ),
    Assumption(
        "GPU of a device",
        "From 9.1 on, the binding of a vGPU contains the address of its physical GPU.",
        (f"{_HERE}/workers/capacity/host_capacity.py", "def _pci_id"),
        "`gpu_usage` beside `nvidia-smi vgpu` on a host of 9.1 with vGPUs in use",
    ),
    Assumption(
        "modes of a GPU",
        "From 9.1 on, a host reports the mode of a GPU, and the modes that it could have, in directPathState.",
        (f"{_HERE}/hosts/pci_devices.py", "directPathState"),
        "`esxi_info` beside the vSphere Client on a host of 9.1 with GPUs",
    ),
    Assumption(
        "counters of GPUs",
        "vCenter measures each GPU with averages that are called utilization and mem.used.",
        (f"{_HERE}/usage/gpu_load.py", "UTILISATION"),
        _WITH_VGPU,
        assumption_checks.counters_of_gpus,
    ),
    Assumption(
        "option of hot migration",
        "vCenter returns the option vgpu.hotmigrate.enabled to a query with its name.",
        (f"{_HERE}/vsphere/options.py", "QueryOptions"),
        _ON_A_SITE,
        assumption_checks.hot_migration_option,
    ),
    Assumption(
        "stun times of profiles",
        "From vCenter 8.0 U2, a host reports stun times per vGPU profile and migration bandwidth.",
        (f"{_HERE}/moves/move/move_facts.py", "stunTimeEstimates"),
        _WITH_VGPU,
        assumption_checks.stun_times,
    ),
    Assumption(
        "managed by an image",
        "The property lifecycleManaged of a cluster has the same value as the REST API of vLCM.",
        (f"{_HERE}/hosts/cluster_image.py", "lifecycleManaged"),
        _ON_A_SITE,
        assumption_checks.image_managed,
    ),
    Assumption(
        "maintenance mode after a remediation",
        "vLCM leaves a host in maintenance mode that was in it before; if not, the window puts it there again.",
        (f"{_HERE}/hosts/change_hosts.py", "vLCM may have returned them to service"),
        _ONE_IMAGE,
    ),
    Assumption(
        "remediations in the list of tasks",
        "Users with the privilege list remediations by POST /api/cis/tasks?action=list; the SDK of 9.1 lacks it.",
        (f"{_HERE}/hosts/remediation.py", "clusters.software"),
        _ONE_IMAGE,
    ),
    Assumption(
        "hosts of a remediation that runs",
        "The result of a remediation contains the status of its hosts while it runs.",
        (f"{_HERE}/hosts/remediation.py", "host_status"),
        _ONE_IMAGE,
    ),
    Assumption(
        "failed remediation",
        "A host whose remediation failed is among the failed hosts, or has an error, if the task succeeded.",
        (f"{_HERE}/hosts/host_image.py", "failed_hosts"),
        _ONE_IMAGE,
    ),
    Assumption(
        "boot time after a move",
        "A running virtual machine has no boot time after a move.",
        (f"{_HERE}/moves/checks/move_events.py", "vCenter forgets the boot time of a machine"),
        _AFTER_A_MOVE,
        assumption_checks.unset_boot_time,
    ),
    Assumption(
        "moves to another cluster",
        "A running worker moves to another cluster only with a resource pool there; vCenter's check covers its EVC.",
        (f"{_HERE}/workers/worker_cluster.py", "def pool_for"),
        "`hosts` with `under_training` and `window_spare` on a cluster without a free GPU",
    ),
    Assumption(
        "target of an encrypted move",
        "The event of an encrypted move contains the target in the argument destHost.",
        (f"{_HERE}/moves/move/move_watch.py", "destHost"),
        _AFTER_A_MOVE,
        assumption_checks.encrypted_move,
    ),
    Assumption(
        "chain of a move",
        "All events of a move have the chain id of its task.",
        (f"{_HERE}/moves/move/move_watch.py", "of_chain"),
        _AFTER_A_MOVE,
        assumption_checks.one_chain,
    ),
    Assumption(
        "moves of DRS",
        "The tasks in which DRS moves machines are called Drm.ExecuteVMotionLRO.",
        (f"{_HERE}/maintenance/recent_tasks.py", "ExecuteVMotionLRO"),
        "`acceptance` with a virtual machine just after DRS moved it",
        assumption_checks.task_of_drs,
    ),
    Assumption(
        "encryption of moves",
        "The encryption of moves of a virtual machine is disabled, opportunistic or required.",
        (f"{_HERE}/moves/move/move_watch.py", "config.migrateEncryption"),
        _ON_A_SITE,
        assumption_checks.move_encryption,
    ),
    Assumption(
        "all_reduce of pairs",
        "NCCL and the CUDA runtime of a stack measure the bus bandwidth of two nodes if Python calls them. The program "
        "ran only with stand-ins that have the same signatures.",
        ("roles/training/files/dml_pairs_nccl.py", "ncclAllReduce"),
        "`fabric_check` on two workers with GPUs, beside all_reduce_perf of nccl-tests",
    ),
    Assumption(
        "use of GPUs",
        "`nvidia-smi --query-gpu` prints the use and the memory of each GPU in one row, also in a guest with a vGPU.",
        (f"{_HERE}/training/output/gpu_use.py", "utilization in percent"),
        "`make gpu` on a machine with a GPU, then `train` on a worker with one: `live.html` beside `nvidia-smi`",
    ),
    Assumption(
        "NCCL without memory pools",
        "NCCL from 2.32.3 on starts on a vGPU without unified memory, as its text says, and PyTorch 2.15 with it.",
        (f"{_HERE}/guests/memory_pools.py", "NEEDS_NONE"),
        "`make gpu` with a GPU, then `train` with the stack `vgpu-ubuntu24-nccl232` on workers with vGPUs",
    ),
    Assumption(
        "health of GPUs",
        "`nvidia-smi -q -x` in a guest, also with a Hopper GPU, has the elements of published output.",
        (f"{_HERE}/guests/gpu_report.py", "remapped_row_pending"),
        "`make gpu` on a machine with a GPU, then `train` and `audit` with a worker that has one",
    ),
    Assumption(
        "GPUDirect RDMA",
        "A node with nvidia_peermem or DMA-BUF sends from the memory of its GPUs through a card with mlx5_core.",
        (f"{_HERE}/guests/gpudirect.py", "CAPABLE"),
        "`fabric_check` with NCCL over RDMA on workers with a ConnectX-7, which measures with and without it",
    ),
    Assumption(
        "Slurm with GPUs and cgroup v2",
        "With cgroup v2, Slurm confines a job to the CPUs and GPUs of its allocation, as gres.conf names them.",
        (f"{_HERE}/guests/slurm_cluster.py", "ConstrainDevices"),
        "`guests` with `guest_slurm` on workers with GPUs, then `train` with `training_backend: slurm`",
    ),
    Assumption(
        "TrainJob",
        "Trainer and JobSet give pods the labels, owners and host names of their sources, and the keys of ssh to the "
        "containers with the name `node`.",
        (f"{_HERE}/kubernetes/job_kinds.py", "jobset.sigs.k8s.io"),
        "`train` with `job: {api: trainjob}` on a cluster with Trainer 2.4",
    ),
    Assumption(
        "unified memory of vGPUs",
        "`pciPassthruN.cfg.enable_uvm` gives the vGPU N of a worker unified memory; N counts its devices from 0.",
        (f"{_HERE}/workers/unified_memory.py", "cfg.enable_uvm"),
        "`workers` with `vgpu_unified_memory`, then `train` on the worker",
    ),
)
