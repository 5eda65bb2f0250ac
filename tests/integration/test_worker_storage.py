"""Workers on datastore clusters, against the simulated data centre."""

from __future__ import annotations

from collections.abc import Callable

from pyVmomi import vim

from lab.simulator import Simulator
from plugins.module_utils.vsphere import properties, session, tasks
from tests.integration.ansible import Ansible
from tests.integration.workers import DEFAULTS, HOSTS, desired, machine

TWO = HOSTS.replace("datastores: [shared]", "datastores: [fast1, fast2, shared]")


def pod_of(simulator: Simulator, name: str, *stores: str) -> None:
    """Create a datastore cluster and move datastores into it, as a person does."""
    params = {"validate_certs": True, "timeout": 60, **simulator.connection}
    with session.session(params) as opened:
        (centre,) = [ref for ref, _values in properties.find_all(opened, vim.Datacenter, ("name",))]
        pod = centre.datastoreFolder.CreateStoragePod(name)
        found = properties.find_all(opened, vim.Datastore, ("name",))
        task = pod.MoveIntoFolder_Task([ref for ref, values in found if values["name"] in stores])
        tasks.wait(opened, tasks.Started(task, name, "move datastores"), 20)


def test_a_worker_lies_on_a_datastore_that_vcenter_recommends(
    start: Callable[..., Simulator], ansible_for: Callable[[Simulator], Ansible]
) -> None:
    place = start(text=TWO)
    ansible = ansible_for(place)
    pod_of(place, "fast", "fast1", "fast2")
    call = {**desired(1), "defaults": {**DEFAULTS, "datastore": "fast"}}
    place.clear()
    planned = ansible.module("worker_vm", check=True, **call)
    assert (planned.rc, planned.changed, place.writes()) == (0, True, []), planned.out
    done = ansible.module("worker_vm", **call)
    assert done.rc == 0, done.out
    with machine(place, "worker01") as vm:
        assert [store.name for store in vm.ref.datastore] == ["fast1"]
    place.clear()
    again = ansible.module("worker_vm", **call)
    assert (again.changed, place.writes()) == (False, []), again.out
    unknown = ansible.module("worker_vm", **{**desired(2), "defaults": {**DEFAULTS, "datastore": "slow"}})
    assert unknown.rc == 1 and "find one datastore named 'slow'" in unknown.msg and place.writes() == []
