"""The image of a stack and its guest: the contents and the required parts."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.guests.stack.stack import faults

from .test_stack import SCHEMA, SHIPPED, stack

# Table 1 of the whitepaper; the patch levels of cuDNN, OpenMPI and Horovod are from the Dockerfile that it references.
WHITEPAPER = {
    "cuda": "10.0",
    "cudnn": "7.6",
    "nccl": "2.4.7",
    "framework": "1.13.1",
    "openmpi": "4.0.0",
    "horovod": "0.16",
}


@pytest.mark.parametrize(("part", "version"), WHITEPAPER.items())
def test_the_2019_image_has_the_whitepapers_versions(part: str, version: str) -> None:
    image = SHIPPED["t4-2019"]["image"]
    assert image[part]["version"].startswith(version)
    assert list(image["platforms"]) == ["ubuntu-18.04"]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image": None}, "The stack has no image, and lacks 'python'."),
        (
            {"platforms": {"ubuntu-20.04": {"distribution": "Ubuntu", "version": "20.04", "glibc": "2.31"}}},
            "gpu_driver has",
        ),
    ],
)
def test_refuses_a_guest_without_a_matching_image(change: dict[str, Any], sentence: str) -> None:
    assert any(found.startswith(sentence) for found in faults({**stack("t4-2019"), **change}, SCHEMA))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"image": {"archive": None}}, "image: give its base: either from and digest, or archive."),
        ({"image": {"from": "debian:12", "digest": "sha256:" + "1" * 64}}, "image: give its base: either"),
        ({"container": {"engine": "docker"}}, "container has the engine docker, and lacks 'docker'."),
        ({"image": {"python": {"prefix": None}}}, "image: python comes from an archive, and lacks 'prefix'"),
    ],
)
def test_an_image_that_cannot_be_made_is_refused(change: dict[str, Any], sentence: str) -> None:
    document = stack("t4-2019-cpu")
    for part, values in change.items():
        for key, value in values.items():
            merged = {**document[part][key], **value} if isinstance(value, dict) else value
            document[part][key] = (
                {name: held for name, held in merged.items() if held} if merged is not value else value
            )
    document["image"] = {key: value for key, value in document["image"].items() if value is not None}
    assert any(found.startswith(sentence) for found in faults(document, SCHEMA)), faults(document, SCHEMA)


def test_a_wrong_platform_in_an_image_is_refused() -> None:
    document = stack("t4-2019")
    document["image"]["nccl"]["packages"]["ubuntu-22.04"] = []
    assert faults(document, SCHEMA) == ["image: nccl has packages for 'ubuntu-22.04', and platforms has ubuntu-18.04."]
