"""The metrics of a job in the text format of Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.output.gpu_use import GpuUse, NodeGpus
from plugins.module_utils.training.output.live_state import LiveState, metrics
from plugins.module_utils.watch.live_pace import LivePace

from ...watch.test_live_pace import record


def state_of(pace: LivePace, name: str = "one", **more: Any) -> LiveState:
    """Return the state 100 s after the beginning."""
    state = LiveState(name, 100.0, "running", "", 0, pace.summary(), pace.ranks(), [], {})
    return state._replace(**more)


def test_reports_known_values_of_each_rank() -> None:
    pace = LivePace()
    pace.feed([record(0, 1, 1.0, loss=None, host='n"1\\'), record(1, 1, 2.0), record(1, 2, 7.0, loss="nan")])
    lines = metrics(state_of(pace, "a\nb")).splitlines()
    values = [line for line in lines if not line.startswith("#")]
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
    assert [line for line in lines if not line.startswith("#")] == [
        'dml_training_running{run="one"} 1',
        f'dml_training_gpu_utilization_ratio{{{labels}"0"}} 0.93',
        f'dml_training_gpu_memory_used_bytes{{{labels}"0"}} 5',
        f'dml_training_gpu_memory_total_bytes{{{labels}"0"}} 9',
        f'dml_training_gpu_memory_total_bytes{{{labels}"1"}} 9',
    ]
