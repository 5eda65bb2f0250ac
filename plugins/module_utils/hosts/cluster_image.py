"""Subject: the image of a cluster, with which vSphere Lifecycle Manager (vLCM) manages the software of its hosts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from ..errors import CollectionError, Failed, Refused
from ..plan import Plan, State
from ..vsphere import properties
from ..vsphere.forms import ANY
from ..vsphere.rest import Rest
from ..vsphere.sdk import ApiObject, vim
from ..vsphere.session import Session

CLUSTERS = "/api/esx/settings/clusters"
_VALIDATED = {"result?": {"notifications?": {"errors?": [{"message?": dict}]}}}
_PART = {"version": str}
_IMAGE = {"base_image?": _PART, "add_on?": {"name": str, "version": str}, "components?": {str: {"version?": str}}}


@dataclass(frozen=True)
class ImageSpec:
    """The options of the user; without any, the image stays as it is."""

    components: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[str] = ()
    base_image: str = ""
    add_on: Mapping[str, str] = field(default_factory=dict)
    task_timeout: int = 600


class ClusterImage:
    """The image of one cluster."""

    name = "image"

    def __init__(self, rest: Rest, moid: str, name: str, desired: ImageSpec) -> None:
        self.rest, self.desired, self.target = rest, desired, name
        self._path = f"{CLUSTERS}/{moid}"

    def read(self) -> State:
        """Return whether an image manages the cluster, its base image and add-on, and its other components."""
        tried = f"read the image of cluster {self.target}"
        managed = self.rest.get(f"{self._path}/enablement/software", tried=tried, form={"enabled": bool})["enabled"]
        image = self.rest.get(f"{self._path}/software", tried=tried, form=_IMAGE) if managed else {}
        compliance = f"{self._path}/software/compliance"
        checked = self.rest.find(compliance, tried=tried, form={"status": str}) if managed else None
        add_on = image.get("add_on")
        return {
            "managed": managed,
            "base_image": (image.get("base_image") or {}).get("version"),
            "add_on": {key: add_on[key] for key in ("name", "version")} if add_on else None,
            "compliance": checked["status"].lower() if checked else None,
            "components": {name: one.get("version") or "" for name, one in (image.get("components") or {}).items()},
        }

    def plan(self, current: State) -> Plan:
        """Return the plan that sets the versions in the image."""
        return plan_image(current, self.desired)

    def apply(self, plan: Plan) -> None:
        """Change, validate and commit a draft of the image; a draft that fails is discarded."""
        tried = f"open a draft of the image of cluster {self.target}"
        drafts = f"{self._path}/software/drafts"
        draft = f"{drafts}/{self.rest.send('POST', drafts, tried=tried, remedy=_DISCARD, form=str)}"
        try:
            self._fill(f"{draft}/software", plan)
            self._validate(draft)
            self._task(draft, "commit", {"message": f"dml.vsphere: {', '.join(c.key for c in plan.due)}"})
        except CollectionError:
            with suppress(CollectionError):  # the first error is the one to report
                self.rest.send("DELETE", draft, tried="discard the draft")
            raise
        self.compare()

    def _fill(self, software: str, plan: Plan) -> None:
        tried = f"change the draft of the image of cluster {self.target}"
        before, after = plan.before, plan.after
        if before["base_image"] != after["base_image"]:
            body = {"version": after["base_image"]}
            self.rest.send("PUT", f"{software}/base-image", body, tried=tried, remedy=_IMPORT)
        if before["add_on"] != after["add_on"]:
            self.rest.send("PUT", f"{software}/add-on", after["add_on"], tried=tried, remedy=_IMPORT)
        change = _component_changes(before["components"], after["components"])
        if any(change.values()):
            self.rest.send("PATCH", f"{software}/components", change, tried=tried, remedy=_IMPORT)

    def _validate(self, draft: str) -> None:
        result = self._task(draft, "validate", form=_VALIDATED) or {}
        errors = [text_of(error.get("message")) for error in (result.get("notifications") or {}).get("errors") or []]
        if errors:
            tried = f"validate the new image of cluster {self.target}"
            raise Failed(self.rest.server, tried, "the server said " + "; ".join(errors), _IMPORT)

    def compare(self) -> None:
        """Have vLCM compare the hosts: until then, it shows how they complied with the earlier image."""
        tried, seconds = f"compare the hosts of cluster {self.target} with its new image", self.desired.task_timeout
        self.rest.task(f"{self._path}/software", tried=tried, seconds=seconds, remedy=_COMPARE, action="scan")

    def _task(self, draft: str, action: str, body: object = None, form: object = ANY) -> ApiObject:
        tried = f"{action} the new image of cluster {self.target}"
        seconds = self.desired.task_timeout
        return self.rest.task(draft, body, tried=tried, seconds=seconds, form=form, action=action)


_DISCARD = "finish or discard the draft that is open in the cluster's Updates > Image, then run again"
_COMPARE = "check the compliance in the cluster's Updates > Image, then run again: the image itself was changed"
_IMPORT = "import the bundle with the option depot if the depot of vCenter lacks it"


def plan_image(current: State, desired: ImageSpec) -> Plan:
    """Return the plan that sets the versions of the user in the image; other components stay."""
    if not current["managed"]:
        raise Refused(
            "the cluster's image",
            "change it",
            "the cluster is not managed by an image",
            "install VIBs on its hosts with esxi_vib",
        )
    kept = {name: version for name, version in current["components"].items() if name not in desired.absent}
    after = {
        **current,
        "base_image": desired.base_image or current["base_image"],
        "add_on": dict(desired.add_on) or current["add_on"],
        "components": {**kept, **desired.components},
    }
    pending = after != current or current["compliance"] != "compliant"
    why = ("hosts run the image after a window with it, or when vLCM remediates the cluster",) if pending else ()
    return Plan(before=current, after=after, why=why)


def managed_clusters(session: Session) -> dict[str, str]:
    """Return, by ID, the names of the clusters that an image manages; one read of the SOAP API, without REST."""
    clusters = properties.find_all(session, vim.ClusterComputeResource, ("name", "lifecycleManaged"))
    return {ref._moId: values["name"] for ref, values in clusters if values.get("lifecycleManaged")}


def text_of(message: object) -> str:
    """Return a localizable message of the REST API as text."""
    message = message if isinstance(message, dict) else {}
    return str(message.get("localized") or message.get("default_message") or message.get("id") or "no reason")


def _component_changes(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, object]:
    return {
        "components_to_set": {name: version for name, version in after.items() if before.get(name) != version},
        "components_to_delete": [name for name in before if name not in after],
    }
