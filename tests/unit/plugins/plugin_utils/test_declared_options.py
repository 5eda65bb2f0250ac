"""Modules and actions get the options of the role that sets them."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from plugins.action import esxi_rollout as rollout_action
from plugins.action import vmotion_test as test_action
from plugins.doc_fragments.roles import ModuleDocFragment
from plugins.modules import esxi_rollout, vmotion_test


@pytest.mark.parametrize(
    ("module", "fragment", "arguments"),
    [
        (vmotion_test, ModuleDocFragment.VMOTION_TEST, {**test_action.OPTIONS, "of_role": {"type": "bool"}}),
        (esxi_rollout, ModuleDocFragment.ESXI_HOST, rollout_action.ARGUMENTS),
    ],
)
def test_module_documents_the_options_of_its_action(module: Any, fragment: str, arguments: dict[str, Any]) -> None:
    documented = {**yaml.safe_load(fragment)["options"], **yaml.safe_load(module.DOCUMENTATION)["options"]}

    assert set(documented) == set(arguments)
    assert {name: documented[name]["type"] for name in documented} == {
        name: arguments[name]["type"] for name in arguments
    }
    linked = re.findall(r"\bO\(([a-z_]+)\)", yaml.safe_dump(documented, width=10_000) + module.DOCUMENTATION)
    assert linked
    assert set(linked) <= set(documented)


def test_action_has_no_template_of_its_role() -> None:
    assert rollout_action.ARGUMENTS["cluster"] == {"type": "str", "required": True}
    assert test_action.OPTIONS["run_dir"] == {"type": "path", "default": ""}
    assert (test_action.OPTIONS["nodes"]["default"], test_action.OPTIONS["kubernetes"]["default"]) == ([], {})
    assert rollout_action.ARGUMENTS["host_profiles"] == {"type": "dict", "default": {}}
    assert "options" not in rollout_action.ARGUMENTS["window"]["options"]["notify"]
