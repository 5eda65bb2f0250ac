"""One attempt of a training run: its name, its folders, its nodes and the options of the role; pure."""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ...errors import Refused, WholeError
from ...guests.gpudirect import AUTO
from ..results.manifest import REPORTED, Manifest, name_of_attempt
from ..running.busy import Reached
from ..transport import node_transport
from ..transport.job_settings import Hca, TransportNode
from .training_options import Options

MPI, KUBERNETES, SLURM = "mpi", "kubernetes", "slurm"
# The value of training_accept for ranks that train separate models.
GROUP = "group"
# The one for a launcher that is lost: no node can then say whether its run has ended.
LAUNCHER = "launcher"
# The folder in a run directory with the dumps of PyTorch's Flight Recorder.
RECORDERS = "recorders"
# The options that say where Kubernetes runs a job.
PLACE = ("namespace", "kubeconfig", "context")


class Node(Reached, total=False):
    """A node of the inventory, as its play describes it; ``user`` trains there, ``facts`` are those of Ansible."""

    address: str
    interface: str
    kubernetes: str
    slurm: str
    user: str
    facts: Mapping[str, Any]


class TrainingFailed(WholeError):
    """A job did not end as requested; the sentence says how, why and what to do."""


@dataclass(frozen=True)
class Prepared:
    """The state of the nodes before a job starts.

    ``python`` is the interpreter of the ranks, ``lock`` the installed packages, ``resume`` the path of the checkpoint,
    ``restart`` the facts about it, ``hcas`` has the RDMA devices of each node, and ``data`` the source, the checksum
    and the path of the data.
    """

    python: str
    port: int
    code: Mapping[str, Any] = field(default_factory=dict)
    lock: Sequence[str] = ()
    resume: str = ""
    restart: Mapping[str, Any] = field(default_factory=dict)
    hcas: Mapping[str, Sequence[Hca]] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingRun:
    """One attempt of a run. Its nodes are in the order of their ranks; ``first`` is the name of the first attempt.

    ``resumed`` is the run whose outputs the attempt begins with; ``source`` is the manifest of the run whose program it
    takes, and ``known`` the manifest of the run itself if it has started already.
    """

    o: Options
    nodes: Mapping[str, Node]
    name: str
    first: str
    requested_by: str
    number: int = 1
    resumed: str = ""
    requirements: str = ""
    source: Manifest = field(default_factory=Manifest)
    known: Manifest = field(default_factory=Manifest)

    @property
    def dir(self) -> str:
        return f"{self.o['runs']}/{self.name}"

    @property
    def work(self) -> str:
        """Return the copy of the user's folder in which the ranks run; empty without a folder."""
        return f"{self.dir}/work" if self.o["folder"] else ""

    @property
    def outputs(self) -> str:
        """Return the folder of the outputs on the nodes."""
        return f"{self.work}/{self.o['outputs']}"

    @property
    def recorders(self) -> str:
        """Return the folder on the nodes for the recorders of PyTorch's collectives, outside the user's folder."""
        return f"{self.dir}/{RECORDERS}"

    @property
    def launcher(self) -> str:
        """Return the node on which the job starts."""
        return str(self.o["launcher"])

    @property
    def rank_0(self) -> str:
        """Return the node of rank 0 of a run that has started, which has its outputs; else its launcher."""
        named = str(self.known.get("rank_0_on") or "")
        return named if named in self.nodes else str(self.known.get("launcher") or self.launcher)

    @property
    def results(self) -> str:
        """Return the folder of the run on the controller."""
        return f"{self.o['results']}/{self.name}"

    @property
    def archives(self) -> str:
        """Return the folder of the archives on the nodes."""
        return f"{self.o['dir']}/code"

    @property
    def job(self) -> str:
        return f"The training job {self.dir} on {self.launcher}"

    @property
    def has_another_attempt(self) -> bool:
        """Return whether the run is tried again if a machine fails; a node must not choose what runs then."""
        return self.number < int(self.o["attempts"]) and not self.known.get(REPORTED)

    @property
    def is_followed_only(self) -> bool:
        """Return whether the run has started before, with a program that this command does not name."""
        return bool(self.known)

    def attempt(self, number: int) -> TrainingRun:
        """Return another attempt; its outputs begin with those of this one, if the run has a folder."""
        resumed = self.name if self.o["folder"] else ""
        return replace(self, name=name_of_attempt(self.first, number), number=number, resumed=resumed, known={})

    def ranks_of_nodes(self, prepared: Prepared) -> list[TransportNode]:
        """Return each node as the settings of a transport need it."""
        return [self._rank_node(name, node, prepared) for name, node in self.nodes.items()]

    def _rank_node(self, name: str, node: Node, prepared: Prepared) -> TransportNode:
        card = node_transport.network_card(node["facts"], str(node["interface"]))
        return {
            "name": node["address"],
            "interface": node["interface"],
            "network": card["network"],
            "card": card,
            "hcas": prepared.hcas.get(name, []),
        }


