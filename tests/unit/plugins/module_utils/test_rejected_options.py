"""Options that are refused before a module runs: masked names, and numbers that are not finite."""

from __future__ import annotations

import pytest

from plugins.module_utils import runner
from tests.fakes.module import FakeModule


@pytest.mark.parametrize("mask", ["********", "$REDACTED$"])
def test_refuses_a_masked_name_with_the_reason(mask: str) -> None:
    module = FakeModule(hosts=[f"esx01.{mask}"])
    runner.run(module, lambda: pytest.fail("the module must not run"))
    ((how, result),) = module.ended
    assert how == "fail" and "the option hosts contains a masked name" in result["msg"]


def test_asterisks_in_a_longer_text_are_accepted() -> None:
    module = FakeModule(user_data="#cloud-config\n# ******** mounts ********\n")
    runner.run(module, lambda: {"changed": False})
    assert module.ended == [("exit", {"changed": False})]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_refuses_non_finite_numbers_with_the_option_name(value: float) -> None:
    module = FakeModule(stun_budget=value, timeout=10.0)
    runner.run(module, lambda: pytest.fail("the module must not run"))
    ((how, result),) = module.ended
    assert how == "fail" and f"the option stun_budget is {value}, which is not a finite number" in result["msg"]
