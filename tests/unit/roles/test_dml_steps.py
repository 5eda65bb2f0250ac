"""The steps of a script that does not record them, with small stand-ins of the frameworks.

tests/frameworks runs the same with the real ones.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fakes import frameworks

FILES = Path(__file__).parents[3] / "roles" / "training" / "files"
BEGIN = "import os, sys, torch\nfrom torch.optim.optimizer import *\none, two = SGD(), Adam()\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with the stand-ins of the frameworks."""
    frameworks.write(tmp_path)
    return tmp_path


def run(folder: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as a rank."""
    (folder / "train.py").write_text(script)
    environment = {**os.environ, "DML_STEPS_BY": "auto", "DML_RECORDS": str(folder / "run"), "PYTHONPATH": str(FILES)}
    words = [sys.executable, "-u", str(FILES / "dml_steps.py"), str(folder / "train.py"), "--lr", "0.1"]
    rank = {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "1"}
    given = {**environment, **rank, **variables}
    return subprocess.run(words, env=given, capture_output=True, text=True, check=False)


def records(folder: Path, script: str, **variables: str) -> list[dict[str, Any]]:
    """Return the records of a script that succeeds."""
    done = run(folder, script, **variables)
    assert (done.returncode, done.stderr) == (0, "")
    path = folder / "run" / "rank0.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_records_each_optimizer_step_without_a_loss(folder: Path) -> None:
    check = "assert sys.argv[1:] == ['--lr', '0.1'] and __name__ == '__main__'\n"
    made = records(folder, BEGIN + check + "one.step()\n" * 3)
    assert [(each["step"], each["loss"], each["images_per_sec"]) for each in made] == [
        (n, None, None) for n in (1, 2, 3)
    ]
    assert {(each["by"], each["others"]) for each in made} == {("optimizer SGD", 0)}


def test_does_not_count_state_made_for_a_checkpoint(folder: Path) -> None:
    """PyTorch makes the state of an optimizer with a step of zero gradients before it loads a sharded checkpoint."""
    loading = "def _init_optim_state(made): made.step()\n_init_optim_state(one)\n"
    assert [each["step"] for each in records(folder, BEGIN + loading + "one.step()\n" * 3)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("script", "steps", "by", "others"),
    [
        ("for _ in range(6):\n    one.step()\n    for _ in range(5): two.step()\n", 6, "optimizer SGD", 1),
        # Ten steps of the second one show that the first one ended.
        ("for _ in range(4): one.step()\nfor _ in range(30): two.step()\n", 24, "optimizer Adam", 1),
        ("one.step()\ndel one\nfor _ in range(5): two.step()\n", 6, "optimizer Adam", 1),
        ("two.inner = one\nfor _ in range(5): two.step()\n", 5, "optimizer Adam", 0),
        ("three = Wrapped()\nfor _ in range(5): three.step()\n", 5, "optimizer Wrapped", 0),
    ],
)
def test_counts_one_of_several_optimizers(folder: Path, script: str, steps: int, by: str, others: int) -> None:
    made = records(folder, BEGIN + script)
    assert [each["step"] for each in made] == list(range(1, steps + 1))
    assert (made[-1]["by"], made[-1]["others"]) == (by, others)


# The part of tensors that the check of gradients needs.
TENSORS = """
import math, types
import torch
class Tensor:
    is_sparse = False
    def __init__(self, value): self.value = value
    def detach(self): return self
    def numel(self): return 1
    def norm(self, order): return self
    def to(self, *place): return self
    def max(self): return self
    def __float__(self): return self.value
    device = None
torch.float32, torch.float16, torch.stack = None, 16, lambda norms: max(norms, key=lambda norm: math.isnan(norm.value))
torch.cuda = types.SimpleNamespace(is_available=lambda: False)
def gradients(*values):
    one.param_groups = [{"params": [types.SimpleNamespace(grad=Tensor(value)) for value in values]}]
"""


@pytest.mark.parametrize(
    ("every", "first", "expected"),
    [("1", 3, {3}), ("2", 3, {4}), ("20", 3, {None}), ("0", 3, {None}), ("1", 9, {None})],
)
def test_reports_the_step_whose_gradients_are_not_finite(
    folder: Path, every: str, first: int, expected: set[Any]
) -> None:
    script = f"for n in range(1, 9):\n    gradients(1.0, float('nan') if n >= {first} else 2.0)\n    one.step()\n"

    made = records(folder, BEGIN + TENSORS + script, DML_CHECK_GRADIENTS=every)

    assert {each.get("not_finite") for each in made[-2:]} == expected
    assert "not_finite" not in made[1]
    assert made[-1].get("checked_every") == (int(every) if expected != {None} else None)


def test_skips_checks_of_a_step_skipping_fused_optimizer(folder: Path) -> None:
    script = "one.found_inf = 0.0\ngradients(float('inf'))\nfor _ in range(5): one.step()\n"
    made = records(folder, BEGIN + TENSORS + script, DML_CHECK_GRADIENTS="1")
    assert len(made) == 5 and "not_finite" not in made[-1]


def test_records_of_the_script_continue_the_count(folder: Path) -> None:
    script = "import dml_records\none.step()\nrecords = dml_records.start()\none.step()\nrecords.step(8, 0.5)\n"
    made = records(folder, BEGIN + script)
    assert [(each["step"], each["loss"], each.get("by")) for each in made] == [
        (1, None, "optimizer SGD"),
        (2, 0.5, None),
    ]


@pytest.mark.parametrize("by", ["script", "none", ""])
def test_without_the_request_nothing_is_recorded(folder: Path, by: str) -> None:
    assert records(folder, BEGIN + "one.step()\n", DML_STEPS_BY=by) == []


def test_compiled_steps_and_child_processes_record_nothing(folder: Path) -> None:
    script = "torch.compiler.is_compiling = lambda: True\none.step()\ntorch.compiler.is_compiling = lambda: False\n"
    script += "if not os.fork():\n    one.step()\n    os._exit(0)\nos.wait()\ntwo.step()\n"
    assert [each["by"] for each in records(folder, BEGIN + script)] == ["optimizer Adam"]


def test_unwritable_records_do_not_end_the_script(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "rank0.jsonl").symlink_to("/dev/full")
    done = run(folder, BEGIN + "one.step()\none.step()\nprint('trained')\n")
    assert (done.returncode, done.stdout) == (0, "trained\n")
    cause = f"[Errno 28] No space left on device: '{folder / 'run' / 'rank0.jsonl'}'"
    assert done.stderr == f"dml_steps.py could not record step 1: {cause}\n"


def test_records_again_when_a_disk_has_room(folder: Path) -> None:
    script = "real, left = os.write, [True]\none.step()\n"
    script += "def full(file, data):\n    if left and left.pop():\n        return real(file, data[:9])\n"
    script += "    raise OSError(28, 'No space left on device')\n"
    script += "os.write = full\none.step()\none.step()\nos.write = real\none.step()\n"
    done = run(folder, BEGIN + script)
    lines = (folder / "run" / "rank0.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in (lines[0], lines[-1])] == [1, 4]
    assert len(lines) == 3 and done.returncode == 0 and done.stderr.count("could not record step 2") == 1


def test_counts_steps_before_its_folder_has_room(folder: Path) -> None:
    script = "real = os.makedirs\ndef full(*given, **named): raise OSError(28, 'No space left on device')\n"
    script += "os.makedirs = full\none.step()\none.step()\nos.makedirs = real\none.step()\n"
    assert run(folder, BEGIN + script).returncode == 0
    lines = (folder / "run" / "rank0.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [3]


def test_writes_nothing_into_files_opened_after_its_own_closed(folder: Path) -> None:
    """A helper that becomes a daemon closes all descriptors; the program's next file then gets the number of one."""
    script = "one.step()\nos.closerange(3, 100)\none.step()\n"
    script += "checkpoints = [os.open(f'checkpoint{n}', os.O_WRONLY | os.O_CREAT) for n in range(9)]\none.step()\n"
    script += "print(sum(os.fstat(each).st_size for each in checkpoints))\n"

    done = run(folder, f"import os\nos.chdir({str(folder)!r})\n" + BEGIN + script)

    assert (done.returncode, done.stdout) == (0, "0\n")
    cause = f"[Errno 9] Bad file descriptor: '{folder / 'run' / 'rank0.jsonl'}'"
    assert done.stderr == f"dml_steps.py records no more steps: {cause}\n"


def test_records_keras_losses_and_its_evaluation_as_phase(folder: Path) -> None:
    script = "import keras.src.callbacks as given\ncalls = given.CallbackList()\n"
    script += "calls.call('on_test_begin')\ncalls.call('on_train_batch_end', 0, {'loss': 1.5})\n"
    script += "calls.call('on_test_begin')\ncalls.call('on_test_end')\n"
    made = records(folder, script)
    reported = [(each["phase"], each.get("mark"), each["loss"], each["by"]) for each in made]
    expected = [("train", None, 1.5), ("eval", "begin", None), ("eval", "end", None)]
    assert reported == [(*each, "Keras") for each in expected]


def test_the_callbacks_of_the_user_stay(folder: Path) -> None:
    script = "from keras.src.callbacks import Callback, CallbackList\nown = Callback()\n"
    script += "print([CallbackList(given).callbacks.index(own) for given in ([own], (own,), own)])\n"
    assert run(folder, script).stdout == "[0, 0, 0]\n"


def test_the_first_framework_counts(folder: Path) -> None:
    script = "from keras.src.callbacks import CallbackList\none.step()\n"
    script += "CallbackList().call('on_train_batch_end', 0, {'loss': 1.5})\none.step()\n"
    assert [each["step"] for each in records(folder, BEGIN + script)] == [1, 2]


def test_leaves_modules_and_loaders_of_frameworks_unchanged(folder: Path) -> None:
    last = "print(__spec__.name, 'exec_module' in vars(torch.optim.optimizer.__loader__))\n"
    (folder / "mine.py").write_text(f"{BEGIN}one.step()\n{last}")
    environment = {**os.environ, "DML_STEPS_BY": "auto", "DML_RECORDS": str(folder / "run")}
    words = [sys.executable, str(FILES / "dml_steps.py"), "-m", "mine"]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "mine False\n"
    assert (folder / "run" / "rank0.jsonl").exists()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, str(len(os.sched_getaffinity(0)))),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "4096"}, "1"),
        ({"OMP_NUM_THREADS": "7"}, "7"),
    ],
)
def test_ranks_share_cores_unless_the_user_chose(folder: Path, variables: dict[str, str], expected: str) -> None:
    own = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    done = run(
        folder, "import os\nprint(os.environ['OMP_NUM_THREADS'])\n", **{"OMP_NUM_THREADS": "", **own, **variables}
    )
    assert done.stdout.strip() == expected


