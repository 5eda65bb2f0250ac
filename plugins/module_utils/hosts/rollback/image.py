"""The restoration of a cluster's image from evidence, as options of esxi_image: the parts that the change named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Data = Mapping[str, Any]
KEPT = ("base_image", "add_on", "components")


def kept(state: Data) -> dict[str, Any]:
    """Return what evidence keeps of an image, from the state that esxi_image returns."""
    return {key: state[key] for key in KEPT}


def restoring_image(document: Data) -> tuple[dict[str, Any], list[str]]:
    """Return the options that restore the image, empty if the change did not touch it, and why it cannot be restored.

    The versions of the evidence replace those of the change; a component that the image did not contain is removed.
    """
    desired, before = document["wanted"].get("image") or {}, document.get("image")
    if not desired:
        return {}, []
    if not before:
        return {}, ["the evidence lacks the image of the cluster, which the change touched: restore it with esxi_image"]
    named = [*(desired.get("components") or {}), *(desired.get("absent") or [])]
    options: dict[str, Any] = {
        "components": {name: before["components"][name] for name in named if name in before["components"]},
        "absent": [name for name in named if name not in before["components"]],
    }
    reasons = list[str]()
    if desired.get("base_image") and desired["base_image"] != before["base_image"]:
        reasons.append(
            f"the change set the base image of the cluster to {desired['base_image']}, and vLCM does not downgrade "
            f"ESXi: to return to {before['base_image']}, reinstall it on the hosts"
        )
    if desired.get("add_on"):
        if before["add_on"]:
            options["add_on"] = dict(before["add_on"])
        else:
            name = desired["add_on"].get("name")
            reasons.append(f"the image had no add-on: remove {name} in the cluster's Updates > Image")
    return {key: value for key, value in options.items() if value}, reasons
