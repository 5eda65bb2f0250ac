# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A test has the same result in each checkout, on each day and for each user."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

CONSTANT = 7654321987654321987


def test_examples_ignore_constants_of_loaded_modules(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Which modules are loaded, and taken for local, depends on the path of the checkout and on earlier tests."""
    drawn: set[int] = set()

    @settings(max_examples=2000)
    @given(st.integers(CONSTANT - 2**40, CONSTANT + 2**40))
    def draw(number: int) -> None:
        drawn.add(number)

    source = tmp_path_factory.mktemp("checkout") / "local.py"
    source.write_text(f"X = {CONSTANT}\n")
    module = ModuleType("local")
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, "local", module)
    draw()

    assert len(drawn) > 1000 and CONSTANT not in drawn
