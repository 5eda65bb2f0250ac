"""The workload of the runs in a report: network, image size, batch, precision, framework, stack and image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RESNET = ("resnet50", "resnet-50")
# The defaults of the collection's benchmark and of tf_cnn_benchmarks.
OWN = {"model": "resnet50", "batch-size": "32", "image-size": "224"}
TF_CNN = {"model": "trivial", "batch-size": "the default of the network", "image-size": "224"}
FLAGS = {"fp16", "use-fp16"}
Run = Mapping[str, Any]


def workload(run: Run) -> dict[str, str]:
    """Return the workload of one run in the words of a report; an unknown value is a dash."""
    requested = run.get("asked") or {}
    framework, options = str(requested.get("framework") or "-"), dict(_options(requested.get("options") or []))
    own = {"image": str(requested.get("image") or "-"), "stack": _name(run.get("stack") or requested.get("stack"))}
    if requested.get("command") or not requested:
        unknown = dict.fromkeys(("image size", "batch", "precision", "framework"), "-")
        return {"network": str(run.get("network") or "-"), **unknown, **own}
    settings = {**(TF_CNN if framework == "tf_cnn_benchmarks" else OWN), **options}
    return {
        "network": settings["model"],
        "image size": settings["image-size"],
        "batch": settings["batch-size"],
        "precision": "fp16" if FLAGS & set(options) else "fp32",
        "framework": framework,
        **own,
        **({"paced": f"{settings['step-seconds']} s"} if _is_paced(settings) else {}),
    }


def sentences(runs: Sequence[Run]) -> list[str]:
    """Return one sentence for each workload, with the names of its runs if there are several workloads."""
    kinds: dict[str, list[str]] = {}
    for run in runs:
        kinds.setdefault(_sentence(workload(run)), []).append(str(run["name"]))
    if len(kinds) < 2:
        return list(kinds)
    return [f"{', '.join(names)}: {sentence}" for sentence, names in kinds.items()]


def caution(runs: Sequence[Run]) -> str:
    """Return why the results cannot be compared with published ones of ResNet-50; empty if they can."""
    workloads = [workload(run) for run in runs]
    others = sorted({work["network"] for work in workloads if work["network"].lower() not in RESNET})
    paced = sorted({work["paced"] for work in workloads if "paced" in work})
    reasons = [f"the network {' and '.join(others)}" if others != ["-"] else "an unknown network"] if others else []
    reasons += [f"steps paced to {' and '.join(paced)}"] if paced else []
    return (
        f"Measured with {' and '.join(reasons)}: not comparable with published results of ResNet-50." if reasons else ""
    )


def _sentence(work: Mapping[str, str]) -> str:
    stack = "unknown stack" if work["stack"] == "-" else f"stack {work['stack']}"
    where = f"{stack}, {'no container image' if work['image'] == '-' else 'container image ' + work['image']}"
    if work["network"] == "-":
        return f"The trained network is unknown; {where}."
    if work["framework"] == "-":
        return f"Trained: {work['network']}, {where}."
    words = f"Trained: {work['network']}, images of {work['image size']} pixels, batch {work['batch']} for each rank"
    words += f", {work['precision']}, {work['framework']}, {where}"
    return f"{words}; paced: no step is shorter than {work['paced'].split()[0]} s." if "paced" in work else f"{words}."


def _options(words: Sequence[object]) -> Iterator[tuple[str, str]]:
    """Yield the options, each given as one or two words, with their values; a missing value is empty."""
    texts = [str(word) for word in words]
    for index, word in enumerate(texts):
        if word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            following = texts[index + 1] if index + 1 < len(texts) else "--"
            yield name.replace("_", "-"), value if sign else "" if following.startswith("--") else following


def _is_paced(settings: Mapping[str, str]) -> bool:
    try:
        return float(settings.get("step-seconds") or 0) > 0
    except ValueError:
        return False


def _name(stack: object) -> str:
    return str(stack.get("name") or "-") if isinstance(stack, Mapping) else str(stack or "-")
