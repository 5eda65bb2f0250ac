# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""From the words of a host profile to its parts: which subjects it means, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..vsphere.fleet import Host
from . import graphics, kernel_module, passthrough, pvrdma, roce, vib
from .profile import Part

Wishes = Mapping[str, Any]


def _list_of(options: dict[str, Any], **rules: Any) -> dict[str, Any]:
    return {"type": "list", "elements": "dict", "default": [], "options": options, **rules}


OPTIONS: dict[str, Any] = {
    # no_log: the name only sounds like a secret.
    "passthrough": {"type": "dict", "no_log": False, "options": passthrough.OPTIONS},
    "vibs": _list_of(vib.OPTIONS, required_if=vib.REQUIRED_IF),
    "graphics": {"type": "dict", "options": graphics.OPTIONS, "required_one_of": graphics.REQUIRED_ONE_OF},
    "kernel_modules": _list_of(kernel_module.OPTIONS),
    "roce": {"type": "dict", "options": roce.OPTIONS},
    "pvrdma": {"type": "dict", "options": pvrdma.OPTIONS, "required_if": pvrdma.REQUIRED_IF},
}
PATHS = tuple(
    dict.fromkeys((*passthrough.PATHS, *vib.PATHS, *graphics.PATHS, *kernel_module.PATHS, *roce.PATHS, *pvrdma.PATHS)),
)


def parts_of(host: Host, profile: Wishes, cluster_images: Mapping[str, str], to_come: Sequence[str] = ()) -> list[Part]:
    """The parts of one host's profile; ``cluster_images`` names the clusters that an image manages.

    ``to_come`` are the vmkernel adapters that are built before the profile is applied.
    """
    return [
        *_passthrough(host, profile),
        *_vibs(host, profile, cluster_images),
        *_graphics(host, profile),
        *_kernel_modules(host, profile),
        *_roce(host, profile),
        *_pvrdma(host, profile, to_come),
    ]


def _passthrough_ends(profile: Wishes) -> bool:
    """Whether this profile takes GPUs out of passthrough, so that what needs them waits for the boot after that."""
    desired = profile.get("passthrough")
    return bool(desired and not desired["enabled"])


def _passthrough(host: Host, profile: Wishes) -> Iterator[Part]:
    desired = profile.get("passthrough")
    if desired:
        plan = partial(passthrough.plan_passthrough, enabled=desired["enabled"])
        yield Part("passthrough", passthrough.Passthrough(host, desired["devices"]), plan)


def _vibs(host: Host, profile: Wishes, cluster_images: Mapping[str, str]) -> Iterator[Part]:
    images = vib.Images(host)
    for one in profile.get("vibs") or []:
        desired = vib.Desired.of(one)
        plan = partial(vib.plan_vib, desired=desired, passthrough_ends=_passthrough_ends(profile))
        yield Part(f"VIB {desired.name}", vib.Vib(host, desired, cluster_images, images), plan)


def _graphics(host: Host, profile: Wishes) -> Iterator[Part]:
    wanted = profile.get("graphics")
    if wanted:
        desired = graphics.Desired(**wanted)
        plan = partial(graphics.plan_graphics, desired=desired, passthrough_ends=_passthrough_ends(profile))
        yield Part("graphics", graphics.Graphics(host, desired), plan)


def _kernel_modules(host: Host, profile: Wishes) -> Iterator[Part]:
    for one in profile.get("kernel_modules") or []:
        plan = partial(kernel_module.plan_options, wanted=one["options"], exact=one["exact"])
        yield Part(f"kernel module {one['name']}", kernel_module.KernelModule(host, one["name"]), plan)


def _roce(host: Host, profile: Wishes) -> Iterator[Part]:
    wanted = profile.get("roce")
    if wanted:
        subject = roce.Roce(host, roce.desired(wanted))
        yield Part("RoCE", subject, subject.plan)


def _pvrdma(host: Host, profile: Wishes, to_come: Sequence[str]) -> Iterator[Part]:
    wanted = profile.get("pvrdma")
    if wanted:
        desired = replace(pvrdma.desired(wanted), to_come=frozenset(to_come))
        subject = pvrdma.Pvrdma(host, desired)
        yield Part("PVRDMA", subject, subject.plan)
