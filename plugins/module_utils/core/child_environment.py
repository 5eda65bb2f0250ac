"""The environment of child processes: none of them gets the vCenter account, because none connects to vCenter."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

# The names of the environment variables of the connection, in vsphere/session.py, begin with this.
ACCOUNT = "VMWARE_"
LOGIN = ("VMWARE_USER", "VMWARE_PASSWORD")
# The values that this process hides. Ansible forks it for each task.
_hidden: dict[str, str] = {}


def hide_login(environment: MutableMapping[str, str]) -> None:
    """Remove the user and the password from the environment of this process and of its later child processes."""
    for name in LOGIN:
        if name in environment:
            _hidden[name] = environment.pop(name)


def login(name: str, environment: Mapping[str, str]) -> str:
    """Return the user or the password from the environment, even if this process hides it; empty if it is not set."""
    return environment.get(name) or _hidden.get(name, "")


def account_names(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that contain the vCenter account."""
    return [name for name in environment if name.startswith(ACCOUNT)]


def without_account(environment: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of the environment without the vCenter account."""
    hidden = account_names(environment)
    return {name: value for name, value in environment.items() if name not in hidden}
