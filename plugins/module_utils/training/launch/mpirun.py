"""The command line of mpirun for a job."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import launcher_words


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
    if launcher_words.is_launcher(command):
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
