"""Locks that someone holds forever, and links where a lock is expected: what role alone makes of both."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import yaml

from tests.integration.ansible import BIN, Ansible

# Only root makes folders of root's; in a user namespace every user is root.
AS_ROOT = [] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user"]


def attempt(name: str, folder: Path) -> dict[str, object]:
    """Tasks that include the role and tell how that ended."""
    role = {
        "ansible.builtin.include_role": {"name": "dml.vsphere.alone"},
        "vars": {"alone_work": "build", "alone_folder": str(folder), "alone_seconds": 1},
    }
    report = "ansible.builtin.debug"
    return {
        "name": name,
        "block": [{"name": "Wait", **role}, {"name": "Tell", report: {"msg": f"{name} may go on"}}],
        "rescue": [{"name": "Tell", report: {"msg": f"{name} failed: {{{{ ansible_failed_result.msg }}}}"}}],
    }


def run(folder: Path, *attempts: dict[str, object]) -> str:
    """Return the output of the attempts, in one line."""
    path = folder / "play.yml"
    path.write_text(
        yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": list(attempts)}])
    )
    ended = Ansible({}, folder).run([*AS_ROOT, str(BIN / "ansible-playbook"), "-i", "localhost,", str(path)])
    assert ended.returncode == 0, ended.stdout
    return " ".join(ended.stdout.split())


def test_accepts_only_locks_of_root_without_following_links(tmp_path: Path) -> None:
    free, held, open_to_all, link = (tmp_path / name for name in ("free", "held", "open", "link"))
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o755)
    (victim / "build").write_text("precious")
    link.symlink_to(victim)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (open_to_all / "build").symlink_to(victim / "build")
    held.mkdir(mode=0o700)
    with (held / "build").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        output = run(tmp_path, *(attempt(one.name, one) for one in (free, held, open_to_all, link)))
    assert "free may go on" in output
    assert free.stat().st_mode & 0o777 == 0o700
    assert (
        f"held failed: localhost cannot continue with build: a process of an earlier run still held {held}/build"
        in output
    )
    assert "link failed: " in output
    assert f"{link} already exists as a link" in output
    # A folder that was open to all is closed, and what a link in it names keeps its content.
    assert "open may go on" in output
    assert open_to_all.stat().st_mode & 0o777 == 0o700
    assert (victim / "build").read_text() == "precious"
    assert victim.stat().st_mode & 0o777 == 0o755
