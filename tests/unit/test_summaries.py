# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The role training reads no summary that is too large."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from jinja2 import Environment

from plugins.module_utils.vmotion.watch.transport_program import SUMMARY_BYTES

TASKS = Path(__file__).parents[2] / "roles" / "training" / "tasks" / "result.yml"


@pytest.mark.parametrize(
    ("sizes", "is_read"), [([], True), ([300, SUMMARY_BYTES], True), ([300, SUMMARY_BYTES + 1], False)]
)
def test_a_summary_has_a_limit(sizes: list[int], is_read: bool) -> None:
    tasks = [next(iter({*task} & {"ansible.builtin.assert", "ansible.builtin.slurp"}), "") for task in _tasks()]
    assert tasks.index("ansible.builtin.assert") < tasks.index("ansible.builtin.slurp")
    (check,) = [task["ansible.builtin.assert"] for task in _tasks() if "ansible.builtin.assert" in task]
    found = {"files": [{"size": size} for size in sizes]}
    jinja = Environment(autoescape=False)
    assert jinja.compile_expression(check["that"])(__training_found=found) is is_read


def _tasks() -> list[dict[str, dict[str, str]]]:
    tasks: list[dict[str, dict[str, str]]] = yaml.safe_load(TASKS.read_text())
    return tasks
