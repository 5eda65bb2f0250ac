"""Advanced options: the host defines their types, refusals come before any write, and boot options wait for a boot."""

from __future__ import annotations

from typing import Any

import pytest
from pyVmomi import vim

from plugins.module_utils import runner
from plugins.module_utils.hosts.advanced_option import PART, AdvancedOptions, facts, paths_of
from plugins.module_utils.hosts.rollback.rollback import Before
from tests.fakes.esxi import FakeHost, FakeOptions, refresh
from tests.fakes.module import FakeModule

FAILURES, LOGHOST, MOB, THREADS = (
    "Security.AccountLockFailures", "Syslog.global.logHost", "Config.HostAgent.plugins.solo.enableMob",
    "VMkernel.Boot.hyperthreading",
)  # fmt: skip
# As hosts with ESXi 7 and 8 return it.
LEVEL = "Config.HostAgent.level[Vmsvc].logLevel"
OPTION = vim.option
TYPES: dict[str, Any] = {
    FAILURES: OPTION.LongOption(min=0, max=100, defaultValue=5, valueIsReadonly=False),
    LOGHOST: OPTION.StringOption(defaultValue="", valueIsReadonly=False),
    MOB: OPTION.BoolOption(supported=True, defaultValue=False),
    THREADS: OPTION.LongOption(min=0, max=1, defaultValue=1),
    "Misc.Policy": OPTION.ChoiceOption(
        choiceInfo=[OPTION.OptionDef(key=key, label=key, summary=key) for key in ("fixed", "mru")], defaultIndex=1
    ),
    "Misc.Made": OPTION.StringOption(defaultValue="", valueIsReadonly=True),
    "Net.PVRDMAVmknic": OPTION.StringOption(defaultValue=""),
    LEVEL: OPTION.StringOption(defaultValue="", valueIsReadonly=False),
}
VALUES = {LEVEL: "verbose", FAILURES: 5, LOGHOST: "", MOB: False, THREADS: 1, "Misc.Policy": "mru", "Misc.Made": "2026"}
DESIRED = {FAILURES: "3", LOGHOST: "udp://log.lab"}


def host(name: str = "esx01.lab", lists_types: bool = True) -> FakeHost:
    made = FakeHost(name)
    made.options = FakeOptions(made, **VALUES)
    made.options.listed = 0
    if lists_types:
        made.properties_of({f'config.optionDef["{key}"].optionType': kind for key, kind in TYPES.items()})
    made.options.supportedOption = [OPTION.OptionDef(key=key, optionType=kind) for key, kind in TYPES.items()]
    return made


def converge(*hosts: FakeHost, check: bool = False, desired: Any = None) -> dict[str, Any]:
    subjects = [AdvancedOptions(esx, desired or DESIRED) for esx in hosts]
    return runner.converge(FakeModule(check_mode=check), runner.Work(subjects=subjects, refresh=refresh))


@pytest.mark.parametrize(
    ("desired", "message"),
    [
        ({FAILURES: 101}, f"{FAILURES}: 101 is not within 0 to 100"),
        ({FAILURES: "many"}, f"{FAILURES}: 'many' is not a number"),
        ({FAILURES: None}, f"{FAILURES}: it has no value"),
        ({MOB: "maybe"}, f"{MOB}: 'maybe' is not true or false"),
        ({"Misc.Policy": "rr"}, "Misc.Policy: 'rr' is not one of fixed, mru"),
        ({"Misc.Made": "2027"}, "Misc.Made: the host does not allow a change from '2026'"),
        ({"Net.PVRDMAVmknic": "vmk1"}, "Net.PVRDMAVmknic: use esxi_pvrdma"),
        ({"Security.AccountLockFailure": 3}, f"the host has no such option; similar options: {FAILURES}"),
        ({'x"]': 3}, 'x"]: the host has no such option; similar options: none'),
    ],
)  # fmt: skip
def test_refuses_a_forbidden_value_before_any_write(desired: dict[str, Any], message: str) -> None:
    hosts = host("esx01.lab"), host("esx02.lab")
    result = converge(*hosts, desired={LOGHOST: "udp://log.lab", **desired})
    assert result["failed"] and "could not set them: " in result["msg"] and message in result["msg"]
    assert hosts[0].writes == hosts[1].writes == []


def test_reads_only_named_options_and_restores_them() -> None:
    assert f'config.option["{FAILURES}"].value' in paths_of(DESIRED) and not any(
        MOB in path for path in paths_of(DESIRED)
    )
    esx, desired = host(), {**DESIRED, "No.Such": 1}
    esx.refresh()
    entry = {"host": esx.name, "advanced_options": facts(esx, desired)}
    assert entry["advanced_options"] == {FAILURES: 5, LOGHOST: "", "No.Such": None}
    converge(esx)
    back = PART.restore(Before(entry, {"advanced_options": desired}))["advanced_options"]
    assert back == {FAILURES: 5, LOGHOST: ""}
    converge(esx, desired=back)
    assert esx.options.values == VALUES
