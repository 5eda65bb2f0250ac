# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Versions of nodes: from the proofs into one table, and where they differ."""

from __future__ import annotations

from plugins.module_utils.guests import software_versions

PROOFS = {
    "dml_openmpi": {"proven": True, "versions": {"OpenMPI": "4.1.4"}},
    "dml_horovod": {"versions": {"Horovod": "0.28.1", "TensorFlow": "2.15.1"}},
    "dml_rdma": {"proven": True, "device": "vmw_pvrdma0"},
    "others": {"versions": {"Not": "ours"}},
}
OTHER = {**PROOFS, "dml_openmpi": {"versions": {"OpenMPI": "4.1.5"}}}
SAME = {"Horovod": "0.28.1", "TensorFlow": "2.15.1", "OpenMPI": "4.1.4"}


def test_versions_come_from_the_proofs_of_this_collection() -> None:
    assert software_versions.collect({"n1": PROOFS, "n2": {}}) == {"n1": SAME, "n2": {}}


def test_the_table_has_a_line_for_each_node() -> None:
    assert software_versions.table({"node1": SAME, "n2": {"OpenMPI": "4.1.4-longer"}}) == [
        "node   Horovod  TensorFlow  OpenMPI",
        "node1  0.28.1   2.15.1      4.1.4",
        "n2     -        -           4.1.4-longer",
    ]


def test_equal_nodes_do_not_differ() -> None:
    assert software_versions.differences({"n1": SAME, "n2": dict(SAME)}) == []


def test_each_difference_names_the_nodes() -> None:
    nodes = software_versions.collect({"n1": PROOFS, "n2": OTHER, "n3": PROOFS, "n4": {}})
    assert software_versions.differences(nodes)[-1] == "OpenMPI is 4.1.4 on n1, n3 and 4.1.5 on n2 and missing on n4."
    assert software_versions.differences(nodes)[0] == "Horovod is 0.28.1 on n1, n2, n3 and missing on n4."
