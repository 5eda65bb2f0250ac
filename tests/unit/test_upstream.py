# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The patches for govmomi apply to the version that the simulator uses, and contain tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import upstream

PAGE = (upstream.PATCHES / "README.md").read_text()


@pytest.fixture(scope="module")
def source() -> Path:
    return upstream.source()


@pytest.fixture(params=upstream.patches(), ids=lambda path: path.stem)
def patch(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_a_patch_applies_to_the_source(patch: Path, source: Path) -> None:
    assert upstream.refusal(patch, source) == ""


def test_a_patch_that_does_not_fit_is_reported(patch: Path, source: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.patch"
    other.write_text(patch.read_text().replace("/simulator/", "/simulators/"))
    assert "No such file" in upstream.refusal(other, source)


def test_a_patch_has_tests_and_is_on_the_page(patch: Path) -> None:
    assert upstream.own_tests(patch)
    assert f"]({patch.name})" in PAGE


def test_each_test_must_pass_with_its_patch_and_fail_without() -> None:
    names = [name for patch in upstream.patches() for name in upstream.own_tests(patch)]
    assert len(names) == len(set(names))
    assert list(upstream.verdicts([], names)) == []
    assert [text.rpartition(": ")[2] for text in upstream.verdicts(names[:1], names[:-1])] == [
        f"{names[0]} passes without the patch.",
        f"{names[-1]} fails with the patch.",
    ]
