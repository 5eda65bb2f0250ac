"""The rollback from evidence: it restores the settings that a change touched, or refuses with their names."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from plugins.module_utils.hosts.rollback import restoring, rollback
from plugins.module_utils.hosts.rollback.evidence import FORMAT, HIDDEN
from plugins.module_utils.hosts.rollback.restoring import kept, restoring_image
from plugins.module_utils.hosts.rollback.rollback import Before, Irreversible, restoring_settings
from plugins.module_utils.hosts.rollback.ways import WAYS

GPU = "0000:3b:00.0"
MANAGER = "NVD-AIE_ESXi_8.0.0_Driver"
NEW, OLD = "550.90.05-1OEM.800.1.0.20613240", "550.54.16-1OEM.800.1.0.20613240"
FRESH: dict[str, Any] = {
    "host": "esx1",
    "vibs": {"running": [{"name": "nmlx5-core", "version": "4.23.6.2"}], "pending": []},
    "graphics": {
        "default_type": "shared",
        "policy": "performance",
        "types": {GPU: None},
        "modes": {GPU: None},
        "gpus": {GPU: {"name": "Tesla T4", "passthrough": "off"}},
    },
    "kernel_modules": {
        "nmlx5_core": {"options": {"max_vfs": "8"}, "active": {"max_vfs": "8"}},
        "nmlx5_rdma": {"options": {}, "active": {}},
    },
    "pvrdma": {"vmk": "", "firewall_open": False},
}
DESIRED: dict[str, Any] = {
    "vibs": [{"name": MANAGER, "version": "550.90.05", "source": "/vmfs/volumes/shared/new.zip"}],
    "graphics": {"type": "shared_direct"},
    "roce": {"priority": 3},
    "pvrdma": {"vmk": "vmk1"},
}
RESTORED = {
    "vibs": [{"name": MANAGER, "state": "absent"}],
    "graphics": {"type": "shared", "policy": "performance"},
    "kernel_modules": [
        {"name": "nmlx5_core", "options": {"max_vfs": "8"}, "exact": True},
        {"name": "nmlx5_rdma", "options": {}, "exact": True},
    ],
    "pvrdma": {"state": "absent", "close_firewall": True},
}
BEFORE = {"base_image": "8.0.2-0.0.1", "add_on": None, "components": {"manager": "1", "tools": "5"}}


def before(**changed: Any) -> dict[str, Any]:
    """Return a new host; ``graphics__policy`` changes a key within a part."""
    made = deepcopy(FRESH)
    for path, value in changed.items():
        *parts, last = path.split("__")
        place = made
        for part in parts:
            place = place[part]
        place[last] = value
    return made


def installed(version: str, pending: str = "") -> dict[str, Any]:
    rows = {"running": version, "pending": pending}
    return {key: [{"name": MANAGER, "version": one}] if one else [] for key, one in rows.items()}


def restoring_profile(host: dict[str, Any], desired: dict[str, Any], depots: Any = ()) -> dict[str, Any]:
    return rollback.restoring_profile(Before(host, desired, depots), WAYS)


def restoring_profiles(document: dict[str, Any], hosts: Any = ()) -> dict[str, dict[str, Any]]:
    return rollback.restoring_profiles({"format": FORMAT, **document}, WAYS, hosts=hosts)


def reasons(host: dict[str, Any], desired: dict[str, Any], depots: Any = ()) -> str:
    with pytest.raises(Irreversible) as refused:
        restoring_profile(host, desired, depots)
    return str(refused.value)


def test_everything_that_a_change_touched_is_restored() -> None:
    assert restoring_profile(before(), DESIRED) == RESTORED


def test_a_vib_that_was_installed_as_desired_stays() -> None:
    desired = {"vibs": DESIRED["vibs"]}
    assert restoring_profile(before(vibs=installed(NEW)), desired) == {}
    assert restoring_profile(before(vibs=installed(OLD, pending=NEW)), desired) == {}


def test_restores_an_older_vib_from_its_named_depot() -> None:
    desired, host = {"vibs": DESIRED["vibs"]}, before(vibs=installed(OLD))
    message = reasons(host, desired)
    assert MANAGER in message and OLD in message and "rollback_depots" in message
    other = {"name": MANAGER, "version": "525.105.14", "source": "/x.zip"}
    assert "rollback_depots" in reasons(host, desired, [other])
    fitting = {"name": MANAGER, "version": "550.54.16", "source": "/y.zip"}
    vib = {"name": MANAGER, "version": OLD, "source": "/y.zip", "state": "present"}
    assert restoring_profile(host, desired, [other, fitting]) == {"vibs": [vib]}


def test_a_package_without_a_record_is_refused() -> None:
    assert "homemade-tool" in reasons(before(), {"vibs": [{"name": "homemade-tool", "version": "1.0"}]})


def test_passthrough_is_restored() -> None:
    desired = {"passthrough": {"enabled": False}}
    on = before(graphics__gpus={GPU: {"name": "A100", "passthrough": "on"}})
    assert restoring_profile(on, desired) == {"passthrough": {"devices": [GPU], "enabled": True}}
    assert restoring_profile(before(), desired) == {"passthrough": {"devices": [GPU], "enabled": False}}


def test_gpus_with_different_settings_are_refused() -> None:
    message = reasons(before(graphics__gpus=gpus(a="on", b="off")), {"passthrough": {"enabled": True}})
    assert f"only {GPU} was in passthrough" in message
    types = {GPU: "shared_direct", OTHER: "shared"}
    assert "by hand" in reasons(before(graphics__types=types), {"graphics": {"type": "shared"}})


OTHER = "0000:af:00.0"


def gpus(**passthrough: str) -> dict[str, Any]:
    """Return the evidence of two GPUs."""
    return {address: {"name": "A100", "passthrough": passthrough[key]} for key, address in (("a", GPU), ("b", OTHER))}


@pytest.mark.parametrize(
    ("devices", "named"),
    [([" 3B:00.0 "], [GPU]), (["0000:AF:00.0", "3b:00.0"], [OTHER, GPU]), (["gpus", "3b:00.0"], [GPU, OTHER])],
)
def test_addresses_are_restored_in_every_accepted_form(devices: list[str], named: list[str]) -> None:
    profile = restoring_profile(
        before(graphics__gpus=gpus(a="on", b="on")), {"passthrough": {"devices": devices, "enabled": False}}
    )
    assert profile == {"passthrough": {"devices": named, "enabled": True}}


@pytest.mark.parametrize("other", ["pending", "on", "off"])
def test_passthrough_that_waited_for_a_boot_is_refused(other: str) -> None:
    host = before(graphics__gpus=gpus(a="pending", b=other))
    assert f"the passthrough of {GPU}" in reasons(host, {"passthrough": {"enabled": True}})


@pytest.mark.parametrize(
    ("modes", "restored"),
    [
        ({GPU: "same_size", OTHER: "same_size"}, "same_size"),
        ({GPU: "mixed_size", OTHER: "mixed_size"}, "mixed_size"),
        ({GPU: "same_size", OTHER: "mixed_size"}, None),
        ({GPU: "same_size", OTHER: None}, None),
        ({GPU: "none", OTHER: "none"}, None),
        ({GPU: None, OTHER: None}, None),
        ({}, None),
    ],
)
def test_restores_the_vgpu_mode_only_if_all_agreed(modes: dict[str, str], restored: str | None) -> None:
    host = before(graphics__gpus=gpus(a="off", b="off"), graphics__modes=modes, graphics__types={})
    desired = {"graphics": {"vgpu_mode": "mixed_size"}}
    if restored:
        assert restoring_profile(host, desired)["graphics"]["vgpu_mode"] == restored
    else:
        assert f"a vGPU mode, or not the same one ({GPU}: " in reasons(host, desired)


def test_requires_vgpu_modes_of_gpus_whose_passthrough_ended() -> None:
    modes = {GPU: "same_size", OTHER: None}
    host = before(graphics__gpus=gpus(a="off", b="on"), graphics__modes=modes, graphics__types={})
    desired: dict[str, Any] = {"graphics": {"vgpu_mode": "mixed_size"}}
    assert restoring_profile(host, desired)["graphics"]["vgpu_mode"] == "same_size"
    assert "a vGPU mode, or not the same one" in reasons(
        host, {**desired, "passthrough": {"devices": [OTHER], "enabled": False}}
    )


def test_restores_the_policy_despite_types_left_unchanged() -> None:
    host = before(graphics__types={GPU: "shared_direct", OTHER: "shared"})
    assert restoring_profile(host, {"graphics": {"policy": "consolidation"}}) == {"graphics": {"policy": "performance"}}


@pytest.mark.parametrize("closing", [{"state": "absent"}, {"state": "absent", "close_firewall": True}])
def test_refuses_a_firewall_closed_without_a_tag(closing: dict[str, Any]) -> None:
    opened = before(pvrdma={"vmk": "", "firewall_open": True})
    assert "the change closed its firewall ruleset pvrdma" in reasons(opened, {"pvrdma": closing})
    kept = {"pvrdma": {"state": "absent", "close_firewall": False}}
    assert restoring_profile(opened, kept) == kept


def test_a_device_that_is_not_recorded_is_refused() -> None:
    desired = {"passthrough": {"devices": ["0000:18:00.1"], "enabled": True}}
    assert "0000:18:00.1" in reasons(before(), desired)


@pytest.mark.parametrize(
    ("was", "restored"),
    [
        ({"vmk": "", "firewall_open": True}, {"state": "absent", "close_firewall": False}),
        ({"vmk": "vmk2", "firewall_open": True}, {"state": "present", "vmk": "vmk2"}),
        ({"vmk": None, "firewall_open": None}, None),
    ],
)
def test_pvrdma_is_restored_with_its_firewall(was: dict[str, Any], restored: dict[str, Any] | None) -> None:
    profile = restoring_profile(before(pvrdma=was), {"pvrdma": {"vmk": "vmk1"}})
    assert profile.get("pvrdma") == restored


def test_modules_without_records_get_no_options() -> None:
    desired = {"kernel_modules": [{"name": "lpfc", "options": {"a": 1}}, {"name": "nvidia", "options": {"b": 1}}]}
    modules = restoring_profile(before(), desired)["kernel_modules"]
    assert modules == [{"name": "lpfc", "options": {}, "exact": True}]


def test_an_unreadable_option_string_is_shown() -> None:
    modules = {"nmlx5_core": {"options": None, "text": "max_vfs"}}
    desired = {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vfs": 8}}]}
    assert "'max_vfs'" in reasons(before(kernel_modules=modules), desired)


def test_all_reasons_of_all_hosts_are_reported_together() -> None:
    gone = {"host": "esx2", "failed": True, "msg": "vCenter shows it as notResponding"}
    document = {
        "hosts": [before(vibs=installed(OLD), pvrdma={"vmk": "vmk1", "firewall_open": False}), gone],
        "wanted": {"profile": DESIRED, "host_profiles": {}},
    }
    with pytest.raises(Irreversible) as refused:
        restoring_profiles(document, hosts=["esx1", "esx2", "esx3"])
    assert [reason.split(":")[0] for reason in refused.value.reasons] == ["esx1", "esx1", "esx2", "esx3"]


def test_restores_a_host_from_its_separate_profile() -> None:
    own = {"esx2": {"pvrdma": {"vmk": "vmk1"}}}
    document = {"hosts": [before(), before(host="esx2")], "wanted": {"profile": DESIRED, "host_profiles": own}}
    assert restoring_profiles(document) == {"esx1": RESTORED, "esx2": {"pvrdma": RESTORED["pvrdma"]}}
    assert list(restoring_profiles(document, hosts=["esx2"])) == ["esx2"]


def test_restores_shared_settings_and_removes_new_ones() -> None:
    drs = {"options": {"PassthroughDrsAutomation": "1", "Other": "5"}}
    options = {"vgpu.hotmigrate.enabled": False, "unknown.here": None}
    assert restoring_settings({"cluster": {"options": options, "drs": drs}}) == {
        "vcenter_options": {"vgpu.hotmigrate.enabled": False},
        "drs_options": {"VgpuMMAutomationTimeoutSecs": None, "PassthroughDrsAutomation": "1"},
    }


def test_refuses_evidence_of_an_unknown_part_by_name() -> None:
    for desired in ({"profile": {"nosuch": {"a": 1}}, "host_profiles": {}},
                   {"profile": DESIRED, "host_profiles": {"esx2": {"nosuch": {}}}}):  # fmt: skip
        with pytest.raises(Irreversible, match="the change touched nosuch, which this version") as refused:
            restoring_profiles({"hosts": [before()], "wanted": desired})
        assert refused.value.remedy == "use the version of dml.vsphere that took the evidence"


def test_evidence_of_another_format_is_refused() -> None:
    with pytest.raises(Irreversible, match=r"it has format 99, and this version of dml\.vsphere reads format 2"):
        restoring_profiles({"format": 99, "hosts": [], "whatever": {}})


@pytest.mark.parametrize(("part", "kept"), [(part, kept) for part, way in WAYS.items() for kept in way.kept])
def test_refuses_evidence_that_lacks_a_parts_record(part: str, kept: str) -> None:
    host = {key: value for key, value in before().items() if key != kept}
    assert f"the evidence lacks {kept}, which restoring {part} needs" in reasons(host, {part: {"any": "thing"}})


def test_restores_values_by_key_only_with_evidence() -> None:
    ways = {"options": rollback.Way(("options",), restoring.values("options"))}
    entry = {"host": "esx1", "options": {"a": 1, "b": "", "gone": None, "password": HIDDEN, "untouched": 5}}
    desired = {"a": 2, "b": "x", "gone": 1}
    assert rollback.restoring_profile(Before(entry, {"options": desired}), ways) == {"options": {"a": 1, "b": ""}}
    with pytest.raises(Irreversible) as refused:
        rollback.restoring_profile(Before(entry, {"options": {**desired, "password": "x", "new": 1}}), ways)
    message = "the evidence does not contain the value of {}: restore it by hand"
    assert refused.value.reasons == (message.format("password"), message.format("new"))


def restored(before: dict[str, Any] | None = None, **desired: Any) -> tuple[dict[str, Any], list[str]]:
    return restoring_image({"wanted": {"image": desired}, "image": before or BEFORE})


def test_evidence_keeps_the_parts_of_an_image() -> None:
    assert kept({**BEFORE, "managed": True, "compliance": "compliant"}) == BEFORE


def test_a_change_without_an_image_restores_none() -> None:
    assert restoring_image({"wanted": {"profile": {}}}) == ({}, [])


def test_restores_named_components_and_removes_new_ones() -> None:
    assert restored(components={"manager": "2", "new": "7"}, absent=["tools"], accept_eula=True) == (
        {"components": {"manager": "1", "tools": "5"}, "absent": ["new"]},
        [],
    )


def test_the_earlier_add_on_is_restored() -> None:
    before = {**BEFORE, "add_on": {"name": "vendor", "version": "1"}}
    assert restored(before, add_on={"name": "vendor", "version": "2"}) == ({"add_on": before["add_on"]}, [])


@pytest.mark.parametrize(
    ("desired", "reason"),
    [
        ({"base_image": "8.0.3-0.0.1"}, "vLCM does not downgrade ESXi: to return to 8.0.2-0.0.1, reinstall it on"),
        ({"add_on": {"name": "vendor", "version": "2"}}, "the image had no add-on: remove vendor in the cluster's"),
    ],
)
def test_refuses_a_part_that_vlcm_cannot_restore(desired: dict[str, Any], reason: str) -> None:
    _options, reasons = restored(**desired)
    assert len(reasons) == 1 and reason in reasons[0]


def test_the_same_base_image_is_not_refused() -> None:
    assert restored(base_image="8.0.2-0.0.1", components={"manager": "2"}) == ({"components": {"manager": "1"}}, [])


def test_refuses_evidence_without_the_changed_image() -> None:
    _options, reasons = restoring_image({"wanted": {"image": {"components": {"manager": "2"}}}})
    assert reasons == [
        "the evidence lacks the image of the cluster, which the change touched: restore it with esxi_image"
    ]
