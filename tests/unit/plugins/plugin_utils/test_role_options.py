"""Modules and actions get the options of the role that sets them."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from plugins.action import esxi_rollout as rollout_action
from plugins.action import esxi_window as window_action
from plugins.action import observe as observe_action
from plugins.action import vmotion_test as test_action
from plugins.doc_fragments.roles import ModuleDocFragment
from plugins.modules import esxi_rollout, esxi_window, observe, vmotion_test
from plugins.plugin_utils.role_options import ROLE_OF_HOSTS, requested_of_role

OF_ROLE: dict[str, Any] = {"of_role": {"type": "bool"}}


@pytest.mark.parametrize(
    ("module", "fragment", "arguments"),
    [
        (vmotion_test, ModuleDocFragment.VMOTION_TEST, {**test_action.ActionModule.options, **OF_ROLE}),
        (observe, ModuleDocFragment.OBSERVE, {**observe_action.ActionModule.options, **OF_ROLE}),
        (esxi_window, ModuleDocFragment.ESXI_WINDOW, {**window_action.ActionModule.options, **OF_ROLE}),
        (esxi_rollout, ModuleDocFragment.ESXI_HOST, {**rollout_action.ARGUMENTS, **OF_ROLE}),
    ],
)
def test_module_documents_the_options_of_its_action(module: Any, fragment: str, arguments: dict[str, Any]) -> None:
    documented = {**yaml.safe_load(fragment)["options"], **yaml.safe_load(module.DOCUMENTATION).get("options", {})}

    assert set(documented) == set(arguments)
    assert {name: documented[name]["type"] for name in documented} == {
        name: arguments[name]["type"] for name in arguments
    }
    linked = re.findall(r"\bO\(([a-z_]+)\)", yaml.safe_dump(documented, width=10_000) + module.DOCUMENTATION)
    assert linked
    assert set(linked) <= set(documented)


def test_action_has_no_template_of_its_role() -> None:
    assert rollout_action.ARGUMENTS["cluster"] == {"type": "str", "required": True}
    assert test_action.ActionModule.options["run_dir"] == {"type": "path", "default": ""}
    assert (
        test_action.ActionModule.options["nodes"]["default"],
        test_action.ActionModule.options["kubernetes"]["default"],
    ) == ([], {})
    assert rollout_action.ARGUMENTS["host_profiles"] == {"type": "dict", "default": {}}
    assert "options" not in rollout_action.ARGUMENTS["window"]["options"]["notify"]


@pytest.mark.parametrize(
    ("given", "found"), [({"of_role": True}, {"canary": "esx2"}), ({"of_role": False}, {}), ({}, {})]
)
def test_task_gets_options_of_the_role_on_request(given: dict[str, Any], found: dict[str, Any]) -> None:
    loader = DataLoader()
    action: Any = SimpleNamespace(_loader=loader, _templar=Templar(loader), _task=SimpleNamespace(args=given))

    assert requested_of_role(action, {"esxi_host_canary": "esx2"}, ROLE_OF_HOSTS) == found
    assert action._task.args == {}
