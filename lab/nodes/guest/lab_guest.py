"""Sets the host name, users and keys of a node before logins are possible, as cloud-init does."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
from pathlib import Path
from typing import Any

SETTINGS = Path("/etc/dml-lab/guest.json")
HOST_KEY = Path("/etc/ssh/ssh_host_ed25519_key")


def main() -> None:
    """Apply all settings; a second boot changes nothing."""
    settings = json.loads(SETTINGS.read_text())
    name = settings["hostname"]
    Path("/etc/hostname").write_text(f"{name}\n")
    hosts = Path("/etc/hosts")
    lines = (
        [line for line in hosts.read_text().splitlines() if line.split()[:1] != ["127.0.1.1"]] if hosts.exists() else []
    )
    hosts.write_text("\n".join([*(lines or ["127.0.0.1 localhost"]), f"127.0.1.1 {name}"]) + "\n")
    for path, text in settings["files"].items():
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    for user in settings["users"]:
        add_user(user)
    if not HOST_KEY.exists():
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(HOST_KEY)], check=True)


def add_user(user: dict[str, Any]) -> None:
    """Make a user, and add its authorized keys."""
    name = user["name"]
    try:
        known = pwd.getpwnam(name)
    except KeyError:
        subprocess.run(["useradd", "--create-home", "--shell", user["shell"], name], check=True)
        known = pwd.getpwnam(name)
    if user["sudo"]:
        rule = Path(f"/etc/sudoers.d/90-lab-{name}")
        rule.write_text(f"{name} {user['sudo']}\n")
        rule.chmod(0o440)
    folder = Path(known.pw_dir) / ".ssh"
    keys = folder / "authorized_keys"
    folder.mkdir(mode=0o700, exist_ok=True)
    there = keys.read_text().splitlines() if keys.exists() else []
    keys.write_text("".join(f"{key}\n" for key in [*there, *(key for key in user["keys"] if key not in there)]))
    keys.chmod(0o600)
    for path in (folder, keys):
        os.chown(path, known.pw_uid, known.pw_gid)


if __name__ == "__main__":
    main()
