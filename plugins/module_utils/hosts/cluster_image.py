# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Subject: a component in the image of a cluster, with which vSphere Lifecycle Manager (vLCM) manages its hosts."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..errors import CollectionError, Failed, Refused
from ..plan import Plan
from ..vsphere import properties
from ..vsphere.forms import ANY
from ..vsphere.rest import Rest
from ..vsphere.sdk import vim
from ..vsphere.session import Session

OPTIONS: dict[str, Any] = {
    "cluster": {"type": "str", "required": True},
    "component": {"type": "str", "required": True},
    "version": {"type": "str"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "task_timeout": {"type": "int", "default": 600},
}
REQUIRED_IF = [("state", "present", ("version",))]

_CLUSTERS = "/api/esx/settings/clusters"
_VALIDATED = {"result?": {"notifications?": {"errors?": [{"message?": dict}]}}}
_IMAGE = {"base_image?": {"version": str}, "components?": {str: {"version": str}}}


@dataclass(frozen=True)
class ComponentSpec:
    """The options of the user."""

    component: str
    version: str = ""
    state: str = "present"
    task_timeout: int = 600


class ClusterImage:
    """The image of one cluster."""

    def __init__(self, rest: Rest, moid: str, name: str, desired: ComponentSpec) -> None:
        self.rest, self.desired, self.target = rest, desired, name
        self.name = f"component {desired.component} of the image"
        self._path = f"{_CLUSTERS}/{moid}"

    def read(self) -> dict[str, Any]:
        """Return whether an image manages the cluster, and the components that the image adds to its base image."""
        tried = f"read the image of cluster {self.target}"
        managed = self.rest.get(f"{self._path}/enablement/software", tried=tried, form={"enabled": bool})["enabled"]
        image = self.rest.get(f"{self._path}/software", tried=tried, form=_IMAGE) if managed else {}
        compliance = f"{self._path}/software/compliance"
        checked = self.rest.find(compliance, tried=tried, form={"status": str}) if managed else None
        return {
            "managed": managed,
            "base_image": (image.get("base_image") or {}).get("version"),
            "compliance": checked["status"].lower() if checked else None,
            "components": {name: component["version"] for name, component in (image.get("components") or {}).items()},
        }

    def apply(self, plan: Plan) -> None:
        """Change, validate and commit a draft of the image; a draft that fails is discarded."""
        tried = f"open a draft of the image of cluster {self.target}"
        drafts = f"{self._path}/software/drafts"
        draft = f"{drafts}/{self.rest.send('POST', drafts, tried=tried, remedy=_DISCARD, form=str)}"
        try:
            self._fill(draft, plan.before["components"], plan.after["components"])
            self._validate(draft)
            self._task(draft, "commit", {"message": f"{self.desired.component}: {self.desired.version or 'removed'}"})
        except CollectionError:
            with suppress(CollectionError):  # the first error is the one to report
                self.rest.send("DELETE", draft, tried="discard the draft")
            raise

    def _fill(self, draft: str, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        change = {
            "components_to_set": {name: version for name, version in after.items() if before.get(name) != version},
            "components_to_delete": [name for name in before if name not in after],
        }
        tried = f"change {self.desired.component} in the draft for cluster {self.target}"
        self.rest.send("PATCH", f"{draft}/software/components", change, tried=tried, remedy=_IMPORT)

    def _validate(self, draft: str) -> None:
        result = self._task(draft, "validate", form=_VALIDATED) or {}
        errors = [_text(error) for error in (result.get("notifications") or {}).get("errors") or []]
        if errors:
            tried = f"validate the new image of cluster {self.target}"
            raise Failed(self.rest.server, tried, "the server said " + "; ".join(errors), _IMPORT)

    def _task(self, draft: str, action: str, body: Any = None, form: Any = ANY) -> Any:
        tried = f"{action} the new image of cluster {self.target}"
        seconds = self.desired.task_timeout
        return self.rest.task(draft, body, tried=tried, seconds=seconds, form=form, action=action)


_DISCARD = "finish or discard the draft that is open in the cluster's Updates > Image, then run again"
_IMPORT = "import the bundle in Lifecycle Manager (Actions > Import Updates) if its depot lacks the component"


def steps(cluster: str) -> list[str]:
    """Return the steps that remain for the administrator and vLCM after a change of the image."""
    return [
        f"In vCenter open cluster {cluster} > Updates > Image and check the compliance of its hosts.",
        "Run the pre-check: vLCM must be able to empty each host; virtual machines with passthrough cannot move.",
        "Remediate: vLCM takes one host after another into maintenance mode, installs the image and reboots it.",
        "Then read the hosts with esxi_info: the VIB must be among the running ones, and the GPU must have a driver.",
    ]


def plan_image(current: Mapping[str, Any], desired: ComponentSpec) -> Plan:
    """Return the plan that sets the version of the component in the image, or removes it; other components stay."""
    if not current["managed"]:
        raise Refused(
            f"component {desired.component}",
            "change the cluster's image",
            "the cluster is not managed by an image",
            "install the VIB on its hosts with esxi_vib",
        )
    components = {name: version for name, version in current["components"].items() if name != desired.component}
    if desired.state == "present":
        components[desired.component] = desired.version
    changed = components != current["components"]
    pending = changed or current["compliance"] != "compliant"
    why = (f"hosts take {desired.component} when vLCM remediates the cluster",) if pending else ()
    return Plan(before=current, after={**current, "components": components}, why=why)


def managed_clusters(session: Session) -> dict[str, str]:
    """Return, by ID, the names of the clusters that an image manages; one read of the SOAP API, without REST."""
    clusters = properties.find_all(session, vim.ClusterComputeResource, ("name", "lifecycleManaged"))
    return {ref._moId: values["name"] for ref, values in clusters if values.get("lifecycleManaged")}


def _text(notification: Mapping[str, Any]) -> str:
    message = notification.get("message") or {}
    return str(message.get("localized") or message.get("default_message") or message.get("id") or notification)
