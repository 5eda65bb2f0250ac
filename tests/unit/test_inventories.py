"""Each example of an inventory and the stack that it names fit together: system, GPU, driver and login."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.core.vgpu_manager import is_manager
from plugins.module_utils.guests.stack.fit import NodeEnvironment, misfits, not_established

ROOT = Path(__file__).parents[2]
FACTS = yaml.safe_load((ROOT / "stacks" / "facts" / "compatibility.yml").read_text())
EXAMPLES = ["t4_vgpu", "a100_passthrough", "mixed"]
LABS = ["lab", "lab_kubernetes", "lab_machines", "lab_tied"]


def variables(inventory: str, group: str) -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "inventories" / inventory / "group_vars" / f"{group}.yml").read_text()))


@pytest.fixture(params=EXAMPLES)
def inventory(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clusters(inventory: str) -> dict[str, Any]:
    return variables(inventory, "clusters")


@pytest.fixture
def stack(inventory: str) -> dict[str, Any]:
    name = variables(inventory, "workers")["stack"]
    return dict(yaml.safe_load((ROOT / "stacks" / f"{name}.yml").read_text()))


def platform(template: str) -> str:
    """The system of a template by its name: ubuntu-2204 is ubuntu-22.04."""
    return re.sub(r"^(ubuntu)-(\d\d)(\d\d)$", r"\1-\2.\3", template)


def test_tests_cover_every_example_inventory() -> None:
    assert sorted(path.name for path in (ROOT / "inventories").iterdir()) == sorted([*EXAMPLES, *LABS])


def test_template_has_a_platform_of_the_stack(clusters: dict[str, Any], stack: dict[str, Any]) -> None:
    assert platform(clusters["worker_defaults"]["template"]) in stack["platforms"]


def test_the_stack_fits_the_gpu_and_the_manager(clusters: dict[str, Any], stack: dict[str, Any]) -> None:
    vibs = clusters["esxi_host_profile"].get("vibs", [])
    managers = [one["version"].partition("-")[0] for one in vibs if is_manager(one["name"])]
    assert bool(managers) is (stack["gpu"]["attachment"] == "vgpu")
    assert clusters["preflight_gpu"] in stack["gpu"]["models"]
    around = NodeEnvironment(
        platform(clusters["worker_defaults"]["template"]), clusters["preflight_gpu"], managers[0] if managers else None
    )
    assert misfits(stack, FACTS, around) == []
    assert not_established(stack, FACTS, around) == []


def test_gpus_are_attached_as_the_stack_expects(clusters: dict[str, Any], stack: dict[str, Any]) -> None:
    workers = [clusters["worker_defaults"], *clusters["worker_vms"]]
    keys = {key for one in workers for gpu in one.get("gpus", []) for key in gpu if key in {"profile", "device"}}
    assert keys == ({"profile"} if stack["gpu"]["attachment"] == "vgpu" else {"device"})


def test_ansible_logs_in_as_the_guests_user(inventory: str, clusters: dict[str, Any]) -> None:
    assert variables(inventory, "workers")["ansible_user"] == clusters["worker_defaults"]["guest"]["user"]
