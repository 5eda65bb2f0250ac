# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""What the runs of a report trained: network, image size, batch, precision, framework, stack and container image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RESNET = ("resnet50", "resnet-50")
# What a benchmark trains where its options say nothing: our own, and tf_cnn_benchmarks.
OWN = {"model": "resnet50", "batch-size": "32", "image-size": "224"}
TF_CNN = {"model": "trivial", "batch-size": "the network's own", "image-size": "224"}
FLAGS = {"fp16", "use-fp16"}
Run = Mapping[str, Any]


def trained(run: Run) -> dict[str, str]:
    """What one run trained, by the words of a report; what its command does not tell is a dash."""
    asked = run.get("asked") or {}
    framework, options = str(asked.get("framework") or "-"), dict(_options(asked.get("options") or []))
    own = {"image": str(asked.get("image") or "-"), "stack": _name(run.get("stack") or asked.get("stack"))}
    if asked.get("command") or not asked:
        unknown = dict.fromkeys(("image size", "batch", "precision", "framework"), "-")
        return {"network": str(run.get("network") or "-"), **unknown, **own}
    told = {**(TF_CNN if framework == "tf_cnn_benchmarks" else OWN), **options}
    return {
        "network": told["model"],
        "image size": told["image-size"],
        "batch": told["batch-size"],
        "precision": "fp16" if FLAGS & set(options) else "fp32",
        "framework": framework,
        **own,
        **({"paced": f"{told['step-seconds']} s"} if _is_paced(told) else {}),
    }


def sentences(runs: Sequence[Run]) -> list[str]:
    """What was trained, one sentence for each kind of work; the names of its runs where there are several kinds."""
    kinds: dict[str, list[str]] = {}
    for run in runs:
        kinds.setdefault(_sentence(trained(run)), []).append(str(run["name"]))
    if len(kinds) < 2:
        return list(kinds)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in kinds.items()]


def caution(runs: Sequence[Run]) -> str:
    """Why published ResNet-50 results cannot be compared with the measured ones; empty where they can."""
    works = [trained(run) for run in runs]
    others = sorted({one["network"] for one in works if one["network"].lower() not in RESNET})
    paced = sorted({one["paced"] for one in works if "paced" in one})
    reasons = (
        [f"the network {' and '.join(others)}" if others != ["-"] else "a network that is not told"] if others else []
    )
    reasons += [f"steps paced to {' and '.join(paced)}"] if paced else []
    return (
        f"Measured with {' and '.join(reasons)}: not comparable with published results of ResNet-50." if reasons else ""
    )


def _sentence(one: Mapping[str, str]) -> str:
    stack = "no stack told" if one["stack"] == "-" else f"stack {one['stack']}"
    where = f"{stack}, {'no container image' if one['image'] == '-' else 'container image ' + one['image']}"
    if one["network"] == "-":
        return f"The network that was trained is not told; {where}."
    if one["framework"] == "-":
        return f"Trained: {one['network']}, {where}."
    words = f"Trained: {one['network']}, images of {one['image size']} pixels, batch {one['batch']} for each rank"
    words += f", {one['precision']}, {one['framework']}, {where}"
    return f"{words}; paced: no step is shorter than {one['paced'].split()[0]} s." if "paced" in one else f"{words}."


def _options(words: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Options by name, given as one word or two; one without a value has an empty one."""
    texts = [str(word) for word in words]
    for index, word in enumerate(texts):
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            following = texts[index + 1] if index + 1 < len(texts) else "--"
            yield name.replace("_", "-"), value if sign else "" if following.startswith("--") else following


def _is_paced(told: Mapping[str, str]) -> bool:
    try:
        return float(told.get("step-seconds") or 0) > 0
    except ValueError:
        return False


def _name(stack: Any) -> str:
    return str(stack.get("name") or "-") if isinstance(stack, Mapping) else str(stack or "-")
