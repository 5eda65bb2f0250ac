"""Advanced options: the host defines their types, refusals come before any write, and boot options wait for a boot."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pyVmomi import VmomiSupport, vim

from plugins.module_utils import runner
from plugins.module_utils.hosts.advanced_option import PART, AdvancedOptions, facts, paths_of
from plugins.module_utils.hosts.rollback.rollback import Before
from tests.fakes.esxi import BOOTED, FakeHost, FakeOptions, refresh
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


def facts_of(esx: FakeHost, *keys: str) -> dict[str, Any]:
    esx.refresh()
    return facts(esx, dict.fromkeys(keys))


def converge(*hosts: FakeHost, check: bool = False, desired: Any = None) -> dict[str, Any]:
    subjects = [AdvancedOptions(esx, desired or DESIRED) for esx in hosts]
    return runner.converge(FakeModule(check_mode=check), runner.Work(subjects=subjects, refresh=refresh))


def test_sends_each_value_with_the_hosts_type() -> None:
    esx = host()
    converge(esx, desired={FAILURES: 3, MOB: "yes", LOGHOST: 514})
    sent = dict(esx.writes[0][1:])
    assert sent == {FAILURES: 3, MOB: True, LOGHOST: "514"}
    # pyVmomi's long is an int, and so is a bool: only the exact type shows what is sent.
    assert [sent[key].__class__ for key in (FAILURES, MOB)] == [VmomiSupport.long, bool]


def test_accepts_hosts_that_omit_defaults_and_types() -> None:
    esx = host(lists_types=False)
    del esx.sources[f'config.option["{FAILURES}"].value']
    assert not converge(esx, desired={FAILURES: 5})["changed"]
    assert esx.writes == []


def test_finds_a_key_with_brackets() -> None:
    esx = host()
    assert facts_of(esx, LEVEL) == {LEVEL: "verbose"} and paths_of({LEVEL: ""})[-1] == "config.option"
    assert not converge(esx, desired={LEVEL: "verbose"}, check=True)["changed"]
    changed = converge(esx, desired={LEVEL: "info", FAILURES: 3})
    assert changed["diff"][0]["before"] == {LEVEL: "verbose", FAILURES: 5} and esx.settled == [True]
    assert esx.options.values[LEVEL] == "info" and not converge(esx, desired={LEVEL: "info"})["changed"]


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


def test_reports_all_reasons_except_unchanged_read_only_options() -> None:
    result = converge(host(), desired={FAILURES: 101, THREADS: 2, "Misc.Made": "2026"})
    assert FAILURES in result["msg"] and THREADS in result["msg"] and "Misc.Made" not in result["msg"]


def test_boot_option_needs_a_reboot_until_it_happens() -> None:
    esx, desired = host(), {THREADS: 0}
    assert converge(esx, desired=desired)["needs"] == ["reboot"]
    again = converge(esx, desired=desired)
    assert not again["changed"] and again["hosts"][0]["why"] == [f"{THREADS} takes effect only when the host boots"]
    assert converge(esx, desired={THREADS: 1}, check=True)["needs"] == []
    esx.has(runtime__bootTime=BOOTED + timedelta(minutes=10))
    assert converge(esx, desired=desired)["needs"] == []


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
