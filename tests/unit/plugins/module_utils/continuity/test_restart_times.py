"""The times of restarts: their parts, marked checkpoints, and clocks that were set or that contradict each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plugins.module_utils.continuity.restart_facts import Part
from plugins.module_utils.continuity.restart_steps import read_steps

from .restarts import BEGAN, Run, again, verdict


def test_parts_of_the_downtime_add_up() -> None:
    run = Run(2, 20, 25, 40)
    one, two = run.attempts()
    down = (Part("shut down", 20.0), Part("hosts", 20.0), Part("boot", two.started - one.ended - 40.0))  # type: ignore[operator] # they have times

    found = verdict([replace(one, down=down, waited_s=7.0), two])

    restart = found.restarts[0]
    assert [part.name for part in restart.parts] == ["stop", "shut down", "hosts", "boot", "start and restore"]
    assert found.cost is not None
    assert sum(part.seconds for part in restart.parts) == pytest.approx(found.cost.down_s) and restart.waited_s == 7.0


def test_marked_checkpoints_are_saves_and_not_productive() -> None:
    run = Run(1, 20, 25, 40)
    mark = {"rank": 0, "step": 20, "phase": "checkpoint", "loss": None}
    at = BEGAN + 20 * run.seconds
    marks = [{**mark, "t": at + 0.1, "mark": "begin"}, {**mark, "t": at + 0.4, "mark": "end"}]
    one, two = run.attempts()

    found = verdict([replace(one, ranks=read_steps([*run.first_records, *marks])), two])

    assert found.cost is not None and found.restarts[0].save_s == pytest.approx(0.3)
    assert found.cost.save_s == pytest.approx(0.3)
    whole = verdict(run.attempts()).cost
    assert whole is not None and found.cost.productive_s == pytest.approx(whole.productive_s - 0.3)


@pytest.mark.parametrize("behind", [-3600.0, 3600.0])
def test_setting_a_clock_during_downtime_changes_no_cost(behind: float) -> None:
    run = Run(2, 20, 25, 40)
    set_back = [{**each, "t": each["t"] - behind} for each in run.second_records]

    found, usual = verdict(again(run, set_back)), verdict(run.attempts())

    assert found.verdict == "resumed" and found.cost is not None and usual.cost is not None
    assert found.cost.goodput == pytest.approx(usual.cost.goodput, abs=0.01)
    assert [part.name for part in found.restarts[0].parts] == ["stop", "down", "start and restore"]


def test_places_records_read_later_by_the_ranks_clocks() -> None:
    run = Run(2, 20, 25, 40)
    one, two = run.attempts()
    later = [{**each, "seen": 99_999.0} for each in run.first_records]
    one = replace(one, ranks=read_steps(later))

    found = verdict([one, two])
    at_once = verdict([one, replace(two, started=BEGAN)])

    assert found.verdict == "resumed" and found.restarts[0].repeated_s == pytest.approx(2.5)
    assert at_once.verdict == "inconclusive" and "according to the clocks of its ranks" in at_once.unproven[0], at_once


def test_overlapping_attempts_have_no_parts_of_downtime() -> None:
    one, two = Run(2, 20, 25, 40).attempts()

    found = verdict([replace(one, ended=two.started), replace(two, started=one.ended)])

    assert [part.name for part in found.restarts[0].parts] == ["down"] and found.verdict == "resumed"


def test_clocks_that_contradict_each_other_are_noted() -> None:
    """The ranks of the next attempt began before the last step, according to clocks that the observer did not read."""
    run = Run(2, 20, 25, 40)
    early = [{**each, "t": each["t"] - 600, "seen": 99_999.0} for each in run.second_records]

    found = verdict(again(run, early))

    assert found.restarts[0].parts == () and found.notes == ("clocks: those of one and two contradict each other",)
