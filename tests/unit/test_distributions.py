"""The package names that roles and stacks use exist in the package lists of the distributions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.guests import software_packages
from tests.rendering import variables

ROOT = Path(__file__).parents[2]
LISTS = yaml.safe_load((ROOT / "tests" / "fixtures" / "distributions" / "packages.yml").read_text())
# Packages that roles install in addition to their options: chrony and acl (role node), dnf locks (role packages).
ALWAYS = {"acl", "chrony"}
OF_DNF = {"python3-dnf-plugin-versionlock"}
SOURCES = {"ubuntu": "https://packages.ubuntu.com/", "rocky": "https://docs.redhat.com/"}
KERNELS = {"ubuntu": ["linux-image-virtual 5.15.0.91.88 installed"], "rocky": ["kernel-core 5.14.0-427.el9 installed"]}
UBUNTU = {"os_family": "Debian", "distribution": "Ubuntu"}
FACTS = {
    "ubuntu-22.04": {**UBUNTU, "kernel": "5.15.0-91-generic"},
    "ubuntu-24.04": {**UBUNTU, "kernel": "6.8.0-31-generic"},
    "ubuntu-26.04": {**UBUNTU, "kernel": "7.0.0-31-generic"},
    "rocky-9": {"os_family": "RedHat", "distribution": "Rocky", "kernel": "5.14.0-427.el9.x86_64"},
    "rocky-10": {"os_family": "RedHat", "distribution": "Rocky", "kernel": "6.12.0-55.el10.x86_64"},
}


def unpinned(value: Any, system: str) -> Iterator[str]:
    """The names of packages without a version, which the distribution has, in a stack and its image."""
    if isinstance(value, dict):
        for key, child in value.items():
            of_system = child.get(system, []) if isinstance(child, dict) and key.endswith("packages") else []
            yield from (one["name"] for one in of_system if "version" not in one)
            yield from unpinned(child, system)


def used(system: str) -> set[str]:
    """All names that roles and stacks use on a system; of a kernel what stands before its version or kind."""
    family = system.partition("-")[0]
    names = {
        name for path in (ROOT / "stacks").glob("*.yml") for name in unpinned(yaml.safe_load(path.read_text()), system)
    }
    rdma = variables("rdma")["__rdma_debian" if family == "ubuntu" else "__rdma_redhat"]
    parts = software_packages.packages(KERNELS[family], FACTS[system])
    kernel = {one["name"] for part in ("headers", "modules") for one in parts[part]}
    short = {re.sub(r"-(\d.*|virtual|generic)$", "", name) for name in kernel}
    return names | {one["name"] for one in rdma} | short | ALWAYS | (OF_DNF if family == "rocky" else set())


@pytest.mark.parametrize("system", LISTS)
def test_every_name_is_listed_as_seen_or_absent(system: str) -> None:
    seen, unseen = set(LISTS[system]["seen"]), {name for row in LISTS[system]["unseen"] for name in row}
    assert not seen & unseen
    assert used(system) == seen | unseen


@pytest.mark.parametrize("system", LISTS)
def test_observed_names_cite_a_page_of_the_distribution(system: str) -> None:
    source = SOURCES[system.partition("-")[0]]
    assert [page for page in LISTS[system]["seen"].values() if not page.startswith(source)] == []
