"""The recipe of a compiled wheel decides which workers install it."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar, trust_as_template

VARS = Path(__file__).parents[3] / "roles" / "horovod" / "vars" / "main.yml"


def test_each_tenant_has_its_own_wheels() -> None:
    recipe = yaml.safe_load(VARS.read_text())["__horovod_recipe"]
    found = [
        Templar(loader=DataLoader(), variables=worker).template(trust_as_template(recipe["tenant"]))
        for worker in ({"vm_tenant": "red"}, {"vm_tenant": "blue"}, {})
    ]
    assert found == ["red", "blue", ""]
