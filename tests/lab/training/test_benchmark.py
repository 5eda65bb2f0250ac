"""TensorFlow and Horovod train on two nodes by playbooks/train.yml: our benchmark, and scripts with our hooks."""

from __future__ import annotations

import json
import struct
from statistics import median
from typing import Any

import pytest

from tests.lab.benchmark import NAMES, PYTHON, RUNS, SERVED, Cluster

pytestmark = pytest.mark.slow
SMALL = ["--cpu", "--model", "small", "--image-size", "32", "--batch-size", "8"]
STEPS, EPOCHS, STEP_SECONDS, WARMUP = 10, 2, 0.1, 4
KEPT = "/var/lib/dml/kept"
ITERATIONS = f"""
import json, numpy
with numpy.load("{KEPT}/step%d.npz") as values:
    found = [values[name] for name in values.files]
    print(json.dumps([int(one) for one in found if one.shape == () and one.dtype == "int64"]))
"""
KERAS = """
import dml_records
import horovod.tensorflow.keras as hvd
import tensorflow as tf
hvd.init()
records = dml_records.start()
model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.legacy.SGD(0.01)), loss="mse")
data = tf.data.Dataset.from_tensors((tf.random.uniform([16, 4]), tf.random.uniform([16, 1]))).repeat()
begin = hvd.callbacks.BroadcastGlobalVariablesCallback(0)
callbacks = [begin, dml_records.keras_callback(records, images=16)]
model.fit(data, steps_per_epoch=10, epochs=2, validation_data=data, validation_steps=2, callbacks=callbacks, verbose=0)
"""
TENSORFLOW_1 = """
import dml_records
import horovod.tensorflow as hvd
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
hvd.init()
records = dml_records.start()
loss = tf.reduce_mean(tf.square(v1.get_variable("weights", [4]) - 1.0))
optimizer = hvd.DistributedOptimizer(v1.train.GradientDescentOptimizer(0.1))
train = optimizer.minimize(loss, global_step=v1.train.get_or_create_global_step())
hooks = [hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=20)]
hooks += [dml_records.session_hook(records, images=16, loss=loss)]
with v1.train.MonitoredTrainingSession(hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
"""


def picture(shade: int) -> bytes:
    """An image of one grey, as BMP."""
    size = 32 * 32 * 3
    head = struct.pack("<2sIIIIiiHHIIiiII", b"BM", 54 + size, 0, 54, 40, 32, 32, 1, 24, 0, size, 0, 0, 0, 0)
    return head + bytes([shade]) * size


def draw(cluster: Cluster) -> None:
    """A folder of three classes."""
    for name, shade in (("dark", 10), ("grey", 120), ("light", 240)):
        (cluster.served / "images" / name).mkdir(parents=True, exist_ok=True)
        for number in range(10):
            (cluster.served / "images" / name / f"{number}.bmp").write_bytes(picture(shade + number))


def options(*more: object) -> dict[str, Any]:
    """Variables of a run of our benchmark."""
    return {"training_options": [*SMALL, *map(str, more)], "training_warmup": WARMUP}


def check_steps(cluster: Cluster, name: str, first: int, last: int) -> None:
    """Every rank recorded every step once, as one process on its own node."""
    for rank, node in enumerate(NAMES):
        steps = cluster.steps(name, rank)
        assert [one["step"] for one in steps] == list(range(first, last + 1))
        assert {(one["host"], one["size"], one["generation"]) for one in steps} == {(node, len(NAMES), 0)}
        assert len({(one["pid"], one["start"], one["job"]) for one in steps}) == 1
        assert all(isinstance(one["loss"], float) for one in steps), steps


def phases(cluster: Cluster, name: str, rank: int) -> list[tuple[str, str, int]]:
    """The marks of a rank in the order in which it made them."""
    marks = [one for one in cluster.records(name) if one["rank"] == rank and "mark" in one]
    return [(one["phase"], one["mark"], one["step"]) for one in sorted(marks, key=lambda one: float(one["t"]))]


def paused(phase: str, step: int) -> list[tuple[str, str, int]]:
    return [(phase, "begin", step), (phase, "end", step)]


def check_rate(cluster: Cluster, result: dict[str, Any], images: int) -> None:
    """The rate that is reported is that of the records, and no more than the pace allows."""
    rates = [
        median(one["images_per_sec"] for one in cluster.steps(result["name"], rank)[WARMUP:])
        for rank in range(len(NAMES))
    ]
    assert result["images_per_sec"] == pytest.approx(sum(rates), rel=0.25)
    assert 0 < result["images_per_sec"] <= len(NAMES) * images / STEP_SECONDS


