"""The command, the environment and the transport settings of the ranks of a run; pure."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from typing import NamedTuple

from ...errors import Refused
from ..launch import mpirun
from ..transport import job_settings
from .training_options import Options
from .training_run import SLURM, Prepared, TrainingRun

ALONE = "pytorch_ddp"
TF_CNN = "tf_cnn_benchmarks"
# The collectives that each rank remembers, and the distance of the port of RAS from that of the rendezvous.
RECORDED, RAS_OFFSET = 2000, 1000
PYTHONS = (["python"], ["python3"])
OF_PYTHON = (".py",)
PATH = "PYTHONPATH"
RESUME = "{resume}"
# An option that needs a separate value, and one with {resume} in the same word, also as --x=, x= or +x= of Hydra.
OPTION, SET_TO_RESUME = re.compile(r"--?[A-Za-z][\w.-]*"), re.compile(r"[-+]{0,2}[A-Za-z][\w./@-]*=\{resume\}")


class RankWords(NamedTuple):
    """The command of each rank, and the options of its launcher that were dropped."""

    words: list[str]
    dropped: list[str]


def rank_words(o: Options, prepared: Prepared) -> RankWords:
    """Return the command of each rank, with the values of its placeholders."""
    given = _given(o, prepared.python)
    words = given.words or [str(o["python"]), "-u", *_benchmark(o), *o["options"]]
    count = len(o["nodes"])
    values = {"{nodes}": str(count), "{ranks}": str(count * int(o["ranks_per_node"])), RESUME: prepared.resume}
    values.update({"{data}": str(prepared.data["path"])} if prepared.data else {})
    words = words if prepared.resume else _without_resume([str(word) for word in words])
    for name, value in values.items():
        words = [str(word).replace(name, value) for word in words]
    return RankWords(words, given.dropped)


def _without_resume(words: Sequence[str]) -> list[str]:
    """Return a command without the options whose only value is ``{resume}``: programs refuse an empty path."""
    kept: list[str] = []
    for word in words:
        if word == RESUME and OPTION.fullmatch(kept[-1] if kept else ""):
            kept.pop()
        elif not SET_TO_RESUME.fullmatch(word):
            kept.append(word)
    return kept


def split_command(command: str | Sequence[str]) -> list[str]:
    """Return the words of a command that is a list or text."""
    try:
        return mpirun.words_of(command)
    except mpirun.LauncherError as error:
        raise refused(error) from error


def _given(o: Options, python: str) -> RankWords:
    """Return the user's command as the command of one rank; empty for a benchmark."""
    command = split_command(o["command"])
    if not command:
        return RankWords([], [])
    torchrun = f"{o['dir']}/dml_torchrun.py"
    try:
        rank = mpirun.rank_command(command, python, torchrun)
    except mpirun.LauncherError as error:
        raise refused(error) from error
    # In a folder that was copied to the nodes, as on the user's machine, "python" has the packages of the training.
    words = [python, *rank.command[1:]] if o["folder"] and rank.command[:1] in PYTHONS else list(rank.command)
    steps = _steps_program(o)
    return RankWords(mpirun.with_steps(words, steps) if steps else words, rank.dropped)


def refused(error: mpirun.LauncherError) -> Refused:
    """Return the error of a command that cannot be translated."""
    return Refused("training_command", "run it", str(error))


def _steps_program(o: Options) -> str:
    """Return the program that runs a script of Python; without Horovod, it also sets the variables of torchrun."""
    if o["framework"] == ALONE:
        return f"{o['dir']}/dml_torchrun.py"
    return f"{o['dir']}/dml_steps.py" if o["steps_by"] == "auto" else ""


def _benchmark(o: Options) -> list[str]:
    """Return the program of a benchmark. The output of tf_cnn_benchmarks is recorded, so it must print each step."""
    if o["framework"] != TF_CNN:
        return [f"{o['dir']}/dml_benchmark_{o['framework']}.py"]
    program = f"{tf_cnn_folder(o)}/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
    return [f"{o['dir']}/dml_output.py", program, "--variable_update=horovod", "--display_every=1"]


def tf_cnn_folder(o: Options) -> str:
    return f"{o['dir']}/benchmarks-{o['tf_cnn_sha256'][:12]}"


def transport_settings(o: Options, nodes: Sequence[job_settings.TransportNode]) -> job_settings.MpirunSettings:
    """Return the environment and the arguments of mpirun for the transport of a run."""
    nccl = o["nccl"] or None
    try:
        job_settings.check_framework(o["framework"], o["transport"], nccl)
        speech = {"network": o["network"], "bind_to": o["bind_to"]}
        made = job_settings.settings(o["transport"], nodes, nccl, stun_seconds=float(o["stun_seconds"]), **speech)
        made["environment"].update(job_settings.gpudirect_environment(o["transport"], nodes, nccl, o["gdr"]))
        return made
    except job_settings.TransportError as error:
        raise Refused("training_transport", "set it up", str(error)) from error


def script_of(words: Sequence[str], work: str) -> str:
    """Return the path of the user's script in a command; empty without one."""
    library = ("dml_output.py", "dml_steps.py", "dml_torchrun.py")
    scripts = [word for word in words if word.endswith(OF_PYTHON) and posixpath.basename(word) not in library]
    return posixpath.join(work, scripts[0]) if scripts else ""


def lock_words(o: Options) -> list[str]:
    """Return the program with which the first rank of a node locks it for its lifetime; none if runs share nodes.

    Slurm itself decides which jobs share a node.
    """
    if o["share_nodes"] or o["image"] or o["backend"] == SLURM:
        return []
    return [o["remote_python"], f"{o['dir']}/dml_node_lock.py", o["dir"]]


def recorder_environment(run: TrainingRun, prepared: Prepared) -> dict[str, str]:
    """Return the variables with which ranks over NCCL record their collectives, and answer who waits for whom.

    PyTorch up to 2.8 has the older names only. Each job of a node needs its own port of RAS.
    """
    if not run.o["nccl"]:
        return {}
    dump, size = f"{run.recorders}/rank_", str(RECORDED)
    return {
        "NCCL_RAS_ADDR": f"localhost:{prepared.port + RAS_OFFSET}",
        "TORCH_FR_BUFFER_SIZE": size,
        "TORCH_FR_DUMP_TEMP_FILE": dump,
        "TORCH_NCCL_DEBUG_INFO_PIPE_FILE": f"{run.recorders}/pipe_",
        "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": dump,
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "1",
        "TORCH_NCCL_TRACE_BUFFER_SIZE": size,
    }


def own_environment(o: Options) -> dict[str, str]:
    """Return the variables that the user gives the ranks; the library stays among the modules that they import."""
    given = {str(name): str(value) for name, value in o["environment"].items()}
    return {**given, PATH: f"{given[PATH]}:{o['dir']}"} if given.get(PATH) else given


def run_environment(run: TrainingRun, prepared: Prepared) -> dict[str, str]:
    """Return the variables of the library, of the person who asked for the run, and of a resumed run."""
    o = run.o
    return {
        PATH: o["dir"],
        "DML_STEPS_BY": o["steps_by"],
        "DML_CHECK_GRADIENTS": str(o["check_gradients"]),
        "DML_RUN_BY": run.requested_by,
        **({"PYTHONUNBUFFERED": "1"} if o["folder"] else {}),
        **({"DML_RESUME": prepared.resume} if run.resumed else {}),
        **({"DML_DATA": str(prepared.data["path"])} if prepared.data else {}),
    }
