"""The shipped stacks, and the faults of custom stacks."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.guests.stack.stack import (
    StackError,
    absent_parts,
    completed,
    faults,
    missing_inputs,
    without_urls,
)

STACKS = Path(__file__).parents[6] / "stacks"
SCHEMA = json.loads((STACKS / "schema.json").read_text())
SHIPPED = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(STACKS.glob("*.yml"))}
# The 2019 versions installed directly on a node, from Molecule's scenario.
BARE = STACKS.parent / "molecule" / "t4_packages" / "bare-2019.yml"
ALL = {**SHIPPED, "bare-2019": yaml.safe_load(BARE.read_text())}


def stack(name: str) -> Any:
    return copy.deepcopy(ALL[name])


def entries(value: Any) -> list[dict[str, Any]]:
    """Return all mappings in a document."""
    if isinstance(value, dict):
        return [value, *(entry for child in value.values() for entry in entries(child))]
    return [entry for child in value for entry in entries(child)] if isinstance(value, list) else []


def test_documentation_lists_each_shipped_stack_once() -> None:
    rows = re.findall(
        r"^\| \[`([\w-]+)`\]\(../stacks/\1\.yml\)", (STACKS.parent / "docs" / "stacks.md").read_text(), re.MULTILINE
    )
    assert sorted(rows) == sorted(SHIPPED), "give each stack a row in the first table of docs/stacks.md"


def test_each_supported_guest_system_has_a_stack() -> None:
    served = {platform for document in SHIPPED.values() for platform in document["platforms"]}
    assert served == {"ubuntu-22.04", "ubuntu-24.04", "ubuntu-26.04", "rocky-9", "rocky-10", "debian-12"}


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_stack_has_no_fault(name: str) -> None:
    assert faults(stack(name), SCHEMA) == []
    assert stack(name)["name"] == name, f"stacks/{name}.yml: set name to {name}"


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_download_has_or_requires_a_checksum(name: str) -> None:
    document = stack(name)
    open_ones = [entry for entry in entries(document) if entry.get("sha256", "") is None]
    requested = [*document.get("inputs", []), *(document.get("image") or {}).get("inputs", [])]
    assert len(open_ones) == len([path for path in requested if path.endswith(".sha256")])
    assert len([entry for entry in entries(document) if "sha256" in entry]) > 10


@pytest.mark.parametrize("name", SHIPPED)
def test_no_two_shipped_files_share_a_checksum(name: str) -> None:
    sums = [(entry["sha256"], entry.get("name")) for entry in entries(stack(name)) if entry.get("sha256")]
    assert len({checksum for checksum, _name in sums}) == len(set(sums))


@pytest.mark.parametrize("name", SHIPPED)
def test_each_shipped_part_has_packages_for_its_platforms(name: str) -> None:
    document = stack(name)
    image = document.pop("image", None)
    for side in [document, image] if image else [document]:
        by_platform = [
            (key, entry[key])
            for entry in entries(side)
            for key in ("packages", "build_packages", "repositories")
            if isinstance(entry.get(key), dict)
        ]
        # With an image, a guest without a GPU only needs a container engine; only Horovod is compiled.
        assert len(by_platform) > (0 if image and side is document else 2 if "horovod" in side else 1)
        assert [(key, set(held)) for key, held in by_platform if set(held) != set(side["platforms"])] == []


@pytest.mark.parametrize("name", SHIPPED)
def test_each_address_of_a_stack_uses_a_base(name: str) -> None:
    document = stack(name)
    elsewhere = {key: part for key, part in document.items() if key != "bases"}
    assert re.findall(r"https?://\S+", json.dumps(elsewhere)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_inputs_are_only_checksums_and_private_addresses(name: str) -> None:
    document = SHIPPED[name]
    requested = missing_inputs(document)
    assert requested == list(document.get("inputs", []))
    assert [
        path for path in requested if not path.endswith(".sha256") and path not in ("bases.licensed", "bases.files")
    ] == []


@pytest.mark.parametrize(
    "name", [name for name, one in SHIPPED.items() if one.get("framework", {}).get("name") == "pytorch"]
)
def test_the_benchmark_for_pytorch_finds_its_networks(name: str) -> None:
    assert {"torch", "torchvision", "pillow"} <= {one["name"] for one in SHIPPED[name]["framework"]["packages"]}


COMPILING = {
    "debian": {"gcc", "make", "libc6-dev"},
    "ubuntu": {"gcc", "make", "libc6-dev"},
    "rocky": {"gcc", "make", "glibc-devel"},
}


@pytest.mark.parametrize("name", [name for name, one in SHIPPED.items() if one.get("gpu_driver")])
def test_runfile_drivers_come_with_compiler_and_headers(name: str) -> None:
    driver = SHIPPED[name]["gpu_driver"]
    assert driver["install"] == "runfile"
    for platform, packages in driver["packages"].items():
        there = {one["name"] for one in packages}
        assert COMPILING[platform.partition("-")[0]] <= there
        assert ("--dkms" in driver["arguments"]) is ("dkms" in there)


def test_optional_parts_require_inputs_only_on_request() -> None:
    document = stack("bare-2019")
    assert missing_inputs(document, ["container"])[-1] == "container.digest"
    digest = "sha256:" + "d" * 64
    done = completed(document, {"container.digest": digest}, {})
    assert done["container"]["digest"] == digest
    assert "container.digest" not in missing_inputs(done, ["container"])
    assert absent_parts(document, ["container"]) == []
    assert absent_parts(stack("lab-cpu"), ["container"]) == ["It has no 'container'."]
    assert absent_parts(document, ["cuda"]) == ["It has no 'cuda'."]


def test_inputs_and_mirrors_complete_a_stack() -> None:
    inputs = {"bases.licensed": "https://licensed.example.org/nvidia/", "gpu_driver.source.sha256": "a" * 64}
    done = completed(stack("bare-2019"), inputs, {"openmpi": "http://mirror.example.org/ompi"})
    assert missing_inputs(done) == []
    assert done["gpu_driver"]["source"] == {
        "base": "licensed",
        "path": "NVIDIA-Linux-x86_64-430.30-grid.run",
        "sha256": "a" * 64,
        "url": "https://licensed.example.org/nvidia/NVIDIA-Linux-x86_64-430.30-grid.run",
    }
    mirrored = "http://mirror.example.org/ompi/release/open-mpi/v4.0/openmpi-4.0.0.tar.bz2"
    assert done["openmpi"]["source"]["url"] == mirrored
    assert "url" not in done["horovod"]["source"]
    assert faults(without_urls(done), SCHEMA) == []


def test_an_input_reaches_a_package_by_its_name() -> None:
    done = completed(stack("a100-2021"), {"image.framework.packages.torch.sha256": "b" * 64}, {})
    assert done["image"]["framework"]["packages"][0]["sha256"] == "b" * 64
    assert SHIPPED["a100-2021"]["image"]["framework"]["packages"][0]["sha256"] is None


@pytest.mark.parametrize(
    ("inputs", "bases", "sentence"),
    [
        ({"openmpi.version": "5.0"}, {}, "The stack lab-cpu has no input 'openmpi.version'; it has no inputs."),
        ({}, {"pypi": "http://x"}, "The stack lab-cpu has no base 'pypi'; it has distribution, python."),
    ],
)
def test_unknown_inputs_are_refused(inputs: Any, bases: Any, sentence: str) -> None:
    with pytest.raises(StackError, match=f"^{re.escape(sentence)}$"):
        completed(stack("lab-cpu"), inputs, bases)


def broken(kind: str) -> Any:
    """Return a stack with one fault."""
    document = stack("bare-2019")
    if kind == "base":
        document["openmpi"]["source"]["base"] = "ompi"
    elif kind == "key":
        document["repositories"]["ubuntu-18.04"][0]["keys"] = ["nvidia"]
    elif kind == "platform":
        document["nccl"]["packages"]["ubuntu-20.04"] = []
    elif kind == "sum":
        document["horovod"]["source"]["sha256"] = None
    elif kind == "digest":
        document["container"]["inputs"] = []
    elif kind == "input":
        document["inputs"].append("openmpi.sha256")
    else:
        del document["openmpi"]["source"]
    return document


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("base", "openmpi.source names the base 'ompi', and bases has distribution, python, nvidia"),
        ("key", "repositories.ubuntu-18.04.cuda names the key 'nvidia', and keys has nvidia-2016, nvidia-2022"),
        ("platform", "nccl has packages for 'ubuntu-20.04', and platforms has ubuntu-18.04."),
        ("sum", "horovod.source.sha256 is null: give the checksum, or list 'horovod.source.sha256' in inputs."),
        ("digest", "container.digest is null: give the checksum, or list 'container.digest' in inputs."),
        ("input", "inputs names 'openmpi.sha256', which is not in the stack."),
        ("origin", "openmpi is installed from a source and lacks 'source'."),
    ],
)
def test_mismatched_names_of_parts_are_faults(kind: str, sentence: str) -> None:
    found = faults(broken(kind), SCHEMA)
    assert len(found) == 1
    assert found[0].startswith(sentence)


def test_a_named_base_overrides_the_mirror() -> None:
    whole = completed(
        stack("lab-cpu"), {}, {"python": "https://python.example.org/packages"}, "https://mirror.example.org"
    )
    assert whole["bases"] == {
        "distribution": "https://mirror.example.org/distribution",
        "python": "https://python.example.org/packages",
    }


def test_tensorflow_needs_horovod_and_pytorch_does_not() -> None:
    named = {name: stack("lab-cpu") for name in ("tensorflow", "pytorch")}
    for name, document in named.items():
        del document["horovod"]
        document["framework"]["name"] = name
    assert faults(named["tensorflow"], SCHEMA) == ["The stack has no image, and lacks 'horovod'."]
    assert faults(named["pytorch"], SCHEMA) == []
