"""A further attempt of a run begins with the outputs of the one before, and shows the verdict on its restart."""

from __future__ import annotations

from .test_train import once, tried_again


def test_finished_attempt_shows_its_restart_verdict() -> None:
    world = tried_again()
    assert "warnings" not in once(world) and "one-2: resumed" in world.lines

    world = tried_again()
    world.breaches = [{"kind": "start", "detail": "one-2 began at step 0"}]
    warned = "The training run one-2 did not go on where the checkpoint of one ends: one-2 began at step 0."
    assert once(world)["warnings"] == [warned] and "one-2: broken" in world.lines
    assert "one: resumed" not in world.lines


def test_attempt_keeps_times_of_earlier_outputs() -> None:
    world = tried_again()
    once(world)
    (sent,) = {each["path"]: each for each in world.sent if each["path"].endswith("/outputs")}.values()
    assert (sent["path"], sent["keep_times"], sent["exclude"]) == ("/results/one/outputs", True, ["/old.pt"])


def test_attempt_after_one_without_outputs_starts_empty() -> None:
    """A machine that failed before the first checkpoint leaves no folder of outputs on the controller."""
    world = tried_again()
    world.has_outputs = False
    assert once(world)["run"] == "one-2"
    assert not [each for each in world.sent if each["path"].endswith("/outputs")]
    assert world.jobs["/runs/one-2"].options["environment"]["DML_RESUME"] == ""
