"""The desired rules of a set of workers, from the options of a call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import Refused
from ..placement.placement_rules import DRS, RESTART
from ..placement.rule_set import RuleSetSpec

_OPTIONS = {DRS: "drs_override", RESTART: "restart_priority"}


def rule_set_spec(params: Mapping[str, Any]) -> RuleSetSpec:
    workers, drop = tuple(params.get("workers") or ()), tuple(params.get("drop") or ())
    if params["state"] == "absent":
        # Without names, the user removes the whole set.
        return RuleSetSpec(params["name"], gone=True, drop=(*workers, *drop) or None)
    if both := sorted(set(workers) & set(drop)):
        raise Refused(", ".join(both), "drop it from the rules", "it is also in workers", "name it in only one list")
    single = {override["name"]: override for override in params["overrides"]}
    _once("worker", workers)
    _once("override", [override["name"] for override in params["overrides"]])
    for name in sorted(set(single) - set(workers)):
        raise Refused(name, "set its overrides", "it is not among the workers of the call", "name it there too")
    return RuleSetSpec(
        name=params["name"],
        workers=workers,
        drop=drop,
        one_per_host=params["one_per_host"],
        hosts=tuple(dict.fromkeys(params["hosts"])),
        required=params["host_affinity"] == "required",
        overrides={name: given for name in workers if (given := _overrides(params, single.get(name, {})))},
    )


def _overrides(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, str]:
    overrides = {aspect: own.get(option) or common[option] for aspect, option in _OPTIONS.items()}
    return {aspect: text for aspect, text in overrides.items() if text}


def _once(kind: str, names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise Refused(name, f"take it as a {kind}", "it is named twice in this call", "name it once")
