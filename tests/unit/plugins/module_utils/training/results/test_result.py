"""The result of a run: its rate from the best source, the check of its transport, and its faults."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.output.log import figures
from plugins.module_utils.training.results.result import faults, result, summary

IB = "w1:12:12 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/RoCE ; OOB ens192:10.0.1.1<0>\n"
SOCKET = "w1:12:12 [0] NCCL INFO NET/Socket : Using [0]ens192:10.0.1.1<0>\n"
TOTAL = "total images/sec: 80.00\n"
RUN: dict[str, Any] = {
    "name": "one",
    "nodes": ["w1", "w2"],
    "ranks_per_node": 2,
    "transport": "tcp",
    "asked": {"options": []},
    "stack": "t4-2019",
    "pace": {"step": 10, "loss": 0.5},
    "curve": {"images_per_sec": 70.0, "points": [{"step": 1}]},
    "records": "/r/records.jsonl",
    "summaries": [],
    "cards": [{"card": "ens224", "speed": 100.0}, {"card": "ens224", "speed": 25.0}],
    "built": {"w1": {"dml_cuda": {"proven": True}}},
    "gradient_bytes": 0.0,
    "rdma_before": {},
    "rdma_after": {},
    "esxi_hosts": {},
    "neighbours": {},
    "esxi_before": [],
    "esxi_after": [],
}
JOB = {"state": "finished", "mpirun_command": []}


def ranks(*rates: float, **more: Any) -> list[dict[str, Any]]:
    return [{"rank": rank, "images_per_sec": rate, **more} for rank, rate in enumerate(rates)]


def device(sent: int) -> list[dict[str, Any]]:
    return [{"name": "mlx5_0", "driver": "mlx5_core", "sent_bytes": sent}]


@pytest.mark.parametrize(
    ("names", "network"),
    [
        ([None, "a regression"], "a regression"),
        (["a\x1b[31m\n regression\u202e"], "a[31m regression"),
        (["x" * 500], "x" * 120),
        ([None, "", "\n"], None),
        ([], None),
    ],
)
def test_a_program_describes_its_training(names: list[str | None], network: str | None) -> None:
    run_result = result(
        {**RUN, "summaries": [{"rank": rank, "network": one} for rank, one in enumerate(names)]}, JOB, figures("")
    )
    assert run_result["network"] == network


@pytest.mark.parametrize(
    ("summaries", "output", "curve", "rate"),
    [
        (ranks(10.0, 12.0), TOTAL, RUN["curve"], 22.0),
        (ranks(10.0) + ranks(10.0), TOTAL, RUN["curve"], 10.0),
        ([{"rank": 0, "images_per_sec": None}], TOTAL, RUN["curve"], 80.0),
        ([], SOCKET, RUN["curve"], 70.0),
        ([], SOCKET, {}, None),
    ],
)
def test_uses_the_rate_of_the_best_source(
    summaries: list[dict[str, Any]], output: str, curve: dict[str, Any], rate: float | None
) -> None:
    run_result = result({**RUN, "summaries": summaries, "curve": curve}, JOB, figures(output))
    assert run_result["images_per_sec"] == rate
    assert summary(run_result).startswith("10 steps on" if rate is None else f"{rate:.1f} images/s on")


@pytest.mark.parametrize(
    ("sent", "gradients", "summaries", "transport"),
    [
        (10_000, 1000.0, [], "rdma"),
        (10_000, 0.0, [{"gradient_bytes": 1000}], "rdma"),
        (10_000, 1000.0, [{"gradient_bytes": 5000}], "tcp"),
        (4_000, 1000.0, [], "tcp"),
        (10_000, 0.0, [], "unproven"),
    ],
)
def test_compares_rdma_counters_with_the_gradient_volume(
    sent: int, gradients: float, summaries: list[dict[str, Any]], transport: str
) -> None:
    counted = {"rdma_before": {"w1": device(5), "w2": device(5)}, "rdma_after": {"w1": device(5 + sent)}}
    counted["rdma_after"]["w2"] = device(5 + sent)
    run = {**RUN, **counted, "transport": "rdma", "gradient_bytes": gradients, "summaries": summaries}
    run_result = result(run, JOB, figures(IB))
    assert run_result["proof"]["transport"] == transport, run_result["proof"]
    reasons = faults(run_result, summaries, "/runs/one", prove=True, fail_on_nan=False)
    assert (reasons == []) == (transport == "rdma")
    assert all(
        text.startswith(f"The training job /runs/one was set to rdma and used {transport}: ") for text in reasons
    )
    assert faults(run_result, summaries, "/runs/one", prove=False, fail_on_nan=False) == []
    assert faults({**run_result, "nodes": 1}, summaries, "/runs/one", prove=True, fail_on_nan=False) == []


def test_nan_gradients_fail_a_run_only_on_request() -> None:
    sentence = "gradients not finite since step 40 (checked every 20 steps) on ranks 0, 1"
    run_result = result({**RUN, "pace": {**RUN["pace"], "not_finite": sentence}}, JOB, figures(SOCKET))

    assert summary(run_result).startswith(f"finished, {sentence}: ")
    assert faults(run_result, [], "/runs/one", prove=False, fail_on_nan=False) == []
    assert faults(run_result, [], "/runs/one", prove=False, fail_on_nan=True) == [
        f"The training job /runs/one finished, {sentence}."
    ]
    assert faults(run_result, [], "/runs/one", prove=False, fail_on_nan=False, apart="ranks 0, 1 formed no group") == [
        "The training job /runs/one finished, but ranks 0, 1 formed no group."
    ]


def test_ranks_ending_with_different_parameters_always_fail() -> None:
    run_result = result(RUN, JOB, figures(SOCKET))
    same, other = {"parameters_sha256": "aa"}, {"parameters_sha256": "bb"}
    assert faults(run_result, [same, {}, same], "/runs/one", prove=False, fail_on_nan=False) == []
    assert faults(run_result, [other, same], "/runs/one", prove=False, fail_on_nan=False) == [
        "The ranks of /runs/one ended with different parameters: aa, bb."
    ]


@pytest.mark.parametrize(
    ("step", "points", "pace"),
    [
        (189, [{"step": 9, "seconds": 1.0}, {"step": 189, "seconds": 91.0}], "189 steps at 2.0 steps/s"),
        (3, [{"step": 3, "seconds": 0.0}], "3 steps"),
        (None, [], "no step records"),
    ],
)
def test_the_summary_counts_steps_without_images(step: int | None, points: list[dict[str, Any]], pace: str) -> None:
    run = {**RUN, "pace": {"step": step}, "curve": {"images_per_sec": None, "points": points}}
    assert summary(result(run, JOB, figures(SOCKET))).startswith(f"{pace} on 4 ranks of 2 nodes by tcp: ")


def test_the_summary_names_step_source_and_missing_loss() -> None:
    pace = {"step": 40, "loss": None, "steps_by": "optimizer SGD, the first of 2"}
    curve = {"images_per_sec": None, "points": [{"step": 0, "seconds": 0.0}, {"step": 40, "seconds": 20.0}]}
    run_result = result({**RUN, "pace": pace, "curve": curve}, JOB, figures(SOCKET))
    begin = (
        "40 steps of the optimizer SGD, the first of 2 at 2.0 steps/s, without a loss, on 4 ranks of 2 nodes by tcp: "
    )
    assert summary(run_result).startswith(begin)
