"""The planner of the RDMA fabric: what changes, what is refused and in which words, and four runs over plain data."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.errors import Failed, Refused
from plugins.module_utils.fabric import fabric_marks, fabric_spec, planner, switch
from plugins.module_utils.fabric.fabric import ATTEMPTS, Fabric
from plugins.module_utils.fabric.planner import GROUP, HOST, SWITCH
from plugins.module_utils.plan import Plan
from tests.fakes.esxi import FakeHost
from tests.fakes.module import FakeModule

HOSTS = ("esx01.lab", "esx02.lab")
SPELT = {"name": "rdma%2fvmk", "vlan": 216}
KEY = f"{HOST}esx01.lab"


def host(number: int, **more: Any) -> dict[str, Any]:
    """A host with one RDMA card and management on a standard switch."""
    plain = {"link": True, "rdma": None}
    return {
        "uplinks": {"vmnic0": plain, "vmnic2": {"link": True, "rdma": "vmrdma0"}},
        "rdma": {"vmrdma0": {"uplink": "vmnic2", "roce": True, "state": "active"}},
        "switches": {"vSwitch0": {"kind": "standard", "mtu": 1500, "uplinks": ["vmnic0"], "lag": False}},
        "vmkernel": {"vmk0": adapter("vSwitch0", "Management Network", f"10.0.0.{number}", services=["management"])},
        "built": None,
        "tagged": "",
        **more,
    }


def adapter(switch: str, group: str, address: str, **more: Any) -> dict[str, Any]:
    plain = {"netmask": "255.255.255.0", "mtu": 9000, "dhcp": False, "services": []}
    return {"switch": switch, "port_group": group, "address": address, **plain, **more}


def bare() -> dict[str, Any]:
    hosts = {name: host(number) for number, name in enumerate(HOSTS, start=1)}
    none: dict[str, Any] = {"hosts": [], "port_groups": []}
    there = {"switch": None, "port_groups": {}, "taken": {}, "members": [], "machines": [], "notes_of_others": {}}
    return {**there, "hosts": hosts, "others": none}


def spec(**more: Any) -> fabric_spec.FabricSpec:
    one = {"port_group": "rdma-vmk", "device": "vmk1", "network": "10.216.0.0/24", "mtu": None, "services": []}
    addresses = {name: f"10.216.0.{number}" for number, name in enumerate(HOSTS, start=1)}
    plain: dict[str, Any] = {
        "cluster": "gpu",
        "switch": "rdma",
        "mtu": 9000,
        "uplink": "",
        "port_groups": [{"name": "rdma-vmk", "vlan": 216}],
        "adapters": [{**one, "addresses": addresses, **more.pop("adapter", {})}],
        "adopt": False,
    }
    return fabric_spec.fabric_spec_of({**plain, **more})


def test_names_may_be_spelt_as_vcenter_stores_them() -> None:
    requested = spec(cluster="rack%2f1", switch="a%2Fb", port_groups=[SPELT], adapter={"port_group": "rdma%2fvmk"})
    assert (requested.cluster, requested.switch) == ("rack/1", "a/b")
    assert (requested.port_groups[0].name, requested.adapters[0].port_group) == ("rdma/vmk", "rdma/vmk")


class FakeFabric:
    """The subject over plain data: does to it what the plan says, or nothing if it is deaf."""

    name, target = "RDMA fabric", "gpu"

    def __init__(self, state: dict[str, Any], *, present: bool = True, deaf: bool = False) -> None:
        self.state, self.present, self.deaf, self.writes = state, present, deaf, 0

    def read(self) -> dict[str, Any]:
        return copy.deepcopy(self.state)

    def plan(self, current: dict[str, Any]) -> Plan:
        return (planner.plan_present if self.present else planner.plan_absent)(current, spec())

    def apply(self, plan: Plan) -> None:
        for change in plan.changes:
            self.writes += 1
            if not self.deaf:
                self._apply(change.key, change.after)

    def _apply(self, key: str, after: Any) -> None:
        if key == SWITCH:
            self.state["switch"] = after and {**after, "ours": True}
        elif key.startswith(GROUP):
            self.state["port_groups"].pop(key.removeprefix(GROUP), None)
            self.state["port_groups"] |= {key.removeprefix(GROUP): {**after, "ours": True}} if after else {}
        else:
            self._host(self.state["hosts"][key.removeprefix(HOST)], after)

    @staticmethod
    def _host(net: dict[str, Any], after: Any) -> None:
        net["switches"].pop("rdma", None)
        net["vmkernel"] = {name: one for name, one in net["vmkernel"].items() if one["switch"] != "rdma"}
        net["built"] = after and {"joined": True, "adapters": list(after["adapters"])}
        if after:
            net["switches"]["rdma"] = {"kind": "distributed", "mtu": 9000, "uplinks": after["uplinks"], "lag": False}
            for one in after["adapters"].values():
                net["vmkernel"][one["device"]] = adapter("rdma", one["port_group"], one["address"])


def converge(fabric: FakeFabric, *, check: bool = False) -> dict[str, Any]:
    work = runner.Work(subjects=[fabric], refresh=lambda _subjects: None)  # type: ignore[list-item]
    return runner.converge(FakeModule(check_mode=check), work)


def built() -> dict[str, Any]:
    fabric = FakeFabric(bare())
    converge(fabric)
    return fabric.state


@pytest.mark.parametrize("present", [True, False])
def test_writes_only_in_the_first_real_run(present: bool) -> None:
    fabric = FakeFabric(bare() if present else built(), present=present)
    counts = []
    for check in (True, False, True, False):
        before = fabric.writes
        result = converge(fabric, check=check)
        counts.append((result["changed"], fabric.writes - before))
    assert counts == [(True, 0), (True, 4), (False, 0), (False, 0)]


def test_detects_a_server_that_ignores_changes() -> None:
    result = converge(FakeFabric(bare(), deaf=True))
    assert result["failed"] and "accepted the change, yet switch is None" in result["msg"]


def refused(state: dict[str, Any], **more: Any) -> str:
    with pytest.raises(Refused) as caught:
        planner.plan_present(state, spec(**more))
    return str(caught.value)


def test_reports_all_reasons_of_all_hosts_together() -> None:
    state = bare()
    state["hosts"]["esx01.lab"]["rdma"] = {"vmrdma0": {"uplink": "vmnic2", "roce": False, "state": "active"}}
    state["hosts"]["esx02.lab"]["switches"]["dvs"] = {"kind": "distributed", "uplinks": ["vmnic2"]}
    result = refused(state)
    assert "esx01.lab has no RDMA card that supports RoCE" in result
    assert "vmnic2 of esx02.lab is an uplink of switch dvs" in result


def test_several_rdma_cards_must_be_chosen_from() -> None:
    state = bare()
    net = state["hosts"]["esx01.lab"]
    net["uplinks"]["vmnic3"] = {"link": True, "rdma": "vmrdma1"}
    net["rdma"]["vmrdma1"] = {"uplink": "vmnic3", "roce": True, "state": "active"}
    assert "esx01.lab has several RDMA cards: vmnic2, vmnic3" in refused(state)
    chosen = planner.plan_present(state, spec(uplink="vmnic2"))
    assert chosen.after[KEY]["uplinks"] == ["vmnic2"]


STANDARD = {"kind": "standard", "mtu": 1500, "uplinks": [], "lag": False}
TRUNK = {"port_groups": [{"name": "rdma-vmk", "vlan": None}]}


@pytest.mark.parametrize(
    ("there", "host_has", "more", "expected"),
    [
        ({"taken": {"rdma": "switch other"}}, {}, {}, "a network named rdma is already on switch other"),
        ({"port_groups": {"rdma-vmk": {"vlan": None, "ours": False}}}, {}, TRUNK, "set its vlan"),
        ({}, {"switches": {"rdma": STANDARD}}, {}, "rdma of esx01.lab is a standard switch"),
        ({}, {}, {"uplink": "vmnic9"}, "esx01.lab has no card vmnic9 (its RDMA cards: vmnic2)"),
        ({}, {}, {"uplink": "vmnic0"}, "vmnic0 of esx01.lab has no RDMA device"),
        ({}, {}, {"port_groups": []}, "there is no port group rdma-vmk for an adapter"),
        ({}, {}, {"adapter": {"addresses": {"esx01.lab": "10.216.0.1"}}}, "esx02.lab has no address on rdma-vmk"),
        ({}, {"vmkernel": {"vmk1": adapter("vSwitch0", "x", "10.0.0.2")}}, {}, "is on switch vSwitch0, not on rdma"),
        ({}, {}, {"adapter": {"device": "vmk5"}}, "cannot be vmk5: the host would name it vmk1"),
        (
            {},
            {"vmkernel": {name: adapter("rdma", "rdma-vmk", f"10.216.0.{name[3]}") for name in ("vmk1", "vmk2")}},
            {"adapter": {"device": ""}},
            "vmk1, vmk2 of esx01.lab are all on rdma-vmk; name the device",
        ),
    ],
)
def test_names_foreign_settings_that_block(
    there: dict[str, Any], host_has: dict[str, Any], more: dict[str, Any], expected: str
) -> None:
    state = {**bare(), **there}
    state["hosts"]["esx01.lab"].update(host_has)
    assert expected in refused(state, **more)


def test_reports_a_card_without_link_and_continues() -> None:
    state = bare()
    state["hosts"]["esx02.lab"]["uplinks"]["vmnic2"]["link"] = False
    (reported,) = planner.plan_present(state, spec()).warnings
    assert reported == "vmnic2 of esx02.lab has no link: check its cable and its switch port"


def test_two_switches_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    twins = [vim.dvs.VmwareDistributedVirtualSwitch(f"dvs-{number}") for number in (1, 2)]

    def read_many(_session: Any, refs: list[Any], _paths: Any) -> dict[str, Any]:
        return {ref._moId: {"name": "rdma", "config": None} for ref in refs}

    monkeypatch.setattr(switch.properties, "read_many", read_many)
    with pytest.raises(Refused, match="rdma: could not take it as the RDMA switch: 2 switches have that name"):
        switch.find(None, twins, "rdma")  # type: ignore[arg-type]
    assert switch.find(None, twins[:1], "rdma") is not None  # type: ignore[arg-type]


def test_refuses_adapters_with_equal_port_groups_or_names() -> None:
    one = {"port_group": "rdma-vmk", "device": "vmk1", "network": None, "addresses": None, "mtu": None, "services": []}
    with pytest.raises(Refused, match="two adapters are requested on port group rdma-vmk"):
        spec(adapters=[one, {**one, "device": "vmk2"}])
    with pytest.raises(Refused, match="vmk1 is requested on two port groups"):
        spec(adapters=[one, {**one, "port_group": "other"}])


def test_lets_hosts_swap_addresses_but_not_share_one() -> None:
    state = built()
    swapped = {"esx01.lab": "10.216.0.2", "esx02.lab": "10.216.0.1"}
    plan = planner.plan_present(state, spec(adapter={"addresses": swapped}))
    assert {change.key for change in plan.changes} == {f"{HOST}{name}" for name in HOSTS}
    state["hosts"]["esx02.lab"]["vmkernel"]["vmk7"] = adapter("vSwitch0", "x", "10.216.0.1")
    assert "10.216.0.1 for esx01.lab is taken by vmk7 of esx02.lab" in refused(state)


def test_removes_a_second_uplink_unless_workers_use_it() -> None:
    state = built()
    state["hosts"]["esx01.lab"]["switches"]["rdma"]["uplinks"] = ["vmnic0", "vmnic2"]
    plan = planner.plan_present(state, spec())
    assert plan.changes[0].after["uplinks"] == ["vmnic2"] and not plan.unmet
    machine = {"name": "w1", "host": "esx01.lab", "on": True, "rdma": True, "port_groups": ["rdma-vm"]}
    state["machines"] = [machine]
    assert "w1 runs and uses the uplink of esx01.lab" in planner.plan_present(state, spec()).unmet[0]


def test_keeps_a_second_uplink_that_another_adapter_needs() -> None:
    state = built()
    net = state["hosts"]["esx01.lab"]
    net["switches"]["rdma"]["uplinks"] = ["vmnic0", "vmnic2"]
    net["vmkernel"]["vmk2"] = adapter("rdma", "storage", "10.1.0.1", services=["vsan"])
    (reason,) = planner.plan_present(state, spec()).unmet
    assert reason.startswith("vmk2 of esx01.lab would lose the uplink vmnic0: PVRDMA needs a switch with one uplink")


@pytest.mark.parametrize(
    ("device", "services", "words"),
    [
        ("vmk1", ["vsan"], "vmk1 of esx01.lab carries vsan"),
        ("vmk2", [], "vmk1, vmk2 of esx01.lab are all on rdma-vmk, and this collection built only one of them"),
    ],
)
def test_absent_keeps_foreign_adapters_and_those_for_storage(device: str, services: list[str], words: str) -> None:
    state = built()
    state["hosts"]["esx01.lab"]["vmkernel"][device] = adapter("rdma", "rdma-vmk", "10.216.0.1", services=services)
    with pytest.raises(Refused, match=words):
        planner.plan_absent(state, spec())


def test_services_are_managed_only_when_given() -> None:
    state = built()
    state["hosts"]["esx01.lab"]["vmkernel"]["vmk1"]["services"] = ["vmotion"]
    assert [change.key for change in planner.plan_present(state, spec()).changes] == [KEY]
    assert not planner.plan_present(state, spec(adapter={"services": None})).changes


def test_absent_leaves_what_others_built() -> None:
    state = built()
    state["switch"]["ours"] = False
    state["port_groups"]["theirs"] = {"vlan": 1, "ours": False}
    plan = planner.plan_absent(state, spec())
    assert {change.key for change in plan.changes} == {"port_groups.rdma-vmk", *(f"{HOST}{name}" for name in HOSTS)}
    assert "switch rdma was not built by this collection and stays" in plan.warnings


def shared(*groups: str) -> dict[str, Any]:
    """The built switch with a host of another cluster on it, which uses these port groups."""
    state = built()
    state["members"].append("esx21.lab")
    state["others"] = {"hosts": ["esx21.lab"], "port_groups": list(groups)}
    return state


def test_absent_keeps_a_shared_switch_and_used_port_groups() -> None:
    plan = planner.plan_absent(shared("rdma-vmk"), spec())
    assert {change.key for change in plan.changes} == {f"{HOST}{name}" for name in HOSTS}
    assert "switch rdma stays with its port groups: esx21.lab of other clusters are on it" in plan.warnings
    assert "port_groups.rdma-vmk" in {change.key for change in planner.plan_absent(shared(), spec()).changes}


def test_removal_names_the_hosts_that_prevent_it() -> None:
    state = built()
    state["members"] = list(HOSTS)
    state["hosts"]["esx02.lab"]["built"] = None

    (adapter_in_use, host_in_use) = planner.removal(state, spec())["in_use"]

    assert adapter_in_use == "vmk1 of esx02.lab is on rdma-vmk and was not built by this collection"
    assert host_in_use == "host esx02.lab is on the switch and was not put there by this collection"
    assert planner.removal(shared("rdma-vmk"), spec()) == {
        "switch": False,
        "port_groups": [],
        "in_use": [],
        "shared_with": ["esx21.lab"],
    }


def test_absent_refuses_hosts_noted_by_another_account() -> None:
    fabric, state = Fabric(None, spec(), present=False), built()  # type: ignore[arg-type] # it reads no server
    time = datetime(2026, 11, 28, tzinfo=UTC)
    for name, user in zip(HOSTS, ("vsphere.local\\Robot", "CORP\\bob"), strict=True):
        fabric.hosts[name] = noted = FakeHost(name)
        fabric_marks.write(noted, "rdma", {"joined": True, "adapters": []})
        noted.refresh()
        change = vim.event.CustomFieldValueChangedEvent(name=fabric_marks.ATTRIBUTE, userName=user, createdTime=time)
        noted.session.content.eventManager.events.append(change)
    state["notes_of_others"] = fabric.notes_of_others()

    (refusal,) = planner.removal(state, spec())["in_use"]
    assert refusal.startswith("the note of esx02.lab was written by CORP\\bob: run as that account")
    with pytest.raises(Refused, match=r"the note of esx02\.lab was written by"):
        planner.plan_absent(state, spec())


class RacedFabric(Fabric):
    """A fabric whose first changes meet those of another cluster."""

    def __init__(self, *causes: Exception, unmet: str = "") -> None:
        super().__init__(None, spec())  # type: ignore[arg-type] # it reads nothing
        self.causes, self.unmet, self.applied = list(causes), unmet, list[str]()

    def read(self) -> dict[str, Any]:
        return {}

    def plan(self, _current: Any) -> Plan:
        return Plan({}, {"switch": f"plan {len(self.applied)}"}, unmet=(self.unmet,) if self.unmet else ())

    def _apply(self, plan: Plan) -> None:
        self.applied.append(plan.after["switch"])
        if self.causes:
            raise Failed("dc1", "make the distributed switch rdma", "the server said no") from self.causes.pop(0)


def test_apply_plans_again_if_another_cluster_won() -> None:
    fabric = RacedFabric(vim.fault.DuplicateName(), vim.fault.ConcurrentAccess(), vim.fault.AlreadyExists())

    fabric.apply(Plan({}, {"switch": "plan"}))

    assert fabric.applied == ["plan", "plan 1", "plan 2", "plan 3"]


@pytest.mark.parametrize(
    ("fabric", "attempts"),
    [
        (RacedFabric(vim.fault.InvalidName()), 1),
        (RacedFabric(vim.fault.DuplicateName(), unmet="the switch was not built by this collection"), 1),
        (RacedFabric(*[vim.fault.DuplicateName()] * ATTEMPTS), ATTEMPTS),
    ],
)
def test_apply_raises_errors_that_another_plan_cannot_fix(fabric: RacedFabric, attempts: int) -> None:
    with pytest.raises(Failed, match="the server said no"):
        fabric.apply(Plan({}, {"switch": "plan"}))

    assert len(fabric.applied) == attempts


def test_absent_names_the_tag_that_stays() -> None:
    state = built()
    state["hosts"]["esx02.lab"]["tagged"] = "vmk1"
    assert "vmk1 of esx02.lab is tagged for PVRDMA" in planner.plan_absent(state, spec()).warnings[0]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"mtu": 1000}, "an MTU of 1000 is out of range"),
        ({"adapter": {"mtu": 9100}}, "cannot have MTU 9100: the switch has 9000"),
        ({"port_groups": [{"name": "a", "vlan": 4095}]}, "port group a cannot have VLAN 4095"),
        ({"port_groups": [{"name": "a", "vlan": 1}, {"name": "a", "vlan": 2}]}, "port group a is named twice"),
        ({"adapter": {"network": None}}, "has addresses but no network"),
        ({"adapter": {"network": "10.216.0.1/24"}}, "has no usable network"),
        ({"adapter": {"addresses": {"esx01.lab": "10.217.0.1"}}}, "10.217.0.1 of esx01.lab is not a host address in"),
        ({"adapter": {"addresses": {"esx01.lab": "10.216.0.255"}}}, "10.216.0.255 of esx01.lab is not a host address"),
        ({"adapter": {"addresses": {"esx01.lab": "x"}}}, "the address of esx01.lab is invalid"),
        (
            {"adapter": {"addresses": {"esx01.lab": "10.216.0.1", "esx02.lab": "10.216.0.1"}}},
            "10.216.0.1 is given to esx01.lab and esx02.lab",
        ),
    ],
)
def test_options_that_contradict_each_other_are_refused(more: dict[str, Any], expected: str) -> None:
    with pytest.raises(Refused, match=r"could not plan its RDMA switch rdma") as caught:
        spec(**more)
    assert expected in str(caught.value)
