"""The contract of all subjects of a host, which unit tests run on fakes, on the hosts of the simulated data centre."""

from __future__ import annotations

from typing import Any

import pytest

from lab.simulator import Simulator
from plugins.module_utils.hosts.part import Part
from plugins.module_utils.hosts.profile_parts import PARTS
from plugins.module_utils.hosts.rollback.rollback import Before
from tests.fakes.vibs import DEPOT, NEW
from tests.fakes.vibs import DRIVER as DRIVER_NAME
from tests.integration.ansible import Ansible
from tests.integration.booting import boot
from tests.unit.plugins.module_utils.hosts.contract import CASES
from tests.unit.plugins.module_utils.hosts.test_contract import WITH_NAMES, settings

HOSTS = ["esx01.lab", "esx02.lab"]
DRIVER = {"name": DRIVER_NAME, "version": NEW, "source": DEPOT}
TOOL = {"name": "homemade-tool", "version": "1.0-1", "source": "[shared] homemade-tool.vib"}
# By module: options that a host of the data centre does not allow, and words of the refusal.
IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    ("advanced_option", {"options": {"NFS.MaxVolumes": 7}}, "NFS.MaxVolumes: 7 is not within 8 to 256"),
    ("advanced_option", {"options": {"Mem.ShareForceSaltin": 0}}, "similar options: Mem.ShareForceSalting"),
    ("kernel_module", {"name": "nmlx5_core", "options": {"max_vsf": 4}}, "max_vsf (did you mean max_vfs?)"),
    ("passthrough", {"devices": ["0000:18:00.0"], "enabled": True}, "cannot be passed through"),
    ("passthrough", {"devices": ["0000:99:00.0"], "enabled": True}, "choose among 0000:3b:00.0"),
    ("pvrdma", {"vmk": "vmk0"}, "vmk0 is on the standard switch vSwitch0"),
    ("vib", {**DRIVER, "source": "[shared] nothere.zip"}, "No such file or directory"),
    ("vib", {**DRIVER, "version": "551.00"}, f"would install NVIDIA_bootbank_{DRIVER_NAME}_{NEW}"),
    ("vib", TOOL, "the host accepts level partner and above"),
]
each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.key)


@pytest.fixture
def resting(vcenter: Simulator) -> Simulator:
    """The data centre with two hosts in maintenance mode, in which all settings can be changed."""
    for name in HOSTS:
        vcenter.set_host(name, maintenance=True)
    return vcenter


def given(value: Any) -> Any:
    """Return a value of the profile without the suboptions that a user leaves out."""
    if isinstance(value, list):
        return [given(entry) for entry in value]
    return {name: item for name, item in value.items() if item is not None}


def options(part: Part, value: Any) -> dict[str, Any]:
    """Return the options of the module of a part for a value of the profile."""
    only = given(value[0] if isinstance(value, list) else value)
    return {"hosts": HOSTS, **(only if "options" in part.spec else {"options": only})}


def changes(vcenter: Simulator, host: str) -> tuple[str, ...]:
    """Return the calls that changed a setting of a host, without notes for its next boot."""
    calls = [write["method"] for write in vcenter.writes() if write["name"] == host and write["method"] != "SetField"]
    return tuple(call.removeprefix("esxcli ") for call in calls)


def evidence(part: Part, ansible: Ansible) -> dict[str, Any]:
    return ansible.module("esxi_info", hosts=HOSTS, profile={part.key: given(CASES[part.key].requested)}).host(HOSTS[0])


@each_part
def test_plans_applies_once_and_restores_a_change(resting: Simulator, ansible: Ansible, part: Part) -> None:
    case = CASES[part.key]
    requested, before = options(part, case.requested), evidence(part, ansible)

    planned = ansible.module(part.module, check=True, **requested)
    assert planned.changed and resting.writes() == [], planned.out
    applied = ansible.module(part.module, **requested)
    assert applied.changed and applied.result["diff"] == planned.result["diff"], applied.out
    assert [changes(resting, host) for host in HOSTS] == [case.writes] * 2
    resting.clear()
    again = ansible.module(part.module, **requested)
    assert (again.changed, set(again.result["needs"]), resting.writes()) == (False, set(case.needs), []), again.out
    assert not ansible.module("esxi_profile", hosts=HOSTS, profile={part.key: given(case.requested)}).changed

    back = dict(part.restore(Before(before, {part.key: case.requested})))
    restored = ansible.module("esxi_profile", hosts=HOSTS[:1], profile=back)
    assert restored.changed and {write["name"] for write in resting.writes()} == set(HOSTS[:1]), restored.out
    if case.needs:
        boot(resting, HOSTS[0])
    after = evidence(part, ansible)
    assert {key: settings(after[key]) for key in part.kept} == {key: settings(before[key]) for key in part.kept}


@each_part
def test_host_that_ignores_changes_fails_alone(resting: Simulator, ansible: Ansible, part: Part) -> None:
    case = CASES[part.key]
    # The rehearsal of an installation is the same call.
    rehearsed = {"method": "esxcli software vib install", "skip": 1} if part.key == "vibs" else {}
    for call in case.writes:
        resting.fault(**{"method": call, "kind": "deaf", "name": HOSTS[0], **rehearsed})

    outcome = ansible.module(part.module, **options(part, case.requested))

    assert outcome.rc == 1 and "the server accepted the change, yet" in outcome.msg, outcome.out
    assert [entry["host"] for entry in outcome.result["hosts"] if entry.get("failed")] == HOSTS[:1]


@pytest.mark.parametrize("part", WITH_NAMES, ids=lambda part: part.key)
def test_refuses_an_unknown_name_before_any_write(resting: Simulator, ansible: Ansible, part: Part) -> None:
    refused = ansible.module(part.module, **options(part, CASES[part.key].unknown))

    assert refused.rc == 1 and HOSTS[0] in refused.msg and CASES[part.key].refusal in refused.msg, refused.msg
    assert resting.writes() == []


@pytest.mark.parametrize(("module", "requested", "words"), IMPOSSIBLE)
def test_refuses_impossible_requests_before_any_write(
    resting: Simulator, ansible: Ansible, module: str, requested: dict[str, Any], words: str
) -> None:
    for check in (True, False):
        refused = ansible.module(f"esxi_{module}", check=check, hosts=HOSTS, **requested)
        assert refused.rc == 1 and HOSTS[0] in refused.msg and words in refused.msg, refused.msg
    assert resting.writes() == []
