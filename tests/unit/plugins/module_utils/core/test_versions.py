# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Versions of vCenter and ESXi compare as numbers."""

from __future__ import annotations

from plugins.module_utils.core.versions import numbers


def test_versions_compare_as_numbers() -> None:
    assert numbers("8.0.10") > numbers("8.0.9") > numbers("8") > numbers(None)
