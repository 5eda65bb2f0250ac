"""Options of kernel modules: merged by key, and different from the active ones until the host boots."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from plugins.module_utils import runner
from plugins.module_utils.errors import Failed, Refused
from plugins.module_utils.hosts.kernel_module import KernelModule, plan_known, plan_options
from tests.fakes.esxi import BOOTED, FakeEsxcli, FakeHost, FakeKernelModules, refresh
from tests.fakes.module import FakeModule

DESIRED = {"pfctx": "0x08", "pfcrx": 8}


def host(name: str = "esx01.lab", text: str = "max_vfs=8,8") -> FakeHost:
    made = FakeHost(name)
    made.modules = FakeKernelModules(made, nmlx5_core=text, nmlx5_rdma="")
    return made


def converge(*hosts: FakeHost, check: bool = False, module: str = "nmlx5_core", desired: Any = None) -> dict[str, Any]:
    work = runner.Work(
        subjects=[KernelModule(esx, module) for esx in hosts],
        refresh=refresh,
        make_plan=lambda current: plan_options(current, desired or DESIRED),
    )
    return runner.converge(FakeModule(check_mode=check), work)


def test_refuses_an_option_invalid_in_an_option_string() -> None:
    with pytest.raises(Refused, match="two words"):
        plan_options({"options": {}, "active": {}}, {"pfctx": "two words"})


@pytest.mark.parametrize("seconds", [-29, -1, 1, 29])
def test_a_corrected_clock_is_not_a_boot(seconds: int) -> None:
    esx = host()
    converge(esx)
    esx.has(runtime__bootTime=BOOTED + timedelta(seconds=seconds))
    waiting = converge(esx)
    assert not waiting["changed"] and waiting["needs"] == ["reboot"]


def test_shows_a_broken_option_string_without_changing_it() -> None:
    esx = host(text="pfctx=8 pfctx=9")
    result = converge(esx)
    assert "pfctx=8 pfctx=9" in result["msg"] and esx.writes == []


LIST = "system module parameters list"
NAMES = [{"Name": name} for name in ("max_vfs", "pfcrx", "pfctx")]


def planned_with(requested: dict[str, Any], answer: Any, text: str = "max_vfs=8,8") -> tuple[Any, FakeEsxcli]:
    esx = host(text=text)
    esxcli = FakeEsxcli(esx, {LIST: answer})
    subject = KernelModule(esx, "nmlx5_core", requested)
    refresh([subject])
    return plan_known(subject, {"options": requested, "exact": False}, subject.read()), esxcli


def test_refuses_an_unknown_option_with_a_suggestion() -> None:
    with pytest.raises(
        Refused, match=r"nmlx5_core has no parameter max_vsf \(did you mean max_vfs\?\); its parameters"
    ):
        planned_with({"max_vsf": 4}, NAMES)


def refuse(**_options: Any) -> list[dict[str, Any]]:
    raise Failed("esx01.lab", "list the parameters of kernel module nmlx5_core", "esxcli said no")


@pytest.mark.parametrize(("answer", "message"), [(refuse, "esxcli said no"), ([], "lists no parameters")])
def test_warns_when_option_names_cannot_be_compared(answer: Any, message: str) -> None:
    plan, _esxcli = planned_with({"max_vsf": 4}, answer)
    assert plan.after["options"]["max_vsf"] == "4"
    (warning,) = plan.warnings
    assert message in warning and warning.endswith("the names of its options were not checked")
