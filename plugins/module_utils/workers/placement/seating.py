"""Places guests in rooms, such as virtual machines on hosts, starting with the guest that has the fewest rooms."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

State = TypeVar("State", bound=Hashable)
Kind = TypeVar("Kind", bound=Hashable)
# The maximum number of tries of the search.
PATIENCE = 5_000


@dataclass(frozen=True)
class GuestToSeat(Generic[Kind]):
    """A guest to be placed in one of its rooms; guests of one kind need the same resources."""

    key: str
    kind: Kind
    rooms: frozenset[str]


def seat(
    rooms: Mapping[str, State], guests: Sequence[GuestToSeat[Kind]], take: Callable[[State, Kind], State | None]
) -> dict[str, str] | None:
    """Return the room of each guest; None if they do not all fit or the search reached its limit.

    ``take`` returns the state of a room with one more guest in it; None if the guest does not fit.
    """
    return _Search(rooms, guests, take).run()


class _Search(Generic[State, Kind]):
    """A depth-first search, iterative because of Python's recursion limit; no state is tried twice."""

    def __init__(
        self,
        rooms: Mapping[str, State],
        guests: Sequence[GuestToSeat[Kind]],
        take: Callable[[State, Kind], State | None],
    ) -> None:
        self._now, self._take = dict(rooms), take
        self._waiting: dict[tuple[Kind, frozenset[str]], list[str]] = {}
        for guest in guests:
            self._waiting.setdefault((guest.kind, guest.rooms), []).append(guest.key)
        # Rooms are interchangeable only if the same guests are allowed in them.
        sets = {allowed for _kind, allowed in self._waiting}
        self._open_to = {room: frozenset(one for one in sets if room in one) for room in rooms}
        self._after: dict[tuple[State, Kind], State | None] = {}
        self._failed: set[Hashable] = set()
        self._made: list[tuple[tuple[Kind, frozenset[str]], str, str, State]] = []

    def run(self) -> dict[str, str] | None:
        """Return the room of each guest by key."""
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
        """Yield the rooms of the guest with the fewest, one of each set of interchangeable rooms."""
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
