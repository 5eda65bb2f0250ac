"""Cluster images: plans, four runs, and drafts that do not survive a failure."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import Refused
from plugins.module_utils.hosts import cluster_image
from plugins.module_utils.hosts.cluster_image import ClusterImage, ImageSpec, plan_image
from plugins.module_utils.vsphere import properties
from tests.fakes.module import FakeModule
from tests.fakes.rest import FakeRest

NAME, OLD, NEW = "NVD-AIE-800", "550.54.16", "550.90.05"
PRESENT, ABSENT = ImageSpec({NAME: NEW}), ImageSpec(absent=[NAME])

IMAGE = {"managed": True, "compliance": "compliant", "base_image": "8.0.3-0.0", "add_on": None, "components": {}}


def converge(rest: FakeRest, desired: ImageSpec = PRESENT, check: bool = False) -> dict[str, Any]:
    subject = ClusterImage(rest, "domain-c1", "gpu", desired)  # type: ignore[arg-type]
    work = runner.Work([subject], lambda _subjects: None)
    return runner.converge(FakeModule(check_mode=check), work)


@pytest.mark.parametrize(
    ("components", "desired", "after"),
    [
        ({}, PRESENT, {NAME: NEW}),
        ({NAME: OLD, "tool": "1"}, PRESENT, {NAME: NEW, "tool": "1"}),
        ({NAME: NEW}, PRESENT, {NAME: NEW}),
        ({NAME: NEW, "tool": "1"}, ABSENT, {"tool": "1"}),
        ({"tool": "1"}, ABSENT, {"tool": "1"}),
    ],
)
def test_only_the_component_changes(components: dict[str, str], desired: ImageSpec, after: dict[str, str]) -> None:
    plan = plan_image({**IMAGE, "components": components}, desired)
    assert plan.after["components"] == after
    assert bool(plan.changes) == (components != after) == bool(plan.why)


def test_a_cluster_without_image_is_refused() -> None:
    refused = converge(FakeRest(managed=False))
    assert "gpu" in refused["msg"]
    assert "not managed by an image; install VIBs on its hosts with esxi_vib" in refused["msg"]
    with pytest.raises(Refused):
        plan_image({**IMAGE, "managed": False}, PRESENT)


def test_four_runs_draft_validate_and_commit_once() -> None:
    rest, writes = FakeRest(tool="1"), []
    for check in (True, False, True, False):
        converge(rest, check=check)
        writes.append(len(rest.writes))
    assert writes == [0, 4, 4, 4]
    draft = "/software/drafts/7"
    expected = [("POST", "/software/drafts"), ("PATCH", f"{draft}/software/components")]
    assert rest.writes == [*expected, ("validate", draft), ("commit", draft)]
    assert rest.components == {"tool": "1", NAME: NEW}


@pytest.mark.parametrize(("status", "left"), [("COMPLIANT", 0), ("NON_COMPLIANT", 1), ("", 1)])
def test_reports_remediation_until_vlcm_finds_hosts_compliant(status: str, left: int) -> None:
    rest = FakeRest(**{NAME: NEW})
    rest.compliance = status
    assert len(converge(rest)["hosts"][0]["why"]) == left


def test_hosts_are_compared_with_a_new_image() -> None:
    """Until vLCM compares them again, it shows how they complied with the earlier image."""

    class Rest(FakeRest):
        def task(self, path: str, body: Any = None, **query: Any) -> Any:
            if query["action"] == "scan":
                self.compliance = "NON_COMPLIANT" if self.components else "COMPLIANT"
            return super().task(path, body, **query)

    rest = Rest()
    rest.compliance = "COMPLIANT"
    converge(rest)
    assert converge(rest, check=True)["hosts"][0]["state"]["compliance"] == "non_compliant"


def test_component_without_a_version_stays() -> None:
    rest = FakeRest()
    rest.components["tool"] = None  # type: ignore[assignment] # VMware's description of the API allows it

    converge(rest)

    assert rest.components == {"tool": None, NAME: NEW}


def test_removal_deletes_only_the_component() -> None:
    rest = FakeRest(**{NAME: OLD, "tool": "1"})
    assert converge(rest, ABSENT)["changed"]
    assert rest.components == {"tool": "1"}


def test_deletes_the_draft_of_an_invalid_image() -> None:
    rest = FakeRest()
    rest.errors = ["component NVD-AIE-800(550.90.05) is not in the depot"]
    failed = converge(rest)
    assert "is not in the depot; import the bundle with the option depot" in failed["msg"]
    assert [verb for verb, _path in rest.writes] == ["POST", "PATCH", "validate", "DELETE"]
    assert (rest.draft, rest.components) == (None, {})


@pytest.mark.parametrize("step", ["PATCH", "commit"])
def test_a_draft_does_not_survive_a_failure(step: str) -> None:
    rest = FakeRest()
    rest.fails = step
    assert "the server said 500" in converge(rest)["msg"]
    assert rest.draft is None


def test_the_draft_of_another_user_is_not_changed() -> None:
    rest = FakeRest()
    rest.draft = {"theirs": "1"}
    assert "finish or discard the draft that is open" in converge(rest)["msg"]
    assert rest.draft == {"theirs": "1"}


def test_detects_a_vcenter_that_ignores_changes() -> None:
    rest = FakeRest()
    rest.deaf = True
    assert "the server accepted the change, yet components is {}" in converge(rest)["msg"]


def test_managed_clusters_are_found_with_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = [
        (SimpleNamespace(_moId="domain-c1"), {"name": "gpu", "lifecycleManaged": True}),
        (SimpleNamespace(_moId="domain-c2"), {"name": "old", "lifecycleManaged": False}),
        (SimpleNamespace(_moId="domain-c3"), {"name": "older"}),
    ]
    monkeypatch.setattr(properties, "find_all", lambda *_arguments: clusters)
    assert cluster_image.managed_clusters(None) == {"domain-c1": "gpu"}  # type: ignore[arg-type]


def test_commits_base_image_add_on_and_components_together() -> None:
    rest = FakeRest(tool="1")
    add_on = {"name": "DEL-ESXi", "version": "803.1"}
    done = converge(rest, ImageSpec({NAME: NEW}, ["tool"], "9.0.0-0.0", add_on))
    assert [verb for verb, _path in rest.writes] == ["POST", "PUT", "PUT", "PATCH", "validate", "commit"]
    state = done["hosts"][0]["state"]
    assert (state["base_image"], state["add_on"], state["components"]) == ("9.0.0-0.0", add_on, {NAME: NEW})
