# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Jobs that a vMotion test cannot judge are refused before anything is changed."""

from __future__ import annotations

from plugins.module_utils.vmotion.test.outcome import outcome
from tests.fakes.trial import World


def test_a_job_that_was_started_without_steps_is_refused_before_anything_is_changed() -> None:
    world = World()
    world.steps_by = "none"
    state = world.carry_out()
    refusal = "w1: the job in /run/one was started with training_steps_by=none, so no record shows that it goes on"
    assert refusal in outcome(state, "/test")
    assert world.calls["vmotion"] == world.calls["training_wait"] == 0
    assert not world.overridden and not world.watched and not world.lock
