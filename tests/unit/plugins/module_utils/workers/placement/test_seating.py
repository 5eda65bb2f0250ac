"""Rooms for guests: against brute force, at scale, and at the limit of the search."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugins.module_utils.workers.placement import seating
from plugins.module_utils.workers.placement.seating import GuestToSeat, seat

ROOMS = [f"r{number}" for number in range(4)]


def take(left: int, size: int) -> int | None:
    return left - size if left >= size else None


def brute_force(rooms: dict[str, int], guests: Sequence[GuestToSeat[int]]) -> bool:
    """Return whether any choice of rooms fits."""
    return any(
        all(sum(g.kind for g, at in zip(guests, choice) if at == room) <= size for room, size in rooms.items())
        for choice in itertools.product(*(sorted(guest.rooms & set(rooms)) for guest in guests))
    )


guests_of_two_kinds = st.lists(st.tuples(st.integers(1, 3), st.frozensets(st.sampled_from(ROOMS))), max_size=6).map(
    lambda rows: [GuestToSeat(f"g{number}", size, rooms) for number, (size, rooms) in enumerate(rows)]
)


@settings(max_examples=300)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), guests_of_two_kinds)
def test_seats_all_guests_exactly_when_brute_force_does(sizes: list[int], guests: list[GuestToSeat[int]]) -> None:
    rooms = dict(zip(ROOMS, sizes))
    found = seat(rooms, guests, take)
    assert (found is not None) == brute_force(rooms, guests)
    if found is not None:
        assert set(found) == {guest.key for guest in guests}
        assert all(found[guest.key] in guest.rooms for guest in guests)
        for room, size in rooms.items():
            assert sum(guest.kind for guest in guests if found[guest.key] == room) <= size


@pytest.mark.parametrize("rooms", [400, 399])
def test_hundreds_are_seated_or_refused_within_seconds(rooms: int) -> None:
    names = [f"r{number}" for number in range(rooms)]
    guests = [GuestToSeat(f"g{number}", 1 + number % 2, frozenset(names)) for number in range(400)]
    began = time.process_time()
    found = seat({name: 2 - number % 2 for number, name in enumerate(names)}, guests, take)
    assert time.process_time() - began < 5
    assert (found is not None) == (rooms == 400)


def test_gives_up_a_search_that_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seating, "PATIENCE", -1)
    guests = [GuestToSeat(f"g{number}", 1, frozenset({"r0"})) for number in range(2)]
    assert seat({"r0": 2}, guests, take) is None
