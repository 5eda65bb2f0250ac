"""The fixture ``start`` fails a test that broke a rule of the simulator's judge, unless the test says so."""

from __future__ import annotations

import pytest

from tests.integration.ansible import Start
from tests.integration.workers import switch

THEIRS = """
foreign: [theirs]
clusters: [{name: gpu, hosts: [{name: esx01.lab}]}]
vms: [{name: theirs, powered_on: true}]
"""


@pytest.mark.breaks("foreign")
def test_write_to_a_foreign_machine_breaks_its_rule(start: Start) -> None:
    vcenter = start(text=THEIRS)

    switch(vcenter, "theirs", on=False)

    (broken,) = vcenter.violations()
    assert broken["what"] == "PowerOffVM_Task of theirs, and theirs is foreign"
