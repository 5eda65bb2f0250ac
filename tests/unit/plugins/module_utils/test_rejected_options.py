"""Options that are refused before a module runs: masked names, and numbers that are not finite."""

from __future__ import annotations

import pytest

from plugins.module_utils import runner
from tests.fakes.module import FakeModule


@pytest.mark.parametrize("mask", ["********", "$REDACTED$"])
def test_a_name_that_ansible_masked_is_refused_with_its_reason(mask: str) -> None:
    module = FakeModule(hosts=[f"esx01.{mask}"])
    runner.run(module, lambda: pytest.fail("the module must not run"))
    ((how, result),) = module.ended
    assert how == "fail" and "the option hosts contains a masked name" in result["msg"]


def test_asterisks_in_a_longer_text_are_accepted() -> None:
    module = FakeModule(user_data="#cloud-config\n# ******** mounts ********\n")
    runner.run(module, lambda: {"changed": False})
    assert module.ended == [("exit", {"changed": False})]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_is_not_finite_is_refused_with_the_name_of_its_option(value: float) -> None:
    module = FakeModule(stun_budget=value, timeout=10.0)
    runner.run(module, lambda: pytest.fail("the module must not run"))
    ((how, result),) = module.ended
    assert how == "fail" and f"the option stun_budget is {value}, which is not a finite number" in result["msg"]
