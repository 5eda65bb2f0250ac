# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Whether a vGPU surely fits on a host beside vGPUs of other profiles; pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...workers.placement.gpu_slots import Slots


@dataclass(frozen=True)
class GpuRoom:
    """The GPUs of a host with the vGPUs that stay there.

    The host chooses the GPU of a worker that arrives. A GPU of equal sizes has vGPUs of one size, so two small ones may
    use one GPU or two, and a large one then fits or not: it fits if it does so after each choice.
    """

    slots: Slots
    _known: dict[tuple[tuple[str, ...], tuple[str, ...]], bool] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def takes(self, profiles: tuple[str, ...], there: Iterable[str]) -> bool:
        """Return whether vGPUs of these profiles fit beside those of the workers there, whichever GPUs these use."""
        key = profiles, tuple(sorted(there))
        if key not in self._known:
            layouts = self.slots.layouts(key[1]) or [self.slots.occupy(key[1])]
            self._known[key] = all(layout.take_all(profiles) is not None for layout in layouts)
        return self._known[key]
