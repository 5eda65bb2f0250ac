"""Archives that contain another image than their name, and caches on the controller that belong to another user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import rendering

TASKS = Path(__file__).parents[3] / "roles" / "training_image" / "tasks"


def condition(file: str, task: str) -> str:
    (found,) = [each for each in yaml.safe_load((TASKS / file).read_text()) if each["name"] == task]
    return str(found["ansible.builtin.assert"]["that"])


@pytest.mark.parametrize(
    ("printed", "is_accepted"),
    [
        ("Loaded image: example.com/train:1", True),
        ("Getting image source signatures\nLoaded image: docker.io/example.com/train:1", True),
        ("Loaded image(s): localhost/other:1,example.com/train:1", True),
        ("Loaded image: example.com/train:12", False),
        ("Loaded image: notexample.com/train:1", False),
        ("Loaded image: example.com/other:1", False),
        ("Loaded image ID: sha256:0123456789abcdef", False),
        ("", False),
    ],
)
def test_refuses_an_archive_of_another_image(printed: str, is_accepted: bool) -> None:
    seen = {"rc": 0, "stdout": "sha256:1"}
    image: dict[str, Any] = {"training_image_name": "example.com/train:1", "training_image_archive": "file:///a.tar"}
    line = rendering.value("training_image", "__training_image_loaded_line", **image)
    known = {"__training_image_seen": seen, "__training_image_load": {"stdout": printed}}
    task = condition("load.yml", "Reject an archive of another image")
    assert rendering.truth(task, __training_image_loaded_line=line, **known) is is_accepted


@pytest.mark.parametrize(
    ("found", "is_accepted"),
    [
        ({"exists": False}, True),
        ({"exists": True, "uid": 0}, True),
        ({"exists": True, "uid": 1000}, True),
        ({"exists": True, "uid": 1001, "pw_name": "other"}, False),
    ],
)
def test_a_cache_of_another_user_is_refused(found: dict[str, Any], is_accepted: bool) -> None:
    task = condition("built.yml", "Reject a cache that another user can change")
    known = {"__training_image_own_uid": "1000", "__training_image_built": {"stat": found}}
    assert rendering.truth(task, **known) is is_accepted
