# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How govmomi's test scripts are compared, and which data centre they meet here."""

from __future__ import annotations

import pytest
import yaml

from tools import suites, vcsim


def test_reports_failures_of_this_run_unless_known() -> None:
    stock = {"vm: a": True, "vm: b": True, "vm: c": False, "vm: d": True}
    ours = {"vm: a": True, "vm: b": False, "vm: c": False}
    assert suites.differences(stock, ours, {"vm: d": "a reason"}) == [
        "passes against VMware's simulator and fails here: vm: b"
    ]


def test_a_passing_test_must_leave_the_list() -> None:
    stock = {"vm: a": True, "vm: b": False}
    known = dict.fromkeys(("vm: a", "vm: b", "vm: z"), "a reason")
    result = suites.differences(stock, {"vm: a": True, "vm: b": False}, known)
    assert result == [f"passes now, remove it from tests/clients/less.yml: vm: {name}" for name in "ab"]


@pytest.mark.parametrize(
    ("line", "name", "good"),
    [("ok 1 fields", "fields", "ok"), ("not ok 12 vm.create in pool", "vm.create in pool", "not ok")],
)
def test_lines_of_a_suite(line: str, name: str, good: str) -> None:
    found = suites.LINE.match(line)
    assert found and (found[2], found[1]) == (name, good)


def test_each_known_difference_has_its_reason() -> None:
    known = yaml.safe_load(suites.LESS.read_text()) or {}
    assert all(": " in name and len(reason) > 20 for name, reason in known.items())


def test_the_data_centre_has_the_sizes_and_the_names_of_the_stock_program() -> None:
    requested = vcsim.options(["-l", "127.0.0.1:0", "-E", "pipe", "-cluster", "2", "-vm", "4", "-ds", "0"])
    assert requested
    made = vcsim.description(requested)
    assert [one["name"] for one in made["clusters"]] == ["DC0_H0", "DC0_C0", "DC0_C1"] and made["datastores"] == []
    assert (
        len(made["vms"]) == 12
        and made["vms"][0]["name"] == "DC0_H0_VM0"
        and made["vms"][7]
        == {
            "name": "DC0_C0_RP0_VM3",
            "host": "DC0_C0_H0",
            "powered_on": True,
        }
    )


@pytest.mark.parametrize("arguments", [["uuidgen"], ["-dc", "2"], ["-trace"]])
def test_other_calls_are_left_to_the_stock_program(arguments: list[str]) -> None:
    assert vcsim.options(arguments) is None
