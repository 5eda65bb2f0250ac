"""A training run that resumed another one shows the verdict on its restart."""

from __future__ import annotations

from .test_train import once, tried_again


def test_a_finished_attempt_shows_the_verdict_on_its_restart() -> None:
    world = tried_again()
    assert "warnings" not in once(world) and "one-2: resumed" in world.lines

    world = tried_again()
    world.breaches = [{"kind": "start", "detail": "one-2 began at step 0"}]
    warned = "The training run one-2 did not go on where the checkpoint of one ends: one-2 began at step 0."
    assert once(world)["warnings"] == [warned] and "one-2: broken" in world.lines
    assert "one: resumed" not in world.lines
