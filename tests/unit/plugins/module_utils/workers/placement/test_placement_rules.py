"""Rules of workers: plans as a table, refusals against brute force, and the removal."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.workers.placement import placement_rules, rule_conflicts
from plugins.module_utils.workers.placement.placement_rules import ClusterRules
from plugins.module_utils.workers.placement.rule_conflicts import ForeignRule
from plugins.module_utils.workers.placement.rule_set import RuleSetSpec

HOSTS = ("a", "b", "c", "d")
WORKERS = ("w1", "w2", "w3")
NOTHING: dict[str, Any] = {"one_per_host": None, "affinity": None, "drs": {}, "restart_priority": {}, "previous": {}}


@pytest.mark.parametrize(
    ("current", "desired", "after"),
    [
        ({}, RuleSetSpec("s"), {}),
        (
            {},
            RuleSetSpec("s", ("w2", "w1"), one_per_host=True),
            {"one_per_host": {"workers": ["w1", "w2"], "enabled": True}},
        ),
        ({"one_per_host": {"workers": ["w1"], "enabled": True}}, RuleSetSpec("s", ("w1",), one_per_host=True), {}),
        (
            {},
            RuleSetSpec("s", ("w1",), hosts=("b", "a")),
            {"affinity": {"workers": ["w1"], "hosts": ["a", "b"], "rule": "preferred"}},
        ),
        ({}, RuleSetSpec("s", (), hosts=("a",), required=True), {}),
        (
            {"drs": {"w1": "disabled"}},
            RuleSetSpec("s", ("w1",), overrides={"w1": {"drs": "manual"}}),
            {"drs": {"w1": "manual"}, "previous": {"w1": {"drs": "disabled"}}},
        ),
        (
            {"drs": {"w1": "manual"}, "previous": {"w1": {"drs": None}}},
            RuleSetSpec("s", ("w1",), overrides={"w1": {"drs": "disabled"}}),
            {"drs": {"w1": "disabled"}, "previous": {"w1": {"drs": None}}},
        ),
        (
            {"drs": {"w1": "manual"}, "previous": {"w1": {"drs": "cluster"}}},
            RuleSetSpec("s", ("w1",), overrides={"w1": {"restart_priority": "low"}}),
            {
                "drs": {"w1": "cluster"},
                "restart_priority": {"w1": "low"},
                "previous": {"w1": {"restart_priority": None}},
            },
        ),
        ({"drs": {"w1": "manual"}}, RuleSetSpec("s", ("w1",)), {"drs": {"w1": "manual"}}),
    ],
)
def test_a_spec_changes_the_current_rules(current: dict[str, Any], desired: RuleSetSpec, after: dict[str, Any]) -> None:
    assert placement_rules.after({**NOTHING, **current}, desired) == {**NOTHING, **after}


TEXTS = st.sampled_from([None, "manual", "disabled"])
STATES = st.fixed_dictionaries(dict.fromkeys(WORKERS, TEXTS))


@given(
    before=STATES, requests=st.lists(st.dictionaries(st.sampled_from(WORKERS), st.sampled_from(["manual", "disabled"])))
)
def test_removal_restores_the_original_overrides(before: dict[str, Any], requests: list[dict[str, str]]) -> None:
    state: dict[str, Any] = {**NOTHING, "drs": before}
    for requested in requests:
        desired = RuleSetSpec(
            "s", WORKERS, True, HOSTS, overrides={name: {"drs": text} for name, text in requested.items()}
        )
        state = placement_rules.after(state, desired)
        assert placement_rules.after(state, desired) == state
        assert {name: state["drs"][name] for name in requested} == requested
    assert placement_rules.after(state, RuleSetSpec("s")) == {
        **NOTHING,
        "drs": before,
        "restart_priority": state["restart_priority"],
    }


ANY_HOSTS = st.frozensets(st.sampled_from(HOSTS), min_size=1)
SOME = st.frozensets(st.sampled_from(WORKERS), min_size=1)
# Workers compete for hosts if each has a separate rule.
EACH = st.tuples(
    *(
        st.builds(ForeignRule, st.just(f"of {one}"), st.just(frozenset([one])), ANY_HOSTS, st.just(True))
        for one in WORKERS
    )
)
ODD = st.builds(ForeignRule, st.just("odd"), SOME, st.none() | ANY_HOSTS, st.booleans())


def possible(desired: RuleSetSpec, foreign: Sequence[ForeignRule], hosts: tuple[str, ...]) -> bool:
    """Return whether any placement follows all mandatory rules, with brute force."""

    def keeps(place: dict[str, str]) -> bool:
        homes = list(place.values())
        return (
            (not desired.one_per_host or len(set(homes)) == len(homes))
            and (not desired.required or not desired.hosts or set(homes) <= set(desired.hosts))
            and all(
                {place[one] for one in rule.workers} <= (rule.hosts if rule.mandatory else set(hosts))
                if rule.hosts is not None
                else not desired.one_per_host or len({place[one] for one in rule.workers}) <= 1
                for rule in foreign
            )
        )

    return any(
        keeps(dict(zip(desired.workers, homes))) for homes in itertools.product(hosts, repeat=len(desired.workers))
    )


@given(
    one_per_host=st.booleans(),
    pinned=st.frozensets(st.sampled_from(HOSTS)),
    each=EACH,
    odd=st.lists(ODD, max_size=1),
    count=st.integers(2, 4),
    required=st.booleans(),
)
def test_exactly_the_impossible_rules_are_refused(
    one_per_host: bool,
    pinned: frozenset[str],
    each: tuple[ForeignRule, ...],
    odd: list[ForeignRule],
    count: int,
    required: bool,
) -> None:
    hosts, foreign = HOSTS[:count], (*each, *odd)
    desired = RuleSetSpec("s", WORKERS, one_per_host, tuple(sorted(pinned & set(hosts))), required)
    refused = rule_conflicts.first("gpu", hosts, foreign, desired)
    assert (refused is None) == possible(desired, foreign, hosts)


def test_a_worker_makes_room_for_another() -> None:
    foreign = [ForeignRule("pin", frozenset(["w2"]), frozenset("a"), mandatory=True)]
    assert rule_conflicts.first("gpu", ("a", "b"), foreign, RuleSetSpec("s", ("w1", "w2"), one_per_host=True)) is None


@pytest.mark.parametrize(
    ("facts", "desired", "words"),
    [
        (ClusterRules("gpu", HOSTS, drs=False), RuleSetSpec("s", WORKERS, one_per_host=True), ["DRS is off"]),
        (
            ClusterRules("gpu", HOSTS, drs=False),
            RuleSetSpec("s", WORKERS, overrides={"w1": {"drs": "manual"}}),
            ["DRS is off"],
        ),
        (ClusterRules("gpu", HOSTS, drs=False, ha=False), RuleSetSpec("s", WORKERS), []),
        (
            ClusterRules("gpu", HOSTS, ha=False),
            RuleSetSpec("s", WORKERS, overrides={"w1": {"restart_priority": "low"}}),
            ["HA is off"],
        ),
        (ClusterRules("gpu", HOSTS, drs_overrides=False), RuleSetSpec("s", WORKERS, one_per_host=True), []),
        (
            ClusterRules("gpu", HOSTS, homes={"w1": "a", "w3": "a"}),
            RuleSetSpec("s", WORKERS, one_per_host=True),
            ["w1, w3 run on a"],
        ),
        (ClusterRules("gpu", HOSTS, homes={"w1": "a", "w3": "a"}), RuleSetSpec("s", WORKERS), []),
        (
            ClusterRules("gpu", HOSTS, foreign=(ForeignRule("theirs", frozenset({"w1", "w9"}), frozenset("a")),)),
            RuleSetSpec("s", WORKERS, hosts=("b",)),
            ["another user's rule 'theirs' prefers other hosts for w1"],
        ),
        (
            ClusterRules(
                "gpu", HOSTS, foreign=(ForeignRule("theirs", frozenset({"w1", "w9"}), frozenset("a"), mandatory=True),)
            ),
            RuleSetSpec("s", WORKERS, hosts=("b", "c")),
            ["another user's rule 'theirs' forbids w1 on b, c: the preference has no effect"],
        ),
    ],
)
def test_rules_without_effect_are_warnings(facts: ClusterRules, desired: RuleSetSpec, words: list[str]) -> None:
    result = list(placement_rules.warnings(placement_rules.after(NOTHING, desired), desired, facts))
    assert [any(text.startswith(word) for text in result) for word in words] == [True] * len(words)
    assert len(result) == len(words)


@pytest.mark.parametrize("last", ["m0000", "m1000"])
def test_finds_hosts_for_a_thousand_chained_workers(last: str) -> None:
    hosts = [f"m{number:04}" for number in range(1001)]
    pairs = {f"w{number:04}": frozenset(hosts[number : number + 2]) for number in range(1000)}
    foreign = [ForeignRule(f"pair {name}", frozenset({name}), both, mandatory=True) for name, both in pairs.items()]
    foreign.append(ForeignRule("the last", frozenset({"w1000"}), frozenset({last}), mandatory=True))
    every = RuleSetSpec("s", (*pairs, "w1000"), one_per_host=True)
    facts = ClusterRules("gpu", tuple(hosts), foreign=tuple(foreign))
    assert placement_rules.conflict_of(every, facts) is None
    crowded = replace(every, workers=(*every.workers, "w1001"))
    conflict = placement_rules.conflict_of(crowded, replace(facts, hosts=tuple(hosts)))
    assert conflict is not None and conflict.reason.startswith(f"only {', '.join(hosts)} are left for them")
