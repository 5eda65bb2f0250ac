"""The checks of `make gpu`: each returns a sentence and its data, or refuses a machine that cannot show it."""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from plugins.module_utils.guests import gpu_health, gpu_report, memory_pools
from plugins.module_utils.training.ending import job_end
from plugins.module_utils.training.output.gpu_use import gpus_of
from plugins.module_utils.watch import gpu_program, hang_program, hangs

from . import ranks
from .ranks import ROOT, start

FRAMEWORK_SCRIPTS = ROOT / "tests" / "frameworks" / "scripts"
QUERY = [
    "nvidia-smi",
    "--query-gpu=index,name,utilization.gpu,memory.used,memory.total",
    "--format=csv,noheader,nounits",
]
NO_POOLS = Path(__file__).parent / "no_pools.c"
STUN_SECONDS = 4.0
Result = tuple[str, dict[str, Any]]


class Refused(Exception):
    """The machine cannot show this; the text says what is missing."""


class Wrong(Exception):
    """The machine shows something else than the collection says."""


def require_gpu() -> None:
    """Refuse a machine without a GPU that PyTorch can use."""
    require_torch()
    import torch

    if not torch.cuda.is_available():
        raise Refused("PyTorch finds no GPU on this machine.")


def require_torch() -> None:
    """Refuse an interpreter without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        raise Refused(f"{sys.executable} has no PyTorch: set PYTHON to one that has it.")


def smi_rows(_folder: Path) -> Result:
    """Read the rows of nvidia-smi as the live page does, and compare them with PyTorch's."""
    if not shutil.which("nvidia-smi"):
        raise Refused("This machine has no nvidia-smi.")
    done = subprocess.run(QUERY, check=False, capture_output=True, text=True)
    now = time.time()
    (node,) = gpus_of({"here": {"gpus": [now, {"text": done.stdout, "code": done.returncode}]}}, now)
    if node.why or not node.gpus:
        raise Wrong(f"The rows of nvidia-smi are not read ({node.why}): {done.stdout[:300]}")
    return f"nvidia-smi lists {', '.join(gpu.name for gpu in node.gpus)}.", {"rows": done.stdout}


def health(_folder: Path) -> Result:
    """Read the GPUs as a training run does."""
    found: dict[str, Any] = gpu_program.smi()
    if found["smi"] is None:
        raise Refused(f"nvidia-smi -q -x gives no report ({found['failure'] or 'the program is missing'}).")
    report = gpu_report.report(str(found["smi"]))
    found.update(log=gpu_program.log(), modules=gpu_program.modules(), **gpu_program.attributes())
    found["nccl"] = gpu_program.value(sys.executable, "-c", gpu_program.NCCL)
    texts = [f"{one.severity}: {one.text}" for one in gpu_health.findings("here", found, time.time() - 86400)]
    facts = {**gpu_report.plain(report), **memory_pools.facts(found), "findings": texts, "smi": found["smi"]}
    return (
        f"{len(report.gpus)} GPU of driver {report.driver}, {len(texts)} findings, {memory_pools.facts(found)}.",
        facts,
    )


def folder_steps(folder: Path) -> Result:
    """Train with an unchanged script on the GPU; its steps are recorded."""
    require_torch()
    import torch

    backend = "nccl" if torch.cuda.is_available() else "gloo"
    return _trained(folder, "train_cuda.py", [backend, "8", "0"], 8)


def trainer_steps(folder: Path) -> Result:
    """Train with Hugging Face's Trainer."""
    return _framework(folder, "transformers", "trainer.py", [str(folder)])


def lightning_steps(folder: Path) -> Result:
    """Train with Lightning."""
    return _framework(folder, "lightning", "lightning_fit.py", [str(folder), "1", "1"])


def _framework(folder: Path, package: str, script: str, words: list[str]) -> Result:
    require_torch()
    if importlib.util.find_spec(package) is None:
        raise Refused(f"{sys.executable} has no {package}.")
    return _trained(folder, FRAMEWORK_SCRIPTS / script, words, 8)


def _trained(folder: Path, script: Path | str, words: list[str], steps: int) -> Result:
    job = start(folder, script, words)
    (output,) = job.outputs()
    made = [record["step"] for record in job.records() if "mark" not in record]
    if job.codes != [0] or made != list(range(1, steps + 1)):
        raise Wrong(f"The script ended with {job.codes} and the steps {made}: {output[-1500:]}")
    return f"{len(made)} steps of an unchanged script were recorded.", {"steps": made, "output": output[-500:]}


def stun(folder: Path) -> Result:
    """Stop one of two ranks for some seconds, as a stun does; both go on, and the silence is measured."""
    require_torch()
    job = start(folder, "train_cuda.py", ["gloo", "60", "0.1"], size=2)
    if not job.wait_for_step(1, 5):
        job.signal(0, signal.SIGKILL)
        job.signal(1, signal.SIGKILL)
        raise Wrong(f"Two ranks over Gloo made no steps: {' '.join(job.outputs())[-1500:]}")
    job.signal(1, signal.SIGSTOP)
    time.sleep(STUN_SECONDS)
    job.signal(1, signal.SIGCONT)
    outputs = job.outputs()
    times = [record["t"] for record in job.records(0) if "mark" not in record]
    longest = max(later - before for before, later in itertools.pairwise(times))
    if job.codes != [0, 0] or len(times) != 60 or longest < STUN_SECONDS - 1:
        raise Wrong(f"The job ended with {job.codes} after {len(times)} steps: {' '.join(outputs)[-1500:]}")
    return f"The job went on after {longest:.1f} s of silence, and lost none of 60 steps.", {"longest_s": longest}


