"""The report on training runs: the measured results, published results next to them, and missing measurements."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.json_values import JsonObject
from ..training.results.scaling import ScalingError, table
from . import escaping, pairs_section, restart_section, vmotion_page
from .escaping import html as escape
from .scaling_plot import FIGURE_STYLE, STEPS, Extras, PlotLine, plot
from .style import PORTRAIT, STYLE, site_banner
from .workload import caution, sentences

BUILT_HEADS = ("Node", "Part", "Found", "Proven")
_PREFIX = "dml_"
_GPU_PARTS = {"dml_cuda", "dml_gpu_driver"}
Run = Mapping[str, Any]


def unit(runs: Sequence[Run]) -> str:
    """Return what trains: ranks if the software of the nodes is known and contains no GPU driver, otherwise GPUs."""
    parts = {str(part) for run in runs for node in (run.get("built") or {}).values() for part in node}
    return "ranks" if parts and not parts & _GPU_PARTS else "GPUs"


def figures(runs: Iterable[Run], unit_: str = "GPUs") -> list[str]:
    """Return figures of throughput and loss over the steps, for each number of GPUs and transport."""
    points: dict[tuple[int, str], list[Run]] = {}
    for run in runs:
        if run.get("curve"):
            points.setdefault((int(run["gpus"]), str(run["transport"])), []).append(run)
    drawn = []
    for (gpus, transport), group in sorted(points.items()):
        for quantity, unit, key in (("images per second", "images/s", "images_per_sec"), ("loss", "", "loss")):
            lines = list(_lines(group, key))
            if lines:
                title = f"{gpus} {unit_ if gpus > 1 else unit_[:-1]}, {transport}: {quantity}"
                drawn.append(plot(title, unit, lines, STEPS, Extras(from_zero=key != "loss")))
    return drawn


def built(runs: Sequence[Run]) -> list[list[str]]:
    """Return rows about the software of the nodes; if runs differ for a node, the latest run counts."""
    parts: dict[tuple[str, str], Mapping[str, Any]] = {}
    for run in sorted(runs, key=lambda run: float((run.get("job") or {}).get("started") or 0)):
        for node, built_parts in (run.get("built") or {}).items():
            parts.update({(str(node), str(part).removeprefix(_PREFIX)): facts for part, facts in built_parts.items()})
    return [
        [node, part, _words(facts), "yes" if facts.get("proven") else f"no: {facts.get('why') or 'no reason is known'}"]
        for (node, part), facts in sorted(parts.items())
    ]


def missing(runs: Sequence[Run]) -> Iterator[str]:
    """Yield a sentence for each value that the runs lack."""
    if not runs:
        return
    if not built(runs):
        yield "The software of the nodes is unknown: no role stored a proof on them."
    without = [
        str(run["name"]) for run in runs if not any(point["loss"] is not None for point in run.get("curve") or ())
    ]
    if without:
        yield f"No loss was recorded in {', '.join(without)}."
    for run in runs:
        if ", the first of" in str(run.get("steps_by")):
            yield f"The steps of {run['name']} are those of {run['steps_by']}; steps of the others were not counted."
    if len({str(sorted((run.get("asked") or {}).items())) for run in runs}) > 1:
        yield "The runs did different work: their rates cannot be compared."
    if len({(run["nodes"], run["gpus"], run["transport"]) for run in runs}) == len(runs):
        yield "No point was measured twice: the spread is unknown."


def _lines(group: Sequence[Run], key: str) -> Iterator[PlotLine]:
    for number, run in enumerate(group):
        points = tuple((point["step"], point[key]) for point in run["curve"] if point[key] is not None)
        if points:
            yield PlotLine(str(run["name"]), points, number)


def _words(facts: Mapping[str, object]) -> str:
    """Return facts as text, such as ``version 4.1.4, nodes 4``; lists are written out."""
    words = [
        f"{key.replace('_', ' ')} {_value(value)}"
        for key, value in sorted(facts.items())
        if key not in ("proven", "why") and value not in (None, "", [], {})
    ]
    return ", ".join(words) or "-"


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_value(part)}" for key, part in sorted(value.items()))
    return " ".join(map(_value, value)) if isinstance(value, (list, tuple)) else str(value)


COLUMNS = ("nodes", "gpus", "transport", "images_per_sec", "spread", "speedup", "efficiency", "ratio_to_tcp")
HEADS = ("Nodes", "GPUs", "Transport", "Images/s", "Spread", "Speed-up", "Efficiency", "Ratio to TCP", "Epoch")
RUN_HEADS = (
    *("Run", "Nodes", "GPUs", "Transport", "Proven transport", "Card", "Gbit/s", "Images/s", "Epoch", "Steps"),
    "Last loss",
)
WORDS = ("Transport", "Run", "Proven transport", "Card", *BUILT_HEADS)
# "Distributed Machine Learning with A100 passthrough and PVRDMA": Figure 9, whose numbers are not in the text.
EPOCHS = """Epoch: the measured time of the runs; a time with "about" is calculated from the rate.
The A100 whitepaper measured it too (Figure 9: ImageNet-21K, about 11 million images in an epoch, 48 epochs, on 1, 2 and
4 nodes): shorter with PVRDMA than with TCP, but its text does not give the numbers."""


def report(
    results: Iterable[Mapping[str, Any]],
    published: Iterable[Mapping[str, Any]] = (),
    images_per_epoch: int | None = None,
    title: str = "Distributed training",
    site: str = "",
) -> dict[str, Any]:
    """Return the content of a report; ``published`` have ``name``, ``source`` and ``runs``; ``site`` is a caution."""
    runs = [dict(result) for result in results]
    unmeasured = [] if runs else ["No training run was measured."]
    measured = [run for run in runs if run.get("proof", {}).get("ok") or int(run["nodes"]) == 1]
    for run in runs:
        if run not in measured:
            proof = run.get("proof", {})
            unmeasured.append(
                f"{run['name']} does not count as {run['transport']}: {proof.get('why', 'it has no proof')}."
            )
    rows: list[dict[str, Any]] = []
    try:
        rows = table(measured, images_per_epoch)
    except ScalingError as error:
        unmeasured.append(f"There is no scaling table: {error}")
    transports = {run["transport"] for run in measured}
    unmeasured += [f"Nothing was measured with {name}." for name in ("tcp", "rdma") if runs and name not in transports]
    unmeasured += missing(runs)
    others = [{**paper, "rows": table([dict(run) for run in paper["runs"]])} for paper in published]
    workloads = {"trained": sentences(runs), "caution": caution(measured) if others else ""}
    kind = {"title": title, "site": site, "unit": unit(runs)}
    return {**kind, **workloads, "runs": runs, "rows": rows, "published": others, "not_measured": unmeasured}


def lines_of(report_: JsonObject, key: str) -> list[PlotLine]:
    """Return the lines of one figure: solid for measured results, dashed for published ones."""
    lines, colours = [], {"tcp": 0, "rdma": 1, "pvrdma": 1}
    sources = [
        ("measured", report_["rows"], False),
        *((paper["name"], paper["rows"], True) for paper in report_["published"]),
    ]
    for name, rows, is_dashed in sources:
        for transport in sorted({row["transport"] for row in rows}):
            points = tuple((row["gpus"], row[key]) for row in rows if row["transport"] == transport)
            lines.append(PlotLine(f"{transport}, {name}", points, colours.get(transport, 2), is_dashed))
    return lines


def page(report_: JsonObject) -> str:
    """Return the report as one HTML page that needs no other file."""
    title = escape(report_["title"])
    parts = [
        "<!DOCTYPE html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{title}</title><style>{STYLE}{FIGURE_STYLE}{_broad(report_)}</style></head><body><main>",
        f"<header>{site_banner(report_['site'])}<h1>{title}</h1>{_trained(report_)}</header>",
        *(vmotion_page.section(test, str(test["name"])) for test in _tests(report_)),
        *map(restart_section.section, report_.get("restarts", ())),
        *map(pairs_section.section, report_.get("fabric", ())),
        _list("Not measured", report_["not_measured"]),
        _scaling(report_),
        _figures(report_),
        *(_published(paper) for paper in report_["published"]),
        _section("Runs", _html_table(_heads(report_, RUN_HEADS), [_run_cells(run) for run in report_["runs"]]))
        if report_["runs"]
        else "",
        _drawn("Throughput and loss of each run", figures(report_["runs"], report_["unit"]), "figures pairs"),
        _built(report_),
        _list(
            "Proofs of the transport", [f"{run['name']}: {run.get('proof', {}).get('why')}." for run in report_["runs"]]
        ),
        "</main></body></html>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _broad(report_: JsonObject) -> str:
    """Return the style of the tables of moves, which need landscape paper, or portrait for a report without them."""
    return vmotion_page.SECTION_STYLE if _tests(report_) else PORTRAIT


def _trained(report_: JsonObject) -> str:
    """Return the workload, which comes before the measurements."""
    texts = "".join(f"<p>{escape(text)}</p>" for text in report_["trained"])
    return texts + (f'<p class="caution">{escape(report_["caution"])}</p>' if report_["caution"] else "")


def _scaling(report_: JsonObject) -> str:
    rows = report_["rows"]
    if not rows:
        return ""
    note = f"<p>{escape(EPOCHS)}</p>" if any(row["seconds_per_epoch"] is not None for row in rows) else ""
    return _section("Scaling", _html_table(_heads(report_, HEADS), [_cells(row) for row in rows]) + note)


def _heads(report_: JsonObject, heads: Sequence[str]) -> list[str]:
    """Return the heads of a table of measured results, in which ranks are not called GPUs."""
    unit = str(report_["unit"])
    return [unit[:1].upper() + unit[1:] if head == "GPUs" else head for head in heads]


def _tests(report_: JsonObject) -> Sequence[Mapping[str, object]]:
    return list(report_.get("vmotion_tests") or [])


def markdown(report_: JsonObject) -> str:
    parts = [f"**{escaping.markdown(report_['site'])}**"] if report_["site"] else []
    parts += [f"# {escaping.line(report_['title'])}", *map(escaping.markdown, report_["trained"])]
    parts += [escaping.markdown(report_["caution"])] if report_["caution"] else []
    parts += [vmotion_page.markdown(test, str(test["name"])).rstrip() for test in _tests(report_)]
    parts += map(restart_section.markdown, report_.get("restarts", ()))
    parts += map(pairs_section.markdown, report_.get("fabric", ()))
    if report_["not_measured"]:
        parts += ["## Not measured", "\n".join(f"- {escaping.line(text)}" for text in report_["not_measured"])]
    if rows := report_["rows"]:
        parts += ["## Scaling", _markdown_table(_heads(report_, HEADS), [_cells(row) for row in rows])]
        parts += [EPOCHS] if any(row["seconds_per_epoch"] is not None for row in rows) else []
    for paper in report_["published"]:
        parts += [f"## {escaping.line(paper['name'])}", f"Source: {escaping.markdown(paper['source'])}."]
        parts.append(_markdown_table(HEADS, [_cells(row) for row in paper["rows"]]))
    if report_["runs"]:
        parts += ["## Runs", _markdown_table(_heads(report_, RUN_HEADS), [_run_cells(run) for run in report_["runs"]])]
    if rows := built(report_["runs"]):
        parts += ["## Software of the nodes", _markdown_table(BUILT_HEADS, rows)]
    return "\n\n".join(parts) + "\n"


def comma_separated(report_: JsonObject) -> str:
    """Return the measured and the published scaling tables as comma-separated values, not rounded."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["source", *COLUMNS, "seconds_per_epoch"])
    published = ((paper["name"], paper["rows"]) for paper in report_["published"])
    for name, rows in [("measured", report_["rows"]), *published]:
        cells = ([name, *(row[key] for key in COLUMNS), row["seconds_per_epoch"]] for row in rows)
        writer.writerows(map(escaping.cell, row) for row in cells)
    return text.getvalue()


