"""cluster_lock against the simulated data centre: two controllers, expiry, dead holders, kills at every call."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import Simulator
from plugins.module_utils.errors import Refused
from plugins.module_utils.maintenance.lock import holder, lock_rules
from plugins.module_utils.maintenance.lock.cluster_lock import ClusterLock
from plugins.module_utils.maintenance.lock.folders import LockFolders
from plugins.module_utils.vsphere import inventory, session
from plugins.module_utils.vsphere.properties import id_of
from tests.integration.ansible import Ansible, AnsibleFor, Outcome, Start
from tests.integration.killing import beside, has_answered, wait_for

GPU = {"cluster": "gpu"}


def folders(vcenter: Simulator) -> list[str]:
    """The names of all folders of the lock."""
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        one = ClusterLock(opened, "gpu", "held", lock_rules.LockRequest("test", "test", 60))
        seen = one.folders.read()
        inside = seen.root.inside if seen.root else ()
        return sorted(child.name for child in inside)


DEFAULTS: dict[str, Any] = {"validate_certs": True, "tls_fingerprint": None, "proxy": None, "timeout": 60}


def test_takes_renews_and_releases_the_lock_once_each(vcenter: Simulator, ansible: Ansible) -> None:
    planned = ansible.module("cluster_lock", check=True, run="a", **GPU)
    assert planned.changed and planned.result["state"]["run"] == "a" and vcenter.writes() == []
    taken = ansible.module("cluster_lock", run="a", **GPU)
    assert taken.changed and taken.result["state"]["held"], taken.out
    vcenter.clear()
    fresh = ansible.module("cluster_lock", run="a", **GPU)
    assert not fresh.changed and vcenter.writes() == []
    renewed = ansible.module("cluster_lock", run="a", ttl=90000, **GPU)
    assert renewed.changed and renewed.result["state"]["since"] == taken.result["state"]["since"]
    assert renewed.result["state"]["until"] > taken.result["state"]["until"]
    freed = ansible.module("cluster_lock", run="a", state="free", **GPU)
    assert freed.changed and not freed.result["state"]["held"]
    vcenter.clear()
    again = ansible.module("cluster_lock", run="a", state="free", **GPU)
    assert not again.changed and vcenter.writes() == []
    assert len(folders(vcenter)) == 1


@pytest.mark.breaks("lock")
def test_refusal_names_holder_deadline_and_remedy(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("cluster_lock", run="a", owner="alice@ctl01", **GPU)
    vcenter.clear()
    for state in ("held", "free"):
        refused = ansible.module("cluster_lock", run="b", state=state, **GPU)
        assert refused.rc == 1
        assert "gpu: could not" in refused.msg and "alice@ctl01 (run a) since 20" in refused.msg
        assert "until 20" in refused.msg and "force_unlock" in refused.msg
    assert vcenter.writes() == []
    forced = ansible.module("cluster_lock", run="b", state="free", force_unlock=True, **GPU)
    assert forced.changed and "alice@ctl01" in str(forced.result["warnings"])


def take(vcenter: Simulator, run: str) -> str:
    """Take the lock as its own controller: the run's name, or why not."""
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        one = ClusterLock(opened, "gpu", "held", lock_rules.LockRequest("somebody", run, 600))
        try:
            one.apply(one.plan(one.read()))
        except Refused as error:
            return str(error)
        return run


def test_exactly_one_of_many_controllers_takes_the_lock(vcenter: Simulator) -> None:
    for round_number in range(3):
        runs = [f"{round_number}.{rival}" for rival in range(8)]
        with ThreadPoolExecutor(len(runs)) as pool:
            result = list(pool.map(lambda run: take(vcenter, run), runs))
        (holder,) = set(result) & set(runs)
        losers = [text for text in result if text != holder]
        assert all("could not take its lock" in text and "force_unlock" in text for text in losers)
        with session.session({**DEFAULTS, **vcenter.connection}) as opened:
            one = ClusterLock(opened, "gpu", "free", lock_rules.LockRequest("somebody", holder, 1))
            state = one.read()
            assert state["run"] == holder
            one.apply(one.plan(state))


def test_lock_remains_valid_after_its_cluster_moves(vcenter: Simulator, ansible: Ansible) -> None:
    """The simulator moves no clusters, so the lock is read as one whose folder is elsewhere."""
    ansible.module("cluster_lock", run="a", **GPU)
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        ref, values = inventory.find_cluster(opened, "gpu", ("parent",))
        elsewhere = values["parent"].CreateFolder("archive")

        found = LockFolders(opened, "gpu", elsewhere, id_of(ref)).read()

    assert found.record is not None and found.record.run == "a"


def test_cluster_info_shows_that_a_lock_has_lapsed(
    vcenter: Simulator, ansible: Ansible, ansible_for: AnsibleFor
) -> None:
    def over(outcome: Outcome) -> Any:
        return outcome.result["cluster"]["lock"]["over"]

    with subprocess.Popen(["sleep", "600"]) as run:
        there = holder._described(run.pid)
        assert there is not None
        other = ansible_for(vcenter, **{holder.RUN: f"{there.machine}.{there.pid}.{there.started}"})
        assert other.module("cluster_lock", **GPU).changed
        assert over(ansible.module("cluster_info", **GPU)) is None
        run.kill()
    seen = ansible.module("cluster_info", **GPU)
    assert over(seen) == "its process is gone"
    assert ansible.module("cluster_lock", run="next", ttl=0, **GPU).changed
    assert over(ansible.module("cluster_info", **GPU)) == "it has run out"


