"""Options of vCenter, and what counts as true."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils.cluster.shared_settings import vcenter_options
from plugins.module_utils.vsphere.options import is_on, vcenter_option
from plugins.module_utils.workers.capacity.machines import hot_migrate

KEY = "vgpu.hotmigrate.enabled"


class FakeOptions:
    """The options of a vCenter; one that it does not know is a fault."""

    def __init__(self, *options: tuple[str, Any]) -> None:
        self.options = options

    def QueryOptions(self, name: str) -> list[Any]:  # noqa: N802 # as pyVmomi spells it
        # A name stands for all options below it as well.
        found = [vim.option.OptionValue(key=key, value=value) for key, value in self.options if key.startswith(name)]
        if not found:
            raise vim.fault.InvalidName(name=name)
        return found


def session(*options: tuple[str, Any]) -> Any:
    return SimpleNamespace(server="vcenter.lab", content=SimpleNamespace(setting=FakeOptions(*options)))


@pytest.mark.parametrize("value", [True, "TRUE", "true", "True", "1", "yes", "YES", " true ", 1])
def test_recognizes_values_that_vmware_takes_for_true(value: Any) -> None:
    assert is_on(value)


@pytest.mark.parametrize("value", [False, None, "", "FALSE", "false", "0", "no", 0, "2", "off"])
def test_recognizes_values_that_vmware_takes_for_false(value: Any) -> None:
    assert not is_on(value)


@pytest.mark.parametrize(
    ("options", "value", "moves"),
    [
        ([(KEY, True)], True, True),
        ([(KEY, False)], False, False),
        ([(KEY, "1")], True, True),
        ([(KEY, "false")], False, False),
        ([], None, False),
        ([(f"{KEY}.since", "true")], None, False),
    ],
)
def test_all_readers_agree_whether_virtual_gpus_move(options: Any, value: Any, moves: bool) -> None:
    assert vcenter_options(session(*options)) == {KEY: value}
    assert hot_migrate(session(*options)) == moves


def test_an_option_keeps_its_type() -> None:
    assert vcenter_option(session(("a.b", 5)), "a.b") == 5
    assert vcenter_option(session(("a.b", "5")), "a.b") == "5"
    assert vcenter_option(session(), "a.b") is None
