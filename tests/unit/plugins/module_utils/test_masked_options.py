# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Options in which Ansible masked a secret that is also a part of a name."""

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
