"""Settings of all unit tests: fakes need no waits, and Hypothesis judges assertions, not time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.internal import constants_ast
from hypothesis.internal.conjecture import providers

from plugins.module_utils.vsphere import custom_fields

# By default, an example that takes 200 ms fails, and one that did so only once is called unreliable. Code that must
# be fast has a separate test that measures CPU time.
# Two runs of the same code use the same examples; --hypothesis-profile=roam draws others, and more of them.
settings.register_profile(
    "house", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("roam", settings.get_profile("house"), derandomize=False, max_examples=500, print_blob=True)
settings.load_profile("house")
# Hypothesis also draws the constants of all local modules that are loaded. Which modules it takes for local depends on
# the path of the checkout, and which are loaded on the tests that ran before.
providers.HypothesisProvider._local_constants = constants_ast.Constants()
# For tools/mutants.py: each change of the code is tried with the same examples, and the first that fails is enough.
settings.register_profile("mutants", settings.get_profile("house"), phases=(Phase.explicit, Phase.generate))


@pytest.fixture(autouse=True)
def fakes_show_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake in memory shows a note at once or never."""
    monkeypatch.setattr(custom_fields, "KEPT_SECONDS", 0.0)
