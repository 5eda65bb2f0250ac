"""The two sides of a stack whose training runs in an image: the guest and the image."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Keys that apply only to the guest; the image has its own values, or none.
_OF_GUEST = ("platforms", "repositories", "keys", "container", "inputs", "image")
_OF_IMAGE = ("from", "digest", "archive", "inputs", "packages", "python_tools")
TRAINING = ("python", "openmpi", "framework")


def guest_program(stack: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in stack.items() if key != "image"}


def image_side(stack: Mapping[str, Any]) -> dict[str, object] | None:
    """Return the stack with the parts of its image and the guest's driver; None if it has no image."""
    image = stack.get("image")
    if not image:
        return None
    own = {key: value for key, value in image.items() if key not in _OF_IMAGE}
    return {**{key: value for key, value in stack.items() if key not in _OF_GUEST}, **own}


def image_content(stack: Mapping[str, object]) -> dict[str, object] | None:
    """Return the parts of the image, without a driver; None if the stack has no image."""
    side = image_side(stack)
    return {**side, "gpu_driver": None} if side else None


def training_side(stack: Mapping[str, object]) -> dict[str, object]:
    """Return the side of a stack that trains: the image, else the guest."""
    return image_side(stack) or dict(stack)


def required_parts(stack: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts that training requires; TensorFlow also requires Horovod to reach the other ranks."""
    by_itself = (stack.get("framework") or {}).get("name") == "pytorch"
    return TRAINING if by_itself else (*TRAINING, "horovod")
