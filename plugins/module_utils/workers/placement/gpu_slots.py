"""The free slots for virtual GPUs of a profile on the GPUs of a host, and the models of GPUs.

Models are compared by complete name parts: an A10 does not match an A100, nor an L40 an L40S.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

# The name of a profile contains all its data: grid_t4-16c, nvidia_a16-4c, nvidia_rtx6000-ada-48q,
# nvidia_rtx_pro_6000_blackwell_dc-96c, and with MIG slices grid_a100-2-10c.
_PROFILE = re.compile(
    r"^(?:grid|nvidia)_(?P<model>\w+(?:-[a-z]\w*)*)-(?:(?P<slices>\d+)-)?(?P<gigabytes>\d+)[a-z]+$", re.IGNORECASE
)
# The slices of a GPU in MIG mode by the start of its model's name: the instances in NVIDIA's MIG user guide.
_MIG_SLICES = {"a30": 4, "rtx_pro_4500": 2, "rtx_pro_6000": 4}
_MOST_MIG_SLICES = 7
# Models on which several vGPUs may share a MIG instance in time slices: NVIDIA AI Enterprise, vGPU types of Blackwell.
_SHARED_INSTANCES = "rtx_pro_"
_PARTS = re.compile(r"[a-z]+|[0-9]+")
# Profiles mark variants of a model with letters that a GPU's name does not have: grid_a100d-80c, nvidia_h100xm-80c,
# nvidia_rtx_pro_6000_blackwell_dc-96c.
_FORM = re.compile(r"(.*[0-9])(?:d|dx|x|xm|xl|l|gl)|(.*)_dc")


@dataclass(frozen=True)
class VgpuProfile:
    """The model, memory and MIG slices in the name of a vGPU profile."""

    name: str
    model: str
    gigabytes: int
    slices: int = 0


@dataclass(frozen=True)
class PhysicalGpu:
    """One physical GPU: its memory, and the profiles of the vGPUs on it; ``mig`` is None if its mode is unknown."""

    address: str
    name: str
    gigabytes: float
    used: tuple[str, ...] = ()
    mixed_sizes: bool = False
    mig: bool | None = None


@dataclass(frozen=True)
class Slots:
    """The GPUs of one host, the profiles that it offers, and those that it describes."""

    gpus: tuple[PhysicalGpu, ...] = ()
    offered: tuple[str, ...] = ()
    described: tuple[VgpuProfile, ...] = ()

    def free(self, profile: str) -> int:
        """Return the number of free slots for vGPUs of the profile."""
        return sum(self._free_on(gpu, profile) for gpu in self.candidates(profile))

    def total(self, profile: str) -> int:
        """Return the number of vGPUs of the profile that fit on the empty host."""
        return sum(self._capacity(gpu, profile) for gpu in self.candidates(profile))

    def take(self, profile: str) -> Slots | None:
        """Return the slots after one more vGPU of the profile; a GPU with the same profile is filled first."""
        return next(self.ways(profile), None)

    def ways(self, profile: str) -> Iterator[Slots]:
        """Yield the slots after one more vGPU on each different GPU with room, first on a GPU with the same profile."""
        fitting = [gpu for gpu in self.candidates(profile) if self._free_on(gpu, profile)]
        different = {replace(gpu, address=""): gpu for gpu in sorted(fitting, key=_order(profile), reverse=True)}
        for gpu in sorted(different.values(), key=_order(profile)):
            yield self._with(gpu, profile)

    def layouts(self, profiles: Iterable[str]) -> list[Slots]:
        """Return the slots after one more vGPU of each profile, for all choices of GPUs on which they all fit."""
        found = {self._kinds(): self}
        for profile in self._largest_first(profiles):
            found = {after._kinds(): after for slots in found.values() for after in slots.ways(profile)}
        return list(found.values())

    def take_all(self, profiles: Iterable[str]) -> Slots | None:
        """Return the slots after one more vGPU of each profile; None if they do not all fit."""
        return self._take_all(self._largest_first(profiles), set())

    def occupy(self, profiles: Iterable[str]) -> Slots:
        """Return the slots after the vGPUs of a running worker, which are counted even if they seem not to fit."""
        after = self
        for profile in sorted(profiles, key=self._size, reverse=True):
            after = after.take(profile) or after._squeeze(profile)
        return after

    def _take_all(self, profiles: tuple[str, ...], failed: set[Hashable]) -> Slots | None:
        """Try different GPUs, starting with the one that ``take`` would choose, and try no state twice."""
        if not profiles:
            return self
        profile, rest = profiles[0], profiles[1:]
        state = len(profiles), self._kinds()
        if state in failed or self.free(profile) < profiles.count(profile):
            return None
        for way in self.ways(profile):
            after = way._take_all(rest, failed)
            if after is not None:
                return after
        failed.add(state)
        return None

    def without_addresses(self) -> Slots:
        """Return the slots with numbers as addresses: equal for two hosts whose GPUs can be exchanged."""
        ranked = sorted(self.gpus, key=_kind)
        return replace(self, gpus=tuple(replace(gpu, address=f"{n:03}") for n, gpu in enumerate(ranked)))

    def _kinds(self) -> Hashable:
        """Return a key that is equal for slots that differ only by exchanged GPUs."""
        return frozenset(Counter(replace(gpu, address="") for gpu in self.gpus).items())

    def _squeeze(self, profile: str) -> Slots:
        gpus = self.candidates(profile)
        return self._with(min(gpus, key=lambda gpu: sum(map(self._size, gpu.used))), profile) if gpus else self

    def _with(self, chosen: PhysicalGpu, profile: str) -> Slots:
        taken = replace(chosen, used=(*chosen.used, profile))
        return replace(self, gpus=tuple(taken if gpu is chosen else gpu for gpu in self.gpus))

    def share(self, gpu: PhysicalGpu, profile: str) -> float | None:
        """Return the share of a GPU's memory for one vGPU of a profile; None if its size is unknown."""
        desired = self._parsed(profile)
        return min(desired.gigabytes / self._gigabytes(gpu, desired), 1.0) if desired else None

    def candidates(self, profile: str) -> Sequence[PhysicalGpu]:
        """Return the GPUs of the profile's model; if no GPU is known to be of that model, all GPUs of the host."""
        desired = self._parsed(profile)
        if desired is None or profile not in self.offered:
            return ()
        return [gpu for gpu in self.gpus if fits_profile(gpu.name, desired.model)] or self.gpus

    def _parsed(self, profile: str) -> VgpuProfile | None:
        return known(profile, self.described)

    def _size(self, profile: str) -> int:
        parsed = self._parsed(profile)
        return parsed.gigabytes if parsed else 0

    def _largest_first(self, profiles: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(profiles, key=lambda name: (-self._size(name), name)))

    def _capacity(self, gpu: PhysicalGpu, profile: str) -> int:
        desired = self._parsed(profile)
        # A GPU in MIG mode offers MIG-backed vGPUs only, and any other GPU none of them.
        if desired is None or gpu.mig not in (None, bool(desired.slices)):
            return 0
        gigabytes = self._gigabytes(gpu, desired)
        count = gigabytes // desired.gigabytes
        return min(count, _instances(gigabytes, desired)) if desired.slices else count

    def _gigabytes(self, gpu: PhysicalGpu, desired: VgpuProfile) -> int:
        """Return the nominal memory, which is at least that of the largest offered profile: a GPU reports less."""
        largest = [one.gigabytes for one in map(self._parsed, self.offered) if one and one.model == desired.model]
        return max(math.ceil(gpu.gigabytes), *largest, 0)

    def _free_on(self, gpu: PhysicalGpu, profile: str) -> int:
        there = [used for used in map(self._parsed, gpu.used) if used]
        desired = self._parsed(profile)
        if desired is None or (len(there) < len(gpu.used)):
            return 0
        capacity = self._capacity(gpu, profile)
        if all(used.gigabytes == desired.gigabytes and used.slices == desired.slices for used in there):
            return max(capacity - len(there), 0)
        if bool(desired.slices) != any(used.slices for used in there) or not (gpu.mixed_sizes or desired.slices):
            return 0
        memory = self._gigabytes(gpu, desired) - sum(used.gigabytes for used in there)
        slices = _slices(desired.model) - sum(used.slices for used in there)
        return max(min(memory // desired.gigabytes, slices // desired.slices if desired.slices else memory), 0)


def _slices(model: str) -> int:
    return next((count for name, count in _MIG_SLICES.items() if model.startswith(name)), _MOST_MIG_SLICES)


def _instances(gigabytes: int, desired: VgpuProfile) -> int:
    """Return the number of MIG-backed vGPUs that the slices of a GPU allow."""
    slices = _slices(desired.model)
    shared = (
        gigabytes * desired.slices // slices // desired.gigabytes if desired.model.startswith(_SHARED_INSTANCES) else 1
    )
    return slices // desired.slices * max(shared, 1)


def _kind(gpu: PhysicalGpu) -> tuple[str, float, bool, bool, list[str]]:
    """Return a sort key that is equal for GPUs that can be exchanged."""
    return gpu.name, gpu.gigabytes, gpu.mixed_sizes, bool(gpu.mig), sorted(gpu.used)


def _order(profile: str) -> Callable[[PhysicalGpu], tuple[bool, str]]:
    """Return a sort key: a GPU with the same profile is filled first."""
    return lambda gpu: (profile not in gpu.used, gpu.address)


def gigabytes(profiles: Iterable[str]) -> int:
    """Return the total gigabytes in the names of profiles."""
    return sum(map(_size, profiles))


def _size(profile: str) -> int:
    """Return the gigabytes in the name of a profile; 0 if there are none."""
    parsed = parse(profile)
    return parsed.gigabytes if parsed else 0


def known(name: str, described: Iterable[VgpuProfile]) -> VgpuProfile | None:
    """Return the data in the name of a profile, else those in a host's description of it; None if both lack them."""
    return parse(name) or next((one for one in described if one.name == name), None)


def parse(name: str) -> VgpuProfile | None:
    """Return the profile with this name; None if the text is not the name of a profile."""
    match = _PROFILE.match(name)
    if not match or not int(match["gigabytes"]):
        return None
    return VgpuProfile(name, match["model"].lower(), int(match["gigabytes"]), int(match["slices"] or 0))


def is_of_model(name: str, model: str) -> bool:
    """Return whether a GPU's name, such as NVIDIA A100-PCIE-40GB, matches a model, such as A100 or Tesla T4."""
    desired = "".join(_PARTS.findall(model.lower()))
    return bool(desired) and desired in _runs(name.lower())


def fits_profile(name: str, model: str) -> bool:
    """Return whether a GPU's name matches the model in a vGPU profile, such as a100d or rtx6000-ada."""
    form = _FORM.fullmatch(model.lower())
    return is_of_model(name, model) or (form is not None and is_of_model(name, form[1] or form[2]))


def _runs(name: str) -> set[str]:
    """Return the adjacent parts of a name, joined in all ways that start and end at a word boundary."""
    parts = list(_PARTS.finditer(name))
    begins = [i for i, part in enumerate(parts) if not (i and parts[i - 1].end() == part.start())]
    ends = [i for i, part in enumerate(parts) if i + 1 == len(parts) or parts[i + 1].start() != part.end()]
    return {"".join(part[0] for part in parts[i : j + 1]) for i in begins for j in ends if i <= j}
