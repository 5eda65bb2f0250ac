"""The bandwidth between the nodes on the page of training runs, with escaped names."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.pages import pairs_section, training_page
from tests.unit.plugins.module_utils.training.pairs.test_pair_result import SLOW, result


def check(**more: Any) -> dict[str, Any]:
    return {**SLOW, **more}


def test_shows_the_slow_node_and_the_slowest_pairs() -> None:
    html, markdown = pairs_section.section(check()), pairs_section.markdown(check())
    assert "<h2>Bandwidth between the nodes with tcp: fabric</h2>" in html
    assert "The usual bandwidth is 9.00; a pair is slow below 80% of it." in html
    assert "slow-node: n3 is slow with every other node" in html and "slow-node: n3 is slow" in markdown
    assert html.index("n1 - n3") < html.index("n1 - n2")
    assert "| n1 | ens192 | VMXNET3 | 10.00 | 9.00 | 5.00 | 1.00 | - | not established for VMXNET3 |" in markdown


def test_names_are_escaped() -> None:
    html = pairs_section.section(check(name="<b>&", pairs=[], cards=[], findings=[]))
    assert "<b>" not in html
    assert "No findings." in html


def test_the_page_shows_each_transports_last_check() -> None:
    old, new = check(ended=1.0, name="old"), {**result(), "ended": 2.0, "name": "new"}
    rdma = check(ended=1.0, name="other", transport="rdma")
    assert [each["name"] for each in pairs_section.newest([new, old, rdma])] == ["other", "new"]
    report = {**training_page.report([]), "fabric": [rdma]}
    for text in (training_page.page(report), training_page.markdown(report)):
        assert "Bandwidth between the nodes with rdma: other" in text
    assert "Bandwidth" not in training_page.page(training_page.report([]))
