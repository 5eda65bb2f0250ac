"""The settings that clusters share are recorded before the first change, and restored from the oldest record."""

from __future__ import annotations

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event
from typing import Any

import pytest

from tests.fakes.programs import Answers, run

HOT, OTHER, DRS = "vgpu.hotmigrate.enabled", "vgpu.other", "Timeout"
HERE = {"instance_uuid": "here"}
OPTIONS: dict[str, Any] = {"cluster": "gpu", "vcenter_options": {HOT: True}, "allow_shared_settings": True}
RECORD = {**HERE, "vcenter_options": {HOT: False}, "drs_options": {DRS: None}}


class Site(Answers):
    """A vCenter whose option differs unless ``changed`` is false; it keeps the record at the time of the change."""

    def __init__(self, folder: Path, *, changed: bool = True, **fails: Any) -> None:
        super().__init__()
        self.folder, self.changed, self.fails = folder, changed, fails
        self.planned_with: list[dict[str, Any]] = []
        self.at_change: dict[str, Any] | None = None

    def planned(self, _name: str, options: dict[str, Any], /) -> dict[str, Any]:
        self.planned_with.append(options)
        previous = {**HERE, "vcenter_options": {HOT: not self.changed}, "drs_options": {}}
        return {"changed": self.changed, "settings": [{"changed": self.changed}], "previous": previous, **self.fails}

    def here(self, name: str, options: dict[str, Any], /) -> dict[str, Any]:
        self.calls[name] = options
        self.at_change = kept(self.folder)
        return {"changed": self.changed, **self.fails}


def keep(folder: Path, cluster: str, **record: Any) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{cluster}-shared-settings.json").write_text(json.dumps(record))


def kept(folder: Path, cluster: str = "gpu") -> dict[str, Any] | None:
    path = folder / f"{cluster}-shared-settings.json"
    return dict(json.loads(path.read_text())) if path.exists() else None


def settle(site: Site, *, check: bool = False, **options: Any) -> dict[str, Any]:
    given = {**OPTIONS, "record_dir": str(site.folder), **options}
    return run("shared_settings", site, check=check, **given)


CHANGES: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any] | None]] = [
    ("the values before the first change", {}, {}, {HOT: False}),
    ("an own record, which is older", {"gpu": {**HERE, "vcenter_options": {HOT: "old"}}}, {}, {HOT: "old"}),
    ("one that is being restored", {"gpu": {**HERE, "vcenter_options": {HOT: 1}, "restoring": True}}, {}, {HOT: 1}),
    ("the older value of another cluster", {"cpu": {**HERE, "vcenter_options": {HOT: "older"}}}, {}, {HOT: "older"}),
    ("one of another vCenter", {"cpu": {"instance_uuid": "b", "vcenter_options": {HOT: "b"}}}, {}, {HOT: False}),
    ("one that another cluster restores", {"cpu": {**RECORD, "restoring": True}}, {}, {HOT: False}),
    ("one whose restoration died first", {"cpu": {**RECORD, "restoring": True}}, {"changed": False}, {HOT: False}),
    (
        "none of one that was restored",
        {"cpu": {**HERE, "vcenter_options": {HOT: True}, "restoring": True}},
        {"changed": False},
        None,
    ),
    ("nothing without a change", {}, {"changed": False}, None),
]


