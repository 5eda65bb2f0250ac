"""Build deb and rpm packages, and compile the libraries that they contain."""

from __future__ import annotations

import subprocess
from pathlib import Path

from recipes import Package

ANSWERS = {
    "cudnnGetVersion": "#include <stddef.h>\nsize_t cudnnGetVersion(void) { return %d; }\n",
    "ncclGetVersion": "int ncclGetVersion(int *version) { *version = %d; return 0; }\n",
}


def run(*command: str | Path, stdin: str = "", cwd: Path | None = None) -> str:
    """Run a program that must succeed, and return its output."""
    words = [str(word) for word in command]
    done = subprocess.run(words, input=stdin, text=True, stdout=subprocess.PIPE, check=True, cwd=cwd)
    return done.stdout


def fill(root: Path, package: Package, libraries: str) -> None:
    """Write the contents of the package to a folder."""
    if package.library:
        name, function, number = package.library
        path = root / libraries.lstrip("/") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        source = ANSWERS[function] % number
        run("gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-x", "c", "-", "-o", path, stdin=source)
    if package.program:
        program, text = package.program
        path = root / program.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    notes = root / "usr" / "share" / "doc" / package.name / "version"
    notes.parent.mkdir(parents=True, exist_ok=True)
    notes.write_text(package.version + "\n")


def deb(package: Package, work: Path, into: Path) -> None:
    """Build a package for apt."""
    root = work / "deb" / f"{package.name}-{package.version}"
    fill(root, package, "/usr/lib/x86_64-linux-gnu")
    needs = f"Depends: {package.needs} (= {package.version})\n" if package.needs else ""
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(
        f"Package: {package.name}\nVersion: {package.version}\nArchitecture: amd64\n{needs}"
        "Maintainer: tests <tests@localhost>\n"
        "Description: stands for NVIDIA's package of this name\n"
    )
    into.mkdir(parents=True, exist_ok=True)
    run("dpkg-deb", "--build", "--root-owner-group", "-Znone", root, into)


def rpm(package: Package, work: Path, into: Path) -> Path:
    """Build a package for dnf, and return its path."""
    root = work / "rpm" / f"{package.name}-{package.version}"
    fill(root, package, "/usr/lib64")
    files = [f"/{path.relative_to(root)}" for path in sorted(root.rglob("*")) if path.is_file()]
    version, release = package.version.split("-")
    needs = f"Requires: {package.needs} = {package.version}\n" if package.needs else ""
    spec = work / f"{root.name}.spec"
    spec.write_text(
        f"Name: {package.name}\nVersion: {version}\nRelease: {release}\nSummary: stands for NVIDIA's package\n"
        f"License: GPL-3.0-or-later\n{needs}AutoReqProv: no\n%description\nStands for NVIDIA's package of this name.\n"
        f"%install\ncp -a {root}/. %{{buildroot}}/\n%files\n" + "\n".join(files) + "\n"
    )
    into.mkdir(parents=True, exist_ok=True)
    settings = {
        "_topdir": work / "rpmbuild",
        "_rpmdir": into,
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.rpm",
        "__os_install_post": "%{nil}",
        "debug_package": "%{nil}",
    }
    defined = [word for name, value in settings.items() for word in ("--define", f"{name} {value}")]
    run("rpmbuild", "-bb", "--quiet", "--target", "x86_64-linux", *defined, spec)
    return into / f"{package.name}-{package.version}.rpm"
