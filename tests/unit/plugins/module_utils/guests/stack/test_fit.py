"""The parts of shipped stacks are compatible, and each planted misfit is refused with its pair."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.guests.stack.fit import NodeEnvironment, misfits, not_established
from plugins.module_utils.guests.stack.part_versions import numbers

from .planted import PLANTED

STACKS = Path(__file__).parents[6] / "stacks"
DOCUMENT = (STACKS.parent / "docs" / "stacks.md").read_text()
FACTS = yaml.safe_load((STACKS / "facts" / "compatibility.yml").read_text())
SHIPPED = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(STACKS.glob("*.yml"))}
# Stacks that are not shipped: Horovod on GPUs, and the 2019 versions on a node itself, of Molecule's scenario.
OTHERS = [
    *sorted((STACKS.parent / "tests" / "fixtures" / "stacks").glob("*.yml")),
    STACKS.parent / "molecule" / "t4_packages" / "bare-2019.yml",
]
ALL = {**SHIPPED, **{path.stem: yaml.safe_load(path.read_text()) for path in OTHERS}}
SOURCES = ("https://", "the release notes of each distribution", "docs/stacks.md")
# stack, its environment, the start of the sentence, or None if it fits
AROUND: list[tuple[str, NodeEnvironment, str | None]] = [
    ("bare-2019", NodeEnvironment(host_driver="430.27"), None),
    (
        "bare-2019",
        NodeEnvironment(host_driver="418.66"),
        "The guest driver 430.30 is newer than the vGPU manager 418.66",
    ),
    (
        "bare-2019",
        NodeEnvironment(host_driver="580.65.05"),
        "The vGPU manager 580.65.05 runs guests of the branches 580, 570",
    ),
    ("horovod-ubuntu22", NodeEnvironment(host_driver="580.82.02"), None),
    (
        "horovod-ubuntu22",
        NodeEnvironment(host_driver="535.54.06"),
        "The guest driver 580.159.03 is newer than the vGPU manager 535",
    ),
    ("a100-2021", NodeEnvironment(host_driver="418.66"), None),
    ("bare-2019", NodeEnvironment(platform="centos-7"), "The stack is for ubuntu-18.04 and the node has centos-7."),
    ("horovod-ubuntu22", NodeEnvironment(platform="ubuntu-22.04", gpu="A40"), None),
    (
        "bare-2019",
        NodeEnvironment(gpu="A40"),
        "The GPU A40 has compute capability 8.6, which CUDA supports from 11.1 on",
    ),
    ("horovod-ubuntu22", NodeEnvironment(gpu="V100"), None),
    ("horovod-rocky9", NodeEnvironment(platform="rocky-9", gpu="L4", host_driver="580.65.05"), None),
    (
        "horovod-rocky9",
        NodeEnvironment(platform="ubuntu-24.04"),
        "The stack is for rocky-9 and the node has ubuntu-24.04.",
    ),
    ("horovod-ubuntu24", NodeEnvironment(platform="ubuntu-24.04", gpu="H200", host_driver="580.65.05"), None),
]


def changed(name: str, changes: dict[str, Any]) -> dict[str, Any]:
    """Return a shipped stack with other values at dotted paths; a key may contain dashes, but no dots."""
    document: dict[str, Any] = copy.deepcopy(ALL[name])
    for path, value in changes.items():
        holder: Any = document
        *above, last = path.split(".")
        for word in above:
            holder = holder[word]
        holder[last] = value
    return document


@pytest.mark.parametrize("name", ALL)
def test_a_stack_fits_together(name: str) -> None:
    assert misfits(ALL[name], FACTS) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_the_documents_list_unconfirmed_pairs_of_shipped_stacks(name: str) -> None:
    row = next((line for line in DOCUMENT.splitlines() if line.startswith(f"| [`{name}`]")), None)
    if row is None:
        pytest.skip("test_stack.py fails for a stack without a row")
    listed = set(re.findall(r"Not established: [^|;]*?\.(?= |$)", row))
    unknown = set(not_established(SHIPPED[name], FACTS))
    assert sorted(unknown - listed) == [], f"docs/stacks.md: add these sentences to the row of {name}"
    assert sorted(listed - unknown) == [], f"docs/stacks.md: remove these sentences from the row of {name}"


@pytest.mark.parametrize(("name", "changes", "sentence"), PLANTED)
def test_a_planted_misfit_is_refused_with_its_pair(name: str, changes: dict[str, Any], sentence: str) -> None:
    found = misfits(changed(name, changes), FACTS)
    assert len(found) == 1
    assert found[0].startswith(sentence)
    assert "Source: " in found[0]


@pytest.mark.parametrize(("name", "around", "sentence"), AROUND)
def test_a_stack_is_compared_with_its_environment(name: str, around: NodeEnvironment, sentence: str | None) -> None:
    found = misfits(ALL[name], FACTS, around)
    assert len(found) == (0 if sentence is None else 1)
    assert all(text.startswith(sentence or "") for text in found)


@pytest.mark.parametrize(("guest", "refused"), [("570.86.10", False), ("535.54.03", False), ("550.54.15", True)])
def test_a_newer_manager_runs_two_previous_driver_branches(guest: str, refused: bool) -> None:
    stack = changed("horovod-ubuntu22", {"gpu_driver.version": guest})
    assert bool(misfits(stack, FACTS, NodeEnvironment(host_driver="580.65.05"))) is refused


def test_does_not_guess_a_branch_without_a_source() -> None:
    stack = changed("horovod-ubuntu22", {"gpu_driver.version": "535.54.03"})
    around = NodeEnvironment(host_driver="550.54.16")
    assert misfits(stack, FACTS, around) == []
    assert not_established(stack, FACTS, around) == [
        (
            "Not established: the guest driver 535.54.03 under the vGPU manager 550.54.16; "
            "only the same branch is known to fit."
        )
    ]


@pytest.mark.parametrize("gpu", [{"moves": False}, {"attachment": "passthrough"}])
def test_accepts_any_nccl_on_gpus_that_stay(gpu: dict[str, Any]) -> None:
    stack = changed("horovod-ubuntu22", {"nccl.version": "2.27.5", "gpu": ALL["horovod-ubuntu22"]["gpu"] | gpu})
    assert [sentence for sentence in misfits(stack, FACTS) if "NCCL" in sentence] == []


@pytest.mark.parametrize("version", ["2.22.3", "2.32.3", "2.33.1"])
def test_accepts_nccl_without_memory_pools_on_moving_vgpus(version: str) -> None:
    stack = changed("horovod-ubuntu22", {"nccl.version": version})
    assert [sentence for sentence in misfits(stack, FACTS) if "NCCL" in sentence] == []


def test_nccl_known_only_from_source_is_not_established() -> None:
    ran, inferred = (changed("horovod-ubuntu22", {"nccl.version": version}) for version in ("2.22.3", "2.32.3"))
    assert [sentence for sentence in not_established(ran, FACTS) if "NCCL" in sentence] == []
    assert [sentence for sentence in not_established(inferred, FACTS) if "NCCL" in sentence] == [
        "Not established: NCCL 2.32.3 of the stack on a vGPU that moves: inferred from its program text, not run."
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"image.cuda.version": "10.1"}, "TensorFlow 1.13.1 is built for CUDA 10.0"),
        ({"gpu_driver.version": "410.47"}, "CUDA 10.0 needs driver >= 410.48 and the stack has 410.47."),
        ({"platforms.ubuntu-22.04.glibc": "2.34"}, "ubuntu-22.04 has glibc 2.35 and the stack specifies 2.34."),
        ({"image.platforms.ubuntu-18.04.glibc": "2.26"}, "ubuntu-18.04 has glibc 2.27 and the stack specifies 2.26."),
        ({"container.docker": "27.0.1"}, "docker-ce 5:28.3.3"),
    ],
)
def test_compares_an_image_with_the_guests_driver(changes: dict[str, Any], sentence: str) -> None:
    path, value = next(iter(changes.items()))
    document = copy.deepcopy(SHIPPED["t4-2019"])
    holder: Any = document
    *above, last = path.replace("22.04", "22-04").replace("18.04", "18-04").split(".")
    for word in above:
        holder = holder[word.replace("22-04", "22.04").replace("18-04", "18.04")]
    holder[last] = value
    assert any(found.startswith(sentence) for found in misfits(document, FACTS))


def test_does_not_guess_cuda_without_a_source() -> None:
    stack = changed("horovod-ubuntu22", {"cuda.version": "12.7"})
    assert "Not established: which driver CUDA 12.7 needs." in not_established(stack, FACTS)


def test_does_not_guess_a_framework_without_a_source() -> None:
    stack = changed("a100-2021", {"image.framework.version": "1.11.0"})
    assert misfits(stack, FACTS) == []
    assert not_established(stack, FACTS) == [
        "Not established: on which Python PyTorch 1.11.0 runs.",
        "Not established: Horovod 0.23.0 with PyTorch 1.11.0.",
    ]


def test_a_patch_makes_horovod_fit() -> None:
    patch = {"name": "cxx-17", "files": ["CMakeLists.txt"], "find": "14", "replace": "17"}
    changes = {"framework.name": "pytorch", "framework.version": "2.1.0", "horovod.patches": [patch]}
    assert misfits(changed("lab-cpu", changes), FACTS) == []


def test_every_fact_has_a_source() -> None:
    tables = {name: table for name, table in FACTS.items() if "rows" in table}
    assert len(tables) > 10
    unsourced = [
        (name, row)
        for name, table in tables.items()
        for row in table["rows"]
        if not str(row.get("source", table.get("source", ""))).startswith(SOURCES)
    ]
    assert unsourced == []


def test_newer_cuda_requires_newer_drivers() -> None:
    rows = [(numbers(row["cuda"]), numbers(row["driver"])) for row in FACTS["cuda_drivers"]["rows"]]
    assert rows == sorted(rows)
    assert [driver for _cuda, driver in rows] == sorted(driver for _cuda, driver in rows)
