# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The options and the environment that an action passes to the modules that it runs."""

from __future__ import annotations

import yaml

from plugins.doc_fragments.connection import ModuleDocFragment
from plugins.plugin_utils import modules


def test_an_action_hands_on_each_option_of_the_connection() -> None:
    assert set(modules.CONNECTION) == set(yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"])
