"""Which machine has which part of which GPU: as the server reports it, else calculated."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.usage.gpu_users import PASSTHROUGH, VGPU, WHOLE, GpuCard, GpuVm, HostGpus, facts

T4 = ("grid_t4-16c", "grid_t4-16q", "grid_t4-4c", "grid_t4-8c")
A100 = ("grid_a100-1-5c", "grid_a100-2-10c", "grid_a100-3-20c", "grid_a100-4-20c", "grid_a100-7-40c")


def t4(address: str = "0000:3b:00.0", *listed: str, mode: str = VGPU, vgpu_mode: str = "same_size") -> GpuCard:
    return GpuCard(address, "NVIDIA Tesla T4", 15.0, mode, vgpu_mode, listed)


def vm(name: str, *profiles: str, running: bool = True, **more: Any) -> GpuVm:
    return GpuVm(name, name, running, profiles, whose={"tenant": name[0]}, **more)


def users_of(host: HostGpus) -> dict[str, list[tuple[str, str, float, bool]]]:
    return {
        card.address: [(one.machine.name, one.what, round(one.share, 3), one.is_reported) for one in host.users(card)]
        for card in host.cards
    }


def test_machines_share_a_card_by_profile_memory() -> None:
    host = HostGpus([t4("a", "v1", "v2")], T4, [vm("v1", "grid_t4-8c"), vm("v2", "grid_t4-4c")])
    assert users_of(host) == {"a": [("v1", "grid_t4-8c", 0.5, True), ("v2", "grid_t4-4c", 0.25, True)]}


def test_places_virtual_gpus_where_the_server_reports_them() -> None:
    twins = vm("v", "grid_t4-16c", "grid_t4-16c")
    assert users_of(HostGpus([t4("a", "v"), t4("b", "v")], T4, [twins])) == {
        "a": [("v", "grid_t4-16c", 1.0, True)],
        "b": [("v", "grid_t4-16c", 1.0, True)],
    }
    # Named once on one card, with two virtual GPUs that fit there.
    both = vm("v", "grid_t4-8c", "grid_t4-8c")
    assert users_of(HostGpus([t4("a"), t4("b", "v")], T4, [both]))["b"] == [("v", "grid_t4-8c", 0.5, True)] * 2


def test_derives_missing_values_and_marks_them() -> None:
    host = HostGpus(
        [t4("a", "v1"), t4("b")], T4, [vm("v1", "grid_t4-8c"), vm("v2", "grid_t4-8c"), vm("v3", "grid_t4-16c")]
    )
    assert users_of(host) == {
        "a": [("v1", "grid_t4-8c", 0.5, True), ("v2", "grid_t4-8c", 0.5, False)],
        "b": [("v3", "grid_t4-16c", 1.0, False)],
    }


def test_a_virtual_gpu_without_room_is_lost() -> None:
    host = HostGpus([t4("a", "v1")], T4, [vm("v1", "grid_t4-16c"), vm("v2", "grid_t4-16c")])
    assert [(one.name, profile) for one, profile in host.lost] == [("v2", "grid_t4-16c")]
    assert [one.machine.name for one in host.users(host.cards[0])] == ["v1"]


def test_a_passthrough_gpu_takes_no_virtual_gpus() -> None:
    card = t4("a", mode=PASSTHROUGH)
    host = HostGpus(
        [card], T4, [vm("v1", addresses=("a",)), vm("v2", "grid_t4-4c"), vm("v3", addresses=("elsewhere",))]
    )
    assert users_of(host) == {"a": [("v1", WHOLE, 1.0, True)]}
    assert host.slots(card) == [{"profile": WHOLE, "used": 1, "free": 0}]
    assert [one.name for one, _profile in host.lost] == ["v2"]


@pytest.mark.parametrize(
    ("card", "offered", "machines", "slots"),
    [
        (t4("a"), T4, [], [("grid_t4-16c", 0, 1)]),
        (t4("a", "v"), T4, [vm("v", "grid_t4-8c")], [("grid_t4-8c", 1, 1)]),
        (t4("a", mode="shared"), T4, [], []),
        (t4("a", mode=PASSTHROUGH), (), [], [(WHOLE, 0, 1)]),
        (t4("a"), (), [], []),
        (
            t4("a", "v", "w", vgpu_mode="mixed_size"),
            T4,
            [vm("v", "grid_t4-8c"), vm("w", "grid_t4-4c")],
            [("grid_t4-8c", 1, 0), ("grid_t4-4c", 1, 1)],
        ),
        (
            GpuCard("a", "NVIDIA A100", 40, VGPU, "mig", ("v", "w")),
            A100,
            [vm("v", "grid_a100-3-20c"), vm("w", "grid_a100-2-10c")],
            [("grid_a100-3-20c", 1, 0), ("grid_a100-2-10c", 1, 1)],
        ),
        (t4("a", "v"), T4, [vm("v", "strange")], [("strange", 1, 0)]),
    ],
)
def test_counts_used_and_free_places(
    card: GpuCard, offered: tuple[str, ...], machines: list[GpuVm], slots: list[tuple[str, int, int]]
) -> None:
    found = HostGpus([card], offered, machines).slots(card)
    assert [(one["profile"], one["used"], one["free"]) for one in found] == slots


@pytest.mark.parametrize(
    ("machine", "fits"),
    [
        (vm("off", "grid_t4-8c", running=False), True),
        (vm("off", "grid_t4-8c", "grid_t4-8c", running=False), False),
        (vm("off", "grid_t4-16c", running=False), False),
        (vm("off", running=False, addresses=("p",)), True),
        (vm("off", running=False, any_whole=1), True),
        (vm("off", running=False, any_whole=2), False),
        (vm("off", running=False, addresses=("p",), any_whole=1), False),
    ],
)
def test_machines_that_are_off_wait_and_take_nothing(machine: GpuVm, fits: bool) -> None:
    host = HostGpus([t4("a", "v"), t4("p", mode=PASSTHROUGH)], T4, [vm("v", "grid_t4-8c"), machine])
    assert [(one["vm"], one["tenant"], one["fits"]) for one in host.waiting()] == [("off", "o", fits)]
    assert [one.machine.name for card in host.cards for one in host.users(card)] == ["v"]


def test_unknown_profiles_share_the_rest_of_a_card() -> None:
    strange = HostGpus([t4("a", "u", "v", "w")], T4, [vm("u", "grid_t4-8c"), vm("v", "odd"), vm("w", "even")])
    assert [one.share for one in strange.users(strange.cards[0])] == [0.5, 0.25, 0.25]
    crowd = [vm(f"v{place}", "grid_t4-16c") for place in range(4)]
    full = HostGpus([t4("a", *(one.name for one in crowd))], T4, crowd)
    assert [one.share for one in full.users(full.cards[0])] == [0.25] * 4


def test_plain_data_names_each_cards_machine_and_tenant() -> None:
    host = HostGpus([t4("a", "v")], T4, [vm("v", "grid_t4-8c", running_hours=2.00049)])
    (user,) = facts(host, host.cards[0])["users"]
    assert user == {
        "vm": "v",
        "tenant": "v",
        "what": "grid_t4-8c",
        "share": 0.5,
        "running_hours": 2.0,
        "card_told": True,
    }
    assert "listed" not in facts(host, host.cards[0])


PROFILES = st.sampled_from([*T4, *A100, "odd"])
MACHINES = st.lists(st.tuples(st.lists(PROFILES, max_size=3), st.booleans()), max_size=8)


@given(machines=MACHINES, listed=st.lists(st.lists(st.integers(0, 7), max_size=6), min_size=1, max_size=3))
def test_shares_never_exceed_a_card_or_count_twice(
    machines: list[tuple[list[str], bool]], listed: list[list[int]]
) -> None:
    people = [GpuVm(str(key), str(key), running, tuple(some)) for key, (some, running) in enumerate(machines)]
    cards = [
        GpuCard(
            str(place), "NVIDIA Tesla T4" if place else "NVIDIA A100", 40, VGPU, "mixed_size", tuple(map(str, keys))
        )
        for place, keys in enumerate(listed)
    ]
    host = HostGpus(cards, (*T4, *A100), people)
    users = [one for card in cards for one in host.users(card)]
    for card in cards:
        assert sum(one.share for one in host.users(card)) <= 1 + 1e-9
        assert all(one.share >= 0 for one in host.users(card))
    placed = sorted((one.machine.key, one.what) for one in users)
    lost = sorted((one.key, profile) for one, profile in host.lost)
    expected = sorted((one.key, profile) for one in people if one.running for profile in one.profiles)
    assert sorted(placed + lost) == expected
