"""Runs the writing cases on a spare cluster, and compares its answers with those of the simulated data centre; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from ...core.json_values import JsonObject
from ...durable.calls import Modules, required
from ...errors import Refused
from .writing_cases import CASES, Case, Step

Result = dict[str, Any]
# The virtual machine of the cases, and the folder of vSphere's agents.
WORKER, AGENTS = "dml-conformance", "vCLS"
GIVEN = ("template", "uplink")
VIB_KEYS = ("name", "version", "source")
FAULT = re.compile(r"(?:the server|esxcli) said \[?(\w+)")
# A text of a site may be a name, so a document has none but those of the cases.
OTHER_TEXT = "another text"
LEFT_OUT, NOT_TRIED = "left out", "not tried"
EQUAL = {True: "equal", False: "DIFFERENT", None: NOT_TRIED}


def planned(options: Mapping[str, object]) -> Result:
    """Return the cases that a run would try, for check mode, which calls no module."""
    tried = [case for case in CASES if options.get(case.needs, True)]
    return {
        "changed": True,
        "lines": [f"{case.name}: {step.text}" for case in tried for step in case.steps],
        "error": "",
    }


def run(calls: Modules, options: Mapping[str, Any]) -> Result:
    """Run the cases on a confirmed cluster, under its lock, and return their table and a document without names."""
    cluster = options["cluster"]
    if options["confirm"] != cluster:
        reason, advice = "it is not confirmed", f"confirm a spare or nested cluster: conformance_confirm={cluster}"
        raise _refused(cluster, reason, advice)
    facts = required(calls.here("cluster_info", {"cluster": cluster, "gather": ["vms"]}))["cluster"]
    names = {"cluster": cluster, "worker": WORKER, **{key: options[key] for key in GIVEN}, **_hosts(facts)}
    names |= _packages(facts, options["vib"])
    _refuse_foreign_machines(facts)
    _refuse_installed_vib(calls, names)
    required(calls.here("cluster_lock", {"cluster": cluster}))
    left: list[str] = []
    try:
        # An earlier run may have been killed.
        _restore(calls, names, CASES)
        names["vmk"] = _free_adapter(calls, names) if names["uplink"] else ""
        rows = [row for case in CASES for row in _rows(calls, case, names, left)]
    finally:
        left += _failures(calls.here("cluster_lock", {"cluster": cluster, "state": "free"}))
    return _result(facts, rows, left)


def _refused(cluster: str, reason: str, advice: str) -> Refused:
    return Refused(f"cluster {cluster}", "run the writing cases on it", reason, advice)


def _hosts(facts: JsonObject) -> dict[str, str]:
    """Return the two hosts of the cases; refuse a cluster without them."""
    others = [host["host"] for host in facts["out_of_service"] if not host["ours"]]
    usable = sorted(host["host"] for host in facts["hosts"] if host["host"] not in others)
    if len(usable) < 2:
        reason = f"of its hosts, {', '.join(usable) or 'none'} can be used, and the cases need two"
        raise _refused(facts["name"], reason, "return its other hosts to service, or name another cluster")
    return {"host": usable[0], "other": usable[1]}


def _refuse_foreign_machines(facts: JsonObject) -> None:
    """Refuse a cluster that runs virtual machines of others."""
    foreign = sorted(vm["vm"] for vm in facts["vms"] or [] if vm["vm"] != WORKER and vm["folder"] != AGENTS)
    if foreign:
        reason = f"virtual machines of others run there: {', '.join(foreign)}"
        raise _refused(facts["name"], reason, "move or stop them, or name an idle cluster")


def _packages(facts: JsonObject, vib: Mapping[str, str]) -> dict[str, str]:
    """Return the VIB of the cases; an image that manages the cluster would undo it, so these cases are left out."""
    lacking = [key for key in VIB_KEYS if not vib.get(key)]
    if vib and lacking:
        reason = f"conformance_vib has no {', '.join(lacking)}"
        raise _refused(facts["name"], reason, "add name, version and source of a VIB, or leave the variable out")
    given = {} if facts["image_managed"] else vib
    packages = "" if facts["image_managed"] else "esxcli"
    return {
        "packages": packages,
        "vib": given.get("name", ""),
        "vib_version": given.get("version", ""),
        "vib_source": given.get("source", ""),
    }


def _refuse_installed_vib(calls: Modules, names: Mapping[str, str]) -> None:
    """Refuse a VIB that the host has, because the cases remove it."""
    gone = {"hosts": [names["host"]], "name": names["vib"], "state": "absent"}
    if names["vib"] and required(calls.planned("esxi_vib", gone))["changed"]:
        reason = f"VIB {names['vib']} is installed on {names['host']}, and the cases remove it"
        raise _refused(names["cluster"], reason, "name another VIB, or remove it if a killed run installed it")


def _free_adapter(calls: Modules, names: Mapping[str, str]) -> str:
    """Return the name that ESXi gives to the next vmkernel adapter of the host: the lowest free number."""
    (host,) = required(calls.here("esxi_info", {"hosts": [names["host"]], "gather": ["network"]}))["hosts"]
    taken = {adapter["device"] for adapter in host["vmkernel"]}
    return next(name for name in map("vmk{}".format, count()) if name not in taken)


def _rows(calls: Modules, case: Case, names: Mapping[str, str], left: list[str]) -> Iterator[Result]:
    """Yield one row for each step of a case. After a step with another end, the rest of the case is not tried."""
    reason = LEFT_OUT if case.needs and not names[case.needs] else ""
    for step in case.steps:
        row: Result = {
            "case": case.name,
            "step": step.text,
            "simulator": dict(step.answers),
            "site": None,
            "equal": None,
        }
        if not reason:
            row = {**row, **_tried(calls, step, names)}
            has_ended = row["site"].get("failed", False) == step.answers.get("failed", False)
            reason = "" if has_ended else NOT_TRIED
        yield row
    if reason != LEFT_OUT:
        left += _restore(calls, names, [case])


def _tried(calls: Modules, step: Step, names: Mapping[str, str]) -> Result:
    """Call the module of a step, and return its answers beside those of the simulated data centre."""
    result = calls.here(step.module, filled(step.options, names))
    is_failed = bool(result.get("failed"))
    result = {**result, "fault": fault_of(result)}
    site: Result = {path: anonymous(value_at(result, path), expected, names) for path, expected in step.answers.items()}
    if "fault" in site:
        # It is the name of a type, which no site chooses.
        site["fault"] = result["fault"]
    if is_failed != step.answers.get("failed", False):
        site = {"failed": is_failed}
    return {"site": site, "equal": site == dict(step.answers), "message": str(result.get("msg") or "")}


def fault_of(result: JsonObject) -> str | None:
    """Return the type of the fault with which the server refused a call of a module; None without it."""
    found = FAULT.search(str(result.get("msg") or ""))
    return found[1] if found else None


def _restore(calls: Modules, names: Mapping[str, str], cases: Sequence[Case]) -> list[str]:
    """Restore the site after cases; return why that failed."""
    undone = (undo for case in cases if not case.needs or names[case.needs] for undo in case.undo)
    return [reason for module, given in undone for reason in _failures(calls.here(module, filled(given, names)))]


def _failures(result: JsonObject) -> list[str]:
    return [str(result.get("msg"))] if result.get("failed") else []


def _result(facts: JsonObject, rows: Sequence[Result], left: Sequence[str]) -> Result:
    """Return the table, the document without names, and the differences in one sentence."""
    different = [f"{row['case']}, {row['step']}" for row in rows if row["equal"] is False]
    release = {key: facts["vcenter"][key] for key in ("version", "build")}
    hosts = sorted({f"{host['version']} {host['build']}" for host in facts["hosts"]})
    shown = [{key: row[key] for key in ("case", "step", "simulator", "site", "equal")} for row in rows]
    text = f"Cluster {facts['name']} answers {len(different)} of {len(rows)} steps unlike the simulated data centre: "
    errors = [f"{text}{'; '.join(different)}. Report the file as a bug."] if different else []
    errors += [f"Cluster {facts['name']} was not restored: {' '.join(left)}"] if left else []
    document = {"vcenter": release, "hosts": hosts, "cases": shown}
    return {"changed": True, "lines": [_line(row) for row in rows], "document": document, "error": " ".join(errors)}


def _line(row: Result) -> str:
    """Return a row of the table: case, simulator, this site, whether they are equal."""
    site = _words(row["site"]) if row["site"] is not None else "-"
    reason = f" ({row['message']})" if row["equal"] is False and row["message"] else ""
    answers = f"simulator {_words(row['simulator'])}; site {site}{reason}"
    return f"{EQUAL[row['equal']]:<9} {row['case']}, {row['step']}: {answers}"


def _words(answers: Mapping[str, object]) -> str:
    return ", ".join(f"{path}={value}" for path, value in answers.items())


def filled(value: object, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value[1:-1], value) if value.startswith("{") else value
    if isinstance(value, list):
        return [filled(entry, names) for entry in value]
    return {key: filled(entry, names) for key, entry in value.items()} if isinstance(value, Mapping) else value


def value_at(result: Any, path: str) -> object:
    """Return the value at a path of a result; None without it. An entry of a list has its number or its name."""
    if not path:
        return [entry["rule"] for entry in result] if _are_rules(result) else result
    if isinstance(result, Mapping):
        # The name of an option contains dots.
        key = path if path in result else path.partition(".")[0]
        return value_at(result.get(key), path[len(key) + 1 :])
    if not isinstance(result, list):
        return None
    key, _dot, rest = path.partition(".")
    named = {str(entry.get("name")): entry for entry in result if isinstance(entry, Mapping)}
    numbered = {str(number): entry for number, entry in enumerate(result)}
    return value_at({**named, **numbered}.get(key), rest)


def _are_rules(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, Mapping) and "rule" in entry for entry in value)


def anonymous(value: object, expected: object, names: Mapping[str, str]) -> object:
    """Return a value without names: a text that is neither expected nor a name of the cases is not kept."""
    if isinstance(value, list):
        known = expected if isinstance(expected, list) else []
        return [entry if entry in known else anonymous(entry, None, names) for entry in value]
    if isinstance(value, Mapping):
        return OTHER_TEXT
    if not isinstance(value, str) or value == expected:
        return value
    return next((f"{{{key}}}" for key, name in names.items() if name and name == value), OTHER_TEXT)
