"""A job that anybody submitted to Slurm is found on workers, read, and broken if Slurm ends it."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.jobs.running_job import job_from, placed
from plugins.module_utils.slurm.named_job import located, place_on, read_job

# The answers of Slurm 22.05.8 about a job on four nodes, before, while and after one of them was silent for 400 s.
RUNNING = "4711|RUNNING|None|debian|n1|n[1-4]\n"
# A job array of which the first task runs.
ARRAY = "2_3|PENDING|JobArrayTaskLimit|debian|n/a|\n2_1|RUNNING|None|debian|n1|n[1-4]\n"
STARTS = """JobId=4711 JobName=job.sh
   UserId=debian(1000) GroupId=debian(1000) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts={restarts} BatchFlag=1 Reboot=0 ExitCode={exit}:0
   RunTime=00:00:31 TimeLimit=UNLIMITED TimeMin=N/A
"""
NODES = "".join(f"n{number}|n{number}|10.86.16.{99 + number}|allocated|none\n" for number in (1, 2, 3, 4))
SILENT, DOWN = (
    NODES.replace(f"102|{'allocated'}|none", f"102|{text}") for text in ("allocated*|none", "down*|Not responding")
)
HOSTS = {f"worker0{number}": [f"worker0{number}", f"10.86.16.{99 + number}", ""] for number in (1, 2, 3, 4)}
PLACE = {"job": "4711", "login": "login1", "names": {"n1": "worker01", "n3": "worker03"}, "restarts": 0}
ALIVE = {"state": "running", "launcher": {"host": "n1", "pid": 1740}}
MARKED = "Slurm marked n3 DOWN (Not responding), and job 4711 is "


class Slurm:
    """The login node and the launcher of the job."""

    def __init__(self, queue: str = RUNNING, nodes: str = NODES, restarts: int = 0, **more: Any) -> None:
        self.queue, self.nodes, self.there = queue, nodes, more.get("there", {"job": ALIVE})
        self.starts = STARTS.format(restarts=restarts, exit=more.get("exit", 0))
        self.failure, self.ran = more.get("failure", ""), list[list[str]]()

    def login(self, _module: str, options: Any) -> dict[str, Any]:
        self.ran.append(options["argv"])
        if self.failure:
            return {"failed": True, "msg": self.failure}
        return {"stdout": {"squeue": self.queue, "scontrol": self.starts, "sinfo": self.nodes}.get(options["argv"][0])}

    def launcher(self, _module: str, options: Any) -> dict[str, Any]:
        self.options = options
        return dict(self.there)

    @property
    def job(self) -> Any:
        where = {"run_dir": "/records", "records": "/records", "launcher": "worker01", "slurm": PLACE}
        return job_from(self.login, self.launcher, where, self.login)


def test_finds_workers_of_a_job_by_their_addresses() -> None:
    found = located(read_job(Slurm().login, "4711"), "4711", HOSTS)

    assert (found["launcher"], found["user"], found["nodes"]) == ("worker01", "debian", list(HOSTS))
    assert found["slurm"]["names"] == {f"n{number}": f"worker0{number}" for number in (1, 2, 3, 4)}


def test_name_of_a_node_precedes_an_address() -> None:
    hosts = {**HOSTS, "n3": ["n3", "192.0.2.3", ""], "gpu4": ["gpu4", "192.0.2.4", "n4"]}

    assert located(read_job(Slurm().login, "4711"), "4711", hosts)["nodes"] == ["worker01", "worker02", "n3", "gpu4"]


def test_array_is_its_running_task() -> None:
    slurm = Slurm(ARRAY)

    found = located(read_job(slurm.login, "2"), "2", HOSTS)

    assert (found["slurm"]["job"], found["nodes"]) == ("2_1", list(HOSTS))
    assert ["scontrol", "show", "job", "2_1"] in slurm.ran


@pytest.mark.parametrize(
    ("slurm", "hosts", "sentence"),
    [
        (Slurm((ARRAY + ARRAY.replace("2_1", "2_3")).replace("2_", "4711_")), HOSTS, "tasks 4711_1, 4711_3 run; name"),
        (Slurm(failure="slurm_load_jobs error: Invalid job id specified"), HOSTS, "Slurm does not have it; name a job"),
        (
            Slurm(RUNNING.replace("RUNNING|None", "PENDING|Resources")),
            HOSTS,
            r"it is PENDING \(Resources\); wait until",
        ),
        (Slurm(), {"worker01": HOSTS["worker01"]}, r"the address of n2 \(10.86.16.101\), n3 .*; add them to the group"),
        (Slurm(), {**HOSTS, "twin": HOSTS["worker02"]}, r"no host of the inventory has .* n2 \(10.86.16.101\)"),
        (Slurm(RUNNING.replace("debian", "-oProxy")), HOSTS, "Slurm names the user '-oProxy'"),
        (Slurm(failure="Unable to contact slurm controller"), HOSTS, "Unable to contact slurm controller"),
    ],
)
def test_refuses_a_job_without_known_workers(slurm: Slurm, hosts: Any, sentence: str) -> None:
    with pytest.raises(CollectionError, match=sentence):
        located(read_job(slurm.login, "4711"), "4711", hosts)


def test_refuses_a_number_that_is_an_option() -> None:
    with pytest.raises(CollectionError, match="this is not a number"):
        read_job(Slurm().login, "--all")


@pytest.mark.parametrize(
    ("slurm", "state", "why"),
    [
        (Slurm(), "running", ""),
        (Slurm(nodes=SILENT), "running", ""),
        (Slurm(nodes=DOWN), "died", f"{MARKED}RUNNING"),
        (
            Slurm(RUNNING.replace("RUNNING|None", "PENDING|BeginTime"), DOWN, restarts=1),
            "died",
            f"{MARKED}PENDING; Slurm started job 4711 again (Restarts=1)",
        ),
        (Slurm(restarts=1), "died", "Slurm started job 4711 again (Restarts=1)"),
        (
            Slurm(RUNNING.replace("RUNNING", "NODE_FAIL")),
            "died",
            "Slurm ended job 4711 because one of its nodes did not answer (NODE_FAIL)",
        ),
        (Slurm(RUNNING.replace("RUNNING", "COMPLETED"), there={"job": {"state": "absent"}}), "finished", ""),
        (
            Slurm(
                RUNNING.replace("RUNNING|None", "FAILED|NonZeroExitCode"), exit=3, there={"job": {"state": "absent"}}
            ),
            "died",
            "Slurm job 4711 failed with exit code 3",
        ),
        (Slurm(RUNNING.replace("RUNNING", "CANCELLED")), "stopped", "stopped: Slurm job 4711 was cancelled"),
        (Slurm(RUNNING.replace("RUNNING|None", "PENDING|Resources")), "waiting", "it is PENDING (Resources) in Slurm"),
        (Slurm(failure="Unable to contact slurm controller"), "running", ""),
        (
            Slurm(failure="slurm_load_jobs error: Invalid job id specified", there={"job": {"state": "absent"}}),
            "absent",
            "Slurm no longer has job 4711",
        ),
        (
            Slurm(nodes=DOWN, queue=RUNNING.replace("RUNNING", "NODE_FAIL"), there={"failed": True, "msg": "no route"}),
            "died",
            f"{MARKED}NODE_FAIL",
        ),
    ],
)
def test_state_joins_the_launcher_and_slurm(slurm: Slurm, state: str, why: str) -> None:
    job = slurm.job.look()["job"]

    assert (job["state"], job.get("why", "")) == (state, why)
    assert slurm.options["slurm_job"] == "4711"


def test_silent_launcher_of_a_running_job_stays_unknown() -> None:
    assert "job" not in Slurm(there={"failed": True, "unreachable": True, "msg": "no route"}).job.look()


def test_node_that_does_not_answer_stops_a_move() -> None:
    assert Slurm().job.checked(["worker03"], 20.0, []) == Slurm(nodes=SILENT).job.checked(["worker01"], 20.0, []) == []

    (finding,) = Slurm(nodes=SILENT).job.checked(["worker03"], 20.0, [])
    assert Slurm(nodes=DOWN).job.checked(["worker01"], 20.0, [])

    assert (finding["severity"], finding["rule"], finding["object"]) == ("stop", "slurm", "n3")
    assert finding["text"] == "n3: Slurm has it as allocated* (none): wait until it answers."


def test_ranks_belong_to_the_workers_of_their_nodes() -> None:
    assert placed({"n1": [0], "n3.lab": [1], "other": [2]}, {}, PLACE["names"]) == {  # type: ignore[arg-type]  # its values have many types
        "hosts": {"worker01": [0], "worker03": [1], "other": [2]}
    }


def test_records_are_those_of_the_processes_of_the_job() -> None:
    slurm = Slurm(there={"job": {"state": "running", "records": "/home/debian/mine/records"}})

    assert place_on(slurm.launcher, "4711", "") == "/home/debian/mine/records"
    assert place_on(slurm.launcher, "4711", "/given") == "/given"
    with pytest.raises(CollectionError, match=r"no process of it has DML_RECORDS .*; name their folder as records"):
        place_on(Slurm().launcher, "4711", "")


def test_stop_cancels_the_job() -> None:
    slurm = Slurm()

    slurm.job.stop()

    assert slurm.ran == [["scancel", "4711"]]
