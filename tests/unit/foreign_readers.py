"""The readers of foreign text by their files, each with what is put before it and what it may answer.

``test_foreign_text.py`` tries them. ELSEWHERE are the files that take texts apart and are tried by another test of that
kind, or that read what no one else can have written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from plugins.module_utils.cluster import cluster_info
from plugins.module_utils.core import masked, names, versions, vgpu_manager
from plugins.module_utils.durable import program_journal
from plugins.module_utils.fabric import fabric_marks
from plugins.module_utils.guests import (
    gpu_health,
    gpu_report,
    node_checks,
    nvidia,
    repositories,
    software_packages,
    stun_timers,
    supervisor,
    task_failure,
)
from plugins.module_utils.hosts import driver_options, roce_settings
from plugins.module_utils.hosts.pci_address import pci_address
from plugins.module_utils.maintenance import boot, service_note
from plugins.module_utils.maintenance.lock import lock_rules
from plugins.module_utils.site.recording import archive
from plugins.module_utils.slurm import job_states, named_job
from plugins.module_utils.training.ending import job_end, rank_errors
from plugins.module_utils.training.guest import git_commit, job, others_job, slurm_processes
from plugins.module_utils.training.launch import requirements
from plugins.module_utils.training.launch.folder import secret_in
from plugins.module_utils.training.output.gpu_use import gpus_of
from plugins.module_utils.training.results import manifest, saved_results
from plugins.module_utils.training.runs import node_setup
from plugins.module_utils.training.transport.job_settings import TransportError, version_of
from plugins.module_utils.trials.checks import guest_checks
from plugins.module_utils.usage import usage_report
from plugins.module_utils.usage.gpu_load import card_of
from plugins.module_utils.vsphere import esxcli
from plugins.module_utils.watch import hangs, jobs_program, mpi_output, shown_lines
from plugins.module_utils.workers import customise, foreign_disks, library_items, worker_mark
from plugins.module_utils.workers.capacity import machines
from plugins.module_utils.workers.placement import gpu_slots, host_room, mmio
from plugins.module_utils.workers.placement.gpu_slots import fits_profile
from plugins.plugin_utils.follow import Follower
from tests.fakes import foreign, hardware, worker_cluster
from tests.fakes.foreign import json_text, lines, mangled, text

Strategy = st.SearchStrategy[Any]
NONE = type(None)
BOOTED = "2026-01-01T00:00:00+00:00"
SMI = "Driver Version : 580.65\nGPU 00000000:02:01.0\n Product Name : A100\n vGPU Software Licensed Product\n"
DCGM = '{"DCGM Diagnostic": {"test_categories": [{"tests": [{"results": [{"status": "Fail", "warnings": [{}]}]}]}]}}'
SMI_XML = '<nvidia_smi_log><gpu id="0:3b:0.0"><product_name>A100</product_name></gpu></nvidia_smi_log>'
XID = "[ 1.5] NVRM: Xid (PCI:0000:3b:00): 79, gone\nNVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: fallen off the bus\n"
RAS = "Communicator ranks have different operation counts\n2 ranks have launched up to operation 6\n"
SMI_ROW = "0, NVIDIA A100-SXM4-80GB, 93, 70123, [N/A]\nNo devices were found\n"
MPI = "[1,0]<stdout>:step 3\n[1,1]<stderr>:ValueError: no\nmpirun noticed that process rank 1 exited on signal 9"
IB = " #bytes BW average[Gb/sec]\n 65536 5000 24.10 23.55 0.044917\n"
ESXCLI = (
    '<ArrayOfDataObject xmlns="urn:vim25" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="ArrayOfVib">'
    '<DataObject xsi:type="Vib"><Name>NVD</Name><Version>1</Version></DataObject></ArrayOfDataObject>'
)
SEEN = {
    "sysctls": {"net.ipv4.tcp_retries2": 15},
    "ssh": "serveraliveinterval 0",
    "environment": {"NCCL_IB_TIMEOUT": "22", "UCX_RC_TIMEOUT": "1000ms"},
    "mpirun": ["mpirun", "--mca", "pml", "ucx"],
    "nvidia": SMI,
    "checkpoint": {"age_s": 1.0, "verified": True},
    "slurm": {"daemons": ["slurmd"], "config": "SlurmdTimeout = 300 sec\nAuthInfo = ttl=30", "changing": ["7"]},
}
RANK = {"pid": 1, "start": 1, "boot_id": "b"}
JOB: dict[str, Any] = {
    supervisor.DESIRED: {"id": "x", "command": [], "hosts": [], "nodes_of_ranks": ["n1"], "secret_environment": {}},
    supervisor.RUN: {"launcher": RANK, "supervisor": RANK, "job": "1", "started": 1.0},
    supervisor.END: {"swept": True, "stopped": False, "exit_code": 1, "ended": 1.0, "left": {}},
}
RECORDING: dict[str, Any] = {
    "manifest.json": {"format": 1},
    **{f"{name}.json": {} for name in ("server", "links", "calls", "esxcli_schemas")},
    "asked.json": {"Folder": ["name"]},
    "objects.json": {"a": {"kind": "Folder", "values": {}}},
    "content.json": None,
    "esxcli.json": [{"host": "h", "command": "c", "arguments": {}, "response": None}],
    "rest.json": [],
}
OF_JOB = "7|RUNNING|None|anna|n1|n[1-2]\nn1|n1|192.0.2.1|down*|Not responding\n   Requeue=1 Restarts=0 B=1 ExitCode=0:0"
SQUEUE = "1|COMPLETED|None|N/A|dml|(null)\n7|PENDING|Resources|2026-01-01T00:00:00|dml|dml:a"
LOCK = ("1of2 state=held owner=a run=b since=2026-01-01T00:00:00Z", "2of2 until=2026-01-01T00:00:00Z ttl=60")
NOTE = {"by": "root@ctl", "since": BOOTED, "ending_boot": BOOTED}
REF = "ref: refs/heads/main"
RESULT = {"name": "a", "nodes": 1, "gpus": 1, "transport": "tcp", "images_per_sec": 1.0}
MANIFEST = {"name": "a", "run_dir": "/a", "nodes": ["n1"], "command": [], "transport": "tcp", "end": {}}
FAILED = {"msg": "a", "results": [{"failed": True, "msg": "b"}], "cmd": ["x"], "stderr": "c"}
UBUNTU = {"os_family": "Debian", "kernel": "6.1", "distribution": "Ubuntu"}


@dataclass(frozen=True)
class Reader:
    """A function of a separate folder and a given value; ``refuses`` is the error of its room."""

    file: str
    read: Callable[[Path, Any], Any]
    given: Strategy
    answers: Any
    refuses: tuple[type[Exception], ...] = ()


def of(file: str, read: Callable[[Any], Any], given: Strategy, answers: Any, *refuses: type[Exception]) -> Reader:
    """A reader that needs no folder."""
    return Reader(file, lambda _folder, value: read(value), given, answers, refuses)


class Noted(dict[str, Any]):
    """A host with a custom attribute, as vCenter reports it."""

    name, boot_time = "esx01", BOOTED

    def __init__(self, attribute: str, value: str) -> None:
        fields, values = attributes(attribute, value)
        super().__init__({"availableField": fields, "customValue": values})

    def __missing__(self, _key: str) -> None:
        return None


def attributes(name: str, value: str) -> tuple[list[Any], list[Any]]:
    """The definition and the value of a custom attribute."""
    return [SimpleNamespace(name=name, key=1)], [SimpleNamespace(key=1, value=value)]


def queued(output: str) -> job_states.SlurmJob:
    """The job of a run in the output of squeue; another one without it."""
    other = job_states.SlurmJob("1", "dml-a", "PENDING", "None", "N/A", "dml", "dml:a")
    return job_states.own_job(job_states.jobs_of(output), "a", "a") or other


def pending(value: str) -> Any:
    return boot.pending(Noted(boot.ATTRIBUTE, value))  # type: ignore[arg-type]


def taken_out(value: str) -> Any:
    """The note of who took a host out, with which a host is then looked at."""
    note = service_note.note_on(Noted(service_note.ATTRIBUTE, value))  # type: ignore[arg-type]
    return note if note is None or isinstance(boot.is_same_boot(note.ending_boot, BOOTED), bool) else str(note)


def built_on(value: str) -> Any:
    return fabric_marks.built_on(Noted(fabric_marks.ATTRIBUTE, value), "rdma")  # type: ignore[arg-type]


def recorded_disks(value: str) -> Any:
    return foreign_disks._entries(
        worker_cluster.machine(config__extraConfig=hardware.settings(dml__vsphere__disks=value))
    )


def recorded_item(value: str) -> Any:
    return library_items.recorded({library_items.RECORD: value})


def marked(value: str) -> Any:
    return worker_mark.read(*attributes(worker_mark.ATTRIBUTE, value))


def written(folder: Path, name: str, value: str) -> Path:
    """A file with a text, whatever signs that has."""
    path = folder / name
    path.write_bytes(value.encode("utf-8", "surrogatepass"))
    return path


def others(folder: Path, record: str) -> dict[str, Any]:
    return others_job.state_of(str(written(folder, "rank0.jsonl", record).parent))


def filled(folder: Path, files: Any) -> Path:
    """A folder with these files as JSON and no others."""
    for path in folder.iterdir():
        path.unlink()
    for name, content in (files if isinstance(files, dict) else {}).items():
        if name in JOB or name in RECORDING:
            written(folder, name, foreign.dumped(content))
    return folder


def event(folder: Path, line: str) -> Any:
    shown: list[Any] = []
    Follower(str(folder / "none"), shown.append)._show_line(line)
    return shown[0]


def run_file(folder: Path, value: str) -> Any:
    return supervisor.read(str(written(folder, supervisor.RUN, value).parent), supervisor.RUN)


def commit(folder: Path, head: str) -> str:
    (folder / ".git/refs/heads").mkdir(parents=True, exist_ok=True)
    (folder / ".git/refs/heads/main").write_text(f"{REF}\n")
    written(folder / ".git", "HEAD", head)
    return git_commit.commit_of(str(folder))


def result_file(folder: Path, value: str) -> Any:
    written(folder, "a.json", value)
    return saved_results.runs(folder, "a")


def rows(value: str) -> Any:
    """The answer of a host to esxcli, and a field of its rows."""
    found = esxcli.answered("esx01", "list its VIBs", value)
    return [row["Name"] for row in found if isinstance(row, esxcli.Row)] if isinstance(found, list) else found


def own(value: Any) -> bool:
    return isinstance(value, dict)


RANK = {"rank": 0, "step": 7, "pid": 1, "start": 9, "boot_id": supervisor.boot_id(), "job": "77"}
FLIGHT = {
    "entries": [{"process_group": ["0", "dp"], "pg_id": 0, "collective_seq_id": 5, "profiling_name": "nccl:send 0->1"}],
    "pg_config": {"0": {"name": "0", "desc": "dp", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_enqueued_collective": 5, "last_completed_collective": 4}},
}
PFC = {"PFCEnabled": "true", "PFCConfiguration": ["0", "1"]}
DCBX = {"Mode": "IEEE", "Willing": [{"WillingPFC": "1"}]}
RESYNC = {"dom_objects": {"a": {"content": {"attributes": {"bytesToSync": 1}}}}}
OWNER = st.fixed_dictionaries({"config.annotation": text("owner: me")})
READERS = (
    of("workers/capacity/machines.py", machines.owner_of, OWNER, str),
    of("cluster/cluster_info.py", cluster_info.resync_bytes, json_text(RESYNC), (int, float, NONE)),
    of("maintenance/boot.py", pending, json_text({"boot": BOOTED, "was": {"a": 1}}), dict),
    of("hosts/pci_address.py", pci_address, text("0000:3b:00.0"), str),
    of("maintenance/service_note.py", taken_out, json_text(NOTE), (service_note.ServiceNote, NONE)),
    of("fabric/fabric_marks.py", built_on, json_text({"rdma": {"joined": True, "adapters": {}}}), (dict, NONE)),
    of("workers/customise.py", lambda value: (customise._decode({"k": value}, "k"),), json_text({"users": []}), tuple),
    of("workers/foreign_disks.py", recorded_disks, json_text(["6000c29f"]), list),
    of(
        "workers/library_items.py",
        recorded_item,
        json_text(dict.fromkeys(("library", "item", "id", "version"), "1")),
        (dict, NONE),
    ),
    of("workers/worker_mark.py", marked, json_text({"name": "w1", "built": True}), (dict, NONE)),
    Reader(
        "training/guest/job.py", lambda folder, files: job.job_state(str(filled(folder, files))), mangled(JOB), dict
    ),
    Reader("training/guest/others_job.py", others, json_text(RANK).map(lambda one: f"{one}\n"), dict),
    Reader("guests/supervisor.py", run_file, json_text(JOB[supervisor.RUN]), (dict, NONE)),
    of(
        "hosts/driver_options.py",
        driver_options.parse,
        text("max_vfs=8 pfctx=0x08 RSS=4,4"),
        dict,
        driver_options.OptionError,
    ),
    of("maintenance/lock/lock_rules.py", lock_rules.decode, lines(*LOCK), (lock_rules.LockRecord, NONE)),
    of("hosts/roce_settings.py", roce_settings.pfc_of, mangled(PFC).filter(own), list),
    of("hosts/roce_settings.py", roce_settings.dcbx_of, mangled(DCBX).filter(own), dict),
    of("trials/checks/guest_checks.py", lambda seen: guest_checks.findings({"n": seen}, 9, 0), mangled(SEEN), list),
    of("core/masked.py", lambda value: list(masked.masked_words(value)), text("avai********ility of $REDACTED$"), list),
    of("core/names.py", names.address, text("10.0.0.1", "fe80::1%eth0"), (str, NONE)),
    of("guests/nvidia.py", nvidia.report, text(SMI), dict),
    of("guests/gpu_report.py", gpu_report.report, text(SMI_XML), gpu_report.GpuReport, gpu_report.ReportError),
    of("guests/gpu_health.py", gpu_health.failed_tests, text(DCGM), (list, NONE)),
    of("guests/gpu_health.py", lambda one: list(gpu_health.xids(one.splitlines())), text(XID), list),
    of(
        "watch/recorders.py",
        lambda one: hangs.of_nodes({"n": {"dumps": {"0": one, "1": FLIGHT}}}),
        mangled(FLIGHT),
        list,
    ),
    of("watch/hangs.py", lambda one: hangs.sentences({}, [one]), text(RAS), list),
    of("guests/nvidia.py", nvidia.uuids, text("GPU 0: A100 (UUID: GPU-1)"), list),
    of(
        "guests/software_packages.py",
        lambda one: software_packages.packages(one, UBUNTU),
        lines("linux-image 6.1 installed"),
        dict,
    ),
    of("guests/repositories.py", repositories.update_faults, text("E: The repository is not signed."), list),
    of("guests/node_checks.py", node_checks.average_gbits, text(IB), (float, NONE)),
    of("guests/stun_timers.py", stun_timers.settings, text("serveraliveinterval 0\ntcpkeepalive no"), dict),
    of("guests/task_failure.py", task_failure.message_of, mangled(FAILED).filter(own), str),
    of("workers/placement/gpu_slots.py", lambda one: fits_profile(one, "a100"), text("NVIDIA A100 80GB"), bool),
    of(
        "workers/placement/gpu_slots.py",
        gpu_slots.parse,
        text("grid_t4-16c", "a100-1-5c"),
        (gpu_slots.VgpuProfile, NONE),
    ),
    of("workers/placement/host_room.py", host_room.group_profiles, text("group_1_grid_a100x2"), (tuple, NONE)),
    of("workers/placement/mmio.py", lambda one: mmio.memory_gb(one, one), text("A100 80GB"), (int, NONE)),
    of(
        "watch/jobs_program.py",
        lambda one: jobs_program.last_step(one.encode(errors="replace")),
        text('{"step": 3}\n'),
        (int, NONE),
    ),
    of(
        "slurm/named_job.py",
        lambda one: named_job.read_job(lambda *_: {"stdout": one}, "7"),
        text(OF_JOB),
        (named_job.ReadJob, NONE),
    ),
    of("training/guest/slurm_processes.py", slurm_processes.processes_of, text("17 4711 batch 0 0\n"), list),
    of("slurm/job_states.py", lambda one: job_states.why_waiting(queued(one), one), text(SQUEUE), str),
    of("training/ending/job_end.py", lambda one: job_end.cause_of(one, 1, ["n1", "n2"]).sentence, text(MPI), str),
    of("training/results/manifest.py", lambda one: manifest.parsed(one, "a"), json_text(MANIFEST), dict),
    of(
        "training/launch/requirements.py",
        lambda one: requirements.cause(one, {"numpy": "1"}),
        text("ERROR: numpy>=2"),
        str,
    ),
    of(
        "training/launch/folder.py",
        lambda one: secret_in([one.encode("utf-8", "replace")]),
        text("-----BEGIN PRIVATE KEY"),
        str,
    ),
    of(
        "training/output/gpu_use.py",
        lambda one: gpus_of({"n1": {"gpus": [1.0, {"text": one}]}}, 1.0),
        text(SMI_ROW),
        list,
    ),
    of("watch/shown_lines.py", shown_lines.last_lines, text(MPI), list),
    of(
        "training/ending/rank_errors.py",
        lambda one: rank_errors.errors_of(mpi_output.lines_of(one), ["n1"]),
        text(MPI),
        list,
    ),
    of("watch/mpi_output.py", mpi_output.lines_of, text(MPI), list),
    of("training/transport/job_settings.py", version_of, text("2.4.7-1+cuda10.0"), tuple, TransportError),
    of("usage/usage_report.py", lambda one: usage_report.hours_of(one.splitlines()), text("a|b|5400|gres/gpu=2"), list),
    of("usage/gpu_load.py", lambda one: card_of(one, ["0000:3b:00.0"]), text("GPU-0000003B:00:00.0"), (str, NONE)),
    of("core/versions.py", versions.numbers, text("8.0.3") | foreign.JSON, tuple),
    of("core/vgpu_manager.py", vgpu_manager.is_manager, text("NVD-AIE_ESXi_8.0.0_Driver"), bool),
    Reader(
        "site/recording/archive.py",
        lambda folder, files: archive.read(filled(folder, files), None),
        mangled(RECORDING),
        archive.Recording,
    ),
    Reader("training/guest/git_commit.py", commit, text(REF), str),
    of(
        "training/runs/node_setup.py",
        lambda text: node_setup.parsed("w1", "read the summary /runs/a/summary-0.json", text, dict),
        json_text(RESULT),
        dict,
    ),
    Reader("training/results/saved_results.py", result_file, json_text(RESULT), list),
    Reader(
        "durable/program_journal.py",
        lambda folder, value: program_journal.read(written(folder, "journal", f"{value}\n")),
        json_text({"at": 1.0, "key": "begin", "value": 1}),
        list,
    ),
    of("vsphere/esxcli.py", rows, text(ESXCLI), (list, dict, str, NONE)),
    Reader("plugin_utils/follow.py", event, json_text({"about": "a", "what": "b", "seconds": 1.0}), dict),
)
