"""Every pin is held against the known holes, and what is accepted is accepted for a reason that still holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tools import advisories

ROOT = Path(__file__).parents[2]
KNOWN = yaml.safe_load(advisories.LIST.read_text())
STACK = """
gpu_driver: {{version: "{driver}"}}
container: {{packages: {{ubuntu-22.04: [{{name: containerd.io, version: {containerd}}}]}}}}
horovod: {{build_tools: [{{name: setuptools, version: "{setuptools}"}}]}}
"""


def checkout(folder: Path, **versions: str) -> Path:
    (folder / "stacks").mkdir()
    mended = {"driver": "580.159.03", "containerd": "1.7.29-1~ubuntu.22.04~jammy", "setuptools": "80.10.2"}
    (folder / "stacks" / "one.yml").write_text(STACK.format(**{**mended, **versions}))
    (folder / "requirements.txt").write_text("pyvmomi>=8\nJinja2==3.1.6\n")
    return folder


def found(folder: Path, **known: Any) -> list[str]:
    return list(advisories.vulnerabilities(folder, {**KNOWN, "accepted": [], **known}))


def test_pins_have_no_unaccepted_vulnerability() -> None:
    assert list(advisories.vulnerabilities(ROOT, KNOWN)) == []


def test_finds_every_kind_of_pin() -> None:
    seen = {(pin.file, pin.package): pin.version for pin in advisories.pins(ROOT)}
    for key in [
        ("stacks/vgpu-ubuntu24.yml", "containerd.io"),
        ("stacks/lab-cpu.yml", "setuptools"),
        ("stacks/vgpu-rocky9.yml", "nvidia-driver"),
        ("stacks/lab-cpu.yml", "tensorflow-cpu"),
        ("requirements-dev.txt", "pyyaml"),
        ("constraints.txt", "cryptography"),
        ("requirements-oldest.txt", "ansible-core"),
    ]:
        assert seen[key]


@pytest.mark.parametrize(
    ("versions", "ids"),
    [
        ({}, ""),
        ({"containerd": "1.7.27-1"}, "containerd.io 1.7.27-1 has CVE-2024-25621, CVE-2025-31133, CVE-2025-52881"),
        ({"containerd": "1.7.27-3.1.el9"}, "containerd.io 1.7.27-3.1.el9 has CVE-2024-25621"),
        ({"containerd": "2.2.0-2~ubuntu.24.04~noble"}, ""),
        ({"setuptools": "69.5.1"}, "setuptools 69.5.1 has CVE-2024-6345, CVE-2025-47273"),
        ({"driver": "580.65.06"}, "nvidia-driver 580.65.06 has CVE-2025-23280, CVE-2026-24187"),
        ({"driver": "580.95.05"}, "nvidia-driver 580.95.05 has CVE-2026-24187"),
        ({"driver": "430.30"}, "nvidia-driver 430.30 has CVE-2026-24187"),
        ({"containerd": "unknown"}, "containerd.io unknown has CVE-2024-25621"),
    ],
)
def test_names_a_pin_with_a_known_vulnerability(tmp_path: Path, versions: dict[str, str], ids: str) -> None:
    sentences = found(checkout(tmp_path, **versions))
    assert len(sentences) == (1 if ids else 0)
    assert all(one.startswith(f"stacks/one.yml: {ids}") for one in sentences)


def test_reports_an_acceptance_that_is_no_longer_needed(tmp_path: Path) -> None:
    accepted = [{"file": "stacks/one.yml", "packages": ["setuptools"], "reason": "for a test"}]
    (tmp_path / "old").mkdir()
    assert found(checkout(tmp_path / "old", setuptools="69.5.1"), accepted=accepted) == []
    (tmp_path / "new").mkdir()
    assert found(checkout(tmp_path / "new"), accepted=accepted) == [
        "advisories.yml: setuptools of stacks/one.yml no longer has a known vulnerability: remove it from `accepted`."
    ]


@pytest.mark.parametrize("one", KNOWN["advisories"], ids=lambda one: f"{one['package']} {one['id']}")
def test_each_advisory_names_its_source(one: dict[str, str]) -> None:
    assert set(one) == {"package", "affected", "id", "known", "source"}
    assert one["source"].startswith("https://")
    assert advisories.SpecifierSet(one["affected"])


def test_each_acceptance_has_its_reason() -> None:
    assert all(set(one) == {"file", "packages", "reason"} and one["reason"] for one in KNOWN["accepted"])
