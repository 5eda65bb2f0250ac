"""A trial of harm: Open MPI trains on the workers of a lab, is watched, and is judged as the playbook judges it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

from lab.simulator import ROOT
from plugins.module_utils.continuity import verdict
from plugins.module_utils.continuity.judged_facts import BeforeAndAfter, JobFacts, Move
from plugins.module_utils.durable.calls import ReachedNode
from plugins.module_utils.moves.checks import move_events
from plugins.module_utils.training.transport import connections as transport_seen
from plugins.module_utils.trials.evidence import move_lines
from plugins.module_utils.watch import link, node_programs, transport_program, watcher
from plugins.module_utils.watch.growing_file import GrowingFile
from plugins.module_utils.watch.live_pace import StepsSince
from tests import harms
from tests.lab.places import USER, Place, until

NUMBERS = (1, 2, 3, 4)
WORKERS = [f"worker0{number}" for number in NUMBERS]
RUNS = f"/home/{USER}/runs"
PROGRAMS = (ROOT / "tests" / "lab" / "train.py", ROOT / "roles" / "training" / "files" / "dml_records.py")
PROGRAM = f"python3 /home/{USER}/train.py"
STEPS, RESUME_SECONDS = 20, 30.0
TCP = "--mca pml ob1 --mca btl ^openib --mca btl_tcp_if_include {network} --mca oob_tcp_if_include {network}"
# As a supervisor does: start again whatever ended.
LAUNCH = """
cd {run}
cat > launch.sh <<'END_OF_LAUNCH'
{loop} mpirun --host {hosts} {speech} --bind-to none -x DML_RECORDS={run} -x PYTHONPATH={programs} \
  --mca plm_rsh_args "{ssh}" {program} {arguments}; {end}
