"""The image of a cluster on an emptied host, and the remediations of the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import Failed, Refused
from plugins.module_utils.hosts import image_work, remediation
from plugins.module_utils.hosts.host_image import ApplyOptions, HostImage, ImageOfHosts, plan_host, require_eula
from tests.fakes.module import FakeModule
from tests.fakes.rest import FakeRest

DIFFERS = {"host-1": {"status": "NON_COMPLIANT", "impact": "REBOOT_REQUIRED"}}
POLICY: dict[str, Any] = {
    "pre_remediation_power_action": "DO_NOT_CHANGE_VMS_POWER_STATE",
    "enable_quick_boot": False,
    "disable_hac": False,
}


class Rest(FakeRest):
    """A cluster with one host that does not run its image."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts = dict(DIFFERS)
        self.shown: list[str] = []

    def converge(self, *, check: bool = False, in_maintenance: bool = True, **options: Any) -> dict[str, Any]:
        more = ApplyOptions(report=lambda about, what: self.shown.append(f"{about}: {what}"), **options)
        images = ImageOfHosts(self, "domain-c1", "gpu", more)  # type: ignore[arg-type]
        ref, answers = SimpleNamespace(_moId="host-1"), lambda _tried: None
        host = SimpleNamespace(name="esx01.lab", ref=ref, in_maintenance=in_maintenance, must_answer=answers)
        subject = HostImage(host, images)  # type: ignore[arg-type]
        return runner.converge(
            FakeModule(check_mode=check),
            runner.Work([subject], lambda _subjects: images.look() if check else images.scan()),
        )


def test_four_runs_apply_the_image_once() -> None:
    rest, counts = Rest(), []
    for check in (True, False, True, False):
        done = rest.converge(check=check, accept_eula=True)
        counts.append((done["changed"], len(rest.writes)))
    assert counts == [(True, 0), (True, 1), (False, 1), (False, 1)]
    assert rest.writes == [("apply", "/software")]
    assert rest.shown == ["esx01.lab: vLCM applies the image, 25 %"]


def test_a_host_in_service_is_refused_and_planned() -> None:
    rest = Rest()
    planned = rest.converge(check=True, in_maintenance=False)
    assert planned["needs"] == ["maintenance", "reboot"] and planned["hosts"][0]["reboots"] == 1
    refused = rest.converge(in_maintenance=False)
    assert (
        "esx01.lab: could not change image of its cluster: the image is applied only in maintenance mode"
        in (refused["msg"])
    )
    assert rest.writes == []


def test_planned_image_change_makes_each_host_differ() -> None:
    rest = Rest()
    rest.hosts = {"host-1": {"status": "COMPLIANT", "impact": "NO_IMPACT"}}
    assert not rest.converge(check=True)["changed"]
    assert rest.converge(check=True, changing=True)["changed"]


def test_refuses_incompatible_hosts_and_a_missing_agreement() -> None:
    with pytest.raises(Refused, match="vLCM finds the host incompatible with it; read the reasons"):
        plan_host({"compliance": "incompatible", "impact": "unknown", "in_maintenance": True})
    with pytest.raises(Refused, match=r"End User License Agreement is accepted; read .* accept_eula=true"):
        require_eula("gpu", ApplyOptions())
    require_eula("gpu", ApplyOptions(accept_eula=True))


@pytest.mark.parametrize("form", ["issues", "check_issues"])
def test_failed_check_prevents_the_image(form: str) -> None:
    rest = Rest()
    message = {"default_message": "a disk is full"}
    issues = [message] if form == "issues" else [{"description": message}]
    rest.check_statuses = [{"status": "OK", "issues": []}, {"status": "ERROR", "issues": [], form: issues}]
    failed = rest.converge(accept_eula=True)
    assert "vLCM found a disk is full; remove the cause and run again" in failed["msg"]
    assert rest.writes == []


def test_failed_remediation_names_the_hosts_reason() -> None:
    rest = Rest()
    errors = {"errors": [{"message": {"default_message": "the driver has no signature"}}]}
    status = {"host-1": {"status": "ERROR", "notifications": errors}}
    rest.applied = {"failed_hosts": ["host-1"], "host_status": status}
    assert "vLCM said the driver has no signature" in rest.converge(accept_eula=True)["msg"]


