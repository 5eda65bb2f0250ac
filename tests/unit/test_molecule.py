# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Molecule passes over steps that it finds nothing for: a scenario has what it names, and names what it has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.simulator import PASSWORD, USERNAME

ROOT = Path(__file__).parents[2]
SCENARIOS = sorted(path.parent for path in (ROOT / "molecule").glob("*/molecule.yml"))
DEFAULT = ROOT / "molecule" / "default"
PLAYBOOKS = ("create", "prepare", "converge", "side_effect", "destroy")


@pytest.fixture(params=SCENARIOS, ids=lambda path: path.name)
def scenario(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def settings(scenario: Path) -> dict[str, Any]:
    return dict(yaml.safe_load((scenario / "molecule.yml").read_text()))


def provision(scenario: Path) -> dict[str, Any]:
    """Return how a scenario runs Ansible."""
    return dict(settings(scenario)["ansible"])


def steps(scenario: Path) -> list[str]:
    return list(settings(scenario)["scenario"]["test_sequence"])


def test_there_are_scenarios() -> None:
    assert {path.name for path in SCENARIOS} >= {"default", "guests", "t4_packages", "airgap", "vm"}


def test_a_scenario_runs_twice_is_verified_and_leaves_nothing(scenario: Path) -> None:
    order = steps(scenario)
    assert order[0] == order[-1] == "destroy"
    assert order.index("create") < order.index("converge") == order.index("idempotence") - 1
    assert "verify" in order[order.index("idempotence") :]


def test_every_folder_of_tests_is_run_and_has_some(scenario: Path) -> None:
    expected = {step.partition(" ")[2] or "tests" for step in steps(scenario) if step.startswith("verify")}
    assert expected == {path.parent.name for path in scenario.glob("*/test_*.py")}


def test_every_playbook_is_run_and_is_there(scenario: Path) -> None:
    named = provision(scenario).get("playbooks", {})
    there = {name for name in PLAYBOOKS if (scenario / f"{name}.yml").exists()} | set(named)
    assert there == set(PLAYBOOKS) & set(steps(scenario))
    assert all((scenario / path).is_file() for path in named.values())


def test_nothing_is_fetched_from_galaxy(scenario: Path) -> None:
    assert settings(scenario)["dependency"] == {"name": "galaxy", "enabled": False}


def test_a_scenario_has_the_native_form_and_an_inventory(scenario: Path) -> None:
    assert not {"driver", "platforms", "provisioner"} & set(settings(scenario))
    assert yaml.safe_load((scenario / "inventory" / "hosts.yml").read_text())


def test_a_scenario_with_nodes_uses_the_inventory_that_it_creates(scenario: Path) -> None:
    arguments = provision(scenario)["executor"]["args"]["ansible_playbook"]
    own = f"--inventory=${{MOLECULE_PROJECT_DIRECTORY}}/.cache/lab/molecule-{scenario.name}/inventory"
    assert (own in arguments) is (scenario != DEFAULT)


def test_the_default_scenario_changes_only_its_own_data_centre() -> None:
    variables = yaml.safe_load((DEFAULT / "inventory" / "hosts.yml").read_text())["clusters"]["vars"]
    for option, key in {"hostname": "hostname", "port": "port", "ca_path": "ca_file"}.items():
        assert variables[f"vsphere_{option}"] == f"{{{{ centre.{key} }}}}"
    assert (variables["vsphere_username"], variables["vsphere_password"]) == (USERNAME, PASSWORD)


def test_the_default_scenario_is_a_stage_of_the_tests_that_ci_runs() -> None:
    (stages,) = re.findall(r"^STAGES := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "molecule-default=180" in stages.split()
