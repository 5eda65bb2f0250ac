"""A maintenance window that moves workers of other training jobs watches each of them and judges it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import Any

import pytest

from plugins.module_utils.continuity.verdict import verdict
from plugins.module_utils.trials.evidence.verdict_input import with_left
from plugins.module_utils.trials.steps.jobs_beside import moving
from tests.fakes.deaths import histories
from tests.unit.simulation.world import HOSTS, WINDOW, Window

BERT = {
    "title": "bert of anna since 2026-01-01 10:00 UTC",
    "nodes": ["w1", "w2"],
    "launcher": "w2",
    "user": "anna",
    "run_dir": "/runs/bert",
    "watched": [{"name": "w1", "reach": ["ssh", "w1"]}, {"name": "w2", "reach": ["ssh", "w2"]}],
}
LLAMA = {**BERT, "title": "llama of bob since 2026-01-02 10:00 UTC", "run_dir": "/runs/llama"}
LIMITS = {"max_gap_s": 20, "resume_deadline_s": 20}
BEGAN = 800.0


class Beside(Window):
    """Two other jobs with a rank on each worker, whose ranks make a step each second until they are silent."""

    def __init__(self, deaths: Iterable[int] = (), *others: Mapping[str, Any], **settings: Any) -> None:
        window = {**WINDOW, "other_jobs": [dict(job) for job in others or (BERT, LLAMA)], "accept_other_jobs": True}
        super().__init__(deaths, window=window, limits=LIMITS, **settings)
        self.silent_from: dict[int, float] = {}
        self.unreadable: dict[int, str] = {}
        self.states: dict[str, dict[str, Any]] = {}
        self.watching: set[int] = set()
        self.jobs_beside: list[Any] = list(self.settings["window"]["other_jobs"])

    def jobs_on_workers(self, _settings: Mapping[str, Any]) -> dict[str, Any]:
        self.must_be_attended()
        return {"jobs": [dict(job) for job in self.jobs_beside], "unread": ""}

    def start_watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        number = _number(options)
        if not number:
            return super().start_watch(options)
        assert options["folder"] == self.settings["window"]["other_jobs"][number - 1]["run_dir"]
        self.effect("start other watch", lambda: self.watching.add(number))
        return {}

    def stop_watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        number = _number(options)
        if not number:
            return super().stop_watch(options)
        self.effect("stop other watch", lambda: self.watching.discard(number))
        return {}

    def on_node(self, node: str, user: str, module: str, options: Mapping[str, Any], /) -> dict[str, Any]:
        assert (node, user, module) == ("w2", "anna", "dml.vsphere.training_info")
        return {"job": self.states.get(options["run_dir"], {"state": "running"})}

    def wait_for_steps(self, options: dict[str, Any]) -> dict[str, Any]:
        number = _number(options)
        if number in self.unreadable:
            return {"failed": True, "msg": self.unreadable[number]}
        if number:
            self.site.pass_time(25.0)
        return super().wait_for_steps(options)

    def continuity_verdict(self, options: dict[str, Any]) -> dict[str, Any]:
        number = _number(options)
        if not number:
            return super().continuity_verdict(options)
        until = min(self.silent_from.get(number, self.site.clock), self.site.clock)
        given = {key: options[key] for key in ("ended", "facts", "require")}
        return verdict(_records(until), options["moves"], options["limits"], **given)

    @property
    def is_clean(self) -> bool:
        return super().is_clean and not self.watching

    @property
    def others(self) -> list[dict[str, Any]]:
        return list(self.files["other_jobs"])


def _number(options: Mapping[str, Any]) -> int:
    """The number of the other job whose records the options name; 0 for the records of the job of the window."""
    name = str(options.get("records", "")).rpartition("/")[2]
    return int(name.removeprefix("other-").removesuffix(".jsonl")) if name.startswith("other-") else 0


def _records(until: float) -> list[dict[str, Any]]:
    same = {"size": 2, "start": 1, "boot_id": "b", "job": "j", "stride": 1, "phase": "train"}
    return [
        {**same, "t": at, "seen": at, "rank": rank, "step": step, "host": f"w{rank + 1}", "pid": rank, "loss": 1 / step}
        for step, at in enumerate((BEGAN + second for second in range(int(until - BEGAN))), start=1)
        for rank in (0, 1)
    ]


def test_judges_each_other_job_and_keeps_its_verdict() -> None:
    world = Beside()

    facts = world.carry_out()

    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1) and world.is_clean
    assert [(job["title"], job["verdict"], job["state"]) for job in world.others] == [
        (BERT["title"], "continuous", "running"),
        (LLAMA["title"], "continuous", "running"),
    ]
    notes = with_left({"moved": "all", "notes": []}, facts)["notes"]
    assert any(note.startswith(f"other job {LLAMA['title']}: continuous, longest gap 1.0 s") for note in notes), notes


def test_stalled_other_job_spares_the_next_host() -> None:
    world = Beside()

    def falls_silent() -> None:
        world.silent_from[2] = world.site.clock
        world.site.pass_time(60.0)

    world.before["reboot esx1"] = falls_silent
    facts = world.carry_out()

    assert world.boots == {"esx3": 1, "esx1": 1} and world.is_in_service and world.is_clean
    assert [job["verdict"] for job in world.others] == ["continuous", "broken"]
    assert f"2 of 3 hosts are changed, 1 left (esx2): the other job {LLAMA['title']}: broken, " in world.outcome
    assert "rank 0 stopped at step" in world.outcome and facts.judged and facts.judged["verdict"] == "continuous"


def test_other_job_that_died_late_fails_the_window() -> None:
    class Dies(Beside):
        def stop_watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
            self.states["/runs/bert"] = {"state": "died", "why": "the launcher lost the node w1"}
            return super().stop_watch(options)

    world = Dies()

    world.carry_out()

    assert world.boots == dict.fromkeys(HOSTS, 1) and f"the other job {BERT['title']}: broken, " in world.outcome
    assert world.outcome.endswith("the job died: the launcher lost the node w1.")


JOBS = [["w1", "x"], ["w2", "x"], ["w2"], ["x", "y"]]


@pytest.mark.parametrize("jobs", [list(some) for count in (1, 2, 3) for some in permutations(JOBS, count)])
@pytest.mark.parametrize("movers", [[], ["w1"], ["w1", "w2"]])
def test_the_names_of_another_job_excuse_no_job(jobs: list[list[str]], movers: list[str]) -> None:
    """Each job is judged as if it were the only one."""
    planned = {"stages": [{"moves": [{"worker": name} for name in movers]}], "places": {"w1": "esx1", "w2": "esx2"}}

    found = moving({"other_jobs": [{"nodes": nodes} for nodes in jobs]}, planned)

    alone = [
        {"nodes": nodes, "moving": there}
        for nodes in jobs
        if (there := [node for node in nodes if node in movers or (movers and not {"w1", "w2"} & set(nodes))])
    ]
    assert found == alone


@pytest.mark.parametrize("state", ["finished", "stopped"])
def test_other_job_ended_by_owner_ends_no_window(state: str) -> None:
    world = Beside()
    world.silent_from[1] = ended = 1200.0
    world.states["/runs/bert"] = {"state": state, "ended": ended}

    world.carry_out()

    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1)
    assert (world.others[0]["verdict"], world.others[0]["state"]) == ("continuous", state)


def test_unreadable_other_job_does_not_end_the_window() -> None:
    on_kubernetes = {**LLAMA, "launcher": ""}
    world = Beside((), BERT, on_kubernetes)
    world.unreadable[1] = "no step of any rank arrived; w1 cannot be read: Permission denied"

    facts = world.carry_out()

    assert world.outcome == "" and world.boots == dict.fromkeys(HOSTS, 1) and world.is_clean
    assert "verdict" not in world.others[0] and "Permission denied" in world.others[0]["why"]
    notes = with_left({"moved": "all", "notes": []}, facts)["notes"]
    assert f"other job {LLAMA['title']}: not judged, because no worker that could be read has its run file" in str(
        notes[:-1]
    )
    assert any(f"{BERT['title']}: not judged, because no step" in line for line in world.lines)


def test_another_job_is_judged_whenever_a_controller_dies() -> None:
    class Quick(Beside):
        """Each verdict is the same: that takes less time than a new one."""

        def __init__(self, deaths: Iterable[int]) -> None:
            super().__init__(deaths, BERT)

        def continuity_verdict(self, options: dict[str, Any]) -> dict[str, Any]:
            return Window.continuity_verdict(self, options)

    for world, _facts in histories(Quick, Quick.to_the_end):
        assert world.outcome == "" and world.is_clean and world.is_in_service, world.log
        assert [job["verdict"] for job in world.others] == ["continuous"]
