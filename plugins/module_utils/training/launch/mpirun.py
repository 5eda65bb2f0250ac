"""The command line of mpirun for a job; commands of launchers, such as torchrun, become the command of one rank.

Under mpirun each rank of torchrun would start a separate training. The options that place ranks are dropped; those that
change the training in another way are refused with their name.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

# https://docs.pytorch.org/docs/stable/elastic/run.html
TORCH_PLACES = {
    *("nnodes", "nproc-per-node", "node-rank", "master-addr", "master-port", "local-addr", "rdzv-backend"),
    *("rdzv-endpoint", "rdzv-id", "rdzv-conf", "monitor-interval", "start-method", "role", "log-dir", "redirects"),
    *("tee", "local-ranks-filter", "log-line-prefix-template", "r", "t"),
}
TORCH_SWITCHES = {"standalone"}
TORCH_MODULES = ("torch.distributed.run", "torch.distributed.launch")
# https://huggingface.co/docs/accelerate/package_reference/cli
ACCELERATE_PLACES = {
    *("num-processes", "num-machines", "machine-rank", "main-process-ip", "main-process-port", "rdzv-backend"),
    *("rdzv-conf", "gpu-ids", "num-cpu-threads-per-process", "monitor-interval", "role", "log-dir", "tee"),
}
ACCELERATE_SWITCHES = {"multi-gpu", "cpu", "same-network", "quiet", "q"}
RESTARTS = "max-restarts"
WRAPPERS = {
    *("env", "nohup", "nice", "ionice", "time", "timeout", "stdbuf", "bash", "sh", "exec", "sudo", "setsid"),
    *("numactl", "taskset", "nsys", "ncu", "strace", "uv", "conda", "mamba", "micromamba", "poetry", "pipenv", "pdm"),
    *("hatch", "pixi", "rye"),
}
# Programs that start ranks and have no translation.
LAUNCHERS = ("mpirun", "mpiexec", "horovodrun", "deepspeed", "srun", "colossalai")

# Options of Python that change neither its imports nor the program that it runs, and those with a value.
PLAIN_OPTIONS = {"-u", "-B", "-b", "-bb", "-d", "-O", "-OO", "-q", "-v", "-s"}
VALUE_OPTIONS = {"-W", "-X"}
PYTHON = re.compile(r"python(3(\.\d+)?)?\Z")
# The parts of a text that are quoted; in double quotes, a shell replaces variables.
_QUOTED = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*\"""", re.DOTALL)
# Words with which a shell joins programs or redirects their output, and variables and commands that it replaces.
_FOR_A_SHELL = re.compile(r"(?:&&?|\|\|?|;)\Z|\S*;\Z|(?:\d?>|&>|<)\S*\Z")
_EXPANDED = re.compile(r"\$\w+|\$\{\w+\}?|\$\(\w*|`\w*")
# Programs of the training library that record steps themselves.
OWN_PROGRAMS = ("dml_torchrun.py", "dml_output.py", "dml_steps.py")


class LauncherError(ValueError):
    """A launcher, or an option of a launcher, cannot be translated."""


class RankCommand(NamedTuple):
    """The command of one rank, and the options that were dropped."""

    command: list[str]
    dropped: list[str]


def words_of(command: str | Sequence[str]) -> list[str]:
    """Return the words of a command; -e NAME=VALUE of ansible-playbook gives a text, in JSON or as in a shell."""
    if not isinstance(command, str):
        return [str(word) for word in command]
    try:
        given = json.loads(command) if command.lstrip().startswith("[") else _split(command)
    except ValueError as error:
        raise LauncherError(f"training_command is {command}, which cannot be read: {error}") from error
    return [str(word) for word in given]


def _split(text: str) -> list[str]:
    """Return the words of a text as a shell does; refuse what only a shell would do: no shell runs the command."""
    plain = (match for word in _QUOTED.sub("_", text).split() if (match := _FOR_A_SHELL.match(word)))
    found = next(plain, None) or _EXPANDED.search(_QUOTED.sub(_with_variables, text))
    if found:
        remedy = "and no shell runs it: quote it, or let one script do all of it"
        raise LauncherError(f"training_command has {found[0]}, which only a shell understands, {remedy}")
    return shlex.split(text)