def _figures(report_: JsonObject) -> str:
    # Without measured results there is no figure; the table of the published ones follows below.
    if not report_["rows"]:
        return ""
    speedup = lines_of(report_, "speedup")
    most = max(point[0] for line in speedup for point in line.points)
    note, unit = report_["caution"], str(report_["unit"])
    figures = (
        plot("Throughput, images per second", "images/s", lines_of(report_, "images_per_sec"), unit, Extras(note)),
        plot(
            f"Speed-up compared with one {unit[:-1]}",
            "times",
            [PlotLine("ideal", ((1, 1), (most, most)), 3, True), *speedup],
            unit,
            Extras(note),
        ),
        plot(f"Efficiency, speed-up per {unit[:-1]}", "", lines_of(report_, "efficiency"), unit, Extras(note)),
    )
    return _drawn("Figures", figures)


def _drawn(title: str, figures: Sequence[str], kind: str = "figures") -> str:
    return _section(title, f'<div class="{kind}">{"".join(figures)}</div>') if figures else ""


def _built(report_: JsonObject) -> str:
    rows = built(report_["runs"])
    return _section("Software of the nodes", _html_table(BUILT_HEADS, rows)) if rows else ""


def _published(paper: Mapping[str, Any]) -> str:
    body = f"<p>Source: {escape(paper['source'])}.</p>" + _html_table(HEADS, [_cells(row) for row in paper["rows"]])
    return _section(str(paper["name"]), body)


