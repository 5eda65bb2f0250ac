"""The bandwidth between all pairs of nodes on the page of training runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..training.pairs.pair_result import number, summaries
from . import escaping
from .escaping import html as escape

CARD_HEADS = ("Node", "Device", "Card", "Link", "Best", "Median", "Least", "Expected", "Source of the expectation")
PAIR_HEADS = ("Slowest pairs", "Slower direction", "Each node sends", "Latency")
SHOWN = 20
Check = Mapping[str, Any]


def newest(checks: Iterable[Check]) -> list[Check]:
    last = {str(check["transport"]): check for check in sorted(checks, key=lambda each: float(each["ended"] or 0))}
    return [last[transport] for transport in sorted(last)]


def section(check: Check) -> str:
    items = "".join(f"<li>{escape(text)}</li>" for text in summaries(check))
    head = f"<h2>{escape(_title(check))}</h2><p>{escape(_sentence(check))}</p>"
    tables = _html_table(CARD_HEADS, _cards(check)) + _html_table(PAIR_HEADS, _pairs(check))
    return f"<section>{head}<ul>{items}</ul>{tables}</section>"


def markdown(check: Check) -> str:
    found = "\n".join(f"- {escaping.line(text)}" for text in summaries(check))
    tables = [_markdown_table(CARD_HEADS, _cards(check)), _markdown_table(PAIR_HEADS, _pairs(check))]
    return "\n\n".join([f"## {escaping.line(_title(check))}", escaping.markdown(_sentence(check)), found, *tables])


def _title(check: Check) -> str:
    return f"Bandwidth between the nodes with {check['transport']}: {check['name']}"


def _sentence(check: Check) -> str:
    usual = number(check["usual_gbits"])
    count = f"{len(check['pairs'])} pairs of {len(check['nodes'])} nodes, measured with {check['tool']}"
    return f"{count}, in Gbit/s. The usual bandwidth is {usual}; a pair is slow below {check['least']:.0%} of it."


def _cards(check: Check) -> list[list[str]]:
    keys = ("link", "best", "median", "least", "expected")
    return [
        [
            *(str(card[key] or "-") for key in ("node", "device", "card")),
            *(number(card[f"{key}_gbits"]) for key in keys),
            str(card["source"]),
        ]
        for card in check["cards"]
    ]


def _pairs(check: Check) -> list[list[str]]:
    return [
        [
            " - ".join(pair["nodes"]),
            number(pair["gbits"]),
            ", ".join(f"{node} {number(gbits)}" for node, gbits in sorted(pair["sent"].items())),
            "-" if pair["latency_us"] is None else f"{pair['latency_us']:.1f} us",
        ]
        for pair in check["pairs"][:SHOWN]
    ]


def _html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head, *body = ("| " + " | ".join(map(escaping.markdown, line)) + " |" for line in [heads, *rows])
    return "\n".join([head, "|" + " --- |" * len(heads), *body])
