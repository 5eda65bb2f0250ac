"""The step at which an attempt of a run goes on, compared with its checkpoint and with the attempt before."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from .limits import Breach
from .restart_facts import Attempt, RestartLimits
from .restart_steps import LossComparison, RankSteps, compared, together

# This many steps before the checkpoint show the range of the losses, which a restart leaves by a multiple of its width.
USUAL_STEPS, FIRST_STEPS, OUTSIDE = 20, 5, 5.0
MOST_NAMED = 8


@dataclass
class Place:
    """The last step before an attempt, in the numbers of the attempt before; ``offset`` is added to its own numbers.

    ``after`` is None if nothing shows where the attempt goes on.
    """

    after: int | None = None
    offset: int = 0
    breaches: list[Breach] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class Junction:
    """Two attempts with steps, one after the other; ``is_first`` is whether the run began with the first one."""

    def __init__(self, before: Attempt, after: Attempt, limits: RestartLimits, *, from_zero: bool) -> None:
        self.before, self.after, self._limits = before, after, limits
        self._from_zero = from_zero
        self.ranks = [rank for rank in after.ranks if rank in before.ranks]
        self.last = max((steps.last for steps in before.ranks.values()), default=-1)
        self.first = min((steps.first for steps in after.ranks.values()), default=(0, 0))
        self.checkpoint_step = self._checkpoint_step()

    def losses(self, offset: int) -> LossComparison:
        return together(self._compared(rank, offset) for rank in self.ranks)

    def _compared(self, rank: int, offset: int) -> LossComparison:
        return compared(self.before.ranks[rank], self.after.ranks[rank], offset, self._limits.loss_tolerance)

    def _checkpoint_step(self) -> int | None:
        given = self.after.checkpoint
        if given is not None and not given.path:
            # A program may find its checkpoints elsewhere.
            return 0 if self.first[0] <= 1 else None
        return None if given is None else given.step

    def place(self) -> Place:
        """Return where the attempt goes on."""
        low, high = self.first
        step = self.checkpoint_step
        starts = {steps.step[0]: rank for rank, steps in self.after.ranks.items()}
        if len(starts) > 1:
            named = ", ".join(f"rank {rank} at {first}" for first, rank in sorted(starts.items())[:MOST_NAMED])
            return Place(breaches=[self._breach("ranks", f"the ranks began at different steps: {named}")])
        if step is None:
            return self._place_without_step()
        expected = next((each for each in self._expected(step) if low <= each <= high), None)
        if expected is not None:
            return Place(after=expected - 1)
        if low > step > 1 and (low - 1) % step == 0 and low - 1 <= self.last:
            return self._place_of_other_count(step)
        if low > step + 1:
            sentence = f"steps {step + 1} to {low - 1} were skipped: the checkpoint has step {step}"
            return Place(breaches=[self._breach("skipped", sentence)])
        return self._place_from_start(step) if low <= 1 else self._place_too_early(step)

    def _expected(self, step: int) -> tuple[int, ...]:
        """Return the possible first steps after a checkpoint; a program that counts from 0 may name it by its next."""
        return (step, step + 1) if self._from_zero and step else (step + 1,) if step or not self._from_zero else (0,)

    def _place_without_step(self) -> Place:
        low, _high = self.first
        if low > self.last + 1:
            sentence = f"steps {self.last + 1} to {low - 1} are missing between the attempts"
            return Place(breaches=[self._breach("skipped", sentence)])
        if low <= 1:
            return self._place_from_start(None)
        return self._confirmed(low - 1, 0, f"the step of the checkpoint of {self.after.name} is unknown")

    def _place_of_other_count(self, step: int) -> Place:
        """Return the place if the records count other steps than the checkpoint, as with accumulated gradients."""
        low = self.first[0]
        name = self.after.name
        text = f"the checkpoint has step {step} and the records of {name} begin after {(low - 1) // step} times as many"
        return self._confirmed(low - 1, 0, text)

    def _place_from_start(self, step: int | None) -> Place:
        """Return the place of an attempt whose numbers begin again; the losses may show that only its numbers do."""
        low, name, given = self.first[0], self.after.name, self.after.checkpoint
        offset = None if step is None else step + 1 - low
        if offset and self.losses(offset).confirms and self.losses(0).differing:
            return self._confirmed(step, offset, f"the records of {name} count from {low} again")
        if any(steps.is_counted for steps in self.after.ranks.values()) and not self.losses(0).confirms:
            text = f"the steps of {name} are counted from its start, and no losses show which ones they are"
            return Place(missing=[f"steps: {text}"])
        hint = "a script that goes on and counts from 1 again needs first_step in dml_records.start"
        cause = f", although its checkpoint has step {step}; {hint}" if step else ""
        cause = cause if given is None or given.path else ": the outputs contained no complete checkpoint"
        return Place(after=low - 1, breaches=[self._breach("start", f"{name} began at step {max(low, 1) - 1}{cause}")])

    def _place_too_early(self, step: int) -> Place:
        low = self.first[0]
        sentence = f"{self.after.name} went on from step {low - 1}, older than its checkpoint of step {step}"
        return Place(after=low - 1, breaches=[self._breach("older", sentence)])

    def _confirmed(self, after: int | None, offset: int, text: str) -> Place:
        """Return a place that equal losses confirm, or that nothing does."""
        losses = self.losses(offset)
        if losses.confirms:
            note = f"{text}; the losses of repeated steps ({losses.compared} compared) are equal"
            return Place(after, offset, notes=[note])
        return Place(missing=[f"steps: {text}, and no equal losses of repeated steps show which ones they are"])

    def begins_again(self, place: Place) -> bool:
        """Return whether the losses are those of the first steps of the run, although the numbers go on."""
        first_losses = []
        for rank in self.ranks:
            before, after = self.before.ranks[rank], self.after.ranks[rank]
            if before.first[0] > 1 or after.step[0] == before.step[0]:
                return False
            first_losses.append(compared(before, after, before.step[0] - after.step[0], self._limits.loss_tolerance))
        return together(first_losses).confirms and not self.losses(place.offset).confirms

    def outside(self, place: Place) -> str:
        """Return a sentence about a rank whose first losses leave the range of the steps before; empty without one."""
        for rank in self.ranks:
            before, after = self.before.ranks[rank], self.after.ranks[rank]
            index = before.index_up_to(place.after if place.after is not None else self.last)
            usual = _finite(before, max(0, index + 1 - USUAL_STEPS), index + 1)
            first = _finite(after, 0, FIRST_STEPS)
            if len(usual) < USUAL_STEPS or not first:
                continue
            low, high = min(usual), max(usual)
            if not low - OUTSIDE * (high - low) <= median(first) <= high + OUTSIDE * (high - low):
                return (
                    f"rank {rank}: the loss after the restart is {median(first):.4g}, that of the {USUAL_STEPS} steps "
                    f"before was {low:.4g} to {high:.4g}: the optimizer or the order of the data may be lost"
                )
        return ""

    def _breach(self, kind: str, sentence: str) -> Breach:
        return Breach(kind, None, self.first[0], None, sentence)


def _finite(steps: RankSteps, begin: int, end: int) -> list[float]:
    return [loss for loss in steps.loss[begin:end] if abs(loss) < float("inf")]