def _with_variables(quoted: re.Match[str]) -> str:
    """Return a quoted part in which a shell replaces variables; one with several words is a program for a shell."""
    return "_" if quoted[0][0] != '"' or re.search(r"\s", quoted[0]) else quoted[0]


def rank_command(command: Sequence[str], python: str, torchrun: str) -> RankCommand:
    """Return the command of one rank; ``torchrun`` is the program that sets torchrun's variables for a script."""
    words = _plain([str(word) for word in command])
    name = words[0].rpartition("/")[2] if words else ""
    if name == "torchrun":
        return _translated(words[1:], name, TORCH_PLACES, TORCH_SWITCHES, _beside(words[0], python), torchrun)
    if name.startswith("python") and _runs_torch(words):
        return _translated(words[3:], words[2], TORCH_PLACES, TORCH_SWITCHES, words[0], torchrun)
    if name == "accelerate" and words[1:2] == ["launch"]:
        options = (ACCELERATE_PLACES, ACCELERATE_SWITCHES)
        return _translated(words[2:], "accelerate launch", *options, _beside(words[0], python), torchrun)
    if name in LAUNCHERS or _is_wrapped(words):
        remedy = "which starts ranks by itself: specify the command of one rank"
        raise LauncherError(f"training_command begins with {name}, {remedy}")
    return RankCommand(words, [])


def _plain(words: list[str]) -> list[str]:
    """Return a command of Python with its option -m as a separate word, directly after the program."""
    name = words[0].rpartition("/")[2] if words else ""
    if name == "accelerate-launch":
        return [words[0].replace("accelerate-launch", "accelerate"), "launch", *words[1:]]
    if not name.startswith("python"):
        return words
    options = [index for index, word in enumerate(words) if index and word.startswith("-m")]
    if not options or any(not word.startswith("-") for word in words[1 : options[0]]):
        return words
    at = options[0]
    module = [words[at][2:], *words[at + 1 :]] if len(words[at]) > 2 else words[at + 1 :]
    if module[:1] == ["accelerate.commands.launch"]:
        return [words[0].rpartition("/")[0] + "/accelerate" if "/" in words[0] else "accelerate", "launch", *module[1:]]
    plain = [words[0], "-m", *module]
    return plain if _runs_torch(plain) else words


def _runs_torch(words: Sequence[str]) -> bool:
    """Return whether a command of Python runs PyTorch's launcher as a module."""
    return words[1:2] == ["-m"] and words[2:3] != [] and words[2] in TORCH_MODULES


def _is_wrapped(words: Sequence[str]) -> bool:
    """Return whether another program, such as env or a shell, would start a launcher."""
    rest = [part for word in words for part in word.split()] if {"-c", "-lc"} & set(words[:3]) else list(words)
    if not rest or not (rest[0].rpartition("/")[2] in WRAPPERS or "=" in rest[0]):
        return False
    # The options of wrappers may have values, so the first word that is a program or a script decides.
    for index, word in enumerate(rest):
        name = word.rpartition("/")[2]
        if name in (*LAUNCHERS, "torchrun", "accelerate"):
            return True
        if PYTHON.match(name) or name.endswith((".py", ".sh")):
            return _runs_torch(_plain(rest[index:]))
    return False


def with_steps(command: Sequence[str], program: str) -> list[str]:
    """Return a command of Python with a program that runs its script and records the steps; others unchanged."""
    words = list(command)
    if not words or not PYTHON.match(words[0].rpartition("/")[2]):
        return words
    at = 1
    while at < len(words) and (words[at] in PLAIN_OPTIONS or words[at][:2] in VALUE_OPTIONS):
        at += 2 if words[at] in VALUE_OPTIONS else 1
    rest = words[at:]
    is_script = bool(rest) and (not rest[0].startswith("-") or (rest[0] == "-m" and len(rest) > 1))
    is_own = bool(rest) and rest[0].rpartition("/")[2] in OWN_PROGRAMS
    return [*words[:at], program, *rest] if is_script and not is_own else words


