"""The module esxi_kernel_module as Ansible calls it."""

from __future__ import annotations

from tests.fakes.calling import call
from tests.fakes.esxi import FakeEsxcli, FakeHost, FakeKernelModules


def test_merges_options_and_removes_others_only_on_request() -> None:
    one = FakeHost()
    modules = FakeKernelModules(one, nmlx5_core="max_vfs=8")
    FakeEsxcli(one, {"system module parameters list": [{"Name": "RSS"}, {"Name": "max_vfs"}]})
    desired = {"name": "nmlx5_core", "options": {"RSS": [4, 4]}}
    assert call("esxi_kernel_module", [one], check=True, **desired)["changed"] and one.writes == []
    assert call("esxi_kernel_module", [one], **desired)["changed"]
    assert modules.strings == {"nmlx5_core": "max_vfs=8 RSS=4,4"}
    assert not call("esxi_kernel_module", [one], **desired)["changed"]
    call("esxi_kernel_module", [one], **desired, exact=True)
    assert modules.strings == {"nmlx5_core": "RSS=4,4"}


def test_hosts_and_cluster_exclude_each_other() -> None:
    result = call("esxi_kernel_module", [FakeHost()], cluster="gpu", name="nmlx5_core", options={"RSS": 4})
    assert result["failed"] and "mutually exclusive: hosts|cluster" in result["msg"]
