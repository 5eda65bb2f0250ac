"""The README is short, and each of its commands names a playbook, options and targets that exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

from plugins.module_utils.core.run_request import RunRequest, problems
from tests.unit.test_playbooks import known

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/cluster.md", "roles/vmotion_test/README.md", "roles/esxi_host/README.md")
COMMANDS = [
    (page, line)
    for page in PAGES
    for line in re.findall(r"^ansible-playbook .*$", (ROOT / page).read_text(), re.MULTILINE)
]
GROUPS = {"clusters": ["gpu"], "workers": ["worker01"]}


def test_readme_has_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_finds_commands_to_check() -> None:
    assert len(COMMANDS) > 15


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_command_has_a_playbook_and_known_variables(page: str, command: str) -> None:
    words = shlex.split(command)
    (playbook,) = [word.removeprefix("dml.vsphere.") for word in words if word.startswith("dml.vsphere.")]
    assert (ROOT / "playbooks" / f"{playbook}.yml").is_file()
    given = [words[index + 1] for index, word in enumerate(words) if word == "-e"]
    names = tuple(name for text in given for name in (yaml.safe_load(text) if text[0] == "{" else [text.split("=")[0]]))
    request = RunRequest(playbooks=(playbook,), extra=names, groups=GROUPS)
    assert problems(known(), request, playbook, "clusters") == []
