"""The role node compares the limits of a login in the units of limits.conf, in which they are set."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from typing import Any

import pytest

from plugins.module_utils.guests import node_settings
from tests.rendering import ROLES

PROGRAM = ROLES / "node" / "files" / "limits.py"


def printed(name: str, limit: int) -> dict[str, Any]:
    """Return what the program prints in a process with a limit in the units of the kernel."""

    def lower() -> None:
        resource.setrlimit(getattr(resource, "RLIMIT_" + name.upper()), (limit, limit))

    done = subprocess.run(
        [sys.executable, str(PROGRAM), name], preexec_fn=lower, capture_output=True, text=True, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


# In limits.conf, sizes are in KiB and the time of the processor is in minutes.
@pytest.mark.parametrize(
    ("name", "limit", "requested"),
    [
        ("core", 4096 * 1024, 4096),
        ("stack", 8192 * 1024, "8192"),
        ("memlock", 64 * 1024, 64),
        ("cpu", 3600, 60),
        ("nofile", 128, 128),
    ],
)
def test_limits_match_in_units_of_limits_conf(name: str, limit: int, requested: object) -> None:
    assert node_settings.misfits(printed(name, limit), {name: requested}) == []


def test_missing_limit_is_unlimited() -> None:
    assert node_settings.misfits(printed("cpu", resource.RLIM_INFINITY), {"cpu": "unlimited"}) == []