END_OF_LAUNCH
setsid sh launch.sh > output.log 2>&1 < /dev/null &
"""
IDENTITY = """
import json, subprocess
pid = int(subprocess.run(["pgrep", "-o", "-x", "mpirun"], capture_output=True, text=True).stdout or 0)
start = int(open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[19]) if pid else 0
boot = open("/proc/sys/kernel/random/boot_id").read().strip()
print(json.dumps({"host": "worker01", "pid": pid, "start": start, "boot_id": boot} if pid else {}))
"""


class Trial:
    """One job on the workers of a place and all that is seen of it; ``patience`` is how slow they are."""

    def __init__(self, place: Place, folder: Path, patience: float = 1.0) -> None:
        self.place, self.folder, self.run, self.patience = place, folder, f"{RUNS}/{folder.name}", patience
        self.numbers, self.names = place.numbers, [f"worker0{number}" for number in place.numbers]
        self.records, self.stop_file = folder / "records.jsonl", folder / "stop"
        self.nodes: list[ReachedNode] = [
            {"name": name, "reach": list(self._reach(number))} for number, name in zip(self.numbers, self.names)
        ]
        self.moves: list[Move] = []
        self.transports: list[dict[str, Any]] = []
        self.usual: dict[str, Any] = {}
        self.launcher: dict[str, Any] = {}
        self.began = time.time()
        self.judged: Sequence[Mapping[str, Any]] = ()
        self._watch: threading.Thread | None = None

    def start(
        self, *arguments: object, supervised: bool = False, speech: Sequence[str] = (), program: str = PROGRAM
    ) -> None:
        """Train on all, over TCP unless mpirun gets another ``speech``, watch it, and wait until it is warm."""
        for number in self.numbers:
            self.place.inside(number, f"mkdir -p {self.run}")
        network = ".".join(self.place.address(1).split(".")[:3]) + ".0/24"
        ssh = "-o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
        launch = LAUNCH.format(
            run=self.run,
            hosts=",".join(self.place.address(number) for number in self.numbers),
            speech=" ".join(speech) or TCP.format(network=network),
            programs=f"/home/{USER}",
            program=program,
            ssh=ssh,
            arguments=" ".join(map(str, arguments)),
            loop="while true; do" if supervised else "",
            end="done" if supervised else "echo ended $? > ended",
        )
        self.place.inside(1, launch)
        links = [link.Link(node["name"], node["reach"], self.run) for node in self.nodes]
        desired = watcher.WatchOptions(self.records, self.stop_file, 3600, 3600)
        self._watch = threading.Thread(target=watcher.watch, args=(links, desired), daemon=True)
        self._watch.start()
        self.trained(STEPS)
        self.launcher = self._launcher()
        self._ranks = {name: [index] for index, name in enumerate(self.names)}

    def end(self) -> None:
        """Stop all of it, whatever state it is in."""
        self.stop_file.touch()
        output = self.place.inside(1, f"cat {self.run}/output.log", check=False).stdout
        (self.folder / "output.log").write_text(output)
        if self._watch:
            self._watch.join(20)
        for number in self.numbers:
            self.place.inside(
                number,
                "pkill -9 -f [l]aunch.sh; pkill -9 mpirun; pkill -9 orted; pkill -9 -f [t]rain.py; true",
                check=False,
            )

    def trained(self, steps: int, since: float = 0.0, seconds: float = 60.0) -> bool:
        """Wait until every rank has made that many steps since a moment; return false if they never do."""
        advance, deadline = StepsSince(since), time.monotonic() + seconds * self.patience
        with GrowingFile(self.records) as growing:
            while True:
                advance.feed(growing.new_records())
                if advance.size and advance.fewest() >= steps:
                    return True
                if time.monotonic() > deadline:
                    return False
                growing.wait()

    def moving(self, number: int, stun: float = 5.0, precopy: float = 1.0, **more: Any) -> None:
        """Say how the moves of a worker go."""
        how = {"precopy_seconds": precopy, "stun_seconds": stun, "fails": "", **more}
        self.place.lab.hypervisor.ask("PUT", f"/moves/worker0{number}", how)

    def move(self, number: int, target: str = "", *, at_its_start: Callable[[], object] | None = None) -> Move:
        """Move a worker as the playbook does, and wait until the job has gone on."""
        first = self._look()
        self.trained(STEPS // 2, time.time())
        before = self._transports(first, self._look())
        if at_its_start:
            at_its_start()
        done = self.vmotion(number, target)
        planned: Move = {"worker": f"worker0{number}", "source": "", "target": target}
        seen = move_lines.observed(done.result, planned, self._ranks)
        self.moves.append(seen)
        after = self._look()
        self.trained(STEPS, max(float(seen["completed"] or 0), time.time()), RESUME_SECONDS)
        self.transports.append({"before": before, "after": self._transports(after, self._look())})
        return seen

    def vmotion(self, number: int, target: str = "") -> Any:
        """The module alone."""
        return self.place.ansible.module(
            "vmotion", cluster="gpu", worker=f"worker0{number}", target=target or self.free_hosts()[0]
        )

    def judge(self, died: bool = False, **limits: Any) -> dict[str, Any]:
        """The verdict as of now."""
        history = self.place.ansible.module("vmotion_info", cluster="gpu", since=self.began).result
        others = move_events.moves_of_others(history["moves"], self.moves, self._ranks)
        moves = [*self.moves, *others]
        seen: JobFacts = {
            "launcher": {"before": self.launcher, "after": self._launcher()},
            "transport": cast("list[BeforeAndAfter | None]", self.transports),
            "vsphere": [move["vsphere"] for move in moves],
            "power": history["power"],
            "observed_until": time.time(),
        }
        with GrowingFile(self.records) as growing:
            result = verdict.verdict(
                list(growing.new_records()),
                moves,
                {"max_gap_s": 20, "resume_deadline_s": 20, "warmup_steps": 2, **limits},
                ended="died" if died else "running",
                facts=seen,
            )
        file = self.folder / "verdict.json"
        file.write_text(json.dumps(result, indent=1))
        self.judged = moves
        written: dict[str, Any] = json.loads(file.read_text())
        return written

    def check(self, name: str, died: bool = False, **limits: Any) -> dict[str, Any]:
        """The verdict, which must be that of the table for this harm."""
        result = self.judge(died, **limits)
        harms.check(name, result, self.judged)
        return result

    def has_died(self) -> bool:
        """Return whether mpirun ended."""
        return self.place.inside(1, f"cat {self.run}/ended", check=False).returncode == 0

    def pid(self, number: int) -> int:
        """The process of the rank on a worker."""
        return int(self.place.inside(number, "pgrep -f '[t]rain.py' | tail -1").stdout)

    def recorded_bytes(self) -> int:
        """How much was written down so far."""
        return self.records.stat().st_size

    def at(self) -> dict[str, str]:
        """Return the host of each worker."""
        return {name: str(self.place.facts_of(number)["host"]) for number, name in zip(self.numbers, self.names)}

    def free_hosts(self) -> list[str]:
        """The hosts without a worker."""
        return self.place.free_hosts()

    def _launcher(self) -> dict[str, Any]:
        result = self.place.inside(1, f"python3 - <<'E'\n{IDENTITY}\nE", check=False)
        return dict(json.loads(result.stdout)) if result.returncode == 0 else {}

    def _look(self) -> dict[str, Any]:
        nodes, hosts = node_programs.run_on_nodes(self.nodes, transport_program, [self.run], 30.0 * self.patience), []
        if transport_seen.uses_rdma(nodes):
            gather = ["rdma", "network", "pvrdma"]
            hosts = self.place.ansible.module("esxi_info", cluster="gpu", gather=gather).result["hosts"]
        return {"nodes": nodes, "hosts": hosts, "at": self.at()}

    def _transports(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, str]:
        seen = {"hosts": (first["hosts"], second["hosts"]), "at": second["at"], "rdma": second["at"]}
        result = transport_seen.judge(first["nodes"], second["nodes"], **seen, usual=self.usual)
        self.usual = self.usual or result["bytes_per_step"]
        return dict(result["transports"])

    def _reach(self, number: int) -> list[str]:
        return self.place.login(self.place.address(number))


class Traffic:
    """RDMA traffic of workers on the counters of their simulated hosts, a megabyte for each step.

    A worker that is ``bound`` to a host uses TCP as soon as it is on another.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial, self.bound = trial, dict[str, str]()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._flow, daemon=True)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._ended.set()
        self._thread.join()

    def _flow(self) -> None:
        advance, counted = StepsSince(0.0), 0
        with GrowingFile(self.trial.records) as growing:
            while not self._ended.wait(0.2):
                advance.feed(growing.new_records())
                grown, counted = advance.fewest() - counted, advance.fewest()
                for name, host in self.trial.at().items():
                    if grown and self.bound.get(name, host) == host:
                        sent = {"rdma": {"vmrdma0": {"tx_bytes": grown << 20, "rx_bytes": grown << 20}}}
                        self.trial.place.lab.control.set_host(host, traffic=sent)


