"""Versions of vCenter and ESXi compare as numbers."""

from __future__ import annotations

from plugins.module_utils.core.versions import numbers


def test_versions_compare_as_numbers() -> None:
    assert numbers("8.0.10") > numbers("8.0.9") > numbers("8") > numbers(None)