def test_holder_renews_its_lock_while_a_host_boots(
    vcenter: Simulator, ansible_for: AnsibleFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = holder._described(os.getpid())
    assert me is not None
    ansible = ansible_for(vcenter, **{holder.RUN: f"{me.machine}.{me.pid}.{me.started}"})
    vcenter.set_host("esx01.lab", maintenance=True, reboot_seconds=7200)
    # The one who asks is on another machine, which cannot see that the holder lives.
    monkeypatch.setattr(holder, "_is_here", lambda _process: False)
    taken = ansible.module("cluster_lock", ttl=3600, owner="alice@ctl01", **GPU)
    assert taken.rc == 0, taken.out
    vcenter.let_pass(3500)
    vcenter.clear()
    renewed = has_answered(vcenter, "Rename_Task")
    options = {"hosts": ["esx01.lab"], "state": "rebooted", "only_if_ours": False, "reboot_timeout": 120}
    with beside(vcenter, ansible.module, "esxi_power", **options) as boot:
        wait_for(lambda: renewed() or boot.done())
        vcenter.let_pass(200)
        assert not boot.done(), boot.result().out
        assert "held by alice@ctl01" in take(vcenter, "another")
        vcenter.let_pass(7200)
        assert boot.result().rc == 0, boot.result().out


def test_controller_with_an_outdated_plan_takes_no_lock(vcenter: Simulator, ansible: Ansible) -> None:
    assert ansible.module("cluster_lock", run="a", **GPU).changed
    assert ansible.module("cluster_lock", run="a", state="free", **GPU).changed
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        late = ClusterLock(opened, "gpu", "held", lock_rules.LockRequest("late", "late", 600))
        plan = late.plan(late.read())
        assert ansible.module("cluster_lock", run="b", **GPU).changed
        assert ansible.module("cluster_lock", run="b", ttl=90000, **GPU).changed
        with pytest.raises(Refused, match=r"now belongs to .*run b"):
            late.apply(plan)
        assert late.read()["run"] == "b"
    assert len(folders(vcenter)) == 1


WRITES_OF_ONE_TAKE = ("CreateFolder", "Rename_Task", "Destroy_Task")


class Killed(BaseException):
    """Ends a run as a kill does: nothing after it is executed."""


def take_and_be_killed(vcenter: Simulator, monkeypatch: pytest.MonkeyPatch, calls: int) -> bool:
    """Take the lock, and die after that many mutating calls; whether the take had ended before."""
    with session.session({**DEFAULTS, **vcenter.connection}) as opened, monkeypatch.context() as patched:
        one = ClusterLock(opened, "gpu", "held", lock_rules.LockRequest("dying", "dying", 600))
        plan = one.plan(one.read())
        left, invoke = iter(range(calls)), opened.stub.InvokeMethod

        def until_killed(mo: Any, info: Any, args: Any, *more: Any) -> Any:
            if info.wsdlName in WRITES_OF_ONE_TAKE and next(left, None) is None:
                raise Killed
            return invoke(mo, info, args, *more)

        patched.setattr(opened.stub, "InvokeMethod", until_killed)
        try:
            one.apply(plan)
        except Killed:
            return False
        return True


@pytest.mark.breaks("lock")
def test_run_killed_between_calls_leaves_a_valid_lock(
    vcenter: Simulator, ansible: Ansible, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    while True:
        ended = take_and_be_killed(vcenter, monkeypatch, calls)
        with session.session({**DEFAULTS, **vcenter.connection}) as opened:
            seen = ClusterLock(opened, "gpu", "held", lock_rules.LockRequest("x", "x", 1)).folders.read()
        assert not seen.unreadable
        assert seen.record is None or seen.record.free or seen.record.run == "dying"
        after = ansible.module("cluster_lock", run="next", force_unlock=True, **GPU)
        assert after.changed and after.result["state"]["run"] == "next", after.out
        assert sum(name.isdigit() for name in folders(vcenter)) == 1
        assert ansible.module("cluster_lock", run="next", state="free", **GPU).changed
        if ended:
            break
        calls += 1
    assert calls >= 6


@pytest.mark.breaks("lock")
def test_reports_folders_changed_by_hand_as_an_error(vcenter: Simulator, ansible: Ansible) -> None:
    ansible.module("cluster_lock", run="a", **GPU)
    with session.session({**DEFAULTS, **vcenter.connection}) as opened:
        current = ClusterLock(opened, "gpu", "held", lock_rules.LockRequest("x", "x", 1)).folders.read().current
        assert current is not None
        current.ref.CreateFolder("New folder")
    broken = ansible.module("cluster_lock", run="b", **GPU)
    assert broken.rc == 1 and "not as this collection writes them" in broken.msg
    assert ansible.module("cluster_lock", run="b", force_unlock=True, **GPU).changed


LONG_NAME = "gpu/" + "c" * 75 + "%"
NAMED = """
clusters:
  - {{name: '{name}', hosts: [{{name: esx01.lab}}]}}
"""


@pytest.mark.parametrize("name", [LONG_NAME, "a/b", "50% gpu", "a\\b"])
def test_locks_clusters_with_any_name_that_vsphere_allows(start: Start, tmp_path: Path, name: str) -> None:
    vcenter = start(text=NAMED.format(name=name))
    ansible = Ansible(vcenter.environment, tmp_path)
    assert ansible.module("cluster_lock", run="a", cluster=name).changed
    refused = ansible.module("cluster_lock", run="b", cluster=name)
    assert refused.rc == 1 and "it is held by" in refused.msg
    assert ansible.module("cluster_lock", run="a", state="absent", cluster=name).changed
    made = [entry["name"] for entry in vcenter.writes()]
    assert all(len(one) <= 80 for one in made)
