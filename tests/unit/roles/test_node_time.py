"""The role node installs chrony on images of Debian and Ubuntu, whose time service conflicts with it."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.rendering import ROLES, rendered, task_of, variables

# The options of the role packages with which apt must not remove a package: apt-get --no-remove.
INSTALL: dict[str, Any] = yaml.safe_load((ROLES / "packages" / "tasks" / "apt.yml").read_text())[-1]


def removes(**registered: object) -> bool:
    """Return whether apt may remove a package that conflicts with chrony."""
    task = task_of("node", "time.yml", "Install chrony")
    known = {**variables("packages"), **task["vars"], "ansible_facts": {"os_family": "Debian"}, **registered}
    replace = rendered(str(known["packages_replace"]), **known)
    return not rendered(INSTALL["ansible.builtin.apt"]["fail_on_autoremove"], **{**known, "packages_replace": replace})


@pytest.mark.parametrize(
    ("found", "may_remove"),
    [
        ({"stdout": "installed"}, True),
        # Removed with its settings left, unknown to dpkg, and not asked on Rocky.
        ({"stdout": "config-files"}, False),
        ({"stdout": ""}, False),
        ({"skipped": True}, False),
    ],
)
def test_chrony_replaces_timesyncd_and_nothing_else(found: dict[str, object], may_remove: bool) -> None:
    assert removes(__node_timesyncd=found) == may_remove