FULL = """
import collections, os
Space = collections.namedtuple("Space", "f_bavail f_frsize f_blocks f_flag")
os.statvfs = lambda path: Space(0 if path == "{full}" else 10**6, 4096, 3000, 0)
raise {error}
"""


@pytest.mark.parametrize(
    ("error", "full", "line"),
    [
        ("OSError(28, 'No space left on device', '/x.pt')", "/", "dml_steps.py: no space is left in / (12 MB)\n"),
        ("RuntimeError('PytorchStreamWriter failed writing file')", "/", ""),
        # The error of a write names no file, and the program did not write to the usual folders.
        ("OSError(28, 'No space left on device')", "/proc", "dml_steps.py: no space is left in /proc (12 MB)\n"),
        ("OSError(28, 'No space left on device')", "", "dml_steps.py: no space was left, and there is room again\n"),
    ],
)
def test_full_disk_failure_names_the_file_system(folder: Path, error: str, full: str, line: str) -> None:
    done = run(folder, FULL.format(error=error, full=full))
    assert done.returncode == 1 and done.stderr.startswith(line or "Traceback"), done.stderr


LOGS = {
    "Trainer": """
from transformers.trainer_callback import CallbackHandler
def log(**logs):
    assert CallbackHandler().on_log("args", "state", "control", logs) == ("control", logs)
""",
    "Lightning": """
from lightning.pytorch.trainer.connectors.logger_connector.logger_connector import _LoggerConnector
def log(**metrics):
    assert _LoggerConnector().log_metrics(metrics, step=3) == metrics
""",
}


