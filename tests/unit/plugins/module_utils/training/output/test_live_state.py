"""The metrics of a job in the text format of Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.output.gpu_use import GpuUse, NodeGpus
from plugins.module_utils.training.output.live_state import JobMove, LiveState, metrics
from plugins.module_utils.watch.live_pace import LivePace

from ...watch.test_live_pace import record


def state_of(pace: LivePace, name: str = "one", **more: Any) -> LiveState:
    """Return the state 100 s after the beginning."""
    state = LiveState(name, 100.0, "running", "", 0, pace.summary(), pace.ranks(), [], {})
    return state._replace(**more)


def known(lines: list[str]) -> list[str]:
    """Return the values but for those of the state and of the time of reading."""
    return [line for line in lines if not line.startswith(("#", "dml_training_state", "dml_training_read"))]


def test_reports_known_values_of_each_rank() -> None:
    pace = LivePace()
    pace.feed([record(0, 1, 1.0, loss=None, host='n"1\\'), record(1, 1, 2.0), record(1, 2, 7.0, loss="nan")])
    lines = metrics(state_of(pace, "a\nb")).splitlines()
    values = known(lines)
    first, second = 'run="a\\nb",rank="0",node="n\\"1\\\\"', 'run="a\\nb",rank="1",node="n2"'
    assert values == [
        'dml_training_running{run="a\\nb"} 1',
        f"dml_training_step{{{first}}} 1",
        f"dml_training_step{{{second}}} 2",
        f"dml_training_steps_per_second{{{second}}} 0.2",
        f"dml_training_images_per_second{{{first}}} 100.0",
        f"dml_training_images_per_second{{{second}}} 100.0",
        f"dml_training_loss{{{second}}} NaN",
        f"dml_training_last_step_timestamp_seconds{{{first}}} 1.0",
        f"dml_training_last_step_timestamp_seconds{{{second}}} 7.0",
        f"dml_training_longest_silence_seconds{{{second}}} 5.0",
    ]
    assert "# TYPE dml_training_loss gauge" in lines


@pytest.mark.parametrize(("loss", "text"), [("inf", "+Inf"), ("-inf", "-Inf")])
def test_an_infinite_loss_is_a_value(loss: str, text: str) -> None:
    pace = LivePace()
    pace.feed([record(0, 1, 1.0, loss=loss)])
    assert f'dml_training_loss{{run="one",rank="0",node="n1"}} {text}\n' in metrics(state_of(pace))


def test_the_age_is_that_of_the_silent_rank() -> None:
    pace = LivePace()
    assert state_of(pace).age is None
    pace.feed([record(0, 1, 90.0), record(1, 1, 95.0)])
    assert state_of(pace).age == 10.0
    running = {state: state_of(pace, state=state).is_running for state in ("running", "waiting", "finished", "died")}
    assert running == {"running": True, "waiting": True, "finished": False, "died": False}


def test_reports_known_values_of_each_gpu() -> None:
    nodes = [
        NodeGpus("n1", (GpuUse(0, "A", 93.0, 5, 9), GpuUse(1, "A", None, None, 9)), "lost"),
        NodeGpus("n2", (), ""),
    ]
    lines = metrics(state_of(LivePace(), gpus=nodes)).splitlines()
    labels = 'run="one",node="n1",gpu='
    assert known(lines) == [
        'dml_training_running{run="one"} 1',
        f'dml_training_gpu_utilization_ratio{{{labels}"0"}} 0.93',
        f'dml_training_gpu_memory_used_bytes{{{labels}"0"}} 5',
        f'dml_training_gpu_memory_total_bytes{{{labels}"0"}} 9',
        f'dml_training_gpu_memory_total_bytes{{{labels}"1"}} 9',
    ]


def test_reports_state_limit_and_last_move_of_workers() -> None:
    moves = [JobMove("w1", "a", "b", 3.0, 4.5, "moved"), JobMove("w1", "b", "a", 9.0, 9.0, "failed")]
    text = metrics(state_of(LivePace(), state="died", moves=moves, silence_limit=300.5))
    shown = 'run="one",worker="w1",source="b",target="a",result="failed"'
    for line in (
        'dml_training_state{run="one",state="died"} 1',
        'dml_training_state{run="one",state="running"} 0',
        'dml_training_read_timestamp_seconds{run="one"} 100.0',
        'dml_training_silence_limit_seconds{run="one"} 300.5',
        'dml_training_moves{run="one",result="moved"} 1',
        f"dml_training_last_move_begin_timestamp_seconds{{{shown}}} 9.0",
        f"dml_training_last_move_duration_seconds{{{shown}}} 0.0",
    ):
        assert f"{line}\n" in text
    assert 'source="a"' not in text
    assert "silence_limit" not in metrics(state_of(LivePace()))
