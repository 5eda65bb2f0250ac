"""The variables of roles from a stack are options of these roles, including all required options."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.guests.stack import role_variables
from plugins.module_utils.guests.stack.stack import completed

ROOT = Path(__file__).parents[6]
# Stacks that are not shipped: Horovod on GPUs, and the 2019 versions on a node itself, of Molecule's scenario.
FILES = [
    *sorted((ROOT / "stacks").glob("*.yml")),
    *sorted((ROOT / "tests" / "fixtures" / "stacks").glob("*.yml")),
    ROOT / "molecule" / "t4_packages" / "bare-2019.yml",
]
STACKS = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
LAB = STACKS["lab-cpu"]


def options(role: str) -> dict[str, Any]:
    """Return the options of a role by its argument specification."""
    specification = yaml.safe_load((ROOT / "roles" / role / "meta" / "argument_specs.yml").read_text())
    return dict(specification["argument_specs"]["main"]["options"])


def lab(**changes: Any) -> dict[str, Any]:
    """Return the stack of the lab with other parts."""
    stack = copy.deepcopy(LAB)
    for part, change in changes.items():
        stack[part] = {**stack.get(part, {}), **change}
    return stack


def test_repositories_of_a_part_come_with_it() -> None:
    def repositories_of(*parts: str) -> set[str]:
        made = role_variables.variables(STACKS["bare-2019"], "ubuntu-18.04", parts)
        return {one["name"] for one in made["repositories"]["repositories_wanted"]}

    assert repositories_of() == {"cuda", "nvidia-machine-learning"}
    assert {"docker", "libnvidia-container"} <= repositories_of("container") - repositories_of()


def test_cuda_packages_include_those_of_all_parts() -> None:
    cuda = role_variables.variables(STACKS["horovod-ubuntu24"], "ubuntu-24.04")["cuda"]
    assert [one["name"] for one in cuda["cuda_packages"]] == ["cuda-toolkit-12-6", "libnccl2", "libnccl-dev"]
    assert (cuda["cuda_version"], cuda["cuda_cudnn_version"], cuda["cuda_nccl_version"]) == ("12.6", "", "2.22.3")


def test_horovod_comes_from_a_package_index_or_url() -> None:
    def source(stack: dict[str, Any]) -> tuple[str, str]:
        horovod = role_variables.variables(stack, "debian-12")["horovod"]
        return horovod["horovod_source_url"], horovod["horovod_index"]

    assert source(completed(LAB, {}, {}, "https://mirror")) == ("", "https://mirror/python")
    elsewhere = lab(
        bases={"archive": "https://archive"}, horovod={"source": {**LAB["horovod"]["source"], "base": "archive"}}
    )
    assert source(completed(elsewhere, {}, {})) == ("https://archive/horovod-0.28.1.tar.gz", "")


@pytest.mark.parametrize(("name", "backend"), [("lab-ddp", "gloo"), ("passthrough-ubuntu24", "nccl")])
def test_pytorch_without_horovod_uses_nccl_with_gpus(name: str, backend: str) -> None:
    (platform,) = STACKS[name]["platforms"]
    made = role_variables.variables(STACKS[name], platform)["pytorch"]
    assert (made["pytorch_backend"], made["pytorch_version"]) == (backend, "2.15.0")
    assert made["pytorch_packages"] == STACKS[name]["framework"]["packages"]
