"""The features of each vSphere version: simulator, README and modules agree with the type tables of pyVmomi."""

from __future__ import annotations

import re

import pytest

from plugins.module_utils.hosts import graphics
from plugins.module_utils.maintenance import maintenance_mode
from plugins.module_utils.workers.capacity import host_capacity, server_capacity
from tools import versions

NEWEST_KNOWN = max(versions.versions(), key=versions.numbers)
COMPLETE = versions.numbers(NEWEST_KNOWN) >= versions.numbers(versions.NEWEST)


def test_simulator_table_agrees_with_pyvmomi() -> None:
    written = [line for line in versions.TABLE.read_text().splitlines() if not line.startswith("#")]
    if COMPLETE:
        assert versions.TABLE.read_text() == versions.table(), "run python tools/versions.py"
    listed = {name: number for number, _blank, name in (line.partition(" ") for line in written) if name}
    known = versions.since()
    assert known and {name: listed.get(name) for name in known} == known, "an older pyVmomi knows a part of it"


@pytest.mark.parametrize(
    ("guard", "needs"),
    [
        (server_capacity.SINCE, "ServiceContent.directPathProfileManager"),
        (host_capacity.BINDING_SINCE, "HostAssignableHardwareBinding.pciId"),
        (maintenance_mode.NON_DISRUPTIVE_SINCE, "HostMaintenanceSpec.evacMode"),
        (graphics.MODES_SINCE, "HostGraphicsInfo.vgpuMode"),
    ],
)
def test_version_guard_matches_the_required_api(guard: tuple[int, ...], needs: str) -> None:
    number = versions.numbers(versions.since()[needs])
    assert guard == number[: len(guard)] and not any(number[len(guard) :])


def test_each_feature_is_newer_than_the_oldest_release() -> None:
    assert all(one.needs in versions.since() for one in versions.FEATURES)


@pytest.mark.parametrize(
    ("number", "called"), [("8.0.2.1", "8.0 U2"), ("8.0.3.0", "8.0 U3"), ("9.0.0.0", "9.0"), ("9.1.0.0", "9.1")]
)
def test_shows_the_release_name_of_a_version(number: str, called: str) -> None:
    assert re.fullmatch(called, versions.release(number))
