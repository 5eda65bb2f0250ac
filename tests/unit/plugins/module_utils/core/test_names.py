"""The valid forms of machine names and addresses."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.core import names
from plugins.module_utils.core.versions import numbers


@pytest.mark.parametrize("name", ["worker01", "gpu-7.lab", "A_1"])
def test_accepts_a_valid_machine_name(name: str) -> None:
    assert names.is_machine(name)


@pytest.mark.parametrize("name", ["", "-oProxyCommand=touch x", "two words", "w{{ x }}", "w\n", "wörker", "a/b", ".x"])
def test_rejects_an_invalid_machine_name(name: str) -> None:
    assert not names.is_machine(name)


@pytest.mark.parametrize("text", ["10.0.1.11", "192.168.255.255", "2001:db8::1"])
def test_accepts_an_address_of_another_machine(text: str) -> None:
    assert names.address(text) == text


@pytest.mark.parametrize(
    "text",
    [
        *(
            None,
            "",
            "10.0.1",
            "10.0.1.11 ",
            "010.0.1.11",
            "worker01",
            "-oProxyCommand=x",
            "{{ 6 * 7 }}",
            "10.0.1.1{{ 6 }}",
        ),
        *("127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "::1", "::ffff:127.0.0.1", "fe80::1%{{ 6 * 7 }}"),
    ],
)
def test_addresses_of_no_other_machine_are_refused(text: str | None) -> None:
    assert names.address(text) is None


@given(st.text())
def test_accepted_addresses_are_valid(text: str) -> None:
    found = names.address(text)
    assert found is None or str(ipaddress.ip_address(found)) == found


def test_finds_odd_texts_at_any_depth() -> None:
    reported = {"a": ["plain", {"{{ key }}": 1}], "b": ("{% if %}", None, 7), "c": "bell\x07", "d": "team a, 50 % {x}"}
    assert names.odd(reported) == ["{{ key }}", "{% if %}", "bell\x07"]


@given(st.text(), st.sampled_from(["{{", "{%", "{#"]), st.text())
def test_rejects_every_text_with_a_template(before: str, sign: str, after: str) -> None:
    assert names.odd(before + sign + after)
    assert not names.is_machine(before + sign + after)


def test_versions_compare_as_numbers() -> None:
    assert numbers("8.0.10") > numbers("8.0.9") > numbers("8") > numbers(None)
