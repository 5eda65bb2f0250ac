"""Scaling tables: the published one, medians, and invalid runs."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.results.scaling import ScalingError, table

PUBLISHED = Path(__file__).parents[5] / "fixtures" / "paper-table-2.csv"


def run(gpus: int, rate: Any, transport: str = "tcp", nodes: int | None = None) -> dict[str, Any]:
    return {"nodes": gpus if nodes is None else nodes, "gpus": gpus, "transport": transport, "images_per_sec": rate}


def published_rows() -> list[dict[str, str]]:
    with PUBLISHED.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_published_table_has_its_printed_speedups() -> None:
    rows = published_rows()
    runs = [
        {
            "nodes": int(row["nodes"]),
            "gpus": int(row["vgpus"]),
            "transport": row["transport"],
            "images_per_sec": float(row["images_per_sec"]),
        }
        for row in rows
    ]
    printed = {(int(row["vgpus"]), row["transport"]): f"{float(row['speedup']):.2f}" for row in rows}
    computed = {(row["gpus"], row["transport"]): f"{row['speedup']:.2f}" for row in table(runs)}
    assert len(printed) == 8
    assert computed == printed


def test_prefers_a_measured_epoch_to_a_computed_one() -> None:
    runs = [{**run(1, 100), "seconds_per_epoch": seconds} for seconds in (20.0, 30.0, 22.0)]
    runs += [{**run(2, 200), "seconds_per_epoch": None}]
    rows = table(runs, images_per_epoch=1000)
    assert [(row["seconds_per_epoch"], row["epoch_measured"]) for row in rows] == [(22.0, True), (5.0, False)]


def test_reports_the_transport_without_a_single_gpu_run() -> None:
    with pytest.raises(ScalingError, match="'rdma' has no run on 1 GPU"):
        table([run(1, 340), run(2, 364), run(2, 533, "rdma")])


@pytest.mark.parametrize("rate", [0, -1, 0.0, float("nan"), float("inf"), None, "340", True])
def test_reports_the_run_with_an_invalid_rate(rate: object) -> None:
    with pytest.raises(ScalingError) as error:
        table([run(1, 340), run(2, rate)])
    assert f"images_per_sec={rate!r}" in str(error.value)
    assert "'gpus': 2" in str(error.value)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"gpus": 0}, "gpus=0"),
        ({"gpus": True}, "gpus=True"),
        ({"nodes": "1"}, "nodes='1'"),
        ({"nodes": 4}, "gpus counts those of all nodes together"),
        ({"transport": ""}, "transport=''"),
        ({"transport": None}, "transport=None"),
    ],
)
def test_an_impossible_run_is_an_error(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ScalingError) as error:
        table([{**run(1, 340), **wrong}])
    assert words in str(error.value)


@pytest.mark.parametrize("key", ["nodes", "gpus", "transport", "images_per_sec"])
def test_reports_the_missing_key_of_a_run(key: str) -> None:
    with pytest.raises(ScalingError, match=f"lacks '{key}'"):
        table([{name: value for name, value in run(1, 340).items() if name != key}])


@pytest.mark.parametrize("images", [0, -5, float("nan"), True])
def test_an_epoch_without_images_is_an_error(images: Any) -> None:
    with pytest.raises(ScalingError, match="images_per_epoch"):
        table([run(1, 340)], images_per_epoch=images)


@given(
    st.permutations([run(gpus, 7.0 * gpus + lap, name) for gpus in (1, 2) for name in ("tcp", "x") for lap in (0, 1)])
)
def test_the_order_of_the_runs_does_not_matter(runs: list[dict[str, Any]]) -> None:
    assert table(runs) == table(sorted(runs, key=lambda each: sorted(map(str, each.items()))))


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([run(1, 10**400)], "has images_per_sec=a number beyond 2^53: expected a number above zero"),
        ([run(10**400, 340)], "has nodes=a number beyond 2^53: expected a whole number of 1 or more"),
        ([run(10**400, 340, nodes=1)], "has gpus=a number beyond 2^53: expected a whole number of 1 or more"),
        ([run(1, 1e300)], "has images_per_sec=1e+300: expected a number above zero"),
    ],
)
def test_refuses_numbers_beyond_floats(runs: list[dict[str, Any]], words: str) -> None:
    with pytest.raises(ScalingError) as refused:
        table(runs)
    assert words in str(refused.value) and len(str(refused.value)) < 300


def test_refuses_an_epoch_beyond_exact_float_integers() -> None:
    with pytest.raises(ScalingError, match=r"images_per_epoch is a number beyond 2\^53"):
        table([run(1, 340)], images_per_epoch=10**400)
    assert table([{**run(1, 340), "seconds_per_epoch": 10**400}])[0]["epoch_measured"] is False