def check_equal(cluster: Cluster, name: str) -> None:
    """All ranks ended with the same parameters."""
    result = cluster.summaries(name)
    assert len({one["parameters_sha256"] for one in result}) == 1
    assert [one["sha256_of_ranks"] for one in result] == [[one["parameters_sha256"] for one in result]] * len(NAMES)


def iterations(cluster: Cluster, step: int) -> list[int]:
    """The whole numbers of a checkpoint: how many steps its optimizer has made, one of them to make its variables."""
    result = cluster.inside(NAMES[0], f"{PYTHON} - <<'E'\n{ITERATIONS % step}\nE")
    return list(json.loads(result))


def test_benchmark_trains_epochs_and_resumes_from_newest_checkpoint(cluster: Cluster) -> None:
    draw(cluster)
    common = ["--data", f"{SERVED}/images", "--classes", 3, "--steps", STEPS, "--step-seconds", STEP_SECONDS]
    common += ["--warmup", WARMUP, "--checkpoint-every", 5, "--checkpoints", KEPT, "--evaluate-every", STEPS]
    last = STEPS * EPOCHS
    report, result = cluster.train("epochs", training_steps=last, **options(*common, "--epochs", EPOCHS))

    assert f"step {last} of {last}" in report
    assert (result["steps"], result["gpus"], result["proof"]["transport"]) == (last, 2, "tcp")
    check_steps(cluster, "epochs", 1, last)
    expected = paused("compile", 0)
    for step in range(5, last + 1, 5):
        expected += (paused("eval", step) if step % STEPS == 0 else []) + paused("checkpoint", step)
    assert [phases(cluster, "epochs", rank) for rank in (0, 1)] == [expected] * 2
    check_rate(cluster, result, images=8)
    assert result["seconds_per_epoch"] >= STEPS * STEP_SECONDS
    check_equal(cluster, "epochs")
    assert [point["images_per_sec"] for point in result["curve"][: WARMUP - 1]] == [None] * (WARMUP - 1)
    assert cluster.inside(NAMES[0], f"cd {KEPT} && sha256sum --check *.sha256").count(": OK\n") == last // 5
    assert cluster.inside(NAMES[1], f"ls -A {KEPT}", check=False) == ""
    assert iterations(cluster, last) == [last + 1]

    _result, result = cluster.train("resumed", **options(*common, "--epochs", EPOCHS + 1, "--resume"))
    check_steps(cluster, "resumed", last + 1, last + STEPS)
    assert phases(cluster, "resumed", 1)[:2] == paused("compile", last)
    check_equal(cluster, "resumed")
    assert iterations(cluster, last + STEPS) == [last + STEPS + 1]
    before, after = (median(one["loss"] for one in cluster.steps(name, 0)) for name in ("epochs", "resumed"))
    assert after < before, "the second run did not learn on"


def test_half_precision_and_xla(cluster: Cluster) -> None:
    words = ["--classes", 10, "--steps", 15, "--step-seconds", STEP_SECONDS, "--warmup", WARMUP, "--fp16", "--xla"]
    _result, result = cluster.train("half", **options(*words))
    check_steps(cluster, "half", 1, 15)
    check_rate(cluster, result, images=8)
    check_equal(cluster, "half")
    output = cluster.inside(NAMES[0], f"sudo cat {RUNS}/half/output.log")
    for rank in (0, 1):
        assert any(f",{rank}]<" in line and "Compiled cluster using XLA" in line for line in output.splitlines()), (
            output
        )


def check_hook(cluster: Cluster, name: str, script: str, python: str = PYTHON, **options: Any) -> None:
    """A your own script that makes twenty steps is seen as one."""
    # Python looks for modules in the script's folder first: a script keras.py would be taken for Keras.
    program = f"train_{name}.py"
    (cluster.served / program).write_text(script)
    command = [python, "-u", f"{SERVED}/{program}"]
    _result, result = cluster.train(name, training_command=command, training_warmup=WARMUP, **options)
    check_steps(cluster, name, 1, 20)
    reported = [paused("eval", 10) + paused("eval", 20) if "eval" in script or name == "keras" else []] * 2
    assert [phases(cluster, name, rank) for rank in (0, 1)] == reported
    losses = [one["loss"] for one in cluster.steps(name, 0)]
    assert losses[-1] < losses[0]
    assert result["images_per_sec"] > 0
    assert result["job"]["script_sha256"]


@pytest.mark.parametrize(("name", "script"), [("keras", KERAS), ("tensorflow1", TENSORFLOW_1)])
def test_hook_records_steps_of_a_user_script(cluster: Cluster, name: str, script: str) -> None:
    check_hook(cluster, name, script)