def is_launcher(command: Sequence[str]) -> bool:
    """Return whether a command starts ranks itself."""
    try:
        return rank_command(command, "", "").command != list(command)
    except LauncherError:
        return True


def _beside(program: str, python: str) -> str:
    """Return the Python in the folder of a launcher, or the default one if the launcher has no folder."""
    folder, slash, _name = program.rpartition("/")
    return f"{folder}/python" if slash else python


def _translated(
    words: Sequence[str], launcher: str, places: set[str], switches: set[str], python: str, torchrun: str
) -> RankCommand:
    dropped: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-") and rest[0] not in ("-m", "--module"):
        word = rest.pop(0)
        option, has_value, value = word.lstrip("-").partition("=")
        option = option.replace("_", "-")
        if option in switches:
            dropped.append(word)
            continue
        if option not in places and option != RESTARTS:
            raise LauncherError(
                f"training_command gives {launcher} the option {word}, which has no meaning under mpirun"
            )
        if not has_value:
            value = rest.pop(0) if rest else ""
            word = f"{word} {value}"
        if option == RESTARTS and value.strip() != "0":
            raise LauncherError(f"training_command gives {launcher} {word}: remove it, because ranks are not restarted")
        dropped.append(word)
    if not rest:
        raise LauncherError(f"training_command gives {launcher} no script")
    return RankCommand([python, "-u", torchrun, *rest], dropped)


class LaunchError(ValueError):
    """The options of a job are invalid."""


@dataclass(frozen=True)
class MpirunJob:
    """A command and the nodes that it runs on; ``slots`` is the number of ranks of each node, in the nodes' order.

    Without a ``shell``, mpirun runs in the allocation of a batch system with these nodes in this order.
    """

    command: tuple[str, ...]
    slots: Mapping[str, int]
    ranks: int
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    mpirun: str = "mpirun"
    shell: str = "ssh"

    @property
    def nodes_of_ranks(self) -> list[str]:
        """Return the node of each rank, in the order of ``--map-by slot``."""
        nodes = [node for node, slots in self.slots.items() for _slot in range(slots)]
        return nodes[: self.ranks]


def job_of(
    command: Sequence[str], hosts: Iterable[Mapping[str, object]], ranks: int | None, **rest: object
) -> MpirunJob:
    """Return the job for the options: each node once, with one slot or more, and at most one rank for each slot."""
    slots: dict[str, int] = {}
    for host in hosts:
        name, count = str(host["name"]), int(str(host.get("slots") or 1))
        if name in slots or count < 1 or not name or name.startswith("-"):
            raise LaunchError(f"hosts names {name!r} twice, or with {count} slots: name each node once with 1 or more")
        slots[name] = count
    total = sum(slots.values())
    if not command:
        raise LaunchError("command is empty: specify the program and its arguments")
    if is_launcher(command):
        raise LaunchError(f"command begins with the launcher {command[0]}: specify the command of one rank")
    if not 1 <= (total if ranks is None else ranks) <= total:
        raise LaunchError(f"ranks is {ranks}, and the hosts have {total} slots: specify from 1 to {total}")
    # mypy cannot check which fields of MpirunJob the rest are.
    return MpirunJob(tuple(command), slots, total if ranks is None else ranks, **rest)  # type: ignore[arg-type]


def command_of(job: MpirunJob, run_id_name: str, is_root: bool, run_id: str = "") -> list[str]:
    """Return the command; it contains no values of the environment, because a process list shows it.

    Ranks are marked by the variable, daemons by the option ``dml_run_id``, which Open MPI passes to them.
    """
    used = dict.fromkeys(job.nodes_of_ranks)
    command = [job.mpirun, *(["--allow-run-as-root"] if is_root else [])]
    if job.shell:
        hosts = ",".join(f"{node}:{job.slots[node]}" for node in used)
        command += ["--host", hosts, "--mca", "plm_rsh_agent", job.shell]
    command += ["-np", str(job.ranks), "--map-by", "slot", "--tag-output"]
    command += ["--mca", "dml_run_id", run_id] if run_id else []
    for name in (*job.environment, run_id_name):
        command += ["-x", name]
    return [*command, *job.arguments, *job.command]