def no_memory(folder: Path) -> Result:
    """Tell the cause of a rank that has too little memory."""
    return _cause(folder, "no_memory.py", "out of memory")


def device_assert(folder: Path) -> Result:
    """Tell the cause of a rank whose kernel failed."""
    return _cause(folder, "device_assert.py", "assert")


def _cause(folder: Path, script: str, word: str) -> Result:
    require_gpu()
    job = start(folder, script)
    (output,) = job.outputs()
    tagged = "".join(f"[1,0]<stderr>:{line}\n" for line in output.splitlines())
    cause = job_end.cause_of(tagged, job.codes[0], ["here"])
    if word not in cause.sentence:
        raise Wrong(f"The cause is {cause.sentence!r}, which does not name {word!r}: {output[-1500:]}")
    return cause.sentence, {"output": output[-1500:]}


def killed(folder: Path) -> Result:
    """Tell which signal ended a rank."""
    require_torch()
    job = start(folder, "train_cuda.py", ["gloo", "200", "0.1"])
    job.wait_for_step(0, 3)
    job.signal(0, signal.SIGKILL)
    job.outputs()
    cause = job_end.cause_of("", 128 + signal.SIGKILL, ["here"])
    if job.codes != [-signal.SIGKILL] or "Killed" not in cause.sentence:
        raise Wrong(f"The rank ended with {job.codes}, and the cause is {cause.sentence!r}.")
    return cause.sentence, {}


def communicator(folder: Path) -> Result:
    """Make a communicator of NCCL with one rank."""
    return _communicator(folder, {})


def communicator_without_pools(folder: Path) -> Result:
    """Make one while the driver answers that it has no memory pools, as on a vGPU that moves."""
    require_gpu()
    library = no_pools_library(folder)
    number = gpu_program.value(sys.executable, "-c", gpu_program.NCCL)
    is_expected = not memory_pools.misfits({"pools": [0], "nccl": number})
    try:
        text, data = _communicator(folder, {"LD_PRELOAD": str(library)})
    except Wrong as error:
        if is_expected:
            raise
        return f"As expected, NCCL {number} does not start without memory pools.", {"output": str(error)}
    if not is_expected:
        raise Wrong(f"NCCL {number} starts without memory pools, against stacks/facts/compatibility.yml: {text}")
    return f"Without memory pools: {text}", data


def no_pools_library(folder: Path) -> Path:
    """Compile the library that hides memory pools."""
    if not shutil.which("cc"):
        raise Refused("This machine has no C compiler (cc).")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / "no_pools.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(NO_POOLS), "-ldl"], check=True)
    return library


def _communicator(folder: Path, environment: Mapping[str, str]) -> Result:
    require_gpu()
    job = start(folder, "one_communicator.py", environment={"NCCL_DEBUG": "INFO", **environment})
    (output,) = job.outputs()
    lines = [line for line in output.splitlines() if "reduced" in line or "memory pool" in line.lower()]
    if job.codes != [0]:
        raise Wrong(f"The communicator failed: {output[-1500:]}")
    return " ".join(lines), {"output": output[-3000:]}


def recorder(folder: Path) -> Result:
    """Ask a rank with NCCL for the dump of its Flight Recorder."""
    require_gpu()
    place = folder / "recorders"
    place.mkdir(parents=True)
    names = {"TORCH_FR_DUMP_TEMP_FILE": "rank_", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": "pipe_"}
    variables = {name: f"{place}/{start_of}" for name, start_of in names.items()}
    old = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": f"{place}/rank_", "TORCH_NCCL_TRACE_BUFFER_SIZE": "2000"}
    job = start(folder, "one_communicator.py", ["40"], environment={**variables, **old, "TORCH_FR_BUFFER_SIZE": "2000"})
    deadline = time.monotonic() + ranks.LIMIT
    while not list(place.glob("pipe_*")) and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(5)
    dumps = hang_program.dumps(str(place))
    (output,) = job.outputs()
    if not dumps:
        raise Wrong(f"The rank wrote no dump into {os.listdir(place)}: {output[-1500:]}")
    return f"A rank wrote its dump when it was asked; sentences: {hangs.sentences(dumps, [])}.", {"dump": dumps}


CHECKS: dict[str, Callable[[Path], Result]] = {
    "rows of nvidia-smi": smi_rows,
    "health": health,
    "steps of a script": folder_steps,
    "steps of Trainer": trainer_steps,
    "steps of Lightning": lightning_steps,
    "stun of a rank": stun,
    "out of memory": no_memory,
    "device-side assert": device_assert,
    "killed rank": killed,
    "communicator of NCCL": communicator,
    "communicator without memory pools": communicator_without_pools,
    "Flight Recorder": recorder,
}


def versions() -> dict[str, Any]:
    """Return the versions of this machine, as far as they can be read."""
    found: dict[str, Any] = {"python": sys.version.split()[0], "kernel": os.uname().release}
    if importlib.util.find_spec("torch") is not None:
        import torch

        has_gpu = torch.cuda.is_available()
        found.update(torch=torch.__version__, cuda=torch.version.cuda)
        found["gpu"] = torch.cuda.get_device_name(0) if has_gpu else None
    found["nccl"] = gpu_program.value(sys.executable, "-c", gpu_program.NCCL)
    return dict(json.loads(json.dumps(found)))
