"""The program rollback, over files of evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.module_utils.hosts.rollback.evidence import digest
from tests.fakes.programs import Answers, run

HOST = {"host": "esx01.lab", "uuid": "a-1", "pvrdma": {"vmk": "", "firewall_open": False}}
CLUSTER: dict[str, Any] = {
    "name": "gpu",
    "vcenter": {"instance_uuid": "v-1"},
    "options": {"vgpu.hotmigrate.enabled": False},
    "drs": {"options": {}},
}
EVIDENCE: dict[str, Any] = {
    "format": 2,
    "taken": "2026-01-02T03:04:05Z",
    "cluster": CLUSTER,
    "wanted": {"profile": {"pvrdma": {"vmk": "vmk1"}}, "host_profiles": {}},
    "hosts": [HOST, {**HOST, "host": "esx02.lab", "uuid": "a-2"}],
}
HERE = {"instance_uuid": "v-1", "uuids": {"esx01.lab": "a-1", "esx02.lab": "a-2", "esx03.lab": "a-3"}}
FOUND: dict[str, Any] = {}
NEWER = "use the version of dml.vsphere that took the evidence"
OTHER = "take the evidence of gpu, or run with --limit prod"
SAME = "name the unchanged hosts in rollback_hosts"
THERE = "name evidence of this vCenter, or connect to that one"
GONE = "esx09.lab: the cluster no longer has such a host"
WRITTEN = "name a file that dml.vsphere.evidence wrote, as it wrote it"


@pytest.fixture(autouse=True)
def here() -> dict[str, Any]:
    """The vCenter and the hosts that the modules find."""
    FOUND.clear()
    FOUND.update(deepcopy(HERE))
    return FOUND


def sealed(**changed: Any) -> str:
    """A file of evidence as it is written."""
    document = {**EVIDENCE, **changed}
    return json.dumps({**document, "digest": digest(document)}, indent=4)


def call(folder: Path, text: str, /, **options: Any) -> tuple[dict[str, Any], str]:
    """The result of the module over a file with this text, and the file's name."""
    file = folder / "before.json"
    file.write_text(text)
    vcenter = {"instance_uuid": FOUND["instance_uuid"]}
    hosts = [{"host": name, "uuid": uuid} for name, uuid in FOUND["uuids"].items()]
    answers = Answers(cluster_info={"cluster": {"vcenter": vcenter}}, esxi_info={"hosts": hosts})
    return run("rollback", answers, **{"evidence": str(file), "cluster": "gpu", **options}), str(file)


def test_returns_profiles_of_all_or_selected_hosts(tmp_path: Path) -> None:
    result, _file = call(tmp_path, sealed())
    restored = {"pvrdma": {"state": "absent", "close_firewall": True}}
    assert result["profiles"] == {"esx01.lab": restored, "esx02.lab": restored}
    assert result["shared_settings"]["vcenter_options"] == {"vgpu.hotmigrate.enabled": False}
    result, _file = call(tmp_path, sealed(), hosts=["esx02.lab"])
    assert list(result["profiles"]) == ["esx02.lab"]


@pytest.mark.parametrize("name", ["esxi_host_cluster", "esxi_host_hosts", "esxi_host_image", "esxi_host_profiles"])
def test_rollback_refuses_variables_that_outrank_evidence(tmp_path: Path, name: str) -> None:
    result, _file = call(tmp_path, sealed(), command_line=["rollback_evidence", name])
    cause = f"the command line sets {name}, which would outrank the evidence"
    remedy = "leave these variables out of -e, and select hosts with rollback_hosts"
    assert result["failed"] and result["msg"] == f"gpu: could not restore its hosts from evidence: {cause}; {remedy}"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"wanted": {"profile": {"nosuch": {"a": 1}}, "host_profiles": {}}},
         f"the change touched nosuch, which this version of dml.vsphere cannot restore; {NEWER}"),
        ({"format": 1}, f"it has format 1, and this version of dml.vsphere reads format 2; {NEWER}"),
        ({"cluster": {**CLUSTER, "name": "prod"}},
         f"that is evidence of prod; {OTHER}"),
        ({"hosts": [{"host": "esx01.lab", "uuid": "a-1"}]},
         "esx01.lab: the evidence lacks pvrdma, which restoring pvrdma needs"),
        ({"cluster": {**CLUSTER, "vcenter": {"instance_uuid": "v-2"}}},
         f"it was taken from the vCenter with the instance UUID v-2, and this one has v-1; {THERE}"),
        ({"hosts": [HOST, {**HOST, "host": "esx02.lab", "uuid": "b-2"}, {**HOST, "host": "esx09.lab", "uuid": "a-9"}]},
         f"esx02.lab: another machine has this name now, with the UUID a-2, not b-2; {GONE}; {SAME}"),
    ],
)  # fmt: skip
def test_names_the_evidence_file_that_cannot_be_restored(
    tmp_path: Path, changed: dict[str, Any], expected: str
) -> None:
    result, file = call(tmp_path, sealed(**changed))
    assert result["failed"] and result["msg"] == f"{file}: could not restore cluster gpu from it: {expected}"


def test_rollback_may_omit_a_replaced_host(tmp_path: Path, here: dict[str, Any]) -> None:
    here["uuids"]["esx01.lab"] = "new"
    result, _file = call(tmp_path, sealed(), hosts=["esx02.lab"])
    assert list(result["profiles"]) == ["esx02.lab"]


def test_identifies_a_host_without_uuid_by_its_name(tmp_path: Path) -> None:
    result, _file = call(tmp_path, sealed(hosts=[{**HOST, "uuid": None}]))
    assert list(result["profiles"]) == ["esx01.lab"]


@pytest.mark.parametrize("text", ["no JSON", "[1]", "[" * 100_000, "null", sealed()[:-200]])
def test_refuses_malformed_evidence(tmp_path: Path, text: str) -> None:
    result, file = call(tmp_path, text)
    assert result["failed"] and result["msg"].startswith(f"{file}: could not ")


def test_evidence_without_hosts_does_not_mean_all_hosts(tmp_path: Path) -> None:
    result, file = call(tmp_path, sealed(hosts=[]))
    assert result["failed"] and result["msg"].startswith(f"{file}: could not read it as evidence: hosts "), result
    assert result["msg"].endswith(f"; {WRITTEN}")


def test_evidence_that_was_changed_is_refused(tmp_path: Path) -> None:
    result, file = call(tmp_path, sealed().replace('"vmk": ""', '"vmk": "vmk2"', 1))
    message = "it was changed after it was written: its digest does not match"
    assert result["failed"] and result["msg"] == f"{file}: could not read it as evidence: {message}; {WRITTEN}"


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in some data."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(list(places(json.loads(sealed())))), st.sampled_from([..., None, "", 7, [], {}, ["x"]]))
def test_refuses_any_change_or_omission(tmp_path: Path, path: tuple[Any, ...], new: Any) -> None:
    document = json.loads(sealed())
    place = document
    for key in path[:-1]:
        place = place[key]
    if place[path[-1]] == new:
        return
    if new is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = new
    result, file = call(tmp_path, json.dumps(document))
    assert result["failed"] and result["msg"].startswith(f"{file}: could not "), result


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda of: st.lists(of) | st.dictionaries(st.text(), of)
    )
)
def test_refuses_arbitrary_evidence_and_names_the_file(tmp_path: Path, holds: Any) -> None:
    held = {**holds, "format": 2} if isinstance(holds, dict) else holds
    result, file = call(tmp_path, json.dumps(held))
    assert result["failed"] and result["msg"].startswith(f"{file}: could not "), result
