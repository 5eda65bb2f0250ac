# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An option of the connection means the same in every module: what a module calls so is its own no more."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import yaml

from plugins.module_utils.vsphere import session

MODULES = sorted((Path(__file__).parents[4] / "plugins" / "modules").glob("*.py"))
CONNECTED = [path.stem for path in MODULES if "dml.vsphere.connection" in path.read_text()]


@pytest.mark.parametrize("name", CONNECTED)
def test_no_option_of_a_module_takes_the_place_of_one_of_the_connection(name: str) -> None:
    """Else the timeout of a move would be how long vCenter may be silent, and the reverse."""
    module = importlib.import_module(f"plugins.modules.{name}")
    documented = set(yaml.safe_load(module.DOCUMENTATION)["options"])
    assert documented & set(session.arguments()) == set()
    assert set(getattr(module, "ARGUMENTS", {})) & set(session.arguments()) == set()
