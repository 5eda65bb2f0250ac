# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The two sides of a stack whose training runs in an image: the guest, and what is inside of the image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What belongs to the guest alone; the image has its own, or none.
_OF_GUEST = ("platforms", "repositories", "keys", "container", "inputs", "image")
_OF_IMAGE = ("from", "digest", "archive", "inputs", "packages", "python_tools")
TRAINING = ("python", "openmpi", "framework")


def guest(stack: Mapping[str, Any]) -> dict[str, Any]:
    """The stack without its image."""
    return {key: value for key, value in stack.items() if key != "image"}


def inside(stack: Mapping[str, Any]) -> dict[str, Any] | None:
    """The stack as what is in its image meets it, on the driver of the guest; None where it has no image."""
    image = stack.get("image")
    if not image:
        return None
    own = {key: value for key, value in image.items() if key not in _OF_IMAGE}
    return {**{key: value for key, value in stack.items() if key not in _OF_GUEST}, **own}


def content(stack: Mapping[str, Any]) -> dict[str, Any] | None:
    """What is in the image alone: it has no driver."""
    found = inside(stack)
    return {**found, "gpu_driver": None} if found else None


def trains(stack: Mapping[str, Any]) -> dict[str, Any]:
    """The side of a stack that has framework and MPI."""
    return inside(stack) or dict(stack)


def training(stack: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts without which nothing trains: PyTorch reaches the other ranks by itself, TensorFlow by Horovod."""
    by_itself = (stack.get("framework") or {}).get("name") == "pytorch"
    return TRAINING if by_itself else (*TRAINING, "horovod")
