"""The work of one call on a cluster's image: the bundle in the depot, the image, and the hosts that are to run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import runner
from ..errors import CollectionError, NotFound, Refused
from ..plan import Plan, State
from ..runner import Params
from ..vsphere import inventory
from ..vsphere.properties import id_of
from ..vsphere.rest import Rest
from ..vsphere.session import Session
from . import remediation
from .cluster_image import ClusterImage, ImageSpec
from .host_image import COMPLIANT, ApplyOptions, HostImage, ImageOfHosts, require_eula

OFFLINE_BUNDLES = "/api/esx/settings/depots/offline"
_LISTED = {str: {"location?": str}}


class ImageWork:
    """One call, whose parts are made one after another, until one fails."""

    def __init__(
        self, gate: runner.Gate, session: Session, rest: Rest, params: Params, report: Callable[[str, str], None]
    ) -> None:
        self.gate, self.session, self.rest, self.params, self.report = gate, session, rest, params, report
        self.result: dict[str, Any] = {"changed": False, "diff": [], "warnings": [], "hosts": []}

    def run(self) -> dict[str, Any]:
        params = self.params
        if params["depot"]:
            _refuse_account(params["depot"])
            bundle = OfflineBundle(self.rest, params["depot"], params["task_timeout"], self.report)
            self._keep(runner.converge_one(self.gate, bundle))
        if params["cluster"] and not self.result.get("failed"):
            cluster, found = inventory.find_cluster(self.session, params["cluster"], ("host",))
            moid, members = id_of(cluster), [id_of(ref) for ref in found.get("host") or []]
            self._image(moid)
            if params["hosts"] and not self.result.get("failed"):
                self._hosts(moid, members)
        return self.result

    def _image(self, moid: str) -> None:
        params = self.params
        desired = ImageSpec(
            {name: str(version) for name, version in params["components"].items()},
            params["absent"],
            params["base_image"],
            params["add_on"] or {},
            params["task_timeout"],
        )
        image = ClusterImage(self.rest, moid, params["cluster"], desired)
        done = runner.converge_one(self.gate, image)
        self.result.update({key: done[key] for key in ("state", "why") if key in done})
        self._keep(done)
        if not (runner.only_plans(self.gate) or done["changed"] or done.get("failed") or params["hosts"]):
            # A run that was killed after it had set the image left the comparison with the earlier one.
            self._compare(moid, image)

    def _compare(self, moid: str, image: ClusterImage) -> None:
        """Have vLCM compare the hosts with the image, unless it applies the image, which it compared before."""
        try:
            is_applied = bool(remediation.running(self.rest, moid, image.target))
        except CollectionError:  # a comparison only reads; the stop rules report an unreadable list
            is_applied = False
        if not is_applied:
            image.compare()

    def _hosts(self, moid: str, members: Sequence[str]) -> None:
        params, hosts = self.params, inventory.find_hosts(self.session, {"hosts": self.params["hosts"]})
        strangers = [host.name for host in hosts.hosts if id_of(host.ref) not in members]
        if strangers:
            tried = f"apply its image to {', '.join(strangers)}"
            raise NotFound(params["cluster"], tried, "it has no such host", "correct hosts")
        options = ApplyOptions(
            **{key: params[key] for key in ("accept_eula", "task_timeout", "apply_timeout")},
            changing=runner.only_plans(self.gate) and bool(self.result["changed"]),
            report=self.report,
        )
        images = ImageOfHosts(self.rest, moid, params["cluster"], options)
        subjects = [HostImage(host, images) for host in hosts.hosts]

        def refresh(chosen: Sequence[object]) -> None:
            # A comparison by vLCM is a task, so check mode takes the last one.
            (images.look if runner.only_plans(self.gate) else images.scan)()
            hosts.refresh_for(chosen)

        refresh(subjects)
        self._require(moid, options, subjects)
        # The cluster has one operation of vLCM at a time.
        done = runner.converge(self.gate, runner.Work(subjects, _once_more(refresh), parallel=1))
        self.result["hosts"] = done.pop("hosts")
        self._keep(done)

    def _require(self, moid: str, options: ApplyOptions, subjects: Sequence[HostImage]) -> None:
        """Refuse what contradicts a change of hosts before the first of them is changed."""
        if all(subject.read()["compliance"] == COMPLIANT for subject in subjects):
            return
        cluster = str(self.params["cluster"])
        policy = remediation.read_policy(self.rest, moid, cluster)
        remediation.require_policy(cluster, policy)
        require_eula(cluster, options)
        for subject in subjects:
            subject.extras = remediation.extras_of(policy)

    def _keep(self, done: Mapping[str, object]) -> None:
        self.result["changed"] = self.result["changed"] or done["changed"]
        self.result["diff"] += done.get("diff") or []
        self.result["warnings"] += done.get("warnings") or []
        if done.get("failed"):
            self.result.update(failed=True, msg=done["msg"])


def _once_more(refresh: Callable[[Sequence[object]], None]) -> Callable[[Sequence[object]], None]:
    """Return a function that reads from its second call on, because the first reading was made."""
    calls: list[int] = []

    def read(chosen: Sequence[object]) -> None:
        if calls:
            refresh(chosen)
        calls.append(1)

    return read


def _refuse_account(depot: str) -> None:
    """Refuse a URL with an account: vCenter lists the URLs of its depots to all its users."""
    if "@" in depot.partition("://")[2].partition("/")[0]:
        cause, remedy = (
            "its URL contains an account",
            "serve the bundle without one, or import it with the vSphere Client",
        )
        raise Refused("depot", "import it", cause, remedy)


class OfflineBundle:
    """One offline bundle by its URL."""

    def __init__(self, rest: Rest, url: str, seconds: int, report: Callable[[str, str], None]) -> None:
        self.rest, self.url, self.seconds, self.report = rest, url, seconds, report
        self.name, self.target = f"bundle {url}", "the depot of vCenter"

    def read(self) -> State:
        """Return whether a bundle was imported from the URL."""
        listed = self.rest.get(OFFLINE_BUNDLES, tried="list the offline bundles in its depot", form=_LISTED)
        return {"imported": any(info.get("location") == self.url for info in listed.values())}

    def plan(self, current: State) -> Plan:
        return Plan(before=current, after={"imported": True})

    def apply(self, _plan: Plan) -> None:
        body = {"source_type": "PULL", "location": self.url, "description": "imported by dml.vsphere"}
        tried = f"import {self.url} into its depot"
        remedy = "check that vCenter can reach this URL, and that it is the offline bundle of a vendor"
        self.report(self.target, f"vCenter fetches {self.url}")
        self.rest.task(OFFLINE_BUNDLES, body, tried=tried, seconds=self.seconds, remedy=remedy)
