"""The rollback of a cluster's image: the parts that the change named, or why vLCM cannot return to them."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.hosts.rollback.restoring import kept, restoring_image

BEFORE = {"base_image": "8.0.2-0.0.1", "add_on": None, "components": {"manager": "1", "tools": "5"}}


def restored(before: dict[str, Any] | None = None, **desired: Any) -> tuple[dict[str, Any], list[str]]:
    return restoring_image({"wanted": {"image": desired}, "image": before or BEFORE})


def test_evidence_keeps_the_parts_of_an_image() -> None:
    assert kept({**BEFORE, "managed": True, "compliance": "compliant"}) == BEFORE


def test_a_change_without_an_image_restores_none() -> None:
    assert restoring_image({"wanted": {"profile": {}}}) == ({}, [])


def test_restores_named_components_and_removes_new_ones() -> None:
    assert restored(components={"manager": "2", "new": "7"}, absent=["tools"], accept_eula=True) == (
        {"components": {"manager": "1", "tools": "5"}, "absent": ["new"]},
        [],
    )


def test_the_earlier_add_on_is_restored() -> None:
    before = {**BEFORE, "add_on": {"name": "vendor", "version": "1"}}
    assert restored(before, add_on={"name": "vendor", "version": "2"}) == ({"add_on": before["add_on"]}, [])


@pytest.mark.parametrize(
    ("desired", "reason"),
    [
        ({"base_image": "8.0.3-0.0.1"}, "vLCM does not downgrade ESXi: to return to 8.0.2-0.0.1, reinstall it on"),
        ({"add_on": {"name": "vendor", "version": "2"}}, "the image had no add-on: remove vendor in the cluster's"),
    ],
)
def test_refuses_a_part_that_vlcm_cannot_restore(desired: dict[str, Any], reason: str) -> None:
    _options, reasons = restored(**desired)
    assert len(reasons) == 1 and reason in reasons[0]


def test_the_same_base_image_is_not_refused() -> None:
    assert restored(base_image="8.0.2-0.0.1", components={"manager": "2"}) == ({"components": {"manager": "1"}}, [])


def test_refuses_evidence_without_the_changed_image() -> None:
    _options, reasons = restoring_image({"wanted": {"image": {"components": {"manager": "2"}}}})
    assert reasons == [
        "the evidence lacks the image of the cluster, which the change touched: restore it with esxi_image"
    ]
