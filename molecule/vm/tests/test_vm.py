"""The results of the roles on nodes with their own kernel and RDMA device, verified after a reboot."""

from __future__ import annotations

import pytest
from testinfra.host import Host

from tests.scenario import node, proof, run, workers

NODES = workers()
MTU, SIZE, WRITES = 4096, 65536, 200
PORT = 18515
WRITE = f"runuser -u dml -- timeout 600 ib_write_bw -F -x 1 -d rxe0 -p {PORT} -s {SIZE} -n {WRITES} --report_gbits"
SENT = "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/sent_pkts"


@pytest.fixture(params=NODES)
def each(request: pytest.FixtureRequest) -> Host:
    """Return every node in turn."""
    return node(request.param)


def test_the_machine_has_rebooted(each: Host) -> None:
    assert run(each, "cat /proc/sys/kernel/random/boot_id") != run(each, "cat /root/boot_id")


def test_peers_keep_names_after_cloud_init_rewrites_hosts(each: Host) -> None:
    assert "'manage_etc_hosts' as True" in run(each, "cat /etc/hosts")
    for peer in NODES:
        assert run(each, f"runuser -u dml -- ssh {peer} hostname") == peer


def test_training_user_locks_memory_and_opens_the_device(each: Host) -> None:
    assert run(each, "runuser -u dml -- ssh $(hostname) ulimit -l") == "unlimited"
    output = run(each, "runuser -u dml -- ibv_devinfo").split()
    assert output[output.index("hca_id:") + 1] == "rxe0"
    assert "PORT_ACTIVE" in output
    assert output[output.index("active_mtu:") + 1] == str(MTU)


def test_every_role_verifies_its_result(each: Host) -> None:
    assert proof(each, "node")["proven"] is True
    result = proof(each, "rdma")
    devices = [found["device"] for found in result["devices"]]
    assert (result["proven"], devices, result["ring"]) == (True, ["rxe0"], NODES)


def test_write_to_the_other_node_uses_the_device() -> None:
    writer, reader = (node(name) for name in NODES)
    listens = f"until ss -Hltn | grep -q :{PORT}; do sleep 0.2; done"
    run(reader, f"{WRITE} > /tmp/reader.log 2>&1 & timeout 60 sh -c '{listens}'")
    before = int(run(writer, SENT))
    (measured,) = [
        line.split() for line in run(writer, f"{WRITE} {NODES[1]}").splitlines() if line.split()[:1] == [str(SIZE)]
    ]
    assert measured[1] == str(WRITES)
    assert float(measured[3]) > 0
    assert int(run(writer, SENT)) - before >= SIZE // MTU * WRITES


def test_driver_reaches_its_installer_without_nouveau(each: Host) -> None:
    result = proof(each, "gpu_driver")
    assert result["proven"] is False
    message = "with exit code 3: arguments: --silent --dkms GNU Make 4.3 nouveau is gone no GPU is here"
    assert message in " ".join(result["why"].split())
    assert "nouveau" in run(each, "cat /etc/modules-load.d/site.conf")
    assert not each.file("/sys/module/nouveau").exists


def test_its_packages_are_from_the_archive_and_held(each: Host) -> None:
    assert run(each, "dpkg-query --show --showformat '${db:Status-Abbrev}|${Version}' make") == "hi |4.3-4.1"
