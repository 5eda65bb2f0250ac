"""The rounds in which all pairs of nodes are measured: every pair once, disjoint at a time, in the fewest rounds."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.training.pairs.pair_rounds import plan, rounds, text
from roles.training.files.dml_pairs import rounds_of

NODES = st.integers(2, 70)


@given(NODES)
def test_every_pair_is_measured_once_in_few_rounds(nodes: int) -> None:
    counted = Counter(pair for pairs in rounds(nodes) for pair in pairs)
    assert counted == Counter(dict.fromkeys(combinations(range(nodes), 2), 1))
    assert len(rounds(nodes)) == nodes - 1 + nodes % 2
    for pairs in rounds(nodes):
        assert len({node for pair in pairs for node in pair}) == 2 * len(pairs) == nodes - nodes % 2


@given(NODES)
def test_the_program_parses_rounds_from_its_command_line(nodes: int) -> None:
    partners = rounds_of(text(rounds(nodes)))
    assert [{(min(pair), max(pair)) for pair in each.items()} for each in partners] == [
        set(pairs) for pairs in rounds(nodes)
    ]


MLX5 = {"name": "mlx5_0", "driver": "mlx5_core"}
SOFT = {"name": "rxe0", "driver": None}


@pytest.mark.parametrize(
    ("transport", "network", "hcas", "devices"),
    [
        ("tcp", "", [], ["ens224"]),
        ("tcp", "10.0.0.0/24", [], []),
        ("rdma", "10.0.0.0/24", [MLX5], ["mlx5_0"]),
        ("rdma", "", [SOFT], ["rxe0", "ens224"]),
    ],
)
def test_the_plan_names_the_devices_of_the_transport(
    transport: str, network: str, hcas: list[dict[str, str | None]], devices: list[str]
) -> None:
    nodes = [{"interface": "ens224", "hcas": hcas}] * 2
    assert plan(nodes, transport, network) == {"rounds": "0-1", "count": 1, "devices": [devices] * 2}
