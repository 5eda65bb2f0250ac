"""The inputs that change the folder of an interpreter, and those that re-create a virtual environment."""

from __future__ import annotations

from typing import Any

import pytest

from tests import rendering

ARCHIVE: dict[str, Any] = {"url": "https://a/p.tar.gz", "sha256": "a" * 64, "folder": "python", "links": {"b": "a"}}


def made(**changes: Any) -> str:
    """The mark of the folder."""
    archive = {**ARCHIVE, **changes}
    return str(rendering.value("python_environment", "__python_environment_made", python_environment_archive=archive))


@pytest.mark.parametrize("change", [{"sha256": "b" * 64}, {"folder": ""}, {"links": {}}])
def test_the_content_of_the_folder_defines_its_identity(change: dict[str, Any]) -> None:
    assert made(**change) != made()
    assert made(url="https://mirror/other.tar.gz") == made()


@pytest.mark.parametrize(
    ("found", "listed", "is_filling", "is_recreated"),
    [
        (["/usr 3 11", "/usr 3 11"], 0, False, False),
        (["/usr 3 11", "/usr 3 11"], 1, False, True),
        (["/usr 3 11", "/usr 3 11"], 0, True, True),
        (["/opt/dml/python3.12 3 12", "/usr 3 11"], 0, False, True),
        (["", "/usr 3 11"], 0, False, True),
    ],
)
def test_recreates_an_environment_of_another_interpreter(
    found: list[str], listed: int, is_filling: bool, is_recreated: bool
) -> None:
    known = {
        "__python_environment_interpreters": {"results": [{"stdout": one} for one in found]},
        "__python_environment_listed": {"rc": listed},
        "__python_environment_marks": {"results": [{"stat": {"exists": is_filling}}]},
    }
    assert (
        rendering.value("python_environment", "__python_environment_half", **known) in {True, "True"}
    ) is is_recreated
