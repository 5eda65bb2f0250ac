# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Advanced options: typed by the host, refused before any write, read back, owed until a boot where ESXi wants one."""

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
    "Security.AccountLockFailures", "Syslog.global.logHost", "Config.HostAgent.mob", "VMkernel.Boot.hyperthreading",
)  # fmt: skip
# As hosts of ESXi 7 and 8 have it.
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


def facts_of(one: FakeHost, *keys: str) -> dict[str, Any]:
    one.refresh()
    return facts(one, dict.fromkeys(keys))


def converge(*hosts: FakeHost, check: bool = False, desired: Any = None) -> dict[str, Any]:
    subjects = [AdvancedOptions(one, desired or DESIRED) for one in hosts]
    return runner.converge(FakeModule(check_mode=check), runner.Work(subjects=subjects, refresh=refresh))


def test_check_apply_check_apply_on_two_hosts() -> None:
    hosts = host("esx01.lab"), host("esx02.lab")
    planned = converge(*hosts, check=True)
    assert planned["changed"] and hosts[0].writes == []
    assert planned["diff"][0]["before"] == {FAILURES: 5, LOGHOST: ""}
    assert planned["diff"][0]["after"] == {FAILURES: 3, LOGHOST: "udp://log.lab"}
    applied = converge(*hosts)
    assert applied["diff"] == planned["diff"] and applied["needs"] == []
    for one in hosts:
        assert one.writes == [("UpdateOptions", (FAILURES, 3), (LOGHOST, "udp://log.lab"))] and one.settled == [True]
    for check in (True, False):
        assert not converge(*hosts, check=check)["changed"]
    assert [len(one.writes) for one in hosts] == [1, 1]


def test_each_value_is_sent_as_the_type_that_the_host_gives_the_option() -> None:
    one = host()
    converge(one, desired={FAILURES: 3, MOB: "yes", LOGHOST: 514})
    sent = dict(one.writes[0][1:])
    assert sent == {FAILURES: 3, MOB: True, LOGHOST: "514"}
    # pyVmomi's long is an int, and so is a bool: only the exact type tells what is sent.
    assert [sent[key].__class__ for key in (FAILURES, MOB)] == [VmomiSupport.long, bool]


def test_a_host_need_not_list_an_option_that_has_its_default_nor_the_types_among_its_properties() -> None:
    one = host(lists_types=False)
    del one.sources[f'config.option["{FAILURES}"].value']
    assert not converge(one, desired={FAILURES: 5})["changed"]
    assert one.writes == []


def test_a_key_with_brackets_is_found_among_all_options() -> None:
    one = host()
    assert facts_of(one, LEVEL) == {LEVEL: "verbose"} and paths_of({LEVEL: ""})[-1] == "config.option"
    assert not converge(one, desired={LEVEL: "verbose"}, check=True)["changed"]
    changed = converge(one, desired={LEVEL: "info", FAILURES: 3})
    assert changed["diff"][0]["before"] == {LEVEL: "verbose", FAILURES: 5} and one.settled == [True]
    assert one.options.values[LEVEL] == "info" and not converge(one, desired={LEVEL: "info"})["changed"]


@pytest.mark.parametrize(
    ("desired", "said"),
    [
        ({FAILURES: 101}, f"{FAILURES}: 101 is not within 0 to 100"),
        ({FAILURES: "many"}, f"{FAILURES}: 'many' is not a number"),
        ({FAILURES: None}, f"{FAILURES}: it has no value"),
        ({MOB: "maybe"}, f"{MOB}: 'maybe' is not true or false"),
        ({"Misc.Policy": "rr"}, "Misc.Policy: 'rr' is not one of fixed, mru"),
        ({"Misc.Made": "2027"}, "Misc.Made: the host does not let it be changed from '2026'"),
        ({"Net.PVRDMAVmknic": "vmk1"}, "Net.PVRDMAVmknic: esxi_pvrdma sets it"),
        ({"Security.AccountLockFailure": 3}, f"the host has no such option; similar are {FAILURES}"),
        ({'x"]': 3}, 'x"]: the host has no such option; similar are none'),
    ],
)  # fmt: skip
def test_what_a_host_does_not_allow_is_refused_before_any_write(desired: dict[str, Any], said: str) -> None:
    hosts = host("esx01.lab"), host("esx02.lab")
    result = converge(*hosts, desired={LOGHOST: "udp://log.lab", **desired})
    assert result["failed"] and "could not set them: " in result["msg"] and said in result["msg"]
    assert hosts[0].writes == hosts[1].writes == []


def test_all_reasons_are_told_at_once_and_a_read_only_option_may_keep_its_value() -> None:
    result = converge(host(), desired={FAILURES: 101, THREADS: 2, "Misc.Made": "2026"})
    assert FAILURES in result["msg"] and THREADS in result["msg"] and "Misc.Made" not in result["msg"]


def test_an_option_of_the_boot_owes_a_reboot_until_the_host_has_booted() -> None:
    one, desired = host(), {THREADS: 0}
    assert converge(one, desired=desired)["needs"] == ["reboot"]
    again = converge(one, desired=desired)
    assert not again["changed"] and again["hosts"][0]["why"] == [f"{THREADS} takes effect only when the host boots"]
    assert converge(one, desired={THREADS: 1}, check=True)["needs"] == []
    one.has(runtime__bootTime=BOOTED + timedelta(minutes=10))
    assert converge(one, desired=desired)["needs"] == []


def test_a_deaf_host_fails_and_its_neighbour_does_not() -> None:
    deaf, good = host("esx01.lab"), host("esx02.lab")
    deaf.deaf = True
    result = converge(deaf, good)
    said = f"esx01.lab: could not change advanced options: the server accepted the change, yet {FAILURES}"
    assert result["failed"] and said in result["msg"]
    assert "esx02.lab" not in result["msg"] and good.options.values[FAILURES] == 3


def test_a_fault_becomes_one_sentence() -> None:
    one = host()
    one.faults["UpdateOptions"] = vim.fault.NoPermission(privilegeId="Host.Config.AdvancedConfig")
    msg = converge(one)["msg"]
    assert f"esx01.lab: could not set its advanced options {FAILURES}, {LOGHOST}: " in msg
    assert "privilege Host.Config.AdvancedConfig is missing" in msg


def test_only_the_named_options_are_read_and_evidence_of_them_restores_the_host() -> None:
    assert f'config.option["{FAILURES}"].value' in paths_of(DESIRED) and not any(
        MOB in path for path in paths_of(DESIRED)
    )
    one, wanted = host(), {**DESIRED, "No.Such": 1}
    one.refresh()
    entry = {"host": one.name, "advanced_options": facts(one, wanted)}
    assert entry["advanced_options"] == {FAILURES: 5, LOGHOST: "", "No.Such": None}
    converge(one)
    back = PART.restore(Before(entry, {"advanced_options": wanted}))["advanced_options"]
    assert back == {FAILURES: 5, LOGHOST: ""}
    converge(one, desired=back)
    assert one.options.values == VALUES
