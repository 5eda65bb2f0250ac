"""The type of the options of the role training."""

from __future__ import annotations

from pathlib import Path

import yaml

from plugins.module_utils.training.runs.training_options import RoleOptions

SPECIFICATION = Path(__file__).parents[6] / "roles/training/meta/argument_specs.yml"
KINDS = {"str": "str", "path": "str", "int": "int", "bool": "bool", "float": "float", "dict": "Mapping"}


def test_type_has_the_options_of_the_role() -> None:
    options = yaml.safe_load(SPECIFICATION.read_text())["argument_specs"]["main"]["options"]
    declared = {name.partition("_")[2]: KINDS.get(option["type"], "Sequence") for name, option in options.items()}

    typed = {name: hint.__forward_arg__.partition("[")[0] for name, hint in RoleOptions.__annotations__.items()}

    # The words of a command may also be one text.
    commands = dict.fromkeys(("command", "exec"), "str | Sequence")
    assert typed == {**declared, **commands}