@pytest.mark.parametrize(("records", "site", "expected"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_change_records_the_oldest_values_first(
    tmp_path: Path, records: dict[str, Any], site: dict[str, Any], expected: dict[str, Any] | None
) -> None:
    for cluster, record in records.items():
        keep(tmp_path / "records", cluster, **record)
    calls = Site(tmp_path / "records", **site)

    result = settle(calls)

    assert result["changed"] == calls.changed and calls.calls["shared_settings"]["cluster"] == "gpu", result
    assert (calls.at_change or {}).get("vcenter_options") == expected
    assert "restoring" not in (calls.at_change or {})
    assert expected is None or (tmp_path / "records").stat().st_mode & 0o777 in (0o700, 0o755)


def test_restore_leaves_options_that_other_clusters_need(tmp_path: Path) -> None:
    keep(tmp_path, "gpu", **{**RECORD, "vcenter_options": {HOT: False, OTHER: 1}})
    keep(tmp_path, "cpu", **HERE, vcenter_options={OTHER: 1})
    calls = Site(tmp_path)

    result = settle(calls, state="absent")

    given = calls.calls["shared_settings"]
    assert result["changed"] and (given["vcenter_options"], given["drs_options"]) == ({HOT: False}, {DRS: None})
    assert given["instance_uuid"] == "here" and (calls.at_change or {})["restoring"]
    assert kept(tmp_path) is None and kept(tmp_path, "cpu") is not None
    assert settle(Site(tmp_path), state="absent") == {"changed": False}, "nothing is left to restore"


class Vcenter:
    """The option of a vCenter, which two runs plan at the same time unless one waits for the other."""

    def __init__(self) -> None:
        self.is_on = True
        self.plans, self.switched_on = Barrier(2), Event()


class CommonSite(Site):
    """A cluster of a common vCenter; a slow restoration writes the option after the other run."""

    def __init__(self, folder: Path, vcenter: Vcenter) -> None:
        super().__init__(folder)
        self.vcenter = vcenter

    def planned(self, name: str, options: dict[str, Any], /) -> dict[str, Any]:
        with contextlib.suppress(BrokenBarrierError):
            self.vcenter.plans.wait(timeout=0.5)
        self.changed = options["vcenter_options"].get(HOT, self.vcenter.is_on) != self.vcenter.is_on
        return super().planned(name, options)

    def here(self, name: str, options: dict[str, Any], /) -> dict[str, Any]:
        is_on = options["vcenter_options"].get(HOT, self.vcenter.is_on)
        self.vcenter.switched_on.set() if is_on else self.vcenter.switched_on.wait(timeout=0.5)
        self.vcenter.is_on = is_on
        return super().here(name, options)


@pytest.mark.parametrize(("state", "is_on"), [("absent", False), ("present", True)])
def test_simultaneous_runs_agree_on_a_common_option(tmp_path: Path, state: str, is_on: bool) -> None:
    vcenter = Vcenter()
    for cluster in ("cpu", "gpu") if state == "absent" else ("cpu",):
        keep(tmp_path, cluster, **RECORD)

    with ThreadPoolExecutor() as pool:
        removed = pool.submit(settle, CommonSite(tmp_path, vcenter), cluster="cpu", state="absent")
        other = pool.submit(settle, CommonSite(tmp_path, vcenter), state=state)

    assert not removed.result().get("failed") and not other.result().get("failed")
    assert vcenter.is_on == is_on and kept(tmp_path, "cpu") is None
    assert (kept(tmp_path) or {}).get("vcenter_options") == ({HOT: False} if is_on else None)


def test_restores_nothing_that_another_run_restored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(tmp_path, "gpu", **RECORD)
    calls = Site(tmp_path)
    # The other run ends while this one waits for the lock.
    monkeypatch.setattr("fcntl.flock", lambda *_lock: (tmp_path / "gpu-shared-settings.json").unlink())

    assert settle(calls, state="absent") == {"changed": False} and not calls.calls


def test_removal_without_a_record_creates_no_folder(tmp_path: Path) -> None:
    assert settle(Site(tmp_path / "records"), state="absent") == {"changed": False}
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("state", ["present", "absent"])
def test_check_and_refusal_leave_the_records_alone(tmp_path: Path, state: str) -> None:
    keep(tmp_path, "gpu", **RECORD)

    planned, refused = Site(tmp_path), Site(tmp_path, failed=True, msg="not this vCenter")
    assert settle(planned, check=True, state=state)["changed"] and not planned.calls
    assert settle(refused, state=state)["msg"] == "not this vCenter" and not refused.calls
    assert kept(tmp_path) == RECORD


def test_change_without_consent_records_nothing(tmp_path: Path) -> None:
    calls = Site(tmp_path)

    settle(calls, allow_shared_settings=False)

    assert calls.at_change is None and "shared_settings" in calls.calls, "the module refuses with the values"


@pytest.mark.parametrize("text", ["{", "[]"])
def test_refuses_a_damaged_record_by_its_path(tmp_path: Path, text: str) -> None:
    path = tmp_path / "gpu-shared-settings.json"
    path.write_text(text)

    result = settle(Site(tmp_path))

    assert result["failed"] and result["msg"].startswith(f"{path}: could not read the earlier values"), result
    assert path.read_text() == text
