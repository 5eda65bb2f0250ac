"""Counters of GPUs: which card an instance means, and what its samples say."""

from __future__ import annotations

import pytest

from plugins.module_utils.usage.gpu_load import MEMORY, UTILISATION, Samples, by_card, card_of, summary

CARDS = ["0000:3b:00.0", "0000:ca:00.0"]


@pytest.mark.parametrize(
    ("instance", "address"),
    [
        ("0000:3b:00.0", CARDS[0]),
        ("0000:CA:00.0", CARDS[1]),
        ("00000000:3B:00.0", CARDS[0]),
        ("3b:00.0", CARDS[0]),
        ("gpu 1 (0000:ca:00.0)", CARDS[1]),
        ("0001:3b:00.0", None),
        ("0000:3b:00.1", None),
        ("f3b:00.0", None),
        ("gpu0", None),
        ("0", None),
    ],
)
def test_finds_the_card_that_an_instance_names(instance: str, address: str | None) -> None:
    assert card_of(instance, CARDS) == address


def test_a_hosts_sum_counts_for_a_single_card() -> None:
    total = Samples(UTILISATION, "", [100])
    assert by_card(CARDS[:1], [total]) == ({CARDS[0]: {UTILISATION: total}}, [])
    assert by_card(CARDS, [total]) == ({}, [])
    named = Samples(UTILISATION, CARDS[0], [300])
    assert by_card(CARDS[:1], [total, named]) == ({CARDS[0]: {UTILISATION: named}}, [])


def test_names_unknown_instances_and_ignores_empty_series() -> None:
    found, strangers = by_card(CARDS, [Samples(UTILISATION, "gpu1", [5]), Samples(UTILISATION, CARDS[1], [])])
    assert (found, strangers) == ({}, ["gpu1"])


def test_summarizes_samples_in_percent_gigabytes_and_hours() -> None:
    busy, memory = Samples(UTILISATION, "", [0, 9000, 3000]), Samples(MEMORY, "", [2**20, 3 * 2**20])
    assert summary({UTILISATION: busy, MEMORY: memory}, 20) == {
        "mean": 40,
        "peak": 90,
        "memory_gb": 2,
        "samples": 3,
        "covered_hours": 60 / 3600,
    }
    assert summary({MEMORY: memory}, 20) is None
    without_memory = summary({UTILISATION: busy}, 20)
    assert without_memory and without_memory["memory_gb"] is None
