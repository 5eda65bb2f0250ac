"""The JSON schema for editors follows the roles, accepts the inventories of this checkout, and finds wrong types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tools import inventory_schema

ROOT = Path(__file__).parents[2]
CHECK = jsonschema.Draft202012Validator(inventory_schema.schema())


@pytest.mark.parametrize("path", sorted(ROOT.glob("inventories/*/group_vars/*.yml")), ids=str)
def test_the_inventories_of_this_checkout_are_valid(path: Path) -> None:
    CHECK.validate(yaml.safe_load(path.read_text()) or {})


@pytest.mark.parametrize(
    ("variables", "is_valid"),
    [
        ({"worker_vms": [{"name": "w1"}], "worker_one_per_host": False, "my_site": 1}, True),
        ({"worker_vms": "{{ my_workers }}"}, True),
        ({"worker_vms": {"w1": {}}}, False),
        ({"worker_rules_name": None}, False),
        ({"acceptance_hosts": ["esx01"], "vsphere_port": "{{ port }}"}, True),
        ({"acceptance_hosts": "esx01"}, False),
        ({"vsphere_port": "seven"}, False),
        ({"worker_one_per_host": 3}, False),
        ({"esxi_host_moved_by": "hand"}, False),
    ],
)
def test_a_wrong_type_is_found(variables: dict[str, Any], is_valid: bool) -> None:
    assert CHECK.is_valid(variables) is is_valid