@pytest.mark.parametrize("trainer", LOGS)
def test_records_the_trainer_loss_with_its_own_step(folder: Path, trainer: str) -> None:
    script = """
log(train_loss=9.0)
one.step()
log(train_loss=0.5, lr=0.1)
one.step()
log(val_loss=7.0)
log(loss="odd")
one.step()
log(loss=float("nan"))
log(train_loss=3.0, train_runtime=1.0)
"""

    made = records(folder, BEGIN + LOGS[trainer] + script)

    logged = [(each["step"], each["loss"]) for each in made if each.get("mark") == "loss"]
    assert logged == [(1, 0.5), (3, "nan")]
    assert [each["loss"] for each in made if "mark" not in each] == [None] * 3


@pytest.mark.parametrize(
    ("group", "expected"),
    [("None", 1), ("Group(True, 2)", 2), ("Group(True, 4)", None), ("Group(False, 0)", 1), ("hvd", None), ("tf", None)],
)
def test_rank_reports_a_group_without_all_ranks(folder: Path, group: str, expected: int | None) -> None:
    begin = """
class Group:
    def __init__(self, is_there, size): self.is_initialized, self.get_world_size = lambda: is_there, lambda: size
"""
    others = {
        # Importing a part of a package imports the package, such as horovod.tensorflow.keras.
        "hvd": "sys.modules['horovod'] = torch",
        "tf": "del sys.modules['torch']",
    }
    given = others.get(group, f"torch.distributed = {group}")
    made = records(folder, f"{BEGIN}{begin}{given}\nfor _ in range(11): one.step()\n", OMPI_COMM_WORLD_SIZE="4")

    assert [each.get("group") for each in made] == [None] * 9 + [expected] * 2