def pretend_rdma(trial: Trial) -> str:
    """Give each node a paravirtual RDMA card in its own folder; the file that a rank holds open as its device."""
    card, device = f"/home/{USER}/sys/class/infiniband/vmw_pvrdma0/device", "/dev/infiniband/uverbs0"
    made = f"mkdir -p {card} vmw_pvrdma && ln -sfn /home/{USER}/vmw_pvrdma {card}/driver"
    for number in NUMBERS:
        trial.place.inside(number, f"{made}; sudo mkdir -p /dev/infiniband && sudo touch {device}")
    for node in trial.nodes:
        node["reach"] = [*node["reach"], "env", f"DML_SYS=/home/{USER}/sys"]
    return device


def equip(place: Place) -> None:
    """Open MPI on every worker, the programs, and a way from the first to all."""
    install = "sudo DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends openmpi-bin"
    together(lambda number: place.inside(number, f"sudo apt-get update -qq && {install} > /dev/null", seconds=600))
    hand_over(place)


def hand_over(place: Place, seconds: float = 120) -> None:
    """Give every worker the programs, and the first one a way to all."""
    for number in place.numbers:
        for program in PROGRAMS:
            give(place, number, program, seconds)
    key = place.lab.key.read_text()
    place.inside(1, f"umask 077; mkdir -p .ssh; cat > .ssh/id_ed25519 <<'E'\n{key}E", seconds=seconds)


def give(place: Place, number: int, program: Path, seconds: float = 120, folder: str = ".") -> None:
    """Put a program into a folder of a worker."""
    text = f"mkdir -p {folder} && cat > {folder}/{program.name} <<'END_OF_PROGRAM'\n{program.read_text()}END_OF_PROGRAM"
    place.inside(number, text, seconds=seconds)


def together(what: Callable[[Any], object], which: Sequence[Any] = NUMBERS) -> None:
    """Do something with several workers at once."""
    with ThreadPoolExecutor(len(which)) as pool:
        list(pool.map(what, which))


def wait_for(trial: Trial, true: Callable[[], bool], what: str) -> None:
    """Wait for something to happen to a trial."""
    until(true, f"{what} ({trial.folder})")
