"""An option of the connection means the same in every module: what a module calls so is its own no more."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import yaml

from plugins.module_utils.errors import Refused
from plugins.module_utils.vsphere import session

MODULES = sorted((Path(__file__).parents[4] / "plugins" / "modules").glob("*.py"))
CONNECTED = [path.stem for path in MODULES if "dml.vsphere.connection" in path.read_text()]


@pytest.mark.parametrize("name", CONNECTED)
def test_module_options_do_not_shadow_connection_options(name: str) -> None:
    """Else the timeout of a move would be how long vCenter may be silent, and the reverse."""
    module = importlib.import_module(f"plugins.modules.{name}")
    documented = set(yaml.safe_load(module.DOCUMENTATION).get("options", {}))
    assert documented & set(session.arguments()) == set()
    assert set(getattr(module, "ARGUMENTS", {})) & set(session.arguments()) == set()


@pytest.mark.parametrize(
    ("given", "missing"),
    [
        ({}, "hostname and username and password are not set"),
        ({"hostname": "vcenter.lab", "username": "someone"}, "password is not set"),
        ({"hostname": "", "username": "someone", "password": "secret"}, "hostname is not set"),
    ],
)
def test_missing_connection_error_lists_all_connection_settings(given: dict[str, str], missing: str) -> None:
    params = {"port": 443, "timeout": 60, "validate_certs": True, **given}
    with pytest.raises(Refused) as refused, session.session(params):
        pass
    assert str(refused.value) == (
        f"vCenter: could not connect: {missing}; set the environment variables VMWARE_HOST, VMWARE_USER, "
        "VMWARE_PASSWORD, or the variables vsphere_hostname, vsphere_username, vsphere_password"
    )
    specs = session.arguments()
    assert not any(specs[option].get("required") for option in session.NEEDED)
