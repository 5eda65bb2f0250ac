"""The plan of each state of esxi_power, from the host and the note on it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.errors import Failed, Refused, Unreachable
from plugins.module_utils.maintenance import boot, recent_tasks, service_note
from plugins.module_utils.maintenance.evacuation import Blocker, EvacuationMove, HostEvacuation
from plugins.module_utils.maintenance.host_power import HostReboot, InService, work_on
from plugins.module_utils.maintenance.maintenance_mode import Evacuations, MaintenanceMode, maintenance_spec
from plugins.module_utils.maintenance.recent_tasks import RecentTask
from plugins.module_utils.maintenance.service_note import ServiceNote
from plugins.module_utils.maintenance.service_options import ServiceOptions
from plugins.module_utils.plan import Plan
from plugins.module_utils.workers.capacity.running_vm import Vm
from tests.fakes.esxi import FakeHost

NOW = "2026-01-01T00:00:00+00:00"
OLD = "2025-12-31T00:00:00+00:00"
NOTED, ENTRY = "2026-01-01T00:00:00Z", datetime(2026, 1, 1, 0, 0, 5, tzinfo=UTC)
ENTERED = vim.event.EnteredMaintenanceModeEvent(createdTime=ENTRY)
VM = Vm("vm-1", "w1", "esx01.lab", folder="ml")


def host(*, maintenance: bool = False, connection: str = "connected", note: ServiceNote | None = None) -> FakeHost:
    made = FakeHost()
    made.has(runtime__inMaintenanceMode=maintenance, runtime__connectionState=connection)
    made.refresh()
    if note:
        service_note.write(made, note)
        made.refresh()
    if maintenance:
        made.session.content.eventManager.events.append(ENTERED)
    made.writes.clear()
    return made


def planned(
    kind: Any, made: FakeHost, desired: ServiceOptions | None = None, evacuations: Evacuations | None = None
) -> Plan:
    desired = desired or ServiceOptions("me")
    subject = kind(made, desired, evacuations or Evacuations(made.session, desired))
    plan: Plan = subject.plan(subject.read())
    assert made.writes == []
    return plan


def judged(made: FakeHost, verdict: HostEvacuation, entering: RecentTask | None = None) -> Evacuations:
    found = Evacuations(made.session, ServiceOptions("me"))
    found.verdicts[made.name] = verdict
    if entering:
        found.entering[made.ref._moId] = entering
    return found


def test_empties_a_host_whose_machines_can_all_move() -> None:
    made = host()
    plan = planned(
        MaintenanceMode, made, evacuations=judged(made, HostEvacuation(moves=(EvacuationMove(VM, "esx02.lab"),)))
    )
    assert [change.key for change in plan.changes] == ["maintenance"] and not plan.unmet
    assert plan.why == ("w1 (folder ml) moves, for example to esx02.lab",)


def test_reports_a_blocking_machine_as_unmet() -> None:
    made = host()
    plan = planned(MaintenanceMode, made, evacuations=judged(made, HostEvacuation(blocks=(Blocker(VM, "is tied"),))))
    assert plan.unmet == ("w1 (folder ml) is tied",)


@pytest.mark.parametrize(("note", "unmet"), [(None, 1), (ServiceNote("me", NOTED), 0)])
def test_refuses_an_entering_host_without_its_own_note(note: ServiceNote | None, unmet: int) -> None:
    made = host(note=note)
    entering = RecentTask(None, made.ref._moId, "enterMaintenanceMode", True, "bob")
    plan = planned(MaintenanceMode, made, evacuations=judged(made, HostEvacuation(), entering))
    assert len(plan.unmet) == unmet and all("bob" in text for text in plan.unmet)


@pytest.mark.parametrize(
    ("note", "ours"),
    [(None, False), (ServiceNote("me", NOTED), True), (ServiceNote("me", NOTED, OLD, visiting=True), False)],
)
def test_claims_hosts_in_maintenance_mode_only_by_note(note: ServiceNote | None, ours: bool) -> None:
    made = host(maintenance=True, note=note)
    plan = planned(MaintenanceMode, made)
    assert plan.before["ours"] is ours and not plan.changes
    back = planned(InService, made)
    assert bool(back.changes) is ours and bool(back.warnings) is not ours
    assert planned(InService, made, ServiceOptions("me", only_if_ours=False)).changes


def written_by(user: str, seconds: int, name: str = service_note.ATTRIBUTE) -> Any:
    """The event of a custom attribute that an account wrote."""
    time = ENTRY + timedelta(seconds=seconds)
    return vim.event.CustomFieldValueChangedEvent(key=seconds, name=name, userName=user, createdTime=time)


ENTERED_AGAIN = vim.event.EnteredMaintenanceModeEvent(createdTime=ENTRY + timedelta(days=85))


@pytest.mark.parametrize(
    ("days", "events", "ours"),
    [
        (0, [], True),  # the events of the last seconds may not be there yet
        (90, [ENTERED], True),
        (90, [ENTERED, vim.event.ExitMaintenanceModeEvent(createdTime=ENTRY)], False),
        # A person returned it after the killed run, and another one took it out of service since: vCenter has deleted
        # the events of the first entry and exit, and maybe those of the second entry.
        (90, [ENTERED_AGAIN], False),
        (90, [], False),
        (-1, [], False),  # a time that the server's clock has not reached
        (0, [written_by("VSPHERE.LOCAL\\robot", 1)], True),
        (0, [written_by("CORP\\mallory", 1)], False),
        (0, [written_by("CORP\\mallory", 1), written_by("vsphere.local\\Robot", 2)], True),
        (0, [written_by("VSPHERE.LOCAL\\robot", 1), written_by("CORP\\mallory", 2)], False),
        (0, [written_by("CORP\\mallory", 1, name="owner")], True),
    ],
)
def test_accepts_a_note_only_if_events_confirm_it(
    monkeypatch: pytest.MonkeyPatch, days: int, events: list[Any], ours: bool
) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED))
    made.session.content.eventManager.events = events
    monkeypatch.setattr(service_note, "server_time", lambda _session: ENTRY + timedelta(days=days))

    assert (service_note.our_note(made) is not None) is ours
    assert planned(InService, made).before["ours"] is ours


def test_removes_a_note_from_a_host_in_service() -> None:
    plan = planned(InService, host(note=ServiceNote("me", NOTED)))
    assert {change.key for change in plan.changes} == {"ours", "by"}


@pytest.mark.parametrize(
    ("noted", "asks", "returns"), [(True, True, True), (False, True, False), (False, False, True), (True, False, True)]
)
def test_rollout_does_not_return_a_persons_host(noted: bool, asks: bool, returns: bool) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED, rollout=noted))
    plan = planned(InService, made, ServiceOptions("me", rollout=asks))
    assert bool(plan.changes) is returns and bool(plan.warnings) is not returns


def test_rollout_keeps_the_note_of_a_person() -> None:
    made = host(note=ServiceNote("me", NOTED))
    assert not planned(InService, made, ServiceOptions("me", rollout=True)).changes


@pytest.mark.parametrize(("noted", "asks", "warns"), [(True, False, True), (True, True, False), (False, False, False)])
def test_warns_that_a_rollout_will_return_the_host(noted: bool, asks: bool, warns: bool) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED, rollout=noted))
    plan = planned(MaintenanceMode, made, ServiceOptions("me", rollout=asks), judged(made, HostEvacuation()))
    assert plan.before["ours"] and bool(plan.warnings) is warns


@pytest.mark.parametrize("noted", [True, False])
def test_rollout_takes_over_only_a_named_host(noted: bool) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED, rollout=noted))
    desired = ServiceOptions("me", rollout=True, take_over=[made.name])
    plan = planned(MaintenanceMode, made, desired, judged(made, HostEvacuation()))
    assert plan.before["ours"] is noted and bool(plan.changes) is not noted


REBOOTS = [
    # maintenance, connection, note, recent reboot task: what it is
    (True, "connected", None, False, "due"),
    (True, "connected", ServiceNote("me", NOTED), False, "due"),
    (True, "connected", ServiceNote("me", NOTED, NOW), True, "asked for"),
    (True, "connected", ServiceNote("me", NOTED, NOW), False, "due"),
    (True, "connected", ServiceNote("me", NOTED, OLD), False, "under way"),
    (True, "notResponding", ServiceNote("me", NOTED, NOW), False, "under way"),
    # The clock of the host was corrected since, and with it the time at which it says to have booted.
    (True, "connected", ServiceNote("me", NOTED, "2026-01-01T00:00:02+00:00"), True, "asked for"),
    (True, "connected", ServiceNote("me", NOTED, "2025-12-31T23:59:31+00:00"), False, "due"),
]


@pytest.mark.parametrize(("maintenance", "connection", "note", "recent", "state"), REBOOTS)
def test_a_reboot_of_an_earlier_run_counts(
    maintenance: bool, connection: str, note: ServiceNote | None, recent: bool, state: str
) -> None:
    made = host(maintenance=maintenance, connection=connection, note=note)
    desired = ServiceOptions("me", rebooting={made.ref._moId} if recent else set())
    plan = planned(HostReboot, made, desired)
    assert plan.before["reboot"] == state and plan.after["reboot"] == "done" and not plan.unmet
    assert bool(plan.why) is (state != "due")


@pytest.mark.parametrize(
    ("seconds", "error", "state"),
    [
        (60, "", "asked for"),
        (-5, "", "asked for"),  # the clocks of vCenter and of the host differ
        (-300, "", "due"),  # this reboot led to the present boot, and a killed run requested no other one
        (60, "the host said no", "due"),
    ],
)
def test_only_a_task_of_this_boot_counts(monkeypatch: pytest.MonkeyPatch, seconds: int, error: str, state: str) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED, NOW))
    queued = datetime.fromisoformat(NOW) + timedelta(seconds=seconds)
    task = RecentTask(None, made.ref._moId, "reboot", False, "me", error, queued)
    monkeypatch.setattr(recent_tasks, "recent", lambda _session, refs: [task] if refs else [])
    fleet: Any = SimpleNamespace(session=made.session, hosts=[made], refresh_for=lambda _subjects: None)
    work = work_on(fleet, "rebooted", ServiceOptions("me"))

    work.refresh(work.subjects)

    assert work.subjects[0].read()["reboot"] == state


@pytest.mark.parametrize(("before", "state"), [(NOW, "due"), (OLD, "under way"), ("", "due")])
def test_does_not_reboot_a_host_that_rebooted_since(before: str, state: str) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED))
    boot.remember(made, "nmlx5_core", "")
    made.refresh()
    made.writes.clear()
    desired = ServiceOptions("me", boot_times={made.name: before})
    assert planned(HostReboot, made, desired).before["reboot"] == state


def test_a_change_after_a_reboot_needs_another_reboot() -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED, OLD))
    boot.remember(made, "nmlx5_core", "")
    made.refresh()
    made.writes.clear()
    assert planned(HostReboot, made).before["reboot"] == "due"


def test_reboots_again_after_an_earlier_reboot_ended() -> None:
    """Neither the host nor a note shows that a changed graphics type waits for a boot."""
    made = host(maintenance=True, note=ServiceNote("me", NOTED, OLD))
    desired = ServiceOptions("me", boot_times={made.name: NOW})
    assert planned(HostReboot, made, desired).before["reboot"] == "due"


@pytest.mark.parametrize("boot_times", [{}, {"esx01.lab": OLD}])
def test_does_not_reboot_without_a_known_boot_time(boot_times: dict[str, str]) -> None:
    made = host(maintenance=True, note=ServiceNote("me", NOTED))
    made.has(runtime__bootTime=None)
    made.refresh()

    with pytest.raises(Failed, match=r"esx01\.lab: could not reboot: vCenter does not show when it booted"):
        planned(HostReboot, made, ServiceOptions("me", boot_times=boot_times))


def test_refuses_to_reboot_hosts_in_service_or_disconnected() -> None:
    assert planned(HostReboot, host()).unmet
    with pytest.raises(Unreachable, match="notResponding"):
        planned(HostReboot, host(connection="notResponding"))


@pytest.mark.parametrize("text", ["", "null", "{", "[]", '{"odd": 1}', '"x"'])
def test_ignores_a_malformed_note(text: str) -> None:
    assert service_note.parse(text) is None


def test_a_note_survives_being_written() -> None:
    note = ServiceNote("me", NOTED, OLD, visiting=True)
    made = host(note=note)
    assert service_note.note_on(made) == note and service_note.our_note(made) is None
    assert json.loads(made.fields.values[100])["by"] == "me"
    service_note.clear(made)
    made.refresh()
    assert service_note.note_on(made) is None


def with_version(made: FakeHost, *version: int) -> FakeHost:
    made.session.api_version = version  # type: ignore[misc]
    made.session.content.about = SimpleNamespace(version=".".join(map(str, version)))
    return made


def test_refuses_non_disruptive_evacuation_before_version_9_1() -> None:
    made, desired = with_version(host(), 9, 0, 0), ServiceOptions("me", non_disruptive=True)
    with pytest.raises(Refused, match=r"vCenter 9\.0\.0 has no non-disruptive evacuation, which came with 9\.1"):
        planned(MaintenanceMode, made, desired, judged(made, HostEvacuation()))
    assert planned(MaintenanceMode, made, evacuations=judged(made, HostEvacuation())).changes


@pytest.mark.skipif(not hasattr(vim.host.MaintenanceSpec, "EvacuationMode"), reason="this pyVmomi is older than 9.1")
def test_powered_off_machines_are_evacuated_only_on_request() -> None:
    made = with_version(host(), 9, 1, 0)
    assert planned(
        MaintenanceMode, made, ServiceOptions("me", non_disruptive=True), judged(made, HostEvacuation())
    ).changes
    assert maintenance_spec(made, ServiceOptions("me")) is None
    spec = maintenance_spec(made, ServiceOptions("me", non_disruptive=True))
    assert spec.evacMode.workloadNonDisruptive and spec.vsanMode is None
    made.has(config__vsanHostConfig__enabled=True)
    made.refresh()
    spec = maintenance_spec(made, ServiceOptions("me", vsan="no_action"))
    assert spec.evacMode is None and spec.vsanMode.objectAction == "noAction"
