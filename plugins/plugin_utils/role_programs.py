# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of roles that read or compute: what other modules read becomes a plan, a verdict or a report.

Only ``conformance`` and ``shared_settings`` call modules that write.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ..module_utils import runner
from ..module_utils.continuity.restart_facts import LOSS_TOLERANCE
from ..module_utils.durable.calls import Modules, Result, required
from ..module_utils.errors import Refused
from ..module_utils.fabric import recorded_settings
from ..module_utils.hosts.preflight import host_preflight
from ..module_utils.hosts.rollback import evidence, restoring, teardown, ways
from ..module_utils.kubernetes.operator_removal import removal
from ..module_utils.maintenance import rolling_change
from ..module_utils.pages.written_report import write_report
from ..module_utils.site.conformance import conformance
from ..module_utils.trials.folder import trial_folder
from ..module_utils.trials.steps import holding
from ..module_utils.vsphere.escaped_names import file_name

Options = Mapping[str, Any]
TEXT, MAPPING = {"type": "str", "default": ""}, {"type": "dict"}
NAMES = {"type": "list", "elements": "str", "default": []}
OBJECTS = {"type": "list", "elements": "dict", "required": True}
CLUSTER = {"cluster": {"type": "str", "required": True}}
PROFILES = {"profile": {**MAPPING, "default": {}}, "host_profiles": {**MAPPING, "default": {}}}


# The variables with which the role rollback includes esxi_host.
RESTORED = frozenset({"esxi_host_cluster", "esxi_host_hosts", "esxi_host_profiles", "esxi_host_image"})


class RoleProgram(NamedTuple):
    """The options of a program, and the program: it gets modules, the options, and whether changes are only planned."""

    arguments: dict[str, dict[str, Any]]
    run: Callable[[Modules, Options, runner.Gate], Result]


