"""A folder of a user that names commands for git runs none of them on the controller."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.ansible import Ansible

ACCOUNT = {"VMWARE_HOST": "vc", "VMWARE_USER": "somebody", "VMWARE_PASSWORD": "hush-hush"}
SPY = "#!/bin/sh\nenv >> '{out}'\ncat\n"
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a repository whose settings and attributes name a program for each status."""
    made, spy = tmp_path / "mine", tmp_path / "spy"
    made.mkdir()
    spy.write_text(SPY.format(out=tmp_path / "ran"))
    spy.chmod(0o755)
    (made / "train.py").write_text("pass\n")
    for words in (["init", "-q"], ["add", "."], [*AUTHOR, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(made), *words], check=True)
    with (made / ".git" / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = {spy}\n[filter "spy"]\n\tclean = {spy}\n')
    (made / ".gitattributes").write_text("* filter=spy\n")
    (made / "train.py").write_text("exit\n")
    return made


@pytest.mark.parametrize("check", [True, False])
def test_hostile_folder_runs_no_command(tmp_path: Path, folder: Path, check: bool) -> None:
    head = subprocess.run(["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    ansible = Ansible(ACCOUNT, tmp_path)
    paths: dict[str, Any] = {"path": str(folder), "dest": str(tmp_path / "work"), "store": str(tmp_path / "store")}

    copied = ansible.adhoc("training_folder", check=check, **paths)

    assert copied.rc == 0, copied.out
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()
    found = copied.result["git"]
    assert (found["commit"], found["changed"], len(found["changes_sha256"])) == (head.stdout.strip(), 1, 64)
    assert (tmp_path / "work" / "train.py").exists() is not check
