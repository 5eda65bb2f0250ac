"""A run that resumed another one on the page of training runs: the verdict, its reasons, its cost, and the loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..core.json_values import JsonObject
from ..training.results import saved_attempts
from . import escaping
from .escaping import html as escape
from .scaling_plot import STEPS, Extras, PlotBand, PlotLine, plot

HEADS = ("Restart", "Checkpoint", "Steps", "Repeated", "Losses of repeated steps", "Time without a step")
SECONDS = "s"
Judged = Mapping[str, Any]


def title(run: Judged) -> str:
    return f"Restarts of {run['attempts'][0] if run['attempts'] else run['name']}: {run['verdict']}"


def judge_restart(results: str, name: str) -> dict[str, object]:
    """Return the verdict on a run that has resumed another one, as lines, and its breaches."""
    run = saved_attempts.run_by_name(Path(results), name).content()
    return {"verdict": run["verdict"], "lines": list(lines(run)), "breaches": run["breaches"]}


def lines(run: Judged) -> Iterator[str]:
    """Yield the verdict with its reasons and its cost, as sentences."""
    names = " to ".join([run["attempts"][0], run["name"]])
    reasons = "; ".join(breach["detail"] for breach in run["breaches"]) or "; ".join(run["unproven"])
    yield f"{names}: {run['verdict']}{': ' if reasons else ''}{reasons}"
    yield from cost_sentences(run)
    yield from run["notes"]


def cost_sentences(run: Judged) -> Iterator[str]:
    cost = run["cost"]
    if not cost:
        return
    saved = "" if cost["save_s"] is None else f", {cost['save_s']:.1f} s for saving checkpoints"
    yield (
        f"goodput {100 * cost['goodput']:.0f}%: of {cost['lifetime_s']:.1f} s, {cost['productive_s']:.1f} s were steps "
        f"that count once; lost are {cost['repeated_s']:.1f} s for {cost['repeated_steps']} repeated steps, "
        f"{cost['down_s']:.1f} s without a step between attempts{saved}"
    )
    yield f"the restarts cost {cost['rank_s']:.0f} rank-seconds"


def section(run: Judged) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in _sentences(run))
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in HEADS)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in _rows(run))
    table = f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
    drawn = "".join(figures(run))
    return (
        f"<section><h2>{escape(title(run))}</h2><ul>{items}</ul>{table}"
        f'{f"""<div class="figures pairs">{drawn}</div>""" if drawn else ""}</section>'
    )


def markdown(run: Judged) -> str:
    found = "\n".join(f"- {escaping.line(text)}" for text in _sentences(run))
    head, *body = ("| " + " | ".join(map(escaping.markdown, row)) + " |" for row in [HEADS, *_rows(run)])
    table = "\n".join([head, "|" + " --- |" * len(HEADS), *body])
    return "\n\n".join([f"## {escaping.line(title(run))}", found, table])


def figures(run: Judged) -> Iterator[str]:
    """Yield the loss before and after each restart over the steps, and over the time with the holes."""
    named = [(curve["name"], [point for point in curve["points"] if point[2] is not None]) for curve in run["curves"]]
    for axis, place in ((STEPS, 0), (SECONDS, 1)):
        drawn = [
            PlotLine(name, tuple((point[place], point[2]) for point in points), number)
            for number, (name, points) in enumerate(named)
            if points
        ]
        if drawn:
            over = "over the steps" if axis == STEPS else "over the time in seconds"
            more = Extras(bands=_holes(run) if axis == SECONDS else (), from_zero=False)
            yield plot(f"Loss {over}", "", drawn, axis, more)


def _holes(run: Judged) -> Sequence[PlotBand]:
    """Return the times without a step between the attempts."""
    ends = [(curve["points"][0][1], curve["points"][-1][1]) for curve in run["curves"] if curve["points"]]
    holes = [(before[1], after[0]) for before, after in zip(ends, ends[1:]) if after[0] > before[1]]
    return [
        PlotBand(begin, end, f"{end - begin:.0f} s", f"{end - begin:.1f} s without a step", "") for begin, end in holes
    ]


def _sentences(run: Judged) -> Iterator[str]:
    yield from (f"{breach['kind']}: {breach['detail']}" for breach in run["breaches"])
    yield from (f"not known: {text}" for text in run["unproven"])
    yield from cost_sentences(run)
    yield from run["notes"]


def _rows(run: Judged) -> list[list[str]]:
    return [
        [
            f"{one['before']} - {one['after']}",
            _checkpoint(one),
            f"until {_known(one['last_step'])}, then from {_known(one['first_step'])}",
            _repeated(one),
            str(one["losses"]),
            ", ".join(f"{part['name']} {part['seconds']:.1f} s" for part in one["parts"]) or "-",
        ]
        for one in run["restarts"]
    ]


def _checkpoint(one: JsonObject) -> str:
    if not one["checkpoint"]:
        return "-"
    step = "unknown step" if one["checkpoint_step"] is None else f"step {one['checkpoint_step']}"
    saved = "" if one["save_s"] is None else f", saved in {one['save_s']:.1f} s"
    waited = "" if one["waited_s"] is None else f", waited for {one['waited_s']:.1f} s"
    return f"{one['checkpoint']} ({step}{saved}{waited})"


def _repeated(one: JsonObject) -> str:
    seconds = "" if one["repeated_s"] is None else f", {one['repeated_s']:.1f} s"
    return f"{one['repeated_steps']} steps{seconds}"


def _known(step: int | None) -> str:
    return "?" if step is None else str(step)