BEGINS = {
    "Trainer": """
from transformers.trainer_callback import CallbackHandler
assert CallbackHandler().on_train_begin("args", Of(global_step=STEP), "control") == "control"
""",
    "Lightning": """
from lightning.pytorch.loops.fit_loop import _FitLoop
_FitLoop.trainer = Of(global_step=STEP)
assert _FitLoop().run() == "ran"
""",
}


@pytest.mark.parametrize("trainer", BEGINS)
@pytest.mark.parametrize("step", [0, 40])
def test_steps_continue_after_the_checkpoint_of_trainer(folder: Path, trainer: str, step: int) -> None:
    begins = f"from types import SimpleNamespace as Of\nSTEP = {step}\n{BEGINS[trainer]}one.step()\none.step()\n"

    assert [each["step"] for each in records(folder, BEGIN + begins)] == [step + 1, step + 2]


def marks(made: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(each["step"], each["phase"], each.get("mark")) for each in made]


def test_trainer_evaluations_and_checkpoints_are_phases(folder: Path) -> None:
    script = """
import inspect
from transformers.trainer import Trainer
trainer = Trainer()
trainer.evaluation_loop("before the first step")
one.step()
assert trainer.evaluation_loop(1, description="x") == (1, "x")
one.step()
try: trainer._save_checkpoint(None, trial=None)
except OSError: pass
one.step()
assert list(inspect.signature(trainer._save_checkpoint).parameters) == ["model", "trial"]
"""
    assert marks(records(folder, BEGIN + script)) == [
        (1, "train", None),
        (1, "eval", "begin"),
        (1, "eval", "end"),
        (2, "train", None),
        (2, "checkpoint", "begin"),
        (2, "checkpoint", "end"),
        (3, "train", None),
    ]


def test_nested_lightning_phase_is_part_of_the_outer(folder: Path) -> None:
    script = """
from lightning.pytorch.trainer.trainer import Trainer
one.step()
assert Trainer().save_checkpoint("a.ckpt", weights_only=True) == "a.ckpt"
one.step()
"""
    assert marks(records(folder, BEGIN + script)) == [
        (1, "train", None),
        (1, "checkpoint", "begin"),
        (1, "checkpoint", "end"),
        (2, "train", None),
    ]


def test_script_that_writes_records_gets_no_trainer_phases(folder: Path) -> None:
    script = """
import dml_records
from transformers.trainer import Trainer
made = dml_records.start()
made.step()
Trainer().evaluation_loop(1)
one.step()
"""
    assert marks(records(folder, BEGIN + script)) == [(1, "train", None)]
