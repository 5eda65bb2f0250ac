"""The files of a folder that go to the nodes, and the reasons to refuse a folder before anything is written."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from ...errors import Refused

IGNORE_FILE = ".dmlignore"
NEVER = (".git", "__pycache__", ".venv")
FILE, LINK, EMPTY, OTHER = "file", "link", "empty folder", "other"
LARGEST, MOST_NAMED = 5, 10
# The options that the module and its action share; the paths on the node differ.
ARGUMENTS_OF_FOLDER: dict[str, dict[str, Any]] = {
    "path": {"type": "path"},
    "url": {"type": "str"},
    "shared": {"type": "bool", "default": False},
    "file": {"type": "str", "default": ""},
    "command": {"type": "raw"},
    "exclude": {"type": "list", "elements": "str", "default": []},
    "include": {"type": "list", "elements": "str", "default": []},
    "limit": {"type": "int", "default": 100},
    "once": {"type": "bool", "default": False},
    "keep_times": {"type": "bool", "default": False},
}
MEGABYTE = 1_000_000
# A name, or the end of a path; case is ignored.
PRIVATE_NAMES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".pgpass", ".my.cnf", ".*_history", ".htpasswd"),
    *(".pypirc", ".npmrc", ".yarnrc.yml", ".git-credentials", ".cargo/credentials*", ".gem/credentials"),
    *(".aws/*", ".azure/*", ".config/gcloud/*", "application_default_credentials.json", ".boto", ".s3cfg"),
    *(".kube/*", "kubeconfig", "*.kubeconfig", ".docker/config.json", ".dockercfg", ".config/containers/auth.json"),
    *(".ssh/*", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.p8", "*.p12", "*.pfx", "*.ppk"),
    *("*.jks", "*.keystore", "*.kdb", "*.kdbx", "*.ovpn", "*.tfstate", "*.tfstate.*", "*.tfvars", ".terraformrc"),
    *("secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "credentials.json", "credentials.yml"),
    *("client_secret*.json", "*vault_pass*", "*vault-pass*", ".databrickscfg", "rclone.conf", ".mc/config.json"),
    *("token", ".token", "*.token", "stored_tokens", ".ngc/config", "kaggle.json", ".kaggle/*"),
)
# The private key that ssh-keygen -f id_NAME writes, which has no file name extension.
SSH_KEY = re.compile(r"id_[^./]+")
PUBLIC_KEY = "*.pub"
# The beginning of a key or token, the rest of it, and its name.
SECRETS = tuple(
    (start, re.compile(rest), kind)
    for start, rest, kind in (
        (b"-----BEGIN ", rb"(?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----", "a private key"),
        (b"PuTTY-User-Key-File-", rb"[0-9]", "a private key"),
        (b"AGE-SECRET-KEY-1", rb"[0-9A-Z]{20}", "a private key"),
        (b"\x03\xd9\xa2\x9a\x67\xfb\x4b", rb"[\xb5-\xb7]", "a password database"),
        (b"AKIA", rb"[A-Z2-7]{16}(?![0-9A-Za-z])", "an AWS access key"),
        (b"ASIA", rb"[A-Z2-7]{16}(?![0-9A-Za-z])", "an AWS access key"),
        (b"aws_secret_access_key", rb"\s{0,9}=\s{0,9}[0-9A-Za-z/+]{40}", "an AWS access key"),
        (b"AIza", rb"[0-9A-Za-z_-]{35}(?![0-9A-Za-z_-])", "a Google API key"),
        (b"ya29.", rb"[0-9A-Za-z_-]{40}", "a Google token"),
        (b"AccountKey=", rb"[0-9A-Za-z/+]{80}", "an Azure storage key"),
        (b"ghp_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"gho_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"ghu_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"ghs_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"ghr_", rb"[0-9A-Za-z]{36}", "a GitHub token"),
        (b"github_pat_", rb"[0-9A-Za-z_]{50}", "a GitHub token"),
        (b"glpat-", rb"[0-9A-Za-z_-]{20}", "a GitLab token"),
        (b"hf_", rb"[0-9A-Za-z]{34}(?![0-9A-Za-z_])", "a Hugging Face token"),
        (b"nvapi-", rb"[0-9A-Za-z_-]{40}", "an NVIDIA API key"),
        (b"sk-ant-", rb"[0-9A-Za-z_-]{40}", "an API key"),
        (b"sk-proj-", rb"[0-9A-Za-z_-]{40}", "an API key"),
        (b"wandb_v1_", rb"[0-9A-Za-z_]{30}", "a Weights & Biases key"),
        (b"xoxb-", rb"[0-9A-Za-z-]{20}", "a Slack token"),
        (b"xoxp-", rb"[0-9A-Za-z-]{20}", "a Slack token"),
        (b"npm_", rb"[0-9A-Za-z]{36}(?![0-9A-Za-z_])", "an npm token"),
        (b"pypi-AgE", rb"[0-9A-Za-z_-]{40}", "a PyPI token"),
        (b"dckr_pat_", rb"[0-9A-Za-z_-]{20}", "a Docker token"),
        (b"_authToken=", rb"[0-9A-Za-z_+/=-]{20}", "a registry token"),
    )
)
LONGEST = 256


class FolderFile(NamedTuple):
    """One file of a folder; ``path`` is relative to the folder, with slashes."""

    path: str
    kind: str
    size: int = 0
    mode: int = 0o644
    # The target of a symbolic link, and whether it is outside the folder: other links in its path can lead there.
    link: str = ""
    leads_out: bool = False
    loops: bool = False
    # The time of the last change in whole seconds, if it belongs to the content; 0 if not.
    modified: int = 0


def patterns_of(text: str) -> list[str]:
    """Return the patterns of an ignore file: one on each line, without comments."""
    lines = (line.strip() for line in text.splitlines())
    patterns = [line for line in lines if line and not line.startswith("#")]
    for pattern in patterns:
        if pattern.startswith("!") or "**" in pattern:
            raise Refused(IGNORE_FILE, "read its patterns", f"{pattern} uses ! or **", "use names, paths, * and ?")
    return patterns


def is_ignored(path: str, patterns: Iterable[str]) -> bool:
    """Return whether a file or folder is left out: a pattern matches its name, or its path if it contains a slash."""
    name = posixpath.basename(path)
    for pattern in patterns:
        plain = pattern.rstrip("/")
        if fnmatchcase(path, plain.lstrip("/")) if "/" in plain else fnmatchcase(name, plain):
            return True
    return False


def check(folder: str, files: Sequence[FolderFile], limit_mb: int) -> None:
    """Refuse a folder that is empty or too large, or that contains files that cannot be copied."""
    if all(file.kind == EMPTY for file in files):
        cause = "it contains no file to copy"
        raise _refused(folder, cause, f"specify another folder, or correct {IGNORE_FILE}")
    for file in files:
        if file.kind == OTHER:
            cause = f"{file.path} is not a file, a folder or a link"
            raise _refused(folder, cause, f"remove it, or add it to {IGNORE_FILE}")
        if file.loops:
            raise _refused(folder, f"the link {file.path} leads back to itself", "remove it")
        if file.kind == LINK and (file.leads_out or _leaves(file)):
            cause = f"the link {file.path} points outside the folder, to {file.link}"
            raise _refused(folder, cause, "copy the file there")
    size = sum(file.size for file in files)
    if size > limit_mb * MEGABYTE:
        largest = sorted(files, key=lambda file: (-file.size, file.path))[:LARGEST]
        names = ", ".join(f"{file.path} ({file.size / MEGABYTE:.1f} MB)" for file in largest)
        cause = f"it has {size / MEGABYTE:.1f} MB, more than {limit_mb} MB; the largest files are {names}"
        remedy = f"add data to {IGNORE_FILE} and give its path with training_data, or set training_folder_limit"
        raise _refused(folder, cause, remedy)


def check_secrets(folder: str, secrets: Mapping[str, str]) -> None:
    """Refuse a folder with files that look like keys or passwords; ``secrets`` has the reason for each."""
    if not secrets:
        return
    named = ", ".join(f"{path} ({why})" for path, why in list(secrets.items())[:MOST_NAMED])
    more = f" and {len(secrets) - MOST_NAMED} more" if len(secrets) > MOST_NAMED else ""
    remedy = f"add them to {IGNORE_FILE}, or name them in training_include if the training needs them"
    raise _refused(folder, f"these files look like keys or passwords: {named}{more}", remedy)


def check_command(folder: str, command: Sequence[str], files: Iterable[FolderFile]) -> None:
    """Refuse a command whose script is not in the folder; a script with an absolute path is on the nodes."""
    if not command:
        remedy = 'set training_command, for example to ["python", "train.py"]'
        raise Refused(f"training_folder {folder}", "train", "training_command is empty", remedy)
    script = script_of(command)
    if script and not posixpath.isabs(script) and posixpath.normpath(script) not in {file.path for file in files}:
        remedy = "training_command runs in the folder: name a script that the folder contains"
        raise Refused(f"training_folder {folder}", f"run {script}", "the copied files do not contain it", remedy)


def script_of(command: Sequence[str]) -> str:
    """Return the first word that is a Python script, or an empty text."""
    return next((word for word in command if word.endswith(".py") and not word.startswith("-")), "")


def _refused(folder: str, cause: str, remedy: str) -> Refused:
    return Refused(f"training_folder {folder}", "copy the folder to the nodes", cause, remedy)


def _leaves(file: FolderFile) -> bool:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), file.link))
    return posixpath.isabs(file.link) or target == ".." or target.startswith("../")


def is_private_name(path: str) -> bool:
    """Return whether a file with this path usually contains keys or passwords."""
    path = path.lower()
    if fnmatchcase(path, PUBLIC_KEY):
        return False
    return any(fnmatchcase(f"/{path}", f"*/{name}") for name in PRIVATE_NAMES) or bool(
        SSH_KEY.fullmatch(path.rpartition("/")[2])
    )


def secret_in(blocks: Iterable[bytes]) -> str:
    """Return the kind of the first key or token in the content of a file, which comes in blocks; empty without one."""
    end = b""
    for block in blocks:
        data = end + block
        for start, rest, kind in SECRETS:
            if _is_in(data, start, rest):
                return kind
        end = data[-LONGEST:]
    return ""


def _is_in(data: bytes, start: bytes, rest: re.Pattern[bytes]) -> bool:
    at = data.find(start)
    while at >= 0:
        if rest.match(data, at + len(start)):
            return True
        at = data.find(start, at + 1)
    return False
