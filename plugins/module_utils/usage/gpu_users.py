"""The users of each GPU of a host: virtual GPUs by their share of its memory, whole GPUs, and waiting machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ..workers.placement.gpu_slots import PhysicalGpu, Slots, parse

VGPU, PASSTHROUGH = "vgpu", "passthrough"
WHOLE = "whole GPU"


@dataclass(frozen=True)
class GpuVm:
    """A virtual machine with GPUs: profiles of virtual ones, addresses of whole ones, and how many have no address."""

    key: str
    name: str
    running: bool
    profiles: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    any_whole: int = 0
    running_hours: float | None = None
    whose: Mapping[str, str] = field(default_factory=dict)

    @property
    def wants(self) -> list[str]:
        return [*self.profiles, *(f"{WHOLE} {address}" for address in self.addresses), *[WHOLE] * self.any_whole]


@dataclass(frozen=True)
class GpuCard:
    """One physical GPU; ``listed`` are the keys of the machines that the server names on it."""

    address: str
    name: str
    gigabytes: float
    mode: str
    vgpu_mode: str = ""
    listed: tuple[str, ...] = ()


@dataclass(frozen=True)
class GpuUser:
    """A machine's share of one card, as the server reports it (``is_reported``) or otherwise inferred."""

    machine: GpuVm
    what: str
    share: float
    is_reported: bool


class HostGpus:
    """The cards of one host, with their users."""

    def __init__(self, cards: Iterable[GpuCard], offered: Iterable[str], machines: Iterable[GpuVm]) -> None:
        self.cards, self.offered = tuple(cards), tuple(sorted(offered))
        self.machines = sorted(machines, key=lambda one: (one.name, one.key))
        self.on: dict[str, list[tuple[GpuVm, str, bool]]] = {card.address: [] for card in self.cards}
        self.lost: list[tuple[GpuVm, str]] = []
        running = [one for one in self.machines if one.running]
        left = {one.key: list(one.profiles) for one in running}
        self._place_reported({one.key: one for one in running}, left)
        self._place_rest(running, left)
        self._place_whole(running)

    def users(self, card: GpuCard) -> list[GpuUser]:
        """Return the users of a card; their shares add up to one at most."""
        there = self.on[card.address]
        known = [self._share(card, what) for _one, what, _reported in there]
        rest = max(1.0 - sum(share for share in known if share is not None), 0.0)
        unknown = sum(share is None for share in known)
        shares = [rest / unknown if share is None else share for share in known]
        most = max(sum(shares), 1.0)
        return [GpuUser(one, what, share / most, reported) for (one, what, reported), share in zip(there, shares)]

    def slots(self, card: GpuCard) -> list[dict[str, object]]:
        """Return a card's used and free places by profile; an empty card shows the largest profile that fits."""
        if card.mode == PASSTHROUGH:
            used = len(self.on[card.address])
            return [{"profile": WHOLE, "used": used, "free": max(1 - used, 0)}]
        if card.mode != VGPU:
            return []
        gpu, used_profiles = self._gpu(card), [what for _one, what, _reported in self.on[card.address]]
        alone = Slots((gpu,), self.offered)
        shown = list(dict.fromkeys(used_profiles)) or self._largest(card)
        return [{"profile": one, "used": used_profiles.count(one), "free": alone.free(one)} for one in shown]

    def waiting(self) -> list[dict[str, Any]]:
        """Return the machines that are off and would use a GPU here, and whether each of them fits by itself."""
        off = [one for one in self.machines if not one.running and one.wants]
        return [{"vm": one.name, **one.whose, "wants": one.wants, "fits": self._fits(one)} for one in off]

    def _place_reported(self, running: Mapping[str, GpuVm], left: dict[str, list[str]]) -> None:
        """Place virtual GPUs on the cards for which the server lists their machines."""
        for card in self.cards:
            for key in card.listed:
                mine = [one for one in left.get(key, []) if self._takes(card, one)]
                if mine:
                    left[key].remove(mine[0])
                    self.on[card.address].append((running[key], mine[0], True))

    def _place_rest(self, running: Sequence[GpuVm], left: Mapping[str, Sequence[str]]) -> None:
        """Place the other virtual GPUs where they fit, on the listed card if the server lists a machine on only one."""
        for one in running:
            named = [card for card in self.cards if one.key in card.listed]
            for profile in left[one.key]:
                card = self._room(profile, named) or self._room(profile, self.cards)
                if card is None:
                    self.lost.append((one, profile))
                else:
                    self.on[card.address].append((one, profile, [card] == named))

    def _place_whole(self, running: Sequence[GpuVm]) -> None:
        for one in running:
            for address in one.addresses:
                if address in self.on:
                    self.on[address].append((one, WHOLE, True))

    def _room(self, profile: str, cards: Sequence[GpuCard]) -> GpuCard | None:
        """Return the first card with room for one more of a profile; cards that have the profile come first."""
        some = [card for card in cards if self._takes(card, profile)]
        fitting = [card for card in some if Slots((self._gpu(card),), self.offered).free(profile)]
        has = [card for card in fitting if any(what == profile for _one, what, _reported in self.on[card.address])]
        return next(iter([*has, *fitting]), None)

    def _takes(self, card: GpuCard, profile: str) -> bool:
        """Return whether a profile fits this card; a profile without known cards fits every card."""
        if card.mode != VGPU:
            return False
        candidates = self._slots().candidates(profile)
        return not candidates or any(gpu.address == card.address for gpu in candidates)

    def _largest(self, card: GpuCard) -> list[str]:
        """Return the largest profile for a card, one for computing before one for displays."""
        fitting = [one for one in map(parse, self.offered) if one and self._takes(card, one.name)]
        ordered = sorted(fitting, key=lambda one: (one.gigabytes, one.name.lower().endswith("c"), one.name))
        return [one.name for one in ordered[-1:]]

    def _share(self, card: GpuCard, what: str) -> float | None:
        return 1.0 if what == WHOLE else Slots((), self.offered).share(self._gpu(card), what)

    def _fits(self, one: GpuVm) -> bool:
        free = [card.address for card in self.cards if card.mode == PASSTHROUGH and not self.on[card.address]]
        desired = set(one.addresses)
        whole = desired <= set(free) and len(free) - len(desired) >= one.any_whole
        return whole and self._slots().take_all(one.profiles) is not None

    def _slots(self) -> Slots:
        return Slots(tuple(self._gpu(card) for card in self.cards if card.mode == VGPU), self.offered)

    def _gpu(self, card: GpuCard) -> PhysicalGpu:
        used = tuple(what for _one, what, _reported in self.on[card.address] if what != WHOLE)
        return PhysicalGpu(card.address, card.name, card.gigabytes, used, mixed_sizes=card.vgpu_mode == "mixed_size")


def facts(host: HostGpus, card: GpuCard) -> dict[str, Any]:
    card_facts = {key: value for key, value in asdict(replace(card, listed=())).items() if key != "listed"}
    return {**card_facts, "slots": host.slots(card), "users": [_user(one) for one in host.users(card)]}


def _user(one: GpuUser) -> dict[str, object]:
    machine = one.machine
    hours = None if machine.running_hours is None else round(machine.running_hours, 3)
    return {
        "vm": machine.name,
        **machine.whose,
        "what": one.what,
        "share": one.share,
        "running_hours": hours,
        "card_told": one.is_reported,
    }
