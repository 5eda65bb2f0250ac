"""pip installs the packages of a stack with another NCCL by their checksums, and PyTorch runs: `make frameworks`."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from plugins.module_utils.watch import gpu_program

ROOT = Path(__file__).parents[2]
STACK = yaml.safe_load((ROOT / "stacks" / "vgpu-ubuntu24-nccl232.yml").read_text())
PACKAGES = STACK["framework"]["packages"]
PLACE = ROOT / ".cache" / "frameworks" / "stack-nccl232"
REDUCED = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", rank=0, world_size=1)
value = torch.ones(1)
dist.all_reduce(value)
print(torch.__version__, value.item())
"""


def interpreter() -> str:
    """Return the Python of the stack; that of pyenv first, whose shim in PATH fails unless the version is selected."""
    found = glob.glob(os.path.expanduser(f"~/.pyenv/versions/{STACK['python']['version']}.*/bin/python3"))
    return found[0] if found else shutil.which(f"python{STACK['python']['version']}") or ""


@pytest.fixture(scope="module")
def python() -> str:
    """Return the interpreter of an environment with the packages, as the role python_environment fills it."""
    requirements = "".join(f"{one['name']}=={one['version']} --hash=sha256:{one['sha256']}\n" for one in PACKAGES)
    made, own = PLACE / "made-from", str(PLACE / "bin" / "python")
    if not made.exists() or made.read_text() != requirements:
        assert interpreter(), f"this machine has no Python {STACK['python']['version']}"
        subprocess.run([interpreter(), "-m", "venv", "--clear", str(PLACE)], check=True)
        (PLACE / "requirements.txt").write_text(requirements)
        options = ["-q", "--no-deps", "--require-hashes", "-r", str(PLACE / "requirements.txt")]
        subprocess.run([own, "-m", "pip", "install", *options], check=True)
        made.write_text(requirements)
    return own


def test_job_loads_the_nccl_of_its_stack(python: str) -> None:
    assert gpu_program.value(python, "-c", gpu_program.NCCL) == 23203


def test_pytorch_runs_with_these_packages(python: str) -> None:
    place = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29519"}
    done = subprocess.run([python, "-c", REDUCED], env=place, check=False, capture_output=True, text=True, timeout=600)

    assert done.stdout.strip() == f"{STACK['framework']['version']}+cu132 1.0", done.stderr