def _cells(row: JsonObject) -> list[str]:
    ratio, epoch = row["ratio_to_tcp"], row["seconds_per_epoch"]
    return [
        str(row["nodes"]),
        str(row["gpus"]),
        str(row["transport"]),
        f"{row['images_per_sec']:.1f}",
        "-" if row["spread"] is None else f"{row['spread']:.1f}",
        f"{row['speedup']:.2f}",
        f"{100 * row['efficiency']:.0f}%",
        "-" if ratio is None else f"{ratio:.2f}",
        "-" if epoch is None else f"{'' if row['epoch_measured'] else 'about '}{epoch:.{_digits(epoch)}f} s",
    ]


def _digits(seconds: float) -> int:
    """Return the number of decimals for about three digits."""
    return 2 if seconds < 10 else 1 if seconds < 100 else 0


def _run_cells(run: JsonObject) -> list[str]:
    proof, rate, loss = run.get("proof", {}), run["images_per_sec"], run.get("loss")
    epoch, speed = run.get("seconds_per_epoch"), run.get("speed")
    cells = [run["name"], run["nodes"], run["gpus"], run["transport"], proof.get("transport", "-")]
    return [
        *map(str, cells),
        str(run.get("card") or "-"),
        "-" if speed is None else f"{float(speed):g}",
        "-" if rate is None else f"{float(rate):.1f}",
        "-" if epoch is None else f"{float(epoch):.{_digits(float(epoch))}f} s",
        str(run.get("steps", "-")),
        "-" if loss is None else f"{float(loss):.4g}",
    ]


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>{body}</section>"


def _list(title: str, texts: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return _section(title, f"<ul>{items}</ul>") if items else ""


def _html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    kinds = ["" if head in WORDS else ' class="number"' for head in heads]
    top = "".join(f'<th scope="col"{kind}>{escape(head)}</th>' for kind, head in zip(kinds, heads))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for kind, cell in zip(kinds, row))}</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, *rows]
    head, *body = ("| " + " | ".join(map(escaping.markdown, line)) + " |" for line in lines)
    return "\n".join([head, "|" + " --- |" * len(heads), *body])
