"""playbooks/hosts.yml with an option that the driver does not have: drivers ignore such options without an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from lab.simulator import Simulator
from tests.integration.ansible import Ansible
from tests.integration.releases import NEWEST
from tests.integration.rolling import datacentre, run, times

pytestmark = pytest.mark.release(NEWEST)

Start = Callable[..., Simulator]
AnsibleFor = Callable[..., Ansible]
HOSTS = ["esx01.lab", "esx02.lab"]
MISTYPED: dict[str, Any] = {
    "esxi_host_profile": {"kernel_modules": [{"name": "nmlx5_core", "options": {"max_vsf": 4}}]}
}


@pytest.mark.parametrize("options", [("--check",), ()])
def test_a_mistyped_option_is_refused_before_the_first_write_with_the_name_that_the_driver_has(
    start: Start, ansible_for: AnsibleFor, options: tuple[str, ...]
) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    refused = run(ansible_for(vcenter), *options, **MISTYPED)
    text = " ".join(refused.out.split())
    assert refused.rc != 0 and vcenter.writes() == [], refused.out
    assert "kernel module nmlx5_core has no parameter max_vsf (did you mean max_vfs?); its parameters are" in text


def test_an_option_is_set_with_a_warning_if_the_parameters_of_the_driver_cannot_be_read(
    start: Start, ansible_for: AnsibleFor
) -> None:
    vcenter = start(text=datacentre('name: "esx%02d.lab", count: 2'))
    for host in HOSTS:
        vcenter.fault("esxcli system module parameters list", name=host, count=1000, message="no list")
    done = run(ansible_for(vcenter), **MISTYPED)
    text = " ".join(done.out.split())
    assert done.rc == 0 and times(vcenter.writes(), "RebootHost_Task") == dict.fromkeys(HOSTS, 1), done.out
    assert "no list" in text and "the names of its options were not checked" in text
