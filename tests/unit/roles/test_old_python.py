"""The programs in the whitepaper's image run with Python 3.6 and Horovod 0.16.4, and with current versions."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROLES = Path(__file__).parents[3] / "roles"
IN_IMAGE = [
    ROLES / "horovod" / "files" / "allreduce.py",
    ROLES / "openmpi" / "files" / "hello.py",
    ROLES / "training_image" / "files" / "patch.py",
    ROLES / "training_image" / "files" / "versions.py",
    ROLES.parent / "tests" / "lab" / "tensorflow1.py",
    ROLES / "training" / "files" / "dml_environment.py",
    ROLES / "training" / "files" / "dml_output.py",
    ROLES / "training" / "files" / "dml_pairs.py",
    ROLES / "training" / "files" / "dml_pairs_nccl.py",
    ROLES / "training" / "files" / "dml_records.py",
    ROLES / "training" / "files" / "dml_room.py",
    ROLES / "training" / "files" / "dml_trainers.py",
    ROLES / "training" / "files" / "dml_steps.py",
]
# Names that Python has only from 3.7 on.
LATER = {"capture_output", "text", "removeprefix", "removesuffix", "fromisoformat", "time_ns", "get_running_loop"}
TENSOR = "class Tensor(list):\n    def numpy(self): return self\n"
HOROVOD = TENSOR + "def init(): pass\ndef rank(): return 1\ndef size(): return 2\ndef shutdown(): pass\n"
HOROVODS = {
    "0.16.4": HOROVOD + "def allreduce(tensor, average=True): return Tensor([3.0 / (2 if average else 1)])\n",
    "0.28.1": HOROVOD
    + "Sum, Average = 'sum', 'average'\ndef mpi_enabled(): return True\n"
    + "def allreduce(tensor, op=Average): return Tensor([3.0 if op == Sum else 1.5])\n",
}
GRAPHS = "\neager = False\ndef enable_eager_execution():\n    global eager; eager = True\n"
FRAMEWORKS = {
    "1.13.1": "__version__ = '1.13.1'" + GRAPHS + "def constant(values): assert eager; return values\n",
    "2.15.1": "__version__ = '2.15.1'\ndef constant(values): return values\n",
}


@pytest.mark.parametrize("path", IN_IMAGE, ids=lambda path: path.name)
def test_python_3_6_parses_programs_of_the_image(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 6))
    imported = {one.module for one in ast.walk(tree) if isinstance(one, ast.ImportFrom)}
    assert not imported & {"__future__", "dataclasses"}
    used = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
    used |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.keyword) and one.arg}
    assert not used & LATER
    # Evaluated there as soon as the function is defined: list[str] and X | None are errors.
    built_in = {"list", "dict", "tuple", "set"}
    subscripts = [one.value for one in ast.walk(tree) if isinstance(one, ast.Subscript)]
    assert not [one.id for one in subscripts if isinstance(one, ast.Name) and one.id in built_in]


@pytest.mark.parametrize(("horovod", "tensorflow"), [("0.16.4", "1.13.1"), ("0.28.1", "2.15.1")])
def test_rank_reduces_with_old_and_current_horovod(tmp_path: Path, horovod: str, tensorflow: str) -> None:
    (tmp_path / "horovod").mkdir()
    (tmp_path / "horovod" / "__init__.py").write_text(f"__version__ = {horovod!r}\n")
    (tmp_path / "horovod" / "tensorflow.py").write_text(HOROVODS[horovod])
    (tmp_path / "tensorflow.py").write_text(FRAMEWORKS[tensorflow])
    command = [sys.executable, str(IN_IMAGE[0]), "tensorflow"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.removeprefix("allreduce "))
    assert (result["sum"], result["size"], result["mpi"]) == (3.0, 2, True)
    assert (result["horovod"], result["framework"]) == (horovod, tensorflow)
