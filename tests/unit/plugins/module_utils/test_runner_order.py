"""Subjects that free what others need are changed before those."""

from __future__ import annotations

import time

from plugins.module_utils import runner
from plugins.module_utils.plan import Plan
from tests.fakes.module import FakeModule, FakeSubject


def test_the_first_subjects_are_changed_before_all_others() -> None:
    order: list[str] = []

    class Slow(FakeSubject):
        def apply(self, plan: Plan) -> None:
            time.sleep(0.05 if self.target == "mover" else 0)
            order.append(self.target)
            super().apply(plan)

    subjects = [Slow(name, {"mtu": 1500}) for name in ("new", "mover", "other")]
    work = runner.Work(
        subjects=subjects,
        refresh=lambda _subjects: None,
        make_plan=lambda current: Plan(before=current, after={**current, "mtu": 9000}),
        first=lambda subject: bool(subject.target == "mover"),
    )
    assert not runner.converge(FakeModule(), work).get("failed")
    assert order[0] == "mover" and sorted(order) == ["mover", "new", "other"]
