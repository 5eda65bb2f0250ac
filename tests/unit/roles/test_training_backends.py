# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The backends of the role training have the same files and results, and no other file refers to a backend."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.modules import mpijob_info, training_job_info

ROLE = Path(__file__).parents[3] / "roles" / "training"
TASKS = ROLE / "tasks"
BACKENDS = sorted(path.name for path in TASKS.iterdir() if path.is_dir())
# The variables that each file sets for the rest of the role.
LEAVES = {
    "begin": {"__training_watched", "__training_began"},
    "look": {"__training_looked"},
    "earlier": {"__training_tried"},
    "environment": {"__training_environment"},
    "find": {"training_started"},
    "output": set[str](),
    "stop": set[str](),
    "stop_named": set[str](),
    "forget": set[str](),
    "leftover": set[str](),
}
# The keys of a job that the role and the trial read, whichever module returns it.
READ = {"state", "why", "launcher", "nodes_of_ranks", "started", "ended", "exit_code", "last_lines"}


def tasks(backend: str, name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load((TASKS / backend / f"{name}.yml").read_text()))


def told(module: Any) -> set[str]:
    return set(yaml.safe_load(module.RETURN)["job"]["contains"])


def test_the_backends_are_those_that_the_option_knows() -> None:
    options = yaml.safe_load((ROLE / "meta" / "argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
    assert sorted(options["training_backend"]["choices"]) == BACKENDS


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_backend_has_the_same_names(backend: str) -> None:
    assert {path.stem for path in (TASKS / backend).glob("*.yml")} == set(LEAVES)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LEAVES)
def test_each_file_leaves_what_the_rest_reads(backend: str, name: str) -> None:
    left = set[str]()
    for task in tasks(backend, name):
        left |= {str(task["register"])} if "register" in task else set()
        left |= set(task.get("ansible.builtin.set_fact", {}))
    others = [path.read_text() for path in ROLE.rglob("*.yml") if path != TASKS / backend / f"{name}.yml"]
    assert {one for one in left if any(re.search(rf"\b{one}\b", text) for text in others)} == LEAVES[name]


def test_the_rest_of_the_role_knows_no_backend() -> None:
    # The measurement of the fabric refuses each backend but mpi.
    rest = "\n".join(path.read_text() for path in TASKS.glob("*.yml") if not path.name.startswith("fabric"))
    lines = [line.strip() for line in rest.splitlines() if "training_backend" in line]
    assert len(lines) >= len(LEAVES)
    assert all(line.startswith('ansible.builtin.include_tasks: "{{ training_backend }}/') for line in lines)
    assert "mpijob" not in rest and "training_job_info" not in rest


def test_both_modules_tell_a_job_in_the_same_words() -> None:
    assert told(mpijob_info) >= READ and told(training_job_info) >= READ


def test_a_job_is_found_as_the_user_that_the_node_recorded() -> None:
    """``training_user`` and ``training_reach`` come from a local fact: without it, the login user finds no job."""
    names = [task["name"] for task in yaml.safe_load((TASKS / "find.yml").read_text())]
    assert names.index("Read the local facts of the node") < names.index("Find the training jobs that run on the node")
    assert "ansible_local" in yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())["training_user"]