def request_of(o: Options) -> dict[str, object]:
    """Return the settings that make runs comparable; results are shown, so secrets are only their SHA-256.

    Those of a run that another command started are in its manifest: this command need not have its options.
    """
    if o.get("asked"):
        return dict(o["asked"])
    is_own = bool(o["command"])
    program = {"framework": "", "options": []} if is_own else {"framework": o["framework"], "options": o["options"]}
    # Runs without an image have the same settings as runs before images were supported.
    image = {"image": o["image"]} if o["image"] else {}
    gdr = {"gdr": o["gdr"]} if o["gdr"] != AUTO else {}
    ranks = int(o["ranks_per_node"])
    settings = {"command": o["command"], "environment": hashed_environment(o), "ranks_per_node": ranks}
    return {**settings, **program, "stack": o["stack"], **image, **gdr}


def hashed_environment(o: Options) -> dict[str, str]:
    """Return the variables of the ranks with the SHA-256 of their values, which may be secrets."""
    return {name: hashlib.sha256(str(value).encode()).hexdigest() for name, value in o["environment"].items()}


def name_of_run(o: Options, moment: str) -> str:
    """Return the name of a run, by default composed of time, transport and number of nodes."""
    name = str(o["name"] or f"{moment}-{o['transport']}-{len(o['nodes'])}")
    if posixpath.basename(name) != name or name in {".", ".."}:
        raise Refused("training_name", "name a run", f"{name!r} is not a file name", "use letters, digits, '.' and '-'")
    return name


def nodes_of(given: Sequence[str], hosts: Sequence[str]) -> list[str]:
    """Return the names of nodes: a number stands for as many hosts of the play, the first ones."""
    if len(given) != 1 or not given[0].isdigit() or given[0] in hosts:
        return list(given)
    if not 1 <= int(given[0]) <= len(hosts):
        cause = f"this play has {len(hosts)}: {', '.join(hosts)}"
        raise Refused(f"training_nodes is {given[0]}", "choose the nodes", cause, f"set 1 to {len(hosts)}, or names")
    return list(hosts[: int(given[0])])


def require_nodes(nodes: Sequence[str], hosts: Sequence[str]) -> None:
    """Refuse nodes that do not take part in the play."""
    if not nodes or not set(nodes) <= set(hosts):
        cause = f"the hosts of this play are {', '.join(hosts)}"
        remedy = f"""name at least one of them, in YAML or JSON: -e '{{"training_nodes": ["{hosts[0]}"]}}'"""
        raise Refused(f"training_nodes is {nodes}", "train", cause, remedy)


def require_answers(off: Sequence[str]) -> None:
    """Refuse to start a run on nodes that are off; one that has started can be followed without them."""
    if off:
        cause, which = "no answer to the question for its facts", ", ".join(off)
        remedy = f"start it, or leave it out with training_nodes or --limit '!{',!'.join(off)}'"
        raise Refused(which, "train on it", cause, remedy)


def require_one_user(nodes: Mapping[str, Node]) -> None:
    """Refuse nodes with different users: one of them would choose as whom programs run on the others."""
    users = {name: str(node["user"]) for name, node in nodes.items()}
    if len(set(users.values())) > 1:
        cause = ", ".join(f"{name} has {user or 'the login user'}" for name, user in users.items())
        remedy = "prepare all nodes with the same node_user, or set training_user"
        raise Refused("the users who train on the nodes", "train", cause, remedy)