def preflight(calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    """Read a cluster, its hosts and their plan, and decide whether the hosts can be prepared."""
    named = {"cluster": o["cluster"]}
    gather = host_preflight.groups([o["profile"], *o["host_profiles"].values()])
    options = {**named, "gather": gather, "fail_unreachable": False, "acceptance": True}
    hosts = required(calls.here("esxi_info", options))
    cluster = required(calls.here("cluster_info", {**named, "gather": ["clocks", "occupied"]}))
    profiles = {key: o[key] for key in ("profile", "host_profiles", "adapters_to_come")}
    # A refused plan is a finding.
    plan = calls.planned("esxi_profile", {**named, **profiles})
    to_empty = _to_empty(plan, cluster["cluster"]["occupied"])
    how = {"state": "maintenance", "each_alone": True, "power_off": o["power_off"], "moved_by": o["moved_by"]}
    emptying = [calls.planned("esxi_power", {"hosts": to_empty, **how})] if to_empty else []
    read = {"hosts": hosts, "cluster": cluster, "plan": plan, "emptying": emptying, "acceptance": hosts["acceptance"]}
    return dict(host_preflight.verdict({**o, **read}, o["accepted"]))


def _to_empty(plan: Options, occupied: Iterable[str]) -> list[str]:
    """Return the hosts with machines that must leave service. If no host could be planned, each counts as one."""
    planned = [host for host in plan.get("hosts") or [] if "needs" in host]
    leaving = {host["host"] for host in rolling_change.to_do(planned) if host["leaves_service"]}
    staying = {host["host"] for host in planned} - leaving
    return [host for host in occupied if host not in staying]


def evidence_of(calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    """Return the state of a cluster as the document that a rollback restores from."""
    profiles = {key: o[key] for key in PROFILES}
    hosts = required(calls.here("esxi_info", {"cluster": o["cluster"], **profiles, "fail_unreachable": False}))
    state = {"cluster": required(calls.here("cluster_info", {"cluster": o["cluster"]}))["cluster"]}
    desired = dict(profiles)
    if o["image"]:
        # Without options, check mode only reads.
        state["image"] = restoring.kept(required(calls.planned("esxi_image", {"cluster": o["cluster"]}))["state"])
        desired["image"] = o["image"]
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # Clusters of several vCenters may have the same name, but not in the inventory.
    names = dict.fromkeys(filter(None, (o["cluster"], o["inventory_name"])))
    return {"name": file_name("-".join(names)), "document": evidence.document(hosts, state, desired, when)}


def rollback(calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    """Return what restores the hosts of a cluster, and its image, from evidence, or refuse with all reasons."""
    if outranking := sorted(RESTORED & {*o["command_line"]}):
        cause = f"the command line sets {', '.join(outranking)}, which would outrank the evidence"
        remedy = "leave these variables out of -e, and select hosts with rollback_hosts"
        raise Refused(o["cluster"], "restore its hosts from evidence", cause, remedy)
    document = ways.evidence_of(o["evidence"], o["cluster"])
    named = {"cluster": o["cluster"]}
    vcenter = required(calls.here("cluster_info", named))["cluster"]["vcenter"]
    hosts = required(calls.here("esxi_info", {**named, "gather": ["driver"], "fail_unreachable": False}))["hosts"]
    # Others with the same names have other UUIDs.
    uuids = {host["host"]: host.get("uuid") for host in hosts}
    identity = {"instance_uuid": vcenter["instance_uuid"], "uuids": uuids}
    plan = ways.plan(o["evidence"], document, identity, o["depots"], o["hosts"])
    return {**plan, "image": plan["image"] and {**plan["image"], "accept_eula": o["accept_eula"]}}


def teardown_of(calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    """Return what a teardown of a cluster removes, and what prevents it."""
    named, gone = {"cluster": o["cluster"]}, {"cluster": o["cluster"], "state": "absent"}
    workers = required(calls.here("worker_vm_info", named))
    planned = {
        "attributes": calls.planned("custom_attributes", named),
        # Whether another run holds the lock matters only to the run that takes it, before its first write.
        "lock": calls.planned("cluster_lock", {**gone, "force_unlock": True}),
    }
    # Workers that are unmarked lose the record of the overrides that an unfinished test replaced.
    sets = dict.fromkeys([o["rules_name"], holding.RULE])
    found = required(calls.here("cluster_info", {**named, "switch": o["switch"]}))
    record = recorded_settings.Records(o["record_dir"], o["cluster"]).path
    read = {
        "workers": workers["workers"],
        "unfinished": workers["unfinished"],
        "fabric": found["fabric"],
        "out_of_service": found["cluster"]["out_of_service"],
        "rules": [one for one in sets if _is_due(calls.planned("worker_rules", {**gone, "name": one}))],
        "due": {name: _is_due(result) for name, result in planned.items()},
        "record": str(record) if o["record_dir"] and record.is_file() else "",
    }
    return dict(teardown.plan({**o, **read}))


def _is_due(planned: Result) -> bool:
    return bool(required(planned).get("changed"))


def conformance_of(calls: Modules, o: Options, gate: runner.Gate) -> Result:
    """Run the writing cases on a confirmed cluster; in check mode, list them."""
    return conformance.planned(o) if runner.only_plans(gate) else conformance.run(calls, o)


def shared_settings(calls: Modules, o: Options, gate: runner.Gate) -> Result:
    """Change the settings that a cluster shares with others, or restore them, with a record of their values."""
    records = recorded_settings.Records(o["record_dir"], o["cluster"])
    carry_out = recorded_settings.change if o["state"] == "present" else recorded_settings.restore
    options = {key: o[key] for key in ("vcenter_options", "drs_options", "allow_shared_settings", "force_unlock")}
    return carry_out(calls, records, options, is_check=runner.only_plans(gate))


def report(_calls: Modules, o: Options, gate: runner.Gate) -> Result:
    """Write the report on training runs."""
    return write_report(gate, o)


def vmotion_test(calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    return trial_folder.unfinished_test(o, trial_folder.named(o["cluster"], calls.here))


def mpi_operator_removal(_calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    """Return which objects of the MPI Operator are removed, and why others stay."""
    return removal(o["jobs"], o["found"], o["named"], o["beside"], o["jobs_listed"])


def known_hosts(_calls: Modules, o: Options, _gate: runner.Gate) -> Result:
    """Refuse a canary and profiles of hosts that are not among the hosts of the run."""
    unknown = rolling_change.unknown_hosts(o["hosts"], o["canary"], o["profiles"])
    return {"failed": True, "msg": f"{'; '.join(unknown)}. Correct the name and run again."} if unknown else {}


DEPOT = {key: {"type": "str", "required": True} for key in ("name", "version", "source")}
PUBLISHED = {
    **{key: {"type": "str", "required": True} for key in ("name", "source")},
    "runs": {"type": "list", "elements": "dict", "required": True},
}
PROGRAMS = {
    "conformance": RoleProgram(
        {**CLUSTER, **dict.fromkeys(("confirm", *conformance.GIVEN), TEXT), "vib": {**MAPPING, "default": {}}},
        conformance_of,
    ),
    "evidence": RoleProgram(
        {**CLUSTER, **PROFILES, "image": {**MAPPING, "default": {}}, "inventory_name": TEXT}, evidence_of
    ),
    "known_hosts": RoleProgram({"hosts": NAMES, "canary": TEXT, "profiles": NAMES}, known_hosts),
    "mpi_operator_removal": RoleProgram(
        {
            **dict.fromkeys(("jobs", "found", "named", "beside"), OBJECTS),
            "jobs_listed": {"type": "bool", "required": True},
        },
        mpi_operator_removal,
    ),
    "preflight": RoleProgram(
        {
            **CLUSTER,
            **PROFILES,
            "adapters_to_come": NAMES,
            "power_off": {"type": "bool", "default": False},
            "moved_by": {"type": "str", "default": "drs"},
            "gpu": {"type": "raw", "default": ""},
            **dict.fromkeys(("vgpu", "rdma_protocol"), TEXT),
            "rdma_classes": NAMES,
            "device_classes": NAMES,
            "accepted": NAMES,
        },
        preflight,
    ),
    "report": RoleProgram(
        {
            **{key: {"type": "path", "required": True} for key in ("results", "folder")},
            "runs": {"type": "str", "default": "*"},
            **dict.fromkeys(("vmotion_tests", "fabric", "site"), TEXT),
            "published": {"type": "list", "elements": "dict", "default": [], "options": PUBLISHED},
            "images_per_epoch": {"type": "int", "default": 0},
            "title": {"type": "str", "default": "Distributed training"},
            "loss_tolerance": {"type": "float", "default": LOSS_TOLERANCE},
            "accept_changes": NAMES,
        },
        report,
    ),
    "rollback": RoleProgram(
        {
            **CLUSTER,
            "evidence": {"type": "path", "required": True},
            "hosts": NAMES,
            "depots": {"type": "list", "elements": "dict", "default": [], "options": DEPOT},
            "accept_eula": {"type": "bool", "default": False},
            # The names of the variables of the command line, from the action.
            "command_line": NAMES,
        },
        rollback,
    ),
    "shared_settings": RoleProgram(
        {
            **CLUSTER,
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "record_dir": {"type": "path", "required": True},
            "vcenter_options": {**MAPPING, "default": {}},
            "drs_options": {**MAPPING, "default": {}},
            **{key: {"type": "bool", "default": False} for key in ("allow_shared_settings", "force_unlock")},
        },
        shared_settings,
    ),
    "teardown": RoleProgram(
        {
            **CLUSTER,
            "rules_name": {"type": "str", "default": "workers"},
            "switch": {"type": "str", "default": "rdma"},
            "record_dir": TEXT,
            "evidence": TEXT,
        },
        teardown_of,
    ),
    "vmotion_test": RoleProgram(
        {
            **CLUSTER,
            "folder": TEXT,
            "dir": {"type": "path", "required": True},
            "window": {**MAPPING, "default": {}},
            "observe": {**MAPPING, "default": {}},
            "launcher": TEXT,
            "run_dir": {"type": "path", "default": ""},
            **{key: {**MAPPING, "default": {}} for key in ("kubernetes", "slurm")},
        },
        vmotion_test,
    ),
}


def run(name: str, options: Options, calls: Modules, gate: runner.Gate) -> Result:
    """Check the options of a program, and return its result."""
    if name not in PROGRAMS:
        return {"failed": True, "msg": f"There is no program {name}. Correct the name and run again."}
    program = PROGRAMS[name]
    checked = ArgumentSpecValidator(program.arguments).validate(options)
    if checked.error_messages:
        return {"failed": True, "msg": f"The options of {name} are invalid: {'; '.join(checked.error_messages)}"}
    return runner.outcome(lambda: program.run(calls, checked.validated_parameters, gate))
