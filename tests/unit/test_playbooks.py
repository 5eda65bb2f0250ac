# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every play that talks to vCenter takes the connection from one file, which has each option of a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.doc_fragments.connection import ModuleDocFragment

ROOT = Path(__file__).parents[2]
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.yml"))
CONNECTION = ROOT / "playbooks" / "vars" / "connection.yml"


def test_the_connection_gives_every_option_and_leaves_out_what_is_not_set() -> None:
    given = yaml.safe_load(CONNECTION.read_text())["vsphere_connection"]
    options = yaml.safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    assert given == {option: f"{{{{ vsphere_{option} | default(omit) }}}}" for option in options}


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda playbook: playbook.name)
def test_a_play_names_the_connection_and_does_not_repeat_it(playbook: Path) -> None:
    plays: list[dict[str, Any]] = [play for play in yaml.safe_load(playbook.read_text()) if "hosts" in play]
    defaults = [play["module_defaults"] for play in plays if "module_defaults" in play]
    assert all(given == {"group/dml.vsphere.vsphere": "{{ vsphere_connection }}"} for given in defaults)
    assert all(play["vars_files"] == ["vars/connection.yml"] for play in plays if "module_defaults" in play)
    on_clusters = [play for play in plays if play["hosts"] == "clusters" and play.get("roles")]
    assert all("module_defaults" in play for play in on_clusters)