def test_host_that_stays_noncompliant_after_remediation_fails() -> None:
    rest = Rest()
    rest.deaf = True
    assert "the server accepted the change, yet compliance is 'non_compliant'" in rest.converge()["msg"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"pre_remediation_power_action": "SUSPEND_VMS"}, "changes the power state of virtual machines"),
        ({"parallel_remediation_action": {"enabled": True}}, "remediates several hosts at once"),
        (
            {"software_policy_spec": {"parallel_remediation_action": {"enabled": True}}},
            "remediates several hosts at once",
        ),
        ({"disable_hac": True}, "disables the admission control of HA"),
    ],
)
def test_a_policy_that_contradicts_is_refused(change: dict[str, Any], words: str) -> None:
    remediation.require_policy("gpu", POLICY)
    with pytest.raises(Refused, match=words):
        remediation.require_policy("gpu", {**POLICY, **change})


def test_the_plan_names_quick_boot_and_live_patches() -> None:
    assert remediation.extras_of(POLICY) == ""
    newer = {"software_policy_spec": {"live_patch_action": {"live_patch_mode": "AUTO_LIVE_PATCH"}}}
    text = remediation.extras_of({**POLICY, "enable_quick_boot": True, **newer})
    assert "with Quick Boot where the host supports it" in text and "live patch where the image supports it" in text


def test_lists_running_remediations_with_their_hosts() -> None:
    rest = FakeRest()
    here = {"operation": "apply$task", "status": "RUNNING", "user": "anna", "target": {"id": "domain-c1"}}
    rest.tasks = {
        "1": {**here, "result": {"host_status": {"host-2": {"status": "RUNNING"}}}},
        "2": {**here, "operation": "check$task"},
        "3": {**here, "target": {"id": "domain-c9"}},
        "4": {"operation": "apply$task", "status": "PENDING"},
    }
    found = remediation.running(rest, "domain-c1", "gpu")  # type: ignore[arg-type]
    assert found == [{"user": "anna", "hosts": ["host-2"]}, {"user": "", "hosts": []}]


@pytest.mark.parametrize("depot", ["https://me:s3cret@depot.lab/b.zip", "HTTP://s3cret@depot.lab/b.zip"])
def test_refuses_a_depot_with_account_without_showing_it(depot: str) -> None:
    unused: Any = None
    work = image_work.ImageWork(unused, unused, unused, {"depot": depot}, lambda _target, _what: None)
    with pytest.raises(Refused, match="depot: could not import it: its URL contains an account") as refused:
        work.run()
    assert "s3cret" not in str(refused.value)


class Counted(FakeRest):
    """A cluster that counts the comparisons of its hosts with its image."""

    def __init__(self) -> None:
        super().__init__()
        self.scans = 0

    def task(self, path: str, body: Any = None, **query: Any) -> Any:
        self.scans += query["action"] == "scan"
        return super().task(path, body, **query)

    def set_image(self, *, check: bool = False, hosts: Sequence[str] = ()) -> int:
        """Set the image that the cluster already has; return the number of comparisons until now."""
        image: dict[str, Any] = {"components": {}, "absent": [], "base_image": "", "add_on": None}
        module, unused = FakeModule(check_mode=check), SimpleNamespace()
        params = {"cluster": "gpu", **image, "hosts": hosts, "task_timeout": 5}
        image_work.ImageWork(module, unused, self, params, lambda *_given: None)._image("domain-c1")  # type: ignore[arg-type] # a fake
        return self.scans


def test_hosts_are_compared_after_a_killed_commit() -> None:
    """Without the comparison, the next run would find hosts that comply with the earlier image."""
    rest = Counted()

    assert [rest.set_image(check=True), rest.set_image(), rest.set_image(hosts=["esx01.lab"])] == [0, 1, 1]
    rest.tasks["1"] = {"operation": "com.vmware.esx.settings.clusters.software.apply$task", "target": None}
    assert rest.set_image() == 1, "vLCM has one operation at a time"


def test_hosts_are_compared_if_remediations_are_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_given: Any, tried: str, **_more: Any) -> Any:
        raise Failed("vcenter.lab", tried, "the server answered 403 Forbidden", "give the account the privileges")

    rest = Counted()
    monkeypatch.setattr(rest, "send", refused)

    assert rest.set_image() == 1
