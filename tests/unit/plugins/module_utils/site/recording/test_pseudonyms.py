"""Pseudonyms: one for each value at every occurrence, and none for words that do not identify a site."""

from __future__ import annotations

import pytest

from plugins.module_utils.site.recording.pseudonyms import Pseudonyms


@pytest.fixture
def named() -> Pseudonyms:
    made = Pseudonyms()
    for kind, name in (("host", "esx01.corp.acme.org"), ("guest", "payroll"), ("guest", "payroll-old"), ("user", "7")):
        made.name(kind, name)
    return made


def test_replaces_a_name_everywhere_longer_names_first(named: Pseudonyms) -> None:
    assert named.text("payroll-old left ESX01.corp.acme.org for esx01; payroll stayed") == (
        "guest-2 left host-1.domain-1.example for host-1; guest-1 stayed"
    )
    assert named.text("[store] payroll/payroll.vmx") == "[store] guest-1/guest-1.vmx"
    assert named.text("https://vcenter.corp.acme.org/") == "https://vcenter.domain-1.example/"


def test_ignores_a_name_within_a_longer_word(named: Pseudonyms) -> None:
    assert named.text("payrolls, mypayroll, pay_payroll") == "payrolls, mypayroll, pay_payroll"


def test_replaces_a_numeric_name_only_on_its_own(named: Pseudonyms) -> None:
    assert named.whole("7") == "user-1" and named.text("7 cards") == "7 cards"


@pytest.mark.parametrize("word", ["VM Network", "gpu", "host", "Resources", "green"])
def test_words_of_vsphere_stay(word: str) -> None:
    made = Pseudonyms()
    made.name("cluster", word)
    assert made.text(f"the {word}") == f"the {word}" and made.counted() == {}


def test_addresses_keep_their_network_and_differ(named: Pseudonyms) -> None:
    first, second, other = (named.text(one) for one in ("10.20.30.4", "10.20.30.5:443", "10.20.31.4/24"))
    assert (first, second, other) == ("198.18.0.1", "198.18.0.2:443", "198.18.1.1/24")
    assert named.text("ping 10.20.30.4") == "ping 198.18.0.1"


@pytest.mark.parametrize(
    "text",
    [
        "255.255.255.0",
        "0.0.0.0",
        "127.0.0.1",
        "550.90.05-1OEM.800.1.0.20613240",
        "nvmxnet3_2.0.0.31-9vmw",
        "::",
        "::1",
        "1.2.3.4.5",
        "0000:3b:00.0",
        "12:34:56",
        "2026-11-22T10:00:00.123Z",
        "14.32.1010",
    ],
)
def test_masks_versions_times_and_pci_addresses_stay(named: Pseudonyms, text: str) -> None:
    assert named.text(text) == text


def test_replaces_long_addresses(named: Pseudonyms) -> None:
    assert named.text("fe80::250:56ff:fe9a:1 and 2a02:810::7/64") == "fe80::1 and 2001:db8::2/64"


def test_a_hardware_address_keeps_its_vendor(named: Pseudonyms) -> None:
    assert named.text("00:50:56:9a:bc:de") == "00:50:56:00:00:01"
    assert named.text("00-50-56-9a-bc-df") == "00-50-56-00-00-02"
    assert named.text("20:00:00:25:b5:a1:b2:c3") == "00:00:00:00:00:00:00:03"
    thumbprint = ":".join(["AB"] * 20)
    assert "AB" not in named.text(thumbprint)


def test_treats_both_spellings_of_a_uuid_alike(named: Pseudonyms) -> None:
    plain = named.text("4211aabb-ccdd-eeff-0011-223344556677")
    assert plain == "00000000-0000-4000-8000-000000000001"
    assert named.text("42 11 aa bb cc dd ee ff-00 11 22 33 44 55 66 77") == (
        "00 00 00 00 00 00 40 00-80 00 00 00 00 00 00 01"
    )


def test_replaces_licence_keys(named: Pseudonyms) -> None:
    assert named.text("AB12C-34DEF-5GH67-8IJ9K-0LMN1") == "XXXXX-XXXXX-XXXXX-XXXXX-00001"


def test_remaining_names_are_reported(named: Pseudonyms) -> None:
    named.text("10.20.30.4")
    assert named.left_in("model Payroll 3000 at 10.20.30.4") == ["10.20.30.4", "payroll"]
    assert named.left_in(named.text("payroll at 10.20.30.4")) == []
