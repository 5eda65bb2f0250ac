"""The options of a vMotion test have the same names, types and choices in the action, in its module and in its role."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from plugins.module_utils.vmotion.trial.settings import OPTIONS
from plugins.modules import vmotion_test

ROOT = Path(__file__).parents[6]
ROLE = ROOT / "roles" / "vmotion_test" / "meta" / "argument_specs.yml"
TYPED = ("type", "elements", "choices")
# Both are text, of which only the role knows that it is a path.
PATHS = {"folder"}
# A play gives the job to the role as one mapping; only the role ends a window.
OF_ROLE, OF_ACTION = {"job"}, {"ending"}


def typed(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: spec[key] for key in TYPED if key in spec}


def test_the_role_has_each_option_of_the_action_with_its_type() -> None:
    role = yaml.safe_load(ROLE.read_text())["argument_specs"]["main"]["options"]
    options = {name.removeprefix("vmotion_test_"): typed(spec) for name, spec in role.items()}
    options = {name: spec for name, spec in options.items() if name not in OF_ROLE}
    expected = {name: typed(spec) for name, spec in OPTIONS.items() if name not in OF_ACTION}
    assert {name: spec for name, spec in options.items() if name not in PATHS} == {
        name: spec for name, spec in expected.items() if name not in PATHS
    }
    assert set(options) == set(expected)


def test_the_module_documents_each_option_with_its_type_and_default() -> None:
    documented = yaml.safe_load(vmotion_test.DOCUMENTATION)["options"]
    assert set(documented) == {*OPTIONS, "of_role"}
    for name, spec in OPTIONS.items():
        assert typed(documented[name]) == typed(spec), name
        assert documented[name].get("default") == spec.get("default"), name
