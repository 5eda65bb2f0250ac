"""Install the requirements of a training program over the packages of a container image, before the ranks start::

    python3 dml_environment.py --store FOLDER --link RUN/environment requirements.txt

The environment is a folder of the node. Pods with the same store, requirements and packages use it again. Pods of other
images, folders and namespaces have another store, and the ranks cannot write it. An environment is used again only if
its files have the digest that was recorded when they were installed. The versions of the image's packages are
constraints for pip.
"""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import site
import stat
import subprocess
import sys

COMPLETE = "complete"  # exists once all packages are installed, and contains the digest of the files
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")
PURELIB = "import sysconfig; print(sysconfig.get_paths()['purelib'])"


def run(tried: str, *command: str) -> str:
    """Return the output of a command, or end with the errors that it printed."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, encoding="utf-8") as process:  # noqa: S603 # of the image
        output, printed = process.communicate()
    if process.returncode:
        lines = [line.strip() for line in (printed or output).splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
        sys.exit(f"could not {tried}: {' '.join(errors)}")
    return output


def packages() -> "dict[str, str]":
    """Return the packages of the image, each with its version."""
    listed = run("list the packages of the image", sys.executable, *PIP, "list", "--format=json")
    return {str(each["name"]): str(each["version"]) for each in json.loads(listed)}


def key_of(text: str, stack: "dict[str, str]") -> str:
    """Return the name of the environment."""
    parts = [text, sorted(stack.items()), sys.executable, sys.version]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def refuse_of_others(path: str) -> None:
    """End if the environment is not a folder of this user: its packages would run with the permissions of the job."""
    if os.path.lexists(path) and (os.path.islink(path) or os.lstat(path).st_uid != os.geteuid()):
        sys.exit(f"could not use the environment {path}: it is a link or belongs to another user; remove it")


def digest_of(path: str) -> str:
    """Return the SHA-256 of the names, modes and contents of an environment, without the file that contains it."""
    found = hashlib.sha256()
    for folder, folders, names in os.walk(path):
        folders.sort()
        for name in sorted([*folders, *names]):
            file = os.path.join(folder, name)
            if file != os.path.join(path, COMPLETE):
                mode = os.lstat(file).st_mode
                parts = [os.path.relpath(file, path), mode, content_of(file, mode)]
                found.update(json.dumps(parts).encode("utf-8", "surrogatepass") + b"\n")
    return found.hexdigest()


def content_of(file: str, mode: int) -> str:
    """Return the digest of a file, or the target of a link."""
    if stat.S_ISLNK(mode):
        return os.readlink(file)
    read = hashlib.sha256()
    if stat.S_ISREG(mode):
        with open(file, "rb") as opened:
            for part in iter(lambda: opened.read(1 << 20), b""):
                read.update(part)
    return read.hexdigest()


def refuse_changed(path: str) -> None:
    """End if the files of the environment are not those that were installed: another user planted or changed them."""
    complete = os.path.join(path, COMPLETE)
    if os.path.islink(complete) or os.path.getsize(complete) > 1000:
        recorded = ""
    else:
        with open(complete, encoding="ascii", errors="replace") as file:
            recorded = file.read()
    if recorded != digest_of(path):
        sys.exit(f"could not use the environment {path}: its files are not those that pip installed; remove it")


def create(path: str, requirements: str, stack: "dict[str, str]") -> None:
    """Create the environment from the beginning."""
    shutil.rmtree(path, ignore_errors=True)
    run("create the environment", sys.executable, "-m", "venv", "--without-pip", path)
    python, constraints = os.path.join(path, "bin", "python"), os.path.join(path, "constraints.txt")
    write(constraints, "".join(f"{name}=={version}\n" for name, version in sorted(stack.items())))
    folder = run("find its packages", python, "-c", PURELIB).strip()
    # The packages of the environment come first, then those of the image.
    lines = [f"import site; site.addsitedir({each!r})\n" for each in site.getsitepackages() if os.path.isdir(each)]
    write(os.path.join(folder, "dml_image.pth"), "".join(lines))
    run("install the requirements", python, *PIP, "install", "--quiet", "-r", requirements, "-c", constraints)
    write(os.path.join(path, COMPLETE), digest_of(path))


def write(path: str, text: str) -> None:
    """Write a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def link(path: str, name: str) -> None:
    """Have a name lead to the environment; pods of one node may do so at the same time."""
    new = f"{name}.{os.getpid()}"
    os.symlink(path, new)
    os.replace(new, name)


def main() -> None:
    """Create the environment if it does not exist; of pods on one node, one creates it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("requirements")
    parser.add_argument("--store", required=True)
    parser.add_argument("--link", required=True)
    given = parser.parse_args()
    with open(given.requirements, encoding="utf-8") as file:
        text = file.read()
    # Requirements name files of the folder by relative paths.
    os.chdir(os.path.dirname(os.path.abspath(given.requirements)))
    stack = packages()
    path = os.path.join(given.store, key_of(text, stack))
    os.makedirs(given.store, exist_ok=True)
    with open(f"{path}.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refuse_of_others(path)
        if os.path.lexists(os.path.join(path, COMPLETE)):
            refuse_changed(path)
        else:
            create(path, os.path.basename(given.requirements), stack)
    link(path, given.link)


if __name__ == "__main__":
    main()
