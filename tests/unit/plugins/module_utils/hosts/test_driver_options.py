"""Driver option strings: parsing, comparing, merging, PFC masks."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.hosts.driver_options import OptionError, differing, merge, parse, pfc_mask, render, same_value

KEYS = st.text(string.ascii_letters + string.digits + "_", min_size=1, max_size=6)
VALUES = st.one_of(
    st.integers(-300, 300).map(str),
    st.integers(0, 255).map(hex),
    st.lists(st.integers(0, 9).map(str), min_size=2, max_size=3).map(",".join),
    st.text(string.ascii_letters + string.digits + ",-:/.", min_size=1, max_size=8),
)
OPTIONS = st.dictionaries(KEYS, VALUES, max_size=6)


def test_options_are_read_in_their_order() -> None:
    text = "pfctx=0x08 pfcrx=0x08 trust_state=2 max_vfs=8,8 dscp_force=-1"
    assert list(parse(text).items()) == [
        ("pfctx", "0x08"), ("pfcrx", "0x08"), ("trust_state", "2"), ("max_vfs", "8,8"), ("dscp_force", "-1"),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "   ", "\t\n"])
def test_an_empty_string_has_no_options(text: str) -> None:
    assert parse(text) == {}


def test_white_space_around_options_does_not_matter() -> None:
    assert parse("  a=1 \t b=2\n") == {"a": "1", "b": "2"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pfctx=8 trust_state", "'trust_state'"),
        ("pfctx=", "'pfctx='"),
        ("=3", "'=3'"),
        ("pfctx = 8", "'pfctx'"),
        ("pfctx=0x08pfcrx=0x08", "'pfctx=0x08pfcrx=0x08'"),
        ("'pfctx=8", '"\'pfctx=8"'),
        ("a=1,b=2", "'a=1,b=2'"),
    ],
)
def test_names_the_wrong_word_of_a_malformed_string(text: str, shown: str) -> None:
    with pytest.raises(OptionError) as error:
        parse(text)
    assert repr(text) in str(error.value)
    assert shown in str(error.value)


def test_a_value_may_contain_options() -> None:
    text = "NVreg_RegistryDwords=RmPVMRL=0x01;RMUsePAT=1 max_vfs=8"
    options = parse(text)
    assert options == {"NVreg_RegistryDwords": "RmPVMRL=0x01;RMUsePAT=1", "max_vfs": "8"}
    assert render(options) == text and merge(text, {"NVreg_RegistryDwords": "RmPVMRL=0x01;RMUsePAT=1"}) == text


@pytest.mark.parametrize("text", ["a=1 b=2 a=3", "a=1 a=1", "a=0x08 a=8"])
def test_refuses_a_repeated_key_with_an_equal_value(text: str) -> None:
    with pytest.raises(OptionError) as error:
        merge(text, {"b": 1})
    assert repr(text) in str(error.value)
    assert "'a' twice" in str(error.value)


def test_merge_keeps_foreign_options_order_and_equal_spellings() -> None:
    current = "max_vfs=8,8 pfctx=0x08 RSS=4 pfcrx=0x00"
    merged = merge(current, {"pfctx": 8, "pfcrx": "0x08", "trust_state": 2})
    assert merged == "max_vfs=8,8 pfctx=0x08 RSS=4 pfcrx=0x08 trust_state=2"


def test_exact_removes_other_options_and_keeps_the_order() -> None:
    assert merge("c=1 b=0x2 a=3", {"a": 3, "b": 2, "d": 4}, exact=True) == "b=0x2 a=3 d=4"
    assert merge("a=1 b=2", {}, exact=True) == ""


def test_keys_differ_by_case() -> None:
    assert merge("drss=4", {"DRSS": 4}) == "drss=4 DRSS=4"


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("0x08", "8", True),
        ("0X0A", "10", True),
        ("-1", "-0x1", True),
        ("+3", "3", True),
        ("8,8", "0x8,0x08", True),
        ("8", "8,8", False),
        ("8,8", "8,9", False),
        ("010", "10", False),
        ("010", "8", False),
        ("1_0", "10", False),
        ("on", "ON", False),
        ("vmk1", "vmk1", True),
    ],
)
def test_numbers_are_compared_as_numbers(one: str, other: str, equal: bool) -> None:
    assert same_value(one, other) is equal
    assert same_value(other, one) is equal


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (True, "1"),
        (False, "0"),
        (-1, "-1"),
        ("0x1F", "0x1F"),
        ([8, 8], "8,8"),
        ((True, "0x2"), "1,0x2"),
        ("8,8", "8,8"),
    ],
)
def test_writes_yaml_values_as_the_driver_reads_them(value: object, written: str) -> None:
    assert render({"key": value}) == f"key={written}"


@pytest.mark.parametrize(
    "value", ["", " ", "1 2", "1=b", "x\t", None, 1.5, {}, {"a": 1}, [], [8, ""], [None], [8, "1 2"]]
)
def test_refuses_and_shows_values_invalid_in_option_strings(value: object) -> None:
    with pytest.raises(OptionError) as error:
        merge("a=1", {"pfctx": value})
    assert "'pfctx'" in str(error.value)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("key", ["", "a b", "a=b", "ä", 'a"'])
def test_refuses_and_shows_names_invalid_in_option_strings(key: str) -> None:
    with pytest.raises(OptionError) as error:
        merge("", {key: 1})
    assert repr(key) in str(error.value)


def test_the_difference_names_only_what_changes() -> None:
    current = "max_vfs=8,8   pfctx=0x08 pfcrx=0"
    assert differing(current, {"pfctx": 8, "pfcrx": 8, "dcbx": True}) == {"pfcrx": ("0", "8"), "dcbx": (None, "1")}
    assert differing(current, {"pfctx": 8}) == {}
    assert differing(current, {"pfctx": 8, "pfcrx": 0}, exact=True) == {"max_vfs": ("8,8", None)}


@given(OPTIONS)
def test_parses_a_rendered_string_to_the_same_options(options: dict[str, str]) -> None:
    assert parse(render(options)) == options


@given(OPTIONS, OPTIONS, st.booleans())
def test_second_merge_of_the_same_options_changes_nothing(
    current: dict[str, str], desired: dict[str, str], exact: bool
) -> None:
    once = merge(render(current), desired, exact)
    merged = parse(once)
    assert all(same_value(merged[key], value) for key, value in desired.items())
    assert set(merged) == (set(desired) if exact else {*current, *desired})
    assert [key for key in merged if key in current] == [key for key in current if key in merged]
    assert all(merged[key] == value for key, value in current.items() if key in merged and key not in desired)
    assert merge(once, desired, exact) == once
    assert differing(once, desired, exact) == {}


@given(st.sets(st.integers(0, 7)))
def test_mask_contains_exactly_the_given_priorities(priorities: set[int]) -> None:
    mask = pfc_mask(priorities)
    assert len(mask) == 4
    assert {bit for bit in range(8) if int(mask, 16) >> bit & 1} == priorities


def test_renders_the_usual_mask() -> None:
    assert pfc_mask([3]) == "0x08"
    assert pfc_mask([3, 3]) == "0x08"
    assert pfc_mask([]) == "0x00"
    assert pfc_mask(range(8)) == "0xff"


@pytest.mark.parametrize("priority", [-1, 8, "3", True, 3.0, None])
def test_a_priority_outside_0_to_7_is_refused(priority: object) -> None:
    with pytest.raises(OptionError, match="0 to 7"):
        pfc_mask([3, priority])  # type: ignore[list-item]
