# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The free slots for virtual GPUs of a profile on the GPUs of a host."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .gpu_models import fits_profile

# The name of a profile says all: grid_t4-16c, nvidia_a16-4c, nvidia_rtx6000-ada-48q, and with slices of a divided GPU
# grid_a100-2-10c.
_PROFILE = re.compile(
    r"^(?:grid|nvidia)_(?P<model>\w+(?:-[a-z]\w*)*)-(?:(?P<slices>\d+)-)?(?P<gigabytes>\d+)[a-z]+$", re.IGNORECASE
)
MIG_SLICES = 7


@dataclass(frozen=True)
class Profile:
    """The model, memory and MIG slices in the name of a vGPU profile."""

    name: str
    model: str
    gigabytes: int
    slices: int = 0


@dataclass(frozen=True)
class Gpu:
    """One physical GPU: its memory, and the profiles of the virtual GPUs on it."""

    address: str
    name: str
    gigabytes: float
    used: tuple[str, ...] = ()
    mixed_sizes: bool = False


@dataclass(frozen=True)
class Slots:
    """The GPUs of one host, and the profiles that it offers."""

    gpus: tuple[Gpu, ...] = ()
    offered: tuple[str, ...] = ()

    def free(self, profile: str) -> int:
        """The number of further virtual GPUs of the profile that fit."""
        return sum(self._free_on(gpu, profile) for gpu in self.candidates(profile))

    def total(self, profile: str) -> int:
        """The number of virtual GPUs of the profile that fit on an empty host."""
        return sum(self._capacity(gpu, profile) for gpu in self.candidates(profile))

    def take(self, profile: str) -> Slots | None:
        """The host with one more of the profile on it; a GPU with the same profile is filled first."""
        fitting = [gpu for gpu in self.candidates(profile) if self._free_on(gpu, profile)]
        if not fitting:
            return None
        chosen = min(fitting, key=lambda gpu: (profile not in gpu.used, gpu.address))
        taken = replace(chosen, used=(*chosen.used, profile))
        return replace(self, gpus=tuple(taken if gpu is chosen else gpu for gpu in self.gpus))

    def take_all(self, profiles: Iterable[str]) -> Slots | None:
        """The host with one more of each profile on it; None when they do not all fit."""
        after: Slots | None = self
        for profile in profiles:
            after = after.take(profile) if after else None
        return after

    def share(self, gpu: Gpu, profile: str) -> float | None:
        """The share of a GPU's memory for one virtual GPU of a profile; None where the name tells no size."""
        wanted = parse(profile)
        return min(wanted.gigabytes / self._gigabytes(gpu, wanted), 1.0) if wanted else None

    def candidates(self, profile: str) -> Sequence[Gpu]:
        """The GPUs of the profile's model; a host whose GPUs tell no model that we know has one kind only."""
        wanted = parse(profile)
        if wanted is None or profile not in self.offered:
            return ()
        return [gpu for gpu in self.gpus if fits_profile(gpu.name, wanted.model)] or self.gpus

    def _capacity(self, gpu: Gpu, profile: str) -> int:
        wanted = parse(profile)
        if wanted is None:
            return 0
        count = self._gigabytes(gpu, wanted) // wanted.gigabytes
        return min(count, MIG_SLICES // wanted.slices) if wanted.slices else count

    def _gigabytes(self, gpu: Gpu, wanted: Profile) -> int:
        """The nominal memory: a GPU reports less than that, so the largest profile offered for it counts."""
        largest = [one.gigabytes for one in map(parse, self.offered) if one and one.model == wanted.model]
        return max(math.ceil(gpu.gigabytes), *largest, 0)

    def _free_on(self, gpu: Gpu, profile: str) -> int:
        there = [one for one in map(parse, gpu.used) if one]
        wanted = parse(profile)
        if wanted is None or (len(there) < len(gpu.used)):
            return 0
        capacity = self._capacity(gpu, profile)
        if all(one.gigabytes == wanted.gigabytes and one.slices == wanted.slices for one in there):
            return max(capacity - len(there), 0)
        if bool(wanted.slices) != any(one.slices for one in there) or not (gpu.mixed_sizes or wanted.slices):
            return 0
        memory = self._gigabytes(gpu, wanted) - sum(one.gigabytes for one in there)
        slices = MIG_SLICES - sum(one.slices for one in there)
        return max(min(memory // wanted.gigabytes, slices // wanted.slices if wanted.slices else memory), 0)


def parse(name: str) -> Profile | None:
    """The parts of the name of a profile; None for another text."""
    found = _PROFILE.match(name)
    if not found or not int(found["gigabytes"]):
        return None
    return Profile(name, found["model"].lower(), int(found["gigabytes"]), int(found["slices"] or 0))
