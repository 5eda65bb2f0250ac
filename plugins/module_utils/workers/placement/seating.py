# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Rooms for guests of any kind: a search that places those first that have the fewest rooms left."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Kind = TypeVar("Kind", bound=Hashable)
# After that many tries the search is given up.
PATIENCE = 5_000


@dataclass(frozen=True)
class Guest(Generic[Kind]):
    """A guest to be placed in one of its rooms; guests of one kind take the same of a room."""

    key: str
    kind: Kind
    rooms: frozenset[str]


def seat(
    rooms: Mapping[str, State], guests: Sequence[Guest[Kind]], take: Callable[[State, Kind], State | None]
) -> dict[str, str] | None:
    """The room of each guest; None where they do not all fit or the search was given up.

    ``take`` gives the state of a room with one more guest in it, None where the guest does not fit.
    """
    return _Search(rooms, guests, take).run()


class _Search(Generic[State, Kind]):
    """Depth first, without recursion: many guests are deeper than Python's stack. No state is tried twice."""

    def __init__(
        self,
        rooms: Mapping[str, State],
        guests: Sequence[Guest[Kind]],
        take: Callable[[State, Kind], State | None],
    ) -> None:
        self._now, self._take = dict(rooms), take
        self._waiting: dict[tuple[Kind, frozenset[str]], list[str]] = {}
        for guest in guests:
            self._waiting.setdefault((guest.kind, guest.rooms), []).append(guest.key)
        # Rooms are as good as each other only where the same guests may be.
        sets = {allowed for _kind, allowed in self._waiting}
        self._open_to = {room: frozenset(one for one in sets if room in one) for room in rooms}
        self._after: dict[tuple[State, Kind], State | None] = {}
        self._failed: set[Hashable] = set()
        self._made: list[tuple[tuple[Kind, frozenset[str]], str, str, State]] = []

    def run(self) -> dict[str, str] | None:
        """The room of each guest by key."""
        tries = [self._choices()]
        for _step in range(PATIENCE + sum(map(len, self._waiting.values()))):
            if not any(self._waiting.values()):
                break
            choice = next(tries[-1], None)
            if choice is not None:
                self._put(*choice)
                tries.append(self._choices())
            elif self._made:
                tries.pop()
                self._undo()
            else:
                return None
        return None if any(self._waiting.values()) else {key: room for _group, key, room, _before in self._made}

    def _choices(self) -> Iterator[tuple[tuple[Kind, frozenset[str]], str]]:
        """The rooms of the guest that has the fewest, one of those that are as good as each other."""
        state = self._state()
        if state in self._failed:
            return
        fitting = [(group, self._fitting(*group)) for group, keys in self._waiting.items() if keys]
        group, rooms = min(fitting, key=lambda one: len(one[1]))
        tried = set()
        for room in rooms:
            if (self._now[room], self._open_to[room]) not in tried:
                tried.add((self._now[room], self._open_to[room]))
                yield group, room
        self._failed.add(state)

    def _state(self) -> Hashable:
        counts: dict[Hashable, int] = {}
        for room, state in self._now.items():
            counts[state, self._open_to[room]] = counts.get((state, self._open_to[room]), 0) + 1
        return tuple(map(len, self._waiting.values())), frozenset(counts.items())

    def _fitting(self, kind: Kind, allowed: frozenset[str]) -> list[str]:
        return [room for room in self._now if room in allowed and self._with(self._now[room], kind) is not None]

    def _with(self, state: State, kind: Kind) -> State | None:
        if (state, kind) not in self._after:
            self._after[state, kind] = self._take(state, kind)
        return self._after[state, kind]

    def _put(self, group: tuple[Kind, frozenset[str]], room: str) -> None:
        before = self._now[room]
        after = self._with(before, group[0])
        if after is not None:
            self._made.append((group, self._waiting[group].pop(), room, before))
            self._now[room] = after

    def _undo(self) -> None:
        group, key, room, before = self._made.pop()
        self._waiting[group].append(key)
        self._now[room] = before
