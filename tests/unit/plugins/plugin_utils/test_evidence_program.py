"""The program evidence, whose name is that of the file of a cluster."""

from __future__ import annotations

import pytest

from tests.fakes.programs import Answers, run


@pytest.mark.parametrize(
    ("cluster", "host", "name"),
    [
        ("gpu", "gpu", "gpu"),
        ("gpu", "gpu_a", "gpu-gpu_a"),
        ("gpu", "gpu_b", "gpu-gpu_b"),
        ("../x/y", "a", "%2e.%2fx%2fy-a"),
    ],
)
def test_clusters_with_one_name_get_separate_files(cluster: str, host: str, name: str) -> None:
    """vCenters have clusters with the same names, which the inventory distinguishes."""
    calls = Answers(esxi_info={"hosts": [], "vcenter": {}}, cluster_info={"cluster": {"name": cluster}})

    result = run("evidence", calls, cluster=cluster, inventory_name=host)

    assert not result.get("failed"), result
    assert result["name"] == name
