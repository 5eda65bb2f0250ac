"""VIBs: sources, plans, four runs, and hosts that refuse or misbehave."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import Refused, Unreachable
from plugins.module_utils.hosts import vib
from plugins.module_utils.hosts.vib import InstalledVibs, Vib, VibSpec, option_of, plan_vib
from tests.fakes import esxi
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import T4, FakeGpus, Gpu
from tests.fakes.module import FakeModule
from tests.fakes.vibs import DEPOT, DRIVER, NEW, OLD, FakeVibs

PRESENT = VibSpec(DRIVER, NEW, DEPOT)
ABSENT = VibSpec(DRIVER, state="absent")


def host_with(
    running: dict[str, str] | None = None, *gpus: Gpu, name: str = "esx01.lab", **more: Any
) -> tuple[FakeHost, FakeVibs]:
    host = FakeHost(name)
    FakeGpus(host, *(gpus or (Gpu(),)))
    host.has(runtime__inMaintenanceMode=True, parent=SimpleNamespace(_moId="domain-c1"))
    return host, FakeVibs(host, running, **more)


def state(**more: Any) -> dict[str, Any]:
    rehearsal = {"reboot": True, "installs": [f"NVIDIA_bootbank_{DRIVER}_{NEW}"], "removes": []}
    return {
        "running": None,
        "next_boot": None,
        "others": [],
        "gpus_in_passthrough": [],
        "gpus_without_driver": [],
        "image_of": "",
        "in_maintenance": True,
        "rehearsal": rehearsal,
        **more,
    }


def converge(subject: Vib, check: bool = False) -> dict[str, Any]:
    work = runner.Work([subject], esxi.refresh, lambda current: plan_vib(current, subject.desired))
    return runner.converge(FakeModule(check_mode=check), work)


@pytest.mark.parametrize(
    ("source", "option"),
    [
        ("/vmfs/volumes/shared/a b/X.zip", {"depot": "/vmfs/volumes/shared/a b/X.zip"}),
        ("[shared] a/X.zip", {"depot": "/vmfs/volumes/shared/a/X.zip"}),
        ("[shared]X.VIB", {"viburl": "/vmfs/volumes/shared/X.VIB"}),
        ("https://depot.example.com/X.vib?token=1.zip", {"viburl": "https://depot.example.com/X.vib?token=1.zip"}),
        ("http://depot.example.com/X.zip", {"depot": "http://depot.example.com/X.zip"}),
        ("https://depot.example.com/index.xml", {"depot": "https://depot.example.com/index.xml"}),
    ],
)
def test_the_option_follows_the_kind_of_file(source: str, option: dict[str, str]) -> None:
    assert option_of(source) == option


@pytest.mark.parametrize(
    "source", ["X.zip", "shared/X.zip", "./X.vib", "ftp://host/X.vib", "/tmp/index.xml", "/tmp/X", ""]
)
def test_other_sources_are_refused_before_any_login(source: str) -> None:
    with pytest.raises(Refused):
        VibSpec.from_options(
            {"name": DRIVER, "version": NEW, "source": source, "state": "present", "install_timeout": 60}
        )


def test_refuses_a_source_with_account_without_showing_it() -> None:
    with pytest.raises(Refused) as refusal:
        option_of("https://me:a-secret@depot.example.com/driver.zip")
    assert "its URL contains an account" in str(refusal.value)
    assert "a-secret" not in str(refusal.value)


@pytest.mark.parametrize(
    ("current", "desired", "changed", "needs"),
    [
        (state(), PRESENT, True, {"maintenance", "reboot"}),
        (state(running=OLD, next_boot=OLD), PRESENT, True, {"maintenance", "reboot"}),
        (state(running=OLD, next_boot=NEW, rehearsal=None), PRESENT, False, {"reboot"}),
        (state(running=NEW, next_boot=NEW, rehearsal=None), PRESENT, False, set()),
        (state(running=NEW, next_boot=NEW, rehearsal=None), VibSpec(DRIVER, "550.90.05", DEPOT), False, set()),
        (state(running=NEW, next_boot=NEW), VibSpec(DRIVER, NEW + "1", DEPOT), True, None),
        (state(running=NEW, next_boot=NEW, gpus_without_driver=[T4]), PRESENT, False, {"reboot"}),
        (state(running=NEW, next_boot=NEW), ABSENT, True, {"maintenance", "reboot"}),
        (state(running=NEW, next_boot=None, rehearsal=None), ABSENT, False, {"reboot"}),
        (state(rehearsal=None), ABSENT, False, set()),
        (state(rehearsal={**state()["rehearsal"], "reboot": False}), PRESENT, True, {"maintenance", "reboot"}),
    ],
)
def test_plans_changes_and_needs(
    current: dict[str, Any], desired: VibSpec, changed: bool, needs: set[str] | None
) -> None:
    if needs is None:
        with pytest.raises(Refused, match="would install NVIDIA_bootbank_"):
            plan_vib(current, desired)
        return
    plan = plan_vib(current, desired)
    assert (bool(plan.changes), plan.needs) == (changed, needs)


def test_outside_maintenance_mode_it_cannot_be_done_now() -> None:
    assert "only in maintenance mode" in plan_vib(state(in_maintenance=False), PRESENT).unmet[0]
    assert plan_vib(state(in_maintenance=False, next_boot=NEW, rehearsal=None), PRESENT).unmet == ()


def test_passthrough_comes_first() -> None:
    held = state(gpus_in_passthrough=[T4], in_maintenance=False, rehearsal=None)
    with pytest.raises(Refused, match=f"GPU {T4} is in passthrough; end that with esxi_passthrough, reboot"):
        plan_vib(held, PRESENT)
    later = plan_vib(held, PRESENT, passthrough_ends=True)
    assert (later.later, later.due, later.unmet, later.needs) == ({"next_boot"}, (), (), {"maintenance"})
    assert "after the boot that ends the passthrough" in later.why[0]
    assert plan_vib(held, ABSENT).needs == frozenset()
    other = VibSpec("nmlx5-core", NEW, DEPOT)
    with pytest.raises(Refused, match="would install"):
        plan_vib(held, other)


def test_refuses_a_vib_on_an_image_managed_cluster() -> None:
    with pytest.raises(Refused, match=r"cluster gpu is managed by an image.*esxi_image"):
        plan_vib(state(image_of="gpu", rehearsal=None), PRESENT)
    assert not plan_vib(state(image_of="gpu", next_boot=NEW, running=NEW, rehearsal=None), PRESENT).changes


def test_side_effects_cause_a_warning() -> None:
    removes = [f"NVIDIA_bootbank_{DRIVER}_{OLD}", "VMW_bootbank_tool_1.0"]
    rehearsal = {**state()["rehearsal"], "removes": removes}
    plan = plan_vib(state(rehearsal=rehearsal, others=["NVD-VGPU_X 1.0"]), PRESENT)
    assert plan.warnings == (
        "this also removes VMW_bootbank_tool_1.0",
        "another vGPU manager is installed: NVD-VGPU_X 1.0",
    )


def test_installed_vib_needs_a_boot_until_it_happens() -> None:
    host, vibs = host_with({DRIVER: OLD, "tool": "1.0"})
    subject = Vib(host, PRESENT, {})
    result = converge(subject)
    assert host.writes == [("software vib install", {"depot": DEPOT})]
    assert vibs.requests[-1][1]["patience"] == 1800
    assert (result["hosts"][0]["state"]["running"], result["hosts"][0]["state"]["next_boot"]) == (OLD, NEW)
    vibs.boot()
    assert converge(subject)["needs"] == []
    assert vibs.running == {DRIVER: NEW, "tool": "1.0"}


def test_a_live_install_needs_no_boot() -> None:
    host, vibs = host_with(live=True)
    vibs.depots["/vmfs/volumes/shared/tool.zip"] = ("tool", "2.0")
    result = converge(Vib(host, VibSpec("tool", "2.0", "/vmfs/volumes/shared/tool.zip"), {}))
    assert (result["changed"], result["needs"]) == (True, [])


@pytest.mark.parametrize("desired", [PRESENT, ABSENT], ids=["updated", "removed"])
def test_manager_needs_a_boot_even_if_unreported(desired: VibSpec) -> None:
    # NVIDIA's bundles answer "Reboot Required: false", and the host lists the new version at once.
    host, vibs = host_with({DRIVER: OLD}, live=True)
    subject = Vib(host, desired, {})
    assert converge(subject, check=True)["needs"] == ["maintenance", "reboot"]
    assert converge(subject)["needs"] == ["reboot"]
    assert vibs.running == ({DRIVER: NEW} if desired is PRESENT else {})
    for _again in range(2):
        again = converge(subject)
        assert (again["changed"], again["needs"]) == (False, ["reboot"])
        assert again["hosts"][0]["state"]["running"] == OLD
    host.has(runtime__bootTime=esxi.BOOTED + timedelta(minutes=10))
    assert converge(subject)["needs"] == []


def test_removes_a_vib_once() -> None:
    host, vibs = host_with({DRIVER: OLD, "tool": "1.0"})
    subject = Vib(host, ABSENT, {})
    assert converge(subject)["changed"]
    assert converge(subject)["changed"] is False
    assert host.writes == [("software vib remove", {"vibname": DRIVER})]
    vibs.boot()
    assert vibs.running == {"tool": "1.0"}


def test_refuses_a_failed_rehearsal_before_any_write() -> None:
    host, vibs = host_with()
    vibs.refusal = "[AcceptanceConfigError] VIB's acceptance level is community, which is not compliant"
    for check in (True, False):
        refused = converge(Vib(host, PRESENT, {}), check)
        assert refused["failed"]
        assert "esx01.lab" in refused["msg"]
        assert "AcceptanceConfigError" in refused["msg"]
        assert "the host accepts level partner and above" in refused["msg"]
    assert host.writes == []
    assert not {"force", "nosigcheck"} & {key for _command, options in vibs.requests for key in options}
    vibs.refusal = ""
    missing = converge(Vib(host, VibSpec(DRIVER, NEW, "/vmfs/volumes/shared/none.zip"), {}))
    assert "Could not download from /vmfs/volumes/shared/none.zip" in missing["msg"]


@pytest.mark.parametrize("text", ["[AcceptanceConfigError] Die Akzeptanzstufe des VIB ist community", "受け入れレベル"])
def test_advises_alike_on_refusals_in_other_languages(text: str) -> None:
    host, vibs = host_with()
    vibs.refusal = text
    refused = converge(Vib(host, PRESENT, {}))
    assert text in refused["msg"] and "the host accepts level partner and above" in refused["msg"]


def test_a_lost_connection_is_not_a_refusal() -> None:
    host, vibs = host_with()

    def lost(*_args: Any) -> Any:
        raise Unreachable("esx01.lab", "run esxcli", "the connection broke", "run again")

    vibs._change = lost  # type: ignore[method-assign]
    host.refresh()
    with pytest.raises(Unreachable):
        Vib(host, PRESENT, {}).read()


def test_reads_the_cluster_and_gpus_of_a_host() -> None:
    host, _vibs = host_with({DRIVER: NEW, "NVD-VGPU_X": "1.0"}, Gpu(active="basic"), Gpu("0000:d8:00.0", enabled=True))
    host.refresh()
    current = Vib(host, PRESENT, {"domain-c1": "gpu"}).read()
    assert (current["image_of"], current["others"]) == ("gpu", ["NVD-VGPU_X 1.0"])
    assert (current["gpus_in_passthrough"], current["gpus_without_driver"]) == (["0000:d8:00.0"], [T4])
    assert current["rehearsal"] is None


def test_does_not_rehearse_with_a_gpu_in_passthrough() -> None:
    host, vibs = host_with({}, Gpu(enabled=True, passed=True))
    host.refresh()
    assert Vib(host, PRESENT, {}).read()["rehearsal"] is None
    assert vibs.requests == []


def test_subjects_share_one_vib_read_between_refreshes() -> None:
    host, vibs = host_with({DRIVER: NEW, "tool": "1.0"})
    images, requested = InstalledVibs(host), []
    listed = vibs.rows
    vibs.rows = lambda command, **options: requested.append(command) or listed(command, **options)  # type: ignore[method-assign]
    for _round in range(2):
        host.refresh()
        Vib(host, PRESENT, {}, images).read()
        Vib(host, ABSENT, {"domain-c1": "gpu"}, images).read()
    assert len(requested) == 4
    assert vib.facts(images)["running"] == [
        {"name": DRIVER, "version": NEW, "vendor": "NVIDIA", "acceptance_level": ""}
    ]
