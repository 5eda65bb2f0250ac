"""The program of a rollout: bring the hosts of a cluster to their profile, a few at a time; pure.

Its journal is in memory: the hosts keep the lasting state, with a note on each host that the collection took out of
service. The next run plans again, and its plan contains exactly the remaining work.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from ...core.findings import listed
from ...durable.calls import Calls, required
from ...durable.program import Program
from ...errors import WholeError
from ..change_hosts import change_hosts
from ..image_plan import commit_image
from ..rollout_plan import HostsAtOnce, RolloutOptions, RolloutPlan, hosts_at_once, plan_hosts, require_possible


class RolloutCalls(Calls, Protocol):
    """Calls of a run that can identify itself to its modules while it holds the lock."""

    def join(self, run: str) -> None:
        """Name the run that holds the lock to all modules."""


def rollout(p: Program, calls: RolloutCalls, how: RolloutOptions) -> RolloutPlan:
    """Change the hosts that differ, those that stay in service first, and return the plan that was carried out.

    A host whose change fails stays out of service and ends the rollout. A killed rollout leaves the lock, which the
    next run on this controller takes over, and at most one batch of hosts out of service, which it finishes first.
    """
    with p.held("the lock", partial(take_lock, calls, how), partial(release_lock, calls, how)):
        # Another controller may have changed hosts until now.
        plan: RolloutPlan = p.once("plan", partial(plan_hosts, calls, how))
        require_possible(plan)
        if how.change.image and not how.around_job:
            p.say(f"sets the image of cluster {how.change.cluster}")
            p.once("image", partial(commit_image, calls, how.change.cluster, how.change.image))
        if plan["in_service"]:
            p.say(f"changes {listed(plan['in_service'])} in service")
            p.ensure(partial(change_in_service, calls, plan["in_service"], how))
        # Around a training job, a maintenance window changes the hosts that leave service.
        if not how.around_job and plan["leaving"]:
            at_once: HostsAtOnce = p.once("hosts at once", partial(hosts_at_once, calls, plan["leaving"], how.change))
            p.say(at_once["why"])
            most = at_once["most"]
            for first in range(0, len(plan["leaving"]), most):
                change_hosts(p, calls, plan["leaving"][first : first + most], how.change)
    if p.left:
        raise WholeError("; ".join(p.left.values()))
    return plan


def take_lock(calls: RolloutCalls, how: RolloutOptions) -> None:
    """Take the lock of the cluster, by force if the user is certain that its holder has ended."""
    change = how.change
    options = {"cluster": change.cluster, "state": "held", "ttl": change.lock_ttl, "force_unlock": how.force_unlock}
    # Modules that start after their playbook was killed see that its run has ended.
    calls.join(required(calls.here("cluster_lock", options))["state"]["run"])


def release_lock(calls: RolloutCalls, how: RolloutOptions) -> None:
    required(calls.here("cluster_lock", {"cluster": how.change.cluster, "state": "free"}))


def change_in_service(calls: RolloutCalls, hosts: Sequence[str], how: RolloutOptions) -> None:
    """Apply the profile to hosts that need no maintenance mode for it."""
    profiles = {"profile": how.change.profile, "host_profiles": how.change.host_profiles}
    required(calls.here("esxi_profile", {"hosts": list(hosts), **profiles}))
